/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The queues of work that waits for the rails of its peer. DESIGN.txt sections 9 and 14.4.
 */
#include "types/pml_bfo.h"

#include "types/pml_bfo_local.h"
#include "types/pml_bfo_params.h"
#include "rails/pml_bfo_pending.h"

#include "opal/runtime/opal_progress.h"

/* Refusals after which progress ends the visit of a peer. */
#define MAX_REFUSALS 16u

bool bfo_resend_may_go(bfo_peer_t *peer)
{
    return peer->resends++ < bfo_param(resend_burst);
}

/* Lock: pending_lock */
static void work_append(bfo_peer_t *peer, bfo_work_t *work)
{
    BFO_ASSERT(!work->queued);
    BFO_ASSERT(bfo_link_is_empty(&peer->waiting) == (0 == peer->n_waiting));
    if (bfo_link_is_empty(&peer->waiting)) {
        bfo_link_append(&bfo.pending, &peer->turn);
    }
    bfo_link_append(&peer->waiting, &work->link);
    work->queued = true;
    ++peer->n_waiting;
    peer->n_bound += work->is_bound;
    ++bfo.n_pending;
    BFO_ASSERT(peer->n_bound <= peer->n_waiting);
    BFO_ASSERT(peer->n_waiting <= bfo.n_pending);
    BFO_ASSERT(!bfo_link_is_empty(&bfo.pending)); /* progress finds the peer */
}

static bool work_queue(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work), bool is_resend, bool is_bound)
{
    bool is_first;

    BFO_LOCK(&bfo.pending_lock);
    if (work->queued) {
        BFO_UNLOCK(&bfo.pending_lock);
        return false;
    }
    work->retry = retry;
    work->is_resend = is_resend;
    work->is_bound = is_bound;
    work_append(peer, work);
    is_first = !bfo.progress_registered;
    bfo.progress_registered = true;
    BFO_UNLOCK(&bfo.pending_lock);
    bfo_stat_add(BFO_STAT_PENDED, 1);
    if (is_first) {
        opal_progress_register(bfo_progress);
    }
    return true;
}

bool bfo_work_queue(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work))
{
    return work_queue(peer, work, retry, false, false);
}

bool bfo_work_queue_bound(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work))
{
    return work_queue(peer, work, retry, false, true);
}

bool bfo_work_queue_resend(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work))
{
    return work_queue(peer, work, retry, true, false);
}

void bfo_work_forget(bfo_peer_t *peer)
{
    BFO_LOCK(&bfo.pending_lock);
    if (!bfo_link_is_empty(&peer->waiting)) {
        bfo_link_remove(&peer->turn);
        BFO_ASSERT(0 != peer->n_waiting && peer->n_waiting <= bfo.n_pending);
        bfo.n_pending -= peer->n_waiting;
        BFO_ASSERT((0 == bfo.n_pending) == bfo_link_is_empty(&bfo.pending));
    }
    BFO_UNLOCK(&bfo.pending_lock);
}

static void work_put_back(bfo_peer_t *peer, bfo_work_t *work)
{
    BFO_LOCK(&bfo.pending_lock);
    work_append(peer, work);
    BFO_UNLOCK(&bfo.pending_lock);
}

static bfo_work_t *work_pop(bfo_peer_t *peer)
{
    bfo_work_t *work = NULL;

    BFO_LOCK(&bfo.pending_lock);
    if (!bfo_link_is_empty(&peer->waiting)) {
        work = bfo_container(peer->waiting.next, bfo_work_t, link);
        bfo_link_remove(&work->link);
        BFO_ASSERT(work->queued);
        BFO_ASSERT(0 != peer->n_waiting && peer->n_waiting <= bfo.n_pending);
        work->queued = false;
        --peer->n_waiting;
        BFO_ASSERT(!work->is_bound || 0 != peer->n_bound);
        peer->n_bound -= work->is_bound;
        --bfo.n_pending;
        BFO_ASSERT(bfo_link_is_empty(&peer->waiting) == (0 == peer->n_waiting));
        BFO_ASSERT(peer->n_bound <= peer->n_waiting);
        if (bfo_link_is_empty(&peer->waiting)) {
            bfo_link_remove(&peer->turn);
        }
        BFO_ASSERT((0 == bfo.n_pending) == bfo_link_is_empty(&bfo.pending)); /* otherwise progress would stop, or visit nobody */
    }
    BFO_UNLOCK(&bfo.pending_lock);
    return work;
}

/* Refused work goes to the end of the queue, so that a rail without room does not hold up the others. */
static int peer_visit(bfo_peer_t *peer)
{
    const bool is_held = 0 == peer->send_mask && bfo_peer_may_wait(peer); /* no rail takes new work */
    unsigned refusals = 0;
    int done = 0;

    peer->resends = 0;
    if (is_held && (0 == peer->up_mask || 0 == peer->n_bound)) {
        return 0;
    }
    for (uint32_t n = peer->n_waiting; 0 < n && refusals < MAX_REFUSALS; --n) {
        bfo_work_t *work = work_pop(peer);

        if (NULL == work) {
            break;
        }
        if ((is_held && !work->is_bound) || (work->is_resend && !bfo_resend_may_go(peer))) {
            work_put_back(peer, work);
        } else if (OMPI_ERR_OUT_OF_RESOURCE == work->retry(work)) {
            work_put_back(peer, work);
            ++refusals;
        } else {
            ++done;
        }
    }
    return done;
}

static unsigned peers_that_wait(void)
{
    unsigned n = 0;

    BFO_LOCK(&bfo.pending_lock);
    for (const bfo_link_t *l = bfo.pending.next; l != &bfo.pending; l = l->next) {
        ++n;
    }
    BFO_UNLOCK(&bfo.pending_lock);
    return n;
}

/* The peer whose turn it is; its next turn comes after those of all others. */
static bfo_peer_t *peer_next(void)
{
    bfo_link_t *l = NULL;

    BFO_LOCK(&bfo.pending_lock);
    if (!bfo_link_is_empty(&bfo.pending)) {
        l = bfo.pending.next;
        BFO_ASSERT(0 != bfo_container(l, bfo_peer_t, turn)->n_waiting); /* a peer without work has left the ring */
        bfo_link_remove(l);
        bfo_link_append(&bfo.pending, l);
    }
    BFO_UNLOCK(&bfo.pending_lock);
    return NULL == l ? NULL : bfo_container(l, bfo_peer_t, turn);
}

int bfo_progress(void)
{
    int done = 0;

    if (bfo_likely(0 == bfo.n_pending)) {
        return 0;
    }
    for (unsigned n = peers_that_wait(); 0 < n; --n) {
        bfo_peer_t *peer = peer_next();

        if (NULL == peer) {
            break;
        }
        done += peer_visit(peer);
    }
    return done;
}
