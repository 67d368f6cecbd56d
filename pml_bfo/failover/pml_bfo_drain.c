/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Drain: rails of ports that the user takes out of service carry nothing new; messages in flight on them finish there. Each side
 * reports to the other which of its ports stand out and on which rails it has nothing in flight. A rail is drained when neither side has
 * anything in flight on it. DESIGN.txt section 10.5.
 */
#include "types/pml_bfo.h"

#include "bfo_figures.h"
#include "rails/pml_bfo_adopt.h"
#include "failover/pml_bfo_drain.h"
#include "types/pml_bfo_extension.h"
#include "failover/pml_bfo_failover.h"
#include "failover/pml_bfo_failover_peer.h"
#include "show/pml_bfo_figures.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"
#include "rails/pml_bfo_rails_out.h"
#include "show/pml_bfo_settings.h"
#include "show/pml_bfo_steer.h"

#include "opal/runtime/opal_progress.h"

#include <time.h>

#if PML_BFO
/* Time between two looks while a rail that stands out has something in flight. */
#ifndef BFO_DRAIN_LOOK_MS
#define BFO_DRAIN_LOOK_MS 10
#endif
enum { UNTOLD = 1 << 24, CHECK_MS = 200, LOOKS_AT_FIGURES = 5 };

static opal_event_t timer; /* in Open MPI's event loop, which progress runs from time to time */
static bool is_registered; /* look() is a progress function; changed by the timer and at the end */
static bool is_active;     /* a rail stands out, or a report to a peer is due. Atomic */
static bool is_moving;     /* the state may change within milliseconds. Atomic */
static uint8_t is_looking; /* a thread looks: one at a time; atomic */
static uint64_t last_look; /* ms */

/* ---- what is in flight ------------------------------------------------------------------------------- */

/* Has a receive asked for data over this rail? Another thread may reuse the fragment meanwhile. Then the answer is wrong, and the next look
 * corrects the error. */
static bool has_asked_by(const bfo_peer_t *peer, uint8_t r)
{
    for (uint32_t i = 0; i < bfo_load(&bfo.frags.size); ++i) {
        const bfo_frag_t *frag = bfo_container(bfo_ids_at(&bfo.frags, i), bfo_frag_t, name);

        if (BFO_FRAG_PUT == __atomic_load_n(&frag->kind, __ATOMIC_ACQUIRE) && frag->peer == peer && frag->rail == r) {
            return true;
        }
    }
    return false;
}

/* Do all UP rails stand out by force? Then new work waits, and only reports and what has begun go over these rails. */
static bool is_held(const bfo_peer_t *peer)
{
    return 0 == peer->send_mask && 0 != peer->up_mask;
}

/* Is a report in flight over a rail that stands out? Such a report does not count as work, because otherwise each report would cause the next. */
static bool is_telling(const bfo_peer_t *peer)
{
    return is_held(peer) && 0 != __atomic_load_n(&peer->telling, __ATOMIC_RELAXED);
}

static bool is_quiet(const bfo_peer_t *peer, uint8_t r)
{
    const bfo_rail_t *rail = &peer->rails[r];
    const uint32_t waiting = is_held(peer) ? peer->n_bound : peer->n_waiting;

    return 0 == (peer->up_mask >> r & 1) || (0 == waiting && bfo_ext_is_flushed(peer, rail) && !has_asked_by(peer, r));
}

/* Of the rails that stand out, those with nothing in flight at this look and at the one before. Two looks are needed because a thread that
 * has chosen a rail posts on it only later, but before the second look. */
static uint8_t quiet_rails(bfo_peer_t *peer, uint8_t out)
{
    const uint8_t before = peer->quiet_before;
    uint8_t quiet = 0;

    BFO_ASSERT(0 == out >> peer->n_rails);
    if (is_telling(peer)) {
        return peer->quiet & out;
    }
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        quiet |= (out >> r & 1) && is_quiet(peer, r) ? (uint8_t) (1u << r) : 0;
    }
    peer->quiet_before = quiet;
    peer->quiet = quiet & before;
    return peer->quiet;
}

static void look_again(void)
{
    __atomic_store_n(&is_active, true, __ATOMIC_RELAXED);
    __atomic_store_n(&is_moving, true, __ATOMIC_RELAXED);
}

/* ---- reports to the peer ----------------------------------------------------------------------------- */

static void rails_sent(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des, int status)
{
    bfo_peer_t *peer = des->des_cbdata;
    const int32_t telling = bfo_add32(&peer->telling, -1);

    BFO_ASSERT(0 <= telling); /* each report returns once */
    if (bfo_unlikely(OPAL_SUCCESS != status)) {
        const uint8_t r = bfo_rail_index(peer, btl);

        __atomic_store_n(&peer->told, UNTOLD, __ATOMIC_RELAXED); /* the next look reports the state of that moment */
        look_again();
        bfo_failover_rail_failed(peer, r, bfo_rail_gen(peer, r), "a message came back with an error");
    }
}

/* Reports only over an UP rail. Without an UP rail a later look reports, because a queued report would be out of date. */
static void tell_peer(bfo_peer_t *peer, uint8_t quiet)
{
    const bfo_path_t path = is_held(peer) ? (bfo_path_t){(uint8_t) __builtin_ctz(peer->up_mask), false} : BFO_ANY_PATH;
    bfo_rails_hdr_t h = {.type = BFO_MSG_RAILS,
                         .out = bfo_failover_names_of_rails(peer, peer->out_own),
                         .quiet = bfo_failover_names_of_rails(peer, quiet),
                         .jobid = OPAL_PROC_MY_NAME.jobid,
                         .vpid = OPAL_PROC_MY_NAME.vpid,
                         .forced = bfo_failover_names_of_rails(peer, peer->forced_own)};
    int32_t telling;
    const uint32_t news = (uint32_t) h.forced << 16 | (uint32_t) h.out << 8 | h.quiet;

    BFO_ASSERT(0 == (peer->out_own | quiet) >> peer->n_rails);
    if (0 == peer->up_mask) {
        __atomic_store_n(&peer->told, UNTOLD, __ATOMIC_RELAXED);
    } else if (news != __atomic_load_n(&peer->told, __ATOMIC_RELAXED)) {
        h.number = ++peer->rails_number;
        __atomic_store_n(&peer->told, news, __ATOMIC_RELAXED);
        (void) bfo_add32(&peer->telling, 1);
        if (OMPI_SUCCESS != bfo_ctl_send(peer, path, &h, sizeof(h), rails_sent, peer)) {
            telling = bfo_add32(&peer->telling, -1);
            BFO_ASSERT(0 <= telling);
            __atomic_store_n(&peer->told, UNTOLD, __ATOMIC_RELAXED);
        }
    }
}

static void rails_heard(bfo_peer_t *from, const bfo_rails_hdr_t *h)
{
    const opal_process_name_t *name = NULL == from ? NULL : &from->proc->super.proc_name;

    if (NULL == name || h->jobid != name->jobid || h->vpid != name->vpid) {
        bfo_stat_drop(BFO_STAT_WRONG_SOURCE);
        return;
    }
    BFO_LOCK(&bfo.lock);
    if ((int32_t) (h->number - from->rails_heard) > 0) { /* otherwise a later report has overtaken it */
        from->rails_heard = h->number;
        from->names_out = h->out;
        from->names_forced = h->forced;
        from->names_quiet = h->quiet;
    }
    BFO_UNLOCK(&bfo.lock);
    look_again();
}

static void on_rails(BFO_ARRIVAL_ARGS)
{
    const bfo_rails_hdr_t *h = des->des_segments[0].seg_addr.pval;
    const size_t length = des->des_segments[0].seg_len;
    ompi_proc_t *from = bfo_ext_source(btl, des);

    if (1 != des->des_segment_count || !bfo_hdr_is_valid(BFO_MSG_RAILS, h, length, length, 0)) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
    } else {
        rails_heard(NULL == from ? NULL : bfo_peer_get(from), h);
    }
}

int bfo_drain_register(void)
{
    return mca_bml.bml_register(BFO_TAG(BFO_MSG_RAILS), on_rails, NULL);
}

/* ---- the look ------------------------------------------------------------------------------------------ */

/* Adds the peer's rails to the sums of the ports that stand out; a port may have several rails (btl_openib_lanes). Rails without failover
 * stay in use, because this process cannot report to the peer. */
static void add_rails(bfo_drained_t *sums, const bfo_peer_t *peer, uint8_t drained)
{
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        const uint32_t i = bfo_steer_place(bfo_btl_port_name(peer->rails[r].btl));

        if (i < bfo_steer_ports()) {
            ++*(peer->send_mask >> r & 1 ? &sums[i].kept : (drained | ~peer->up_mask) >> r & 1 ? &sums[i].drained : &sums[i].draining);
        }
    }
}

/* A peer whose rails all stand out by force is waited for like a peer whose rails are lost. */
static void wait_or_go_on(bfo_peer_t *peer)
{
    const bool waits = 0 != __atomic_load_n(&peer->waits_since, __ATOMIC_RELAXED);

    if (is_held(peer) && !waits) {
        bfo_failover_wait(peer, "its rails are drained by force");
    } else if (0 != peer->send_mask && waits) {
        bfo_failover_wait_ends(peer);
    }
}

/* Returns true if the peer needs another look. Rails that stand out and still carry work of this process make this look urgent, and so does a
 * report that is due; the peer watches its own work. */
static bool look_at_peer(bfo_peer_t *peer, bfo_drained_t *sums)
{
    uint8_t out, quiet;

    if (bfo_rails_stand_out(peer)) {
        bfo_rails_out_tell(peer);
        look_again();
    }
    wait_or_go_on(peer);
    out = peer->out_own | peer->out_theirs;
    quiet = quiet_rails(peer, out);
    BFO_ASSERT(0 == (quiet & ~out)); /* a rail in use is not reported as drained */
    if (0 != out || 0 != __atomic_load_n(&peer->told, __ATOMIC_RELAXED)) {
        tell_peer(peer, quiet);
    }
    if (0 != (out & ~peer->send_mask & ~quiet) || is_telling(peer)
        || (0 != peer->up_mask && UNTOLD == __atomic_load_n(&peer->told, __ATOMIC_RELAXED))) {
        look_again();
    }
    add_rails(sums, peer, is_telling(peer) ? 0 : quiet & bfo_failover_rails_of_names(peer, peer->names_quiet));
    return 0 != out || 0 != __atomic_load_n(&peer->told, __ATOMIC_RELAXED);
}

static void look_at_peers(void)
{
    bfo_drained_t sums[BFO_STEER_MOST] = {{0}};
    bool again = false;

    __atomic_store_n(&is_active, false, __ATOMIC_RELAXED);
    __atomic_store_n(&is_moving, false, __ATOMIC_RELAXED);
    BFO_FOREACH_PEER(peer)
    {
        if (!__atomic_load_n(&peer->ready, __ATOMIC_ACQUIRE) || peer->declared) {
            continue;
        }
        if (peer->failover) {
            again = look_at_peer(peer, sums) || again;
        } else {
            add_rails(sums, peer, 0);
        }
    }
    for (uint32_t i = 0; i < bfo_steer_ports(); ++i) {
        bfo_figures_out(bfo_steer_port(i), &sums[i]);
    }
    if (again || 0 != bfo_steer_ports()) {
        __atomic_store_n(&is_active, true, __ATOMIC_RELAXED);
    }
}

static void given_back(const char *port)
{
    bfo_figures_out(port, NULL);
}

/* Reads the requests to this process. True: other ports may stand out now. */
static bool obey(void)
{
    const bool is_read = bfo_steer_read(given_back);

    bfo_steer_obey(bfo_settings_wish);
    bfo_settings_take();
    return is_read;
}

static bool is_news(void)
{
    return bfo_steer_is_news() || bfo_settings_are_news();
}

/* Progress function, registered while the state may change soon. */
static int look(void)
{
    uint64_t now;

    if (__atomic_exchange_n(&is_looking, 1, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    now = bfo_clock_ns(CLOCK_MONOTONIC) / 1000000;
    if ((is_news() && obey()) || now - last_look >= BFO_DRAIN_LOOK_MS) {
        last_look = now;
        look_at_peers();
    }
    __atomic_store_n(&is_looking, 0, __ATOMIC_RELEASE);
    return 0;
}

/* Only while the state may change soon is there a progress function, which costs time on the path of a message. In the steady state the
 * timer looks at the peers from here. */
void bfo_drain_check(void)
{
    const bool is_wanted = is_news() || __atomic_load_n(&is_moving, __ATOMIC_RELAXED);

    if (is_wanted && !is_registered) {
        opal_progress_register_lp(look);
    } else if (!is_wanted && is_registered) {
        opal_progress_unregister(look);
    }
    is_registered = is_wanted;
    if (!is_wanted && __atomic_load_n(&is_active, __ATOMIC_RELAXED)) {
        (void) look();
    }
}

/* A process that has computed for long need not wait until the timer rings. */
static void obey_now(void)
{
    if (is_news()) {
        (void) look();
    }
}

static void timer_rings(int fd, short flags, void *arg)
{
    const struct timeval period = {.tv_usec = CHECK_MS * 1000};
    static unsigned rings;

    bfo_drain_check();
    if (0 == ++rings % LOOKS_AT_FIGURES) {
        bfo_figures_refresh();
    }
    opal_event_evtimer_add(&timer, &period);
}

void bfo_drain_open(void)
{
    (void) bfo_steer_open();
    bfo.up.obey = obey_now;
    obey_now(); /* so that even the first peers do not use ports that stand out already */
    if (NULL != opal_sync_event_base) {
        opal_event_evtimer_set(opal_sync_event_base, &timer, timer_rings, NULL);
        timer_rings(-1, 0, NULL);
    }
}

void bfo_drain_close(void)
{
    if (NULL != opal_sync_event_base) {
        opal_event_evtimer_del(&timer);
    }
    if (is_registered) {
        opal_progress_unregister(look);
    }
    is_registered = is_active = is_moving = false;
    bfo_steer_close();
}
#endif /* PML_BFO */
