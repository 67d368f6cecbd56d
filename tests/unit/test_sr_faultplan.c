/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The parser of fault plans and the matching of rules.
 */
#include "sr_faultplan.h"

#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct sr_rule parse(const char *line)
{
    struct sr_rule rule;
    uint64_t seed;
    char why[200] = "";

    if (1 != sr_plan_parse_line(line, &rule, &seed, why, sizeof(why))) {
        fail_msg("'%s': %s", line, why);
    }
    return rule;
}

static void rule_of_every_key_is_parsed(void **state)
{
    struct sr_rule r = parse("  unacked rail=sr3 process=2 qp=0x8010 op=send op=read payload=4:0aff/0fff nth=3-7 "
                             "after=2 chance=2.5% time=1.5ms status=access at=9 # why");

    assert_int_equal(SR_FATE_UNACKED, r.fate);
    assert_int_equal(1u << 3, r.rails);
    assert_int_equal(2, r.after);
    assert_int_equal(2, r.process);
    assert_int_equal(0x8010, r.qpn);
    assert_int_equal(1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM | 1u << IBV_WR_RDMA_READ, r.opcodes);
    assert_int_equal(4, r.pattern_offset);
    assert_int_equal(2, r.pattern_length);
    assert_int_equal(0x0a, r.pattern_value[0]);
    assert_int_equal(0x0f, r.pattern_mask[0]);
    assert_int_equal(3, r.first);
    assert_int_equal(5, r.count);
    assert_int_equal(25, r.permille);
    assert_int_equal(1500000, r.time);
    assert_int_equal(IBV_WC_REM_ACCESS_ERR, r.status);
    assert_int_equal(9, r.at);
}

static void breaks_names_a_side_and_needs_a_fault_that_breaks(void **state)
{
    struct sr_rule rule;
    uint64_t seed;
    char why[200];

    assert_int_equal(SR_BREAKS_DEFAULT, parse("lose").breaks);
    assert_int_equal(SR_BREAKS_RECEIVER, parse("lose breaks=receiver").breaks);
    assert_int_equal(SR_BREAKS_BOTH, parse("silent time=1ms breaks=both").breaks);
    assert_int_equal(SR_BREAKS_SENDER, parse("silent time=1ms breaks=sender").breaks);
    assert_int_equal(-1, sr_plan_parse_line("lose breaks=none", &rule, &seed, why, sizeof(why)));
    assert_non_null(strstr(why, "sender, receiver or both"));
    assert_int_equal(-1, sr_plan_parse_line("corrupt breaks=both", &rule, &seed, why, sizeof(why)));
    assert_non_null(strstr(why, "unacked and silent"));
}

static void every_fate_has_a_name_that_parses(void **state)
{
    for (unsigned fate = 1; fate < SR_FATES; ++fate) {
        char line[64];
        snprintf(line, sizeof(line), "%s time=1ms op=qp_rtr", sr_fate_name((enum sr_fate) fate));
        assert_int_equal(fate, parse(line).fate);
    }
}

static void slow_needs_a_time_and_a_call(void **state)
{
    struct sr_rule rule;
    uint64_t seed;
    char why[200];

    assert_int_equal(1u << SR_CALL_DESTROY_QP, parse("slow op=destroy_qp time=1s").opcodes);
    assert_int_equal(-1, sr_plan_parse_line("slow op=create_ah", &rule, &seed, why, sizeof(why)));
    assert_non_null(strstr(why, "time="));
    assert_int_equal(-1, sr_plan_parse_line("slow op=send time=1s", &rule, &seed, why, sizeof(why)));
    assert_non_null(strstr(why, "a call"));
}

static void empty_line_comment_and_seed_are_no_rules(void **state)
{
    struct sr_rule rule;
    uint64_t seed = 0;
    char why[200];

    assert_int_equal(0, sr_plan_parse_line("", &rule, &seed, why, sizeof(why)));
    assert_int_equal(0, sr_plan_parse_line("  # lose everything\n", &rule, &seed, why, sizeof(why)));
    assert_int_equal(2, sr_plan_parse_line("seed 77\n", &rule, &seed, why, sizeof(why)));
    assert_int_equal(77, seed);
}

static void mistakes_are_refused_with_a_reason(void **state)
{
    static const char *const lines[] = {
        "lost",
        "lose rail=8",
        "lose rail=-1",
        "lose rail=",
        "lose after=0",
        "lose after=x",
        "lose same=0",
        "lose other=x",
        "lose nth=0",
        "lose nth=3-2",
        "lose nth=2x",
        "lose nth=-3",
        "lose chance=0%",
        "lose chance=0.04%",
        "lose chance=101%",
        "lose chance=5",
        "delay",
        "delay time=5",
        "delay time=-1ms",
        "silent",
        "late",
        "lose payload=1",
        "lose payload=1:",
        "lose payload=1:abc",
        "lose payload=1:zz",
        "lose payload=1:ab/ff00",
        "lose payload=1:1122334455667788990011223344556677",
        "lose payload=99999:ab",
        "lose op=jump",
        "error status=ok",
        "lose colour=red",
        "lose rail",
        "lose local",
        "seed",
        "seed x",
        "seed -1",
    };

    for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); ++i) {
        struct sr_rule rule;
        uint64_t seed;
        char why[200] = "";
        if (-1 != sr_plan_parse_line(lines[i], &rule, &seed, why, sizeof(why))) {
            fail_msg("'%s' was accepted", lines[i]);
        }
        assert_true(strlen(why) > 10);
    }
}

static void line_that_is_too_long_is_refused(void **state)
{
    struct sr_rule rule;
    uint64_t seed;
    char why[200], line[2000];

    memset(line, ' ', sizeof(line));
    memcpy(line, "lose", 4);
    memcpy(line + sizeof(line) - 8, "rail=1\n", 8);
    assert_int_equal(-1, sr_plan_parse_line(line, &rule, &seed, why, sizeof(why)));
}

static void rule_matches_what_it_names(void **state)
{
    const uint8_t head[8] = {0x41, 2, 3, 0xa5, 5, 6, 7, 8};
    struct sr_message m = {.rail = 1, .process = 4, .qpn = 77, .opcode = IBV_WR_SEND, .head = head, .head_length = 8};
    static const struct {
        const char *line;
        bool matches;
    } cases[] = {
        {"lose", true},
        {"lose rail=sr1", true},
        {"lose rail=sr0", false},
        {"lose rail=sr0 rail=sr1", true},
        {"lose rail=sr0 rail=sr2", false},
        {"lose process=4", true},
        {"lose process=3", false},
        {"lose qp=77", true},
        {"lose qp=78", false},
        {"lose op=send", true},
        {"lose op=write", false},
        {"lose op=write op=send", true},
        {"lose op=imm", false},
        {"lose payload=0:41", true},
        {"lose payload=3:a0/f0", true},
        {"lose payload=3:a0", false},
        {"lose payload=7:08", true},
        {"lose payload=7:0809", false},
        {"lose payload=8:00", false},
        {"enomem op=reg_mr", false},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        struct sr_rule rule = parse(cases[i].line);
        if (cases[i].matches != sr_rule_matches(&rule, &m)) {
            fail_msg("'%s' is wrong about the message", cases[i].line);
        }
    }
    m.opcode = SR_CALL_REG_MR; /* a rule applies to a call only if it names the call */
    {
        struct sr_rule any = parse("enomem"), named = parse("enomem op=reg_mr");
        assert_false(sr_rule_matches(&any, &m));
        assert_true(sr_rule_matches(&named, &m));
    }
}

static void rule_fires_at_the_matches_it_names(void **state)
{
    struct sr_rule rule = parse("lose nth=3-4");
    char fired[8] = "";

    for (int i = 0; i < 6; ++i) {
        fired[i] = sr_rule_fires(&rule, 0, 0, 2) ? 'x' : '.';
    }
    assert_string_equal("..xx..", fired);
    assert_int_equal(6, rule.seen);
    assert_int_equal(2, rule.hits);
}

static void rule_waits_for_what_it_names_of_earlier_rules(void **state)
{
    struct sr_plan plan = {.rule = {parse("mark"), parse("lose after=1"), parse("lose same=1"), parse("lose other=1")}};

    for (uint32_t rail = 0; rail < 2; ++rail) {
        assert_false(sr_rule_is_due(&plan, &plan.rule[1], rail));
        assert_false(sr_rule_is_due(&plan, &plan.rule[2], rail));
        assert_true(sr_rule_is_due(&plan, &plan.rule[3], rail));
    }
    assert_true(sr_rule_fires(&plan.rule[0], 0, 0, 1));
    for (uint32_t rail = 0; rail < 2; ++rail) {
        assert_true(sr_rule_is_due(&plan, &plan.rule[1], rail));
        assert_int_equal(1 == rail, sr_rule_is_due(&plan, &plan.rule[2], rail));
        assert_int_equal(0 == rail, sr_rule_is_due(&plan, &plan.rule[3], rail));
    }
}

static void chance_depends_on_the_seed_alone(void **state)
{
    struct sr_rule a = parse("lose chance=20%"), b = parse("lose chance=20%"), c = parse("lose chance=20%");
    unsigned hits = 0, differ = 0;

    for (int i = 0; i < 2000; ++i) {
        bool fires = sr_rule_fires(&a, 5, 1, 0);
        hits += fires;
        assert_int_equal(fires, sr_rule_fires(&b, 5, 1, 0));
        differ += fires != sr_rule_fires(&c, 6, 1, 0);
    }
    assert_in_range(hits, 320, 480);
    assert_true(differ > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_of_every_key_is_parsed),
        cmocka_unit_test(breaks_names_a_side_and_needs_a_fault_that_breaks),
        cmocka_unit_test(every_fate_has_a_name_that_parses),
        cmocka_unit_test(slow_needs_a_time_and_a_call),
        cmocka_unit_test(empty_line_comment_and_seed_are_no_rules),
        cmocka_unit_test(mistakes_are_refused_with_a_reason),
        cmocka_unit_test(line_that_is_too_long_is_refused),
        cmocka_unit_test(rule_matches_what_it_names),
        cmocka_unit_test(rule_fires_at_the_matches_it_names),
        cmocka_unit_test(rule_waits_for_what_it_names_of_earlier_rules),
        cmocka_unit_test(chance_depends_on_the_seed_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
