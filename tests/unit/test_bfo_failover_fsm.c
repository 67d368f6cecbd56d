/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The request machines: this program walks every cell of both tables with its own actions, by the engine and fired, compares the guards
 * with rules written by hand, and compares the hot rows with the table. DESIGN.txt section 7. */
#include "bfo_assert.h"

#include "tables/pml_bfo_failover_fire.h"
#include "tables/pml_bfo_failover_fsm.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fsm_request.h"

/* ---- every cell -------------------------------------------------------------------------------------- */
/* The rows of the .def files as a list. The tables must hold these rows and no others. */
typedef struct {
    const char *id;
    unsigned state, event, next, action;
    int epoch; /* afterwards; the machine was at 7 */
} expected_t;

#define ROW(id, state, event, next, act) {#id, BFO_SEND_##state, BFO_SEV_##event, BFO_SEND_##next, BFO_SACT_##act, 7},
#define ROW_ZERO(id, state, event, next, act) {#id, BFO_SEND_##state, BFO_SEV_##event, BFO_SEND_##next, BFO_SACT_##act, 0},
#define ROW_NEXT(id, state, event, next, act) {#id, BFO_SEND_##state, BFO_SEV_##event, BFO_SEND_##next, BFO_SACT_##act, 8},
static const expected_t send_list[] = {
#include "tables/pml_bfo_failover_send.def"
};
#define ROW(id, state, event, next, act) {#id, BFO_RECV_##state, BFO_REV_##event, BFO_RECV_##next, BFO_RACT_##act, 7},
#define ROW_ZERO(id, state, event, next, act) {#id, BFO_RECV_##state, BFO_REV_##event, BFO_RECV_##next, BFO_RACT_##act, 0},
#define ROW_NEXT(id, state, event, next, act) {#id, BFO_RECV_##state, BFO_REV_##event, BFO_RECV_##next, BFO_RACT_##act, 8},
static const expected_t recv_list[] = {
#include "tables/pml_bfo_failover_recv.def"
};

typedef struct {
    const expected_t *list;
    size_t rows;
    unsigned states, events;
    bool sender;
} side_t;

static const side_t sides[] = {
    {send_list, sizeof(send_list) / sizeof(send_list[0]), BFO_SEND_STATES, BFO_SEND_EVENTS, true},
    {recv_list, sizeof(recv_list) / sizeof(recv_list[0]), BFO_RECV_STATES, BFO_RECV_EVENTS, false},
};

static const expected_t *find(const side_t *side, unsigned state, unsigned event)
{
    for (size_t i = 0; i < side->rows; i++) {
        if (state == side->list[i].state && event == side->list[i].event) {
            return &side->list[i];
        }
    }
    return NULL;
}

static unsigned kind_of(bool sender, unsigned event)
{
    return sender ? bfo_send_cell(0, event).kind : bfo_recv_cell(0, event).kind;
}

/* Two outstanding events keep every guard from acting, so that exactly one row is seen. */
static void walk_cell(const side_t *side, unsigned state, unsigned event, size_t *hit)
{
    const expected_t *want = find(side, state, event);
    request_t r = {.m = {.se = BFO_SE(state, 7), .events = 2}, .last = ACTIONS_MAX};
    bfo_cell_t cell = side->sender ? bfo_send_cell(r.m.se, event) : bfo_recv_cell(r.m.se, event);
    bfo_step_t step = side->sender ? bfo_send_step(&r.m, event, &send_ops, &r, NULL) : bfo_recv_step(&r.m, event, &recv_ops, &r, NULL);
    bool completion = BFO_KIND_COMPLETION == cell.kind;
    bool open = side->sender ? bfo_send_state_is_open(state) : bfo_recv_state_is_open(state);

    if (NULL == want) {
        assert_int_equal(BFO_STEP_REJECTED, step);
        assert_false(cell.listed);
        assert_int_equal(BFO_SE(state, 7), r.m.se);
        assert_int_equal(ACTIONS_MAX, r.last);
        assert_int_equal(1, r.rejected);
        assert_int_equal(completion && (open || 0 == state) ? 1 : 2, r.m.events);
        return;
    }
    assert_int_equal(BFO_STEP_TAKEN, step);
    assert_true(cell.listed);
    assert_int_equal(BFO_SE(want->next, want->epoch), r.m.se);
    assert_int_equal(want->action, r.last);
    assert_int_equal(1, r.ran[want->action]);
    assert_int_equal(0, r.rejected);
    assert_string_equal(want->id, r.row);
    assert_int_equal(completion ? 1 : 2, r.m.events);
    (*hit)++;
}

static void machine_every_cell_does_its_row_or_is_rejected(void **unused)
{
    (void) unused;
    for (int i = 0; i < 2; i++) {
        size_t hit = 0;

        for (unsigned state = 0; state < sides[i].states; state++) {
            for (unsigned event = 0; event < sides[i].events; event++) {
                walk_cell(&sides[i], state, event, &hit);
            }
        }
        assert_int_equal(sides[i].rows, hit); /* every row was hit once */
        print_message("%s: %u cells, %zu rows hit\n", sides[i].sender ? "sender" : "receiver", sides[i].states * sides[i].events, hit);
    }
}

static void machine_garbage_states_and_events_are_rejected(void **unused)
{
    request_t r = {.m = {.se = 0xffff0007u, .events = 1}};

    (void) unused;
    assert_int_equal(BFO_STEP_REJECTED, bfo_send_step(&r.m, BFO_SEV_ACK, &send_ops, &r, NULL));
    assert_int_equal(BFO_STEP_REJECTED, bfo_recv_step(&r.m, 9999, &recv_ops, &r, NULL));
    assert_int_equal(2, r.rejected);
    assert_int_equal(0xffff0007u, r.m.se);
    assert_string_equal("?", bfo_send_state_name(77));
    assert_string_equal("?", bfo_recv_event_name(9999));
    for (unsigned i = 0; i < 2; i++) { /* the first number that is no event, and a later number, in a state that exists */
        request_t known = {.m = {.se = BFO_SE(sides[i].sender ? BFO_SEND_STREAM : BFO_RECV_ACTIVE, 7), .events = 1}, .last = ACTIONS_MAX};
        const unsigned event = sides[i].events;

        assert_int_equal(BFO_STEP_REJECTED, sides[i].sender ? bfo_send_step(&known.m, event, &send_ops, &known, NULL)
                                                            : bfo_recv_step(&known.m, event, &recv_ops, &known, NULL));
        assert_false(sides[i].sender ? bfo_send_cell(known.m.se, 9999).listed : bfo_recv_cell(known.m.se, 9999).listed);
        assert_int_equal(BFO_SE(sides[i].sender ? BFO_SEND_STREAM : BFO_RECV_ACTIVE, 7), known.m.se);
        assert_true(1 == known.rejected && ACTIONS_MAX == known.last && NULL == known.row && 1 == known.m.events);
    }
}

/* The events of the request have all been released: another completion that no row expects changes nothing, and the request still ends. */
static void machine_a_completion_too_many_releases_nothing(void **unused)
{
    (void) unused;
    for (int i = 0; i < 2; i++) {
        const bool sender = sides[i].sender;
        const unsigned state = sender ? BFO_SEND_RTS : BFO_RECV_ACTIVE, done = sender ? BFO_SEND_DONE : BFO_RECV_DONE;
        unsigned n = 0;

        for (unsigned event = 1; event < sides[i].events; event++) {
            request_t r = {.m = {.se = BFO_SE(state, 7)}, .last = ACTIONS_MAX};

            if (NULL != find(&sides[i], state, event) || BFO_KIND_COMPLETION != kind_of(sender, event)) {
                continue;
            }
            assert_int_equal(BFO_STEP_REJECTED,
                             sender ? bfo_send_step(&r.m, event, &send_ops, &r, NULL) : bfo_recv_step(&r.m, event, &recv_ops, &r, NULL));
            assert_true(BFO_SE(state, 7) == r.m.se && 0 == r.m.events && 1 == r.rejected);
            r.send = (bfo_send_facts_t){.resp = true, .all_bytes = true};
            r.recv = (bfo_recv_facts_t){.all_bytes = true};
            if (sender) {
                bfo_send_settle(&r.m, &send_ops, &r);
            } else {
                bfo_recv_settle(&r.m, &recv_ops, &r);
            }
            assert_int_equal(done, bfo_se_state(r.m.se));
            n++;
        }
        assert_true(0 < n);
    }
}

/* ---- every cell, fired -------------------------------------------------------------------------------- */
#define ACTION(name) \
    void bfo_send_act_##name(void *request, void *arg) \
    { \
        send_##name(request, arg); \
    }
#include "tables/pml_bfo_failover_send.def"
#define ACTION(name) \
    void bfo_recv_act_##name(void *request, void *arg) \
    { \
        recv_##name(request, arg); \
    }
#include "tables/pml_bfo_failover_recv.def"

void bfo_tell_send_step(void *request, const char *row, uint32_t from, uint32_t to, unsigned event)
{
    trace(request, row, from, to, event);
}

void bfo_tell_recv_step(void *request, const char *row, uint32_t from, uint32_t to, unsigned event)
{
    trace(request, row, from, to, event);
}

/* Is this an event of a message that nothing goes wrong with? The first four and two are completions that can also come late. */
static bool is_usual(bool sender, unsigned event, size_t n)
{
    static const unsigned sends[] = {BFO_SEV_MATCH_OK, BFO_SEV_RTS_OK, BFO_SEV_FRAG_OK, BFO_SEV_WRITE_OK, BFO_SEV_FIN, BFO_SEV_ALL_DELIVERED};
    static const unsigned recvs[] = {BFO_REV_READ_OK,       BFO_REV_READ_ALL_OK, BFO_REV_CANCEL,
                                     BFO_REV_MATCHED_EAGER, BFO_REV_MATCHED,     BFO_REV_RESPONSE_OK};

    for (size_t i = 0; i < n; i++) {
        if ((sender ? sends[i] : recvs[i]) == event) {
            return true;
        }
    }
    return false;
}

/* A completion of a message that nothing seemed wrong with, in an ERR-class state: it is for the engine. */
static bool is_late(bool sender, unsigned state, unsigned event)
{
    return is_usual(sender, event, sender ? 4 : 2) && (sender ? bfo_send_state_is_err(state) : bfo_recv_state_is_err(state));
}

static void fire_cell(const side_t *side, unsigned state, unsigned event, bool threads)
{
    const expected_t *want = is_late(side->sender, state, event) ? NULL : find(side, state, event);
    request_t r = {.m = {.se = BFO_SE(state, 7), .events = 2}, .last = ACTIONS_MAX};
    bool fired = side->sender ? bfo_send_fire(&r.m, event, threads, &r, NULL) : bfo_recv_fire(&r.m, event, threads, &r, NULL);

    assert_int_equal(NULL != want, fired);
    assert_int_equal(2, r.m.events); /* the caller releases the event of a completion */
    if (NULL == want) {
        assert_int_equal(BFO_SE(state, 7), r.m.se);
        assert_int_equal(ACTIONS_MAX, r.last);
        return;
    }
    assert_int_equal(BFO_SE(want->next, want->epoch), r.m.se);
    assert_int_equal((side->sender ? BFO_SACT_none : BFO_RACT_none) == want->action ? ACTIONS_MAX : want->action, r.last);
    if (is_usual(side->sender, event, 6)) {
        assert_null(r.row);
    } else {
        assert_non_null(r.row);
        assert_string_equal(want->id, r.row);
    }
}

static void fired_every_cell_does_its_row_or_is_for_the_engine(void **unused)
{
    (void) unused;
    for (int i = 0; i < 2; i++) {
        for (unsigned state = 0; state < sides[i].states; state++) {
            for (unsigned event = 0; event < sides[i].events; event++) {
                fire_cell(&sides[i], state, event, false);
                fire_cell(&sides[i], state, event, true);
            }
        }
    }
}

/* ---- rows whose action the engine does not have ------------------------------------------------------- */
#define ACTION(name) [BFO_SACT_##name] = send_##name,
#define ACTION_IN_PLACE(name)
static const bfo_action_fn_t engine_actions[BFO_SEND_ACTIONS] = {
#include "tables/pml_bfo_failover_send.def"
};
static const bfo_send_ops_t engine_ops = {{engine_actions, reject, trace, false}, send_facts};

static bool is_rejected(unsigned state, unsigned event)
{
    request_t r = {.m = {.se = BFO_SE(state, 7), .events = 2}, .last = ACTIONS_MAX};

    return BFO_STEP_REJECTED == bfo_send_step(&r.m, event, &engine_ops, &r, NULL) && BFO_SE(state, 7) == r.m.se && ACTIONS_MAX == r.last
           && NULL == r.row && 1 == r.rejected && (BFO_KIND_COMPLETION == bfo_send_cell(r.m.se, event).kind ? 1 : 2) == r.m.events;
}

/* With assertions such a row ends the process; without them it changes nothing, and is counted. */
static void machine_an_action_in_place_is_no_action_of_the_engine(void **unused)
{
    int status = 0;
    pid_t child;

    (void) unused;
    assert_false(is_rejected(BFO_SEND_STREAM, BFO_SEV_DATA_ERR));
    child = fork();
    if (0 == child) {
        (void) signal(SIGABRT, SIG_DFL);
        (void) close(STDERR_FILENO);
        _exit(is_rejected(BFO_SEND_STREAM, BFO_SEV_FRAG_OK) && is_rejected(BFO_SEND_RTS, BFO_SEV_ACK) ? 0 : 1);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(BFO_ASSERTIONS ? WIFSIGNALED(status) && SIGABRT == WTERMSIG(status) : WIFEXITED(status) && 0 == WEXITSTATUS(status));
}

/* ---- shape of the tables ------------------------------------------------------------------------------ */
static void machine_tables_keep_their_promises(void **unused)
{
    (void) unused;
    for (int i = 0; i < 2; i++) {
        const side_t *side = &sides[i];
        unsigned done = side->sender ? BFO_SEND_DONE : BFO_RECV_DONE;
        unsigned dead = side->sender ? BFO_SEND_DEAD : BFO_RECV_DEAD;
        unsigned declared = side->sender ? BFO_SEV_PEER_DECLARED : BFO_REV_PEER_DECLARED;

        for (size_t k = 0; k < side->rows; k++) {
            const expected_t *e = &side->list[k];
            unsigned kind = kind_of(side->sender, e->event);

            /* a request is not complete while the completion that runs still holds an event */
            assert_false(BFO_KIND_COMPLETION == kind && done == e->next);
            /* a guard that changed nothing would be raised without end */
            assert_false(BFO_KIND_GUARD == kind && e->next == e->state && 7 == e->epoch);
            /* DEAD is left by completion only */
            assert_false(dead == e->state && dead != e->next && done != e->next);
        }
        for (unsigned state = 0; state < side->states; state++) {
            bool open = side->sender ? bfo_send_state_is_open(state) : bfo_recv_state_is_open(state);
            const expected_t *e = find(side, state, declared);

            assert_true(open == (NULL != e));
            assert_true(NULL == e || dead == e->next);
        }
        for (unsigned event = 1; event < side->events; event++) { /* DEAD has a row for every completion */
            assert_true(BFO_KIND_COMPLETION != kind_of(side->sender, event) || NULL != find(side, dead, event));
        }
    }
    assert_true(bfo_send_state_is_err(BFO_SEND_ERRD) && bfo_send_state_is_err(BFO_SEND_NOTIFIED) && bfo_send_state_is_err(BFO_SEND_DEAD));
    assert_false(bfo_send_state_is_err(BFO_SEND_RTS) || bfo_send_state_is_err(BFO_SEND_STREAM) || bfo_send_state_is_err(BFO_SEND_DONE)
                 || bfo_send_state_is_err(BFO_SEND_EAGER));
    assert_false(bfo_recv_state_is_err(BFO_RECV_UNMATCHED) || bfo_recv_state_is_err(BFO_RECV_ACTIVE) || bfo_recv_state_is_err(BFO_RECV_DONE));
    assert_true(bfo_recv_state_is_err(BFO_RECV_ERRL) && bfo_recv_state_is_err(BFO_RECV_QUIESCE) && bfo_recv_state_is_err(BFO_RECV_SEALED)
                && bfo_recv_state_is_err(BFO_RECV_WAITRTS) && bfo_recv_state_is_err(BFO_RECV_DEAD));
}

/* ---- guards: written a second time, by hand, over every combination of facts --------------------------- */
static unsigned send_guard_by_hand(unsigned state, unsigned epoch, int events, const bfo_send_facts_t *f)
{
    if (0 != events) {
        return BFO_SEV_NOTHING;
    }
    switch (state) {
    case BFO_SEND_EAGER:
        return f->rts_done ? BFO_SEV_ALL_DELIVERED : BFO_SEV_NOTHING;
    case BFO_SEND_RTS:
    case BFO_SEND_STREAM:
        return f->resp && f->all_bytes ? BFO_SEV_ALL_DELIVERED : BFO_SEV_NOTHING;
    case BFO_SEND_ERRD:
        return epoch < 65535 ? BFO_SEV_DRAINED : BFO_SEV_EPOCH_SPENT;
    case BFO_SEND_NOTIFIED:
        if (f->got_nack) {
            return BFO_SEV_DRAINED_NACKED;
        }
        return f->got_ack ? BFO_SEV_DRAINED_ACKED : BFO_SEV_NOTHING;
    case BFO_SEND_DEAD:
        return f->peer_fenced ? BFO_SEV_DEAD_DRAINED : BFO_SEV_NOTHING;
    default:
        return BFO_SEV_NOTHING;
    }
}

static unsigned recv_guard_by_hand(unsigned state, int events, const bfo_recv_facts_t *f, bool threads)
{
    if (0 != events) {
        return BFO_REV_NOTHING;
    }
    switch (state) {
    case BFO_RECV_ACTIVE:
    case BFO_RECV_ERRL:
        return f->all_bytes ? BFO_REV_ALL_PLACED : BFO_REV_NOTHING;
    case BFO_RECV_QUIESCE:
    case BFO_RECV_SEALED:
        if (f->all_bytes) {
            return BFO_REV_ALL_PLACED;
        }
        if (!f->fences_done) {
            return BFO_REV_NOTHING;
        }
        if (threads && BFO_RECV_QUIESCE == state) {
            return BFO_REV_QUIET_SHARED;
        }
        return f->fail ? BFO_REV_QUIET_FAILED : BFO_REV_QUIET;
    case BFO_RECV_DEAD:
        return f->peer_fenced ? BFO_REV_DEAD_DRAINED : BFO_REV_NOTHING;
    default:
        return BFO_REV_NOTHING;
    }
}

static void guard_every_combination_of_facts_raises_the_right_event(void **unused)
{
    (void) unused;
    for (unsigned bits = 0; bits < 256; bits++) {
        bfo_send_facts_t sf = {bits & 1, bits & 2, bits & 4, bits & 8, bits & 16, bits & 32};
        bfo_recv_facts_t rf = {bits & 1, bits & 2, bits & 4, bits & 8};
        int events = bits & 128 ? 1 : 0;

        for (unsigned state = 0; state < BFO_SEND_STATES; state++) {
            for (unsigned epoch = 0; epoch <= 65535; epoch += 13107) {
                unsigned event = bfo_send_guard(BFO_SE(state, epoch), events, &sf);

                assert_int_equal(send_guard_by_hand(state, epoch, events, &sf), event);
                assert_true(BFO_SEV_NOTHING == event || NULL != find(&sides[0], state, event));
            }
        }
        for (unsigned state = 0; state < BFO_RECV_STATES; state++) {
            bool threads = bits & 64;
            unsigned event = bfo_recv_guard(BFO_SE(state, 3), events, &rf, threads);

            assert_int_equal(recv_guard_by_hand(state, events, &rf, threads), event);
            assert_true(BFO_REV_NOTHING == event || NULL != find(&sides[1], state, event));
        }
    }
}

/* ---- hot rows equal their rows in the table ------------------------------------------------------------ */
static void hot_rows_equal_the_table(void **unused)
{
    static const unsigned epochs[] = {0, 1, 7, 65535};

    (void) unused;
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < 4; i++) {
            for (unsigned state = 0; state < BFO_SEND_STATES; state++) {
                bfo_machine_t m = {.se = BFO_SE(state, epochs[i])};
                bfo_cell_t ack = bfo_send_cell(m.se, BFO_SEV_ACK), put = bfo_send_cell(m.se, BFO_SEV_PUT);
                bool taken = bfo_send_takes_response(m.se, (uint16_t) epochs[i]);

                assert_true(taken == ack.listed && taken == put.listed);
                assert_false(bfo_send_takes_response(m.se, (uint16_t) (epochs[i] + 1)));
                bfo_send_take_response(&m, 1 == t); /* not admissible, because another event came between the test and this call */
                assert_int_equal(taken ? ack.next : BFO_SE(state, epochs[i]), m.se);
                assert_true(!taken || ack.next == put.next);
            }
        }
    }
    for (unsigned state = 0; state < BFO_SEND_STATES; state++) {
        bfo_machine_t m = {.se = BFO_SE(state, 7)};

        assert_int_equal(bfo_send_cell(m.se, BFO_SEV_RERR).listed, bfo_send_is_flowing(m.se));
        assert_true(!bfo_send_is_flowing(m.se) || bfo_send_cell(m.se, BFO_SEV_RTS_OK).next == m.se);
        assert_int_equal(BFO_SEND_STREAM == state, bfo_send_cell(m.se, BFO_SEV_WRITE_OK).action == BFO_SACT_count_write_post_fin);
    }
    for (unsigned state = 0; state < BFO_RECV_STATES; state++) {
        bfo_machine_t m = {.se = BFO_SE(state, 7)};
        bfo_cell_t frag = bfo_recv_cell(m.se, BFO_REV_FRAG);

        assert_int_equal(frag.listed, bfo_recv_takes_data(m.se, 7));
        assert_false(bfo_recv_takes_data(m.se, 8));
        assert_int_equal(bfo_recv_cell(m.se, BFO_REV_FIN).listed, bfo_recv_takes_data(m.se, 7));
    }
    bfo_machine_t start = {.se = BFO_SE(BFO_SEND_DONE, 9)};
    bfo_send_start(&start, false);
    assert_int_equal(bfo_send_cell(BFO_SE(BFO_SEND_DONE, 9), BFO_SEV_START).next, start.se);
    bfo_send_start(&start, true);
    assert_int_equal(bfo_send_cell(BFO_SE(BFO_SEND_DONE, 9), BFO_SEV_START_EAGER).next, start.se);
    bfo_recv_post(&start);
    assert_int_equal(bfo_recv_cell(BFO_SE(BFO_RECV_DONE, 9), BFO_REV_POST).next, start.se);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_every_cell_does_its_row_or_is_rejected),
        cmocka_unit_test(machine_garbage_states_and_events_are_rejected),
        cmocka_unit_test(machine_a_completion_too_many_releases_nothing),
        cmocka_unit_test(fired_every_cell_does_its_row_or_is_for_the_engine),
        cmocka_unit_test(machine_an_action_in_place_is_no_action_of_the_engine),
        cmocka_unit_test(machine_tables_keep_their_promises),
        cmocka_unit_test(guard_every_combination_of_facts_raises_the_right_event),
        cmocka_unit_test(hot_rows_equal_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
