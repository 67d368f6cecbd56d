/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Memory that work requests name, queues of receives, and shared receive queues. DESIGN.txt section 18.
 */
#include "fabric_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------------------- */

typedef struct {
    const fabric_qp_t *qp;
    uint32_t offset; /* still to skip */
    uint32_t length; /* still to copy */
    unsigned access;
} walk_t;

/* The next piece of an entry of a list: sets *at; returns its length, 0 if there is none in the entry, or -1 if the key forbids it. */
static int64_t piece(walk_t *walk, const struct ibv_sge *sge, uint64_t *at)
{
    uint32_t length;

    if (walk->offset >= sge->length) {
        walk->offset -= sge->length;
        return 0;
    }
    length = sge->length - walk->offset;
    length = length < walk->length ? length : walk->length;
    *at = sge->addr + walk->offset;
    if (!fabric_covers(walk->qp->object.context, walk->qp->ibv.pd, sge->lkey, *at, length, walk->access)) {
        return -1;
    }
    walk->offset = 0;
    walk->length -= length;
    return length;
}

bool fabric_gather(const fabric_qp_t *qp, const fabric_send_t *send, uint32_t offset, uint8_t *to, uint32_t length)
{
    walk_t walk = {.qp = qp, .offset = offset, .length = length};

    if (NULL != send->inline_data) {
        memcpy(to, send->inline_data + offset, length);
        return true;
    }
    for (uint32_t i = 0; i < send->sge_count && 0 < walk.length; ++i) {
        uint64_t at = 0;
        int64_t n = piece(&walk, &send->sge[i], &at);
        if (0 > n) {
            return false;
        }
        if (0 < n) {
            memcpy(to, (const void *) (uintptr_t) at, (size_t) n);
            to += n;
        }
    }
    return true;
}

bool fabric_scatter(const fabric_qp_t *qp, const struct ibv_sge *sge, uint32_t count, uint32_t offset, const uint8_t *from, uint32_t length)
{
    walk_t walk = {.qp = qp, .offset = offset, .length = length, .access = IBV_ACCESS_LOCAL_WRITE};

    for (uint32_t i = 0; i < count && 0 < walk.length; ++i) {
        uint64_t at = 0;
        int64_t n = piece(&walk, &sge[i], &at);
        if (0 > n) {
            return false;
        }
        if (0 < n) {
            memcpy((void *) (uintptr_t) at, from, (size_t) n);
            from += n;
        }
    }
    return 0 == walk.length;
}

/* ---- receives ----------------------------------------------------------------------------------------- */

void *fabric_ring_new(uint32_t count, size_t size)
{
    void *ring = calloc(0 == count ? 1 : count, size);

    if (NULL == ring) {
        abort();
    }
    return ring;
}

int fabric_rq_post(fabric_rq_t *rq, uint32_t max_sge, const struct ibv_recv_wr *wr)
{
    fabric_recv_t *recv;

    if (0 > wr->num_sge || max_sge < (uint32_t) wr->num_sge) {
        return EINVAL;
    }
    if (rq->posted - rq->freed >= rq->size) {
        return ENOMEM;
    }
    recv = &rq->ring[rq->posted++ % rq->size];
    recv->wr_id = wr->wr_id;
    recv->sge_count = (uint32_t) wr->num_sge;
    if (0 < recv->sge_count) {
        memcpy(recv->sge, wr->sg_list, recv->sge_count * sizeof(struct ibv_sge));
    }
    return 0;
}

bool fabric_recv_take(fabric_qp_t *qp, fabric_recv_t *recv)
{
    fabric_srq_t *srq = qp->srq;
    fabric_rq_t *rq = NULL != srq ? &srq->rq : &qp->rq;

    if (rq->taken == rq->posted) {
        return false;
    }
    *recv = rq->ring[rq->taken++ % rq->size];
    if (NULL != srq && rq->posted - rq->taken < srq->limit) {
        srq->limit = 0;
        fabric_raise(srq->object.context, IBV_EVENT_SRQ_LIMIT_REACHED, &srq->object);
    }
    return true;
}

/* ---- shared receive queues ---------------------------------------------------------------------------- */

int fabric_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    fabric_srq_t *srq = FABRIC_OF(fabric_srq_t, ibv);

    fabric_object_check(&srq->object, "ibv_post_srq_recv");
    if (fabric_fails(CALL_post_srq_recv, srq->object.context)) {
        *bad = wr;
        return ENOMEM;
    }
    for (; NULL != wr; wr = wr->next) {
        int rc = fabric_rq_post(&srq->rq, srq->max_sge, wr);
        if (0 != rc) {
            *bad = wr;
            return rc;
        }
    }
    return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    fabric_srq_t *srq;

    fabric_object_check(&FABRIC_OF(fabric_pd_t, pd)->object, "ibv_create_srq");
    if (!fabric.habits.has_srq || FABRIC_MAX_WR < init->attr.max_wr || FABRIC_MAX_SGE < init->attr.max_sge) {
        errno = fabric.habits.has_srq ? EINVAL : EOPNOTSUPP;
        return NULL;
    }
    srq = fabric_object_new(FABRIC_SRQ, FABRIC_OF(fabric_context_t, pd->context), sizeof(*srq), CALL_create_srq);
    if (NULL == srq) {
        return NULL;
    }
    srq->max_sge = init->attr.max_sge;
    srq->rq.size = init->attr.max_wr;
    srq->rq.ring = fabric_ring_new(srq->rq.size, sizeof(*srq->rq.ring));
    srq->ibv.context = pd->context;
    srq->ibv.srq_context = init->srq_context;
    srq->ibv.pd = pd;
    srq->ibv.handle = srq->object.number;
    ++FABRIC_OF(fabric_pd_t, pd)->object.users;
    return &srq->ibv;
}

/* Only the limit can change. If fewer receives are posted already, the event comes at once. */
int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
    fabric_srq_t *srq = FABRIC_OF(fabric_srq_t, ibv);

    fabric_object_check(&srq->object, "ibv_modify_srq");
    if (fabric_fails(CALL_modify_srq, srq->object.context)) {
        return ENOMEM;
    }
    if (IBV_SRQ_LIMIT != mask || srq->rq.size < attr->srq_limit) {
        return EINVAL;
    }
    srq->limit = attr->srq_limit;
    if (srq->rq.posted - srq->rq.taken < srq->limit) {
        srq->limit = 0;
        fabric_raise(srq->object.context, IBV_EVENT_SRQ_LIMIT_REACHED, &srq->object);
    }
    return 0;
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
    fabric_srq_t *srq = FABRIC_OF(fabric_srq_t, ibv);

    fabric_object_check(&srq->object, "ibv_destroy_srq");
    if (0 < srq->object.users) {
        return EBUSY;
    }
    fabric_unraise(&srq->object);
    --FABRIC_OF(fabric_pd_t, ibv->pd)->object.users;
    free(srq->rq.ring);
    srq->rq.ring = NULL;
    fabric_object_end(&srq->object);
    return 0;
}
