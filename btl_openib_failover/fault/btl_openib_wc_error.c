/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Bad completions: finds out what the status means, and returns every descriptor to its owner with it. Only wr_id, status,
 * qp_num and vendor_err of a bad completion are read. Context: progress. See DESIGN.txt 4 (B5, B10).
 */
#include "fault/btl_openib_wc_error.h"

#include "bfo_assert.h"
#include "device/btl_openib_address.h"
#include "connect/btl_openib_async.h"
#include "types/btl_openib_atomic.h"
#include "device/btl_openib_buffers.h"
#include "qp/btl_openib_drain.h"
#include "fault/btl_openib_failed_work.h"
#include "types/btl_openib_log.h"
#include "qp/btl_openib_marker.h"
#include "device/btl_openib_srq.h"
#include "formats/btl_openib_status.h"

static ofo_qp_t *qp_of(ofo_module_t *module, ofo_work_t *work, uint32_t qpn)
{
    return OFO_WORK_RECV == work->kind ? ofo_recv_qp(module, (ofo_recv_t *) ((uint8_t *) work - offsetof(ofo_recv_t, work)), qpn)
                                       : &work->qps->qp[work->qp];
}

/* Asks in the order in which a link that goes down shows: its interface, the port's event, the port. In the reverse order each could
 * still be up when it is asked, and the end of the rail would look like a bad work request. If `downs` has changed, the port went down
 * and came back. */
static bool is_sound(ofo_module_t *module, const ofo_qp_t *qp)
{
    return !ofo_port_lost_interface(module) && ofo_async_settled(module->device) && !OFO_LOAD(qp->is_fatal) && ofo_async_port_is_up(module, false)
           && OFO_LOAD(module->downs) == qp->returns.qps->downs;
}

/* Has the peer closed the connection? Then posted receives and credit messages come back, for which nobody waits. */
static bool is_close(const ofo_module_t *module, const ofo_work_t *work, enum ibv_wc_status status)
{
    return module->transport->closes && IBV_WC_WR_FLUSH_ERR == status && (OFO_WORK_RECV == work->kind || OFO_WORK_RETURN == work->kind);
}

void ofo_wc_error(ofo_module_t *module, const struct ibv_wc *wc)
{
    ofo_work_t *work = (ofo_work_t *) (uintptr_t) wc->wr_id;
    ofo_qp_t *qp = qp_of(module, work, wc->qp_num);
    bool poison = false;
    ofo_qpset_t *qps;

    if (OPAL_UNLIKELY(NULL == qp)) { /* a shared receive of a queue pair that we do not know */
        ++module->count.bad_messages;
        ofo_srq_return(module->srq[work->qp], (ofo_recv_t *) ((uint8_t *) work - offsetof(ofo_recv_t, work)));
        return;
    }
    qps = qp->returns.qps;
    if (OFO_WORK_RECV != work->kind) { /* flushed receives may come back before the send that broke the queue pair */
        poison = OFO_WC_POISON
                 == ofo_status_class(wc->status, !qp->is_failed, ofo_drain_is_running(&qps->drain),
                                     IBV_WC_LOC_QP_OP_ERR != wc->status || qp->is_failed || is_sound(module, qp));
        qp->is_failed = true;
    }
    if (is_close(module, work, wc->status)) {
        ofo_work_failed(qps, work, OPAL_ERROR);
        if (ofo_drain_is_live(&qps->drain)) {
            ofo_rail_closed(qps);
        }
        ofo_drain_check(qps);
        return;
    }
    ++module->count.errors;
    if (ofo_drain_is_live(&qps->drain)) {
        ofo_log(1, "%s: rail %u to %u: %s (vendor error 0x%x)", module->name, qps->ep->rail, qps->ep->peer->name.vpid, ibv_wc_status_str(wc->status),
                wc->vendor_err);
    }
    if (poison) {
        ofo_log(1, "%s: rail %u to %u: %s: the work request itself may be bad", module->name, qps->ep->rail, qps->ep->peer->name.vpid,
                ibv_wc_status_str(wc->status));
    }
    ofo_rail_failed(qps, IBV_WC_WR_FLUSH_ERR == wc->status ? "the other side gave it up" : ibv_wc_status_str(wc->status));
    if (OFO_WORK_SEND == work->kind) { /* B5: no good completion covers the silent messages posted before it */
        ofo_silent_lost(qps, work->qp, ((ofo_frag_t *) ((uint8_t *) work - offsetof(ofo_frag_t, work)))->place);
    } else if (OFO_WORK_MARKER == work->kind) {
        ofo_silent_lost(qps, work->qp, qps->qp[work->qp].place + 1);
    }
    ofo_work_failed(qps, work, poison ? OPAL_ERR_FATAL : OPAL_ERROR);
    ofo_drain_check(qps);
}
