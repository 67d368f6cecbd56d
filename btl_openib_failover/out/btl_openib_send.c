/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Messages: a descriptor or a convertor becomes a work request. It goes to the rail's pending list if there are no slots
 * or credits, or if the rail is not connected yet. Every accepted descriptor comes back exactly once, by
 * ofo_send_complete(). See DESIGN.txt 15, "The life of a work request".
 */
#include "out/btl_openib_send.h"

#include "bfo_assert.h"
#include "types/btl_openib_atomic.h"
#include "out/btl_openib_coalesce.h"
#include "formats/btl_openib_credits.h"
#include "qp/btl_openib_drain.h"
#include "out/btl_openib_frag.h"
#include "qp/btl_openib_gate.h"
#include "types/btl_openib_lock.h"
#include "types/btl_openib_mail.h"
#include "out/btl_openib_rdma.h"
#include "out/btl_openib_ring.h"
#include "out/btl_openib_silent.h"

#include "opal/datatype/opal_convertor.h"

#include <arpa/inet.h>
#include <string.h>

/* May the message go through the eager ring, which belongs to the rail's first queue pair? */
static bool may_use_ring(const ofo_qpset_t *qps, unsigned index)
{
    return 0 == index && 0 < qps->ring_out.free && !qps->ring_out.behind_put;
}

static bool may_post(const ofo_qpset_t *qps, unsigned index)
{
    const ofo_qp_t *qp = &qps->qp[index];

    return 0 < qp->sq_free && (qp->shared || ofo_credits_may_send(&qp->credits) || may_use_ring(qps, index));
}

/* Puts owed credits into the header: those of this queue pair, or of another one if this one owes none. Owed slots of the ring too. */
static void piggyback(ofo_qpset_t *qps, unsigned index, ofo_data_hdr_t *hdr)
{
    hdr->credit_qp = (uint8_t) index;
    for (unsigned i = 0; i < qps->nqp_owing && 0 == qps->qp[hdr->credit_qp].credits.owed; ++i) {
        hdr->credit_qp = (uint8_t) i;
    }
    hdr->credits = htons(ofo_credits_take_owed(&qps->qp[hdr->credit_qp].credits));
    hdr->slots = htons((uint16_t) qps->ring_in.owed);
    qps->ring_in.owed = 0;
}

/* Several endpoints of a module may post at the same time, so the counters may need atomic additions. */
static void count_sent(ofo_module_t *module, uint32_t length)
{
    bfo_traffic_t *traffic = bfo_traffic_of(&module->ext);
    const int is_shared = opal_using_threads();

    bfo_traffic_add(&traffic->sent_messages, 1, is_shared);
    bfo_traffic_add(&traffic->sent_bytes, length, is_shared);
}

/* Posts; the caller has checked slots and credits. Locks: ep->lock held. */
static int post_message(ofo_qpset_t *qps, unsigned index, ofo_frag_t *frag)
{
    ofo_qp_t *qp = &qps->qp[index];
    struct ibv_sge sge = {.addr = (uintptr_t) frag->hdr, .length = (uint32_t) (sizeof(ofo_data_hdr_t) + frag->segment.seg_len), .lkey = frag->lkey};
    struct ibv_send_wr wr = {.wr_id = (uintptr_t) &frag->work, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *wrong;
    bool proves; /* the completion of this message proves that an earlier put is visible */

    BFO_ASSERT(NULL == frag->work.qps && index < qps->nqp);
    BFO_ASSERT(0 < qp->sq_free && qp->sq_free <= qp->sq_slots);
    frag->work.qp = (uint8_t) index;
    frag->work.qps = qps;
    frag->hdr->flags = frag->hdr->pad = 0;
    piggyback(qps, index, frag->hdr);
    frag->in_ring = may_use_ring(qps, index);
    proves = 0 == index && 0 < qps->ring_out.slots && qps->ring_out.behind_put && NULL == qps->ring_out.proof;
    if (frag->in_ring) {
        ofo_ring_prepare(qps, frag, &sge, &wr);
    }
    if (sge.length <= qp->inline_max) {
        wr.send_flags |= IBV_SEND_INLINE;
    }
    frag->place = qp->place + 1;
    frag->is_silent = !proves && ofo_silent_may(qp, index, frag);
    if (frag->is_silent) {
        wr.send_flags &= ~(unsigned) IBV_SEND_SIGNALED;
    }
    if (OPAL_UNLIKELY(0 != ibv_post_send(qp->qp, &wr, &wrong))) {
        frag->work.qps = NULL;
        return OPAL_ERROR;
    }
    --qp->sq_free;
    count_sent(qps->module, sge.length);
    ofo_silent_posted(qp, frag);
    qps->module->count.silent += frag->is_silent;
    if (frag->in_ring) {
        ofo_ring_posted(qps);
        ++qps->module->count.ring_sends;
        return OPAL_SUCCESS;
    }
    if (!qp->shared) {
        ofo_credits_use(&qp->credits);
    }
    if (OPAL_UNLIKELY(proves)) {
        qps->ring_out.proof = &frag->work;
    }
    return OPAL_SUCCESS;
}

/* Verbs refused a post although slots were free, so the queue pair is broken. The fragment stays queued and comes
 * back with the others when the rail is drained. */
static void post_refused(ofo_qpset_t *qps)
{
    (void) ofo_drain_raise(qps, OFO_DEV_POST_REFUSED, NULL);
}

static unsigned choose_qp(const ofo_frag_t *frag)
{
    return MCA_BTL_NO_ORDER != frag->base.order && frag->base.order >= frag->queue && frag->base.order < OFO.queues.count ? frag->base.order
                                                                                                                          : frag->queue;
}

static int submit(ofo_endpoint_t *ep, ofo_frag_t *frag)
{
    unsigned index = choose_qp(frag);
    bool start, gate;
    int rc;

    frag->ep = ep;
    gate = ofo_post_lock(ep);
    if (OPAL_LIKELY(ofo_gate_admits(ep, &start, &rc)) && opal_list_is_empty(&ep->pending[index]) && may_post(ep->qps, index)) {
        if (OPAL_LIKELY(OPAL_SUCCESS == post_message(ep->qps, index, frag))) {
            ++ep->sends_out;
            ofo_post_unlock(ep, gate);
            return OPAL_SUCCESS;
        }
        post_refused(ep->qps);
    }
    if (OPAL_SUCCESS == rc) {
        opal_list_append(&ep->pending[index], &frag->base.super.super);
        OFO_ADD(ep->pending_count, 1);
        ++ep->sends_out;
        ++ep->module->count.queued_sends;
    }
    ofo_post_unlock(ep, gate);
    if (start) {
        ofo_tell_service(ep, OFO_MAIL_POST, 0, NULL, NULL);
    }
    return rc;
}

int ofo_send(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, mca_btl_base_descriptor_t *des, mca_btl_base_tag_t tag)
{
    ofo_frag_t *frag = (ofo_frag_t *) des;

    frag->hdr->tag = tag;
    ofo_count(&ep->module->count.sends);
    return submit(ep, frag);
}

int ofo_send_own(ofo_endpoint_t *ep, ofo_frag_t *frag, uint8_t tag)
{
    frag->hdr->tag = tag;
    return submit(ep, frag);
}

/* Copies a message of sendi. */
static inline void fill(uint8_t *to, const void *header, size_t header_size, struct opal_convertor_t *convertor, size_t payload_size)
{
    memcpy(to, header, header_size);
    if (0 < payload_size && !opal_convertor_need_buffers(convertor)) {
        void *from;
        opal_convertor_get_current_pointer(convertor, &from); /* contiguous memory in this machine's format */
        memcpy(to + header_size, from, payload_size);
    } else if (0 < payload_size) {
        struct iovec iov = {.iov_base = to + header_size, .iov_len = payload_size};
        uint32_t iov_count = 1;
        size_t packed = payload_size;
        (void) opal_convertor_pack(convertor, &iov, &iov_count, &packed);
    }
}

/* Messages wait already: this one joins the last of them, if there is room for it. */
static bool join(ofo_endpoint_t *ep, struct opal_convertor_t *convertor, const void *header, size_t header_size, size_t payload_size, uint8_t order,
                 uint32_t flags, uint8_t tag)
{
    const bool gate = ofo_post_lock(ep), takes = OFO_GATE_UP == ep->gate || OFO_GATE_WAITING == ep->gate;
    void *to = takes ? ofo_coalesce_join(ep, header_size + payload_size, tag, order, flags) : NULL;

    if (NULL != to) {
        fill(to, header, header_size, convertor, payload_size);
    }
    ofo_post_unlock(ep, gate);
    return NULL != to;
}

/* A sender that never polls must not fill memory with waiting messages. If so many fragments wait, sendi is refused, and the
 * PML uses a request that waits. */
enum { SENDI_WAITING_MAX = 128 };

int ofo_sendi(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, struct opal_convertor_t *convertor, void *header, size_t header_size,
              size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor)
{
    ofo_module_t *module = ep->module;
    ofo_frag_t *frag = NULL;
    uint32_t waiting;
    int rc;

    if (NULL != descriptor) {
        *descriptor = NULL;
    }
    waiting = __atomic_load_n(&ep->pending_count, __ATOMIC_RELAXED);
    flags |= MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    if (0 < waiting && (MCA_BTL_NO_ORDER == order || 0 == order) && join(ep, convertor, header, header_size, payload_size, order, flags, tag)) {
        ofo_count(&module->count.sendis);
        return OPAL_SUCCESS;
    }
    if (header_size + payload_size <= module->super.btl_eager_limit && SENDI_WAITING_MAX > waiting) {
        frag = ofo_frag_alloc(module, header_size + payload_size);
    }
    if (OPAL_UNLIKELY(NULL == frag)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    fill(frag->segment.seg_addr.pval, header, header_size, convertor, payload_size);
    frag->segment.seg_len = header_size + payload_size;
    frag->base.des_flags = flags;
    frag->base.des_cbfunc = NULL;
    frag->base.order = order;
    frag->is_sendi = true;
    frag->hdr->tag = tag;
    rc = submit(ep, frag);
    if (OPAL_UNLIKELY(OPAL_SUCCESS != rc)) {
        opal_free_list_return(frag->list, &frag->base.super);
        return rc;
    }
    ofo_count(&module->count.sendis);
    return OPAL_SUCCESS;
}

/* Messages that wait for this queue pair may leave in a carrier of the next one, whose buffers are larger. All peers share that queue, so
 * one peer takes few of its buffers for small messages: a carrier goes over only while at most one message is in flight there. */
static bool may_go_over(const ofo_qpset_t *qps, unsigned index)
{
    const ofo_qp_t *next = &qps->qp[index + 1];

    return index + 1 < qps->nqp && next->shared && next->sq_free + 1 >= next->sq_slots && may_post(qps, index + 1);
}

/* Posts the first message of a pending list, in a carrier if others wait after it. False: it has to wait. Locks: ep->lock held. */
static bool post_first(ofo_endpoint_t *ep, ofo_qpset_t *qps, unsigned index)
{
    unsigned queue = index;
    ofo_frag_t *frag;

    if (may_go_over(qps, index) && ofo_coalesce(ep, index + 1, index)) {
        queue = index + 1;
    } else if (may_post(qps, index)) {
        (void) ofo_coalesce(ep, index, index);
    } else {
        return false;
    }
    frag = (ofo_frag_t *) opal_list_get_first(&ep->pending[index]);
    if (OPAL_SUCCESS != post_message(qps, queue, frag)) {
        post_refused(qps);
        return false;
    }
    opal_list_remove_item(&ep->pending[index], &frag->base.super.super);
    OFO_ADD(ep->pending_count, -1);
    return true;
}

static void flush_messages(ofo_endpoint_t *ep, ofo_qpset_t *qps)
{
    for (unsigned i = 0; i < qps->nqp; ++i) {
        while (ofo_drain_is_live(&qps->drain) && !opal_list_is_empty(&ep->pending[i]) && post_first(ep, qps, i)) {
        }
    }
}

void ofo_pending_post(ofo_endpoint_t *ep, ofo_qpset_t *qps)
{
    flush_messages(ep, qps);
    while (ofo_drain_is_live(&qps->drain) && !opal_list_is_empty(&ep->pending_rdma)) {
        ofo_rdma_t *rdma = (ofo_rdma_t *) opal_list_get_first(&ep->pending_rdma);
        if (!ofo_rdma_post(rdma, qps)) {
            break;
        }
        opal_list_remove_item(&ep->pending_rdma, &rdma->super.super);
        OFO_ADD(ep->pending_count, -1);
    }
}

void ofo_pending_flush(ofo_endpoint_t *ep)
{
    if (OPAL_LIKELY(0 == __atomic_load_n(&ep->pending_count, __ATOMIC_RELAXED))) {
        return;
    }
    OPAL_THREAD_LOCK(&ep->lock);
    if (OFO_GATE_UP == ep->gate && ofo_drain_is_live(&ep->qps->drain)) {
        ofo_pending_post(ep, ep->qps);
    }
    OPAL_THREAD_UNLOCK(&ep->lock);
}

/* Locks: ep->lock held. */
static void credits_post(ofo_endpoint_t *ep, ofo_qpset_t *qps, unsigned index)
{
    ofo_qp_t *qp = &qps->qp[index];
    struct ibv_sge sge = {.addr = (uintptr_t) qp->returns_hdr, .length = sizeof(ofo_data_hdr_t), .lkey = qps->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = (uintptr_t) &qp->returns,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *wrong;

    if (ofo_drain_is_live(&qps->drain) && !qp->is_returning
        && ((!qp->shared && ofo_credits_must_return(&qp->credits)) || (0 == index && ofo_ring_must_return(qps)))) {
        *qp->returns_hdr = (ofo_data_hdr_t){.tag = OFO_TAG_RETURN};
        piggyback(qps, index, qp->returns_hdr);
        if (0 == ibv_post_send(qp->qp, &wr, &wrong)) {
            qp->is_returning = true;
            count_sent(ep->module, sge.length);
            if (!qp->shared) {
                ofo_credits_use(&qp->credits);
            }
            ++ep->module->count.credit_messages;
        } else {
            post_refused(qps);
        }
    }
}

void ofo_credits_post(ofo_endpoint_t *ep, ofo_qpset_t *qps)
{
    for (unsigned i = 0; i < qps->nqp; ++i) {
        credits_post(ep, qps, i);
    }
}

void ofo_credits_return(ofo_endpoint_t *ep, ofo_qpset_t *qps, unsigned index)
{
    OPAL_THREAD_LOCK(&ep->lock);
    if (OFO_GATE_UP == ep->gate && ep->qps == qps) {
        credits_post(ep, qps, index);
    }
    OPAL_THREAD_UNLOCK(&ep->lock);
}
