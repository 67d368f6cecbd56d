/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The engine of the request machines: looks up a row, claims the state word, runs the action, releases the event of a
 * completion, tests the guards. It posts nothing and owns no request. DESIGN.txt section 7.3 explains this order.
 * Without failover only the names remain. */
#include "bfo_assert.h"

#include "tables/pml_bfo_failover_fsm.h"

#include <stddef.h>

/* ---- names ------------------------------------------------------------------------------------------- */
#define STATE(name, text, is_err) text,
static const char *const send_state_names[] = {
#include "tables/pml_bfo_failover_send.def"
};

#define EVENT(name, kind, text) text,
static const char *const send_event_names[] = {
    "nothing",
#include "tables/pml_bfo_failover_send.def"
};

#define ACTION(name) #name,
static const char *const send_action_names[] = {
#include "tables/pml_bfo_failover_send.def"
};

#define STATE(name, text, is_err) text,
static const char *const recv_state_names[] = {
#include "tables/pml_bfo_failover_recv.def"
};

#define EVENT(name, kind, text) text,
static const char *const recv_event_names[] = {
    "nothing",
#include "tables/pml_bfo_failover_recv.def"
};

#define ACTION(name) #name,
static const char *const recv_action_names[] = {
#include "tables/pml_bfo_failover_recv.def"
};

#if PML_BFO
/* A pair (state, event) with two rows is an error, whatever the flags of the build. */
#pragma GCC diagnostic error "-Woverride-init"

enum { STEP_NONE, STEP_KEEP, STEP_ZERO, STEP_NEXT }; /* how a row changes the epoch; NONE: there is no row */

typedef struct {
    uint8_t step, next, action;
} row_t;

/* ---- sender: table, kinds -------------------------------------------------------------------------- */
#define ROW(id, state, event, next_, act) [BFO_SEND_##state][BFO_SEV_##event] = {STEP_KEEP, BFO_SEND_##next_, BFO_SACT_##act},
#define ROW_ZERO(id, state, event, next_, act) [BFO_SEND_##state][BFO_SEV_##event] = {STEP_ZERO, BFO_SEND_##next_, BFO_SACT_##act},
#define ROW_NEXT(id, state, event, next_, act) [BFO_SEND_##state][BFO_SEV_##event] = {STEP_NEXT, BFO_SEND_##next_, BFO_SACT_##act},
static const row_t send_rows[BFO_SEND_STATES][BFO_SEND_EVENTS] = {
#include "tables/pml_bfo_failover_send.def"
};

#define ROW(id, state, event, next_, act) [BFO_SEND_##state][BFO_SEV_##event] = #id,
static const char send_ids[BFO_SEND_STATES][BFO_SEND_EVENTS][6] = {
#include "tables/pml_bfo_failover_send.def"
};

#define EVENT(name, kind, text) BFO_KIND_##kind,
static const uint8_t send_kinds[BFO_SEND_EVENTS] = {
    BFO_KIND_CALL,
#include "tables/pml_bfo_failover_send.def"
};

/* ---- receiver: table, kinds ------------------------------------------------------------------------ */
#define ROW(id, state, event, next_, act) [BFO_RECV_##state][BFO_REV_##event] = {STEP_KEEP, BFO_RECV_##next_, BFO_RACT_##act},
#define ROW_ZERO(id, state, event, next_, act) [BFO_RECV_##state][BFO_REV_##event] = {STEP_ZERO, BFO_RECV_##next_, BFO_RACT_##act},
#define ROW_NEXT(id, state, event, next_, act) [BFO_RECV_##state][BFO_REV_##event] = {STEP_NEXT, BFO_RECV_##next_, BFO_RACT_##act},
static const row_t recv_rows[BFO_RECV_STATES][BFO_RECV_EVENTS] = {
#include "tables/pml_bfo_failover_recv.def"
};

#define ROW(id, state, event, next_, act) [BFO_RECV_##state][BFO_REV_##event] = #id,
static const char recv_ids[BFO_RECV_STATES][BFO_RECV_EVENTS][6] = {
#include "tables/pml_bfo_failover_recv.def"
};

#define EVENT(name, kind, text) BFO_KIND_##kind,
static const uint8_t recv_kinds[BFO_RECV_EVENTS] = {
    BFO_KIND_CALL,
#include "tables/pml_bfo_failover_recv.def"
};

/* ---- one cell ---------------------------------------------------------------------------------------- */
/* The differences between the two machines. */
typedef struct {
    const row_t *rows;
    const char (*ids)[6];
    const uint8_t *kinds;
    unsigned states, events;
} machine_t;

static const machine_t send_machine = {&send_rows[0][0], &send_ids[0][0], send_kinds, BFO_SEND_STATES, BFO_SEND_EVENTS};
static const machine_t recv_machine = {&recv_rows[0][0], &recv_ids[0][0], recv_kinds, BFO_RECV_STATES, BFO_RECV_EVENTS};

static bfo_cell_t cell(const machine_t *k, uint32_t se, unsigned event)
{
    static const uint16_t keep[] = {[STEP_NONE] = 0xffff, [STEP_KEEP] = 0xffff, [STEP_ZERO] = 0, [STEP_NEXT] = 0xffff};
    bfo_cell_t c = {.listed = false, .next = se, .kind = BFO_KIND_CALL, .row = "-"};
    unsigned state = bfo_se_state(se);
    const row_t *row;

    if (state >= k->states || event >= k->events) {
        return c;
    }
    c.kind = k->kinds[event];
    row = &k->rows[state * k->events + event];
    if (STEP_NONE == row->step) {
        return c;
    }
    c.listed = true;
    c.next = BFO_SE(row->next, (se & keep[row->step]) + (STEP_NEXT == row->step));
    c.action = row->action;
    c.row = k->ids[state * k->events + event];
    return c;
}

bfo_cell_t bfo_send_cell(uint32_t se, unsigned event)
{
    return cell(&send_machine, se, event);
}
bfo_cell_t bfo_recv_cell(uint32_t se, unsigned event)
{
    return cell(&recv_machine, se, event);
}

/* ---- rows taken, for tests/sim/rows ------------------------------------------------------------------ */
#if BFO_COUNT_ROWS
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

uint32_t bfo_send_rows_taken[BFO_SEND_STATES][BFO_SEND_EVENTS], bfo_recv_rows_taken[BFO_RECV_STATES][BFO_RECV_EVENTS];

static void count_row(const machine_t *k, uint32_t se, unsigned event)
{
    uint32_t *taken = &send_machine == k ? &bfo_send_rows_taken[0][0] : &bfo_recv_rows_taken[0][0];

    ++taken[bfo_se_state(se) * k->events + event];
}

static void write_rows(FILE *out, const char *machine, const machine_t *k, const uint32_t *taken, const char *const *states,
                       const char *const *events)
{
    for (unsigned i = 0; i < k->states * k->events; ++i) {
        if (0 != taken[i]) {
            fprintf(out, "%s|%s|%s|%u\n", machine, states[i / k->events], events[i % k->events], taken[i]);
        }
    }
}

static __attribute__((destructor)) void write_all_rows(void)
{
    const char *dir = getenv("BFO_ROWS_DIR");
    char path[4096];
    FILE *out;

    if (NULL == dir || sizeof(path) <= (size_t) snprintf(path, sizeof(path), "%s/pml.%d", dir, (int) getpid())) {
        return;
    }
    out = fopen(path, "w");
    if (NULL != out) {
        write_rows(out, "send", &send_machine, &bfo_send_rows_taken[0][0], send_state_names, send_event_names);
        write_rows(out, "recv", &recv_machine, &bfo_recv_rows_taken[0][0], recv_state_names, recv_event_names);
        fclose(out);
    }
}
#else
#define count_row(k, se, event) ((void) 0)
#endif

/* ---- walking ----------------------------------------------------------------------------------------- */
/* The row of an event that came to the engine. A row with an ACTION_IN_PLACE is none: the engine would change the state and do nothing. */
static bfo_cell_t row_of(const machine_t *k, uint32_t se, unsigned event, const bfo_fsm_ops_t *ops)
{
    bfo_cell_t c = cell(k, se, event);

    BFO_ASSERT(!c.listed || NULL != ops->actions[c.action]); /* such an event is fired */
    if (c.listed && NULL == ops->actions[c.action]) {
        c.listed = false;
        c.next = se;
    }
    return c;
}

/* Takes one row. For a guard, `look` is the one under which its facts were read, and a failed claim is final; for any other event the
 * row is looked up again in the changed word. A guard holds an event during its action: between the change of the word
 * and the end of the action no other thread may see the new state with the old bits and nothing outstanding. */
static bfo_step_t fire(const machine_t *k, bfo_machine_t *m, unsigned event, bfo_look_t look, const bfo_fsm_ops_t *ops, void *request, void *arg,
                       bfo_cell_t *out)
{
    uint32_t se = look.se;
    bfo_cell_t c = row_of(k, se, event, ops);

    while (c.listed && c.next != se && !bfo_se_claim(m, look, c.next, ops->threads)) {
        if (BFO_KIND_GUARD == c.kind) {
            return BFO_STEP_LOST;
        }
        look = bfo_look_at(m);
        se = look.se;
        c = row_of(k, se, event, ops);
    }
    *out = c;
    if (!c.listed) {
        ops->reject(request, se, event);
        return BFO_STEP_REJECTED;
    }
    count_row(k, se, event);
    if (NULL != ops->trace) {
        ops->trace(request, c.row, se, c.next, event);
    }
    ops->actions[c.action](request, arg);
    return BFO_STEP_TAKEN;
}

/* Takes a guard's row. True: test the guards again; false: the request is complete, or another thread handles it. */
static bool claim(const machine_t *k, bfo_machine_t *m, unsigned event, bfo_look_t look, unsigned done, const bfo_fsm_ops_t *ops, void *request)
{
    bfo_cell_t c = row_of(k, look.se, event, ops);
    bool held = ops->threads && done != bfo_se_state(c.next);
    bfo_step_t step;

    if (held) {
        bfo_events_up(m, true);
    }
    step = fire(k, m, event, look, ops, request, NULL, &c);
    if (held) {
        /* a thread that saw our event left the guards to us, even if our claim failed */
        return 0 == bfo_events_down(m, true) && BFO_STEP_REJECTED != step;
    }
    return BFO_STEP_TAKEN == step && done != bfo_se_state(c.next);
}

/* Reads `events` before and after the facts. The first 0 proves that no action of an earlier claim is half done, so the bits
 * belong to this word; the second proves that no completion is between counting its bytes and releasing its event. */
void bfo_send_settle(bfo_machine_t *m, const bfo_send_ops_t *ops, void *request)
{
    bool again = true;

    while (again) {
        bfo_look_t look = bfo_look_at(m);
        uint32_t se = look.se;
        bfo_send_facts_t facts = {.resp = false};
        unsigned event;

        if (!bfo_send_state_is_open(bfo_se_state(se)) || 0 != bfo_events_load(m)) {
            return;
        }
        ops->facts(request, bfo_se_state(se), &facts);
        event = bfo_send_guard(se, bfo_events_load(m), &facts);
        again = BFO_SEV_NOTHING != event && claim(&send_machine, m, event, look, BFO_SEND_DONE, &ops->fsm, request);
    }
}

void bfo_recv_settle(bfo_machine_t *m, const bfo_recv_ops_t *ops, void *request)
{
    bool again = true;

    while (again) {
        bfo_look_t look = bfo_look_at(m);
        uint32_t se = look.se;
        bfo_recv_facts_t facts = {.fail = false};
        unsigned event;

        if (!bfo_recv_state_is_open(bfo_se_state(se)) || 0 != bfo_events_load(m)) {
            return;
        }
        ops->facts(request, bfo_se_state(se), &facts);
        event = bfo_recv_guard(se, bfo_events_load(m), &facts, ops->fsm.threads);
        again = BFO_REV_NOTHING != event && claim(&recv_machine, m, event, look, BFO_RECV_DONE, &ops->fsm, request);
    }
}

/* A completion releases its event after the action, even if the table has no row, because otherwise the request would drain without end. */
static void drop_completion(bfo_machine_t *m, const bfo_cell_t *c, bool threads)
{
    if (BFO_KIND_COMPLETION == c->kind && 0 < bfo_events_load(m)) {
        (void) bfo_events_down(m, threads);
    }
}

bfo_step_t bfo_send_step(bfo_machine_t *m, unsigned event, const bfo_send_ops_t *ops, void *request, void *arg)
{
    bfo_cell_t c;
    bfo_step_t step = fire(&send_machine, m, event, bfo_look_at(m), &ops->fsm, request, arg, &c);

    if (BFO_SEND_DONE != bfo_se_state(c.next)) {
        drop_completion(m, &c, ops->fsm.threads);
        bfo_send_settle(m, ops, request);
    }
    return step;
}

bfo_step_t bfo_recv_step(bfo_machine_t *m, unsigned event, const bfo_recv_ops_t *ops, void *request, void *arg)
{
    bfo_cell_t c;
    bfo_step_t step = fire(&recv_machine, m, event, bfo_look_at(m), &ops->fsm, request, arg, &c);

    if (BFO_RECV_DONE != bfo_se_state(c.next)) {
        drop_completion(m, &c, ops->fsm.threads);
        bfo_recv_settle(m, ops, request);
    }
    return step;
}

/* ---- guards ------------------------------------------------------------------------------------------ */
#define GUARD(id, state_, event, condition) \
    if (BFO_SEND_##state_ == state && (condition)) { \
        return BFO_SEV_##event; \
    }
unsigned bfo_send_guard(uint32_t se, int32_t events, const bfo_send_facts_t *facts)
{
    unsigned state = bfo_se_state(se);
    bool epochs_left = BFO_EPOCH_LAST != bfo_se_epoch(se);
    bool rts_done = facts->rts_done, resp = facts->resp, all_bytes = facts->all_bytes;
    bool got_ack = facts->got_ack, got_nack = facts->got_nack, peer_fenced = facts->peer_fenced;

#include "tables/pml_bfo_failover_send.def"
    return BFO_SEV_NOTHING;
}

#define GUARD(id, state_, event, condition) \
    if (BFO_RECV_##state_ == state && (condition)) { \
        return BFO_REV_##event; \
    }
unsigned bfo_recv_guard(uint32_t se, int32_t events, const bfo_recv_facts_t *facts, bool threads)
{
    unsigned state = bfo_se_state(se);
    bool all_bytes = facts->all_bytes, fail = facts->fail;
    bool fences_done = facts->fences_done, peer_fenced = facts->peer_fenced;

#include "tables/pml_bfo_failover_recv.def"
    return BFO_REV_NOTHING;
}

#endif /* PML_BFO */

static const char *name(const char *const *names, unsigned count, unsigned index)
{
    return index < count ? names[index] : "?";
}

const char *bfo_send_state_name(unsigned state)
{
    return name(send_state_names, BFO_SEND_STATES, state);
}
const char *bfo_send_event_name(unsigned event)
{
    return name(send_event_names, BFO_SEND_EVENTS, event);
}
const char *bfo_send_action_name(unsigned action)
{
    return name(send_action_names, BFO_SEND_ACTIONS, action);
}
const char *bfo_recv_state_name(unsigned state)
{
    return name(recv_state_names, BFO_RECV_STATES, state);
}
const char *bfo_recv_event_name(unsigned event)
{
    return name(recv_event_names, BFO_RECV_EVENTS, event);
}
const char *bfo_recv_action_name(unsigned action)
{
    return name(recv_action_names, BFO_RECV_ACTIONS, action);
}
