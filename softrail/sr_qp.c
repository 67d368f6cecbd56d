/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Queue pairs: creation, numbers that are unique in the fabric, state changes. DESIGN.txt 16.
 */
#include "sr_cq.h"
#include "sr_device.h"
#include "sr_event.h"
#include "sr_flush.h"
#include "sr_injector.h"
#include "sr_pending.h"
#include "sr_qp.h"
#include "sr_qp_table.h"
#include "sr_requester.h"
#include "sr_srq.h"
#include "sr_transition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- creation ----------------------------------------------------------------------------------- */

static int check_init(struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
    const struct ibv_qp_cap *cap = &init->cap;
    int rc = sr_device_check(pd->context);

    if (0 != rc) {
        return rc;
    }
    if (sr_unlikely(sr_faults_planned()) && sr_faults_refuse(sr_context(pd->context)->rail, SR_CALL_CREATE_QP)) {
        return ENOMEM;
    }
    if (IBV_QPT_RC == init->qp_type && sr_habit(SR_FABRIC_NO_RC)) {
        return EOPNOTSUPP;
    }
    if (IBV_QPT_RC != init->qp_type && IBV_QPT_UC != init->qp_type && IBV_QPT_UD != init->qp_type) {
        return EOPNOTSUPP;
    }
    if (NULL == init->send_cq || NULL == init->recv_cq || SR_MAX_WR < cap->max_send_wr || SR_MAX_WR < cap->max_recv_wr
        || SR_MAX_SGE < cap->max_send_sge || SR_MAX_SGE < cap->max_recv_sge || sr.fabric.shm->habits.max_inline < cap->max_inline_data) {
        return EINVAL;
    }
    return 0;
}

/* Take a free entry of the fabric's table. Returns the number, or 0. */
static uint32_t take_number(uint64_t offset)
{
    struct sr_qp_entry *table = sr.fabric.shm->qp;

    for (uint32_t i = 0; i < SR_MAX_QPS; ++i) {
        uint32_t index = (sr.slot * 131u + i) % SR_MAX_QPS, expected = 0;
        if (2 > index || 0 != atomic_load_explicit(&table[index].owner, memory_order_relaxed)) {
            continue; /* 0 and 1 are the management queue pairs */
        }
        if (atomic_compare_exchange_strong(&table[index].owner, &expected, sr.word)) {
            uint32_t qpn;
            table[index].generation = (table[index].generation + 1) & 0x1ff;
            qpn = table[index].generation << SR_QP_INDEX_BITS | index;
            atomic_store(&table[index].offset, offset);
            atomic_store(&table[index].qpn, qpn);
            return qpn;
        }
    }
    return 0;
}

static void give_number(uint32_t qpn)
{
    struct sr_qp_entry *entry = &sr.fabric.shm->qp[SR_QPN_INDEX(qpn)];

    atomic_store(&entry->qpn, 0);
    atomic_store(&entry->owner, 0);
}

static void shm_init(struct sr_qp *qp, uint64_t payload)
{
    struct sr_qp_shm *shm = qp->shm;

    sr_lock(&shm->lock);
    shm->pay_produced = shm->pay_seen = shm->head_seen = 0;
    shm->rx_messages = shm->rx_bytes = 0;
    shm->pay_consumed = 0;
    shm->tx_messages = shm->tx_bytes = shm->errors = shm->retries = shm->rnr_waits = 0;
    shm->state = IBV_QPS_RESET;
    shm->type = qp->init.qp_type;
    shm->rail = qp->rail;
    shm->pd = qp->pd->id;
    shm->access = shm->dest_qpn = shm->qkey = 0;
    shm->event_fifo = sr_context(qp->ibv.context)->fifo;
    shm->id = qp->id;
    shm->epoch++;
    shm->rnr_timer = 0;
    shm->max_dest_rd_atomic = 0;
    shm->has_srq = NULL != qp->srq;
    shm->rq = qp->rq->offset;
    shm->recv_cq = qp->recv_cq->offset;
    shm->send_cq = qp->send_cq->offset;
    shm->payload = payload;
    sr_unlock(&shm->lock);
}

static void link_qp(struct sr_qp *qp)
{
    sr_qp_table_add(qp);
    atomic_fetch_add(&qp->send_cq->uses, 1);
    atomic_fetch_add(&qp->recv_cq->uses, 1);
    atomic_fetch_add(&qp->pd->uses, 1);
    if (NULL != qp->srq) {
        atomic_fetch_add(&qp->srq->uses, 1);
    }
}

static void fill_ibv(struct sr_qp *qp, struct ibv_pd *pd)
{
    qp->ibv.context = pd->context;
    qp->ibv.qp_context = qp->init.qp_context;
    qp->ibv.pd = pd;
    qp->ibv.send_cq = qp->init.send_cq;
    qp->ibv.recv_cq = qp->init.recv_cq;
    qp->ibv.srq = qp->init.srq;
    qp->ibv.handle = qp->id;
    qp->ibv.state = IBV_QPS_RESET;
    qp->ibv.qp_type = qp->init.qp_type;
    pthread_mutex_init(&qp->ibv.mutex, NULL);
    pthread_cond_init(&qp->ibv.cond, NULL);
    pthread_mutex_init(&qp->sq_lock, NULL);
    sr_acks_init(&qp->acks);
}

static int qp_allocate(struct sr_qp *qp, uint64_t *payload)
{
    const struct ibv_qp_cap *cap = &qp->init.cap;

    if (NULL == qp->srq) {
        int rc = sr_rq_init(&qp->own_rq, cap->max_recv_wr, cap->max_recv_sge, qp->pd->id, false);
        if (0 != rc) {
            return rc;
        }
    }
    qp->rq = NULL == qp->srq ? &qp->own_rq : &qp->srq->rq;
    qp->offset = sr_stable_alloc(SR_STABLE_QP);
    *payload = sr_arena_alloc(SR_PAYLOAD_RING);
    qp->id = sr_handle_add(qp);
    if (0 == qp->offset || 0 == *payload || 0 == qp->id) {
        sr_handle_remove(qp->id);
        sr_stable_free(SR_STABLE_QP, qp->offset);
        sr_arena_free(*payload, SR_PAYLOAD_RING);
        if (NULL == qp->srq) {
            sr_rq_fini(&qp->own_rq);
        }
        return ENOMEM;
    }
    qp->shm = sr_at(qp->offset);
    return 0;
}

struct ibv_qp *sr_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct sr_qp *qp = NULL;
    uint64_t payload = 0;
    int rc = check_init(pd, init);

    if (0 == rc && NULL == (qp = calloc(1, sizeof(*qp)))) {
        rc = ENOMEM;
    }
    if (0 == rc) {
        if (0 == init->cap.max_send_sge) {
            init->cap.max_send_sge = 1;
        }
        if (0 == init->cap.max_recv_sge && NULL == init->srq) {
            init->cap.max_recv_sge = 1;
        }
        qp->init = *init;
        qp->run = sr_requester_run;
        qp->rail = sr_context(pd->context)->rail;
        qp->pd = sr_pd(pd);
        qp->send_cq = sr_cq(init->send_cq);
        qp->recv_cq = sr_cq(init->recv_cq);
        qp->srq = NULL == init->srq ? NULL : sr_srq(init->srq);
        rc = qp_allocate(qp, &payload);
    }
    if (0 != rc) {
        free(qp);
        errno = rc;
        return NULL;
    }
    fill_ibv(qp, pd);
    shm_init(qp, payload);
    qp->ibv.qp_num = take_number(qp->offset);
    if (0 == qp->ibv.qp_num) {
        sr_handle_remove(qp->id);
        sr_arena_free(payload, SR_PAYLOAD_RING);
        if (NULL == qp->srq) {
            sr_rq_fini(&qp->own_rq);
        }
        sr_stable_free(SR_STABLE_QP, qp->offset);
        free(qp);
        errno = ENOMEM;
        return NULL;
    }
    atomic_store(&qp->shm->qpn, qp->ibv.qp_num);
    link_qp(qp);
    return &qp->ibv;
}

static void drop_waiting(struct sr_qp *qp)
{
    while (NULL != qp->ghosts) {
        struct sr_wqe *ghost = qp->ghosts;
        qp->ghosts = ghost->next;
        free(ghost->inline_copy);
        free(ghost);
    }
    while (NULL != qp->wait_first) {
        struct sr_wqe *wqe = qp->wait_first;
        qp->wait_first = wqe->next;
        free(wqe->inline_copy);
        free(wqe);
    }
    qp->wait_last = NULL;
}

static void keep_counters(struct sr_qp *qp)
{
    struct sr_counters *done = &sr.proc->done[qp->rail];

    atomic_fetch_add(&done->tx_messages, qp->shm->tx_messages);
    atomic_fetch_add(&done->tx_bytes, qp->shm->tx_bytes);
    atomic_fetch_add(&done->rx_messages, qp->shm->rx_messages);
    atomic_fetch_add(&done->rx_bytes, qp->shm->rx_bytes);
    atomic_fetch_add(&done->errors, qp->shm->errors);
    atomic_fetch_add(&done->retries, qp->shm->retries);
    atomic_fetch_add(&done->rnr_waits, qp->shm->rnr_waits);
}

int sr_qp_destroy(struct ibv_qp *ibv)
{
    struct sr_qp *qp = sr_qp(ibv);

    if (!sr.joined) {
        return EINVAL;
    }
    if (sr_unlikely(sr_faults_planned()) && sr_faults_refuse(qp->rail, SR_CALL_DESTROY_QP)) {
        return ENOMEM;
    }
    sr_lock(&qp->shm->lock);
    atomic_store(&qp->shm->qpn, 0);
    atomic_store(&qp->shm->state, IBV_QPS_RESET);
    sr_unlock(&qp->shm->lock);
    sr_handle_remove(qp->id);
    sr_acks_wait(&qp->acks);
    sr_pending_remove(qp);
    pthread_mutex_lock(&qp->sq_lock);
    drop_waiting(qp);
    sr_requester_forget(qp);
    pthread_mutex_unlock(&qp->sq_lock);
    sr_qp_table_remove(qp);
    keep_counters(qp);
    give_number(ibv->qp_num);
    sr_arena_free(qp->shm->payload, SR_PAYLOAD_RING);
    sr_stable_free(SR_STABLE_QP, qp->offset);
    if (NULL == qp->srq) {
        sr_rq_fini(&qp->own_rq);
    } else {
        atomic_fetch_sub(&qp->srq->uses, 1);
    }
    atomic_fetch_sub(&qp->send_cq->uses, 1);
    atomic_fetch_sub(&qp->recv_cq->uses, 1);
    atomic_fetch_sub(&qp->pd->uses, 1);
    free(qp);
    return 0;
}

/* ---- modify and query --------------------------------------------------------------------------- */

static void to_reset(struct sr_qp *qp)
{
    struct sr_qp_shm *shm = qp->shm;

    drop_waiting(qp);
    sr_requester_forget(qp);
    sr_lock(&shm->lock);
    atomic_store(&shm->state, IBV_QPS_RESET);
    shm->epoch++; /* completions of the life that ends are dropped when they are polled */
    shm->pay_produced = shm->pay_seen = shm->head_seen = 0;
    atomic_store(&shm->pay_consumed, 0);
    if (NULL == qp->srq) {
        pthread_mutex_lock(&qp->own_rq.lock);
        atomic_store(&qp->own_rq.shm->head, 0);
        atomic_store(&qp->own_rq.shm->tail, 0);
        qp->own_rq.polled = 0;
        qp->flush_receives = false;
        pthread_mutex_unlock(&qp->own_rq.lock);
    }
    sr_unlock(&shm->lock);
    qp->sq_posted = 0;
    atomic_store(&qp->sq_retired, 0);
    qp->in_error = false;
    qp->last_wqe_sent = false;
    memset(&qp->attr, 0, sizeof(qp->attr));
}

static void take_attributes(struct sr_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct ibv_qp_attr *mine = &qp->attr;

#define TAKE(bit, field) \
    if (0 != (mask & IBV_QP_##bit)) { \
        mine->field = attr->field; \
    }
    TAKE(ACCESS_FLAGS, qp_access_flags)
    TAKE(PKEY_INDEX, pkey_index)
    TAKE(PORT, port_num)
    TAKE(QKEY, qkey)
    TAKE(AV, ah_attr)
    TAKE(PATH_MTU, path_mtu)
    TAKE(TIMEOUT, timeout)
    TAKE(RETRY_CNT, retry_cnt)
    TAKE(RNR_RETRY, rnr_retry)
    TAKE(RQ_PSN, rq_psn)
    TAKE(SQ_PSN, sq_psn)
    TAKE(MAX_QP_RD_ATOMIC, max_rd_atomic)
    TAKE(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic)
    TAKE(MIN_RNR_TIMER, min_rnr_timer)
    TAKE(DEST_QPN, dest_qp_num)
    TAKE(PATH_MIG_STATE, path_mig_state)
    TAKE(ALT_PATH, alt_ah_attr)
#undef TAKE
}

static int check_attributes(const struct sr_qp *qp, const struct ibv_qp_attr *attr, int mask, struct sr_address *address)
{
    if ((0 != (mask & IBV_QP_PORT) && 1 != attr->port_num)
        || (0 != (mask & IBV_QP_PKEY_INDEX) && sr.fabric.shm->habits.pkey_count <= attr->pkey_index)
        || (0 != (mask & IBV_QP_PATH_MTU) && (IBV_MTU_256 > attr->path_mtu || IBV_MTU_4096 < attr->path_mtu))
        || (0 != (mask & IBV_QP_TIMEOUT) && 31 < attr->timeout) || (0 != (mask & IBV_QP_RETRY_CNT) && 7 < attr->retry_cnt)
        || (0 != (mask & IBV_QP_RNR_RETRY) && 7 < attr->rnr_retry) || (0 != (mask & IBV_QP_MIN_RNR_TIMER) && 31 < attr->min_rnr_timer)
        || (0 != (mask & IBV_QP_MAX_QP_RD_ATOMIC) && 128 < attr->max_rd_atomic)
        || (0 != (mask & IBV_QP_MAX_DEST_RD_ATOMIC) && 128 < attr->max_dest_rd_atomic)) {
        return EINVAL;
    }
    return 0 != (mask & IBV_QP_AV) ? sr_address_resolve(qp->rail, &attr->ah_attr, address) : 0;
}

static void publish(struct sr_qp *qp, enum ibv_qp_state to)
{
    struct sr_qp_shm *shm = qp->shm;

    sr_lock(&shm->lock);
    shm->access = qp->attr.qp_access_flags;
    shm->dest_qpn = qp->attr.dest_qp_num;
    shm->qkey = qp->attr.qkey;
    shm->pkey = sr.fabric.shm->habits.pkeys[qp->attr.pkey_index];
    shm->rnr_timer = qp->attr.min_rnr_timer;
    shm->max_dest_rd_atomic = qp->attr.max_dest_rd_atomic;
    if (IBV_QPS_ERR != atomic_load(&shm->state)) {
        atomic_store(&shm->state, to);
    }
    sr_unlock(&shm->lock);
    qp->retry_ns = sr.fabric.shm->retry_ns;
    if (0 == qp->retry_ns && 0 != qp->attr.timeout) {
        qp->retry_ns = (UINT64_C(4096) << qp->attr.timeout) * (qp->attr.retry_cnt + 1u);
    }
}

/* Locks: sq_lock is held. */
static int modify_locked(struct sr_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    enum ibv_qp_state from = (enum ibv_qp_state) atomic_load(&qp->shm->state);
    enum ibv_qp_state to = 0 != (mask & IBV_QP_STATE) ? attr->qp_state : from;
    struct sr_address address = qp->address;
    int rc = sr_transition_check(qp->init.qp_type, from, to, mask);

    if (0 == rc && 0 != (mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from) {
        rc = EINVAL;
    }
    if (0 == rc) {
        rc = check_attributes(qp, attr, mask, &address);
    }
    if (0 != rc) {
        return rc;
    }
    if (IBV_QPS_ERR == to) {
        sr_qp_fail(qp);
        return 0;
    }
    if (IBV_QPS_RESET == to) {
        to_reset(qp);
    } else {
        take_attributes(qp, attr, mask);
        qp->address = address;
        publish(qp, to);
    }
    qp->ibv.state = to;
    if (IBV_QPS_RTS == to) {
        sr_requester_run(qp);
    }
    if (IBV_QPS_SQD == to && IBV_QPS_SQD != from && 0 != (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attr->en_sqd_async_notify) {
        sr_event_send(sr.self, qp->shm->event_fifo, IBV_EVENT_SQ_DRAINED, qp->id);
    }
    return 0;
}

int sr_qp_modify(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    struct sr_qp *qp = sr_qp(ibv);
    int rc = sr_device_check(ibv->context);

    if (0 != rc) {
        return rc;
    }
    if (sr_unlikely(sr_faults_planned()) && 0 != (mask & IBV_QP_STATE) && (IBV_QPS_ERR == attr->qp_state || IBV_QPS_RTR == attr->qp_state)
        && sr_faults_refuse(qp->rail, IBV_QPS_ERR == attr->qp_state ? SR_CALL_QP_ERROR : SR_CALL_QP_RTR)) {
        return ENOMEM;
    }
    if (0 != (mask & IBV_QP_STATE) && IBV_QPS_RESET == attr->qp_state) {
        sr_pending_remove(qp);
    }
    pthread_mutex_lock(&qp->sq_lock);
    rc = modify_locked(qp, attr, mask);
    pthread_mutex_unlock(&qp->sq_lock);
    return rc;
}

int sr_qp_query(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    struct sr_qp *qp = sr_qp(ibv);
    int rc = sr_device_check(ibv->context);

    (void) mask;
    if (0 != rc) {
        return rc;
    }
    pthread_mutex_lock(&qp->sq_lock);
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = (enum ibv_qp_state) atomic_load(&qp->shm->state);
    attr->cap = qp->init.cap;
    attr->sq_draining = 0;
    pthread_mutex_unlock(&qp->sq_lock);
    ibv->state = attr->qp_state;
    *init = qp->init;
    return 0;
}

int sr_qp_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct sr_qp *qp = sr_qp(ibv);
    int rc = 0;

    if (NULL != qp->srq || IBV_QPS_RESET == atomic_load_explicit(&qp->shm->state, memory_order_relaxed)) {
        *bad = wr;
        return EINVAL;
    }
    pthread_mutex_lock(&qp->own_rq.lock);
    for (; NULL != wr; wr = wr->next) {
        rc = sr_rq_post(&qp->own_rq, wr);
        if (0 != rc) {
            *bad = wr;
            break;
        }
    }
    if (sr_unlikely(__atomic_load_n(&qp->in_error, __ATOMIC_SEQ_CST))) {
        sr_qp_flush_receives_locked(qp);
    }
    pthread_mutex_unlock(&qp->own_rq.lock);
    return rc;
}
