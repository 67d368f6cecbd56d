/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Drives a rail's machine. Context: service of the endpoint's module. See DESIGN.txt 10 and 15.
 */
#ifndef BTL_OPENIB_RAIL_H
#define BTL_OPENIB_RAIL_H

#include "types/btl_openib_types.h"

void ofo_rail_init(ofo_endpoint_t *ep);
void ofo_rail_event(ofo_endpoint_t *ep, ofo_fsm_event_t event, const ofo_ctl_t *ctl);
void ofo_rail_message(ofo_endpoint_t *ep, const ofo_ctl_t *ctl);
/* Opens the next generation of a rail that is down, if it still may come back. */
void ofo_rail_rejoin(ofo_endpoint_t *ep);
/* Takes a REQ whose turn has come. */
void ofo_rail_asked(ofo_endpoint_t *ep, const ofo_ctl_t *req);
void ofo_rail_timers(ofo_endpoint_t *ep, uint64_t now);
void ofo_rail_fence_done(ofo_endpoint_t *ep, uint16_t gen, ofo_qpset_t *qps);
/* The PML asks for the end of a generation that the peer reports as dead. */
void ofo_rail_fence(ofo_endpoint_t *ep, const ofo_mail_t *mail);
/* The peer was declared: ends this rail, and sends the peer nothing but PEERDEAD. */
void ofo_rail_declared(ofo_endpoint_t *ep);
void ofo_rail_send_peerdead(ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_RAIL_H */
