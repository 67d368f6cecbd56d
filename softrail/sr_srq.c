/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Receive queues: entries in the arena, which a process that delivers reads and consumes. A queue of one queue pair is
 * consumed in ring order. Entries of a shared queue come back in any order, so a list says which entry comes next.
 * DESIGN.txt 16.
 */
#include "bfo_assert.h"
#include "sr_device.h"
#include "sr_event.h"
#include "sr_srq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t order_bytes(const struct sr_rq *rq)
{
    return ((size_t) rq->mask + 1) * sizeof(uint32_t);
}

int sr_rq_init(struct sr_rq *rq, uint32_t max_wr, uint32_t max_sge, uint32_t pd, bool shared)
{
    struct sr_rq_shm *shm;
    uint64_t wqes, order = 0;
    uint32_t n = 1;

    while (n < max_wr) {
        n *= 2;
    }
    BFO_ASSERT(n >= max_wr && 0 == (n & (n - 1)));
    memset(rq, 0, sizeof(*rq));
    rq->mask = n - 1;
    rq->max_wr = max_wr;
    rq->max_sge = max_sge;
    rq->stride = (uint32_t) (sizeof(struct sr_wqe_shm) + 16 * (0 == max_sge ? 1 : max_sge));
    rq->offset = sr_stable_alloc(SR_STABLE_RQ);
    wqes = sr_arena_alloc((size_t) n * rq->stride);
    if (shared) {
        order = sr_arena_alloc(order_bytes(rq));
        rq->free_list = calloc(n, sizeof(*rq->free_list));
    }
    if (0 == rq->offset || 0 == wqes || (shared && (0 == order || NULL == rq->free_list))) {
        sr_stable_free(SR_STABLE_RQ, rq->offset);
        sr_arena_free(wqes, (size_t) n * rq->stride);
        sr_arena_free(order, order_bytes(rq));
        free(rq->free_list);
        return ENOMEM;
    }
    for (uint32_t i = 0; shared && i < n; ++i) {
        rq->free_list[i] = n - 1 - i;
    }
    rq->free_count = max_wr;
    rq->wqes = sr_at(wqes);
    rq->order = shared ? sr_at(order) : NULL;
    rq->shm = shm = sr_at(rq->offset);
    atomic_store(&shm->head, 0);
    atomic_store(&shm->tail, 0);
    atomic_store(&shm->limit, 0);
    atomic_store(&shm->is_dead, 0);
    BFO_ASSERT(shared == (NULL != rq->order) && rq->free_count <= rq->mask + 1);
    shm->wqes = wqes;
    shm->order = order;
    shm->mask = rq->mask;
    shm->stride = rq->stride;
    shm->pd = pd;
    pthread_mutex_init(&rq->lock, NULL);
    return 0;
}

void sr_rq_fini(struct sr_rq *rq)
{
    sr_arena_free(rq->shm->wqes, (size_t) (rq->mask + 1) * rq->stride);
    sr_arena_free(rq->shm->order, order_bytes(rq));
    sr_stable_free(SR_STABLE_RQ, rq->offset);
    free(rq->free_list);
}

static void fill_wqe(struct sr_wqe_shm *wqe, const struct ibv_recv_wr *wr)
{
    uint64_t length = 0;

    wqe->wr_id = wr->wr_id;
    wqe->num_sge = (uint32_t) wr->num_sge;
    for (int i = 0; i < wr->num_sge; ++i) {
        wqe->sge[i].addr = wr->sg_list[i].addr;
        wqe->sge[i].length = wr->sg_list[i].length;
        wqe->sge[i].lkey = wr->sg_list[i].lkey;
        length += wr->sg_list[i].length;
    }
    wqe->length = length > SR_MAX_MSG ? SR_MAX_MSG : (uint32_t) length;
    atomic_store_explicit(&wqe->taker, 0, memory_order_relaxed);
}

/* Takes back entries whose consumer died before its message was complete. Locks: rq->lock held. */
static void reclaim(struct sr_rq *rq)
{
    for (uint32_t i = 0; i <= rq->mask; ++i) {
        uint32_t taker = atomic_load(&sr_rq_wqe(rq, i)->taker);
        if (0 != taker && sr.word != taker && !sr_fabric_word_is_alive(&sr.fabric, taker)
            && atomic_compare_exchange_strong(&sr_rq_wqe(rq, i)->taker, &taker, 0)) {
            rq->free_list[rq->free_count++] = i;
        }
    }
}

int sr_rq_post(struct sr_rq *rq, struct ibv_recv_wr *wr)
{
    struct sr_rq_shm *shm = rq->shm;
    uint32_t head, index;

    if (0 > wr->num_sge || rq->max_sge < (uint32_t) wr->num_sge) {
        return EINVAL;
    }
    head = atomic_load_explicit(&shm->head, memory_order_relaxed);
    if (NULL != rq->order) {
        if (0 == rq->free_count) {
            reclaim(rq);
        }
        if (0 == rq->free_count) {
            return ENOMEM;
        }
        index = rq->free_list[--rq->free_count];
        BFO_ASSERT(index <= rq->mask);
        rq->order[head & rq->mask] = index;
    } else {
        if (head - __atomic_load_n(&rq->polled, __ATOMIC_ACQUIRE) >= rq->max_wr) {
            return ENOMEM;
        }
        index = head;
    }
    fill_wqe(sr_rq_wqe(rq, index), wr);
    atomic_store_explicit(&shm->head, head + 1, memory_order_release);
    return 0;
}

void sr_rq_release(struct sr_rq *rq, uint32_t index)
{
    if (NULL == rq->order) {
        __atomic_store_n(&rq->polled, index + 1, __ATOMIC_RELEASE);
        return;
    }
    pthread_mutex_lock(&rq->lock);
    if (rq->free_count < rq->max_wr) {
        rq->free_list[rq->free_count++] = index & rq->mask;
    }
    pthread_mutex_unlock(&rq->lock);
}

/* ---- the verbs object --------------------------------------------------------------------------- */

struct ibv_srq *sr_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    struct sr_srq *srq;
    int rc = NULL != getenv(SR_ENV_NO_SRQ) ? EOPNOTSUPP : sr_device_check(pd->context);

    if (0 == rc && (0 == init->attr.max_wr || SR_MAX_WR < init->attr.max_wr || SR_MAX_SGE < init->attr.max_sge)) {
        rc = EINVAL;
    }
    srq = 0 == rc ? calloc(1, sizeof(*srq)) : NULL;
    if (0 == rc) {
        rc = NULL == srq ? ENOMEM : sr_rq_init(&srq->rq, init->attr.max_wr, init->attr.max_sge, sr_pd(pd)->id, true);
    }
    if (0 == rc && 0 == (srq->id = sr_handle_add(srq))) {
        sr_rq_fini(&srq->rq);
        rc = ENOMEM;
    }
    if (0 != rc) {
        free(srq);
        errno = rc;
        return NULL;
    }
    srq->rq.shm->id = srq->id;
    srq->rq.shm->fifo = sr_context(pd->context)->fifo;
    sr_acks_init(&srq->acks);
    srq->ibv.context = pd->context;
    srq->ibv.srq_context = init->srq_context;
    srq->ibv.pd = pd;
    srq->ibv.handle = srq->id;
    pthread_mutex_init(&srq->ibv.mutex, NULL);
    pthread_cond_init(&srq->ibv.cond, NULL);
    atomic_fetch_add(&sr_pd(pd)->uses, 1);
    return &srq->ibv;
}

int sr_srq_destroy(struct ibv_srq *ibv)
{
    struct sr_srq *srq = sr_srq(ibv);

    if (0 != atomic_load(&srq->uses)) {
        return EBUSY;
    }
    sr_handle_remove(srq->id);
    sr_acks_wait(&srq->acks);
    sr_rq_fini(&srq->rq);
    atomic_fetch_sub(&sr_pd(ibv->pd)->uses, 1);
    free(srq);
    return 0;
}

int sr_srq_modify(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
    struct sr_srq *srq = sr_srq(ibv);
    int rc = sr_device_check(ibv->context);

    if (0 != rc) {
        return rc;
    }
    if (0 != (mask & IBV_SRQ_MAX_WR)) {
        return EOPNOTSUPP; /* IBV_DEVICE_SRQ_RESIZE is not among the capabilities */
    }
    if (0 != (mask & IBV_SRQ_LIMIT)) {
        if (attr->srq_limit > srq->rq.max_wr) {
            return EINVAL;
        }
        atomic_store(&srq->rq.shm->limit, attr->srq_limit);
    }
    return 0;
}

int sr_srq_query(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
    struct sr_srq *srq = sr_srq(ibv);

    attr->max_wr = srq->rq.max_wr;
    attr->max_sge = srq->rq.max_sge;
    attr->srq_limit = atomic_load(&srq->rq.shm->limit);
    return 0;
}

int sr_srq_post(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct sr_srq *srq = sr_srq(ibv);
    int rc = 0;

    pthread_mutex_lock(&srq->rq.lock);
    for (; NULL != wr; wr = wr->next) {
        rc = sr_rq_post(&srq->rq, wr);
        if (0 != rc) {
            *bad = wr;
            break;
        }
    }
    pthread_mutex_unlock(&srq->rq.lock);
    return rc;
}
