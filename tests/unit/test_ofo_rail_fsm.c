/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The machine of a rail: this program walks every cell and checks the guards against rules written by hand. Two machines bring a rail
 * down and up over paths that lose, duplicate and reorder messages; they take every row except those of not_taken_because(). DESIGN.txt
 * section 10.2.
 * BFO_TEST_SEED replays a run of the last test. */
#include "btl_openib_rail_fsm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- every cell ------------------------------------------------------------------------------------------ */
typedef struct {
    const char *id;
    unsigned state, event, next, effect, action;
} expected_t;

#define ROW(id, state, event, next, effect, act) {#id, OFO_RAIL_##state, OFO_REV_##event, OFO_RAIL_##next, OFO_REFF_##effect, OFO_RACT_##act},
static const expected_t list[] = {
#include "btl_openib_rail.def"
};
enum { ROWS = sizeof(list) / sizeof(list[0]) };

static const expected_t *find(unsigned state, unsigned event)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (state == list[i].state && event == list[i].event) {
            return &list[i];
        }
    }
    return NULL;
}

/* The machine after each effect, written by hand. Before: g=7, fz=0, da=1, no check owed, a message about generation 9. */
static ofo_rail_machine_t after(const expected_t *e)
{
    ofo_rail_machine_t r = {.state = (uint8_t) e->next, .g = 7, .da = true};

    switch (e->effect) {
    case OFO_REFF_FENCE:
        r.fz = true;
        r.da = false;
        break;
    case OFO_REFF_FENCE_ACKED:
        r.fz = true;
        break;
    case OFO_REFF_NEXT:
        r.g = 8;
        r.da = false;
        break;
    case OFO_REFF_ADOPT:
        r.g = 9;
        r.da = false;
        break;
    case OFO_REFF_ADOPT_ACKED:
        r.g = 9;
        break;
    case OFO_REFF_OWE:
        r.g = 9;
        r.da = false;
        r.owes = true;
        r.ck = 7;
        break;
    case OFO_REFF_OWE_ACKED:
        r.g = 9;
        r.owes = true;
        r.ck = 7;
        break;
    default:
        break;
    }
    return r;
}

static void assert_same(const ofo_rail_machine_t *want, const ofo_rail_machine_t *is)
{
    assert_string_equal(ofo_rail_state_name(want->state), ofo_rail_state_name(is->state));
    assert_int_equal(want->g, is->g);
    assert_int_equal(want->fz, is->fz);
    assert_int_equal(want->da, is->da);
    assert_int_equal(want->owes, is->owes);
    assert_int_equal(want->owes ? want->ck : 0, is->owes ? is->ck : 0);
}

static void rail_every_cell_does_its_row_or_is_dropped(void **unused)
{
    size_t hit = 0;

    (void) unused;
    for (unsigned state = 0; state < OFO_RAIL_STATES; state++) {
        for (unsigned event = 0; event < OFO_RAIL_EVENTS; event++) {
            const expected_t *e = find(state, event);
            ofo_rail_machine_t r = {.state = (uint8_t) state, .g = 7, .da = true}, want = r;
            ofo_rail_step_t step = ofo_rail_step(&r, event, 9);

            assert_int_equal(NULL != e, step.listed);
            if (NULL != e) {
                want = after(e);
                assert_string_equal(e->id, step.row);
                hit++;
            }
            assert_int_equal(NULL != e ? e->action : OFO_RACT_none, step.action);
            assert_same(&want, &r);
        }
    }
    assert_int_equal(ROWS, hit);
    print_message("rail: %d cells, %zu rows hit\n", OFO_RAIL_STATES * OFO_RAIL_EVENTS, hit);
}

static void rail_garbage_is_dropped(void **unused)
{
    ofo_rail_machine_t r = {.state = 99, .g = 1}, want = r;

    (void) unused;
    assert_false(ofo_rail_step(&r, OFO_REV_DOWN_NOW, 1).listed);
    r.state = OFO_RAIL_UP;
    assert_false(ofo_rail_step(&r, 999, 1).listed);
    assert_false(ofo_rail_step(&r, OFO_REV_NOTHING, 1).listed);
    want.state = OFO_RAIL_UP;
    assert_same(&want, &r);
    assert_string_equal("?", ofo_rail_state_name(99));
}

/* ---- guards ------------------------------------------------------------------------------------------------ */
static void rail_guards_tell_old_now_and_new_apart(void **unused)
{
    ofo_rail_machine_t r = {.state = OFO_RAIL_DOWNL, .g = 5};

    (void) unused;
    assert_int_equal(OFO_REV_DOWN_OLD, ofo_rail_down_event(&r, 4));
    assert_int_equal(OFO_REV_DOWN_NOW, ofo_rail_down_event(&r, 5));
    assert_int_equal(OFO_REV_DOWN_NEW, ofo_rail_down_event(&r, 6));
    assert_int_equal(OFO_REV_DACK_OLD, ofo_rail_dack_event(&r, 4));
    assert_int_equal(OFO_REV_DACK_NOW, ofo_rail_dack_event(&r, 5));
    assert_int_equal(OFO_REV_DACK_NEW, ofo_rail_dack_event(&r, 6));
    assert_int_equal(OFO_REV_FENCE_DONE, ofo_rail_fence_event(&r));
    r.da = true;
    assert_int_equal(OFO_REV_FENCE_DONE_ACKED, ofo_rail_fence_event(&r));
    r.fz = true;
    assert_int_equal(OFO_REV_DOWN_NOW_FENCING, ofo_rail_down_event(&r, 5));
    assert_int_equal(OFO_REV_DOWN_NEW_FENCING, ofo_rail_down_event(&r, 6));
    assert_int_equal(OFO_REV_DACK_NOW_FENCING, ofo_rail_dack_event(&r, 5));
    assert_int_equal(OFO_REV_DACK_NEW_FENCING, ofo_rail_dack_event(&r, 65535));
    r.owes = true;
    r.ck = 3;
    assert_int_equal(OFO_REV_DACK_OLD_DUE, ofo_rail_dack_event(&r, 3));
    assert_int_equal(OFO_REV_DACK_OLD, ofo_rail_dack_event(&r, 4));
}

static void rail_guards_of_the_handshake(void **unused)
{
    ofo_rail_machine_t r = {.state = OFO_RAIL_DOWNB, .g = 5, .da = true};

    (void) unused;
    assert_int_equal(OFO_REV_REQ_NEXT, ofo_rail_req_event(&r, 6, true, true));
    assert_int_equal(OFO_REV_REQ_NEXT_REFUSED, ofo_rail_req_event(&r, 6, false, true));
    assert_int_equal(OFO_REV_REQ_NEW, ofo_rail_req_event(&r, 7, true, true));
    assert_int_equal(OFO_REV_REQ_NOW_HIGHER, ofo_rail_req_event(&r, 5, true, true));
    assert_int_equal(OFO_REV_REQ_NOW_LOWER, ofo_rail_req_event(&r, 5, true, false));
    assert_int_equal(OFO_REV_NOTHING, ofo_rail_req_event(&r, 4, true, true));
    assert_true(ofo_rail_may_rejoin(&r));
    r.owes = true;
    assert_int_equal(OFO_REV_REQ_NEXT_BLOCKED, ofo_rail_req_event(&r, 6, true, true));
    assert_false(ofo_rail_may_rejoin(&r));
    r = (ofo_rail_machine_t){.state = OFO_RAIL_DOWNB, .g = 65535};
    assert_false(ofo_rail_may_rejoin(&r)); /* the last generation never comes back */
    assert_int_equal(OFO_REV_NOTHING, ofo_rail_req_event(&r, 0, true, true));
    r.state = OFO_RAIL_UP;
    r.g = 5;
    assert_int_equal(OFO_REV_REQ_NEW, ofo_rail_req_event(&r, 6, true, true));
    assert_int_equal(OFO_REV_REP_NOW, ofo_rail_rep_event(&r, 5, true, true));
    assert_int_equal(OFO_REV_REP_AGAIN, ofo_rail_rep_event(&r, 5, true, false));
    assert_int_equal(OFO_REV_NOTHING, ofo_rail_rep_event(&r, 5, false, true));
    assert_int_equal(OFO_REV_NOTHING, ofo_rail_rep_event(&r, 4, true, true));
    assert_int_equal(OFO_REV_PEER_READY, ofo_rail_rtu_event(&r, 5, true));
    assert_int_equal(OFO_REV_PEER_READY_AGAIN, ofo_rail_rtu_event(&r, 5, false));
    assert_int_equal(OFO_REV_NOTHING, ofo_rail_rtu_event(&r, 6, true));
    assert_int_equal(OFO_REV_REJ_NOW, ofo_rail_rej_event(&r, 5));
    assert_int_equal(OFO_REV_NOTHING, ofo_rail_rej_event(&r, 6));
}

static void rail_is_fenced_only_behind_its_own_fence(void **unused)
{
    ofo_rail_machine_t r = {.state = OFO_RAIL_UP, .g = 2};

    (void) unused;
    assert_true(ofo_rail_is_fenced(&r, 1));
    assert_false(ofo_rail_is_fenced(&r, 2));
    assert_false(ofo_rail_is_fenced(&r, 3));
    (void) ofo_rail_step(&r, OFO_REV_LOCAL_ERROR, 0);
    assert_false(ofo_rail_is_fenced(&r, 2));
    (void) ofo_rail_step(&r, ofo_rail_fence_event(&r), 0);
    assert_true(ofo_rail_is_fenced(&r, 2));
    assert_false(ofo_rail_is_fenced(&r, 3));
}

/* The rail still owes the check of a generation that carried data after attempts that the peer gave up unseen. */
static void rail_debt_of_a_check_is_not_overwritten(void **unused)
{
    ofo_rail_machine_t r = {.state = OFO_RAIL_UP, .g = 4};

    (void) unused;
    (void) ofo_rail_step(&r, OFO_REV_LOCAL_ERROR, 0);
    (void) ofo_rail_step(&r, ofo_rail_fence_event(&r), 0);
    for (uint16_t x = 5; x < 9; x++) {
        assert_int_equal(OFO_RACT_send_dack_empty, ofo_rail_step(&r, ofo_rail_down_event(&r, x), x).action);
        assert_int_equal(x, r.g);
        assert_true(r.owes);
        assert_int_equal(4, r.ck);
        assert_false(ofo_rail_may_rejoin(&r));
    }
    assert_int_equal(OFO_RACT_check_old, ofo_rail_step(&r, ofo_rail_dack_event(&r, 4), 4).action);
    assert_false(r.owes);
}

/* ---- two machines and a bad network ---------------------------------------------------------------------------- */
enum { DOWN = 1, DACK, REQ, REP, RTU, KINDS, MAIL = 64, RUNS = 3000, STEPS = 400 };

typedef struct {
    int kind;
    uint16_t x;
} mail_t;

typedef struct {
    ofo_rail_machine_t r;
    bool seen_rep, seen_rtu, validating;
    bool qp_alive; /* queue pairs of generation r.g can receive */
    mail_t in[MAIL];
    int mails;
} end_t;

typedef struct {
    end_t end[2];
    unsigned first, seed; /* the seed of the run, and where the dice are now */
    bool lossy;
    int ups;
} world_t;

static unsigned dice(world_t *w, unsigned sides)
{
    w->seed = w->seed * 1103515245u + 12345u;
    return w->seed / 65536u % sides;
}

static void mail(world_t *w, int to, int kind, uint16_t x)
{
    int copies = w->lossy ? (int) dice(w, 3) : 1;

    for (int i = 0; i < copies && w->end[to].mails < MAIL; i++) {
        w->end[to].in[w->end[to].mails++] = (mail_t){kind, x};
    }
}

static void start_fence(end_t *e)
{
    e->qp_alive = false;
    e->validating = false;
}

static void new_queue_pairs(end_t *e)
{
    e->qp_alive = true;
    e->seen_rep = e->seen_rtu = e->validating = false;
}

static void perform(world_t *w, int me, unsigned action, uint16_t x)
{
    end_t *e = &w->end[me];

    switch (action) {
    case OFO_RACT_fence_send_down:
        start_fence(e);
        mail(w, 1 - me, DOWN, e->r.g);
        break;
    case OFO_RACT_fence:
    case OFO_RACT_fence_keep_counts:
        start_fence(e);
        break;
    case OFO_RACT_send_dack:
    case OFO_RACT_send_dack_check:
    case OFO_RACT_send_dack_empty:
        mail(w, 1 - me, DACK, e->r.g);
        break;
    case OFO_RACT_send_dack_old:
        mail(w, 1 - me, DACK, x);
        break;
    case OFO_RACT_request:
        new_queue_pairs(e);
        mail(w, 1 - me, REQ, e->r.g);
        break;
    case OFO_RACT_reply:
        new_queue_pairs(e);
        mail(w, 1 - me, REP, e->r.g);
        break;
    case OFO_RACT_turn_passive:
    case OFO_RACT_send_rep:
        mail(w, 1 - me, REP, e->r.g);
        break;
    case OFO_RACT_ready_validate:
        e->seen_rep = e->validating = true;
        break;
    case OFO_RACT_validate:
        e->seen_rtu = e->validating = true;
        break;
    case OFO_RACT_send_rtu_map:
        w->ups++;
        mail(w, 1 - me, RTU, e->r.g);
        break;
    case OFO_RACT_send_rtu:
        mail(w, 1 - me, RTU, e->r.g);
        break;
    case OFO_RACT_report_impossible:
        fail_msg("seed %u: an impossible message, generation %u at %s(%u)", w->first, x, ofo_rail_state_name(e->r.state), e->r.g);
        break;
    default:
        break;
    }
}

static unsigned long taken[OFO_RAIL_STATES][OFO_RAIL_EVENTS];

static void step(world_t *w, int me, unsigned event, uint16_t x)
{
    if (event < OFO_RAIL_EVENTS) {
        taken[w->end[me].r.state][event]++;
    }
    perform(w, me, ofo_rail_step(&w->end[me].r, event, x).action, x);
}

static void receive(world_t *w, int me)
{
    end_t *e = &w->end[me];
    int i = (int) dice(w, (unsigned) e->mails);
    mail_t m = e->in[i];

    e->in[i] = e->in[--e->mails];
    switch (m.kind) {
    case DOWN:
        step(w, me, ofo_rail_down_event(&e->r, m.x), m.x);
        break;
    case DACK:
        step(w, me, ofo_rail_dack_event(&e->r, m.x), m.x);
        break;
    case REQ:
        step(w, me, ofo_rail_req_event(&e->r, m.x, true, 1 == me), m.x);
        break;
    case REP:
        step(w, me, ofo_rail_rep_event(&e->r, m.x, true, !e->seen_rep), m.x);
        break;
    default:
        step(w, me, ofo_rail_rtu_event(&e->r, m.x, !e->seen_rtu), m.x);
        break;
    }
}

/* The timers of DESIGN.txt section 10.2. */
static void retransmit(world_t *w, int me)
{
    end_t *e = &w->end[me];

    if (OFO_RAIL_DOWNL == e->r.state && !e->r.da) {
        mail(w, 1 - me, DOWN, e->r.g);
    }
    if (e->r.owes) {
        mail(w, 1 - me, DOWN, e->r.ck);
    }
    if (OFO_RAIL_CREQ == e->r.state && !e->seen_rep) {
        mail(w, 1 - me, REQ, e->r.g);
    }
    if (OFO_RAIL_RDY == e->r.state && !e->seen_rtu) {
        mail(w, 1 - me, REP, e->r.g);
    }
}

static void act(world_t *w, int me, bool faults)
{
    end_t *e = &w->end[me], *peer = &w->end[1 - me];

    switch (dice(w, 8)) {
    case 0:
        if (faults && 0 == dice(w, 8)) {
            step(w, me, OFO_REV_LOCAL_ERROR, 0);
        }
        break;
    case 1:
        if (e->r.fz) {
            step(w, me, ofo_rail_fence_event(&e->r), 0);
        }
        break;
    case 2:
        if (ofo_rail_may_rejoin(&e->r)) {
            step(w, me, OFO_REV_RESTORED, 0);
        }
        break;
    case 3:
        /* a zero-byte WRITE arrives only if the peer's queue pairs of this generation can receive */
        if (e->validating && peer->qp_alive && peer->r.g == e->r.g) {
            e->validating = false;
            step(w, me, OFO_REV_VALIDATED, 0);
        } else if (e->validating && 0 == dice(w, 10)) {
            step(w, me, OFO_REV_LOCAL_ERROR, 0);
        }
        break;
    case 4:
        retransmit(w, me);
        break;
    default:
        if (e->mails > 0) {
            receive(w, me);
        }
        break;
    }
}

static void check(const world_t *w)
{
    for (int me = 0; me < 2; me++) {
        const ofo_rail_machine_t *a = &w->end[me].r, *b = &w->end[1 - me].r;

        assert_false(OFO_RAIL_UP == a->state && b->g > a->g);
        assert_false(OFO_RAIL_UP == a->state && OFO_RAIL_DOWNB == b->state && a->g == b->g);
        assert_false(OFO_RAIL_DOWNB == a->state && w->end[1 - me].qp_alive && a->g == b->g);
        assert_false(OFO_RAIL_DOWNB == a->state && (a->fz || (b->fz && b->g <= a->g)));
    }
}

static bool both_up(const world_t *w)
{
    return OFO_RAIL_UP == w->end[0].r.state && OFO_RAIL_UP == w->end[1].r.state && w->end[0].r.g == w->end[1].r.g;
}

static int run_world(unsigned seed)
{
    static world_t w;
    int quiet = 0;

    memset(&w, 0, sizeof(w));
    w.first = w.seed = seed;
    w.lossy = true;
    for (int me = 0; me < 2; me++) {
        w.end[me].r.state = OFO_RAIL_UP;
        w.end[me].qp_alive = true;
    }
    for (int i = 0; i < STEPS; i++) {
        act(&w, (int) dice(&w, 2), true);
        check(&w);
    }
    w.lossy = false;
    while (!both_up(&w)) {
        act(&w, (int) dice(&w, 2), false);
        check(&w);
        if (++quiet > 200000) {
            fail_msg("seed %u: the rail does not come back: %s(%u) %s(%u)", seed, ofo_rail_state_name(w.end[0].r.state), w.end[0].r.g,
                     ofo_rail_state_name(w.end[1].r.state), w.end[1].r.g);
        }
    }
    return w.ups;
}

/* Why the two ends never take a row, or NULL. In brackets: the run of tests/model/rail.pml that takes it. */
static const char *not_taken_because(const expected_t *e)
{
    if (OFO_RACT_report_impossible == e->action) {
        return "the row reports an impossible message";
    }
    if (OFO_RAIL_CLOSED == e->state || OFO_RAIL_CONNECTING == e->state) {
        return "the ends begin in UP (LAZY)";
    }
    switch (e->event) {
    case OFO_REV_PEERDEAD:
    case OFO_REV_CTL_OF_DECLARED:
        return "no peer is declared (DEADPEER)";
    case OFO_REV_REQ_NEXT_REFUSED:
    case OFO_REV_REJ_NOW:
        return "no end refuses (REFUSE)";
    case OFO_REV_PORT_RETURNED:
        return "ports do not go down";
    case OFO_REV_DACK_OLD_DUE:
        return OFO_RAIL_DOWNL == e->state || OFO_RAIL_DOWNB == e->state ? NULL : "a rail that owes a check does not rejoin";
    case OFO_REV_REP_NOW:
        return OFO_RAIL_UP == e->state ? "a rail that is up has seen the first REP" : NULL;
    default:
        return NULL;
    }
}

static void rows_were_taken(void)
{
    size_t n = 0;

    for (size_t i = 0; i < ROWS; i++) {
        const char *why = not_taken_because(&list[i]);
        bool is_taken = 0 < taken[list[i].state][list[i].event];

        n += is_taken;
        if (is_taken != (NULL == why)) {
            fail_msg("row %s in %s: %s", list[i].id, ofo_rail_state_name(list[i].state), is_taken ? why : "never taken");
        }
    }
    print_message("rail: %zu of %d rows taken by two ends\n", n, ROWS);
}

static void rail_two_ends_over_a_bad_network_keep_i10_and_come_back(void **unused)
{
    const char *replay = getenv("BFO_TEST_SEED");
    int ups = 0;

    (void) unused;
    if (NULL != replay) {
        (void) run_world((unsigned) strtoul(replay, NULL, 0));
        return;
    }
    for (unsigned seed = 1; seed <= RUNS; seed++) {
        ups += run_world(seed);
    }
    assert_true(ups > RUNS); /* rails have gone down and come back */
    print_message("%d runs, %d rejoins\n", RUNS, ups);
    rows_were_taken();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rail_every_cell_does_its_row_or_is_dropped),
        cmocka_unit_test(rail_garbage_is_dropped),
        cmocka_unit_test(rail_guards_tell_old_now_and_new_apart),
        cmocka_unit_test(rail_guards_of_the_handshake),
        cmocka_unit_test(rail_is_fenced_only_behind_its_own_fence),
        cmocka_unit_test(rail_debt_of_a_check_is_not_overwritten),
        cmocka_unit_test(rail_two_ends_over_a_bad_network_keep_i10_and_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
