/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * How a rail ends, and what happens to its work. See DESIGN.txt 10.
 */
#ifndef BTL_OPENIB_FAILOVER_H
#define BTL_OPENIB_FAILOVER_H

#include "types/btl_openib_types.h"

/* Opens the rail's gate for a set that is connected. Locks: the poll lock held, by progress or by service in its place. */
void ofo_rail_up(ofo_endpoint_t *ep, ofo_qpset_t *qps);
/* Service has ended the probation of that generation. */
void ofo_rail_trusted(ofo_endpoint_t *ep, uint16_t gen);
/* Begins the fence of a generation whose queue pairs are in the error state; `qps` is NULL if it has none. `reported`: the cause according to
 * the peer, constant text, or NULL. */
void ofo_drain_start(ofo_endpoint_t *ep, ofo_qpset_t *qps, uint16_t gen, const char *reported);
/* A queue pair of the draining set takes no more buffers from its shared queue, or we assume so. */
void ofo_drain_last_wqe(ofo_endpoint_t *ep, uint16_t gen);
/* Calls the PML's fence_done for a generation whose fence is done. */
void ofo_fence_done_again(ofo_endpoint_t *ep, uint16_t gen);
void ofo_port_down(ofo_module_t *module);
/* Another rail to the endpoint's peer answered a question that was asked after the port had gone down `downs` times. Ends the rail if
 * it is in doubt since then. */
void ofo_port_ends(ofo_endpoint_t *ep, uint16_t downs);
/* Reports to the PML if ofo_port_ends() has ended rails without queue pairs. Context: progress, after the letters. */
void ofo_port_tell(ofo_module_t *module);
void ofo_port_returned(ofo_module_t *module);
/* Reports to the PML that the BTL has declared the peer. */
void ofo_peer_lost(ofo_peer_t *peer);
/* Fills in the module's extension for the PML bfo. */
void ofo_ext_fill(ofo_module_t *module);

#endif /* BTL_OPENIB_FAILOVER_H */
