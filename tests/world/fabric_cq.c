/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Completion queues, completion channels, and events of devices. A bad completion has only the fields that the manual promises (wr_id,
 * status, qp_num, vendor_err); the others are noise. DESIGN.txt section 18.
 */
#include "fabric_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VENDOR_ERROR = 0x51 };

/* Makes room for one more in an array that only grows. */
static void *room_for(void *array, unsigned count, unsigned *room, size_t size)
{
    if (count < *room) {
        return array;
    }
    *room = 2 * count + 8;
    array = realloc(array, *room * size);
    if (NULL == array) {
        abort();
    }
    return array;
}

/* ---- completions -------------------------------------------------------------------------------------- */

static void notify(fabric_cq_t *cq)
{
    fabric_channel_t *channel;

    if (!cq->is_armed || NULL == cq->ibv.channel) {
        return;
    }
    cq->is_armed = false;
    channel = FABRIC_OF(fabric_channel_t, cq->ibv.channel);
    channel->events = room_for(channel->events, channel->event_count, &channel->event_room, sizeof(fabric_cq_t *));
    channel->events[channel->event_count++] = cq;
    world_fd_ready(channel->ibv.fd, true);
}

/* The queue pairs that use a failed queue fail. */
static void fail_users(void *argument)
{
    fabric_cq_t *cq = argument;

    cq->fails_users = false;
    for (fabric_object_t *object = cq->object.context->objects; !cq->object.is_gone && NULL != object; object = object->next) {
        fabric_qp_t *qp = (fabric_qp_t *) object;
        if (FABRIC_QP == object->kind && (cq == qp->send_cq || cq == qp->recv_cq) && IBV_QPS_RESET != qp->ibv.state) {
            fabric_qp_fail(qp, IBV_EVENT_QP_FATAL);
        }
    }
}

void fabric_cq_fail(fabric_cq_t *cq)
{
    if (!cq->is_dead) {
        cq->is_dead = true;
        fabric_raise(cq->object.context, IBV_EVENT_CQ_ERR, &cq->object);
        fail_users(cq);
    }
}

/* A failed queue loses the completion. A queue pair that was brought back meanwhile fails again, but not within the caller's work. */
static void lose(fabric_cq_t *cq)
{
    if (!cq->fails_users) {
        cq->fails_users = true;
        world_at(world_now, fail_users, cq);
    }
}

void fabric_cq_push(fabric_cq_t *cq, const fabric_cqe_t *cqe)
{
    const fabric_context_t *context = cq->object.context;

    if (cq->is_dead) {
        lose(cq);
        return;
    }
    if (cq->count == cq->size) {
        world_broken("completion queue overrun: process %u, rail %u, %u entries", context->rank, context->rail, cq->size);
    }
    cq->ring[(cq->first + cq->count++) % cq->size] = *cqe;
    notify(cq);
}

/* The completion leaves the queue, so the places of its work are free. */
static void release(const fabric_cqe_t *cqe)
{
    fabric_qp_t *qp = cqe->qp;

    if (NULL == cqe->rq) {
        if (cqe->epoch == qp->epoch && 0 < (int32_t) (cqe->place - qp->freed)) {
            qp->freed = cqe->place;
        }
    } else if (cqe->epoch == qp->epoch || cqe->rq != &qp->rq) {
        ++cqe->rq->freed;
    }
}

void fabric_cq_clean(fabric_cq_t *cq, const fabric_qp_t *qp)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < cq->count; ++i) {
        const fabric_cqe_t *cqe = &cq->ring[(cq->first + i) % cq->size];
        if (qp == cqe->qp) {
            release(cqe);
        } else {
            cq->ring[(cq->first + kept++) % cq->size] = *cqe;
        }
    }
    cq->count = kept;
}

static void fill_bad(struct ibv_wc *wc)
{
    wc->vendor_err = VENDOR_ERROR;
    wc->opcode = IBV_WC_DRIVER1;
    wc->byte_len = UINT32_C(0xdeadbeef);
    wc->wc_flags = 0;
    wc->src_qp = UINT32_C(0xbadbad);
}

void fabric_complete_send(fabric_qp_t *qp, uint32_t place, enum ibv_wc_status status)
{
    static const uint8_t opcodes[] = {[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE, [IBV_WR_SEND] = IBV_WC_SEND, [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ};
    fabric_send_t *send = fabric_send_at(qp, place);
    fabric_cqe_t cqe = {.qp = qp, .epoch = qp->epoch, .place = place + 1, .wc = {.wr_id = send->wr_id, .status = status, .qp_num = qp->ibv.qp_num}};

    free(send->inline_data);
    send->inline_data = NULL;
    if (IBV_WC_SUCCESS == status) {
        if (!send->is_signaled) {
            return;
        }
        cqe.wc.opcode = (enum ibv_wc_opcode) opcodes[send->opcode];
        cqe.wc.byte_len = send->length;
    } else {
        fill_bad(&cqe.wc);
    }
    fabric_cq_push(qp->send_cq, &cqe);
}

void fabric_complete_recv(fabric_qp_t *qp, const fabric_recv_t *recv, enum ibv_wc_status status, uint32_t length, const fabric_packet_t *packet)
{
    fabric_cqe_t cqe = {.qp = qp,
                        .epoch = qp->epoch,
                        .rq = NULL != qp->srq ? &qp->srq->rq : &qp->rq,
                        .wc = {.wr_id = recv->wr_id, .status = status, .opcode = IBV_WC_RECV, .qp_num = qp->ibv.qp_num, .byte_len = length}};

    if (IBV_WC_SUCCESS != status) {
        fill_bad(&cqe.wc);
    } else if (PACKET_DATAGRAM == packet->kind) {
        cqe.wc.src_qp = packet->from_qpn;
        cqe.wc.slid = fabric_lid(packet->from);
        cqe.wc.wc_flags = packet->is_global ? IBV_WC_GRH : 0;
    }
    fabric_cq_push(qp->recv_cq, &cqe);
}

/* The context's operations call it, therefore it is not static. */
int fabric_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
    fabric_cq_t *cq = FABRIC_OF(fabric_cq_t, ibv);
    int n = 0;

    fabric_object_check(&cq->object, "ibv_poll_cq");
    if (fabric_fails(CALL_poll_cq, cq->object.context)) {
        return -1;
    }
    for (; n < count && 0 < cq->count; ++n) {
        const fabric_cqe_t *cqe = &cq->ring[cq->first];
        wc[n] = cqe->wc;
        release(cqe);
        cq->first = (cq->first + 1) % cq->size;
        --cq->count;
    }
    return n;
}

int fabric_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
    fabric_cq_t *cq = FABRIC_OF(fabric_cq_t, ibv);

    fabric_object_check(&cq->object, "ibv_req_notify_cq");
    if (fabric_fails(CALL_req_notify_cq, cq->object.context)) {
        return ENOMEM;
    }
    cq->is_armed = true;
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
    fabric_cq_t *cq;

    if (1 > cqe || FABRIC_MAX_CQE < cqe || 0 > vector || context->num_comp_vectors <= vector) {
        errno = EINVAL;
        return NULL;
    }
    cq = fabric_object_new(FABRIC_CQ, FABRIC_OF(fabric_context_t, context), sizeof(*cq), CALL_create_cq);
    if (NULL == cq) {
        return NULL;
    }
    cq->ring = calloc((size_t) cqe, sizeof(*cq->ring));
    if (NULL == cq->ring) {
        abort();
    }
    cq->size = (uint32_t) cqe;
    cq->ibv.context = context;
    cq->ibv.channel = channel;
    cq->ibv.cq_context = cq_context;
    cq->ibv.handle = cq->object.number;
    cq->ibv.cqe = cqe;
    if (NULL != channel) {
        ++FABRIC_OF(fabric_channel_t, channel)->object.users;
        ++channel->refcnt;
    }
    return &cq->ibv;
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
    fabric_cq_t *cq = FABRIC_OF(fabric_cq_t, ibv);

    fabric_object_check(&cq->object, "ibv_destroy_cq");
    if (0 < cq->object.users) {
        return EBUSY;
    }
    fabric_unraise(&cq->object);
    if (NULL != ibv->channel) {
        --FABRIC_OF(fabric_channel_t, ibv->channel)->object.users;
        --ibv->channel->refcnt;
    }
    free(cq->ring);
    cq->ring = NULL;
    fabric_object_end(&cq->object);
    return 0;
}

/* ---- channels ----------------------------------------------------------------------------------------- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    fabric_channel_t *channel = fabric_object_new(FABRIC_CHANNEL, FABRIC_OF(fabric_context_t, context), sizeof(*channel), CALL_create_channel);

    if (NULL == channel) {
        return NULL;
    }
    channel->ibv.context = context;
    channel->ibv.fd = world_fd_make();
    return &channel->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    fabric_channel_t *channel = FABRIC_OF(fabric_channel_t, ibv);

    fabric_object_check(&channel->object, "ibv_destroy_comp_channel");
    if (0 < channel->object.users) {
        return EBUSY;
    }
    world_fd_free(ibv->fd);
    free(channel->events);
    channel->events = NULL;
    fabric_object_end(&channel->object);
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
    fabric_channel_t *channel = FABRIC_OF(fabric_channel_t, ibv);

    fabric_object_check(&channel->object, "ibv_get_cq_event");
    if (0 == channel->event_count) {
        errno = EAGAIN;
        return -1;
    }
    *cq = &channel->events[0]->ibv;
    *cq_context = (*cq)->cq_context;
    memmove(channel->events, channel->events + 1, --channel->event_count * sizeof(fabric_cq_t *));
    world_fd_ready(ibv->fd, 0 < channel->event_count);
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count) {}

/* ---- events of devices -------------------------------------------------------------------------------- */

typedef struct {
    fabric_context_t *context;
    fabric_object_t *object;
    struct ibv_async_event event;
} raised_t;

static void event_comes(void *argument)
{
    raised_t *raised = argument;
    fabric_context_t *context = raised->context;

    if (!context->object.is_gone && (NULL == raised->object || !raised->object->is_gone)) {
        context->events = room_for(context->events, context->event_count, &context->event_room, sizeof(context->events[0]));
        context->events[context->event_count++] = raised->event;
        world_fd_ready(context->ibv.async_fd, true);
    }
    free(raised);
}

void fabric_raise(fabric_context_t *context, enum ibv_event_type type, fabric_object_t *object)
{
    raised_t *raised = calloc(1, sizeof(*raised));
    uint64_t when = world_now + (0 == fabric.habits.event_delay ? 0 : world_draw((unsigned) fabric.habits.event_delay + 1));

    if (NULL == raised) {
        abort();
    }
    raised->context = context;
    raised->object = object;
    raised->event.event_type = type;
    if (NULL == object) {
        raised->event.element.port_num = 1;
    } else if (FABRIC_QP == object->kind) {
        raised->event.element.qp = &((fabric_qp_t *) object)->ibv;
    } else if (FABRIC_CQ == object->kind) {
        raised->event.element.cq = &((fabric_cq_t *) object)->ibv;
    } else {
        raised->event.element.srq = &((fabric_srq_t *) object)->ibv;
    }
    if (when < context->event_at) {
        when = context->event_at;
    }
    context->event_at = when;
    world_at(when, event_comes, raised);
}

/* What an event names, as a pointer to compare with. */
static const void *named_by(const fabric_object_t *object)
{
    switch (object->kind) {
    case FABRIC_QP:
        return &((const fabric_qp_t *) object)->ibv;
    case FABRIC_SRQ:
        return &((const fabric_srq_t *) object)->ibv;
    case FABRIC_CQ:
        return &((const fabric_cq_t *) object)->ibv;
    default:
        return NULL;
    }
}

static bool names(const struct ibv_async_event *event, const void *object)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        return object == event->element.cq;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return object == event->element.srq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return object == event->element.qp;
    default:
        return false;
    }
}

void fabric_unraise(const fabric_object_t *object)
{
    fabric_context_t *context = object->context;
    const void *named = named_by(object);
    unsigned kept = 0;

    for (unsigned i = 0; NULL != named && i < context->event_count; ++i) {
        if (!names(&context->events[i], named)) {
            context->events[kept++] = context->events[i];
        }
    }
    if (NULL != named) {
        context->event_count = kept;
        world_fd_ready(context->ibv.async_fd, 0 < kept);
    }
    if (FABRIC_CQ == object->kind && NULL != ((const fabric_cq_t *) object)->ibv.channel) {
        fabric_channel_t *channel = FABRIC_OF(fabric_channel_t, ((const fabric_cq_t *) object)->ibv.channel);
        kept = 0;
        for (unsigned i = 0; i < channel->event_count; ++i) {
            if (&channel->events[i]->object != object) {
                channel->events[kept++] = channel->events[i];
            }
        }
        channel->event_count = kept;
        world_fd_ready(channel->ibv.fd, 0 < kept);
    }
}

int ibv_get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
    fabric_context_t *context = FABRIC_OF(fabric_context_t, ibv);

    fabric_object_check(&context->object, "ibv_get_async_event");
    if (0 == context->event_count) {
        errno = EAGAIN;
        return -1;
    }
    *event = context->events[0];
    memmove(context->events, context->events + 1, --context->event_count * sizeof(context->events[0]));
    world_fd_ready(ibv->async_fd, 0 < context->event_count);
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event) {}
