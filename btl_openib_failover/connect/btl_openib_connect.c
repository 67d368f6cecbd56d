/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Hands a received control message to the machine of the rail that it names, whichever connection manager received it.
 * Context: service. See DESIGN.txt 6.2 and 15.3.
 */
#include "connect/btl_openib_connect.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_endpoints.h"
#include "rail/btl_openib_lost.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_partner.h"
#include "rail/btl_openib_peer.h"
#include "rail/btl_openib_rail.h"

#include "bfo_assert.h"

/* L23: a declared peer gets PEERDEAD as the answer to any message. */
static void answer_declared(ofo_module_t *module, ofo_peer_t *peer)
{
    ofo_endpoint_t *ep = ofo_peer_endpoint(peer, module);

    if (NULL != ep) {
        ofo_rail_send_peerdead(ep);
    }
}

void ofo_ctl_dispatch(ofo_module_t *module, const ofo_ctl_t *ctl)
{
    ofo_peer_t *peer = ofo_peer_find(ctl->jobid, ctl->vpid);
    ofo_endpoint_t *ep;

    if (NULL == peer) {
        /* Only progress may ask Open MPI for the process; it sends the message back as a letter (OFO_MAIL_AGAIN). */
        ofo_tell_progress(module, OFO_MAIL_UNKNOWN, NULL, 0, ctl, NULL);
        return;
    }
    if (ctl->src_inc != peer->incarnation) {
        ++module->count.ctl_dropped;
        return;
    }
    if (OFO_CTL_PEERDEAD == ctl->type) {
        (void) ofo_peer_declare(peer, "the process declared us unreachable", true);
        return;
    }
    if (OFO_LOAD(peer->declared)) {
        answer_declared(module, peer);
        return;
    }
    ep = ofo_partner_endpoint(peer, module, ctl);
    BFO_ASSERT(NULL == ep || peer == ep->peer); /* a message reaches only rails to its sender */
    if (NULL == ep) {
        ++module->count.ctl_dropped;
    } else if (ep->module == module) {
        ofo_rail_message(ep, ctl);
    } else {
        ofo_tell_service(ep, OFO_MAIL_CTL, ctl->gen, ctl, NULL);
    }
}
