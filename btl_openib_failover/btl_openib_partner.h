/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which port of the peer is at the other end of a rail, where the records leave a choice. See DESIGN.txt 10.1.
 */
#ifndef BTL_OPENIB_PARTNER_H
#define BTL_OPENIB_PARTNER_H

#include "btl_openib_types.h"

/* The endpoint that the message is for; NULL: none, or the message is dealt with. Context: service of `module`, where it arrived. */
ofo_endpoint_t *ofo_partner_endpoint(ofo_peer_t *peer, ofo_module_t *module, const ofo_ctl_t *ctl);
/* Does the message come from a port that may be this rail's partner, and was it meant for this port? Context: service. */
bool ofo_partner_fits(const ofo_endpoint_t *ep, const ofo_ctl_t *ctl);
/* The message was taken: its sender's port is the partner. Context: service. */
void ofo_partner_learn(ofo_endpoint_t *ep, const ofo_ctl_t *ctl);
/* Sends REQ or REP, or ASK in the place of a REQ, to the partner, or to all choices. Context: service. */
void ofo_partner_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl);

#endif /* BTL_OPENIB_PARTNER_H */
