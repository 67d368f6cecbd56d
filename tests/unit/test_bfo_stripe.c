/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Striping: shares follow the weights, whatever the sizes; turns of first fragments. DESIGN.txt section 14.5.
 */
#include "bfo_config.h"

#include "formats/pml_bfo_stripe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Rails of these bandwidths; 0 ends the list. */
static bfo_stripe_t rails_of(const uint32_t *bandwidth)
{
    bfo_stripe_t s = {.slow = 0};

    for (unsigned r = 0; r < BFO_STRIPE_MAX && 0 != bandwidth[r]; ++r) {
        bfo_stripe_add(&s, r, bandwidth[r]);
    }
    return s;
}

static void shares(const uint32_t *bandwidth, unsigned mask, double *share)
{
    bfo_stripe_t s = rails_of(bandwidth);
    double bytes[BFO_STRIPE_MAX] = {0}, all = 0;
    unsigned seed = 4711;

    for (int i = 0; i < 100000; ++i) {
        const size_t n = 1 + (size_t) rand_r(&seed) % 65536;
        const unsigned r = bfo_stripe_next(&s, mask, n);

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

static void bytes_in_flight_count_before_the_load(void **state)
{
    bfo_stripe_t s = rails_of((const uint32_t[BFO_STRIPE_MAX]){100, 100, 400});

    bfo_stripe_charge(&s, 1, 65536);
    assert_int_equal(bfo_stripe_least(&s, 3), 0); /* rail 1 was given more */
    bfo_stripe_begin(&s, 0, 4096);
    assert_int_equal(bfo_stripe_least(&s, 3), 1); /* but rail 0 has more in flight */
    bfo_stripe_begin(&s, 1, 2048);
    assert_int_equal(bfo_stripe_least(&s, 3), 1);
    bfo_stripe_begin(&s, 2, 4096);
    assert_int_equal(bfo_stripe_least(&s, 7), 2); /* a fast rail delivers its bytes sooner */
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
    const uint32_t bandwidth[BFO_STRIPE_MAX] = {40000, 10000, 40000};
    const bfo_stripe_t s = rails_of(bandwidth);

    assert_int_equal(1 * MIB, bfo_stripe_piece(&s, 3, 0, 16 * MIB, 128 * KIB, MIB));
    assert_int_equal(256 * KIB, bfo_stripe_piece(&s, 3, 1, 16 * MIB, 128 * KIB, MIB));
    assert_int_equal(512 * KIB, bfo_stripe_piece(&s, 5, 0, 1 * MIB, 128 * KIB, MIB));
    assert_int_equal(512 * KIB, bfo_stripe_piece(&s, 5, 2, 1 * MIB, 128 * KIB, MIB));
}

static void piece_is_neither_too_short_nor_too_long(void **state)
{
    const uint32_t bandwidth[BFO_STRIPE_MAX] = {40000, 1};
    const uint32_t three[BFO_STRIPE_MAX] = {7, 7, 7};
    const bfo_stripe_t s = rails_of(bandwidth), alike = rails_of(three);
    size_t whole = 0;

    assert_int_equal(128 * KIB, bfo_stripe_piece(&s, 3, 1, 16 * MIB, 128 * KIB, MIB));
    assert_int_equal(1024, bfo_stripe_piece(&s, 3, 1, 16 * MIB, 128 * KIB, 1024));
    assert_int_equal(1000, bfo_stripe_piece(&s, 3, 0, 16 * MIB, 128 * KIB, 1000));
    assert_int_equal(1, bfo_stripe_piece(&s, 3, 0, SIZE_MAX, 1, 1));
    for (unsigned r = 0; r < 3; ++r) {
        whole += bfo_stripe_piece(&alike, 7, r, 1000001, 128 * KIB, MIB);
    }
    assert_true(1000001 <= whole); /* one piece for each of the three rails, and no fourth piece */
}

static void rail_that_joins_is_as_far_as_the_others(void **state)
{
    bfo_stripe_t s = {.load = {700, 10, 900, 2000}, .nominal = {1, 1, 1, 1}};

    bfo_stripe_join(&s, 1, 5);
    assert_int_equal(900, s.load[1]);
    bfo_stripe_join(&s, 3, 5); /* a rail that has carried more already keeps its load */
    assert_int_equal(2000, s.load[3]);
    bfo_stripe_join(&s, 0, 0);
    assert_int_equal(700, s.load[0]);
}

/* Simulates, in virtual time, rails of one nominal speed and of these actual speeds. They carry messages of `message` bytes, `bytes` in
 * all. Each rail has at most two pieces in its pipeline. Returns the virtual time that this took. */
static double carry(bfo_stripe_t *s, unsigned mask, const double *speed, size_t message, size_t bytes)
{
    size_t piece[BFO_STRIPE_MAX][16], begun = 0;
    unsigned n[BFO_STRIPE_MAX] = {0}, open = 0, depth = 2 * (unsigned) __builtin_popcount(mask);
    double end[BFO_STRIPE_MAX] = {0}, now = 0;

    while (begun < bytes || 0 != open) {
        unsigned first = BFO_STRIPE_MAX;

        while (begun < bytes && open < depth && (0 == open || 0 != begun % message)) {
            const unsigned r = bfo_stripe_least(s, mask);
            size_t size = bfo_stripe_piece(s, mask, r, message, 128 * KIB, MIB);

            size = size < message - begun % message ? size : message - begun % message;
            bfo_stripe_charge(s, r, size);
            bfo_stripe_begin(s, r, size);
            end[r] = 0 == n[r] ? now + (double) size / speed[r] : end[r];
            piece[r][n[r]++] = size;
            begun += size;
            ++open;
        }
        for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
            first = 0 != n[r] && (BFO_STRIPE_MAX == first || end[r] < end[first]) ? r : first;
        }
        now = end[first];
        (void) bfo_stripe_end(s, first, mask, piece[first][0], true);
        memmove(piece[first], piece[first] + 1, sizeof(piece[first]) - sizeof(piece[first][0]));
        --open;
        end[first] = 0 != --n[first] ? now + (double) piece[first][0] / speed[first] : 0;
    }
    return now;
}

static void a_rail_of_a_tenth_costs_a_tenth(void **state)
{
    const uint32_t bandwidth[BFO_STRIPE_MAX] = {10000, 10000, 10000, 10000};
    const double well[] = {1000, 1000, 1000, 1000}, ill[] = {1000, 100, 1000, 1000};
    bfo_stripe_t s = rails_of(bandwidth);
    double before, after;

    for (unsigned mask = 3; mask <= 15; mask += 12) { /* two rails, and four */
        s = rails_of(bandwidth);
        before = carry(&s, mask, well, 16 * MIB, 1024 * (size_t) MIB);
        assert_int_equal(0, s.slow);
        for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
            assert_int_equal(s.nominal[r], s.weight[r]);
        }
        (void) carry(&s, mask, ill, 16 * MIB, 64 * MIB); /* a rail becomes slow, and the weights follow */
        assert_int_equal(2, s.slow);
        after = carry(&s, mask, ill, 16 * MIB, 1024 * (size_t) MIB);
        assert_true(s.weight[1] * 5 < s.weight[0] && s.weight[1] * 20 > s.weight[0]);
        /* two rails deliver 1.1 of 2, four deliver 3.1 of 4; the ends of messages may take a quarter more */
        assert_true(after < before * (3 == mask ? 2 / 1.1 : 4 / 3.1) * 1.25);
        (void) carry(&s, mask, well, 16 * MIB, 512 * MIB); /* the rail has its speed again */
        assert_int_equal(0, s.slow);
        assert_int_equal(s.nominal[1], s.weight[1]);
    }
}

static void a_silent_rail_is_slow(void **state)
{
    const uint32_t bandwidth[BFO_STRIPE_MAX] = {10000, 10000};
    bfo_stripe_t s = rails_of(bandwidth);
    bool changed = false;

    bfo_stripe_begin(&s, 1, MIB);
    for (int i = 0; i < 32; ++i) {
        assert_int_equal(0, bfo_stripe_least(&s, 3));
        bfo_stripe_begin(&s, 0, MIB - 1);
        changed = bfo_stripe_end(&s, 0, 3, MIB - 1, true) || changed;
    }
    assert_true(changed);
    assert_int_equal(2, s.slow);
    bfo_stripe_join(&s, 1, 1); /* the rail was lost and has come back */
    assert_int_equal(0, s.slow);
    assert_int_equal(s.nominal[1], s.weight[1]);
    assert_false(bfo_stripe_end(&s, 1, 3, MIB, false)); /* a piece that was lost with the rail ends */
    assert_int_equal(0, s.under_way[1]);
}

/* Nothing is learnt from a rail that works alone, because other rails are missing or idle. */
static void who_works_alone_is_not_judged(void **state)
{
    const uint32_t bandwidth[BFO_STRIPE_MAX] = {10000, 10000};
    bfo_stripe_t s = rails_of(bandwidth);

    for (int i = 0; i < 64; ++i) {
        bfo_stripe_begin(&s, 0, MIB);
        assert_false(bfo_stripe_end(&s, 0, 3, MIB, true));
        bfo_stripe_begin(&s, 0, MIB);
        assert_false(bfo_stripe_end(&s, 0, 1, MIB, true));
    }
    assert_int_equal(0, s.carried[0]);
    assert_int_equal(0, s.slow);
}

/* Counts the messages of `bytes` that follow each other over one rail of `mask`; the next goes over the rail `next`. */
static unsigned messages_of_a_turn(uint16_t *turn, unsigned mask, size_t bytes, unsigned rail, unsigned next)
{
    unsigned n = 0, last;

    while (rail == (last = bfo_turn_next(turn, mask, bytes))) {
        assert_true(++n < BFO_TURN_BYTES);
    }
    assert_int_equal(next, last);
    return n;
}

static void short_messages_follow_each_other_over_one_rail(void **state)
{
    uint16_t turn = 0;

    assert_int_equal(128, messages_of_a_turn(&turn, 3, 0, 0, 1));
    assert_int_equal(127, messages_of_a_turn(&turn, 3, 0, 1, 0)); /* the first was counted before */
    turn = 0;
    assert_int_equal(64, messages_of_a_turn(&turn, 0xff, 64, 0, 1));
    assert_int_equal(8, messages_of_a_turn(&(uint16_t){0}, 3, 1024, 0, 1));
}

/* Whatever their size is, even far above a turn: nothing goes over one rail twice. */
static void peers_begin_with_all_rails(void **state)
{
    for (uint32_t own = 0; own < 64; ++own) {
        unsigned begin[BFO_STRIPE_MAX] = {0};

        for (uint32_t peer = 0; peer < 64; ++peer) {
            const uint16_t first = bfo_turn_first(own, peer, 4);

            assert_int_equal(first, bfo_turn_first(peer, own, 4));
            assert_int_equal(0, first % BFO_TURN_BYTES);
            ++begin[first >> BFO_TURN_SHIFT];
        }
        for (unsigned r = 0; r < 4; ++r) {
            assert_in_range(begin[r], 14, 18);
        }
        assert_int_not_equal(bfo_turn_first(own, own + 1, 2), bfo_turn_first(own + 1, own + 2, 2));
    }
    assert_int_equal(UINT32_MAX % 3 << BFO_TURN_SHIFT, bfo_turn_first(UINT32_MAX, UINT32_MAX, 3));
}

static void long_messages_change_the_rail(void **state)
{
    const size_t bytes[] = {BFO_TURN_BYTES - BFO_TURN_LEAST, BFO_TURN_BYTES, 60000, (size_t) 1 << 32, (size_t) 7 << 40};

    for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); ++i) {
        uint16_t turn = 0;

        for (unsigned n = 0; n < 64; ++n) {
            assert_int_equal(n % 8, bfo_turn_next(&turn, 0xff, bytes[i]));
        }
        for (unsigned n = 0; n < 64; ++n) {
            assert_int_equal(n % 3 + 1, bfo_turn_next(&turn, 0xe, bytes[i])); /* rails are missing on both sides */
        }
    }
}

static void a_lost_rail_hands_its_turn_on(void **state)
{
    uint16_t turn = 0;

    assert_int_equal(0, bfo_turn_next(&turn, 7, 4000));
    assert_int_equal(1, bfo_turn_next(&turn, 6, 4000)); /* a whole turn begins: */
    assert_int_equal(1, bfo_turn_next(&turn, 6, 4000));
    assert_int_equal(1, bfo_turn_next(&turn, 6, 0));
    assert_int_equal(2, bfo_turn_next(&turn, 6, 0));
    assert_int_equal(0, bfo_turn_next(&turn, 3, 0));
}

static void turns_of_mixed_messages_are_equal(void **state)
{
    size_t bytes[3] = {0}, all = 0;
    unsigned seed = 4711;
    uint16_t turn = 0;

    for (int i = 0; i < 100000; ++i) {
        const size_t n = (size_t) rand_r(&seed) % 4096;

        bytes[bfo_turn_next(&turn, 7, n)] += n;
        all += n;
    }
    for (unsigned r = 0; r < 3; ++r) {
        assert_in_range(bytes[r] * 1000 / all, 330, 336);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_rails_get_equal_shares),
        cmocka_unit_test(shares_follow_the_weights),
        cmocka_unit_test(bytes_in_flight_count_before_the_load),
        cmocka_unit_test(rail_out_of_the_mask_gets_nothing),
        cmocka_unit_test(pieces_of_a_message_end_together),
        cmocka_unit_test(piece_is_neither_too_short_nor_too_long),
        cmocka_unit_test(rail_that_joins_is_as_far_as_the_others),
        cmocka_unit_test(a_rail_of_a_tenth_costs_a_tenth),
        cmocka_unit_test(a_silent_rail_is_slow),
        cmocka_unit_test(who_works_alone_is_not_judged),
        cmocka_unit_test(short_messages_follow_each_other_over_one_rail),
        cmocka_unit_test(peers_begin_with_all_rails),
        cmocka_unit_test(long_messages_change_the_rail),
        cmocka_unit_test(a_lost_rail_hands_its_turn_on),
        cmocka_unit_test(turns_of_mixed_messages_are_equal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
