/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * When a rail counts as silent: the rounds of an inquiry, and what speaks for and against the rail. DESIGN.txt 10.2, "Silence".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "formats/btl_openib_inquiry.h"

enum { ROUND = 47, SHORT = 15, BEGIN = 1000 };

/* The witness answers, the rail does not, and the round ends in time. */
static ofo_inquiry_result_t round_against(ofo_inquiry_t *in)
{
    ofo_inquiry_answer(in, BEGIN, in->number, false);
    return ofo_inquiry_turn(in, in->until, ROUND);
}

static void rail_is_silent_after_four_rounds_against_it(void **state)
{
    ofo_inquiry_t in = {.until = 0};

    ofo_inquiry_begin(&in, BEGIN, 0, ROUND);
    assert_int_equal(in.until, BEGIN + ROUND);
    for (int i = 1; i < OFO_INQUIRY_ROUNDS; ++i) {
        assert_int_equal(round_against(&in), OFO_INQUIRY_GOES_ON);
    }
    assert_int_equal(round_against(&in), OFO_INQUIRY_SILENT);
    assert_int_equal(in.until, 0);
}

static void one_answer_over_the_rail_ends_the_inquiry(void **state)
{
    ofo_inquiry_t in = {.until = 0};
    uint16_t first;

    ofo_inquiry_begin(&in, BEGIN, 0, ROUND);
    first = in.number;
    (void) round_against(&in);
    (void) round_against(&in);
    ofo_inquiry_answer(&in, BEGIN, first, true); /* it took two rounds, but it came */
    assert_int_equal(in.until, 0);
}

static void nobody_is_judged_if_no_rail_answers(void **state)
{
    ofo_inquiry_t in = {.until = 0};

    ofo_inquiry_begin(&in, BEGIN, 0, ROUND);
    for (int i = 1; i < OFO_INQUIRY_VAIN; ++i) {
        assert_int_equal(ofo_inquiry_turn(&in, in.until, ROUND), OFO_INQUIRY_GOES_ON);
    }
    assert_int_equal(ofo_inquiry_turn(&in, in.until, ROUND), OFO_INQUIRY_ENDS);
}

static void rounds_against_the_rail_must_follow_each_other(void **state)
{
    ofo_inquiry_t in = {.until = 0};

    ofo_inquiry_begin(&in, BEGIN, 0, ROUND);
    for (int i = 1; i < OFO_INQUIRY_ROUNDS; ++i) {
        (void) round_against(&in);
    }
    assert_int_equal(ofo_inquiry_turn(&in, in.until, ROUND), OFO_INQUIRY_GOES_ON); /* the witness did not answer either */
    for (int i = 1; i < OFO_INQUIRY_ROUNDS; ++i) {
        assert_int_equal(round_against(&in), OFO_INQUIRY_GOES_ON);
    }
    assert_int_equal(round_against(&in), OFO_INQUIRY_SILENT);
}

static void round_that_ended_late_says_nothing(void **state)
{
    ofo_inquiry_t in = {.until = 0};

    ofo_inquiry_begin(&in, BEGIN, 0, ROUND);
    for (int i = 0; i < 3 * OFO_INQUIRY_VAIN; ++i) {
        ofo_inquiry_answer(&in, BEGIN, in.number, false);
        assert_int_equal(ofo_inquiry_turn(&in, in.until + ROUND, ROUND), OFO_INQUIRY_GOES_ON);
    }
    for (int i = 0; i < 3 * OFO_INQUIRY_VAIN; ++i) { /* nor does the witness's silence */
        assert_int_equal(ofo_inquiry_turn(&in, in.until + ROUND, ROUND), OFO_INQUIRY_GOES_ON);
        assert_int_equal(in.vain, 0);
    }
}

static void answers_of_other_inquiries_and_rounds_count_for_nothing(void **state)
{
    ofo_inquiry_t in = {.until = 0};
    uint16_t old;

    ofo_inquiry_begin(&in, BEGIN, 0, ROUND);
    old = in.number;
    ofo_inquiry_answer(&in, BEGIN, old, true);
    ofo_inquiry_answer(&in, BEGIN, old, true); /* a copy, while no inquiry runs */
    assert_int_equal(in.until, 0);
    ofo_inquiry_begin(&in, BEGIN, 0, ROUND);
    ofo_inquiry_answer(&in, BEGIN, old, true);
    ofo_inquiry_answer(&in, BEGIN, (uint16_t) (in.number + 1), true); /* was never asked */
    assert_int_not_equal(in.until, 0);
    (void) round_against(&in);
    ofo_inquiry_answer(&in, BEGIN, in.first, false); /* the witness's answer to the round before */
    assert_false(in.witness_answered);
}

static void numbers_may_wrap(void **state)
{
    ofo_inquiry_t in = {.number = UINT16_MAX - 1};

    ofo_inquiry_begin(&in, BEGIN, 0, ROUND);
    assert_int_equal(round_against(&in), OFO_INQUIRY_GOES_ON);
    assert_int_equal(in.number, 0);
    ofo_inquiry_answer(&in, BEGIN, UINT16_MAX, true);
    assert_int_equal(in.until, 0);
}

static void short_round_against_the_rail_makes_it_soft_and_counts_for_nothing_else(void **state)
{
    ofo_inquiry_t in = {.until = 0};

    ofo_inquiry_begin(&in, BEGIN, SHORT, ROUND);
    assert_int_equal(in.until, BEGIN + SHORT);
    assert_int_equal(round_against(&in), OFO_INQUIRY_SOFT);
    assert_int_equal(in.until, BEGIN + SHORT + ROUND);
    for (int i = 1; i < OFO_INQUIRY_ROUNDS; ++i) {
        assert_int_equal(round_against(&in), OFO_INQUIRY_GOES_ON);
    }
    assert_int_equal(round_against(&in), OFO_INQUIRY_SILENT);
}

static void short_round_without_witness_or_that_ended_late_says_nothing(void **state)
{
    ofo_inquiry_t in = {.until = 0};

    ofo_inquiry_begin(&in, BEGIN, SHORT, ROUND);
    assert_int_equal(ofo_inquiry_turn(&in, in.until, ROUND), OFO_INQUIRY_GOES_ON);
    assert_false(in.is_short);
    ofo_inquiry_begin(&in, BEGIN, SHORT, ROUND);
    ofo_inquiry_answer(&in, BEGIN, in.number, false);
    assert_int_equal(ofo_inquiry_turn(&in, BEGIN + 2 * SHORT, ROUND), OFO_INQUIRY_GOES_ON);
    ofo_inquiry_begin(&in, BEGIN, SHORT, ROUND);
    ofo_inquiry_answer(&in, BEGIN, in.number, false);
    assert_int_equal(ofo_inquiry_turn(&in, BEGIN + 2 * SHORT - 1, ROUND), OFO_INQUIRY_SOFT);
}

static void short_round_that_ended_late_is_followed_by_one_more(void **state)
{
    ofo_inquiry_t in = {.until = 0};

    ofo_inquiry_begin(&in, BEGIN, SHORT, ROUND);
    assert_int_equal(ofo_inquiry_turn(&in, BEGIN + 2 * SHORT, ROUND), OFO_INQUIRY_GOES_ON);
    assert_int_equal(in.until, BEGIN + 3 * SHORT);
    ofo_inquiry_answer(&in, BEGIN + 2 * SHORT, in.number, false);
    assert_int_equal(ofo_inquiry_turn(&in, in.until, ROUND), OFO_INQUIRY_SOFT);
    assert_int_equal(in.until, BEGIN + 3 * SHORT + ROUND);
    ofo_inquiry_begin(&in, BEGIN, SHORT, ROUND);
    (void) ofo_inquiry_turn(&in, BEGIN + 2 * SHORT, ROUND);
    assert_int_equal(ofo_inquiry_turn(&in, BEGIN + 4 * SHORT, ROUND), OFO_INQUIRY_GOES_ON);
    assert_int_equal(in.until, BEGIN + 4 * SHORT + ROUND); /* but not by two */
    for (int i = 1; i < OFO_INQUIRY_ROUNDS; ++i) {
        assert_int_equal(round_against(&in), OFO_INQUIRY_GOES_ON);
    }
    assert_int_equal(round_against(&in), OFO_INQUIRY_SILENT);
}

static void slow_witness_gives_the_rail_eight_times_its_own_time(void **state)
{
    ofo_inquiry_t in = {.until = 0};

    ofo_inquiry_begin(&in, BEGIN, SHORT, ROUND);
    ofo_inquiry_answer(&in, BEGIN + 10, in.number, false);
    assert_int_equal(in.until, BEGIN + 80);
    ofo_inquiry_answer(&in, BEGIN + 40, in.number, false); /* of another witness, or a copy */
    assert_int_equal(in.until, BEGIN + 80);
    assert_int_equal(ofo_inquiry_turn(&in, in.until, ROUND), OFO_INQUIRY_SOFT);
}

static void rail_that_usually_answers_late_gets_eight_times_this_time_or_no_short_round(void **state)
{
    ofo_inquiry_t in = {.until = 0};

    for (int i = 0; i < 20; ++i) {
        ofo_inquiry_begin(&in, BEGIN, SHORT, ROUND);
        ofo_inquiry_answer(&in, BEGIN + 4, in.first, true);
    }
    assert_in_range(in.usual, 2, 4);
    ofo_inquiry_begin(&in, BEGIN, SHORT, ROUND);
    assert_int_equal(in.until, BEGIN + 8 * in.usual);
    ofo_inquiry_answer(&in, BEGIN + 30, in.first, true);
    ofo_inquiry_begin(&in, BEGIN, SHORT, ROUND);
    assert_false(in.is_short);
    assert_int_equal(in.until, BEGIN + ROUND);
}

/* The first round begins with the inquiry, a later one when it was asked for; how long a round between them took is not known. */
static void usual_time_is_that_of_the_round_that_is_answered(void **state)
{
    ofo_inquiry_t in = {.until = 0};
    uint16_t first;

    ofo_inquiry_begin(&in, BEGIN, 0, ROUND);
    first = in.number;
    (void) round_against(&in);
    ofo_inquiry_answer(&in, BEGIN + 400, first, true);
    assert_int_equal(in.usual, 100); /* a quarter of 400 */
    in = (ofo_inquiry_t){.until = 0};
    ofo_inquiry_begin(&in, BEGIN, 0, ROUND);
    (void) round_against(&in);
    ofo_inquiry_answer(&in, BEGIN + 400, in.number, true);
    assert_int_equal(in.usual, (400 - ROUND + 1) / 4);
    in = (ofo_inquiry_t){.until = 0};
    ofo_inquiry_begin(&in, BEGIN, 0, ROUND);
    first = in.number;
    (void) round_against(&in);
    (void) round_against(&in);
    ofo_inquiry_answer(&in, BEGIN + 400, (uint16_t) (first + 1), true);
    assert_int_equal(in.usual, 0);
}

static void who_follows_and_has_not_asked_takes_no_answer(void **state)
{
    ofo_inquiry_t in = {.until = 0};

    ofo_inquiry_follow(&in, BEGIN, SHORT);
    ofo_inquiry_answer(&in, BEGIN + 1, in.number, false);
    assert_false(in.witness_answered);
    ofo_inquiry_answer(&in, BEGIN + 1, in.number, true);
    assert_int_equal(in.until, BEGIN + SHORT);
}

/* The slow witness has made the short round longer than a usual one. */
static void late_short_round_that_was_long_is_not_repeated(void **state)
{
    ofo_inquiry_t in = {.until = 0};

    ofo_inquiry_begin(&in, BEGIN, SHORT, ROUND);
    ofo_inquiry_answer(&in, BEGIN + 10, in.number, false); /* until BEGIN + 80 */
    assert_int_equal(ofo_inquiry_turn(&in, BEGIN + 160, ROUND), OFO_INQUIRY_GOES_ON);
    assert_false(in.is_short);
    assert_int_equal(in.until, BEGIN + 160 + ROUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rail_is_silent_after_four_rounds_against_it),
        cmocka_unit_test(one_answer_over_the_rail_ends_the_inquiry),
        cmocka_unit_test(nobody_is_judged_if_no_rail_answers),
        cmocka_unit_test(rounds_against_the_rail_must_follow_each_other),
        cmocka_unit_test(round_that_ended_late_says_nothing),
        cmocka_unit_test(answers_of_other_inquiries_and_rounds_count_for_nothing),
        cmocka_unit_test(numbers_may_wrap),
        cmocka_unit_test(short_round_against_the_rail_makes_it_soft_and_counts_for_nothing_else),
        cmocka_unit_test(short_round_without_witness_or_that_ended_late_says_nothing),
        cmocka_unit_test(short_round_that_ended_late_is_followed_by_one_more),
        cmocka_unit_test(slow_witness_gives_the_rail_eight_times_its_own_time),
        cmocka_unit_test(usual_time_is_that_of_the_round_that_is_answered),
        cmocka_unit_test(rail_that_usually_answers_late_gets_eight_times_this_time_or_no_short_round),
        cmocka_unit_test(who_follows_and_has_not_asked_takes_no_answer),
        cmocka_unit_test(late_short_round_that_was_long_is_not_repeated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
