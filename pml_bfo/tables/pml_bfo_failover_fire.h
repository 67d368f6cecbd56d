/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The one place where an event known at compile time meets its row: all rows of a table as a chain of ifs. The caller passes a
 * constant event, so the compiler keeps only the rows of that event, with their next states and actions as constants. This header also
 * has the prototypes of all actions; each action is defined in the source file that owns it. The engine (pml_bfo_failover_fsm.c) looks
 * up the same rows where the event is not a constant. Includes only pml_bfo_failover_se.h. DESIGN.txt section 7.6. */
#ifndef PML_BFO_FAILOVER_FIRE_H
#define PML_BFO_FAILOVER_FIRE_H

#include "tables/pml_bfo_failover_se.h"

/* ---- the actions: what the tables name, bfo_send_act_NAME() and bfo_recv_act_NAME(); `none` has no code -------------- */
/* An action never waits. It may raise events on the same machine; it does not touch a request that it has completed. */
#define ACTION(name) void bfo_send_act_##name(void *request, void *arg);
#include "tables/pml_bfo_failover_send.def"
#define ACTION(name) void bfo_recv_act_##name(void *request, void *arg);
#include "tables/pml_bfo_failover_recv.def"

/* ---- one row ----------------------------------------------------------------------------------------------------------- */
/* A row that changes the state word claims it with `look`. A guard that loses the race ends; any other event looks up its row again. */
#define FIRE_ROW(MACHINE, EV, ACT, machine, from, on, stays, to, act) \
    if (EV##on == event && MACHINE##from == bfo_se_state(look.se)) { \
        if (!(stays) && !bfo_se_claim(m, look, (to), threads)) { \
            if (is_guard) { \
                return false; \
            } \
            look = bfo_look_at(m); \
            continue; \
        } \
        BFO_COUNT_ROW(machine, MACHINE##from, EV##on); \
        if (ACT##none != ACT##act) { \
            bfo_##machine##_act_##act(request, arg); \
        } \
        return true; \
    }

/* Takes the row of `event`, a constant, in the state of `look`; `m` may be NULL where no row of the state changes the word. Returns false
 * if there is no row, or for a guard that was not the first to claim. `threads`: false also for a request that only the caller knows.
 * After a completion the caller releases its event and then tests the guards.
 * Locks: none; with threads the caller holds an event to fire a MESSAGE. Context: progress, or an MPI call. */
static inline __attribute__((always_inline)) bool bfo_send_fire_at(bfo_machine_t *m, bfo_look_t look, const unsigned event, bool threads,
                                                                   void *request, void *arg)
{
#define EVENT(name, kind, text) || (BFO_KIND_GUARD == BFO_KIND_##kind && BFO_SEV_##name == event)
    const bool is_guard = false
#include "tables/pml_bfo_failover_send.def"
        ;

    for (;;) {
#define FIRE_SEND(from, on, stays, to, act) FIRE_ROW(BFO_SEND_, BFO_SEV_, BFO_SACT_, send, from, on, stays, to, act)
#define ROW(id, from, on, next, act) FIRE_SEND(from, on, BFO_SEND_##from == BFO_SEND_##next, BFO_SE(BFO_SEND_##next, bfo_se_epoch(look.se)), act)
#define ROW_ZERO(id, from, on, next, act) FIRE_SEND(from, on, false, BFO_SE(BFO_SEND_##next, 0), act)
#define ROW_NEXT(id, from, on, next, act) FIRE_SEND(from, on, false, BFO_SE(BFO_SEND_##next, bfo_se_epoch(look.se) + 1), act)
#include "tables/pml_bfo_failover_send.def"
        return false;
    }
}

static inline __attribute__((always_inline)) bool bfo_recv_fire_at(bfo_machine_t *m, bfo_look_t look, const unsigned event, bool threads,
                                                                   void *request, void *arg)
{
#define EVENT(name, kind, text) || (BFO_KIND_GUARD == BFO_KIND_##kind && BFO_REV_##name == event)
    const bool is_guard = false
#include "tables/pml_bfo_failover_recv.def"
        ;

    for (;;) {
#define FIRE_RECV(from, on, stays, to, act) FIRE_ROW(BFO_RECV_, BFO_REV_, BFO_RACT_, recv, from, on, stays, to, act)
#define ROW(id, from, on, next, act) FIRE_RECV(from, on, BFO_RECV_##from == BFO_RECV_##next, BFO_SE(BFO_RECV_##next, bfo_se_epoch(look.se)), act)
#define ROW_ZERO(id, from, on, next, act) FIRE_RECV(from, on, false, BFO_SE(BFO_RECV_##next, 0), act)
#define ROW_NEXT(id, from, on, next, act) FIRE_RECV(from, on, false, BFO_SE(BFO_RECV_##next, bfo_se_epoch(look.se) + 1), act)
#include "tables/pml_bfo_failover_recv.def"
        return false;
    }
}
#undef FIRE_ROW
#undef FIRE_SEND
#undef FIRE_RECV

/* As the functions above, with a look taken now. */
#define bfo_send_fire(m, event, threads, request, arg) bfo_send_fire_at(m, bfo_look_at(m), event, threads, request, arg)
#define bfo_recv_fire(m, event, threads, request, arg) bfo_recv_fire_at(m, bfo_look_at(m), event, threads, request, arg)

/* A look at a state that is known: no other thread knows the request, or no row changes the state. */
#define BFO_KNOWN(state) ((bfo_look_t){.se = BFO_SE(state, 0)})

/* A look for an event of which no row changes the state. It can claim nothing. */
#define BFO_SEEN(m) ((bfo_look_t){.se = (m)->se})

#endif /* PML_BFO_FAILOVER_FIRE_H */
