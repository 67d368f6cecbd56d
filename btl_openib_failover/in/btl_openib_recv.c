/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Received messages: credits go to the flow control, the payload to the PML's callback, the buffer back to the queue
 * pair. No field of the header is used before it was checked. Context: progress. See DESIGN.txt 15.
 */
#include "in/btl_openib_recv.h"

#include "bfo_assert.h"
#include "device/btl_openib_buffers.h"
#include "out/btl_openib_coalesce.h"
#include "formats/btl_openib_credits.h"
#include "qp/btl_openib_drain.h"
#include "qp/btl_openib_heard.h"
#include "types/btl_openib_log.h"
#include "qp/btl_openib_marker.h"
#include "out/btl_openib_ring.h"
#include "out/btl_openib_send.h"
#include "device/btl_openib_srq.h"

#include <arpa/inet.h>

/* Locks: ep->lock held. */
static bool gain_slots(ofo_ring_out_t *out, int32_t slots)
{
    BFO_ASSERT(0 <= slots && 0 <= out->free && out->free <= out->slots);
    if (out->free + slots > out->slots) {
        return false;
    }
    out->free += slots;
    return true;
}

/* Takes the credits and slots of a message. True if there were any. */
static bool take_credits(ofo_endpoint_t *ep, ofo_qpset_t *qps, const ofo_data_hdr_t *hdr)
{
    bool valid = true;

    if (0 == hdr->credits && 0 == hdr->slots) {
        return false;
    }
    OPAL_THREAD_LOCK(&ep->lock);
    if (0 != hdr->credits) {
        valid = hdr->credit_qp < qps->nqp && !qps->qp[hdr->credit_qp].shared
                && ofo_credits_gain(&qps->qp[hdr->credit_qp].credits, ntohs(hdr->credits));
    }
    valid = valid && gain_slots(&qps->ring_out, ntohs(hdr->slots));
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (!valid) {
        ++ep->module->count.bad_messages;
    }
    return valid;
}

/* Hands the payload to the callback of its tag. */
static void deliver(ofo_module_t *module, uint8_t tag, void *bytes, size_t length)
{
    mca_btl_active_message_callback_t *callback = MCA_BTL_TAG_MAX > tag ? &mca_btl_base_active_message_trigger[tag] : NULL;

    if (OPAL_UNLIKELY(NULL == callback || NULL == callback->cbfunc)) {
        ++module->count.bad_messages;
        return;
    }
    module->got.segment.seg_addr.pval = bytes;
    module->got.segment.seg_len = length;
    bfo_arrival_hand_up(callback, &module->super, module->got.from, &module->got.base, tag);
}

/* Hands every part to the callback of its tag. */
static __attribute__((noinline)) void deliver_parts(ofo_module_t *module, uint8_t *bytes, size_t length)
{
    ofo_part_t part;

    for (size_t at = 0; at < length;) {
        if (!ofo_parts_next(bytes, length, &at, &part)) {
            ++module->count.bad_messages;
            return;
        }
        deliver(module, part.tag, bytes + part.at, part.length);
    }
}

static void hand_up(ofo_module_t *module, ofo_qpset_t *qps, ofo_data_hdr_t *hdr, size_t length)
{
    switch (hdr->tag) {
    case OFO_TAG_RETURN:
        break;
    case OFO_TAG_RING:
        ofo_ring_announced(qps, hdr + 1, length);
        break;
    case OFO_TAG_MANY:
        deliver_parts(module, (uint8_t *) (hdr + 1), length);
        break;
    default:
        deliver(module, hdr->tag, hdr + 1, length);
    }
}

void ofo_recv_message(ofo_module_t *module, ofo_qpset_t *qps, ofo_data_hdr_t *hdr, uint32_t length)
{
    ofo_endpoint_t *ep = qps->ep;
    bfo_traffic_t *traffic = bfo_traffic_of(&module->ext);
    bool gained = take_credits(ep, qps, hdr);

    bfo_traffic_add(&traffic->received_messages, 1, false);
    bfo_traffic_add(&traffic->received_bytes, length, false);
    module->got.from = ep;
    hand_up(module, qps, hdr, length - sizeof(*hdr));
    if (OPAL_UNLIKELY(ep->qps != qps) && !qps->told_first_recv) {
        ofo_recv_tell_first(qps);
    }
    if (gained) {
        ofo_pending_flush(ep);
        if (OPAL_UNLIKELY(ofo_ring_must_return(qps))) {
            ofo_credits_return(ep, qps, 0);
        }
    }
}

/* The callback has consumed the payload. Collects the buffer and posts it again together with others. */
static void post_again(ofo_module_t *module, ofo_endpoint_t *ep, ofo_qpset_t *qps, ofo_recv_t *recv)
{
    ofo_qp_t *qp = &qps->qp[recv->work.qp];
    bool due;

    if (NULL == recv->work.qps) {
        ofo_srq_return(module->srq[recv->work.qp], recv);
        return;
    }
    if (OPAL_UNLIKELY(!ofo_drain_is_live(&qps->drain))) {
        return; /* a failed set only drains */
    }
    ofo_recv_collect(&qp->again, recv);
    if (!ofo_credits_collect(&qp->credits)) {
        return;
    }
    qp->recv_posted += (int32_t) ofo_recv_post_chain(&qp->again, qp->qp, NULL);
    if (OPAL_UNLIKELY(0 != qp->again.count)) {
        return; /* the queue pair is broken, and its error completion will come */
    }
    BFO_ASSERT(recv->work.qp < qps->nqp_owing); /* a message that returns credits finds them */
    OPAL_THREAD_LOCK(&ep->lock);
    ofo_credits_owe(&qp->credits);
    due = ofo_credits_must_return(&qp->credits);
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (OPAL_UNLIKELY(due)) {
        ofo_credits_return(ep, qps, recv->work.qp);
    }
}

/* Drops a message that came after the fence. The peer gets an error for it and sends it again. If the peer got a success, the loss check
 * finds the loss. */
static void drop_late(ofo_module_t *module, ofo_qpset_t *qps, ofo_recv_t *recv)
{
    ++module->count.late_receives;
    ofo_log(1, "%s: rail %u to %u gen %u: a message came after the fence", module->name, qps->ep->rail, qps->ep->peer->name.vpid, qps->gen);
    if (NULL == recv->work.qps) {
        ofo_srq_return(module->srq[recv->work.qp], recv);
    }
}

void ofo_recv_handle(ofo_module_t *module, ofo_recv_t *recv, uint32_t length, uint32_t qpn)
{
    ofo_qp_t *qp = ofo_recv_qp(module, recv, qpn);
    ofo_data_hdr_t *hdr = (ofo_data_hdr_t *) (uintptr_t) recv->sge.addr;
    ofo_endpoint_t *ep;
    ofo_qpset_t *qps;

    if (OPAL_UNLIKELY(NULL == qp)) {
        ++module->count.bad_messages;
        ofo_srq_return(module->srq[recv->work.qp], recv);
        return;
    }
    qps = qp->returns.qps;
    ep = qps->ep;
    if (OPAL_UNLIKELY(ofo_drain_is_over(&qps->drain))) {
        drop_late(module, qps, recv);
        return;
    }
    if (NULL != recv->work.qps) {
        BFO_ASSERT(0 < qp->recv_posted);
        BFO_ASSERT(qps == recv->work.qps);
        --qp->recv_posted;
    }
    ++qp->n_recv;
    ++qps->n_received;
    if (OPAL_UNLIKELY(sizeof(*hdr) > length || recv->sge.length < length)) {
        ++module->count.bad_messages;
    } else {
        ++module->count.receives;
        ofo_recv_message(module, qps, hdr, length);
    }
    post_again(module, ep, qps, recv);
    if (OPAL_UNLIKELY(module->use_eager_rdma && qps->n_received >= OFO.params.eager_rdma_threshold && qps == ep->qps)) {
        ofo_ring_ask(module, qps); /* only when the rail is up, because service makes no ring before */
    }
    if (OPAL_UNLIKELY(!ofo_drain_is_live(&qps->drain))) {
        ofo_drain_check(qps);
    }
}
