/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the connection managers have in common: the header of control messages, and the way of a received one to
 * the machine of the rail it names. Context: service. See DESIGN.txt 6.2 and 15.3.
 */
#include "btl_openib_connect.h"

#include "btl_openib_atomic.h"
#include "btl_openib_connect_rdmacm.h"
#include "btl_openib_connect_ud.h"
#include "btl_openib_endpoints.h"
#include "btl_openib_log.h"
#include "btl_openib_mail.h"
#include "btl_openib_peer.h"
#include "btl_openib_rail.h"
#include "btl_openib_wire.h"

#include <string.h>

const ofo_cpc_t *ofo_cpc_find(const char *name, size_t length)
{
    static const ofo_cpc_t *const all[] = {&ofo_cpc_ud, &ofo_cpc_rdmacm};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
        if (strlen(all[i]->name) == length && 0 == memcmp(all[i]->name, name, length)) {
            return all[i];
        }
    }
    return NULL;
}

void ofo_ctl_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl)
{
    if (OFO_LOAD(ep->peer->declared) && OFO_CTL_PEERDEAD != ctl->type) {
        return; /* it is never contacted again */
    }
    ctl->jobid = OFO.self.jobid;
    ctl->vpid = OFO.self.vpid;
    ctl->src_inc = OFO.record.incarnation;
    ctl->dst_inc = ep->peer->incarnation;
    ofo_log(2, "%s: %s(%u) of rail %u to %u", ep->module->name, ofo_ctl_name(ctl->type), ctl->gen, ctl->rail,
            ep->peer->name.vpid);
    OFO.cpc->send(ep, ctl);
}

/* L23: whatever a declared peer wants, it is told so. */
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

    if (NULL == peer) {
        /* Finding the process means asking Open MPI: progress does that, the letter comes back. */
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
    for (unsigned rail = 0; rail < peer->rail_count; ++rail) {
        ofo_endpoint_t *ep = peer->rail[rail];
        if (NULL == ep || rail != ctl->rail) {
            continue;
        }
        if (ep->module == module) {
            ofo_rail_message(ep, ctl);
        } else {
            ofo_tell_service(ep, OFO_MAIL_CTL, ctl->gen, ctl, NULL);
        }
    }
}
