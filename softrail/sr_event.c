/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Completion channels and asynchronous events. Each is a FIFO in the fabric's directory. A FIFO works with poll() and
 * O_NONBLOCK. Its name has the incarnation, so a late event cannot reach a new process of the same slot. An event has a
 * type and a handle, which is looked up here. DESIGN.txt 16.
 */
#include "sr_event.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- handles ------------------------------------------------------------------------------------ */

static struct {
    pthread_mutex_t mutex;
    void **objects;
    uint32_t room, hint;
} handles = {.mutex = PTHREAD_MUTEX_INITIALIZER};

uint32_t sr_handle_add(void *object)
{
    uint32_t id = 0;

    pthread_mutex_lock(&handles.mutex);
    for (uint32_t i = 0; i < handles.room && 0 == id; ++i) {
        uint32_t at = (handles.hint + i) % handles.room;
        if (0 != at && NULL == handles.objects[at]) {
            id = at;
        }
    }
    if (0 == id) {
        uint32_t room = 2 * handles.room + 64;
        void **grown = realloc(handles.objects, room * sizeof(*grown));
        if (NULL != grown) {
            for (uint32_t i = handles.room; i < room; ++i) {
                grown[i] = NULL;
            }
            id = 0 == handles.room ? 1 : handles.room;
            handles.objects = grown;
            handles.room = room;
        }
    }
    if (0 != id) {
        handles.objects[id] = object;
        handles.hint = id + 1;
    }
    pthread_mutex_unlock(&handles.mutex);
    return id;
}

void *sr_handle_get(uint32_t id)
{
    void *object;

    pthread_mutex_lock(&handles.mutex);
    object = id < handles.room ? handles.objects[id] : NULL;
    pthread_mutex_unlock(&handles.mutex);
    return object;
}

void sr_handle_remove(uint32_t id)
{
    if (0 == id) {
        return;
    }
    pthread_mutex_lock(&handles.mutex);
    handles.objects[id] = NULL;
    pthread_mutex_unlock(&handles.mutex);
}

/* ---- FIFOs -------------------------------------------------------------------------------------- */

uint32_t sr_fifo_open(int *fd)
{
    char path[SR_PATH_MAX];
    uint32_t number;

    pthread_mutex_lock(&sr.mutex);
    number = sr.next_fifo++;
    pthread_mutex_unlock(&sr.mutex);
    sr_fabric_fifo_path(&sr.fabric, sr.word, number, path);
    if (0 != mkfifo(path, 0600)) {
        return 0;
    }
    *fd = open(path, O_RDWR | O_CLOEXEC);
    if (0 > *fd) {
        unlink(path);
        return 0;
    }
    return number;
}

void sr_fifo_close(uint32_t number, int fd)
{
    char path[SR_PATH_MAX];

    sr_fabric_fifo_path(&sr.fabric, sr.word, number, path);
    unlink(path);
    close(fd);
}

/* Descriptors of the FIFOs that this process writes to. */
#define SR_CACHED_FIFOS 64
static struct {
    pthread_mutex_t mutex;
    struct {
        uint32_t word, fifo;
        int fd;
    } entry[SR_CACHED_FIFOS];
    unsigned next;
} cache = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Locks: cache.mutex held. */
static int cached_fd(uint32_t word, uint32_t fifo)
{
    char path[SR_PATH_MAX];
    int fd;
    unsigned at = cache.next % SR_CACHED_FIFOS;

    for (unsigned i = 0; i < SR_CACHED_FIFOS; ++i) {
        if (word == cache.entry[i].word && fifo == cache.entry[i].fifo) {
            return cache.entry[i].fd;
        }
    }
    sr_fabric_fifo_path(&sr.fabric, word, fifo, path);
    fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (0 > fd) {
        return fd;
    }
    if (0 != cache.entry[at].word) {
        close(cache.entry[at].fd);
    }
    cache.entry[at].word = word;
    cache.entry[at].fifo = fifo;
    cache.entry[at].fd = fd;
    cache.next++;
    return fd;
}

void sr_event_send(struct sr_peer *peer, uint32_t fifo, uint32_t type, uint32_t id)
{
    struct sr_event event = {.type = type, .id = id};
    int fd;

    if (0 == fifo || !sr_peer_is_alive(peer)) {
        return;
    }
    pthread_mutex_lock(&cache.mutex);
    fd = cached_fd(peer->word, fifo);
    if (0 <= fd) {
        sigset_t pipe_only, before;
        sigemptyset(&pipe_only);
        sigaddset(&pipe_only, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
        if (0 > write(fd, &event, sizeof(event)) && EPIPE == errno) {
            static const struct timespec now = {0, 0};
            sigtimedwait(&pipe_only, NULL, &now);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_mutex_unlock(&cache.mutex);
}

/* ---- acknowledgements --------------------------------------------------------------------------- */

void sr_acks_init(struct sr_acks *acks)
{
    pthread_mutex_init(&acks->mutex, NULL);
    pthread_cond_init(&acks->cond, NULL);
    acks->handed_out = acks->acknowledged = 0;
}

static void acks_hand_out(struct sr_acks *acks)
{
    pthread_mutex_lock(&acks->mutex);
    acks->handed_out++;
    pthread_mutex_unlock(&acks->mutex);
}

static void acks_add(struct sr_acks *acks, unsigned count)
{
    pthread_mutex_lock(&acks->mutex);
    acks->acknowledged += count;
    pthread_cond_broadcast(&acks->cond);
    pthread_mutex_unlock(&acks->mutex);
}

void sr_acks_wait(struct sr_acks *acks)
{
    pthread_mutex_lock(&acks->mutex);
    while (0 < (int32_t) (acks->handed_out - acks->acknowledged)) {
        pthread_cond_wait(&acks->cond, &acks->mutex);
    }
    pthread_mutex_unlock(&acks->mutex);
}

/* Returns the counter of the object that an event belongs to; NULL for port events, or if the object is gone. `fill`: look the object up
 * by its handle. */
static struct sr_acks *event_owner(struct ibv_async_event *event, uint32_t id, bool fill)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        if (fill) {
            event->element.cq = sr_handle_get(id);
        }
        return NULL == event->element.cq ? NULL : &sr_cq(event->element.cq)->async_acks;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        if (fill) {
            event->element.qp = sr_handle_get(id);
        }
        return NULL == event->element.qp ? NULL : &sr_qp(event->element.qp)->acks;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        if (fill) {
            event->element.srq = sr_handle_get(id);
        }
        return NULL == event->element.srq ? NULL : &sr_srq(event->element.srq)->acks;
    default:
        if (fill) {
            event->element.port_num = (int) id;
        }
        return NULL;
    }
}

static int read_event(int fd, struct sr_event *event)
{
    ssize_t n = read(fd, event, sizeof(*event));

    if ((ssize_t) sizeof(*event) == n) {
        return 0;
    }
    errno = 0 > n ? errno : EIO;
    return -1;
}

int sr_event_get(struct ibv_context *context, struct ibv_async_event *event)
{
    struct sr_event raw;

    for (;;) {
        struct sr_acks *acks;
        if (0 != read_event(context->async_fd, &raw)) {
            return -1;
        }
        event->event_type = (enum ibv_event_type) raw.type;
        acks = event_owner(event, raw.id, true);
        if (NULL != acks) {
            acks_hand_out(acks);
            return 0;
        }
        if (NULL == event->element.cq) {
            continue; /* its object has been destroyed meanwhile */
        }
        return 0;
    }
}

void sr_event_ack(struct ibv_async_event *event)
{
    struct sr_acks *acks = event_owner(event, 0, false);

    if (NULL != acks) {
        acks_add(acks, 1);
    }
}

/* ---- completion channels ------------------------------------------------------------------------ */

struct ibv_comp_channel *sr_channel_create(struct ibv_context *context)
{
    struct sr_channel *channel = calloc(1, sizeof(*channel));

    if (NULL == channel) {
        return NULL;
    }
    channel->fifo = sr_fifo_open(&channel->ibv.fd);
    if (0 == channel->fifo) {
        free(channel);
        return NULL;
    }
    channel->ibv.context = context;
    return &channel->ibv;
}

int sr_channel_destroy(struct ibv_comp_channel *channel)
{
    if (0 != channel->refcnt) {
        return EBUSY;
    }
    sr_fifo_close(sr_channel(channel)->fifo, channel->fd);
    free(channel);
    return 0;
}

int sr_channel_get(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    struct sr_event raw;
    struct sr_cq *found;

    do {
        if (0 != read_event(channel->fd, &raw)) {
            return -1;
        }
        found = sr_handle_get(raw.id);
    } while (NULL == found || SR_EVENT_COMPLETION != raw.type);
    acks_hand_out(&found->comp_acks);
    *cq = &found->ibv;
    *cq_context = found->ibv.cq_context;
    return 0;
}

void sr_channel_ack(struct ibv_cq *cq, unsigned count)
{
    acks_add(&sr_cq(cq)->comp_acks, count);
}

void sr_event_reset(void)
{
    pthread_mutex_init(&handles.mutex, NULL);
    pthread_mutex_init(&cache.mutex, NULL);
}
