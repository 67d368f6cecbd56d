/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Takes an event of a set of queue pairs: changes the state under ep->lock, then runs the row's action. See DESIGN.txt 10.3.
 */
#include "qp/btl_openib_drain.h"

#include "bfo_assert.h"
#include "qp/btl_openib_gate.h"
#include "types/btl_openib_log.h"

#define ACTION(name) [OFO_DACT_##name] = ofo_drain_act_##name,
static void (*const actions[OFO_DRAIN_ACTIONS])(ofo_qpset_t *qps, const char *why) = {
#include "tables/btl_openib_drain.def"
};

void ofo_drain_act_nothing(ofo_qpset_t *qps, const char *why) {}

static void trace(ofo_qpset_t *qps, ofo_drain_state_t from, ofo_drain_event_t event, ofo_drain_cell_t cell)
{
    const ofo_endpoint_t *ep = qps->ep;

    if (!cell.listed) {
        ++ep->module->count.drain_refused;
        ofo_log(1, "bfo: %u->%u rail %u gen %u: queue pairs: %s refused in %s", OFO.self.vpid, ep->peer->name.vpid, ep->rail, qps->gen,
                ofo_drain_event_name(event), ofo_drain_state_name(from));
    } else if (cell.next != from) {
        ofo_log(2, "bfo: %u->%u rail %u gen %u: queue pairs: %s -> %s on %s", OFO.self.vpid, ep->peer->name.vpid, ep->rail, qps->gen,
                ofo_drain_state_name(from), ofo_drain_state_name(cell.next), ofo_drain_event_name(event));
    }
}

bool ofo_drain_raise(ofo_qpset_t *qps, ofo_drain_event_t event, const char *why)
{
    ofo_endpoint_t *ep = qps->ep;
    const bool held = ofo_drain_lock_is_held(event);
    ofo_drain_state_t from;
    ofo_drain_cell_t cell;

    if (!held) {
        OPAL_THREAD_LOCK(&ep->lock);
    }
    BFO_ASSERT(qps->module == ep->module);
    from = ofo_drain_state(&qps->drain);
    cell = ofo_drain_step(&qps->drain, event);
    if (OFO_DRAIN_REFUSE == cell.gate) {
        ofo_gate_refuse(ep, qps->gen);
    }
    BFO_ASSERT(qps != ep->qps || OFO_GATE_UP != ep->gate || OFO_DRAIN_BROKEN >= ofo_drain_state(&qps->drain)); /* a set that has failed is refused */
    if (!held) {
        OPAL_THREAD_UNLOCK(&ep->lock);
    }
    trace(qps, from, event, cell);
    BFO_ASSERT(cell.listed); /* no peer and no device can cause this: the caller's guard is wrong */
    if (cell.listed) {
        actions[cell.action](qps, why);
    }
    return cell.listed;
}

void ofo_rail_failed(ofo_qpset_t *qps, const char *why)
{
    (void) ofo_drain_raise(qps, OFO_DEV_ERROR, why);
}

/* The peer closed the connection, as it does when it leaves (transport->closes), and our posted receives came back. The end of the connection is
 * no loss if this process leaves too. Posts are refused from now on. If this process still runs at the keepalive's next turn, the rail is reported
 * as failed. */
void ofo_rail_closed(ofo_qpset_t *qps)
{
    ofo_endpoint_t *ep = qps->ep;
    bool waits;

    OPAL_THREAD_LOCK(&ep->lock);
    waits = qps == ep->qps && 0 < ep->sends_out + ep->rdma_out;
    if (!waits) {
        (void) ofo_drain_raise(qps, qps == ep->qps ? OFO_DEV_CLOSE : OFO_DEV_CLOSE_EARLY, NULL);
    }
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (waits) {
        ofo_rail_failed(qps, "the other side closed the connection");
    }
}
