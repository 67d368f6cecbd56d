/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Queue pairs: posting, changes of state, the error state with its flush. DESIGN.txt section 18.
 */
#include "fabric_internal.h"
#include "sr_transition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLUSH_PAUSE = 20000, /* ns at most between two works of a slow flush */
    FIRST_ROOM = 8       /* places of a send queue, which are doubled when they are not enough */
};

bool fabric_qp_is_ready(const fabric_qp_t *qp)
{
    return IBV_QPS_RTS == qp->ibv.state;
}

/* ---- flush -------------------------------------------------------------------------------------------- */

/* Flushes one send and one receive. False if there was nothing left. */
static bool flush_one(fabric_qp_t *qp)
{
    fabric_recv_t recv;
    bool any = false;

    if (qp->done != qp->posted) {
        fabric_complete_send(qp, qp->done++, IBV_WC_WR_FLUSH_ERR);
        qp->next = qp->done;
        any = true;
    }
    if (NULL == qp->srq && fabric_recv_take(qp, &recv)) {
        fabric_complete_recv(qp, &recv, IBV_WC_WR_FLUSH_ERR, 0, NULL);
        any = true;
    }
    return any;
}

static void flush(fabric_qp_t *qp);

static void flush_later(void *argument)
{
    fabric_qp_t *qp = argument;

    qp->is_flushing = false;
    if (!qp->object.is_gone && IBV_QPS_ERR == qp->ibv.state && flush_one(qp)) {
        flush(qp);
    }
}

static void flush(fabric_qp_t *qp)
{
    if (!fabric.habits.flushes_late) {
        while (flush_one(qp)) {
        }
    } else if (!qp->is_flushing) {
        qp->is_flushing = true;
        world_at(world_now + 1 + world_draw(FLUSH_PAUSE), flush_later, qp);
    }
}

void fabric_qp_fail(fabric_qp_t *qp, enum ibv_event_type event)
{
    fabric_context_t *context = qp->object.context;
    const bool is_dead = fabric_port_of(context)->is_dead;

    if (IBV_QPS_ERR == qp->ibv.state) {
        return;
    }
    qp->ibv.state = IBV_QPS_ERR;
    qp->deadline = 0;
    if (0 != event && !is_dead) {
        fabric_raise(context, event, &qp->object);
    }
    if (qp->is_receiving) {
        qp->is_receiving = false;
        fabric_complete_recv(qp, &qp->current, IBV_WC_WR_FLUSH_ERR, 0, NULL);
    }
    flush(qp);
    if (NULL != qp->srq && !qp->last_wqe_raised && fabric.habits.raises_last_wqe && !is_dead) {
        qp->last_wqe_raised = true;
        fabric_raise(context, IBV_EVENT_QP_LAST_WQE_REACHED, &qp->object);
    }
}

/* ---- creation and destruction ------------------------------------------------------------------------- */

static bool cap_is_valid(const struct ibv_qp_init_attr *init)
{
    const struct ibv_qp_cap *cap = &init->cap;

    return NULL != init->send_cq && NULL != init->recv_cq && (IBV_QPT_RC == init->qp_type || IBV_QPT_UD == init->qp_type)
           && FABRIC_MAX_WR >= cap->max_send_wr && FABRIC_MAX_WR >= cap->max_recv_wr && FABRIC_MAX_SGE >= cap->max_send_sge
           && FABRIC_MAX_SGE >= cap->max_recv_sge && FABRIC_MAX_INLINE >= cap->max_inline_data;
}

static void use(fabric_qp_t *qp, int n)
{
    FABRIC_OF(fabric_pd_t, qp->ibv.pd)->object.users += (unsigned) n;
    qp->send_cq->object.users += (unsigned) n;
    qp->recv_cq->object.users += (unsigned) n;
    if (NULL != qp->srq) {
        qp->srq->object.users += (unsigned) n;
    }
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    fabric_qp_t *qp;

    fabric_object_check(&FABRIC_OF(fabric_pd_t, pd)->object, "ibv_create_qp");
    if (!cap_is_valid(init)) {
        errno = EINVAL;
        return NULL;
    }
    qp = fabric_object_new(FABRIC_QP, FABRIC_OF(fabric_context_t, pd->context), sizeof(*qp), CALL_create_qp);
    if (NULL == qp) {
        return NULL;
    }
    qp->init = *init;
    qp->send_cq = FABRIC_OF(fabric_cq_t, init->send_cq);
    qp->recv_cq = FABRIC_OF(fabric_cq_t, init->recv_cq);
    qp->srq = NULL == init->srq ? NULL : FABRIC_OF(fabric_srq_t, init->srq);
    qp->ibv.context = pd->context;
    qp->ibv.qp_context = init->qp_context;
    qp->ibv.pd = pd;
    qp->ibv.send_cq = init->send_cq;
    qp->ibv.recv_cq = init->recv_cq;
    qp->ibv.srq = init->srq;
    qp->ibv.handle = qp->ibv.qp_num = qp->object.number;
    qp->ibv.state = IBV_QPS_RESET;
    qp->ibv.qp_type = init->qp_type;
    qp->size = init->cap.max_send_wr;
    qp->room = qp->size < FIRST_ROOM ? qp->size : FIRST_ROOM;
    qp->sends = fabric_ring_new(qp->room, sizeof(*qp->sends));
    qp->rq.size = NULL == qp->srq ? init->cap.max_recv_wr : 0;
    qp->rq.ring = fabric_ring_new(qp->rq.size, sizeof(*qp->rq.ring));
    use(qp, 1);
    return &qp->ibv;
}

/* All that is posted is forgotten. A shared receive that a message was filling is lost. */
static void reset(fabric_qp_t *qp)
{
    for (uint32_t i = qp->done; i != qp->posted; ++i) {
        free(fabric_send_at(qp, i)->inline_data);
        fabric_send_at(qp, i)->inline_data = NULL;
    }
    if (fabric.habits.cleans_cqs) {
        fabric_cq_clean(qp->send_cq, qp);
        fabric_cq_clean(qp->recv_cq, qp);
    }
    if (qp->is_receiving && NULL != qp->srq) {
        ++qp->srq->rq.freed;
    }
    ++qp->epoch;
    qp->posted = qp->next = qp->done = qp->freed = qp->next_packet = qp->reads_out = 0;
    qp->rq.posted = qp->rq.taken = qp->rq.freed = 0;
    qp->deadline = qp->hold_until = 0;
    qp->is_receiving = qp->nak_sent = qp->last_wqe_raised = qp->is_held = qp->went_back = false;
    qp->ibv.state = IBV_QPS_RESET;
}

void fabric_qp_end(fabric_qp_t *qp)
{
    reset(qp);
    use(qp, -1);
    fabric_unraise(&qp->object);
    free(qp->sends);
    free(qp->rq.ring);
    qp->sends = NULL;
    qp->rq.ring = NULL;
    fabric_object_end(&qp->object);
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
    fabric_qp_t *qp = FABRIC_OF(fabric_qp_t, ibv);

    fabric_object_check(&qp->object, "ibv_destroy_qp");
    fabric_qp_end(qp);
    return 0;
}

/* ---- states ------------------------------------------------------------------------------------------- */

/* The attributes that a change of state may set. */
#define FIELD(bit, name) \
    { \
        (bit), offsetof(struct ibv_qp_attr, name), sizeof(((struct ibv_qp_attr *) NULL)->name) \
    }

static const struct {
    int bit;
    size_t at, size;
} fields[] = {
    FIELD(IBV_QP_PKEY_INDEX, pkey_index),
    FIELD(IBV_QP_PORT, port_num),
    FIELD(IBV_QP_ACCESS_FLAGS, qp_access_flags),
    FIELD(IBV_QP_QKEY, qkey),
    FIELD(IBV_QP_AV, ah_attr),
    FIELD(IBV_QP_PATH_MTU, path_mtu),
    FIELD(IBV_QP_DEST_QPN, dest_qp_num),
    FIELD(IBV_QP_RQ_PSN, rq_psn),
    FIELD(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic),
    FIELD(IBV_QP_MIN_RNR_TIMER, min_rnr_timer),
    FIELD(IBV_QP_TIMEOUT, timeout),
    FIELD(IBV_QP_RETRY_CNT, retry_cnt),
    FIELD(IBV_QP_RNR_RETRY, rnr_retry),
    FIELD(IBV_QP_SQ_PSN, sq_psn),
    FIELD(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic),
};

static void keep(fabric_qp_t *qp, const struct ibv_qp_attr *attr, int mask)
{
    for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); ++i) {
        if (0 != (mask & fields[i].bit)) {
            memcpy((char *) &qp->attr + fields[i].at, (const char *) attr + fields[i].at, fields[i].size);
        }
    }
}

static bool values_are_valid(const struct ibv_qp_attr *attr, int mask)
{
    return (0 == (mask & IBV_QP_PORT) || 1 == attr->port_num) && (0 == (mask & IBV_QP_PKEY_INDEX) || 0 == attr->pkey_index)
           && (0 == (mask & IBV_QP_PATH_MTU)
               || (IBV_MTU_256 <= attr->path_mtu && IBV_MTU_4096 >= attr->path_mtu && 128u << attr->path_mtu <= fabric.habits.mtu))
           && (0 == (mask & IBV_QP_RETRY_CNT) || 7 >= attr->retry_cnt) && (0 == (mask & IBV_QP_RNR_RETRY) || 7 >= attr->rnr_retry)
           && (0 == (mask & IBV_QP_MAX_QP_RD_ATOMIC) || FABRIC_MAX_READS >= attr->max_rd_atomic)
           && (0 == (mask & IBV_QP_MAX_DEST_RD_ATOMIC) || FABRIC_MAX_READS >= attr->max_dest_rd_atomic)
           && (0 == (mask & IBV_QP_TIMEOUT) || 31 >= attr->timeout);
}

static void enter(fabric_qp_t *qp, enum ibv_qp_state state)
{
    if (IBV_QPS_RESET == state) {
        reset(qp);
        return;
    }
    if (IBV_QPS_ERR == state) {
        fabric_qp_fail(qp, 0);
        return;
    }
    if (IBV_QPS_RTR == state) {
        qp->expected_psn = qp->attr.rq_psn & 0xffffff;
        qp->peer_node = fabric_node_of(qp->object.context->rail, &qp->attr.ah_attr);
    } else if (IBV_QPS_RTS == state && IBV_QPS_RTR == qp->ibv.state) {
        qp->post_psn = qp->attr.sq_psn & 0xffffff;
        qp->retries_left = qp->attr.retry_cnt;
        qp->rnr_left = qp->attr.rnr_retry;
    }
    qp->ibv.state = state;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    fabric_qp_t *qp = FABRIC_OF(fabric_qp_t, ibv);
    enum ibv_qp_state state = 0 != (mask & IBV_QP_STATE) ? attr->qp_state : ibv->state;

    fabric_object_check(&qp->object, "ibv_modify_qp");
    if (fabric_port_of(qp->object.context)->is_dead) {
        errno = EIO;
        return EIO;
    }
    if (fabric_fails(CALL_modify_qp, qp->object.context)) {
        return ENOMEM;
    }
    if (0 != sr_transition_check(ibv->qp_type, ibv->state, state, mask) || !values_are_valid(attr, mask)) {
        errno = EINVAL;
        return EINVAL;
    }
    keep(qp, attr, mask);
    enter(qp, state);
    return 0;
}

int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    fabric_qp_t *qp = FABRIC_OF(fabric_qp_t, ibv);

    fabric_object_check(&qp->object, "ibv_query_qp");
    if (fabric_port_of(qp->object.context)->is_dead) {
        errno = EIO;
        return EIO;
    }
    if (fabric_fails(CALL_query_qp, qp->object.context)) {
        return ENOMEM;
    }
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = ibv->state;
    attr->cap = qp->init.cap;
    *init = qp->init;
    return 0;
}

/* ---- posting ------------------------------------------------------------------------------------------ */

static bool opcode_fits(const fabric_qp_t *qp, enum ibv_wr_opcode opcode)
{
    return IBV_WR_SEND == opcode || (IBV_QPT_RC == qp->ibv.qp_type && (IBV_WR_RDMA_WRITE == opcode || IBV_WR_RDMA_READ == opcode));
}

/* Cuts a message in packets. Each is a multiple of the path's MTU, and they are few. */
static void cut(fabric_qp_t *qp, fabric_send_t *send)
{
    const uint32_t mtu = IBV_QPT_UD == qp->ibv.qp_type ? fabric.habits.mtu : 128u << qp->attr.path_mtu;

    send->packet = (send->length / FABRIC_MAX_PACKETS + mtu) / mtu * mtu;
    send->packets = 0 == send->length ? 1 : (send->length + send->packet - 1) / send->packet;
    send->psn = qp->post_psn;
    qp->post_psn = (qp->post_psn + send->packets) & 0xffffff;
}

static void copy_inline(fabric_send_t *send)
{
    uint8_t *to = send->inline_data = malloc(send->length + 1);

    if (NULL == to) {
        abort();
    }
    for (uint32_t i = 0; i < send->sge_count; to += send->sge[i++].length) {
        memcpy(to, (const void *) (uintptr_t) send->sge[i].addr, send->sge[i].length);
    }
}

static int check_send(const fabric_qp_t *qp, const struct ibv_send_wr *wr, uint32_t *length)
{
    uint64_t sum = 0;

    if (IBV_QPS_RTS != qp->ibv.state && IBV_QPS_ERR != qp->ibv.state) {
        return EINVAL;
    }
    if (!opcode_fits(qp, wr->opcode) || 0 > wr->num_sge || qp->init.cap.max_send_sge < (uint32_t) wr->num_sge) {
        return EINVAL;
    }
    for (int i = 0; i < wr->num_sge; ++i) {
        sum += wr->sg_list[i].length;
    }
    if (sum > UINT32_C(1) << 30 || (0 != (wr->send_flags & IBV_SEND_INLINE) && (qp->init.cap.max_inline_data < sum || IBV_WR_RDMA_READ == wr->opcode))
        || (IBV_QPT_UD == qp->ibv.qp_type && (fabric.habits.mtu < sum || NULL == wr->wr.ud.ah))) {
        return EINVAL;
    }
    *length = (uint32_t) sum;
    return qp->posted - qp->freed >= qp->size ? ENOMEM : 0;
}

static void make_room(fabric_qp_t *qp)
{
    const uint32_t room = 2 * qp->room < qp->size ? 2 * qp->room : qp->size;
    fabric_send_t *sends = fabric_ring_new(room, sizeof(*sends));

    for (uint32_t i = qp->freed; i != qp->posted; ++i) {
        sends[i % room] = *fabric_send_at(qp, i);
    }
    free(qp->sends);
    qp->sends = sends;
    qp->room = room;
}

static void count_post(const fabric_qp_t *qp, const struct ibv_send_wr *wr)
{
    fabric_posts_t *posts = &fabric.posts[qp->object.context->rank];

    if (IBV_QPT_UD == qp->ibv.qp_type) {
        ++posts->datagrams[0 < wr->num_sge ? *(const uint8_t *) (uintptr_t) wr->sg_list[0].addr % FABRIC_TYPES : 0];
    } else {
        ++*(IBV_WR_SEND == wr->opcode ? &posts->sends : IBV_WR_RDMA_READ == wr->opcode ? &posts->reads : &posts->writes);
    }
}

static int post_one(fabric_qp_t *qp, const struct ibv_send_wr *wr)
{
    uint32_t length = 0;
    int rc = check_send(qp, wr, &length);
    fabric_send_t *send;

    if (0 != rc) {
        return rc;
    }
    if (qp->posted - qp->freed == qp->room) {
        make_room(qp);
    }
    count_post(qp, wr);
    send = fabric_send_at(qp, qp->posted);
    *send = (fabric_send_t){.wr_id = wr->wr_id,
                            .opcode = wr->opcode,
                            .sge_count = (uint32_t) wr->num_sge,
                            .length = length,
                            .is_signaled = qp->init.sq_sig_all || 0 != (wr->send_flags & IBV_SEND_SIGNALED)};
    if (0 < wr->num_sge) {
        memcpy(send->sge, wr->sg_list, send->sge_count * sizeof(struct ibv_sge));
    }
    if (IBV_QPT_UD == qp->ibv.qp_type) {
        send->ah = FABRIC_OF(fabric_ah_t, wr->wr.ud.ah);
        fabric_object_check(&send->ah->object, "ibv_post_send");
        send->remote_qpn = wr->wr.ud.remote_qpn;
        send->remote_qkey = wr->wr.ud.remote_qkey;
    } else {
        send->remote_addr = wr->wr.rdma.remote_addr;
        send->rkey = wr->wr.rdma.rkey;
    }
    if (0 != (wr->send_flags & IBV_SEND_INLINE)) {
        copy_inline(send);
    }
    cut(qp, send);
    ++qp->posted;
    return 0;
}

int fabric_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    fabric_qp_t *qp = FABRIC_OF(fabric_qp_t, ibv);
    int rc = 0;

    fabric_object_check(&qp->object, "ibv_post_send");
    if (fabric_fails(CALL_post_send, qp->object.context)) {
        *bad = wr;
        return ENOMEM;
    }
    for (; NULL != wr && 0 == rc; wr = 0 == rc ? wr->next : wr) {
        rc = post_one(qp, wr);
        if (0 != rc) {
            *bad = wr;
        }
    }
    if (IBV_QPS_ERR == ibv->state) {
        flush(qp);
    } else {
        fabric_request_go(qp);
    }
    return rc;
}

int fabric_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    fabric_qp_t *qp = FABRIC_OF(fabric_qp_t, ibv);
    int rc = 0;

    fabric_object_check(&qp->object, "ibv_post_recv");
    if (fabric_fails(CALL_post_recv, qp->object.context)) {
        *bad = wr;
        return ENOMEM;
    }
    for (; NULL != wr; wr = wr->next) {
        rc = IBV_QPS_RESET == ibv->state || NULL != qp->srq ? EINVAL : fabric_rq_post(&qp->rq, qp->init.cap.max_recv_sge, wr);
        if (0 != rc) {
            *bad = wr;
            break;
        }
    }
    if (IBV_QPS_ERR == ibv->state) {
        flush(qp);
    }
    return rc;
}
