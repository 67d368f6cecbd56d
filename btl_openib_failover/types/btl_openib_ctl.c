/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Sends control messages and fills in the header that all have. See DESIGN.txt 6.2 and 15.3.
 */
#include "types/btl_openib_ctl.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_log.h"
#include "formats/btl_openib_wire.h"

void ofo_ctl_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl)
{
    if (OFO_LOAD(ep->peer->declared) && OFO_CTL_PEERDEAD != ctl->type) {
        return; /* a declared peer gets nothing else */
    }
    if (OFO_RAIL_NONE == ctl->rail && OFO_CTL_PEERDEAD != ctl->type && OFO_CTL_ASK != ctl->type) {
        return; /* the rail has no name yet */
    }
    ctl->jobid = OFO.self.jobid;
    ctl->vpid = OFO.self.vpid;
    ctl->src_inc = OFO.record.incarnation;
    ctl->dst_inc = ep->peer->incarnation;
    ofo_log(2, "%s: %s(%u) of rail %u to %u", ep->module->name, ofo_ctl_name(ctl->type), ctl->gen, ctl->rail, ep->peer->name.vpid);
    OFO.cpc->send(ep, ctl);
}

bool ofo_ctl_has_room(ofo_module_t *module)
{
    return NULL == OFO.cpc->has_room || OFO.cpc->has_room(module);
}

void ofo_ud_forget(ofo_endpoint_t *ep)
{
    if (NULL != ep->ah) {
        ibv_destroy_ah(ep->ah);
        ep->ah = NULL;
    }
}

uint32_t ofo_flow_label(ofo_endpoint_t *ep)
{
    if (0 == ep->flow_label) {
        ep->flow_label = 1 + (ofo_random(ep->module) >> 8) % 0xfffff; /* 20 bits; for label 0 the driver would choose */
    }
    return ep->flow_label;
}

void ofo_flow_label_renew(ofo_endpoint_t *ep)
{
    ep->flow_label = 0;
    ep->label_is_used = false;
    ofo_ud_forget(ep);
}
