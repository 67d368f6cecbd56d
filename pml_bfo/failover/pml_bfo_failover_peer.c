/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A peer as a whole: declares it unreachable, tests the guards of its requests again, waits for a rail to it, and flushes.
 * What a request does about it is in pml_bfo_failover_actions.c. DESIGN.txt sections 9, 11 and 14.6.
 */
#include "types/pml_bfo.h"

#include "types/pml_bfo_extension.h"
#include "rails/pml_bfo_failover_announce.h"
#include "rails/pml_bfo_failover_fence.h"
#include "failover/pml_bfo_failover_peer.h"
#include "ends/pml_bfo_failover_raise.h"
#include "show/pml_bfo_figures.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_rails.h"
#include "ends/pml_bfo_recv_complete.h"
#include "ends/pml_bfo_send_complete.h"
#include "show/pml_bfo_tell.h"
#include "types/pml_bfo_ulfm.h"

#include "ompi/errhandler/errhandler.h"
#include "opal/runtime/opal_progress.h"

#include <time.h>
#include <unistd.h>

/* ---- every request of a peer ------------------------------------------------------------------------ */

#if PML_BFO
/* Reads only the state of a request, because the request, and its lane with it, may end in another thread. Requests of other peers find
 * their guards unchanged. */
void bfo_failover_settle_all(void)
{
    bfo_local_t *me = bfo_enter(); /* as in fail_all() */

    for (uint32_t i = 0; i < bfo_load(&bfo.sends.size); ++i) {
        bfo_send_t *req = bfo_container(bfo_ids_at(&bfo.sends, i), bfo_send_t, name);

        if (bfo_send_state_is_err(bfo_se_state(bfo_se_load(&req->m)))) {
            bfo_send_get_by_look(req);
            bfo_send_put(req);
        }
    }
    for (uint32_t i = 0; i < bfo_load(&bfo.recvs.size); ++i) {
        bfo_recv_t *req = bfo_container(bfo_ids_at(&bfo.recvs, i), bfo_recv_t, name);

        if (bfo_recv_state_is_err(bfo_se_state(bfo_se_load(&req->m)))) {
            bfo_recv_get_by_look(req);
            bfo_recv_put(req);
        }
    }
    bfo_leave(me);
}
#endif

/* With threads a request may end at any moment, and its communicator with it: therefore its lane is read inside bfo_enter(). lanes_end()
 * has taken posted receives out of matching; a receive that is still UNMATCHED here belongs to a thread that is matching it. A receive that is
 * DEAD may have no lane, and needs nothing. */
static void fail_all(const bfo_peer_t *peer)
{
    bfo_local_t *me = bfo_enter();

    BFO_ASSERT(peer->declared); /* no request to the peer begins any more */
    for (uint32_t i = 0; i < bfo_load(&bfo.sends.size); ++i) {
        bfo_send_t *req = bfo_container(bfo_ids_at(&bfo.sends, i), bfo_send_t, name);

        bfo_send_get_by_look(req);
        if (bfo_send_state_is_open(bfo_se_state(bfo_se_load(&req->m))) && req->lane->peer == peer) {
            bfo_send_fail(req, bfo_lost_error());
        }
        bfo_send_put(req);
    }
    for (uint32_t i = 0; i < bfo_load(&bfo.recvs.size); ++i) {
        bfo_recv_t *req = bfo_container(bfo_ids_at(&bfo.recvs, i), bfo_recv_t, name);

        unsigned state;

        bfo_recv_get_by_look(req);
        state = bfo_se_state(bfo_se_load(&req->m));
        if (bfo_recv_state_is_open(state) && BFO_RECV_UNMATCHED != state && BFO_RECV_DEAD != state && req->lane->peer == peer) {
            bfo_recv_fail(req, bfo_lost_error());
        }
        bfo_recv_put(req);
    }
    bfo_leave(me);
}

#if BFO_OMPI_HAS_ULFM && PML_BFO
/* ---- descriptors that a BTL keeps after the process has failed ---------------------------------------- */

enum { NEVER = 1 << 20 }; /* more events than a request can have */

/* Callbacks that still come find the request, with a lane of its own, because its communicator may be freed. */
static void abandon(bfo_machine_t *m, uint8_t *life, mca_pml_base_request_t *base, bfo_lane_t **lane, bool keeps_lane)
{
    bfo_lane_t *mine = keeps_lane ? NULL : bfo_calloc_line(sizeof(*mine));

    const int32_t events = bfo_add32(&m->events, NEVER);
    const uint8_t before = bfo_set_bits(life, BFO_LIFE_ABANDONED);

    BFO_ASSERT(NEVER < events && events < 2 * NEVER);
    BFO_ASSERT(0 == (before & BFO_LIFE_ABANDONED)); /* a request is abandoned once */
    base->req_type = MCA_PML_REQUEST_NULL;          /* it cannot be started again */
    if (NULL != mine) {
        mine->peer = (*lane)->peer;
        *lane = mine;
    }
}

/* Is it certain that nothing of the peer reaches our memory any more, although its BTLs may keep descriptors? */
static bool is_silent(const bfo_peer_t *peer)
{
    bool is = 0 != peer->n_rails;

    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        is = is && NULL == peer->rails[r].ext && (bfo_failover_cannot_fail(peer->rails[r].btl) || 0 != (peer->closed >> r & 1));
    }
    return is;
}

/* Shared memory returns a fragment when its receiver has read it, and a failed process reads nothing; tcp may keep the fragments of a
 * connection that it has closed. Therefore requests that are DEAD end now, and their objects are not reused. Rails return all descriptors. */
void bfo_failover_abandon(const bfo_peer_t *peer)
{
    bfo_local_t *me;

    if (!BFO_OMPI_ULFM_IS_ON || !peer->declared || !is_silent(peer)) {
        return;
    }
    me = bfo_enter();
    for (uint32_t i = 0; i < bfo_load(&bfo.sends.size); ++i) {
        bfo_send_t *req = bfo_container(bfo_ids_at(&bfo.sends, i), bfo_send_t, name);

        bfo_send_get_by_look(req);
        if (BFO_SEND_DEAD == bfo_se_state(bfo_se_load(&req->m)) && req->lane->peer == peer && 1 < bfo_events_load(&req->m)) {
            abandon(&req->m, &req->life, &req->req_send.req_base, &req->lane, false);
            bfo_failover_send_raise(req, BFO_SEV_ABANDONED, NULL);
        }
        bfo_send_put(req);
    }
    for (uint32_t i = 0; i < bfo_load(&bfo.recvs.size); ++i) {
        bfo_recv_t *req = bfo_container(bfo_ids_at(&bfo.recvs, i), bfo_recv_t, name);

        bfo_recv_get_by_look(req);
        if (BFO_RECV_DEAD == bfo_se_state(bfo_se_load(&req->m)) && req->extras && req->lane->peer == peer && 1 < bfo_events_load(&req->m)) {
            abandon(&req->m, &req->life, &req->req_recv.req_base, &req->lane, req->extras && req->holds);
            bfo_failover_recv_raise(req, BFO_REV_ABANDONED, NULL);
        }
        bfo_recv_put(req);
    }
    bfo_leave(me);
}
#endif

/* ---- waiting for a rail ----------------------------------------------------------------------------- */

#if PML_BFO
enum { WAIT_AT_THE_END_MS = 300000 }; /* MPI_Finalize waits no longer than this */

static uint64_t now_ms(void)
{
    return bfo_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* The peer may already use a new generation, and may have ended the last rail because of it. DESIGN.txt section 10.2. */
static bool a_rail_returns(const bfo_peer_t *peer)
{
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        const bfo_rail_t *rail = &peer->rails[r];
        bfo_rail_info_t info;

        if (bfo_ext_rail_state(peer, rail, &info) && (info.returns || (BFO_RAIL_UP == info.state && info.generation > rail->gen))) {
            return true;
        }
    }
    return false;
}

/* `timeout`: pml_bfo_last_rail_timeout, read once by the caller, because it may change at any moment. */
static bool is_over(const bfo_peer_t *peer, uint64_t now, int timeout)
{
    const uint64_t since = __atomic_load_n(&peer->waits_since, __ATOMIC_RELAXED);
    uint64_t most = timeout < 0 ? UINT64_MAX : UINT64_C(1000) * (unsigned) timeout;

    if (bfo.is_ending && most > WAIT_AT_THE_END_MS) {
        most = WAIT_AT_THE_END_MS;
    }
    return 0 != since && now >= since && now - since >= most && !a_rail_returns(peer);
}

/* Does the machine of the peer report its process as dead? */
static bool (*knows_dead)(bfo_peer_t *peer, uint64_t since, uint64_t now);

void bfo_failover_wait_init(bool (*is_dead)(bfo_peer_t *peer, uint64_t since, uint64_t now))
{
    knows_dead = is_dead;
}

static bool has_died(bfo_peer_t *peer, uint64_t now)
{
    const uint64_t since = __atomic_load_n(&peer->waits_since, __ATOMIC_RELAXED);

    return 0 != since && NULL != knows_dead && knows_dead(peer, since, now);
}

/* The end of the waits, in seconds. If a wait is over, the process may have computed for so long that it has not seen another value yet. */
static int timeout_now(uint64_t now)
{
    const int timeout = bfo_param(last_rail_timeout);

    BFO_FOREACH_PEER(peer)
    {
        if (bfo_unlikely(is_over(peer, now, timeout))) {
            bfo.up.obey();
            return bfo_param(last_rail_timeout);
        }
    }
    return timeout;
}

int bfo_failover_look_at_waits(void)
{
    uint64_t now;
    int done = 0, timeout;

    if (bfo_likely(0 == __atomic_load_n(&bfo.n_waits, __ATOMIC_RELAXED))) {
        return 0;
    }
    BFO_ASSERT(bfo.waits_registered || bfo_threads); /* progress comes here until the last wait ends */
    now = now_ms();
    timeout = timeout_now(now);
    BFO_FOREACH_PEER(peer)
    {
        if (bfo_unlikely(has_died(peer, now))) {
            bfo_failover_declare(peer, "the process is dead, as its machine says");
            ++done;
        } else if (bfo_unlikely(is_over(peer, now, timeout))) {
            bfo_failover_declare(peer, 0 != peer->up_mask ? "the last rail was drained by force and not released in time (pml_bfo_last_rail_timeout)"
                                       : 0 == timeout     ? "the last rail is lost, and the rail that was coming back did not"
                                                          : "no rail came back in time (pml_bfo_last_rail_timeout)");
            ++done;
        }
    }
    return done;
}

void bfo_failover_wait(bfo_peer_t *peer, const char *cause)
{
    bool begins, is_first = false;
    int32_t n_waits;

    if (!bfo_peer_may_wait(peer) || (0 == bfo_param(last_rail_timeout) && !a_rail_returns(peer))) {
        bfo_failover_declare(peer, cause);
        return;
    }
    BFO_LOCK(&bfo.lock);
    begins = 0 == peer->send_mask && 0 == peer->waits_since && !peer->declared;
    if (begins) {
        __atomic_store_n(&peer->waits_since, now_ms(), __ATOMIC_RELAXED);
        n_waits = bfo_add32(&bfo.n_waits, 1);
        BFO_ASSERT(0 < n_waits);
        is_first = !bfo.waits_registered;
        bfo.waits_registered = true;
    }
    BFO_UNLOCK(&bfo.lock);
    if (is_first) {
        opal_progress_register(bfo_failover_look_at_waits);
    }
    if (begins) {
        bfo_stat_add(BFO_STAT_PEERS_WAITED, 1);
        bfo_tell_peer_waits(peer);
    }
}

void bfo_failover_wait_ends(bfo_peer_t *peer)
{
    int32_t n_waits;
    const bool ends = 0 != peer->send_mask || peer->declared; /* otherwise the rail that is back stands out by force */

    BFO_LOCK(&bfo.lock);
    if (ends && 0 != peer->waits_since) {
        __atomic_store_n(&peer->waits_since, 0, __ATOMIC_RELAXED);
        n_waits = bfo_add32(&bfo.n_waits, -1);
        BFO_ASSERT(0 <= n_waits); /* a wait ends once */
    }
    BFO_UNLOCK(&bfo.lock);
    if (ends) {
        bfo_figures_waits(peer, false);
    }
}

void bfo_failover_wait_fini(void)
{
    if (bfo.waits_registered) {
        bfo.waits_registered = false;
        opal_progress_unregister(bfo_failover_look_at_waits);
    }
}
#endif

/* ---- declaration ------------------------------------------------------------------------------------ */

/* Is every other process of the communicator declared? */
static bool is_deserted(const bfo_comm_t *bc)
{
    uint32_t n_declared = 0;

    for (uint32_t rank = 0; rank < bc->size; ++rank) {
        const ompi_proc_t *proc = ompi_group_peer_lookup_existing(bc->group, (int) rank);
        const bfo_peer_t *peer = NULL == proc ? NULL : proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

        if (NULL != proc && opal_proc_local_get() == &proc->super) {
            continue;
        }
        if (NULL == peer || !peer->declared) {
            return false;
        }
        ++n_declared;
    }
    return 0 < n_declared;
}

/* ULFM leaves receives from any source posted, and ends the waits for them itself (DESIGN.txt section 14.11). */
static void end_any_source(bfo_comm_t *bc, bfo_link_t *posted)
{
    if (BFO_OMPI_ULFM_IS_ON || !is_deserted(bc)) {
        return;
    }
    bfo_lock(&bc->lock);
    bc->is_deserted = true;
    bfo_recv_withdraw_all(bc, NULL, BFO_ANY_SOURCE, posted);
    bfo_unlock(&bc->lock);
}

/* The first rank from `rank` on that is the peer's and was contacted; bc->size if there is none. */
static uint32_t next_rank_of(const bfo_comm_t *bc, const bfo_peer_t *peer, uint32_t rank)
{
    for (; rank < bc->size; ++rank) {
        const bfo_lane_t *lane = __atomic_load_n(&bc->lanes[rank], __ATOMIC_ACQUIRE);

        if (NULL != lane && peer == lane->peer) {
            break;
        }
    }
    return rank;
}

/* From now on no message from the peer is matched, because the receive for it has ended with an error instead. Withdraws those receives
 * under the lock under which another thread would match or cancel them; after that only the caller has them. */
static void lanes_end_of(bfo_comm_t *bc, const bfo_peer_t *peer, bfo_link_t *posted)
{
    for (uint32_t rank = next_rank_of(bc, peer, 0); rank < bc->size; rank = next_rank_of(bc, peer, rank + 1)) {
        bfo_lane_t *lane = bc->lanes[rank];

        bfo_lock(&bc->lock);
        lane->match.n_open |= BFO_LANE_ENDED;
        bfo_recv_withdraw_all(bc, &lane->match, (int32_t) rank, posted);
        bfo_unlock(&bc->lock);
    }
    end_any_source(bc, posted);
}

static void lanes_end(const bfo_peer_t *peer, bfo_link_t *posted)
{
    BFO_LOCK(&bfo.lock);
    for (size_t i = 0; i < sizeof(bfo.comms) / sizeof(bfo.comms[0]); ++i) {
        for (unsigned j = 0; NULL != bfo.comms[i] && j < 256; ++j) {
            if (NULL != bfo.comms[i][j]) {
                lanes_end_of(bfo.comms[i][j], peer, posted);
            }
        }
    }
    BFO_UNLOCK(&bfo.lock);
}

/* No call of MPI returns the errors of the requests of osc/pt2pt. Its window waits for the lost process without end, unless the error
 * handler of its communicator, by default MPI_ERRORS_ARE_FATAL, ends the job. Locks: none held. */
static void tell_window(bfo_comm_t *const *at, const bfo_peer_t *peer)
{
    ompi_communicator_t *comm = NULL;
    bfo_comm_t *bc;

    BFO_LOCK(&bfo.lock);
    bc = *at;
    if (NULL != bc && __atomic_load_n(&bc->is_window, __ATOMIC_RELAXED) && next_rank_of(bc, peer, 0) < bc->size) {
        __atomic_store_n(&bc->is_window, false, __ATOMIC_RELAXED);
        comm = bc->comm;
        OBJ_RETAIN(comm);
    }
    BFO_UNLOCK(&bfo.lock);
    if (NULL != comm) {
        (void) OMPI_ERRHANDLER_INVOKE(comm, bfo_lost_error(), "one-sided communication with a process that cannot be reached");
        OBJ_RELEASE(comm);
    }
}

static void tell_windows(const bfo_peer_t *peer)
{
    for (size_t i = 0; i < sizeof(bfo.comms) / sizeof(bfo.comms[0]); ++i) {
        for (unsigned j = 0; NULL != bfo.comms[i] && j < 256; ++j) {
            tell_window(&bfo.comms[i][j], peer);
        }
    }
}

static void rails_end(bfo_peer_t *peer)
{
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        (void) bfo_rail_take_down(peer, r);
        bfo_failover_fence(peer, r, peer->rails[r].gen); /* also a rail that refused a post before the BTL had begun a fence */
    }
    BFO_ASSERT(bfo_threads || NULL == peer->rails[0].ext || 0 == (peer->up_mask | peer->send_mask | peer->eager_mask)); /* nothing is posted to it */
    bfo_ext_declare(peer); /* notifies the peer, which is never contacted again */
}

void bfo_failover_declare(bfo_peer_t *peer, const char *cause)
{
    bfo_link_t posted;

    if (__atomic_exchange_n(&peer->declared, true, __ATOMIC_SEQ_CST)) {
        return;
    }
    bfo_failover_wait_ends(peer);
    BFO_ASSERT(0 == __atomic_load_n(&peer->waits_since, __ATOMIC_RELAXED)); /* and no wait for it begins any more */
    bfo_stat_add(BFO_STAT_PEERS_LOST, 1);
    bfo_tell_peer_lost(peer, cause);
    bfo_ulfm_peer_failed(peer);
    bfo_link_init(&posted);
    lanes_end(peer, &posted);
    rails_end(peer);
    bfo_recv_fail_withdrawn(&posted);
    fail_all(peer);
#if BFO_OMPI_HAS_ULFM && PML_BFO
    bfo_failover_abandon(peer);
#endif
    tell_windows(peer);
}

#if PML_BFO
void bfo_failover_peer_dead(mca_btl_base_module_t *btl, opal_proc_t *proc, const char *cause)
{
    bfo_peer_t *peer = bfo_peer_get((ompi_proc_t *) proc);

    if (NULL != peer && peer->ready) {
        bfo_failover_declare(peer, cause);
    }
}

/* ---- the flush before MPI_Finalize ------------------------------------------------------------------ */

/* Longer than any retry time of a queue pair: after this the user hears why the process waits. */
#ifndef BFO_FLUSH_SECONDS
#define BFO_FLUSH_SECONDS 120
#endif

/* A peer to which a request of ours has a fragment in flight or must recover first; or NULL. A send that waits for its receiver does not count. */
static const bfo_peer_t *open_request(void)
{
    for (uint32_t i = 0; i < bfo_load(&bfo.sends.size); ++i) {
        bfo_send_t *req = bfo_container(bfo_ids_at(&bfo.sends, i), bfo_send_t, name);
        const bfo_peer_t *peer = NULL;
        unsigned state;

        bfo_send_get_by_look(req);
        state = bfo_se_state(bfo_se_load(&req->m));
        if (bfo_send_state_is_open(state) && (1 < bfo_events_load(&req->m) || bfo_send_state_is_err(state))) {
            peer = req->lane->peer;
        }
        bfo_send_put(req);
        if (NULL != peer) {
            return peer;
        }
    }
    for (uint32_t i = 0; i < bfo_load(&bfo.recvs.size); ++i) {
        bfo_recv_t *req = bfo_container(bfo_ids_at(&bfo.recvs, i), bfo_recv_t, name);
        const bfo_peer_t *peer = NULL;
        unsigned state;

        bfo_recv_get_by_look(req);
        state = bfo_se_state(bfo_se_load(&req->m));
        if (bfo_recv_state_is_open(state) && NULL != req->lane && (1 < bfo_events_load(&req->m) || bfo_recv_state_is_err(state))) {
            peer = req->lane->peer;
        }
        bfo_recv_put(req);
        if (NULL != peer) {
            return peer;
        }
    }
    return NULL;
}

static const bfo_peer_t *peer_of_open_request(void)
{
    bfo_local_t *me = bfo_enter(); /* as in fail_all() */
    const bfo_peer_t *peer = open_request();

    bfo_leave(me);
    return peer;
}

static const bfo_peer_t *peer_of_busy_rail(void)
{
    BFO_FOREACH_PEER(peer)
    {
        for (uint8_t r = 0; !peer->declared && r < peer->n_rails; ++r) {
            const bfo_rail_t *rail = &peer->rails[r];

            if (!bfo_ext_is_flushed(peer, rail)) {
                return peer;
            }
        }
    }
    return NULL;
}

/* A living process may take any time until it calls MPI; a dead one is declared, and then nothing waits for it. Therefore
 * this loop ends only with the work, or with the wait for a rail. */
void bfo_failover_flush(void)
{
    const uint64_t late = now_ms() + UINT64_C(1000) * BFO_FLUSH_SECONDS;
    bool said = false;

    bfo.is_ending = true;
    while (0 != bfo.n_pending || NULL != peer_of_open_request() || NULL != peer_of_busy_rail()) {
        if (!said && now_ms() >= late) {
            said = true;
            bfo_tell_flush_waits(peer_of_open_request() ?: peer_of_busy_rail(), BFO_FLUSH_SECONDS);
        }
        opal_progress();
        usleep(50);
    }
    bfo.is_ending = false;
}
#endif /* PML_BFO */
