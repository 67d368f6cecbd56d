/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * softrail run: the options that give the rails habits of real adapters and fabrics, so that programs can be tried with
 * them. DESIGN.txt 16.
 */
#include "sr_command.h"

#include <stdlib.h>

enum {
    KEY_GRH = 500,
    KEY_NO_POST,
    KEY_NO_RC,
    KEY_FLUSH_HEAD,
    KEY_NO_EMPTY,
    KEY_FOREIGN,
    KEY_CROSSED,
    KEY_PREFIX,
    KEY_WIRES,
    KEY_IPV4,
    KEY_ONE_SM,
    KEY_MAX_INLINE,
    KEY_BLACKHOLE,
    KEY_PKEYS,
    KEY_CLASS
};

static const struct argp_option options[] = {
    {"grh-required", KEY_GRH, NULL, 0, "InfiniBand ports want a global route header, as virtual functions do", 0},
    {"no-post-in-error", KEY_NO_POST, NULL, 0, "a queue pair in the error state refuses ibv_post_send with EINVAL", 0},
    {"no-rc", KEY_NO_RC, NULL, 0, "there are no reliable connected queue pairs, as on EFA", 0},
    {"max-inline", KEY_MAX_INLINE, "BYTES", 0, "creating a queue pair that asks for more inline data fails with EINVAL (0 to 512; default 512)", 0},
    {"flush-head-only", KEY_FLUSH_HEAD, NULL, 0, "unsignalled work requests that are flushed after the first failed one get no completion", 0},
    {"no-empty-write", KEY_NO_EMPTY, NULL, 0, "an RDMA write of no bytes with key 0 fails with LOC_QP_OP_ERR", 0},
    {"mtu-blackhole", KEY_BLACKHOLE, "BYTES", 0, "packets with more than BYTES of payload are swallowed on their way", 0},
    {"pkeys", KEY_PKEYS, "LIST", 0, "table of P_Keys of each port, such as 0x7fff,0xffff (at most 8; default 0xffff)", 0},
    {"default-prefix", KEY_PREFIX, NULL, 0, "all rails have the GID prefix fe80::, although they are networks of their own", 0},
    {"crossed-guids", KEY_CROSSED, NULL, 0, "the GUIDs of every second process are in the opposite order of the names", 0},
    {"crossed-wires", KEY_WIRES, NULL, 0, "every second process has its devices on the rails in the opposite order of their names", 0},
    {"one-sm-lid", KEY_ONE_SM, NULL, 0, "the subnet managers of all rails have the same LID", 0},
    {"traffic-class", KEY_CLASS, "CLASS", 0, "the ports are configured for this traffic class, as sysfs shows it (0 to 255)", 0},
    {"ipv4-gids", KEY_IPV4, NULL, 0, "link layer eth: the GID of each process is its IPv4 address on the rail, 127.42.RAIL.x", 0},
    {"foreign-gid", KEY_FOREIGN, NULL, 0, "link layer eth: GID 0 belongs to another network namespace and cannot be used, GID 1 is the port's", 0},
    {NULL, 0, NULL, 0, NULL, 0}};

static bool parse_bytes(const char *text, unsigned long least, unsigned long most, uint32_t *value)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    *value = (uint32_t) number;
    return '0' <= *text && '9' >= *text && '\0' == *end && least <= number && number <= most;
}

static bool parse_pkeys(const char *text, struct sr_habits *habits)
{
    habits->pkey_count = 0;
    for (;;) {
        char *end;
        unsigned long key = strtoul(text, &end, 16);
        if (end == text || '-' == *text || 0 == (key & 0x7fff) || 0xffff < key || SR_MAX_PKEYS == habits->pkey_count) {
            return false;
        }
        habits->pkeys[habits->pkey_count++] = (uint16_t) key;
        if ('\0' == *end) {
            return true;
        }
        if (',' != *end) {
            return false;
        }
        text = end + 1;
    }
}

/* Options that only set a flag. */
static const struct {
    int key;
    uint32_t flag;
} flags[] = {
    {KEY_GRH, SR_FABRIC_GRH},
    {KEY_NO_POST, SR_FABRIC_NO_POST_IN_ERROR},
    {KEY_NO_RC, SR_FABRIC_NO_RC},
    {KEY_FLUSH_HEAD, SR_FABRIC_FLUSH_HEAD},
    {KEY_NO_EMPTY, SR_FABRIC_NO_EMPTY_WRITE},
    {KEY_FOREIGN, SR_FABRIC_FOREIGN_GID},
    {KEY_CROSSED, SR_FABRIC_CROSSED},
    {KEY_WIRES, SR_FABRIC_CROSSED_WIRES},
    {KEY_ONE_SM, SR_FABRIC_ONE_SM_LID},
    {KEY_IPV4, SR_FABRIC_IPV4_GIDS},
    {KEY_PREFIX, SR_FABRIC_DEFAULT_PREFIX},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct sr_fabric_options *run = state->input;

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); ++i) {
        if (key == flags[i].key) {
            run->flags |= flags[i].flag;
            return 0;
        }
    }
    switch (key) {
    case KEY_CLASS:
        if (!parse_bytes(arg, 0, 255, &run->habits.traffic_class)) {
            argp_error(state, "--traffic-class wants a number from 0 to 255, not '%s'", arg);
        }
        return 0;
    case KEY_MAX_INLINE:
        if (!parse_bytes(arg, 0, 512, &run->habits.max_inline)) {
            argp_error(state, "--max-inline wants a number from 0 to 512, not '%s'", arg);
        }
        return 0;
    case KEY_BLACKHOLE:
        if (!parse_bytes(arg, 1, 4096, &run->habits.mtu_blackhole)) {
            argp_error(state, "--mtu-blackhole wants a number from 1 to 4096, not '%s'", arg);
        }
        return 0;
    case KEY_PKEYS:
        if (!parse_pkeys(arg, &run->habits)) {
            argp_error(state, "--pkeys wants 1 to %d hexadecimal numbers such as 0x7fff,0xffff, not '%s'", SR_MAX_PKEYS, arg);
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp sr_habits_argp = {.options = options, .parser = parse};
