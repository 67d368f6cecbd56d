/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The engine that walks the machines of send and receive requests.
 * Input: events. Output: calls of the owner's actions. It needs no Open MPI header and knows no message, rail or request.
 * DESIGN.txt section 7; the tables are pml_bfo_failover_send.def and pml_bfo_failover_recv.def. */
#ifndef PML_BFO_FAILOVER_FSM_H
#define PML_BFO_FAILOVER_FSM_H

#include "tables/pml_bfo_failover_se.h"

/* ---- the engine ------------------------------------------------------------------------------------ */
/* The facts that the guards test. The engine itself reads `events`, the epoch and threads. */
typedef struct {
    bool rts_done, resp, all_bytes, got_ack, got_nack;
    bool peer_fenced; /* every rail of the peer is fenced; asked in DEAD only */
} bfo_send_facts_t;

typedef struct {
    bool all_bytes, fail;
    bool fences_done; /* fence_set is done and no fence of this side towards the peer runs; asked in QUIESCE and SEALED only */
    bool peer_fenced; /* every rail of the peer is fenced; asked in DEAD only */
} bfo_recv_facts_t;

typedef void (*bfo_action_fn_t)(void *request, void *arg);

/* Supplied once per process by the owner of the requests. */
typedef struct {
    const bfo_action_fn_t *actions;                             /* by BFO_SACT_* or BFO_RACT_*; NULL: ACTION_IN_PLACE */
    void (*reject)(void *request, uint32_t se, unsigned event); /* trace, count */
    void (*trace)(void *request, const char *row, uint32_t from, uint32_t to, unsigned event); /* or NULL */
    bool threads;                                                                              /* opal_using_threads() */
} bfo_fsm_ops_t;

typedef struct {
    bfo_fsm_ops_t fsm;
    void (*facts)(void *request, unsigned state, bfo_send_facts_t *facts); /* facts is zeroed */
} bfo_send_ops_t;

typedef struct {
    bfo_fsm_ops_t fsm;
    void (*facts)(void *request, unsigned state, bfo_recv_facts_t *facts); /* facts is zeroed */
} bfo_recv_ops_t;

typedef enum { BFO_STEP_TAKEN, BFO_STEP_REJECTED, BFO_STEP_LOST } bfo_step_t;

/* Raises one event: takes its row, runs the action, does ev- for a completion, then takes every guard that holds. The request may be
 * complete and reused when this returns. LOST: only with threads, a guard that another thread claimed first. REJECTED: there is no row, or
 * its action is an ACTION_IN_PLACE, whose events are fired (pml_bfo_failover_fire.h).
 * Locks: none; with threads the caller holds an event to raise a MESSAGE. Context: progress, or an MPI call. */
bfo_step_t bfo_send_step(bfo_machine_t *m, unsigned event, const bfo_send_ops_t *ops, void *request, void *arg);
bfo_step_t bfo_recv_step(bfo_machine_t *m, unsigned event, const bfo_recv_ops_t *ops, void *request, void *arg);

/* Tests the guards: at fence_done, and where a hot row or a handler released the last event. */
void bfo_send_settle(bfo_machine_t *m, const bfo_send_ops_t *ops, void *request);
void bfo_recv_settle(bfo_machine_t *m, const bfo_recv_ops_t *ops, void *request);

/* The event of the first guard that holds, or BFO_SEV_NOTHING / BFO_REV_NOTHING. Pure. */
unsigned bfo_send_guard(uint32_t se, int32_t events, const bfo_send_facts_t *facts);
unsigned bfo_recv_guard(uint32_t se, int32_t events, const bfo_recv_facts_t *facts, bool threads);

/* One cell of a table, for tests and traces. Pure; next is the state word that follows se. */
typedef struct {
    bool listed;
    uint32_t next;
    unsigned action;
    unsigned kind;
    const char *row;
} bfo_cell_t;
bfo_cell_t bfo_send_cell(uint32_t se, unsigned event);
bfo_cell_t bfo_recv_cell(uint32_t se, unsigned event);

const char *bfo_send_state_name(unsigned state);
const char *bfo_send_event_name(unsigned event);
const char *bfo_send_action_name(unsigned action);
const char *bfo_recv_state_name(unsigned state);
const char *bfo_recv_event_name(unsigned event);
const char *bfo_recv_action_name(unsigned action);

#endif /* PML_BFO_FAILOVER_FSM_H */
