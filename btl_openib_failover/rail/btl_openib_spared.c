/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which rails go on although their port is down. See DESIGN.txt 10.2.
 */
#include "rail/btl_openib_spared.h"

#include "types/btl_openib_atomic.h"

static bool has_live_other(const ofo_endpoint_t *ep, bool takes_work)
{
    for (unsigned i = 0; i < ep->peer->rail_count; ++i) {
        const ofo_endpoint_t *other = ep->peer->rail[i];
        if (other != ep && OFO_LOAD(other->module->port_up) && OFO_GATE_REFUSING != OFO_LOAD(other->gate)
            && (!takes_work || !OFO_LOAD(other->stands_out))) {
            return true;
        }
    }
    return false;
}

bool ofo_rail_is_last(const ofo_endpoint_t *ep)
{
    return !has_live_other(ep, true);
}

bool ofo_port_is_gone(const ofo_module_t *module)
{
    return OFO_LOAD(module->device->fatal) || OFO_LOAD(module->cq_failed);
}

bool ofo_rail_is_spared(const ofo_endpoint_t *ep)
{
    return !ofo_port_is_gone(ep->module) && (NULL == ep->module->ext.failed_frag || OFO_LOAD(ep->doubted) || !has_live_other(ep, false));
}
