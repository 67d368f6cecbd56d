/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Event channels of librdmacm: a queue of events, and an epoll descriptor over a semaphore that counts them and the
 * sockets that may bring more. DESIGN.txt 16.
 */
#include "sr_cm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SR_PUBLIC __attribute__((visibility("default")))

SR_PUBLIC struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct sr_cm_channel *channel;
    struct epoll_event watch = { .events = EPOLLIN };
    int rc = sr_attach();

    if (0 != rc || NULL == (channel = calloc(1, sizeof(*channel)))) {
        errno = 0 != rc ? ENODEV : ENOMEM;
        return NULL;
    }
    channel->last = &channel->first;
    pthread_mutex_init(&channel->mutex, NULL);
    channel->ready = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
    channel->rdma.fd = epoll_create1(EPOLL_CLOEXEC);
    if (0 > channel->ready || 0 > channel->rdma.fd
        || 0 != epoll_ctl(channel->rdma.fd, EPOLL_CTL_ADD, channel->ready, &watch)) {
        rdma_destroy_event_channel(&channel->rdma);
        return NULL;
    }
    return &channel->rdma;
}

SR_PUBLIC void rdma_destroy_event_channel(struct rdma_event_channel *rdma)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma);
    struct sr_cm_event *event;
    int error = errno;

    while (NULL != (event = channel->first)) {
        channel->first = event->next;
        free(event);
    }
    close(channel->ready);
    close(rdma->fd);
    free(channel);
    errno = error;
}

void sr_cm_watch(struct sr_cm_id *id)
{
    struct epoll_event watch = { .events = EPOLLIN, .data.ptr = id };

    epoll_ctl(id->rdma.channel->fd, EPOLL_CTL_ADD, id->fd, &watch);
}

void sr_cm_unwatch(struct sr_cm_id *id)
{
    if (0 <= id->fd) {
        epoll_ctl(id->rdma.channel->fd, EPOLL_CTL_DEL, id->fd, NULL);
    }
}

static void append(struct sr_cm_channel *channel, struct sr_cm_event *event)
{
    uint64_t one = 1;

    event->next = NULL;
    *channel->last = event;
    channel->last = &event->next;
    if (sizeof(one) != write(channel->ready, &one, sizeof(one))) {
        abort(); /* a semaphore of 2^64 is full */
    }
}

void sr_cm_event_add(struct sr_cm_id *id, enum rdma_cm_event_type type, int status, struct sr_cm_id *listener)
{
    struct sr_cm_event *event = calloc(1, sizeof(*event));
    struct rdma_conn_param *conn;

    if (NULL == event) {
        return;
    }
    event->rdma = (struct rdma_cm_event) { .id = &id->rdma, .event = type, .status = status,
                                           .listen_id = NULL == listener ? NULL : &listener->rdma };
    conn = &event->rdma.param.conn;
    if (RDMA_CM_EVENT_CONNECT_REQUEST == type || RDMA_CM_EVENT_CONNECT_RESPONSE == type
        || RDMA_CM_EVENT_REJECTED == type || (RDMA_CM_EVENT_ESTABLISHED == type && !id->passive)) {
        const struct sr_cm_letter *peer = &id->peer;
        memcpy(event->data, peer->data, peer->length);
        *conn = (struct rdma_conn_param) { .private_data = 0 < peer->length ? event->data : NULL,
            .private_data_len = peer->length, .responder_resources = peer->initiator_depth,
            .initiator_depth = peer->responder_resources, .flow_control = peer->flow_control,
            .retry_count = peer->retry_count, .rnr_retry_count = peer->rnr_retry_count, .srq = peer->srq,
            .qp_num = peer->qpn };
    }
    append(sr_cm_channel(id->rdma.channel), event);
}

static struct sr_cm_event *take_first(struct sr_cm_channel *channel)
{
    struct sr_cm_event *event = channel->first;
    uint64_t one;

    if (NULL != event) {
        channel->first = event->next;
        if (NULL == channel->first) {
            channel->last = &channel->first;
        }
        if (0 > read(channel->ready, &one, sizeof(one))) {
            abort();
        }
    }
    return event;
}

/* Takes the events of an identifier, and the requests to it, out of its channel. Returns them in their order. */
static struct sr_cm_event *take_all_of(const struct sr_cm_id *id)
{
    struct sr_cm_channel *channel = sr_cm_channel(id->rdma.channel);
    struct sr_cm_event *event, *kept = NULL, **kept_last = &kept, *taken = NULL, **taken_last = &taken;

    while (NULL != (event = take_first(channel))) {
        struct sr_cm_event ***last = &id->rdma == event->rdma.id || &id->rdma == event->rdma.listen_id ? &taken_last
                                                                                                       : &kept_last;
        event->next = NULL;
        **last = event;
        *last = &event->next;
    }
    for (event = kept; NULL != event; event = kept) {
        kept = event->next;
        append(channel, event);
    }
    return taken;
}

/* What a listener has not handed out is closed: its peer sees a reject. */
void sr_cm_purge(struct sr_cm_id *id)
{
    struct sr_cm_event *event = take_all_of(id), *next;

    for (; NULL != event; event = next) {
        next = event->next;
        if (&id->rdma == event->rdma.listen_id) {
            sr_cm_unwatch(sr_cm_id(event->rdma.id));
            sr_cm_id_free(sr_cm_id(event->rdma.id));
        }
        free(event);
    }
    while (SR_CM_LISTENING == id->state && NULL != id->incoming) {
        struct sr_cm_id *incoming = id->incoming;
        sr_cm_incoming_remove(incoming);
        sr_cm_unwatch(incoming);
        sr_cm_id_free(incoming);
    }
}

static void move(struct sr_cm_id *id, struct sr_cm_channel *to)
{
    sr_cm_unwatch(id);
    id->rdma.channel = &to->rdma;
    if (0 <= id->fd) {
        sr_cm_watch(id);
    }
}

void sr_cm_migrate(struct sr_cm_id *id, struct sr_cm_channel *to)
{
    struct sr_cm_channel *from = sr_cm_channel(id->rdma.channel);
    struct sr_cm_event *event, *next;

    pthread_mutex_lock((uintptr_t) from < (uintptr_t) to ? &from->mutex : &to->mutex);
    pthread_mutex_lock((uintptr_t) from < (uintptr_t) to ? &to->mutex : &from->mutex);
    event = take_all_of(id);
    move(id, to);
    for (; NULL != event; event = next) {
        next = event->next;
        if (&id->rdma == event->rdma.listen_id) {
            move(sr_cm_id(event->rdma.id), to);
        }
        append(to, event);
    }
    if (SR_CM_LISTENING == id->state) {
        for (struct sr_cm_id *incoming = id->incoming; NULL != incoming; incoming = incoming->incoming) {
            move(incoming, to);
        }
    }
    pthread_mutex_unlock(&from->mutex);
    pthread_mutex_unlock(&to->mutex);
}

SR_PUBLIC int rdma_get_cm_event(struct rdma_event_channel *rdma, struct rdma_cm_event **result)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma);
    struct pollfd wait = { .fd = rdma->fd, .events = POLLIN };

    for (;;) {
        struct epoll_event watch[8];
        struct sr_cm_event *event;
        pthread_mutex_lock(&channel->mutex);
        for (int i = 0, n = epoll_wait(rdma->fd, watch, 1, 0); i < n; ++i) {
            if (NULL != watch[i].data.ptr) {
                sr_cm_readable(watch[i].data.ptr);
            }
        }
        event = take_first(channel);
        if (NULL != event) {
            struct rdma_cm_event *rdma_event = &event->rdma; /* a request counts for who listens */
            sr_cm_id(NULL != rdma_event->listen_id ? rdma_event->listen_id : rdma_event->id)->acks.handed_out++;
        }
        pthread_mutex_unlock(&channel->mutex);
        if (NULL != event) {
            *result = &event->rdma;
            return 0;
        }
        if (0 == poll(&wait, 1, 0) && 0 != (fcntl(rdma->fd, F_GETFL) & O_NONBLOCK)) {
            errno = EAGAIN;
            return -1;
        }
        if (0 > poll(&wait, 1, -1)) {
            return -1;
        }
    }
}

SR_PUBLIC int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    struct sr_acks *acks;

    if (NULL == event) {
        errno = EINVAL;
        return -1;
    }
    acks = &sr_cm_id(NULL != event->listen_id ? event->listen_id : event->id)->acks;
    pthread_mutex_lock(&acks->mutex);
    acks->acknowledged++;
    pthread_cond_broadcast(&acks->cond);
    pthread_mutex_unlock(&acks->mutex);
    free(event);
    return 0;
}
