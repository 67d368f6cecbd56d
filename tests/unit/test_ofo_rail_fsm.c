/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The machine of btl_openib_rail.def: walks every cell and checks how messages are classified. Two machines always connect over a
 * network that loses, repeats and reorders, also when both begin.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tables/btl_openib_rail_fsm.h"

/* ---- an owner that records and can fail --------------------------------------------------------- */

typedef struct {
    ofo_fsm_action_t last;
    unsigned actions;
    bool fail;
} recorder_t;

#define ACTION(name) \
    static int record_##name(void *owner, const ofo_ctl_t *message) \
    { \
        recorder_t *r = owner; \
        r->last = OFO_DO_##name; \
        ++r->actions; \
        return r->fail ? (r->fail = false, -1) : 0; \
    }
#include "tables/btl_openib_rail.def"

#define ACTION(name) [OFO_DO_##name] = record_##name,
static const ofo_fsm_action_fn_t recorders[OFO_DO_COUNT] = {
#include "tables/btl_openib_rail.def"
};

typedef struct {
    ofo_fsm_state_t state, next;
    ofo_fsm_event_t event;
    ofo_fsm_action_t action;
} listed_t;

#define ROW(id, state, event, next, action) {OFO_ST_##state, OFO_ST_##next, OFO_EV_##event, OFO_DO_##action},
static const listed_t listed[] = {
#include "tables/btl_openib_rail.def"
};
enum { LISTED = sizeof(listed) / sizeof(listed[0]) };

static const listed_t *find(ofo_fsm_state_t state, ofo_fsm_event_t event)
{
    for (int i = 0; i < LISTED; ++i) {
        if (listed[i].state == state && listed[i].event == event) {
            return &listed[i];
        }
    }
    return NULL;
}

static void machine_every_cell_is_as_listed(void **state)
{
    unsigned defined = 0;

    for (int s = 0; s < OFO_ST_COUNT; ++s) {
        for (int e = 0; e < OFO_EV_COUNT; ++e) {
            recorder_t r = {.last = OFO_DO_COUNT};
            ofo_fsm_t fsm;
            ofo_ctl_t message = {.gen = 9};
            const listed_t *row = find((ofo_fsm_state_t) s, (ofo_fsm_event_t) e);
            ofo_fsm_init(&fsm, recorders, NULL, &r);
            fsm.state = (ofo_fsm_state_t) s;
            fsm.gen = 5;
            assert_int_equal(ofo_fsm_step(&fsm, (ofo_fsm_event_t) e, &message), NULL != row);
            if (NULL != row) {
                assert_int_equal(fsm.state, row->next);
                assert_int_equal(r.last, row->action);
                assert_int_equal(r.actions, 1);
                ++defined;
            } else {
                assert_int_equal(fsm.state, s);
                assert_int_equal(fsm.gen, 5);
                assert_int_equal(r.actions, 0);
                assert_int_equal(fsm.refused, 1);
            }
        }
    }
    assert_int_equal(defined, LISTED);
}

static void machine_failed_action_becomes_a_local_error(void **state)
{
    recorder_t r = {.fail = true};
    ofo_fsm_t fsm;

    ofo_fsm_init(&fsm, recorders, NULL, &r);
    assert_true(ofo_fsm_step(&fsm, OFO_EV_POST, NULL));
    assert_int_equal(fsm.state, OFO_ST_DRAINING);
    assert_int_equal(r.last, OFO_DO_fence_and_tell);
}

static void machine_generation_moves_once_per_rejoin(void **state)
{
    recorder_t r = {.fail = false};
    ofo_fsm_t fsm;
    ofo_ctl_t newer = {.gen = 7};

    ofo_fsm_init(&fsm, recorders, NULL, &r);
    fsm.state = OFO_ST_DOWN;
    ofo_fsm_step(&fsm, OFO_EV_RESTORED, NULL);
    assert_int_equal(fsm.gen, 1);
    fsm.state = OFO_ST_DRAINING;
    ofo_fsm_step(&fsm, OFO_EV_REQ_NEXT, NULL);
    assert_int_equal(fsm.gen, 1);
    fsm.state = OFO_ST_ASKING;
    ofo_fsm_step(&fsm, OFO_EV_DOWN_NEWER, &newer);
    assert_int_equal(fsm.gen, 7);
    assert_int_equal(fsm.check_gen, 1);
    newer.gen = 8;
    ofo_fsm_step(&fsm, OFO_EV_DOWN_NEWER, &newer);
    assert_int_equal(fsm.check_gen, 1); /* the oldest debt stays */
}

static void classify_requests(void **state)
{
    ofo_fsm_t fsm = {.state = OFO_ST_CLOSED, .check_gen = OFO_GEN_NONE};
    ofo_ctl_t req = {.type = OFO_CTL_REQ};
    ofo_fsm_facts_t good = {.own_is_higher = true, .hash_ok = true, .usable = true};
    ofo_fsm_facts_t lower = {.own_is_higher = false, .hash_ok = true, .usable = true};
    ofo_fsm_facts_t hash = {.hash_ok = false, .usable = true}, down = {.hash_ok = true, .usable = false};

    assert_int_equal(ofo_fsm_classify(&fsm, &req, &good), OFO_EV_REQ_YIELD);
    assert_int_equal(ofo_fsm_classify(&fsm, &req, &lower), OFO_EV_REQ_HOLD);
    assert_int_equal(ofo_fsm_classify(&fsm, &req, &hash), OFO_EV_REQ_REFUSED);
    assert_int_equal(ofo_fsm_classify(&fsm, &req, &down), OFO_EV_REQ_REFUSED);
    req.gen = 1;
    assert_int_equal(ofo_fsm_classify(&fsm, &req, &good), OFO_EV_REQ_NEXT);
    assert_int_equal(ofo_fsm_classify(&fsm, &req, &hash), OFO_EV_REQ_NEXT_REFUSED);
    fsm.check_gen = 0;
    assert_int_equal(ofo_fsm_classify(&fsm, &req, &good), OFO_EV_NONE);
    fsm.check_gen = OFO_GEN_NONE;
    req.gen = 2;
    assert_int_equal(ofo_fsm_classify(&fsm, &req, &good), OFO_EV_NONE);
    fsm.gen = 65535;
    req.gen = 0;
    assert_int_equal(ofo_fsm_classify(&fsm, &req, &good), OFO_EV_NONE); /* the generation does not wrap: the rail never rejoins */
}

static void backoff_doubles_to_two_seconds(void **state)
{
    unsigned delay = 0, expected[] = {100, 200, 400, 800, 1600, 2000, 2000};

    for (int i = 0; i < 7; ++i) {
        delay = ofo_backoff_next(delay);
        assert_int_equal(delay, expected[i]);
        for (uint32_t r = 0; r < 3000; ++r) {
            unsigned jittered = ofo_backoff_jitter(delay, r);
            assert_true(jittered >= delay - delay / 4 && jittered <= delay + delay / 4 + 1);
        }
    }
}

/* ---- two machines and a bad network ------------------------------------------------------------- */

typedef struct side side_t;
struct side {
    ofo_fsm_t fsm;
    side_t *other;
    bool higher;
    uint8_t queue[64]; /* messages on the way to this side */
    unsigned count;
    bool proving;
    unsigned proofs;
};

static void network_put(side_t *to, uint8_t type)
{
    if (0 == rand() % 4) {
        return; /* lost */
    }
    for (int copies = 0 == rand() % 5 ? 2 : 1; 0 < copies && to->count < 64; --copies) {
        to->queue[to->count++] = type;
    }
}

static int act(side_t *s, ofo_fsm_action_t action)
{
    switch (action) {
    case OFO_DO_open_active:
    case OFO_DO_send_req:
        network_put(s->other, OFO_CTL_REQ);
        break;
    case OFO_DO_open_passive:
    case OFO_DO_become_passive:
    case OFO_DO_send_rep:
        network_put(s->other, OFO_CTL_REP);
        break;
    case OFO_DO_prove_active:
    case OFO_DO_prove_passive:
        s->proving = true;
        ++s->proofs;
        break;
    case OFO_DO_map_and_tell:
    case OFO_DO_send_rtu:
        network_put(s->other, OFO_CTL_RTU);
        break;
    default:
        break;
    }
    return 0;
}

#define ACTION(name) \
    static int net_##name(void *owner, const ofo_ctl_t *message) \
    { \
        return act(owner, OFO_DO_##name); \
    }
#include "tables/btl_openib_rail.def"

#define ACTION(name) [OFO_DO_##name] = net_##name,
static const ofo_fsm_action_fn_t net_actions[OFO_DO_COUNT] = {
#include "tables/btl_openib_rail.def"
};

static void run_side(side_t *s)
{
    ofo_fsm_facts_t facts = {.own_is_higher = s->higher, .hash_ok = true, .usable = true};

    if (0 < s->count && 0 != rand() % 3) {
        unsigned pick = (unsigned) rand() % s->count;
        ofo_ctl_t message = {.type = s->queue[pick]};
        s->queue[pick] = s->queue[--s->count];
        ofo_fsm_event_t event = ofo_fsm_classify(&s->fsm, &message, &facts);
        if (OFO_EV_NONE != event) {
            ofo_fsm_step(&s->fsm, event, &message);
        }
    } else if (s->proving) {
        s->proving = false;
        ofo_fsm_step(&s->fsm, OFO_EV_PROVED, NULL);
    } else if (ofo_fsm_state_retransmits(s->fsm.state)) {
        ofo_fsm_step(&s->fsm, OFO_EV_RETRANSMIT, NULL);
    }
    /* A side that is up sends data; the first message proves it to the peer (L20). */
    if (OFO_ST_UP == s->fsm.state && OFO_ST_READY == s->other->fsm.state && 0 == rand() % 8) {
        ofo_fsm_step(&s->other->fsm, OFO_EV_PEER_PROVED, NULL);
    }
}

static void two_sides_always_connect(void **state)
{
    unsigned seed = NULL != getenv("OFO_TEST_SEED") ? (unsigned) atoi(getenv("OFO_TEST_SEED")) : 1;

    print_message("OFO_TEST_SEED=%u\n", seed);
    srand(seed);
    for (int round = 0; round < 20000; ++round) {
        side_t a = {.higher = false}, b = {.higher = true};
        int steps = 0;
        a.other = &b;
        b.other = &a;
        ofo_fsm_init(&a.fsm, net_actions, NULL, &a);
        ofo_fsm_init(&b.fsm, net_actions, NULL, &b);
        ofo_fsm_step(0 == round % 3 ? &b.fsm : &a.fsm, OFO_EV_POST, NULL);
        if (2 == round % 3) {
            ofo_fsm_step(&b.fsm, OFO_EV_POST, NULL); /* both sides begin at once */
        }
        while (OFO_ST_UP != a.fsm.state || OFO_ST_UP != b.fsm.state) {
            run_side(rand() & 1 ? &a : &b);
            assert_true(++steps < 2000);
        }
        assert_int_equal(a.proofs, 1); /* the queue pairs are connected only once */
        assert_int_equal(b.proofs, 1);
        assert_int_equal(a.fsm.refused, 0);
        assert_int_equal(b.fsm.refused, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_every_cell_is_as_listed),          cmocka_unit_test(machine_failed_action_becomes_a_local_error),
        cmocka_unit_test(machine_generation_moves_once_per_rejoin), cmocka_unit_test(classify_requests),
        cmocka_unit_test(backoff_doubles_to_two_seconds),           cmocka_unit_test(two_sides_always_connect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
