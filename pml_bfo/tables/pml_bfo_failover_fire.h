/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Where an event that is known at compile time meets its row: all rows of a table as a chain of ifs. The caller passes a constant event,
 * so the compiler keeps only the rows of that event, with their next states and actions as constants. Fired are the events of messages
 * that nothing goes wrong with, and a few rare ones. All others go to the engine (pml_bfo_failover_fsm.c), which looks the same rows up;
 * it does not have the actions that the tables mark as ACTION_IN_PLACE. The rare ones are traced. This header also has the prototypes of
 * all actions; each action is defined in the source file that owns it. Includes only pml_bfo_failover_se.h of this component.
 * DESIGN.txt section 7.6. */
#ifndef PML_BFO_FAILOVER_FIRE_H
#define PML_BFO_FAILOVER_FIRE_H

#include "bfo_assert.h"

#include "tables/pml_bfo_failover_se.h"

#include <stddef.h>

/* ---- the actions: what the tables name, bfo_send_act_NAME() and bfo_recv_act_NAME() ------------------------------------ */
/* An action never waits. It may raise events on the same machine; it does not touch a request that it has completed. */
#define ACTION(name) void bfo_send_act_##name(void *request, void *arg);
#include "tables/pml_bfo_failover_send.def"
#define ACTION(name) void bfo_recv_act_##name(void *request, void *arg);
#include "tables/pml_bfo_failover_recv.def"

/* Print a step of a request's machine (level 2). `request` NULL: a receive that nobody holds here. */
void bfo_tell_send_step(void *request, const char *row, uint32_t from, uint32_t to, unsigned event) __attribute__((noinline, cold));
void bfo_tell_recv_step(void *request, const char *row, uint32_t from, uint32_t to, unsigned event) __attribute__((noinline, cold));

/* ---- one row ----------------------------------------------------------------------------------------------------------- */
/* A row that changes the state word claims it with `look`. A guard that loses the race ends; any other event looks up its row again.
 * Everything but `look` is a constant: a row of an event that is_usual has no code that traces. */
#define FIRE_ROW(MACHINE, EV, ACT, machine, id, from, on, stays, to, act) \
    if (EV##on == event && !(is_late && bfo_##machine##_state_is_err(MACHINE##from)) && MACHINE##from == bfo_se_state(look.se)) { \
        if (!(stays) && !bfo_se_claim(m, look, (to), threads)) { \
            if (is_guard) { \
                return false; \
            } \
            look = bfo_look_at(m); \
            continue; \
        } \
        BFO_COUNT_ROW(machine, MACHINE##from, EV##on); \
        if (!is_usual) { \
            bfo_tell_##machine##_step(NULL == m ? NULL : request, #id, look.se, (to), event); \
        } \
        if (ACT##none != ACT##act) { \
            bfo_##machine##_act_##act(request, arg); \
        } \
        return true; \
    }

/* Takes the row of `event`, a constant, in the state of `look`. `m` NULL: `request` is no request, and no row of the state changes the
 * word. `threads`: false also for a request that only the caller knows. Returns false if there is no row, for a guard that was not the
 * first to claim, and for a completion that is_late in an ERR-class state: the caller gives it to the engine, which traces it and releases
 * its event. After any other completion the caller releases its event and then tests the guards.
 * Locks: none; with threads the caller holds an event to fire a MESSAGE. Context: progress, or an MPI call. */
static inline __attribute__((always_inline)) bool bfo_send_fire_at(bfo_machine_t *m, bfo_look_t look, const unsigned event, bool threads,
                                                                   void *request, void *arg)
{
    const bool is_late = BFO_SEV_MATCH_OK == event || BFO_SEV_RTS_OK == event || BFO_SEV_FRAG_OK == event || BFO_SEV_WRITE_OK == event;
    const bool is_usual = is_late || BFO_SEV_FIN == event || BFO_SEV_ALL_DELIVERED == event;
#define EVENT(name, kind, text) || (BFO_KIND_GUARD == BFO_KIND_##kind && BFO_SEV_##name == event)
    const bool is_guard = false
#include "tables/pml_bfo_failover_send.def"
        ;

    for (;;) {
#define FIRE_SEND(id, from, on, stays, to, act) FIRE_ROW(BFO_SEND_, BFO_SEV_, BFO_SACT_, send, id, from, on, stays, to, act)
#define ROW(id, from, on, next, act) FIRE_SEND(id, from, on, BFO_SEND_##from == BFO_SEND_##next, BFO_SE(BFO_SEND_##next, bfo_se_epoch(look.se)), act)
#define ROW_ZERO(id, from, on, next, act) FIRE_SEND(id, from, on, false, BFO_SE(BFO_SEND_##next, 0), act)
#define ROW_NEXT(id, from, on, next, act) FIRE_SEND(id, from, on, false, BFO_SE(BFO_SEND_##next, bfo_se_epoch(look.se) + 1), act)
#include "tables/pml_bfo_failover_send.def"
        return false;
    }
}

static inline __attribute__((always_inline)) bool bfo_recv_fire_at(bfo_machine_t *m, bfo_look_t look, const unsigned event, bool threads,
                                                                   void *request, void *arg)
{
    const bool is_late = BFO_REV_READ_OK == event || BFO_REV_READ_ALL_OK == event;
    const bool is_usual = is_late || BFO_REV_CANCEL == event || BFO_REV_MATCHED_EAGER == event || BFO_REV_MATCHED == event
                          || BFO_REV_RESPONSE_OK == event;
#define EVENT(name, kind, text) || (BFO_KIND_GUARD == BFO_KIND_##kind && BFO_REV_##name == event)
    const bool is_guard = false
#include "tables/pml_bfo_failover_recv.def"
        ;

    for (;;) {
#define FIRE_RECV(id, from, on, stays, to, act) FIRE_ROW(BFO_RECV_, BFO_REV_, BFO_RACT_, recv, id, from, on, stays, to, act)
#define ROW(id, from, on, next, act) FIRE_RECV(id, from, on, BFO_RECV_##from == BFO_RECV_##next, BFO_SE(BFO_RECV_##next, bfo_se_epoch(look.se)), act)
#define ROW_ZERO(id, from, on, next, act) FIRE_RECV(id, from, on, false, BFO_SE(BFO_RECV_##next, 0), act)
#define ROW_NEXT(id, from, on, next, act) FIRE_RECV(id, from, on, false, BFO_SE(BFO_RECV_##next, bfo_se_epoch(look.se) + 1), act)
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

/* For an event that has a row in each state in which it can happen. */
#define BFO_MUST_FIRE(fired) \
    do { \
        const bool has_row = (fired); \
\
        BFO_ASSERT(has_row); \
    } while (0)

/* A look at a state that is known: no other thread knows the request, or no row changes the state. */
#define BFO_KNOWN(state) ((bfo_look_t){.se = BFO_SE(state, 0)})

/* A look for an event of which no row changes the state. It can claim nothing. */
#define BFO_SEEN(m) ((bfo_look_t){.se = (m)->se})

#endif /* PML_BFO_FAILOVER_FIRE_H */
