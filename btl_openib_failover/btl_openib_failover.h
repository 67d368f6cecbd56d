/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The end of a rail and what becomes of its work. See DESIGN.txt 10.
 */
#ifndef BTL_OPENIB_FAILOVER_H
#define BTL_OPENIB_FAILOVER_H

#include "btl_openib_types.h"

/* Opens the gate. Locks: the poll lock held, by progress or by service in its place. */
void ofo_rail_up(ofo_endpoint_t *ep, ofo_qpset_t *qps);
void ofo_drain_start(ofo_endpoint_t *ep, ofo_qpset_t *qps, uint16_t gen);
/* A shared queue gives nothing more to a queue pair of the draining set; or so we assume. */
void ofo_drain_last_wqe(ofo_endpoint_t *ep, uint16_t gen);
void ofo_fence_done_again(ofo_endpoint_t *ep, uint16_t gen);
void ofo_port_down(ofo_module_t *module);
/* Another rail to the endpoint's peer answered what was asked when the port had gone down `downs` times: ends the rail if it is in doubt. */
void ofo_port_ends(ofo_endpoint_t *ep, uint16_t downs);
/* Tells the PML of rails without queue pairs that have ended so. Context: progress, after the letters. */
void ofo_port_tell(ofo_module_t *module);
void ofo_port_returned(ofo_module_t *module);
void ofo_peer_lost(ofo_peer_t *peer);
void ofo_ext_fill(ofo_module_t *module);

#endif /* BTL_OPENIB_FAILOVER_H */
