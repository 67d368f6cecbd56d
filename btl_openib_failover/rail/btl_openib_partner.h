/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Finds the port of the peer that is at the other end of a rail, if the records leave a choice. See DESIGN.txt 10.1.
 */
#ifndef BTL_OPENIB_PARTNER_H
#define BTL_OPENIB_PARTNER_H

#include "types/btl_openib_types.h"

/* The endpoint that the message is for; NULL if there is none, or if nothing is left to do for the message. Context: service of
 * `module`, where it arrived. */
ofo_endpoint_t *ofo_partner_endpoint(ofo_peer_t *peer, ofo_module_t *module, const ofo_ctl_t *ctl);
/* Does the message come from a port that may be this rail's partner, and was it meant for this port? Context: service. */
bool ofo_partner_fits(const ofo_endpoint_t *ep, const ofo_ctl_t *ctl);
/* The machine accepted the message, so the sender's port is the rail's partner. Context: service. */
void ofo_partner_learn(ofo_endpoint_t *ep, const ofo_ctl_t *ctl);
/* Sends REQ or REP to the partner, or to all choices. A rail that has no name yet sends ASK instead of REQ. Context: service. */
void ofo_partner_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl);

#endif /* BTL_OPENIB_PARTNER_H */
