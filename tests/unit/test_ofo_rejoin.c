/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * When a rail that is down is asked whether it works again: each fall counts against the rail, and decays; questions back off.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "formats/btl_openib_rejoin.h"

enum { HALF_LIFE = 300000, FIRST = 1000 };

static uint32_t fall(ofo_rejoin_t *r, unsigned times, uint64_t now)
{
    for (unsigned i = 0; i < times; ++i) {
        ofo_rejoin_fall(r, now, HALF_LIFE);
    }
    return r->penalty;
}

static void few_falls_keep_no_rail_out(void **state)
{
    ofo_rejoin_t r = {.at = 0};

    assert_int_equal(3 * OFO_REJOIN_FALL, fall(&r, 3, 5000));
    assert_false(ofo_rejoin_is_held(&r, 5000, HALF_LIFE));
}

static void many_falls_keep_it_out_until_they_are_forgotten(void **state)
{
    ofo_rejoin_t r = {.at = 0};

    fall(&r, 4, 5000);
    assert_true(ofo_rejoin_is_held(&r, 5000, HALF_LIFE));
    assert_true(ofo_rejoin_is_held(&r, 5000 + 2 * HALF_LIFE, HALF_LIFE)); /* 1000 is left */
    assert_false(ofo_rejoin_is_held(&r, 5000 + 5 * HALF_LIFE / 2, HALF_LIFE));
    assert_false(ofo_rejoin_is_held(&r, 5000, HALF_LIFE)); /* without another fall the rail is not held again */
}

static void no_rail_is_out_for_more_than_the_bound(void **state)
{
    ofo_rejoin_t r = {.at = 0};

    fall(&r, 1000, 5000);
    assert_true(ofo_rejoin_is_held(&r, 5000 + OFO_REJOIN_MOST_MS - 1, 100 * HALF_LIFE));
    assert_false(ofo_rejoin_is_held(&r, 5000 + OFO_REJOIN_MOST_MS, 100 * HALF_LIFE));
}

static void return_of_a_rail_forgets_no_fall(void **state)
{
    ofo_rejoin_t r = {.at = 0};

    fall(&r, 3, 5000);
    ofo_rejoin_end(&r);
    assert_int_equal(0, r.at);
    fall(&r, 1, 6000);
    assert_true(ofo_rejoin_is_held(&r, 6000, HALF_LIFE));
}

static void falls_that_are_far_apart_are_forgotten(void **state)
{
    ofo_rejoin_t r = {.at = 0};

    for (unsigned i = 0; i < 100; ++i) {
        fall(&r, 1, (uint64_t) i * HALF_LIFE);
        assert_false(ofo_rejoin_is_held(&r, (uint64_t) i * HALF_LIFE, HALF_LIFE));
    }
    assert_int_equal(OFO_REJOIN_FALL, fall(&r, 1, UINT64_C(1) << 50));
}

static void without_half_life_nothing_is_held(void **state)
{
    ofo_rejoin_t r = {.at = 0};

    for (unsigned i = 0; i < 100; ++i) {
        ofo_rejoin_fall(&r, i, 0);
        assert_false(ofo_rejoin_is_held(&r, i, 0));
    }
}

static void questions_back_off_and_never_end(void **state)
{
    ofo_rejoin_t r = {.at = 0};

    assert_int_equal(FIRST, ofo_rejoin_back_off(&r, FIRST));
    assert_int_equal(2 * FIRST, ofo_rejoin_back_off(&r, FIRST));
    assert_int_equal(4 * FIRST, ofo_rejoin_back_off(&r, FIRST));
    for (unsigned i = 0; i < 100; ++i) {
        assert_in_range(ofo_rejoin_back_off(&r, FIRST), 1, OFO_REJOIN_MOST_MS);
    }
    assert_int_equal(OFO_REJOIN_MOST_MS, ofo_rejoin_back_off(&r, FIRST));
    ofo_rejoin_end(&r);
    assert_int_equal(FIRST, ofo_rejoin_back_off(&r, FIRST));
    r.wait = 0;
    assert_int_equal(OFO_REJOIN_MOST_MS, ofo_rejoin_back_off(&r, OFO_REJOIN_MOST_MS));
    assert_int_equal(OFO_REJOIN_MOST_MS, ofo_rejoin_back_off(&r, OFO_REJOIN_MOST_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_falls_keep_no_rail_out),
        cmocka_unit_test(many_falls_keep_it_out_until_they_are_forgotten),
        cmocka_unit_test(no_rail_is_out_for_more_than_the_bound),
        cmocka_unit_test(return_of_a_rail_forgets_no_fall),
        cmocka_unit_test(falls_that_are_far_apart_are_forgotten),
        cmocka_unit_test(without_half_life_nothing_is_held),
        cmocka_unit_test(questions_back_off_and_never_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
