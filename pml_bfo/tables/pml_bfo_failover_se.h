/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The part of the state machine that is in a request: the state word `se`, the event counter, the names generated from the
 * tables, and the rows of the failure-free path, done in place. Includes no other header of the project.
 * DESIGN.txt section 7; the tables are pml_bfo_failover_send.def and pml_bfo_failover_recv.def. */
#ifndef PML_BFO_FAILOVER_SE_H
#define PML_BFO_FAILOVER_SE_H

#include <stdbool.h>
#include <stdint.h>

/* ---- names, generated from the tables ------------------------------------------------------------- */
/* An event's kind. If another thread changes the state first, a CALL, MESSAGE or COMPLETION looks up its row again, and
 * a GUARD does nothing. A COMPLETION releases one of `events` after its action. */
enum { BFO_KIND_CALL, BFO_KIND_MESSAGE, BFO_KIND_COMPLETION, BFO_KIND_GUARD };

#define STATE(name, text, is_err) BFO_SEND_##name,
enum bfo_send_state {
#include "tables/pml_bfo_failover_send.def"
    BFO_SEND_STATES
};
#define EVENT(name, kind, text) BFO_SEV_##name,
enum bfo_send_event {
    BFO_SEV_NOTHING,
#include "tables/pml_bfo_failover_send.def"
    BFO_SEND_EVENTS
};
#define ACTION(name) BFO_SACT_##name,
enum bfo_send_action {
#include "tables/pml_bfo_failover_send.def"
    BFO_SEND_ACTIONS
};
#define STATE(name, text, is_err) BFO_RECV_##name,
enum bfo_recv_state {
#include "tables/pml_bfo_failover_recv.def"
    BFO_RECV_STATES
};
#define EVENT(name, kind, text) BFO_REV_##name,
enum bfo_recv_event {
    BFO_REV_NOTHING,
#include "tables/pml_bfo_failover_recv.def"
    BFO_RECV_EVENTS
};
#define ACTION(name) BFO_RACT_##name,
enum bfo_recv_action {
#include "tables/pml_bfo_failover_recv.def"
    BFO_RECV_ACTIONS
};

/* ---- which rows were taken (tests/sim/rows) --------------------------------------------------------- */
/* A build with -DBFO_COUNT_ROWS=1 counts each row where it is taken, in the engine or in place, and writes the counts to a file in
 * BFO_ROWS_DIR at the end of the process. Any other build has no code for this. */
#ifndef BFO_COUNT_ROWS
#define BFO_COUNT_ROWS 0
#endif
#if BFO_COUNT_ROWS
extern uint32_t bfo_send_rows_taken[BFO_SEND_STATES][BFO_SEND_EVENTS], bfo_recv_rows_taken[BFO_RECV_STATES][BFO_RECV_EVENTS];
#define BFO_COUNT_ROW(machine, state, event) ((void) ++bfo_##machine##_rows_taken[state][event])
#define BFO_SEND_ROW(se, event) ((void) ++bfo_send_rows_taken[(se) >> 16][BFO_SEV_##event])
#define BFO_RECV_ROW(se, event) ((void) ++bfo_recv_rows_taken[(se) >> 16][BFO_REV_##event])
#else
#define BFO_COUNT_ROW(machine, state, event) ((void) 0)
#define BFO_SEND_ROW(se, event) ((void) 0)
#define BFO_RECV_ROW(se, event) ((void) 0)
#endif

/* ---- the state word: state << 16 | epoch ------------------------------------------------------------ */
#define BFO_SE(state, epoch) ((uint32_t) (state) << 16 | (uint16_t) (epoch))
#define BFO_EPOCH_LAST 65535u /* a restart beyond it declares the peer */

/* A snapshot of the word of a machine. bfo_se_claim() succeeds only if the word has not changed since. */
typedef union {
    struct {
        uint32_t se;    /* state and epoch */
        uint32_t looks; /* threads: changes with every move and every bfo_look(), so that no older look can claim */
    };
    uint64_t word;
} bfo_look_t;

/* Part of every request. A request object is zero when first made; `events` is never reset after that, because ups and downs balance. All
 * code reads `se`. `own` is the same word, and only this header names it (tests/docs): bfo_se_claim() and bfo_se_move() write state and epoch. */
typedef struct {
    union {
        const uint32_t se;
        bfo_look_t own; /* threads: compare-and-swap */
    };
    int32_t events; /* descriptors posted and items listed whose callback or discard has not run. Threads: atomic */
} bfo_machine_t;

static inline unsigned bfo_se_state(uint32_t se)
{
    return se >> 16;
}
static inline uint16_t bfo_se_epoch(uint32_t se)
{
    return (uint16_t) se;
}
/* Epochs are compared by equality only, and 65535 has no successor. */
static inline bool bfo_se_is_epoch(uint32_t se, uint16_t epoch)
{
    return epoch == (uint16_t) se;
}
static inline bool bfo_se_is_next_epoch(uint32_t se, uint16_t epoch)
{
    return epoch == (se & 0xffffu) + 1u;
}

/* ERR-class: completions drain, and nothing more of this attempt is posted. */
#define STATE(name, text, is_err) | (uint32_t) (is_err) << BFO_SEND_##name
enum {
    BFO_SEND_ERR_MASK = 0
#include "tables/pml_bfo_failover_send.def"
};
#define STATE(name, text, is_err) | (uint32_t) (is_err) << BFO_RECV_##name
enum {
    BFO_RECV_ERR_MASK = 0
#include "tables/pml_bfo_failover_recv.def"
};
static inline bool bfo_send_state_is_err(unsigned state)
{
    return 0 != (BFO_SEND_ERR_MASK >> state & 1);
}
static inline bool bfo_recv_state_is_err(unsigned state)
{
    return 0 != (BFO_RECV_ERR_MASK >> state & 1);
}
static inline bool bfo_send_state_is_open(unsigned state)
{
    return BFO_SEND_IDLE != state && BFO_SEND_DONE != state;
}
static inline bool bfo_recv_state_is_open(unsigned state)
{
    return BFO_RECV_NONE != state && BFO_RECV_DONE != state;
}

static inline bfo_look_t bfo_look_at(const bfo_machine_t *m)
{
    return (bfo_look_t){.word = __atomic_load_n(&m->own.word, __ATOMIC_SEQ_CST)};
}

/* Writes `se`. With threads a claim fails if the word has changed in any way since the look: the request may have been completed
 * and reused in between, and be in the same state and epoch again. */
static inline bool bfo_se_claim(bfo_machine_t *m, bfo_look_t look, uint32_t to, bool threads)
{
    bfo_look_t next = look;

    if (!threads) {
        m->own.se = to;
        return true;
    }
    next.se = to;
    ++next.looks;
    return __atomic_compare_exchange_n(&m->own.word, &look.word, next.word, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* A new request object: state IDLE (send) or NONE (receive). */
static inline void bfo_machine_construct(bfo_machine_t *m)
{
    m->own.word = 0;
    m->events = 0;
}

/* Changes state and epoch; the caller holds an event. False if another thread changed them first. */
static inline bool bfo_se_move(bfo_machine_t *m, uint32_t from, uint32_t to, bool threads)
{
    bfo_look_t look = bfo_look_at(m);

    while (from == look.se || !threads) {
        if (bfo_se_claim(m, look, to, threads)) {
            return true;
        }
        look = bfo_look_at(m);
    }
    return false;
}

/* A thread that found a request by its identifier owns none of the request's descriptors or items. The thread raises `events` and then calls
 * this function. Only afterwards the thread checks the identifier. From now on a claim fails whose thread had read `events` as 0. */
static inline void bfo_look(bfo_machine_t *m, bool threads)
{
    bfo_look_t look, next;

    do {
        look = bfo_look_at(m);
        next.word = look.word;
        ++next.looks;
    } while (threads && !__atomic_compare_exchange_n(&m->own.word, &look.word, next.word, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

/* ---- the event counter: raised before the post or insertion, released by a completion ----------------- */
static inline uint32_t bfo_se_load(const bfo_machine_t *m)
{
    return __atomic_load_n(&m->se, __ATOMIC_SEQ_CST);
}
static inline int32_t bfo_events_load(const bfo_machine_t *m)
{
    return __atomic_load_n(&m->events, __ATOMIC_SEQ_CST);
}

static inline void bfo_events_up(bfo_machine_t *m, bool threads)
{
    if (threads) {
        (void) __atomic_add_fetch(&m->events, 1, __ATOMIC_SEQ_CST);
    } else {
        m->events++;
    }
}

static inline int32_t bfo_events_down(bfo_machine_t *m, bool threads)
{
    return threads ? __atomic_sub_fetch(&m->events, 1, __ATOMIC_SEQ_CST) : --m->events;
}

/* ---- hot rows, done in place; test_bfo_failover_fsm.c proves each equal to its row of the table -------- */
/* S1, M1. Only the caller knows the request. */
static inline void bfo_send_start(bfo_machine_t *m, bool eager)
{
    __atomic_store_n(&m->own.se, BFO_SE(eager ? BFO_SEND_EAGER : BFO_SEND_RTS, 0), __ATOMIC_SEQ_CST);
}

/* S2, S7, S8: in these states a successful completion changes no state. False: the caller raises the event. */
static inline bool bfo_send_is_flowing(uint32_t se)
{
    return BFO_SEND_RTS == bfo_se_state(se) || BFO_SEND_STREAM == bfo_se_state(se);
}

/* S5, S6: is an ACK or PUT of `epoch` admissible? The caller holds an event over test and bfo_send_take_response(). */
static inline bool bfo_send_takes_response(uint32_t se, uint16_t epoch)
{
    _Static_assert(BFO_SEND_STREAM == BFO_SEND_RTS + 1, "the two states are one apart");
    return 0 == ((se - BFO_SE(BFO_SEND_RTS, epoch)) & ~BFO_SE(1u, 0u)); /* of that epoch, and in RTS or STREAM */
}

/* S5: the first response, which was admissible, leaves RTS. With threads another event may have come first. */
static inline void bfo_send_take_response(bfo_machine_t *m, bool threads)
{
    const uint32_t se = bfo_se_load(m);

    if (BFO_SEND_RTS == bfo_se_state(se)) {
        (void) bfo_se_move(m, se, BFO_SE(BFO_SEND_STREAM, bfo_se_epoch(se)), threads);
    }
}

/* R0. Only the caller knows the request. */
static inline void bfo_recv_post(bfo_machine_t *m)
{
    __atomic_store_n(&m->own.se, BFO_SE(BFO_RECV_UNMATCHED, 0), __ATOMIC_RELAXED);
}

/* Undoes R0 of a receive whose start fails before another thread knows it. */
static inline void bfo_recv_unpost(bfo_machine_t *m)
{
    __atomic_store_n(&m->own.se, BFO_SE(BFO_RECV_DONE, 0), __ATOMIC_RELAXED);
}

/* R3, R4, R5: is data of `epoch` admissible? With threads the caller holds an event over test and count. */
static inline bool bfo_recv_takes_data(uint32_t se, uint16_t epoch)
{
    const uint32_t taking = 1u << BFO_RECV_ACTIVE | 1u << BFO_RECV_ERRL | 1u << BFO_RECV_QUIESCE;

    return BFO_SE(BFO_RECV_ACTIVE, epoch) == se || (bfo_se_is_epoch(se, epoch) && 0 != (taking >> bfo_se_state(se) & 1));
}

#endif /* PML_BFO_FAILOVER_SE_H */
