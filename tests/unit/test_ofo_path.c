/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails of one path: two ask, the others follow. Service's questions to many peers; clock and wire are played here, and some of the rails may
 * belong to another process of this machine. DESIGN.txt 10.2, "Paths".
 */
#include "bfo_config.h"

#include "types/btl_openib_clock.h"
#include "types/btl_openib_ctl.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_probe.h"
#include "types/btl_openib_timers.h"
#include "formats/btl_openib_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* In ms: soft verdicts after SHORT, and a hard one after another HARD. */
enum { PEERS = 40, DEADLINE = 400, ROUND = 75, SOFT = 40, SHORT = 30, HARD = OFO_INQUIRY_ROUNDS * ROUND, MOST_ASK = 16 };

ofo_component_t mca_btl_openib_component;

static ofo_module_t module[2];
static ofo_peer_t peer[PEERS];
static ofo_endpoint_t silent[PEERS], witness[PEERS]; /* of module 0 and 1 */
static uint64_t now;
static unsigned asked[PEERS], witness_asked[PEERS], witness_read[PEERS], read_by_now[PEERS];
static unsigned tells[PEERS];                                 /* questions over the witness which say that the rail is soft */
static unsigned softs[PEERS], adoptions[PEERS], calms[PEERS]; /* letters to progress */
static uint64_t soft_at[PEERS], found_at[PEERS];              /* ms after the start; 0: never */
static bool answers[PEERS];                                   /* over the witness */
static bool passes[PEERS];                                    /* over the silent rail */
static unsigned split;                                        /* the rails from here on are those of another process of this machine */
static bool is_stopped, is_said;                              /* the first process is stopped; that the file is not used any more is said */

/* ---- what the rooms call ------------------------------------------------------------------------ */

enum { START = 10000 };

uint64_t ofo_now_ms(void)
{
    return now;
}
void ofo_timers_add(ofo_endpoint_t *of) {}
void ofo_log(unsigned level, const char *format, ...)
{
    is_said |= NULL != strstr(format, "not used from now on");
}
void ofo_ctl_send(ofo_endpoint_t *of, ofo_ctl_t *ctl)
{
    assert_ptr_equal(of->module, &module[0]);
    ++asked[of - silent];
}
void ofo_tell_service(ofo_endpoint_t *of, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *set)
{
    assert_int_equal(kind, OFO_MAIL_SEND);
    assert_ptr_equal(of->module, &module[1]);
    ++witness_asked[of - witness];
    tells[of - witness] += 0 != (ctl->flags & OFO_CTL_SOFT);
}
void ofo_tell_progress(ofo_module_t *to, ofo_mail_kind_t kind, ofo_endpoint_t *of, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *set)
{
    const unsigned p = (unsigned) (of - silent);

    ++to->inbox.count;
    softs[p] += OFO_MAIL_SOFT == kind;
    adoptions[p] += OFO_MAIL_SOFT_TOO == kind;
    calms[p] += OFO_MAIL_CALM == kind;
    if (OFO_MAIL_SOFT == kind) {
        soft_at[p] = now - START;
    }
}

/* ---- set-up ------------------------------------------------------------------------------------- */

static void failed_frag(mca_btl_base_module_t *btl, ofo_endpoint_t *of, mca_btl_base_tag_t tag, const void *data, size_t length, int status) {}

static void make_rail(ofo_endpoint_t *ep, unsigned p, uint8_t rail)
{
    *ep = (ofo_endpoint_t){.module = &module[rail], .peer = &peer[p], .rail = rail, .gate = OFO_GATE_UP, .remote.lid = 7};
    ep->fsm.state = OFO_ST_UP;
    ep->published = (int32_t) ((unsigned) OFO_ST_UP << 16);
    peer[p].rail[rail] = ep;
}

/* The process that has the rail runs. */
static void run_process_of(unsigned p)
{
    OFO.self.vpid = p >= split;
}

static int begin(void **state)
{
    ofo_paths_fini(&OFO.paths);
    assert_int_equal(ofo_paths_init(&OFO.paths), 0);
    split = PEERS;
    is_stopped = is_said = false;
    memset(module, 0, sizeof(module));
    memset(asked, 0, sizeof(asked));
    memset(read_by_now, 0, sizeof(read_by_now));
    memset(witness_asked, 0, sizeof(witness_asked));
    memset(witness_read, 0, sizeof(witness_read));
    memset(tells, 0, sizeof(tells));
    memset(softs, 0, sizeof(softs));
    memset(adoptions, 0, sizeof(adoptions));
    memset(calms, 0, sizeof(calms));
    memset(soft_at, 0, sizeof(soft_at));
    memset(found_at, 0, sizeof(found_at));
    memset(passes, 0, sizeof(passes));
    memset(answers, 1, sizeof(answers));
    OFO.params.deadline = DEADLINE;
    OFO.params.soft_deadline = SOFT;
    OFO.closing = false;
    now = START;
    for (int m = 0; m < 2; ++m) {
        module[m].port_up = true;
        module[m].ext.failed_frag = failed_frag;
    }
    for (unsigned p = 0; p < PEERS; ++p) {
        peer[p] = (ofo_peer_t){.rail_count = 2, .name.vpid = 100 + p};
        make_rail(&silent[p], p, 0);
        make_rail(&witness[p], p, 1);
    }
    return 0;
}

static void begin_inquiries(unsigned from, unsigned to)
{
    for (unsigned p = from; p < to; ++p) {
        run_process_of(p);
        ofo_probe_begin(&silent[p], 0);
    }
}

/* The peers have found these rails soft. */
static void tell(unsigned from, unsigned to)
{
    for (unsigned p = from; p < to; ++p) {
        run_process_of(p);
        ofo_probe_told(&silent[p], 0);
    }
}

static void answer(unsigned p, uint8_t rail)
{
    const ofo_ctl_t ctl = {.type = OFO_CTL_ANSWER, .rail = rail, .about = 0, .number = silent[p].inquiry.number};

    ofo_probe_message(&silent[p], &ctl);
}

/* Service runs each millisecond; answers take less. The last rails come first, as in service's list. Progress reads its letters. */
static void run(unsigned ms)
{
    for (; 0 < ms; --ms) {
        module[0].inbox.count = 0;
        for (unsigned p = is_stopped ? split : 0; p < PEERS; ++p) {
            run_process_of(p);
            if (witness_read[p] != witness_asked[p] && answers[p]) {
                answer(p, 1);
            }
            witness_read[p] = witness_asked[p];
            if (read_by_now[p] != asked[p] && passes[p]) {
                answer(p, 0);
            }
            read_by_now[p] = asked[p];
        }
        ++now;
        for (unsigned p = PEERS; (is_stopped ? split : 0) < p--;) {
            run_process_of(p);
            if (ofo_probe_timer(&silent[p], now)) {
                assert_int_equal(found_at[p], 0);
                found_at[p] = now - START;
            }
        }
    }
}

static unsigned sum(const unsigned *of, unsigned from, unsigned to)
{
    unsigned all = 0;

    for (unsigned p = from; p < to; ++p) {
        all += of[p];
    }
    return all;
}

static unsigned found(unsigned from, unsigned to)
{
    unsigned all = 0;

    for (unsigned p = from; p < to; ++p) {
        all += 0 != found_at[p];
    }
    return all;
}

static void nothing_is_left(void)
{
    assert_int_equal(module[0].inquiries, 0);
    for (unsigned p = 0; p < PEERS; ++p) {
        assert_int_equal(silent[p].path, 0);
    }
}

/* ---- questions ---------------------------------------------------------------------------------- */

static void forty_rails_of_a_silent_path_are_found_in_the_time_of_one(void **state)
{
    begin_inquiries(0, PEERS);
    run(SHORT + HARD + SHORT);
    assert_int_equal(found(0, PEERS), PEERS);
    for (unsigned p = 0; p < PEERS; ++p) {
        assert_int_equal(softs[p], 1);
        assert_in_range(soft_at[p], SHORT, SHORT + SHORT / 3);
        assert_in_range(found_at[p], SHORT + HARD, SHORT + HARD + SHORT / 3);
    }
    assert_int_equal(sum(asked, 0, 2), 2 * (1 + OFO_INQUIRY_ROUNDS));
    assert_int_equal(sum(asked, 2, PEERS), 0);
    assert_int_equal(sum(calms, 0, PEERS), 0);
    assert_int_equal(module[0].count.followed, PEERS - 2);
    assert_int_equal(sum(witness_asked, 2, PEERS), PEERS - 2); /* does its process live? */
    assert_int_equal(module[0].count.questions, 2 * 2 * (1 + OFO_INQUIRY_ROUNDS) + PEERS - 2);
    nothing_is_left();
}

static void one_process_that_is_at_fault_speaks_for_no_other(void **state)
{
    memset(passes, 1, sizeof(passes));
    passes[1] = false; /* its service of this port hangs, that of the other one does not */
    begin_inquiries(0, PEERS);
    run(SHORT + HARD + 5 * ROUND);
    assert_int_equal(found(0, PEERS), 1);
    assert_int_not_equal(found_at[1], 0);
    assert_int_equal(sum(asked, 2, PEERS), PEERS - 2); /* each asks itself */
    nothing_is_left();
}

static void path_that_passes_is_asked_for_each_rail(void **state)
{
    memset(passes, 1, sizeof(passes));
    begin_inquiries(0, PEERS);
    run(SHORT);
    assert_int_equal(sum(asked, 0, PEERS), PEERS);
    assert_int_equal(found(0, PEERS) + sum(softs, 0, PEERS), 0);
    nothing_is_left();
}

static void processes_that_are_stopped_do_not_lead(void **state)
{
    answers[0] = answers[1] = answers[2] = false;
    begin_inquiries(0, PEERS);
    run(2 * SHORT + HARD + 2 * ROUND);
    assert_int_equal(found(3, PEERS), PEERS - 3);
    for (unsigned p = 3; p < PEERS; ++p) {
        assert_in_range(soft_at[p], SHORT, 4 * SHORT);
    }
    run(OFO_INQUIRY_VAIN * ROUND);
    nothing_is_left();
}

static void process_that_does_not_answer_at_all_is_not_judged_by_others(void **state)
{
    answers[5] = answers[6] = false;
    begin_inquiries(0, 8);
    run(SHORT + 2 * ROUND);
    answers[6] = true; /* only the first question was lost */
    run(HARD);
    assert_int_equal(found(0, 8), 7);
    assert_int_equal(found_at[5], 0);
    assert_true(2 <= witness_asked[6]);
    run(OFO_INQUIRY_VAIN * ROUND);
    assert_int_equal(found_at[5], 0);
    assert_int_equal(calms[5], 1);
    nothing_is_left();
}

static void without_short_rounds_followers_are_found_too(void **state)
{
    OFO.params.soft_deadline = 0;
    begin_inquiries(0, PEERS);
    run(HARD + ROUND);
    assert_int_equal(found(0, PEERS), PEERS);
    assert_int_equal(sum(softs, 0, PEERS), 0);
    assert_int_equal(sum(asked, 2, PEERS), 0);
    nothing_is_left();
}

static void path_that_passes_again_is_not_silent_for_those_that_follow(void **state)
{
    begin_inquiries(0, PEERS);
    run(SHORT + 3 * ROUND);
    assert_int_equal(sum(softs, 0, PEERS), PEERS);
    memset(passes, 1, sizeof(passes));
    run(ROUND + 2 * SHORT);
    assert_int_equal(found(0, PEERS), 0);
    assert_int_equal(sum(calms, 0, PEERS), PEERS);
    nothing_is_left();
}

static void work_that_stands_still_later_is_judged_by_later_questions(void **state)
{
    begin_inquiries(0, 3);
    run(SHORT + HARD); /* the last question was sent a round ago */
    assert_int_equal(found(0, 2), 2);
    begin_inquiries(3, 6);
    run(HARD);
    assert_int_equal(found(3, 6), 0);
    run(2 * SHORT);
    assert_int_equal(found(3, 6), 3);
    assert_int_equal(asked[5], 0);
    nothing_is_left();
}

/* Progress would not end a rail whose work has waited for a shorter time. */
static void rails_that_begin_to_follow_late_are_found_when_their_work_is_old_enough(void **state)
{
    const unsigned late = SHORT + 2 * ROUND;

    begin_inquiries(0, 2);
    run(late);
    begin_inquiries(2, 4);
    run(DEADLINE / 2 + SHORT);
    assert_int_equal(found(0, 4), 4);
    assert_in_range(found_at[2], late + DEADLINE / 2, late + DEADLINE / 2 + SHORT);
    assert_int_equal(asked[2] + asked[3], 0);
    nothing_is_left();
}

static void one_of_two_that_ask_is_replaced_when_its_inquiry_ends(void **state)
{
    begin_inquiries(0, 4);
    run(SHORT + ROUND);
    peer[1].closing = true;
    run(HARD + SHORT + 2 * ROUND);
    assert_int_equal(found_at[1], 0);
    assert_int_not_equal(found_at[2], 0);
    assert_int_not_equal(found_at[3], 0);
    assert_int_equal(1, (0 != asked[2]) + (0 != asked[3]));
    nothing_is_left();
}

static void round_that_service_ended_late_replaces_nobody(void **state)
{
    begin_inquiries(0, 4);
    run(2);
    now += 3 * SHORT;
    run(2 * SHORT + ROUND + HARD);
    assert_int_equal(found(0, 4), 4);
    assert_int_equal(asked[2] + asked[3], 0);
    nothing_is_left();
}

/* Their peers have come to the same verdict a moment before. */
static void rails_that_end_in_their_last_round_still_speak_for_the_others(void **state)
{
    begin_inquiries(0, 4);
    run(SHORT + 3 * ROUND + ROUND / 2);
    silent[0].fsm.state = silent[1].fsm.state = OFO_ST_DRAINING;
    run(ROUND / 2 + SHORT);
    assert_int_equal(found(0, 2), 0);
    assert_int_equal(calms[0] + calms[1], 2);
    assert_int_equal(found(2, 4), 2);
    assert_int_equal(asked[2] + asked[3], 0);
    nothing_is_left();
}

static void rails_that_end_earlier_are_replaced(void **state)
{
    begin_inquiries(0, 4);
    run(SHORT + 2 * ROUND + ROUND / 2);
    silent[0].fsm.state = silent[1].fsm.state = OFO_ST_DRAINING;
    run(ROUND + 2 * SHORT);
    assert_int_equal(found(2, 4), 0);
    run(SHORT + HARD);
    assert_int_equal(found(2, 4), 2);
    assert_int_not_equal(asked[2], 0);
    nothing_is_left();
}

static void rails_of_other_paths_and_rails_that_connect_ask_themselves(void **state)
{
    silent[2].remote.gid[15] = 1;
    silent[3].remote.lid = 9;
    silent[4].remote.subnet.key[0] = 1;
    silent[5].fsm.state = OFO_ST_REQUESTED;
    begin_inquiries(0, 6);
    assert_int_equal(sum(asked, 0, 6), 6);
}

static void rail_that_takes_another_path_or_falls_follows_no_longer(void **state)
{
    begin_inquiries(0, 4);
    run(SHORT);
    silent[2].remote.gid[15] = 1;
    silent[3].fsm.state = OFO_ST_REQUESTED;
    run(HARD + SHORT);
    assert_int_equal(found(0, 4), 2);
    assert_int_equal(asked[2] + asked[3], 0);
    nothing_is_left();
}

static void follower_that_looks_too_late_finds_nothing(void **state)
{
    ofo_paths_found_t found;

    begin_inquiries(0, 3);
    assert_true(ofo_paths_lock(&OFO.paths, silent[2].path, now, now + 60000, &found));
    found.path->leader[0].swallowed = found.path->leader[1].swallowed = now; /* the path may pass again by now */
    ofo_paths_unlock(&found);
    now += 30000;
    assert_false(ofo_probe_timer(&silent[2], now));
    assert_int_equal(silent[2].inquiry.until, 0);
}

static void few_rails_ask_at_a_time_and_the_others_wait_for_their_turn(void **state)
{
    for (unsigned p = 0; p < PEERS; ++p) {
        silent[p].remote.lid = (uint16_t) p;
    }
    begin_inquiries(0, PEERS);
    assert_int_equal(sum(asked, 0, PEERS), MOST_ASK);
    run(SHORT + HARD + SHORT);
    assert_int_equal(found(0, PEERS), MOST_ASK);
    assert_int_equal(module[0].inquiries, MOST_ASK);
    run(SHORT + HARD);
    assert_int_equal(found(0, PEERS), 2 * MOST_ASK);
}

static void process_without_the_file_judges_its_own_rails(void **state)
{
    OFO.paths.is_alone = true;
    begin_inquiries(0, 4);
    run(SHORT + HARD + SHORT);
    assert_int_not_equal(found(0, 4), 0);
    assert_false(is_said);
}

/* ---- several processes of this machine ------------------------------------------------------------- */

/* The third one asks because the first two belong to one process, which may be at fault itself. */
static void three_rails_ask_for_two_processes(void **state)
{
    split = PEERS / 2;
    begin_inquiries(0, PEERS);
    run(SHORT + HARD + 2 * SHORT);
    assert_int_equal(found(0, PEERS), PEERS);
    for (unsigned p = 0; p < PEERS; ++p) {
        assert_in_range(soft_at[p], SHORT, SHORT + SHORT / 3);
        assert_in_range(found_at[p], SHORT + HARD, SHORT + HARD + SHORT / 3);
    }
    assert_int_equal(sum(asked, 0, PEERS), 3 * (1 + OFO_INQUIRY_ROUNDS));
    assert_int_equal(0 != asked[split], 1);
    nothing_is_left();
}

static void process_that_is_at_fault_does_not_speak_for_others_of_its_machine(void **state)
{
    split = PEERS / 2;
    memset(&passes[split], 1, PEERS - split); /* the first process gets no answer over this port */
    begin_inquiries(0, PEERS);
    run(SHORT + HARD + 5 * ROUND);
    assert_int_equal(found(split, PEERS), 0);
    assert_int_equal(sum(softs, split, PEERS), 0);
}

static void rails_of_a_process_that_stops_are_replaced(void **state)
{
    split = PEERS / 2;
    begin_inquiries(0, split);
    run(SHORT / 2);
    begin_inquiries(split, PEERS);
    is_stopped = true;
    run(2 * ROUND + SHORT + HARD + 2 * SHORT);
    assert_int_equal(found(0, split), 0);
    assert_int_equal(found(split, PEERS), PEERS - split);
    assert_int_equal(sum(asked, split, PEERS), 2 * (1 + OFO_INQUIRY_ROUNDS));
}

/* ---- verdicts of the peers ----------------------------------------------------------------------- */

static void follower_tells_its_verdict_over_its_other_rails(void **state)
{
    begin_inquiries(0, 3);
    run(SHORT + SHORT / 2);
    assert_int_equal(softs[2], 1);
    ofo_probe_tell(&silent[2], 0);
    assert_int_equal(tells[2], 1);
    run(HARD);
    assert_int_not_equal(found_at[2], 0);
    assert_int_equal(asked[2], 0);
    ofo_probe_tell(&silent[2], 0); /* too late */
    assert_int_equal(tells[2], 1);
}

static void told_rails_lead_and_speak_for_those_that_follow(void **state)
{
    tell(0, 2);
    begin_inquiries(2, 5);
    run(SHORT + SHORT / 2);
    assert_int_equal(sum(adoptions, 0, 5), 2);
    assert_int_equal(sum(softs, 0, 2), 0);
    assert_int_equal(sum(softs, 2, 5), 3); /* as soon as if nobody had been told */
    run(HARD);
    assert_int_equal(found(0, 5), 5);
    assert_int_equal(sum(asked, 2, 5) + sum(tells, 0, 5), 0);
    nothing_is_left();
}

static void told_rails_follow_and_have_one_soft_state(void **state)
{
    begin_inquiries(0, 3);
    tell(2, 5); /* the first one follows already */
    assert_int_equal(sum(adoptions, 2, 5), 3);
    run(SHORT + 2 * ROUND);
    tell(2, 5);
    silent[3].fsm.state = OFO_ST_REQUESTED;
    run(SHORT);
    assert_int_equal(calms[3], 1);
    run(HARD);
    assert_int_equal(found(0, 5), 4);
    assert_int_equal(sum(adoptions, 2, 5), 3);
    assert_int_equal(sum(softs, 2, 5) + sum(asked, 2, 5), 0);
    assert_int_equal(calms[2] + calms[4], 0);
    for (unsigned p = 0; p < 5; ++p) {
        assert_false(silent[p].is_soft);
    }
    nothing_is_left();
}

static void told_rails_that_follow_ask_when_the_path_answers(void **state)
{
    begin_inquiries(0, 2);
    tell(2, PEERS);
    run(SHORT + ROUND / 2);
    assert_int_equal(sum(asked, 2, PEERS), 0);
    memset(passes, 1, sizeof(passes));
    run(ROUND + SHORT);
    assert_int_equal(sum(asked, 2, PEERS), PEERS - 2);
    assert_int_equal(sum(calms, 0, PEERS), PEERS);
    assert_int_equal(found(0, PEERS), 0);
    nothing_is_left();
}

static void told_rails_without_room_are_soft_and_wait_for_their_turn(void **state)
{
    for (unsigned p = 0; p < PEERS; ++p) {
        silent[p].remote.lid = (uint16_t) p;
    }
    tell(0, PEERS);
    assert_int_equal(sum(adoptions, 0, PEERS), PEERS);
    assert_int_equal(sum(asked, 0, PEERS), MOST_ASK);
    run(OFO_INQUIRY_VAIN * ROUND + SHORT); /* the last ones have waited for too long */
    assert_int_equal(found(0, PEERS), MOST_ASK);
    assert_int_equal(sum(calms, 0, PEERS), PEERS - 2 * MOST_ASK);
    run(HARD);
    assert_int_equal(found(0, PEERS), 2 * MOST_ASK);
    nothing_is_left();
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(forty_rails_of_a_silent_path_are_found_in_the_time_of_one),
        TEST(one_process_that_is_at_fault_speaks_for_no_other),
        TEST(path_that_passes_is_asked_for_each_rail),
        TEST(processes_that_are_stopped_do_not_lead),
        TEST(process_that_does_not_answer_at_all_is_not_judged_by_others),
        TEST(without_short_rounds_followers_are_found_too),
        TEST(path_that_passes_again_is_not_silent_for_those_that_follow),
        TEST(work_that_stands_still_later_is_judged_by_later_questions),
        TEST(rails_that_begin_to_follow_late_are_found_when_their_work_is_old_enough),
        TEST(one_of_two_that_ask_is_replaced_when_its_inquiry_ends),
        TEST(round_that_service_ended_late_replaces_nobody),
        TEST(rails_that_end_in_their_last_round_still_speak_for_the_others),
        TEST(rails_that_end_earlier_are_replaced),
        TEST(rails_of_other_paths_and_rails_that_connect_ask_themselves),
        TEST(rail_that_takes_another_path_or_falls_follows_no_longer),
        TEST(follower_that_looks_too_late_finds_nothing),
        TEST(few_rails_ask_at_a_time_and_the_others_wait_for_their_turn),
        TEST(three_rails_ask_for_two_processes),
        TEST(process_that_is_at_fault_does_not_speak_for_others_of_its_machine),
        TEST(rails_of_a_process_that_stops_are_replaced),
        TEST(follower_tells_its_verdict_over_its_other_rails),
        TEST(told_rails_lead_and_speak_for_those_that_follow),
        TEST(told_rails_follow_and_have_one_soft_state),
        TEST(told_rails_that_follow_ask_when_the_path_answers),
        TEST(told_rails_without_room_are_soft_and_wait_for_their_turn),
        TEST(process_without_the_file_judges_its_own_rails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
