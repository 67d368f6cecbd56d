/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Striping: shares follow the weights, whatever the sizes. DESIGN.txt section 14.5.
 */
#include "bfo_config.h"

#include "pml_bfo_stripe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void shares(const uint32_t *weight, unsigned mask, double *share)
{
    bfo_stripe_t s = {{0}};
    double bytes[BFO_STRIPE_MAX] = {0}, all = 0;
    unsigned seed = 4711;

    for (int i = 0; i < 100000; ++i) {
        const size_t n = 1 + (size_t) rand_r(&seed) % 65536;
        const unsigned r = bfo_stripe_next(&s, mask, weight, n);

        assert_true(mask >> r & 1);
        bytes[r] += (double) n;
        all += (double) n;
    }
    for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
        share[r] = bytes[r] / all;
    }
}

static void equal_rails_get_equal_shares(void **state)
{
    const uint32_t weight[BFO_STRIPE_MAX] = {100, 100, 100, 100};
    double share[BFO_STRIPE_MAX];

    shares(weight, 0xf, share);
    for (unsigned r = 0; r < 4; ++r) {
        assert_true(share[r] > 0.245 && share[r] < 0.255);
    }
}

static void shares_follow_the_weights(void **state)
{
    const uint32_t weight[BFO_STRIPE_MAX] = {10000, 40000};
    double share[BFO_STRIPE_MAX];

    shares(weight, 3, share);
    assert_true(share[0] > 0.19 && share[0] < 0.21);
    assert_true(share[1] > 0.79 && share[1] < 0.81);
}

static void rail_out_of_the_mask_gets_nothing(void **state)
{
    const uint32_t weight[BFO_STRIPE_MAX] = {1, 1, 1};
    double share[BFO_STRIPE_MAX];

    shares(weight, 5, share);
    assert_true(0 == share[1] && share[0] > 0.4 && share[2] > 0.4);
}

enum { KIB = 1024, MIB = 1024 * 1024 };

static void pieces_of_a_message_end_together(void **state)
{
    const uint32_t weight[BFO_STRIPE_MAX] = {40000, 10000, 40000};

    assert_int_equal(1 * MIB, bfo_stripe_piece(3, 0, weight, 16 * MIB, 128 * KIB, MIB));
    assert_int_equal(256 * KIB, bfo_stripe_piece(3, 1, weight, 16 * MIB, 128 * KIB, MIB));
    assert_int_equal(512 * KIB, bfo_stripe_piece(5, 0, weight, 1 * MIB, 128 * KIB, MIB));
    assert_int_equal(512 * KIB, bfo_stripe_piece(5, 2, weight, 1 * MIB, 128 * KIB, MIB));
}

static void piece_is_neither_too_short_nor_too_long(void **state)
{
    const uint32_t weight[BFO_STRIPE_MAX] = {40000, 1};
    size_t whole = 0;

    assert_int_equal(128 * KIB, bfo_stripe_piece(3, 1, weight, 16 * MIB, 128 * KIB, MIB));
    assert_int_equal(1024, bfo_stripe_piece(3, 1, weight, 16 * MIB, 128 * KIB, 1024));
    assert_int_equal(1000, bfo_stripe_piece(3, 0, weight, 16 * MIB, 128 * KIB, 1000));
    assert_int_equal(1, bfo_stripe_piece(3, 0, weight, SIZE_MAX, 1, 1));
    for (unsigned r = 0; r < 3; ++r) {
        const uint32_t alike[BFO_STRIPE_MAX] = {7, 7, 7};
        whole += bfo_stripe_piece(7, r, alike, 1000001, 128 * KIB, MIB);
    }
    assert_true(1000001 <= whole); /* one piece for each rail, not a fourth */
}

static void rail_that_joins_is_as_far_as_the_others(void **state)
{
    bfo_stripe_t s = {.load = {700, 10, 900, 2000}};

    bfo_stripe_join(&s, 1, 5);
    assert_int_equal(900, s.load[1]);
    bfo_stripe_join(&s, 3, 5); /* it does not get what it has carried already */
    assert_int_equal(2000, s.load[3]);
    bfo_stripe_join(&s, 0, 0);
    assert_int_equal(700, s.load[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_rails_get_equal_shares),
        cmocka_unit_test(shares_follow_the_weights),
        cmocka_unit_test(rail_out_of_the_mask_gets_nothing),
        cmocka_unit_test(pieces_of_a_message_end_together),
        cmocka_unit_test(piece_is_neither_too_short_nor_too_long),
        cmocka_unit_test(rail_that_joins_is_as_far_as_the_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
