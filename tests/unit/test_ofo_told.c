/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One side of a rail finds it soft, and the other side takes the verdict over: who hears of it, by which message, and how both verdicts end.
 * Clock, wire and progress are played here. DESIGN.txt 10.2, "Silence".
 */
#include "bfo_config.h"

#include "types/btl_openib_clock.h"
#include "types/btl_openib_ctl.h"
#include "types/btl_openib_endpoints.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_probe.h"
#include "types/btl_openib_timers.h"
#include "formats/btl_openib_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RAILS = 3, DEADLINE = 400, ROUND = 75, SOFT = 40, SHORT = 30 };

ofo_component_t mca_btl_openib_component;

static ofo_module_t module[RAILS];
static ofo_peer_t peer;
static ofo_endpoint_t ep[RAILS];
static uint64_t now;

/* ---- what the room calls ------------------------------------------------------------------------ */

static ofo_ctl_t sent[16]; /* by service of the rail itself */
static unsigned sends;
static ofo_ctl_t over_another;           /* the last question that others were made to send */
static unsigned told[RAILS];             /* letters to service: the peer finds this rail soft */
static unsigned softs, adoptions, calms; /* letters to progress */

uint64_t ofo_now_ms(void)
{
    return now;
}
void ofo_timers_add(ofo_endpoint_t *of) {}
void ofo_log(unsigned level, const char *format, ...) {}
void ofo_ctl_send(ofo_endpoint_t *of, ofo_ctl_t *ctl)
{
    assert_true(sends < sizeof(sent) / sizeof(sent[0]));
    sent[sends++] = *ctl;
}
void ofo_tell_service(ofo_endpoint_t *of, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *set)
{
    if (OFO_MAIL_SEND == kind) {
        over_another = *ctl;
    }
    told[of - ep] += OFO_MAIL_TOLD == kind;
}
void ofo_tell_progress(ofo_module_t *to, ofo_mail_kind_t kind, ofo_endpoint_t *of, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *set)
{
    assert_ptr_equal(to, of->module);
    softs += OFO_MAIL_SOFT == kind;
    adoptions += OFO_MAIL_SOFT_TOO == kind;
    calms += OFO_MAIL_CALM == kind;
}

/* ---- set-up ------------------------------------------------------------------------------------- */

static void failed_frag(mca_btl_base_module_t *btl, ofo_endpoint_t *of, mca_btl_base_tag_t tag, const void *data, size_t length, int status) {}

static void publish(int rail, ofo_fsm_state_t state)
{
    ep[rail].fsm.state = state;
    ep[rail].published = (int32_t) ((unsigned) state << 16);
}

static int begin(void **state)
{
    memset(module, 0, sizeof(module));
    memset(ep, 0, sizeof(ep));
    memset(told, 0, sizeof(told));
    peer = (ofo_peer_t){.rail_count = RAILS};
    OFO.params.deadline = DEADLINE;
    OFO.params.soft_deadline = SOFT;
    OFO.module_count = RAILS;
    OFO.closing = false;
    now = 10000;
    sends = softs = adoptions = calms = 0;
    over_another = (ofo_ctl_t){.type = 0};
    for (int r = 0; r < RAILS; ++r) {
        OFO.module[r] = &module[r];
        module[r].port_up = true;
        module[r].ext.failed_frag = failed_frag;
        peer.rail[r] = &ep[r];
        ep[r].module = &module[r];
        ep[r].peer = &peer;
        ep[r].rail = (uint8_t) r;
        ep[r].gate = OFO_GATE_UP;
        publish(r, OFO_ST_UP);
    }
    return 0;
}

static void answer_over(uint8_t rail)
{
    const ofo_ctl_t answer = {.type = OFO_CTL_ANSWER, .rail = rail, .about = 0, .number = ep[0].inquiry.number};

    ofo_probe_message(&ep[0], &answer);
}

static bool end_of_round(void)
{
    now = ep[0].inquiry.until;
    return ofo_probe_timer(&ep[0], now);
}

/* ---- the side whose verdict it is ---------------------------------------------------------------- */

static void short_round_against_rail_0(void)
{
    ofo_probe_begin(&ep[0], 0);
    answer_over(1);
    (void) end_of_round();
}

static void verdict_is_told_when_progress_acts_upon_it(void **state)
{
    short_round_against_rail_0();
    assert_true(ep[0].is_soft);
    assert_int_equal(over_another.flags | sent[sends - 1].flags, 0);
    ofo_probe_tell(&ep[0], 1); /* another generation */
    assert_int_equal(over_another.flags, 0);
    ofo_probe_tell(&ep[0], 0);
    assert_int_equal(over_another.flags, OFO_CTL_SOFT);
    assert_int_equal(over_another.about, 0);
    assert_int_equal(over_another.number, ep[0].inquiry.number);
    answer_over(1);
    (void) end_of_round(); /* once is enough */
    assert_int_equal(over_another.flags, 0);
    answer_over(0);
    ofo_probe_tell(&ep[0], 0); /* it has answered since */
    assert_int_equal(over_another.flags, 0);
}

/* ---- the side that hears of it ----------------------------------------------------------------- */

/* The messages that one side sends are given to the other side, which runs the same code. */
static void verdict_reaches_the_rail_over_another_one_and_goes_no_further(void **state)
{
    ofo_ctl_t verdict;

    short_round_against_rail_0();
    ofo_probe_tell(&ep[0], 0);
    verdict = over_another;
    assert_int_equal(begin(state), 0);
    ofo_probe_message(&ep[verdict.rail], &verdict);
    assert_int_equal(told[0], 1);
    assert_int_equal(sent[0].type, OFO_CTL_ANSWER);
    ofo_probe_told(&ep[0], verdict.gen);
    assert_true(ep[0].is_soft);
    assert_int_equal(adoptions, 1);
    assert_int_equal(softs, 0);
    for (int i = 0; i <= OFO_INQUIRY_ROUNDS; ++i) {
        assert_int_equal(over_another.type, OFO_CTL_PROBE);
        assert_int_equal(over_another.flags | sent[sends - 1].flags, 0);
        answer_over(1);
        assert_int_equal(end_of_round(), OFO_INQUIRY_ROUNDS == i);
    }
    assert_int_equal(now, 10000 + SHORT + OFO_INQUIRY_ROUNDS * ROUND);
    assert_false(ep[0].is_soft);
    assert_int_equal(softs, 0);
    assert_int_equal(module[0].inquiries, 0);
}

static void message_over_the_rail_itself_or_about_no_rail_tells_nothing(void **state)
{
    ofo_ctl_t probe = {.type = OFO_CTL_PROBE, .flags = OFO_CTL_SOFT, .rail = 0, .about = 0}, answer = probe;

    ofo_probe_message(&ep[0], &probe);
    probe.about = 7;
    ofo_probe_message(&ep[0], &probe);
    answer.type = OFO_CTL_ANSWER; /* it has the flags of its question */
    answer.rail = 1;
    ofo_probe_message(&ep[1], &answer);
    assert_int_equal(told[0] + told[1] + told[2], 0);
}

static void told_rail_is_normal_when_it_answers_and_when_no_rail_does(void **state)
{
    ofo_probe_told(&ep[0], 0);
    answer_over(0);
    assert_false(ep[0].is_soft);
    assert_int_equal(calms, 1);
    ofo_probe_told(&ep[0], 0);
    for (int i = 0; i < OFO_INQUIRY_VAIN; ++i) {
        assert_true(ep[0].is_soft);
        assert_false(end_of_round());
    }
    assert_false(ep[0].is_soft);
    assert_int_equal(calms, 2);
    assert_int_equal(module[0].inquiries, 0);
}

static void told_rail_under_inquiry_begins_no_second_one(void **state)
{
    ofo_probe_begin(&ep[0], 0);
    ofo_probe_told(&ep[0], 0);
    assert_int_equal(adoptions, 1);
    assert_int_equal(sends, 1);
    assert_int_equal(module[0].inquiries, 1);
    answer_over(1);
    assert_false(end_of_round()); /* the short one */
    assert_int_equal(softs, 0);
    ofo_probe_told(&ep[0], 0);
    assert_int_equal(adoptions, 1);
    answer_over(0);
    assert_int_equal(calms, 1);
}

static void told_verdict_counts_for_nothing_where_the_rail_may_not_be_judged(void **state)
{
    OFO.params.soft_deadline = 0;
    ofo_probe_told(&ep[0], 0);
    OFO.params.soft_deadline = SOFT;
    ofo_probe_told(&ep[0], 1);
    publish(0, OFO_ST_REQUESTED);
    ofo_probe_told(&ep[0], 0);
    publish(0, OFO_ST_UP);
    module[0].ext.failed_frag = NULL;
    ofo_probe_told(&ep[0], 0);
    module[0].ext.failed_frag = failed_frag;
    ep[1].is_soft = true;
    publish(2, OFO_ST_DOWN);
    ofo_probe_told(&ep[0], 0);
    assert_false(ep[0].is_soft);
    assert_int_equal(adoptions + sends, 0);
}

static void told_rail_without_room_is_soft_and_asks_later(void **state)
{
    module[0].inquiries = 16;
    ofo_probe_told(&ep[0], 0);
    assert_int_equal(adoptions, 1);
    assert_false(end_of_round());
    assert_int_equal(sends, 0);
    --module[0].inquiries;
    assert_false(end_of_round());
    assert_int_equal(sends, 1);
    assert_true(ep[0].is_soft);
    answer_over(0);
    assert_int_equal(calms, 1);
    assert_int_equal(module[0].inquiries, 15);
}

static void process_that_reads_no_letters_collects_no_verdicts(void **state)
{
    module[0].inbox.count = 64;
    ofo_probe_told(&ep[0], 0);
    assert_int_equal(adoptions + sends, 0);
    module[0].inbox.count = 63;
    ofo_probe_told(&ep[0], 0);
    assert_int_equal(adoptions, 1);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(verdict_is_told_when_progress_acts_upon_it),
        TEST(verdict_reaches_the_rail_over_another_one_and_goes_no_further),
        TEST(message_over_the_rail_itself_or_about_no_rail_tells_nothing),
        TEST(told_rail_is_normal_when_it_answers_and_when_no_rail_does),
        TEST(told_rail_under_inquiry_begins_no_second_one),
        TEST(told_verdict_counts_for_nothing_where_the_rail_may_not_be_judged),
        TEST(told_rail_without_room_is_soft_and_asks_later),
        TEST(process_that_reads_no_letters_collects_no_verdicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
