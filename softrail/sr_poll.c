/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Polling. Receive completions are taken from the ring that the peers fill, and small payloads are copied to the posted buffers.
 * Send completions are taken from this process's own ring. As on hardware, a place in a queue is free again when its completion
 * is polled. DESIGN.txt 16.
 */
#include "sr_device.h"
#include "sr_event.h"
#include "sr_flush.h"
#include "sr_mr.h"
#include "sr_pending.h"
#include "sr_poll.h"
#include "sr_qp_table.h"
#include "sr_srq.h"

#include <arpa/inet.h>
#include <sched.h>
#include <string.h>

#define SR_IDLE_POLLS 2000 /* some 20 us */

/* ---- send side ---------------------------------------------------------------------------------- */

/* Must this completion wait for older receives? A program that drains a queue pair by a marker relies on the order of the CQ: the flush
 * of the marker comes after all messages that were received before it. For successes it does not matter, because a program cannot tell
 * their order from that of receives. Locks: cq->lock held. */
static bool waits_for_older(const struct sr_cq *cq, const struct sr_local_wc *wc)
{
    return IBV_WC_SUCCESS != wc->status && 0 < (int32_t) (wc->behind - cq->consumed)
           && cq->consumed + 1 == atomic_load_explicit(&cq->ring[cq->consumed & cq->mask].seq, memory_order_acquire);
}

/* False if the completion belongs to the time before the queue pair's last RESET. Locks: cq->lock held. */
static bool local_to_wc(const struct sr_local_wc *from, struct ibv_wc *wc)
{
    struct sr_qp *qp = sr_qp_find(from->qpn);

    if (NULL == qp || from->epoch != qp->shm->epoch) {
        return false;
    }
    atomic_store_explicit(&qp->sq_retired, from->sq_position, memory_order_release);
    wc->wr_id = from->wr_id;
    wc->status = (enum ibv_wc_status) from->status;
    wc->opcode = (enum ibv_wc_opcode) from->opcode;
    wc->vendor_err = 0;
    wc->byte_len = from->byte_len;
    wc->imm_data = 0;
    wc->qp_num = from->qpn;
    wc->src_qp = 0;
    wc->wc_flags = 0;
    wc->pkey_index = 0;
    wc->slid = 0;
    wc->sl = 0;
    wc->dlid_path_bits = 0;
    return true;
}

static int poll_local(struct sr_cq *cq, int count, struct ibv_wc *wc)
{
    int n = 0;

    while (n < count && cq->local_head != atomic_load_explicit(&cq->local_tail, memory_order_acquire)) {
        const struct sr_local_wc *next = &cq->local[cq->local_head & (cq->local_room - 1)];
        if (sr_unlikely(waits_for_older(cq, next))) {
            break;
        }
        if (local_to_wc(next, &wc[n])) {
            ++n;
        }
        cq->local_head++;
    }
    return n;
}

/* ---- receive side ------------------------------------------------------------------------------- */

/* Makes the header that a datagram has in the first 40 bytes of its buffer. */
static void make_grh(const struct sr_qp *qp, const struct sr_cqe *cqe, struct ibv_grh *grh)
{
    memset(grh, 0, sizeof(*grh));
    grh->version_tclass_flow = htonl(6u << 28);
    grh->paylen = htons((uint16_t) (cqe->byte_len - SR_GRH_BYTES));
    grh->next_hdr = 0x1b;
    grh->hop_limit = 0xff;
    sr_gid(qp->rail, cqe->slid - 1u, &grh->sgid);
    sr_gid(qp->rail, sr.slot, &grh->dgid);
}

/* Copies to the posted buffers, from offset `skip` on. False if a region was deregistered meanwhile. */
static bool scatter(const struct sr_qp *qp, const struct sr_wqe_shm *wqe, uint32_t skip, const char *from, uint32_t length)
{
    for (uint32_t i = 0; i < wqe->num_sge && 0 < length; ++i) {
        uint32_t size = wqe->sge[i].length, begin = skip < size ? skip : size;
        uint32_t part = size - begin < length ? size - begin : length;
        uint64_t where;
        skip -= begin;
        if (0 == part) {
            continue;
        }
        if (!sr_mr_resolve(sr.self, qp->rq->shm->pd, wqe->sge[i].lkey, wqe->sge[i].addr + begin, part, IBV_ACCESS_LOCAL_WRITE, &where)) {
            return false;
        }
        memcpy((void *) (uintptr_t) where, from, part);
        from += part;
        length -= part;
    }
    return true;
}

static bool place(struct sr_qp *qp, const struct sr_wqe_shm *wqe, const struct sr_cqe *cqe)
{
    bool ud = IBV_QPT_UD == qp->init.qp_type, ok = true;
    uint32_t skip = ud ? SR_GRH_BYTES : 0, length = cqe->byte_len - skip;

    if (IBV_WC_SUCCESS != cqe->status) {
        return true;
    }
    if (ud && 0 != (cqe->wc_flags & IBV_WC_GRH)) {
        struct ibv_grh grh;
        make_grh(qp, cqe, &grh);
        ok = scatter(qp, wqe, 0, (const char *) &grh, sizeof(grh));
    }
    if (SR_CQE_INLINE_DATA == cqe->where && SR_CQE_INLINE >= length) {
        ok = scatter(qp, wqe, skip, (const char *) cqe->data, length) && ok;
    } else if (SR_CQE_RING_DATA == cqe->where && SR_PAYLOAD_RING >= length) {
        const char *ring = sr_at(qp->shm->payload);
        uint32_t at = cqe->pay_start & (SR_PAYLOAD_RING - 1);
        ok = SR_PAYLOAD_RING - at >= length && scatter(qp, wqe, skip, ring + at, length) && ok;
    }
    return ok;
}

static void drop(const struct sr_cqe *cqe)
{
    struct sr_srq *srq = 0 == cqe->srq ? NULL : sr_handle_get(cqe->srq);

    if (NULL != srq) {
        sr_rq_release(&srq->rq, cqe->wqe);
    }
}

/* False if the completion belongs to the time before the queue pair's last RESET. Locks: cq->lock held. */
static bool ring_to_wc(const struct sr_cqe *cqe, struct ibv_wc *wc)
{
    struct sr_qp *qp = sr_qp_find(cqe->qpn);
    const struct sr_wqe_shm *wqe;

    if (sr_unlikely(NULL == qp || cqe->epoch != qp->shm->epoch || NULL == qp->rq)) {
        drop(cqe);
        return false;
    }
    wqe = sr_rq_wqe(qp->rq, cqe->wqe);
    wc->wr_id = wqe->wr_id;
    wc->status = (enum ibv_wc_status) cqe->status;
    wc->opcode = (enum ibv_wc_opcode)(IBV_WC_RECV + cqe->opcode);
    wc->vendor_err = 0;
    wc->byte_len = cqe->byte_len;
    wc->imm_data = cqe->imm;
    wc->qp_num = cqe->qpn;
    wc->src_qp = cqe->src_qp;
    wc->wc_flags = cqe->wc_flags;
    wc->pkey_index = 0;
    wc->slid = (uint16_t) (cqe->slid + sr_lid_shift(qp->rail));
    wc->sl = 0;
    wc->dlid_path_bits = 0;
    if (sr_unlikely(!place(qp, wqe, cqe))) {
        wc->status = IBV_WC_LOC_PROT_ERR;
    }
    if (SR_CQE_RING_DATA == cqe->where) {
        atomic_store_explicit(&qp->shm->pay_consumed, cqe->pay_end, memory_order_release);
    }
    sr_rq_release(qp->rq, cqe->wqe);
    return true;
}

static int poll_ring(struct sr_cq *cq, int count, struct ibv_wc *wc)
{
    uint32_t first = cq->consumed;
    int n = 0;

    while (n < count) {
        struct sr_cqe *cqe = &cq->ring[cq->consumed & cq->mask];
        if (cq->consumed + 1 != atomic_load_explicit(&cqe->seq, memory_order_acquire)) {
            break;
        }
        if (ring_to_wc(cqe, &wc[n])) {
            ++n;
        }
        cq->consumed++;
    }
    if (first != cq->consumed) {
        atomic_store_explicit(&cq->shm->consumed, cq->consumed, memory_order_release);
    }
    return n;
}

/* ---- polling ------------------------------------------------------------------------------------ */

/* Fails a queue pair of this CQ that a peer put into the error state, and flushes receives that wait for it. */
static void look_after(struct sr_qp *qp, void *arg)
{
    struct sr_cq *cq = arg;

    if (cq != qp->recv_cq && cq != qp->send_cq) {
        return;
    }
    if (IBV_QPS_ERR == atomic_load(&qp->shm->state) && !qp->in_error) {
        pthread_mutex_lock(&qp->sq_lock);
        sr_qp_fail(qp);
        pthread_mutex_unlock(&qp->sq_lock);
    }
    if (qp->flush_receives) {
        sr_qp_flush_receives(qp);
    }
}

int sr_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
    struct sr_cq *cq = sr_cq(ibv);
    uint32_t kick = atomic_load_explicit(&cq->shm->kick, memory_order_relaxed);
    uint32_t idle;
    int n;

    if (sr_unlikely(0 != atomic_load_explicit(&sr_pending_count, memory_order_relaxed))) {
        sr_pending_progress();
    }
    if (sr_unlikely(kick != cq->kick_seen)) {
        cq->kick_seen = kick;
        sr_qp_each(look_after, cq);
    }
    if (sr_unlikely(__atomic_load_n(&cq->is_dead, __ATOMIC_RELAXED))) {
        return 0;
    }
    pthread_mutex_lock(&cq->lock);
    if (cq->local_first) {
        n = poll_local(cq, count, wc);
        n += poll_ring(cq, count - n, wc + n);
    } else {
        n = poll_ring(cq, count, wc);
        n += poll_local(cq, count - n, wc + n);
    }
    cq->local_first = !cq->local_first;
    idle = 0 == n ? ++cq->idle : (cq->idle = 0);
    pthread_mutex_unlock(&cq->lock);
    if (sr_unlikely(SR_IDLE_POLLS < idle) && 0 == idle % 64) {
        sched_yield(); /* the peer may wait for this core */
    }
    return n;
}
