/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Parses fault plans and decides which messages they hit. It works on lines and on descriptions of messages, and uses
 * neither verbs objects nor shared memory. The format is softrail-plan(5). DESIGN.txt 16.
 */
#include "sr_faultplan.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const fate_names[SR_FATES] = {[SR_FATE_NONE] = "none",         [SR_FATE_LOSE] = "lose",           [SR_FATE_UNACKED] = "unacked",
                                                 [SR_FATE_DELAY] = "delay",       [SR_FATE_SILENT] = "silent",       [SR_FATE_CORRUPT] = "corrupt",
                                                 [SR_FATE_ERROR] = "error",       [SR_FATE_ENOMEM] = "enomem",       [SR_FATE_RNR] = "rnr",
                                                 [SR_FATE_LATE] = "late",         [SR_FATE_FATAL] = "fatal",         [SR_FATE_DOWN] = "down",
                                                 [SR_FATE_MIGRATED] = "migrated", [SR_FATE_SWALLOW] = "swallow",     [SR_FATE_SLOW] = "slow",
                                                 [SR_FATE_CQ_ERROR] = "cq_error", [SR_FATE_SRQ_ERROR] = "srq_error", [SR_FATE_MARK] = "mark"};

static const struct {
    const char *name;
    uint32_t bits;
} opcode_names[] = {
    {"send", 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM},
    {"write", 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_WRITE_WITH_IMM},
    {"read", 1u << IBV_WR_RDMA_READ},
    {"atomic", 1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD},
    {"imm", 1u << IBV_WR_SEND_WITH_IMM | 1u << IBV_WR_RDMA_WRITE_WITH_IMM},
    {"reg_mr", 1u << SR_CALL_REG_MR},
    {"create_qp", 1u << SR_CALL_CREATE_QP},
    {"create_ah", 1u << SR_CALL_CREATE_AH},
    {"destroy_qp", 1u << SR_CALL_DESTROY_QP},
    {"qp_rtr", 1u << SR_CALL_QP_RTR},
    {"qp_error", 1u << SR_CALL_QP_ERROR},
};

static const struct {
    const char *name;
    uint32_t status;
} status_names[] = {
    {"retry", IBV_WC_RETRY_EXC_ERR}, {"rnr", IBV_WC_RNR_RETRY_EXC_ERR}, {"protection", IBV_WC_LOC_PROT_ERR}, {"length", IBV_WC_LOC_LEN_ERR},
    {"local", IBV_WC_LOC_QP_OP_ERR}, {"access", IBV_WC_REM_ACCESS_ERR}, {"request", IBV_WC_REM_INV_REQ_ERR}, {"remote", IBV_WC_REM_OP_ERR},
    {"fatal", IBV_WC_FATAL_ERR},     {"general", IBV_WC_GENERAL_ERR},
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const char *sr_fate_name(enum sr_fate fate)
{
    return fate < SR_FATES ? fate_names[fate] : "?";
}

/* ---- parsing ------------------------------------------------------------------------------------ */

static bool parse_u64(const char *text, uint64_t most, uint64_t *value)
{
    char *end;

    if ('-' == *text || '\0' == *text) {
        return false;
    }
    *value = strtoull(text, &end, 0);
    return '\0' == *end && *value <= most;
}

static bool parse_u32(const char *text, uint32_t *value)
{
    uint64_t wide = 0;
    bool ok = parse_u64(text, SR_ANY - 1, &wide);

    *value = (uint32_t) wide;
    return ok;
}

static bool parse_rail(const char *text, uint32_t *rails)
{
    uint32_t rail;

    if (!parse_u32(0 == strncmp(text, "sr", 2) ? text + 2 : text, &rail) || rail >= 8) {
        return false;
    }
    *rails |= 1u << rail;
    return true;
}

static bool parse_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double value = strtod(text, &end);

    for (unsigned i = 0; end != text && i < COUNT(units); ++i) {
        if (0 == strcmp(end, units[i].unit) && 0 <= value && value * units[i].factor < 1e15) {
            *ns = (uint64_t) (value * units[i].factor);
            return true;
        }
    }
    return false;
}

/* "N", "N-M" or "N-": which matches get the fault. */
static bool parse_range(const char *text, struct sr_rule *rule)
{
    char *end;
    unsigned long first = strtoul(text, &end, 10), last = first;

    if (end == text || 0 == first || '-' == *text) {
        return false;
    }
    if ('-' == *end && '\0' == end[1]) {
        rule->count = SR_ANY;
    } else {
        if ('-' == *end) {
            const char *begin = end + 1;
            last = strtoul(begin, &end, 10);
            if (end == begin || last < first) {
                return false;
            }
        }
        if ('\0' != *end) {
            return false;
        }
        rule->count = (uint32_t) (last - first + 1);
    }
    rule->first = (uint32_t) first;
    return true;
}

static bool parse_hex(const char *text, size_t digits, uint8_t bytes[SR_MAX_PATTERN])
{
    if (0 == digits || 2 * SR_MAX_PATTERN < digits || 0 != digits % 2) {
        return false;
    }
    for (size_t i = 0; i < digits; i += 2) {
        char pair[3] = {text[i], text[i + 1], '\0'}, *end;
        bytes[i / 2] = (uint8_t) strtoul(pair, &end, 16);
        if ('\0' != *end || '-' == pair[0] || '+' == pair[0] || ' ' == pair[0]) {
            return false;
        }
    }
    return true;
}

/* "OFFSET:VALUE" or "OFFSET:VALUE/MASK", value and mask in hexadecimal, in the order of the bytes. */
static bool parse_pattern(const char *text, struct sr_rule *rule)
{
    char *end;
    unsigned long offset = strtoul(text, &end, 0);
    const char *value = end + 1, *slash;
    size_t digits;

    if (end == text || ':' != *end || 4096 < offset) {
        return false;
    }
    slash = strchr(value, '/');
    digits = NULL == slash ? strlen(value) : (size_t) (slash - value);
    memset(rule->pattern_mask, 0xff, sizeof(rule->pattern_mask));
    if (!parse_hex(value, digits, rule->pattern_value)
        || (NULL != slash && (strlen(slash + 1) != digits || !parse_hex(slash + 1, digits, rule->pattern_mask)))) {
        return false;
    }
    rule->pattern_offset = (uint32_t) offset;
    rule->pattern_length = (uint32_t) (digits / 2);
    return true;
}

static bool parse_opcodes(const char *text, uint32_t *bits)
{
    for (unsigned i = 0; i < COUNT(opcode_names); ++i) {
        if (0 == strcmp(text, opcode_names[i].name)) {
            *bits |= opcode_names[i].bits;
            return true;
        }
    }
    return false;
}

static bool parse_status(const char *text, uint32_t *status)
{
    for (unsigned i = 0; i < COUNT(status_names); ++i) {
        if (0 == strcmp(text, status_names[i].name)) {
            *status = status_names[i].status;
            return true;
        }
    }
    return false;
}

static bool parse_breaks(const char *text, uint32_t *breaks)
{
    *breaks = 0 == strcmp(text, "sender") ? SR_BREAKS_SENDER : 0 == strcmp(text, "receiver") ? SR_BREAKS_RECEIVER : SR_BREAKS_BOTH;
    return SR_BREAKS_BOTH != *breaks || 0 == strcmp(text, "both");
}

static bool parse_percent(const char *text, uint32_t *permille)
{
    char *end;
    double percent = strtod(text, &end);

    *permille = (uint32_t) (percent * 10 + 0.5);
    return end != text && '%' == *end && '\0' == end[1] && 0.1 <= percent && 100 >= percent;
}

/* Parses one "key=value". Returns NULL, or a text that says what was expected. */
static const char *parse_pair(const char *key, const char *value, struct sr_rule *rule)
{
    if (0 == strcmp(key, "rail")) {
        return parse_rail(value, &rule->rails) ? NULL : "a rail such as sr1";
    }
    if (0 == strcmp(key, "process")) {
        return parse_u32(value, &rule->process) ? NULL : "a number that 'softrail status' shows";
    }
    if (0 == strcmp(key, "qp")) {
        return parse_u32(value, &rule->qpn) ? NULL : "a queue pair number";
    }
    if (0 == strcmp(key, "op")) {
        return parse_opcodes(value, &rule->opcodes) ? NULL
                                                    : "send, write, read, atomic, imm, reg_mr, create_qp, create_ah, destroy_qp, qp_rtr or qp_error";
    }
    if (0 == strcmp(key, "payload")) {
        return parse_pattern(value, rule) ? NULL : "OFFSET:HEX or OFFSET:HEX/MASK, at most 16 bytes";
    }
    if (0 == strcmp(key, "nth")) {
        return parse_range(value, rule) ? NULL : "N, N-M or N-, from 1 on";
    }
    if (0 == strcmp(key, "chance")) {
        return parse_percent(value, &rule->permille) ? NULL : "a percentage from 0.1% to 100%, such as 5%";
    }
    if (0 == strcmp(key, "time")) {
        return parse_time(value, &rule->time) ? NULL : "a time such as 20ms";
    }
    if (0 == strcmp(key, "status")) {
        return parse_status(value, &rule->status) ? NULL : "retry, rnr, protection, length, local, access, request, remote, fatal or general";
    }
    if (0 == strcmp(key, "breaks")) {
        return parse_breaks(value, &rule->breaks) ? NULL : "sender, receiver or both";
    }
    if (0 == strcmp(key, "after") || 0 == strcmp(key, "same") || 0 == strcmp(key, "other")) {
        uint32_t *number = 'a' == *key ? &rule->after : 's' == *key ? &rule->same : &rule->other;
        return parse_u32(value, number) && 0 < *number ? NULL : "the number of an earlier rule, from 1 on";
    }
    if (0 == strcmp(key, "at")) {
        return parse_u32(value, &rule->at) ? NULL : "the offset of a byte";
    }
    return "rail, process, qp, op, payload, nth, after, same, other, chance, time, status, breaks or at";
}

static int parse_fate(const char *word, struct sr_rule *rule)
{
    for (uint32_t i = 1; i < SR_FATES; ++i) {
        if (0 == strcmp(word, fate_names[i])) {
            rule->fate = i;
            return 0;
        }
    }
    return -1;
}

static void set_defaults(struct sr_rule *rule, const char *line)
{
    memset(rule, 0, sizeof(*rule));
    rule->process = rule->qpn = SR_ANY;
    rule->first = 1;
    rule->count = SR_ANY;
    rule->permille = 1000;
    rule->status = IBV_WC_RETRY_EXC_ERR;
    snprintf(rule->text, sizeof(rule->text), "%.*s", (int) strcspn(line, "#\n"), line);
    for (size_t n = strlen(rule->text); 0 < n && ' ' == rule->text[n - 1]; --n) {
        rule->text[n - 1] = '\0';
    }
}

/* The words of a rule that have no value. */
static bool parse_flag(const char *word, struct sr_rule *rule)
{
    uint32_t *flag = 0 == strcmp(word, "local") ? &rule->local : 0 == strcmp(word, "quiet") ? &rule->quiet : NULL;

    if (NULL == flag || SR_FATE_DOWN != rule->fate) {
        return false;
    }
    *flag = 1;
    return true;
}

int sr_plan_parse_line(const char *line, struct sr_rule *rule, uint64_t *seed, char *why, size_t size)
{
    char copy[512], *save, *word;

    if (snprintf(copy, sizeof(copy), "%.*s", (int) strcspn(line, "#\n"), line) >= SR_RULE_TEXT) {
        snprintf(why, size, "the line is longer than %d characters", SR_RULE_TEXT - 1);
        return -1;
    }
    word = strtok_r(copy, " \t", &save);
    if (NULL == word) {
        return 0;
    }
    if (0 == strcmp(word, "seed")) {
        word = strtok_r(NULL, " \t", &save);
        if (NULL == word || !parse_u64(word, UINT64_MAX, seed)) {
            snprintf(why, size, "'seed' wants a number");
            return -1;
        }
        return 2;
    }
    set_defaults(rule, line);
    if (0 != parse_fate(word, rule)) {
        snprintf(why, size,
                 "'%.40s' is no fault; there are lose, unacked, delay, silent, corrupt, error, enomem, rnr, "
                 "late, fatal, down, migrated, swallow, slow, cq_error, srq_error, mark",
                 word);
        return -1;
    }
    while (NULL != (word = strtok_r(NULL, " \t", &save))) {
        char *equal = strchr(word, '=');
        const char *expected;
        if (parse_flag(word, rule)) {
            continue;
        }
        if (NULL == equal) {
            snprintf(why, size, "'%.40s' is not KEY=VALUE", word);
            return -1;
        }
        *equal = '\0';
        expected = parse_pair(word, equal + 1, rule);
        if (NULL != expected) {
            snprintf(why, size, "'%.40s=%.40s': expected %s", word, equal + 1, expected);
            return -1;
        }
    }
    if ((SR_FATE_DELAY == rule->fate || SR_FATE_SILENT == rule->fate || SR_FATE_LATE == rule->fate || SR_FATE_SLOW == rule->fate)
        && 0 == rule->time) {
        snprintf(why, size, "'%s' wants time=, such as time=20ms", fate_names[rule->fate]);
        return -1;
    }
    if (SR_FATE_SLOW == rule->fate && 0 == rule->opcodes >> SR_CALL_FIRST) {
        snprintf(why, size, "'slow' wants a call, such as op=qp_rtr");
        return -1;
    }
    if (SR_BREAKS_DEFAULT != rule->breaks && SR_FATE_LOSE != rule->fate && SR_FATE_UNACKED != rule->fate && SR_FATE_SILENT != rule->fate) {
        snprintf(why, size, "'breaks=' is for lose, unacked and silent");
        return -1;
    }
    return 1;
}

/* ---- deciding ----------------------------------------------------------------------------------- */

bool sr_rule_matches(const struct sr_rule *rule, const struct sr_message *m)
{
    if ((0 != rule->rails && 0 == (rule->rails >> m->rail & 1)) || (SR_ANY != rule->process && rule->process != m->process)
        || (SR_ANY != rule->qpn && rule->qpn != m->qpn)
        || (0 != rule->opcodes ? 0 == (rule->opcodes >> m->opcode & 1) : SR_CALL_FIRST <= m->opcode)) {
        return false;
    }
    if (0 == rule->pattern_length) {
        return true;
    }
    if (m->head_length < rule->pattern_length || m->head_length - rule->pattern_length < rule->pattern_offset) {
        return false;
    }
    for (uint32_t i = 0; i < rule->pattern_length; ++i) {
        if (0 != ((m->head[rule->pattern_offset + i] ^ rule->pattern_value[i]) & rule->pattern_mask[i])) {
            return false;
        }
    }
    return true;
}

/* splitmix64, a good hash of (seed, rule, match), so that the answer does not depend on the process that asks. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

bool sr_rule_is_due(const struct sr_plan *plan, const struct sr_rule *rule, uint32_t rail)
{
    return (0 == rule->after || 0 < atomic_load(&plan->rule[rule->after - 1].hits))
           && (0 == rule->same || 0 != (atomic_load(&plan->rule[rule->same - 1].hit_rails) >> rail & 1))
           && (0 == rule->other || 0 == (atomic_load(&plan->rule[rule->other - 1].hit_rails) >> rail & 1));
}

bool sr_rule_fires(struct sr_rule *rule, uint64_t seed, unsigned index, uint32_t rail)
{
    uint32_t match = atomic_fetch_add(&rule->seen, 1) + 1;

    if (match < rule->first || (SR_ANY != rule->count && match - rule->first >= rule->count)) {
        return false;
    }
    if (1000 > rule->permille && mix(mix(seed + index) + match) % 1000 >= rule->permille) {
        return false;
    }
    atomic_fetch_or(&rule->hit_rails, 1u << rail);
    atomic_fetch_add(&rule->hits, 1);
    return true;
}
