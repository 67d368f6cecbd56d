/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * softrail down, silent, up, gone, gid, lid, set: act on a rail of a running fabric. DESIGN.txt 16.
 */
#include "sr_command.h"

#include <argp.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    const char *fabric;
    const char *rail;
    const char *rate, *latency;
    long mtu; /* -1: not given */
    int process;
};

enum { KEY_FABRIC = 300, KEY_PROCESS, KEY_RATE, KEY_LATENCY, KEY_BLACKHOLE };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct choice *choice = state->input;
    char *end;

    switch (key) {
    case KEY_FABRIC:
        choice->fabric = arg;
        return 0;
    case KEY_RATE:
        choice->rate = arg;
        return 0;
    case KEY_LATENCY:
        choice->latency = arg;
        return 0;
    case KEY_BLACKHOLE:
        choice->mtu = strtol(arg, &end, 10);
        if (end == arg || '\0' != *end || 0 > choice->mtu || 4096 < choice->mtu) {
            argp_error(state, "--mtu-blackhole wants a number from 0 to 4096, not '%s'", arg);
        }
        return 0;
    case KEY_PROCESS:
        choice->process = (int) strtol(arg, &end, 10);
        if (end == arg || '\0' != *end || 0 > choice->process || SR_MAX_PROCS <= choice->process) {
            argp_error(state, "--process wants the number that 'softrail status' shows, not '%s'", arg);
        }
        return 0;
    case ARGP_KEY_ARG:
        if (NULL != choice->rail) {
            argp_error(state, "one rail at a time");
        }
        choice->rail = arg;
        return 0;
    case ARGP_KEY_END:
        if (NULL == choice->rail) {
            argp_error(state, "which rail? See 'softrail status'");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* clang-format off */
#define FABRIC_OPTION { "fabric", KEY_FABRIC, "NAME", 0, "name of the fabric, if several are running", 0 }
#define PROCESS_OPTION { "process", KEY_PROCESS, "N", 0, "only the port of this process (see 'softrail status')", 0 }
#define END { NULL, 0, NULL, 0, NULL, 0 }
/* clang-format on */

static const struct argp_option cable_options[] = {FABRIC_OPTION, PROCESS_OPTION, END};
static const struct argp_option fabric_options[] = {FABRIC_OPTION, END};
static const struct argp_option set_options[] = {
    FABRIC_OPTION,
    {"rate", KEY_RATE, "RATE", 0, "limit to RATE bit/s, such as 10G; 0 = no limit", 0},
    {"latency", KEY_LATENCY, "TIME", 0, "add TIME to every message, such as 50us", 0},
    {"mtu-blackhole", KEY_BLACKHOLE, "BYTES", 0, "packets with more than BYTES of payload are swallowed on their way; 0 = none is", 0},
    END};

/* ---- what is done ------------------------------------------------------------------------------- */

static int cable(struct sr_fabric *fabric, unsigned rail, const struct choice *choice, bool down)
{
    if (0 <= choice->process && 0 == atomic_load(&fabric->shm->proc[choice->process].incarnation)) {
        fprintf(stderr, "softrail: there is no process %d; see 'softrail status'\n", choice->process);
        return SR_EXIT_USAGE;
    }
    sr_fabric_set_rail(fabric, rail, choice->process, down, false);
    return 0;
}

static int do_down(struct sr_fabric *fabric, unsigned rail, const struct choice *choice)
{
    return cable(fabric, rail, choice, true);
}

/* Like a switch that drops everything: no process gets an event. */
static int do_silent(struct sr_fabric *fabric, unsigned rail, const struct choice *choice)
{
    (void) choice;
    atomic_store(&fabric->shm->rail[rail].silent, 1);
    return 0;
}

static int do_up(struct sr_fabric *fabric, unsigned rail, const struct choice *choice)
{
    atomic_store(&fabric->shm->rail[rail].silent, 0);
    atomic_store(&fabric->shm->rail[rail].up_at, 0);
    return cable(fabric, rail, choice, false);
}

/* Sends PORT_ERR although the port goes on working, because upper layers must not trust the event alone. */
static int do_error(struct sr_fabric *fabric, unsigned rail, const struct choice *choice)
{
    sr_fabric_rail_event(fabric, rail, choice->process, IBV_EVENT_PORT_ERR);
    return 0;
}

static int do_gone(struct sr_fabric *fabric, unsigned rail, const struct choice *choice)
{
    (void) choice;
    if (0 == atomic_exchange(&fabric->shm->rail[rail].gone, 1)) {
        sr_fabric_rail_event(fabric, rail, -1, IBV_EVENT_DEVICE_FATAL);
    }
    return 0;
}

static int do_gid(struct sr_fabric *fabric, unsigned rail, const struct choice *choice)
{
    (void) choice;
    atomic_fetch_add(&fabric->shm->rail[rail].gid_serial, 1);
    sr_fabric_rail_event(fabric, rail, -1, IBV_EVENT_GID_CHANGE);
    return 0;
}

static int do_lid(struct sr_fabric *fabric, unsigned rail, const struct choice *choice)
{
    (void) choice;
    atomic_fetch_add(&fabric->shm->rail[rail].lid_serial, 1);
    sr_fabric_rail_event(fabric, rail, -1, IBV_EVENT_LID_CHANGE);
    return 0;
}

static int do_set(struct sr_fabric *fabric, unsigned rail, const struct choice *choice)
{
    uint64_t value;

    if (NULL == choice->rate && NULL == choice->latency && 0 > choice->mtu) {
        fputs("softrail set: nothing to set; give --rate, --latency or --mtu-blackhole\n", stderr);
        return SR_EXIT_USAGE;
    }
    if (NULL != choice->rate) {
        if (!sr_parse_rate(choice->rate, &value)) {
            fprintf(stderr, "softrail set: '%s' is no rate such as 10G\n", choice->rate);
            return SR_EXIT_USAGE;
        }
        atomic_store(&fabric->shm->rail[rail].rate, value);
    }
    if (NULL != choice->latency) {
        if (!sr_parse_time(choice->latency, &value)) {
            fprintf(stderr, "softrail set: '%s' is no time such as 50us\n", choice->latency);
            return SR_EXIT_USAGE;
        }
        atomic_store(&fabric->shm->rail[rail].latency, value);
    }
    if (0 <= choice->mtu) {
        atomic_store(&fabric->shm->rail[rail].mtu_blackhole, (uint32_t) choice->mtu);
    }
    return 0;
}

static const struct action {
    const char *name;
    int (*act)(struct sr_fabric *fabric, unsigned rail, const struct choice *choice);
    const struct argp_option *options;
    const char *doc;
} actions[] = {
    {"down", do_down, cable_options,
     "Pull the cable of a rail, such as sr1. Processes get PORT_ERR; messages on "
     "their way are retried, then end in RETRY_EXC_ERR."},
    {"up", do_up, cable_options,
     "Plug the cable of a rail in again, or let its path carry again. Processes whose "
     "port was down get PORT_ACTIVE."},
    {"silent", do_silent, fabric_options,
     "Let the path between the ports of a rail swallow everything. No process gets an event; "
     "messages are retried, then end in RETRY_EXC_ERR."},
    {"port-error", do_error, cable_options, "Send PORT_ERR to the processes while the rail goes on working."},
    {"gone", do_gone, fabric_options,
     "Take the device of a rail away for good. Processes get DEVICE_FATAL; verbs "
     "fail with EIO from now on."},
    {"gid", do_gid, fabric_options, "Change the GIDs of a rail. Processes get GID_CHANGE."},
    {"lid", do_lid, fabric_options, "Change the LIDs of an InfiniBand rail. Processes get LID_CHANGE."},
    {"set", do_set, set_options, "Change rate, latency or the longest packet of a rail."},
};

int sr_cmd_rail(int argc, char **argv)
{
    struct choice choice = {.mtu = -1, .process = -1};
    const struct action *action = actions;
    struct argp argp = {.parser = parse, .args_doc = "RAIL"};
    struct sr_fabric fabric;
    char name[32];
    int rc, rail;

    while (0 != strcmp(action->name, argv[0])) {
        ++action;
    }
    argp.options = action->options;
    argp.doc = action->doc;
    snprintf(name, sizeof(name), "softrail %s", action->name);
    argv[0] = name;
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    rc = sr_find_fabric(&fabric, choice.fabric);
    if (0 != rc) {
        return rc;
    }
    rail = sr_parse_rail(&fabric, choice.rail);
    rc = 0 > rail ? SR_EXIT_USAGE : action->act(&fabric, (unsigned) rail, &choice);
    sr_fabric_close(&fabric);
    return rc;
}
