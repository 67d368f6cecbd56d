/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The questions that a rail is asked when it has come back, and when they end. Clock, wire and the rest of the BTL are played here.
 * DESIGN.txt 10.2, "Return".
 */
#include "bfo_config.h"

#include "types/btl_openib_clock.h"
#include "types/btl_openib_ctl.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_probation.h"
#include "types/btl_openib_timers.h"
#include "formats/btl_openib_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { STABLE = 800, PAUSE = STABLE / 8, QUESTIONS = 8, DEAF = 4, MISSES = 10 };

ofo_component_t mca_btl_openib_component;

static ofo_module_t module;
static ofo_peer_t peer;
static ofo_endpoint_t ep;
static uint64_t now;

/* ---- what the room calls ------------------------------------------------------------------------ */

static ofo_ctl_t sent; /* the last question */
static unsigned sends, trusts;
static uint16_t trusted_gen;

uint64_t ofo_now_ms(void)
{
    return now;
}
void ofo_timers_add(ofo_endpoint_t *of) {}
void ofo_log(unsigned level, const char *format, ...) {}
void ofo_ctl_send(ofo_endpoint_t *of, ofo_ctl_t *ctl)
{
    assert_ptr_equal(of, &ep);
    assert_int_equal(ctl->type, OFO_CTL_PROBE);
    assert_int_equal(ctl->flags, OFO_CTL_PROBATION);
    assert_int_equal(ctl->rail, ep.rail);
    assert_int_equal(ctl->about, ep.rail);
    assert_int_equal(ctl->gen, ep.fsm.gen);
    sent = *ctl;
    ++sends;
}
static bool has_room;
bool ofo_ctl_has_room(ofo_module_t *of)
{
    assert_ptr_equal(of, &module);
    return has_room;
}
void ofo_tell_progress(ofo_module_t *to, ofo_mail_kind_t kind, ofo_endpoint_t *of, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *set)
{
    assert_ptr_equal(to, &module);
    assert_ptr_equal(of, &ep);
    assert_int_equal(kind, OFO_MAIL_TRUSTED);
    ++trusts;
    trusted_gen = gen;
}

/* ---- set-up ------------------------------------------------------------------------------------- */

static void rail_trusted(mca_btl_base_module_t *btl, opal_proc_t *proc, uint8_t rail, uint16_t gen) {}

static void comes_up(uint16_t gen)
{
    ep.fsm.state = OFO_ST_UP;
    ep.fsm.gen = gen;
    ofo_probation_follow(&ep);
}

static int begin(void **state)
{
    memset(&module, 0, sizeof(module));
    memset(&ep, 0, sizeof(ep));
    peer = (ofo_peer_t){.rail_count = 1};
    ep.module = &module;
    ep.peer = &peer;
    ep.rail = 3;
    module.ext.rail_trusted = rail_trusted;
    OFO.params.rejoin_after = STABLE;
    OFO.closing = false;
    now = 10000;
    sends = trusts = 0;
    has_room = true;
    return 0;
}

/* A question is due now, and not a millisecond earlier. */
static void question_after(unsigned ms)
{
    const unsigned before = sends;

    now += ms - 1;
    ofo_probation_timer(&ep, now);
    assert_int_equal(sends, before);
    ++now;
    ofo_probation_timer(&ep, now);
    assert_int_equal(sends, before + 1);
}

static void answer_comes(void)
{
    ofo_ctl_t answer = sent;

    answer.type = OFO_CTL_ANSWER;
    ofo_probation_answer(&ep, &answer);
}

static void nothing_follows(void)
{
    const unsigned before = sends, ends = trusts;

    assert_int_equal(ep.probation.at, 0);
    for (int i = 0; i < 100; ++i) {
        now += STABLE;
        ofo_probation_timer(&ep, now);
    }
    answer_comes();
    assert_int_equal(sends, before);
    assert_int_equal(trusts, ends);
}

/* ---- the tests ---------------------------------------------------------------------------------- */

static void answered_questions_end_it_after_the_stable_time(void **state)
{
    comes_up(1);
    for (int i = 0; i < QUESTIONS; ++i) {
        assert_int_equal(trusts, 0);
        question_after(PAUSE);
        answer_comes();
    }
    assert_int_equal(trusts, 1);
    assert_int_equal(trusted_gen, 1);
    assert_int_equal(now, 10000 + STABLE);
    nothing_follows();
}

static void first_generation_and_a_pml_that_asks_for_nothing_have_none(void **state)
{
    comes_up(0);
    nothing_follows();
    module.ext.rail_trusted = NULL;
    comes_up(1);
    nothing_follows();
    assert_int_equal(sends, 0);
}

static void unanswered_question_begins_the_count_again(void **state)
{
    comes_up(1);
    for (int i = 0; i < QUESTIONS - 1; ++i) {
        question_after(PAUSE);
        answer_comes();
    }
    question_after(PAUSE);
    question_after(PAUSE); /* the last one had no answer */
    for (int i = 0; i < QUESTIONS - 1; ++i) {
        answer_comes();
        assert_int_equal(trusts, 0);
        question_after(PAUSE);
    }
    answer_comes();
    assert_int_equal(trusts, 1);
    nothing_follows();
}

static void answer_of_another_question_or_generation_does_not_count(void **state)
{
    ofo_ctl_t answer;

    comes_up(1);
    question_after(PAUSE);
    answer = sent;
    --answer.number;
    ofo_probation_answer(&ep, &answer);
    answer = sent;
    --answer.gen;
    ofo_probation_answer(&ep, &answer);
    assert_int_equal(ep.probation.answered, 0);
    answer_comes();
    answer_comes(); /* a copy */
    assert_int_equal(ep.probation.answered, 1);
}

static void fall_ends_it_and_the_next_return_begins_again(void **state)
{
    ofo_ctl_t old;

    comes_up(1);
    for (int i = 0; i < QUESTIONS - 1; ++i) {
        question_after(PAUSE);
        answer_comes();
    }
    question_after(PAUSE);
    old = sent;
    ep.fsm.state = OFO_ST_DRAINING;
    ofo_probation_follow(&ep);
    nothing_follows();
    comes_up(2);
    question_after(PAUSE);
    assert_int_not_equal(sent.number, old.number);
    ofo_probation_answer(&ep, &old);
    assert_int_equal(trusts, 0);
    for (int i = 0; i < QUESTIONS; ++i) {
        assert_int_equal(trusts, 0);
        answer_comes();
        if (i < QUESTIONS - 1) {
            question_after(PAUSE);
        }
    }
    assert_int_equal(trusted_gen, 2);
}

static void peer_that_knows_no_questions_is_trusted_after_another_stable_time(void **state)
{
    unsigned wait = PAUSE;

    comes_up(1);
    question_after(wait);
    for (int i = 1; i < DEAF; ++i) {
        question_after(wait);
        wait *= 2;
    }
    assert_int_equal(trusts, 0);
    now += wait;
    ofo_probation_timer(&ep, now);
    assert_int_equal(trusts, 1);
    assert_int_equal(sends, DEAF);
    assert_true(now <= 10000 + 2 * STABLE);
    nothing_follows();
}

static void rail_that_answers_too_seldom_is_not_asked_for_ever(void **state)
{
    comes_up(1);
    question_after(PAUSE);
    answer_comes();
    for (unsigned i = 0; i < 100 && 0 != ep.probation.at; ++i) {
        now = ep.probation.at;
        ofo_probation_timer(&ep, now);
    }
    assert_int_equal(sends, 1 + MISSES);
    assert_int_equal(trusts, 0);
    nothing_follows();
}

/* Many rails have come back at once, and their questions fill the queue. A question that waits for room counts neither as asked nor as missed. */
static void question_waits_for_room(void **state)
{
    comes_up(1);
    question_after(PAUSE);
    answer_comes();
    has_room = false;
    now += PAUSE;
    for (unsigned i = 0; i < 5 * PAUSE; ++i, ++now) {
        ofo_probation_timer(&ep, now);
        assert_int_equal(ep.probation.at, now + 1);
    }
    assert_int_equal(sends, 1);
    has_room = true;
    ofo_probation_timer(&ep, now);
    for (int i = 0; i < QUESTIONS - 2; ++i) {
        answer_comes();
        question_after(PAUSE);
    }
    answer_comes();
    assert_int_equal(trusts, 1);
    assert_int_equal(sends, QUESTIONS);
}

/* The peer was stopped for a while. */
static void answer_after_a_silence_sets_the_pauses_back(void **state)
{
    comes_up(1);
    question_after(PAUSE);
    answer_comes();
    question_after(PAUSE);
    question_after(PAUSE);
    question_after(2 * PAUSE);
    answer_comes();
    question_after(PAUSE);
}

static void process_that_leaves_and_declared_peers_ask_nothing(void **state)
{
    comes_up(1);
    peer.declared = true;
    now += PAUSE;
    ofo_probation_timer(&ep, now);
    nothing_follows();
    peer.declared = false;
    comes_up(2);
    peer.closing = true;
    now += PAUSE;
    ofo_probation_timer(&ep, now);
    nothing_follows();
    assert_int_equal(sends, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answered_questions_end_it_after_the_stable_time),    TEST(first_generation_and_a_pml_that_asks_for_nothing_have_none),
        TEST(unanswered_question_begins_the_count_again),         TEST(answer_of_another_question_or_generation_does_not_count),
        TEST(fall_ends_it_and_the_next_return_begins_again),      TEST(peer_that_knows_no_questions_is_trusted_after_another_stable_time),
        TEST(rail_that_answers_too_seldom_is_not_asked_for_ever), TEST(answer_after_a_silence_sets_the_pauses_back),
        TEST(process_that_leaves_and_declared_peers_ask_nothing), TEST(question_waits_for_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
