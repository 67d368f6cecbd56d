/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * How progress sees that work of a rail does not end, how service asks over the rails of the peer, and when the rail ends. Clock, wire
 * and the rest of the BTL are played here. DESIGN.txt 10.2, "Silence".
 */
#include "bfo_config.h"

#include "types/btl_openib_clock.h"
#include "types/btl_openib_ctl.h"
#include "fault/btl_openib_deadline.h"
#include "qp/btl_openib_drain.h"
#include "types/btl_openib_endpoints.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_probe.h"
#include "out/btl_openib_silent.h"
#include "types/btl_openib_timers.h"
#include "formats/btl_openib_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RAILS = 3, DEADLINE = 400, LOOK = DEADLINE / 8, ROUND = 75, SOFT = 40, SHORT = 30 };

ofo_component_t mca_btl_openib_component;

static ofo_module_t module[RAILS];
static ofo_peer_t peer;
static ofo_endpoint_t ep[RAILS];
static ofo_qpset_t *qps[RAILS];
static uint64_t now;

/* ---- what the rooms call ------------------------------------------------------------------------ */

static unsigned stalled; /* letters to service */
static unsigned reports; /* questions for messages without a completion */
static unsigned failed;
static ofo_ctl_t sent[64];             /* by service of rail 0 */
static unsigned sends, sent_by[RAILS]; /* the second: letters that make others send */
static const ofo_ctl_t *forwarded;
static ofo_endpoint_t *forwarded_to;
static unsigned softs, calms, overdues; /* letters to progress */

uint64_t ofo_now_ms(void)
{
    return now;
}
void ofo_silent_ask_locked(ofo_endpoint_t *of)
{
    ++reports;
}
void ofo_rail_failed(ofo_qpset_t *of, const char *why)
{
    ++failed;
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
    stalled += OFO_MAIL_STALLED == kind;
    if (OFO_MAIL_SEND == kind) {
        assert_int_equal(ctl->type, OFO_CTL_PROBE);
        assert_int_equal(ctl->rail, of->rail);
        ++sent_by[of - ep];
    }
    if (OFO_MAIL_CTL == kind) {
        forwarded = ctl;
        forwarded_to = of;
    }
}

void ofo_tell_progress(ofo_module_t *to, ofo_mail_kind_t kind, ofo_endpoint_t *of, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *set)
{
    assert_ptr_equal(to, of->module);
    softs += OFO_MAIL_SOFT == kind;
    calms += OFO_MAIL_CALM == kind;
    overdues += OFO_MAIL_OVERDUE == kind;
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
    memset(sent_by, 0, sizeof(sent_by));
    peer = (ofo_peer_t){.rail_count = RAILS};
    OBJ_CONSTRUCT(&OFO.peers, opal_hash_table_t);
    (void) opal_hash_table_init(&OFO.peers, 1);
    (void) opal_hash_table_set_value_uint64(&OFO.peers, 0, &peer);
    pthread_mutex_init(&OFO.peers_lock, NULL);
    OFO.params.deadline = DEADLINE;
    OFO.params.soft_deadline = 0;
    softs = calms = overdues = 0;
    OFO.module_count = RAILS;
    OFO.look_at = 0;
    OFO.closing = false;
    now = 10000;
    stalled = reports = failed = sends = 0;
    forwarded_to = NULL;
    for (int r = 0; r < RAILS; ++r) {
        OFO.module[r] = &module[r];
        module[r].port_up = true;
        module[r].ext.failed_frag = failed_frag;
        qps[r] = calloc(1, sizeof(*qps[r]) + sizeof(qps[r]->qp[0]));
        peer.rail[r] = &ep[r];
        ep[r].module = &module[r];
        ep[r].peer = &peer;
        ep[r].rail = (uint8_t) r;
        ep[r].gate = OFO_GATE_UP;
        ep[r].qps = qps[r];
        OBJ_CONSTRUCT(&ep[r].lock, opal_mutex_t);
        publish(r, OFO_ST_UP);
    }
    return 0;
}

static int end(void **state)
{
    for (int r = 0; r < RAILS; ++r) {
        OBJ_DESTRUCT(&ep[r].lock);
        free(qps[r]);
    }
    pthread_mutex_destroy(&OFO.peers_lock);
    OBJ_DESTRUCT(&OFO.peers);
    return 0;
}

/* What progress does after it has polled each module. */
static void poll_all(void)
{
    for (int r = 0; r < RAILS; ++r) {
        if (0 != (module[r].wants & OFO_WANTS_LOOK)) {
            module[r].wants = 0;
            ofo_deadline_look(&module[r]);
        }
    }
}

static void looks(unsigned times)
{
    for (unsigned i = 0; i < times; ++i) {
        now += LOOK;
        ofo_deadline_tick();
        poll_all();
    }
}

/* The witness answers the current round of the inquiry into rail 0. */
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

/* ---- progress ----------------------------------------------------------------------------------- */

static void work_that_does_not_end_is_reported_after_a_quarter(void **state)
{
    ep[0].sends_out = 1;
    looks(2); /* the first one only begins to count */
    assert_int_equal(stalled, 0);
    assert_int_equal(reports, 1);
    looks(1);
    assert_int_equal(stalled, 1);
    looks(7);
    assert_int_equal(stalled, 1); /* the next inquiry begins a deadline later, */
    looks(1);
    assert_int_equal(stalled, 2);
    looks(15);
    assert_int_equal(stalled, 2); /* and the one after it two */
    looks(1);
    assert_int_equal(stalled, 3);
}

static void work_that_ends_is_not_reported(void **state)
{
    ep[0].sends_out = ep[1].rdma_out = 1;
    for (int i = 0; i < 20; ++i) {
        looks(2);
        ++qps[0]->n_ok;
        ++qps[1]->n_rdma;
    }
    assert_int_equal(stalled, 0);
}

static void nothing_out_and_receives_alone_are_no_stall(void **state)
{
    looks(20);
    ep[0].sends_out = 1;
    looks(1);
    qps[0]->n_received += 1000; /* they say nothing of our own direction */
    looks(2);
    assert_int_equal(stalled, 1);
}

static void work_that_ended_while_we_were_away_is_no_stall(void **state)
{
    ep[0].sends_out = 1;
    looks(2);
    now += 30000;
    ++qps[0]->n_ok; /* polled before the look */
    looks(2);
    assert_int_equal(stalled, 0);
    now += 30000;
    looks(1);
    assert_int_equal(stalled, 1); /* service asks: absence alone is no verdict */
}

static void sleeping_process_reads_the_clock_in_each_call(void **state)
{
    ofo_deadline_init();
    assert_int_equal(OFO.look_mask, 31);
    OFO.params.blocking_progress = 50;
    ofo_deadline_init();
    assert_int_equal(OFO.look_mask, 0);
    OFO.params.blocking_progress = 0;
}

static void ports_that_are_down_and_rails_without_failover_are_left_alone(void **state)
{
    ep[0].sends_out = ep[1].sends_out = ep[2].sends_out = 1;
    module[0].port_up = false;
    module[1].ext.failed_frag = NULL;
    ep[2].doubted = true;
    looks(20);
    assert_int_equal(stalled, 0);
}

/* Each of these alone: nothing is reported, although work is out. */
static void rails_that_cannot_be_judged_are_left_alone(void **state)
{
    for (int why = 0; why < 7; ++why) {
        (void) end(NULL);
        (void) begin(NULL);
        ep[0].sends_out = 1;
        OFO.closing = 0 == why;
        peer.closing = 1 == why;
        peer.declared = 2 == why;
        ep[0].doubted = 3 == why;
        ep[0].gate = 4 == why ? OFO_GATE_REFUSING : OFO_GATE_UP;
        ep[0].qps = 5 == why ? NULL : qps[0];
        qps[0]->drain.own = 6 == why ? OFO_DRAIN_DRAINING : OFO_DRAIN_LIVE;
        looks(10);
        assert_int_equal(stalled, 0);
        assert_int_equal(ep[0].stall.since, 0);
    }
    (void) end(NULL);
    (void) begin(NULL);
    ep[0].rdma_out = 1;
    looks(10);
    assert_int_not_equal(stalled, 0);
    assert_true(ofo_deadline_still_waits(&ep[0], 0));
    assert_false(ofo_deadline_still_waits(&ep[0], 1));
    qps[0]->gen = 1; /* the rail has returned meanwhile */
    assert_false(ofo_deadline_still_waits(&ep[0], 1));
    looks(1);
    assert_int_equal(ep[0].stall.since, now);
    ep[0].qps = NULL;
    assert_false(ofo_deadline_still_waits(&ep[0], 1));
}

static void deadline_zero_looks_at_nothing(void **state)
{
    OFO.params.deadline = 0;
    ep[0].sends_out = 1;
    looks(50);
    assert_int_equal(stalled + reports, 0);
}

static void silent_rail_ends_unless_work_has_ended(void **state)
{
    ep[0].sends_out = ep[1].sends_out = 1;
    looks(4);
    ofo_deadline_over(&ep[0], 0); /* its work was posted while the inquiry ran */
    assert_int_equal(failed, 0);
    looks(1);
    ++qps[1]->n_ok;
    ofo_deadline_over(&ep[1], 0);
    assert_int_equal(failed, 0);
    ofo_deadline_over(&ep[0], 1); /* another generation */
    assert_int_equal(failed, 0);
    ofo_deadline_over(&ep[0], 0);
    assert_int_equal(failed, 1);
    ep[2].qps = NULL;
    ofo_deadline_over(&ep[2], 0);
    assert_int_equal(failed, 1);
}

/* ---- service ------------------------------------------------------------------------------------ */

static void questions_go_over_all_rails_that_are_up(void **state)
{
    publish(2, OFO_ST_DOWN);
    ofo_probe_begin(&ep[0], 1); /* the letter is about another generation */
    assert_int_equal(sends, 0);
    ofo_probe_begin(&ep[0], 0);
    assert_int_equal(sends, 1);
    assert_int_equal(sent[0].type, OFO_CTL_PROBE);
    assert_int_equal(sent[0].rail, 0);
    assert_int_equal(sent_by[1], 1);
    assert_int_equal(sent_by[2], 0);
    ofo_probe_begin(&ep[0], 0); /* one inquiry at a time */
    assert_int_equal(sends, 1);
    assert_int_equal(module[0].inquiries, 1);
}

static void rail_without_another_one_is_not_judged(void **state)
{
    publish(1, OFO_ST_DOWN);
    module[2].port_up = false;
    ofo_probe_begin(&ep[0], 0);
    assert_int_equal(sends, 0);
}

static void unanswered_rail_is_silent_while_another_answers(void **state)
{
    ofo_probe_begin(&ep[0], 0);
    for (int i = 1; i < OFO_INQUIRY_ROUNDS; ++i) {
        answer_over(1);
        assert_false(end_of_round());
    }
    answer_over(2);
    assert_true(end_of_round());
    assert_int_equal(now, 10000 + OFO_INQUIRY_ROUNDS * ROUND);
    assert_int_equal(module[0].inquiries, 0);
    assert_false(ofo_probe_timer(&ep[0], now + 1000));
}

static void stopped_peer_answers_over_no_rail_and_loses_none(void **state)
{
    ofo_probe_begin(&ep[0], 0);
    for (int i = 0; i < OFO_INQUIRY_VAIN; ++i) {
        assert_false(end_of_round());
    }
    assert_int_equal(ep[0].inquiry.until, 0);
    assert_int_equal(module[0].inquiries, 0);
}

static void answer_over_the_rail_acquits_it(void **state)
{
    ofo_probe_begin(&ep[0], 0);
    answer_over(1);
    answer_over(0);
    assert_int_equal(ep[0].inquiry.until, 0);
    assert_int_equal(module[0].inquiries, 0);
}

static void last_other_rail_that_is_lost_ends_the_inquiry(void **state)
{
    ofo_probe_begin(&ep[0], 0);
    for (int i = 1; i < OFO_INQUIRY_ROUNDS; ++i) {
        answer_over(1);
        (void) end_of_round();
    }
    answer_over(1);
    publish(1, OFO_ST_DRAINING);
    publish(2, OFO_ST_DOWN);
    assert_false(end_of_round());
    assert_int_equal(module[0].inquiries, 0);
}

static void rail_that_connects_is_judged_too_but_not_before_its_partner_is_known(void **state)
{
    publish(0, OFO_ST_REQUESTED);
    ep[0].choices = 3;
    ofo_probe_begin(&ep[0], 0);
    assert_int_equal(sends, 0);
    ep[0].is_settled = true;
    ofo_probe_begin(&ep[0], 0);
    assert_int_equal(sends, 1);
}

static void few_inquiries_run_at_a_time(void **state)
{
    module[0].inquiries = 16;
    ofo_probe_begin(&ep[0], 0);
    assert_int_equal(sends, 0);
    publish(1, OFO_ST_REQUESTED); /* a rail that connects follows no other */
    module[1].inquiries = 16;
    ofo_probe_begin(&ep[1], 0);
    assert_int_equal(ep[1].inquiry.until, 0);
    assert_int_equal(module[1].count.inquiries, 0);
}

static void probe_is_answered_over_the_rail_that_it_came_over(void **state)
{
    const ofo_ctl_t probe = {.type = OFO_CTL_PROBE, .rail = 0, .gen = 3, .about = 2, .number = 77};

    ofo_probe_message(&ep[0], &probe);
    assert_int_equal(sends, 1);
    assert_int_equal(sent[0].type, OFO_CTL_ANSWER);
    assert_int_equal(sent[0].rail, 0);
    assert_int_equal(sent[0].about, 2);
    assert_int_equal(sent[0].number, 77);
}

static void answer_goes_to_the_rail_that_it_is_about(void **state)
{
    const ofo_ctl_t answer = {.type = OFO_CTL_ANSWER, .rail = 1, .about = 0, .number = 1}, stray = {.type = OFO_CTL_ANSWER, .rail = 1, .about = 7};

    ofo_probe_message(&ep[1], &answer);
    assert_ptr_equal(forwarded_to, &ep[0]);
    assert_int_equal(sends, 0);
    forwarded_to = NULL;
    ofo_probe_message(&ep[1], &stray); /* no such rail */
    assert_null(forwarded_to);
}

/* ---- the soft verdict --------------------------------------------------------------------------- */

static void soft_deadline_makes_progress_look_and_ask_sooner(void **state)
{
    OFO.params.soft_deadline = SOFT;
    ep[0].sends_out = 1;
    for (int ms = 0; ms < 2 * SOFT / 8; ++ms) {
        assert_int_equal(stalled, 0);
        ++now;
        ofo_deadline_tick();
        poll_all();
    }
    assert_int_equal(reports, 1);
    now += SOFT / 8;
    ofo_deadline_tick();
    poll_all();
    assert_int_equal(stalled, 1);
}

static void rail_is_soft_after_the_short_round_and_normal_after_its_answer(void **state)
{
    OFO.params.soft_deadline = SOFT;
    ofo_probe_begin(&ep[0], 0);
    answer_over(1);
    assert_false(end_of_round());
    assert_int_equal(now, 10000 + SHORT);
    assert_true(ep[0].is_soft);
    assert_int_equal(softs, 1);
    assert_int_equal(sends, 2); /* the questions go on */
    answer_over(0);
    assert_false(ep[0].is_soft);
    assert_int_equal(calms, 1);
}

static void soft_rail_becomes_silent_without_a_word_in_between(void **state)
{
    OFO.params.soft_deadline = SOFT;
    ofo_probe_begin(&ep[0], 0);
    for (int i = 0; i < OFO_INQUIRY_ROUNDS; ++i) {
        answer_over(1);
        assert_false(end_of_round());
    }
    answer_over(1);
    assert_true(end_of_round());
    assert_int_equal(softs, 1);
    assert_int_equal(calms, 0);
    assert_false(ep[0].is_soft);
}

static void soft_rail_is_no_witness(void **state)
{
    publish(2, OFO_ST_DOWN);
    ep[1].is_soft = true;
    OFO.params.soft_deadline = SOFT;
    ofo_probe_begin(&ep[0], 0);
    assert_int_equal(sends, 0);
}

/* The PML sends nothing over it, so the verdict would leave the peer without a rail. */
static void rail_that_stands_out_by_force_is_no_witness(void **state)
{
    publish(2, OFO_ST_DOWN);
    ep[1].stands_out = true;
    ofo_probe_begin(&ep[0], 0);
    assert_int_equal(sends, 0);
    ep[1].stands_out = false;
    ofo_probe_begin(&ep[0], 0);
    assert_int_not_equal(sends, 0);
}

static void rail_that_connects_has_no_short_round(void **state)
{
    OFO.params.soft_deadline = SOFT;
    publish(0, OFO_ST_REQUESTED);
    ofo_probe_begin(&ep[0], 0);
    answer_over(1);
    assert_false(end_of_round());
    assert_int_equal(now, 10000 + ROUND);
    assert_int_equal(softs, 0);
}

static void inquiry_that_ends_without_result_makes_the_rail_normal(void **state)
{
    OFO.params.soft_deadline = SOFT;
    ofo_probe_begin(&ep[0], 0);
    answer_over(1);
    assert_false(end_of_round());
    publish(1, OFO_ST_DOWN);
    publish(2, OFO_ST_DOWN);
    assert_false(end_of_round());
    assert_int_equal(calms, 1);
    assert_false(ep[0].is_soft);
}

static void first_copies_that_are_out_for_long_are_reported_once_a_second(void **state)
{
    ep[0].sends_out = 1;
    ep[0].copies_due = now + 500;
    looks(9);
    assert_int_equal(overdues, 0);
    looks(1);
    assert_int_equal(overdues, 1);
    looks(19);
    assert_int_equal(overdues, 1);
    looks(1);
    assert_int_equal(overdues, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(work_that_does_not_end_is_reported_after_a_quarter),
        TEST(work_that_ends_is_not_reported),
        TEST(nothing_out_and_receives_alone_are_no_stall),
        TEST(work_that_ended_while_we_were_away_is_no_stall),
        TEST(sleeping_process_reads_the_clock_in_each_call),
        TEST(ports_that_are_down_and_rails_without_failover_are_left_alone),
        TEST(rails_that_cannot_be_judged_are_left_alone),
        TEST(deadline_zero_looks_at_nothing),
        TEST(silent_rail_ends_unless_work_has_ended),
        TEST(questions_go_over_all_rails_that_are_up),
        TEST(rail_without_another_one_is_not_judged),
        TEST(unanswered_rail_is_silent_while_another_answers),
        TEST(stopped_peer_answers_over_no_rail_and_loses_none),
        TEST(answer_over_the_rail_acquits_it),
        TEST(last_other_rail_that_is_lost_ends_the_inquiry),
        TEST(rail_that_connects_is_judged_too_but_not_before_its_partner_is_known),
        TEST(few_inquiries_run_at_a_time),
        TEST(probe_is_answered_over_the_rail_that_it_came_over),
        TEST(answer_goes_to_the_rail_that_it_is_about),
        TEST(soft_deadline_makes_progress_look_and_ask_sooner),
        TEST(rail_is_soft_after_the_short_round_and_normal_after_its_answer),
        TEST(soft_rail_becomes_silent_without_a_word_in_between),
        TEST(soft_rail_is_no_witness),
        TEST(rail_that_stands_out_by_force_is_no_witness),
        TEST(rail_that_connects_has_no_short_round),
        TEST(inquiry_that_ends_without_result_makes_the_rail_normal),
        TEST(first_copies_that_are_out_for_long_are_reported_once_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
