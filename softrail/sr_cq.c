/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Completion queues. Receive completions come through a ring in the arena, which the senders fill; send completions
 * come through a ring of this process. The process that adds an entry wakes the owner if the queue is armed.
 * DESIGN.txt 16.
 */
#include "sr_cq.h"
#include "bfo_assert.h"
#include "sr_device.h"
#include "sr_event.h"
#include "sr_pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t ring_entries(int entries)
{
    uint32_t n = 16;

    while (n < (uint32_t) entries) {
        n *= 2;
    }
    BFO_ASSERT(n >= (uint32_t) entries && 0 == (n & (n - 1)));
    return n;
}

static void cq_init(struct sr_cq *cq, struct ibv_context *context, struct ibv_comp_channel *channel, uint32_t entries, uint64_t ring)
{
    struct sr_cq_shm *shm = cq->shm;

    BFO_ASSERT(0 != ring && 0 == (entries & (entries - 1)));
    sr_lock(&shm->lock);
    shm->produced = shm->consumed_seen = 0;
    atomic_store(&shm->consumed, 0);
    atomic_store(&shm->armed, 0);
    shm->ring = ring;
    shm->mask = entries - 1;
    shm->id = cq->id;
    shm->fifo = NULL == channel ? 0 : sr_channel(channel)->fifo;
    shm->event_fifo = sr_context(context)->fifo;
    sr_unlock(&shm->lock);
    cq->kick_seen = atomic_load(&shm->kick);
    cq->ring = sr_at(ring);
    cq->mask = entries - 1;
    pthread_mutex_init(&cq->lock, NULL);
    sr_acks_init(&cq->comp_acks);
    sr_acks_init(&cq->async_acks);
}

struct ibv_cq *sr_cq_create(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
    struct sr_cq *cq;
    uint64_t ring;
    int rc = sr_device_check(context);

    if (0 == rc && (1 > entries || SR_MAX_CQE < entries || 0 > vector || context->num_comp_vectors <= vector)) {
        rc = EINVAL;
    }
    if (0 != rc) {
        errno = rc;
        return NULL;
    }
    cq = calloc(1, sizeof(*cq));
    ring = sr_arena_alloc(ring_entries(entries) * sizeof(struct sr_cqe));
    if (NULL == cq || 0 == ring || 0 == (cq->offset = sr_stable_alloc(SR_STABLE_CQ)) || 0 == (cq->id = sr_handle_add(cq))) {
        sr_stable_free(SR_STABLE_CQ, NULL == cq ? 0 : cq->offset);
        sr_arena_free(ring, ring_entries(entries) * sizeof(struct sr_cqe));
        free(cq);
        errno = ENOMEM;
        return NULL;
    }
    cq->shm = sr_at(cq->offset);
    cq_init(cq, context, channel, ring_entries(entries), ring);
    cq->ibv.context = context;
    cq->ibv.channel = channel;
    cq->ibv.cq_context = cq_context;
    cq->ibv.handle = cq->id;
    cq->ibv.cqe = (int) ring_entries(entries) - 1;
    pthread_mutex_init(&cq->ibv.mutex, NULL);
    pthread_cond_init(&cq->ibv.cond, NULL);
    if (NULL != channel) {
        channel->refcnt++;
    }
    return &cq->ibv;
}

int sr_cq_destroy(struct ibv_cq *ibv)
{
    struct sr_cq *cq = sr_cq(ibv);

    if (0 != atomic_load(&cq->uses)) {
        return EBUSY;
    }
    sr_handle_remove(cq->id);
    sr_acks_wait(&cq->comp_acks);
    sr_acks_wait(&cq->async_acks);
    if (NULL != ibv->channel) {
        ibv->channel->refcnt--;
    }
    sr_arena_free(cq->shm->ring, (cq->mask + 1) * sizeof(struct sr_cqe));
    sr_stable_free(SR_STABLE_CQ, cq->offset);
    free(cq->local);
    free(cq);
    return 0;
}

int sr_cq_resize(struct ibv_cq *ibv, int entries)
{
    struct sr_cq *cq = sr_cq(ibv);
    uint32_t n = ring_entries(entries), old_mask = cq->mask;
    uint64_t fresh, old;
    int rc = sr_device_check(ibv->context);

    if (0 == rc && (1 > entries || SR_MAX_CQE < entries)) {
        rc = EINVAL;
    }
    if (0 != rc || 0 == (fresh = sr_arena_alloc(n * sizeof(struct sr_cqe)))) {
        return 0 != rc ? rc : ENOMEM;
    }
    /* sr_cq_push takes the same lock, so no process writes into the old ring while we hold it. */
    sr_lock(&cq->shm->lock);
    pthread_mutex_lock(&cq->lock);
    if (cq->shm->produced - cq->consumed > n) {
        rc = EINVAL; /* more completions are waiting than would fit */
    } else {
        struct sr_cqe *ring = sr_at(fresh);
        for (uint32_t at = cq->consumed; at != cq->shm->produced; ++at) {
            memcpy(&ring[at & (n - 1)], &cq->ring[at & cq->mask], sizeof(*ring));
        }
        old = cq->shm->ring;
        cq->shm->ring = fresh;
        cq->shm->mask = n - 1;
        cq->ring = ring;
        cq->mask = n - 1;
        fresh = old;
        ibv->cqe = (int) n - 1;
    }
    pthread_mutex_unlock(&cq->lock);
    sr_unlock(&cq->shm->lock);
    sr_arena_free(fresh, (0 == rc ? old_mask + 1 : n) * sizeof(struct sr_cqe));
    return rc;
}

int sr_cq_arm(struct ibv_cq *ibv, int solicited_only)
{
    struct sr_cq *cq = sr_cq(ibv);
    uint32_t wanted = solicited_only ? 2 : 1, before = 0;

    /* Arming for solicited completions must not undo arming for any completion. */
    do {
        before = atomic_load(&cq->shm->armed);
    } while (1 != before && !atomic_compare_exchange_weak(&cq->shm->armed, &before, wanted));
    sr_pending_hand_over();
    return 0;
}

void sr_cq_wake(struct sr_peer *peer, struct sr_cq_shm *shm, bool solicited)
{
    uint32_t armed = atomic_load(&shm->armed);

    while (1 == armed || (2 == armed && solicited)) {
        if (atomic_compare_exchange_weak(&shm->armed, &armed, 0)) {
            sr_event_send(peer, shm->fifo, SR_EVENT_COMPLETION, shm->id);
            return;
        }
    }
}

bool sr_cq_has_room(struct sr_peer *peer, uint64_t offset)
{
    struct sr_cq_shm *shm = sr_peer_at(peer, offset, sizeof(*shm));

    if (NULL == shm) {
        return false;
    }
    if (sr_unlikely(shm->produced - shm->consumed_seen > shm->mask)) {
        return shm->produced - atomic_load(&shm->consumed) <= shm->mask;
    }
    return true;
}

bool sr_cq_push(struct sr_peer *peer, uint64_t offset, const struct sr_cqe *cqe, bool solicited)
{
    struct sr_cq_shm *shm = sr_peer_at(peer, offset, sizeof(*shm));
    struct sr_cqe *ring, *slot;
    bool done = false;

    if (NULL == shm) {
        return false;
    }
    sr_lock(&shm->lock);
    if (sr_unlikely(shm->produced - shm->consumed_seen > shm->mask)) {
        shm->consumed_seen = atomic_load_explicit(&shm->consumed, memory_order_acquire);
    }
    ring = sr_peer_at(peer, shm->ring, ((size_t) shm->mask + 1) * sizeof(*ring));
    if (NULL != ring && shm->produced - shm->consumed_seen <= shm->mask) {
        slot = &ring[shm->produced & shm->mask];
        memcpy((char *) slot + sizeof(slot->seq), (const char *) cqe + sizeof(cqe->seq), sizeof(*slot) - sizeof(slot->seq));
        shm->produced++;
        atomic_store_explicit(&slot->seq, shm->produced, memory_order_release);
        done = true;
    }
    sr_unlock(&shm->lock);
    if (done) {
        sr_cq_wake(peer, shm, solicited);
    }
    return done;
}
