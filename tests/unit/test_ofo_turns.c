/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails that wait for their turn: each is in a queue once, in the order in which they came, and a peer that waits behind others hears that
 * this process is busy. DESIGN.txt 15.3.
 */
#include "bfo_config.h"

#include "types/btl_openib_ctl.h"
#include "rail/btl_openib_turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

ofo_component_t mca_btl_openib_component;

static unsigned answers;
static ofo_ctl_t answer; /* the last one */

void ofo_ctl_send(ofo_endpoint_t *of, ofo_ctl_t *ctl)
{
    ++answers;
    answer = *ctl;
}

static ofo_module_t module;
static ofo_endpoint_t a, b;

static int begin(void **state)
{
    memset(&module, 0, sizeof(module));
    a = (ofo_endpoint_t){.module = &module, .rail = 3};
    b = (ofo_endpoint_t){.module = &module, .rail = 4};
    answers = 0;
    return 0;
}

static void rail_waits_for_one_turn_only(void **state)
{
    ofo_turn_want(&a);
    ofo_turn_want(&b);
    ofo_turn_want(&a);
    assert_ptr_equal(ofo_turn_take_wanted(&module), &a);
    assert_ptr_equal(ofo_turn_take_wanted(&module), &b);
    assert_null(module.wanted.first);
    ofo_turn_want(&a); /* again, after its turn */
    assert_ptr_equal(ofo_turn_take_wanted(&module), &a);
    assert_null(module.wanted.first);
    assert_int_equal(answers, 0);
}

/* Without this answer the peer would take our backlog for silence. */
static void peer_that_waits_for_others_hears_that_we_are_busy(void **state)
{
    const ofo_ctl_t early = {.type = OFO_CTL_REQ, .gen = 1}, late = {.type = OFO_CTL_REQ, .gen = 2};

    ofo_turn_ask(&a, &early);
    assert_int_equal(answers, 0);
    ofo_turn_ask(&b, &late);
    assert_int_equal(answers, 1);
    assert_int_equal(answer.type, OFO_CTL_REJ);
    assert_int_equal(answer.reason, OFO_REJ_BUSY);
    assert_int_equal(answer.rail, 4);
    assert_int_equal(answer.gen, 2);
    ofo_turn_ask(&a, &late); /* the newer request counts, in the old place */
    assert_ptr_equal(ofo_turn_take_asked(&module), &a);
    assert_int_equal(a.request.gen, 2);
    assert_ptr_equal(ofo_turn_take_asked(&module), &b);
    assert_null(ofo_turn_take_asked(&module));
}

static void rail_waits_in_both_queues(void **state)
{
    ofo_turn_want(&a);
    ofo_turn_ask(&a, &(ofo_ctl_t){.type = OFO_CTL_ASK});
    assert_int_equal(answers, 0);
    assert_ptr_equal(ofo_turn_take_asked(&module), &a);
    assert_ptr_equal(ofo_turn_take_wanted(&module), &a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rail_waits_for_one_turn_only, begin),
        cmocka_unit_test_setup(peer_that_waits_for_others_hears_that_we_are_busy, begin),
        cmocka_unit_test_setup(rail_waits_in_both_queues, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
