/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The responder does what the target's HCA would do with a message. It runs in the initiator, under the lock of the
 * target's queue pair. It checks state, keys and access, consumes a receive, places the payload and adds the completion.
 * It checks every offset and length of the peer before it uses it. DESIGN.txt 16.
 */
#include "sr_copy.h"
#include "sr_cq.h"
#include "sr_device.h"
#include "sr_event.h"
#include "sr_mr.h"
#include "sr_opcode.h"
#include "sr_responder.h"

#include <errno.h>
#include <string.h>

struct target {
    struct sr_peer *peer;
    struct sr_qp_shm *qp;
};

/* A receive that is about to be consumed. */
struct receive {
    struct sr_rq_shm *rq;
    struct sr_wqe_shm *wqe;
    uint32_t index;    /* of the entry */
    uint32_t position; /* in the order of consumption */
};

/* ---- admission ---------------------------------------------------------------------------------- */

/* Two members of a partition can talk unless both are limited members (highest bit not set). */
static bool shares_partition(uint32_t a, uint32_t b)
{
    return (a & 0x7fff) == (b & 0x7fff) && 0 != ((a | b) & 0x8000);
}

/* Would the target's HCA accept this message at all? */
static bool is_for(const struct sr_qp_shm *remote, const struct sr_qp *qp, const struct sr_wqe *wqe)
{
    uint32_t state = atomic_load_explicit(&remote->state, memory_order_relaxed);

    if (qp->init.qp_type != remote->type || qp->rail != remote->rail || !shares_partition(qp->shm->pkey, remote->pkey)
        || (IBV_QPS_RTR != state && IBV_QPS_RTS != state && IBV_QPS_SQD != state && IBV_QPS_SQE != state)) {
        return false;
    }
    if (IBV_QPT_UD == remote->type) {
        uint32_t qkey = 0 != (wqe->remote_qkey & 0x80000000u) ? qp->attr.qkey : wqe->remote_qkey;
        return wqe->remote_qpn == atomic_load_explicit(&remote->qpn, memory_order_relaxed) && qkey == remote->qkey;
    }
    return qp->attr.dest_qp_num == atomic_load_explicit(&remote->qpn, memory_order_relaxed) && remote->dest_qpn == qp->ibv.qp_num;
}

/* ---- receives ----------------------------------------------------------------------------------- */

static bool rq_is_sane(const struct target *t, const struct sr_rq_shm *rq)
{
    return NULL != sr_peer_at(t->peer, rq->wqes, ((size_t) rq->mask + 1) * rq->stride) && rq->stride >= sizeof(struct sr_wqe_shm)
           && (0 == rq->order || NULL != sr_peer_at(t->peer, rq->order, ((size_t) rq->mask + 1) * 4));
}

/* Finds the next receive; takes it off the queue if that is a shared one. Returns an answer. */
static int receive_take(const struct target *t, struct receive *r)
{
    struct sr_rq_shm *rq = sr_peer_at(t->peer, t->qp->rq, sizeof(*rq));
    int answer = SR_ANSWER_OK;

    if (sr_unlikely(NULL == rq || !rq_is_sane(t, rq))) {
        return SR_ANSWER_LOST;
    }
    r->rq = rq;
    if (t->qp->has_srq) {
        sr_lock(&rq->lock);
    }
    r->position = r->index = atomic_load_explicit(&rq->tail, memory_order_relaxed);
    if (r->position == atomic_load_explicit(&rq->head, memory_order_acquire)
        || sr_unlikely(0 != atomic_load_explicit(&rq->is_dead, memory_order_relaxed))) {
        answer = SR_ANSWER_RNR;
    } else {
        if (0 != rq->order) {
            r->index = ((uint32_t *) (t->peer->base + rq->order))[r->position & rq->mask];
        }
        r->wqe = (struct sr_wqe_shm *) (t->peer->base + rq->wqes + (size_t) (r->index & rq->mask) * rq->stride);
        if (t->qp->has_srq) {
            atomic_store(&r->wqe->taker, sr.word);
            atomic_store(&rq->tail, r->position + 1);
        }
    }
    if (t->qp->has_srq) {
        sr_unlock(&rq->lock);
    }
    return answer;
}

/* The message failed after all. Puts the entry back at the front of a shared queue. */
static void receive_return(const struct target *t, struct receive *r)
{
    struct sr_rq_shm *rq = r->rq;
    uint32_t tail;

    if (t->qp->has_srq) {
        sr_lock(&rq->lock);
        tail = atomic_load(&rq->tail) - 1;
        ((uint32_t *) (t->peer->base + rq->order))[tail & rq->mask] = r->index;
        atomic_store(&r->wqe->taker, 0);
        atomic_store(&rq->tail, tail);
        sr_unlock(&rq->lock);
    }
}

/* The completion has been added. The entry belongs to the owner again when that completion is polled. */
static void receive_done(const struct target *t, struct receive *r)
{
    struct sr_rq_shm *rq = r->rq;
    uint32_t limit;

    if (!t->qp->has_srq) {
        atomic_store_explicit(&rq->tail, r->position + 1, memory_order_release);
        __builtin_prefetch((char *) r->wqe + rq->stride);
        return;
    }
    atomic_store(&r->wqe->taker, 0);
    limit = atomic_load(&rq->limit);
    if (sr_unlikely(0 != limit) && atomic_load(&rq->head) - atomic_load(&rq->tail) < limit && atomic_compare_exchange_strong(&rq->limit, &limit, 0)) {
        sr_event_send(t->peer, rq->fifo, IBV_EVENT_SRQ_LIMIT_REACHED, rq->id);
    }
}

/* ---- placing the payload ------------------------------------------------------------------------ */

static void gather(char *to, const struct sr_wqe *wqe)
{
    for (uint32_t i = 0; i < wqe->num_sge; ++i) {
        memcpy(to, wqe->iov[i].iov_base, wqe->iov[i].iov_len);
        to += wqe->iov[i].iov_len;
    }
}

/* Lists `length` bytes of the posted receive's memory, from offset `skip` on. Returns the number of elements, or -1 if
 * a key does not fit. */
static int scatter_list(const struct target *t, const struct receive *r, uint32_t skip, uint32_t length, struct iovec iov[SR_MAX_SGE])
{
    int count = 0;

    for (uint32_t i = 0; i < r->wqe->num_sge && i < SR_MAX_SGE && 0 < length; ++i) {
        uint32_t size = r->wqe->sge[i].length;
        uint32_t begin = skip < size ? skip : size;
        uint32_t part = size - begin < length ? size - begin : length;
        uint64_t where;
        skip -= begin;
        if (0 == part) {
            continue;
        }
        if (!sr_mr_resolve(t->peer, r->rq->pd, r->wqe->sge[i].lkey, r->wqe->sge[i].addr + begin, part, IBV_ACCESS_LOCAL_WRITE, &where)) {
            return -1;
        }
        iov[count++] = (struct iovec){.iov_base = (void *) (uintptr_t) where, .iov_len = part};
        length -= part;
    }
    return count;
}

/* Is there room for a contiguous payload in the ring of the target? Sets the positions. */
static bool ring_room(struct sr_qp_shm *remote, uint32_t length, uint32_t *start, uint32_t *end)
{
    uint32_t at = atomic_load_explicit(&remote->pay_produced, memory_order_relaxed);
    uint32_t need = (length + 63) & ~63u, offset = at & (SR_PAYLOAD_RING - 1);

    if (offset + need > SR_PAYLOAD_RING) {
        at += SR_PAYLOAD_RING - offset;
    }
    if (at + need - remote->pay_seen > SR_PAYLOAD_RING) {
        remote->pay_seen = atomic_load_explicit(&remote->pay_consumed, memory_order_acquire);
        if (at + need - remote->pay_seen > SR_PAYLOAD_RING) {
            return false;
        }
    }
    *start = at;
    *end = at + need;
    return true;
}

/* Places the payload. Returns an answer; with SR_ANSWER_OK, cqe says where the payload is. */
static int place(const struct target *t, const struct receive *r, struct sr_wqe *wqe, uint32_t skip, struct sr_cqe *cqe)
{
    struct iovec iov[SR_MAX_SGE];
    int count = scatter_list(t, r, skip, wqe->length, iov), rc;
    char *ring;

    if (0 > count) {
        return IBV_WC_REM_OP_ERR;
    }
    if (0 == wqe->length) {
        cqe->where = SR_CQE_EMPTY;
    } else if (wqe->length <= SR_CQE_INLINE) {
        cqe->where = SR_CQE_INLINE_DATA;
        gather((char *) cqe->data, wqe);
    } else if (wqe->length <= sr.fabric.shm->copy_max && NULL != (ring = sr_peer_at(t->peer, t->qp->payload, SR_PAYLOAD_RING))
               && ring_room(t->qp, wqe->length, &cqe->pay_start, &cqe->pay_end)) {
        cqe->where = SR_CQE_RING_DATA;
        gather(ring + (cqe->pay_start & (SR_PAYLOAD_RING - 1)), wqe);
    } else {
        cqe->where = SR_CQE_PLACED;
        rc = sr_copy_to(t->peer, wqe->iov, wqe->num_sge, iov, (unsigned) count);
        if (0 != rc) {
            return ESRCH == rc ? SR_ANSWER_LOST : sr_copy_is_local_fault(wqe->iov, wqe->num_sge) ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR;
        }
    }
    return SR_ANSWER_OK;
}

/* ---- errors on the target's side ---------------------------------------------------------------- */

static void kick(const struct target *t, uint64_t offset)
{
    struct sr_cq_shm *cq = sr_peer_at(t->peer, offset, sizeof(*cq));

    if (NULL != cq) {
        atomic_fetch_add(&cq->kick, 1);
        sr_cq_wake(t->peer, cq, true);
    }
}

/* Puts the target's queue pair into the error state; its owner flushes when it polls next. */
static void target_fails(const struct target *t, uint32_t event)
{
    atomic_store(&t->qp->state, IBV_QPS_ERR);
    kick(t, t->qp->recv_cq);
    if (t->qp->send_cq != t->qp->recv_cq) {
        kick(t, t->qp->send_cq);
    }
    if (0 != event) {
        sr_event_send(t->peer, t->qp->event_fifo, event, t->qp->id);
    }
}

static uint32_t srq_id(const struct target *t, const struct receive *r)
{
    return t->qp->has_srq ? r->rq->id : 0;
}

/* Ends the receive with an error completion for its owner. */
static void receive_fails(const struct target *t, struct receive *r, enum ibv_wc_status status)
{
    struct sr_cqe cqe = {
        .qpn = t->qp->qpn, .wqe = r->index, .epoch = t->qp->epoch, .status = (uint8_t) status, .where = SR_CQE_EMPTY, .srq = srq_id(t, r)};

    if (sr_cq_push(t->peer, t->qp->recv_cq, &cqe, true)) {
        receive_done(t, r);
    }
    target_fails(t, 0);
}

/* ---- the kinds of message ----------------------------------------------------------------------- */

static void describe(const struct target *t, const struct receive *r, const struct sr_qp *qp, const struct sr_wqe *wqe, uint8_t traits,
                     struct sr_cqe *cqe)
{
    cqe->qpn = t->qp->qpn;
    cqe->epoch = t->qp->epoch;
    cqe->wqe = r->index;
    cqe->srq = srq_id(t, r);
    cqe->byte_len = wqe->length;
    cqe->src_qp = qp->ibv.qp_num;
    cqe->slid = sr_lid(sr.slot);
    cqe->status = IBV_WC_SUCCESS;
    cqe->opcode = 0;
    cqe->wc_flags = 0;
    if (0 != (traits & SR_OP_IMM)) {
        cqe->wc_flags |= IBV_WC_WITH_IMM;
        cqe->imm = wqe->imm;
    }
    if (IBV_QPT_UD == qp->init.qp_type) {
        cqe->byte_len += SR_GRH_BYTES;
        if (wqe->address.is_global) {
            cqe->wc_flags |= IBV_WC_GRH;
        }
    }
}

static void count_received(struct sr_qp_shm *remote, uint32_t length)
{
    sr_count(&remote->rx_messages, 1);
    sr_count(&remote->rx_bytes, length);
}

static int respond_send(const struct target *t, struct sr_qp *qp, struct sr_wqe *wqe, uint8_t traits)
{
    uint32_t skip = IBV_QPT_UD == qp->init.qp_type ? SR_GRH_BYTES : 0;
    struct sr_cqe cqe;
    struct receive r;
    int answer = receive_take(t, &r);

    if (SR_ANSWER_OK != answer) {
        return answer;
    }
    if ((uint64_t) wqe->length + skip > r.wqe->length) {
        receive_fails(t, &r, IBV_WC_LOC_LEN_ERR);
        return IBV_WC_REM_INV_REQ_ERR;
    }
    answer = place(t, &r, wqe, skip, &cqe);
    if (IBV_WC_REM_OP_ERR == answer) {
        receive_fails(t, &r, IBV_WC_LOC_PROT_ERR);
        return answer;
    }
    if (SR_ANSWER_OK == answer) {
        describe(t, &r, qp, wqe, traits, &cqe);
        if (sr_cq_push(t->peer, t->qp->recv_cq, &cqe, 0 != (wqe->flags & IBV_SEND_SOLICITED))) {
            if (SR_CQE_RING_DATA == cqe.where) {
                atomic_store_explicit(&t->qp->pay_produced, cqe.pay_end, memory_order_relaxed);
            }
            count_received(t->qp, wqe->length);
            receive_done(t, &r);
            return SR_ANSWER_OK;
        }
        answer = SR_ANSWER_BUSY;
    }
    receive_return(t, &r);
    return answer;
}

static int access_error(const struct target *t)
{
    target_fails(t, IBV_EVENT_QP_ACCESS_ERR);
    return IBV_WC_REM_ACCESS_ERR;
}

static int write_memory(const struct target *t, struct sr_wqe *wqe)
{
    struct iovec remote;
    uint64_t where;
    int rc;

    if (0 == wqe->length) {
        return SR_ANSWER_OK;
    }
    if (0 == (t->qp->access & IBV_ACCESS_REMOTE_WRITE)
        || !sr_mr_resolve(t->peer, t->qp->pd, wqe->rkey, wqe->remote_addr, wqe->length, IBV_ACCESS_REMOTE_WRITE, &where)) {
        return access_error(t);
    }
    remote = (struct iovec){.iov_base = (void *) (uintptr_t) where, .iov_len = wqe->length};
    rc = sr_copy_to(t->peer, wqe->iov, wqe->num_sge, &remote, 1);
    if (ESRCH == rc) {
        return SR_ANSWER_LOST;
    }
    if (0 != rc) {
        return sr_copy_is_local_fault(wqe->iov, wqe->num_sge) ? (int) IBV_WC_LOC_PROT_ERR : access_error(t);
    }
    return SR_ANSWER_OK;
}

static int respond_write(const struct target *t, struct sr_qp *qp, struct sr_wqe *wqe, uint8_t traits)
{
    struct sr_cqe cqe;
    struct receive r;
    bool receives = 0 != (traits & SR_OP_RECEIVE);
    int answer = receives ? receive_take(t, &r) : SR_ANSWER_OK;

    if (SR_ANSWER_OK != answer) {
        return answer;
    }
    answer = write_memory(t, wqe);
    if (SR_ANSWER_OK == answer && receives) {
        cqe.where = SR_CQE_EMPTY;
        describe(t, &r, qp, wqe, traits, &cqe);
        cqe.opcode = 1;
        answer = sr_cq_push(t->peer, t->qp->recv_cq, &cqe, 0 != (wqe->flags & IBV_SEND_SOLICITED)) ? SR_ANSWER_OK : SR_ANSWER_BUSY;
    }
    if (SR_ANSWER_OK == answer) {
        count_received(t->qp, wqe->length);
        if (receives) {
            receive_done(t, &r);
        }
    } else if (receives) {
        receive_return(t, &r);
    }
    return answer;
}

static int respond_read(const struct target *t, struct sr_wqe *wqe)
{
    struct iovec remote;
    uint64_t where = 0;
    int rc;

    if (0 == t->qp->max_dest_rd_atomic) {
        target_fails(t, IBV_EVENT_QP_REQ_ERR);
        return IBV_WC_REM_INV_REQ_ERR;
    }
    if (0 != wqe->length
        && (0 == (t->qp->access & IBV_ACCESS_REMOTE_READ)
            || !sr_mr_resolve(t->peer, t->qp->pd, wqe->rkey, wqe->remote_addr, wqe->length, IBV_ACCESS_REMOTE_READ, &where))) {
        return access_error(t);
    }
    remote = (struct iovec){.iov_base = (void *) (uintptr_t) where, .iov_len = wqe->length};
    rc = sr_copy_from(t->peer, wqe->iov, wqe->num_sge, &remote, 1);
    if (ESRCH == rc) {
        return SR_ANSWER_LOST;
    }
    if (0 != rc) {
        return sr_copy_is_local_fault(wqe->iov, wqe->num_sge) ? (int) IBV_WC_LOC_PROT_ERR : access_error(t);
    }
    count_received(t->qp, wqe->length); /* at the wrong end of the rail, as the requester counts them as sent; the rail's sums are right */
    return SR_ANSWER_OK;
}

static int respond_atomic(const struct target *t, struct sr_wqe *wqe)
{
    struct sr_arena_head *head = (struct sr_arena_head *) t->peer->base;
    uint64_t where, before, after;
    struct iovec local = {.iov_base = &before, .iov_len = 8}, remote;
    int rc;

    if (0 == t->qp->max_dest_rd_atomic || 0 != wqe->remote_addr % 8) {
        target_fails(t, IBV_EVENT_QP_REQ_ERR);
        return IBV_WC_REM_INV_REQ_ERR;
    }
    if (0 == (t->qp->access & IBV_ACCESS_REMOTE_ATOMIC)
        || !sr_mr_resolve(t->peer, t->qp->pd, wqe->rkey, wqe->remote_addr, 8, IBV_ACCESS_REMOTE_ATOMIC, &where)) {
        return access_error(t);
    }
    remote = (struct iovec){.iov_base = (void *) (uintptr_t) where, .iov_len = 8};
    sr_lock(&head->atomics);
    rc = sr_copy_from(t->peer, &local, 1, &remote, 1);
    if (0 == rc) {
        bool swap = IBV_WR_ATOMIC_CMP_AND_SWP == wqe->opcode;
        after = swap ? wqe->swap : before + wqe->compare_add;
        local.iov_base = &after;
        if (!swap || before == wqe->compare_add) {
            rc = sr_copy_to(t->peer, &local, 1, &remote, 1);
        }
    }
    sr_unlock(&head->atomics);
    if (0 != rc) {
        return ESRCH == rc ? SR_ANSWER_LOST : access_error(t);
    }
    for (uint32_t i = 0, at = 0; i < wqe->num_sge && at < 8; at += (uint32_t) wqe->iov[i++].iov_len) {
        memcpy(wqe->iov[i].iov_base, (char *) &before + at, wqe->iov[i].iov_len);
    }
    count_received(t->qp, 8);
    return SR_ANSWER_OK;
}

void sr_respond_break(struct sr_peer *peer, struct sr_qp_shm *remote, const struct sr_qp *qp, const struct sr_wqe *wqe)
{
    const struct target t = {.peer = peer, .qp = remote};

    sr_lock(&remote->lock);
    if (is_for(remote, qp, wqe)) {
        target_fails(&t, IBV_EVENT_QP_FATAL);
    }
    sr_unlock(&remote->lock);
}

int sr_respond(struct sr_peer *peer, struct sr_qp_shm *remote, struct sr_qp *qp, struct sr_wqe *wqe)
{
    const struct target t = {.peer = peer, .qp = remote};
    uint8_t traits = sr_opcode(wqe->opcode)->traits;
    int answer = SR_ANSWER_LOST;

    sr_lock(&remote->lock);
    if (is_for(remote, qp, wqe)) {
        if (0 != (traits & SR_OP_SEND)) {
            answer = respond_send(&t, qp, wqe, traits);
        } else if (0 != (traits & SR_OP_WRITE)) {
            answer = respond_write(&t, qp, wqe, traits);
        } else if (0 != (traits & SR_OP_READ)) {
            answer = respond_read(&t, wqe);
        } else {
            answer = respond_atomic(&t, wqe);
        }
    }
    sr_unlock(&remote->lock);
    return answer;
}
