/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Event channels of librdmacm: a queue of events and an epoll descriptor. The descriptor watches a semaphore that counts
 * the events, the sockets that may bring more, a timer while an identifier waits for time to pass, and the devices' own
 * events, which say when to check whether a device is gone. DESIGN.txt 16.
 */
#include "sr_cm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SR_PUBLIC __attribute__((visibility("default")))

enum { SR_CM_TICK_NS = 10000000 };

static char ticker_mark, device_mark; /* marks in epoll data, in the place of an identifier */

static bool watch_fd(struct sr_cm_channel *channel, int fd, uint32_t events, void *mark)
{
    struct epoll_event watch = {.events = events, .data.ptr = mark};

    return 0 == epoll_ctl(channel->rdma.fd, EPOLL_CTL_ADD, fd, &watch);
}

SR_PUBLIC struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct sr_cm_channel *channel;
    int rc = sr_attach();

    if (0 != rc || NULL == (channel = calloc(1, sizeof(*channel)))) {
        errno = 0 != rc ? ENODEV : ENOMEM;
        return NULL;
    }
    channel->last = &channel->first;
    pthread_mutex_init(&channel->mutex, NULL);
    channel->ready = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
    channel->ticker = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    channel->rdma.fd = epoll_create1(EPOLL_CLOEXEC);
    if (0 > channel->ready || 0 > channel->ticker || 0 > channel->rdma.fd || !watch_fd(channel, channel->ready, EPOLLIN, NULL)
        || !watch_fd(channel, channel->ticker, EPOLLIN, &ticker_mark)) {
        rdma_destroy_event_channel(&channel->rdma);
        return NULL;
    }
    return &channel->rdma;
}

/* Channels that another thread than the destroying one has read. That thread may still use the channel, as in rping. */
static struct sr_cm_channel *_Atomic closed_channels;

static void keep_closed(struct sr_cm_channel *channel)
{
    channel->next_closed = atomic_load(&closed_channels);
    while (!atomic_compare_exchange_weak(&closed_channels, &channel->next_closed, channel)) {
    }
}

SR_PUBLIC void rdma_destroy_event_channel(struct rdma_event_channel *rdma)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma);
    struct sr_cm_event *event;
    int error = errno;
    bool is_ours;

    pthread_mutex_lock(&channel->mutex);
    while (NULL != (event = channel->first)) {
        channel->first = event->next;
        free(event);
    }
    channel->last = &channel->first;
    channel->closed = true;
    is_ours = !channel->is_read || (!channel->by_others && pthread_equal(channel->reader, pthread_self()));
    close(channel->ready);
    close(channel->ticker);
    close(rdma->fd);
    pthread_mutex_unlock(&channel->mutex);
    if (is_ours) {
        free(channel);
    } else {
        keep_closed(channel);
    }
    errno = error;
}

/* ---- what the channel listens to ---------------------------------------------------------------- */

void sr_cm_watch(struct sr_cm_id *id)
{
    watch_fd(sr_cm_channel(id->rdma.channel), id->fd, EPOLLIN, id);
}

/* Watches only edges, because the program reads these events itself. */
void sr_cm_watch_device(struct sr_cm_id *id)
{
    if (NULL != id->rdma.verbs) {
        watch_fd(sr_cm_channel(id->rdma.channel), id->rdma.verbs->async_fd, EPOLLIN | EPOLLET, &device_mark);
    }
}

void sr_cm_tick(struct sr_cm_channel *channel, bool on)
{
    const struct timespec period = {.tv_nsec = on ? SR_CM_TICK_NS : 0};
    const struct itimerspec time = {.it_value = period, .it_interval = period};

    if (on != channel->ticking) {
        channel->ticking = on;
        timerfd_settime(channel->ticker, 0, &time, NULL);
    }
}

void sr_cm_list_add(struct sr_cm_id *id)
{
    struct sr_cm_channel *channel = sr_cm_channel(id->rdma.channel);

    id->next = channel->ids;
    id->link = &channel->ids;
    if (NULL != id->next) {
        id->next->link = &id->next;
    }
    channel->ids = id;
}

void sr_cm_list_remove(struct sr_cm_id *id)
{
    if (NULL != id->link) {
        *id->link = id->next;
        if (NULL != id->next) {
            id->next->link = id->link;
        }
        id->link = NULL;
    }
}

void sr_cm_unwatch(struct sr_cm_id *id)
{
    if (0 <= id->fd) {
        epoll_ctl(id->rdma.channel->fd, EPOLL_CTL_DEL, id->fd, NULL);
    }
}

/* ---- events ------------------------------------------------------------------------------------- */

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
    event->rdma = (struct rdma_cm_event){.id = &id->rdma, .event = type, .status = status, .listen_id = NULL == listener ? NULL : &listener->rdma};
    conn = &event->rdma.param.conn;
    if (RDMA_CM_EVENT_CONNECT_REQUEST == type || RDMA_CM_EVENT_CONNECT_RESPONSE == type || RDMA_CM_EVENT_REJECTED == type
        || RDMA_CM_EVENT_UNREACHABLE == type || (RDMA_CM_EVENT_ESTABLISHED == type && !id->passive)) {
        const struct sr_cm_letter *peer = &id->peer;
        memcpy(event->data, peer->data, peer->length);
        *conn = (struct rdma_conn_param){.private_data = 0 < peer->length ? event->data : NULL,
                                         .private_data_len = peer->length,
                                         .responder_resources = peer->initiator_depth,
                                         .initiator_depth = peer->responder_resources,
                                         .flow_control = peer->flow_control,
                                         .retry_count = peer->retry_count,
                                         .rnr_retry_count = peer->rnr_retry_count,
                                         .srq = peer->srq,
                                         .qp_num = peer->qpn};
    }
    if (IBV_QPT_UD == id->rdma.qp_type && RDMA_CM_EVENT_ESTABLISHED == type) {
        struct rdma_ud_param ud = {
            .private_data = conn->private_data, .private_data_len = conn->private_data_len, .qp_num = id->peer.qpn, .qkey = RDMA_UDP_QKEY};
        sr_cm_address_peer(id, &ud.ah_attr);
        event->rdma.param.ud = ud;
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
        struct sr_cm_event ***last = &id->rdma == event->rdma.id || &id->rdma == event->rdma.listen_id ? &taken_last : &kept_last;
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

/* Requests that a listener has not handed out are closed; their peers see a reject. */
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
    sr_cm_list_remove(id);
    id->rdma.channel = &to->rdma;
    sr_cm_list_add(id);
    sr_cm_watch_device(id);
    if (0 <= id->fd && !id->held) {
        sr_cm_watch(id);
    }
    if (id->held || 0 != id->deadline) {
        sr_cm_tick(to, true);
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

/* ---- waiting ------------------------------------------------------------------------------------ */

static void on_tick(struct sr_cm_channel *channel)
{
    bool more = false;
    uint64_t times;

    if (0 > read(channel->ticker, &times, sizeof(times))) {
        return;
    }
    for (struct sr_cm_id *id = channel->ids, *next; NULL != id; id = next) {
        next = id->next;
        more |= sr_cm_on_tick(id);
    }
    sr_cm_tick(channel, more);
}

/* Ends the identifiers whose device is gone. An incoming one that the program does not know yet has no rail; it ends with its peer's. */
static void on_device(struct sr_cm_channel *channel)
{
    for (struct sr_cm_id *id = channel->ids; NULL != id; id = id->next) {
        if (0 <= id->rail && !id->removed && atomic_load(&sr.fabric.shm->rail[id->rail].gone)) {
            id->removed = true;
            sr_cm_end(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
        }
    }
}

/* Handles one ready descriptor of the channel. Locks: the channel's mutex is held. */
static void look(struct sr_cm_channel *channel)
{
    struct epoll_event watch;

    if (1 > epoll_wait(channel->rdma.fd, &watch, 1, 0)) {
        return;
    }
    if (&ticker_mark == watch.data.ptr) {
        on_tick(channel);
    } else if (&device_mark == watch.data.ptr) {
        on_device(channel);
    } else if (NULL != watch.data.ptr) {
        sr_cm_readable(watch.data.ptr);
    }
}

static void note_reader(struct sr_cm_channel *channel)
{
    if (!channel->is_read) {
        channel->is_read = true;
        channel->reader = pthread_self();
    } else if (!pthread_equal(channel->reader, pthread_self())) {
        channel->by_others = true;
    }
}

/* The next event, or NULL if there is none yet. On a closed channel the caller sleeps forever, like a thread that the kernel
 * blocks while another thread closes the file. */
static struct sr_cm_event *next_event(struct sr_cm_channel *channel)
{
    struct sr_cm_event *event;

    pthread_mutex_lock(&channel->mutex);
    if (channel->closed) {
        pthread_mutex_unlock(&channel->mutex);
        for (;;) {
            pause();
        }
    }
    note_reader(channel);
    look(channel);
    event = take_first(channel);
    if (NULL != event) {
        struct rdma_cm_event *rdma_event = &event->rdma; /* a request counts for its listener */
        sr_cm_id(NULL != rdma_event->listen_id ? rdma_event->listen_id : rdma_event->id)->acks.handed_out++;
    }
    pthread_mutex_unlock(&channel->mutex);
    return event;
}

static bool is_request_to_sync(const struct rdma_cm_event *event)
{
    return RDMA_CM_EVENT_CONNECT_REQUEST == event->event && sr_cm_id(event->listen_id)->sync;
}

SR_PUBLIC int rdma_get_cm_event(struct rdma_event_channel *rdma, struct rdma_cm_event **result)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma);
    struct pollfd wait = {.fd = rdma->fd, .events = POLLIN};
    int flags;

    for (;;) {
        struct sr_cm_event *event = next_event(channel);
        if (NULL != event && is_request_to_sync(&event->rdma) && !sr_cm_make_sync(sr_cm_id(event->rdma.id))) {
            struct rdma_cm_id *refused = event->rdma.id;
            rdma_ack_cm_event(&event->rdma);
            rdma_destroy_id(refused);
            continue;
        }
        if (NULL != event) {
            *result = &event->rdma;
            return 0;
        }
        flags = fcntl(wait.fd, F_GETFL); /* -1: another thread has closed the channel */
        if (0 == poll(&wait, 1, 0) && 0 <= flags && 0 != (flags & O_NONBLOCK)) {
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
