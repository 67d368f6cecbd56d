/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * softrail status, down, up: look at a running fabric and act on it. Reads counters without locks; what is shown
 * is a moment's view. DESIGN.txt 16.
 */
#include "sr_command.h"

#include <argp.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bfo_config.h"

struct choice {
    const char *fabric;
    const char *rail;
    int process;
    bool json;
};

enum { KEY_JSON = 300, KEY_FABRIC, KEY_PROCESS };

static const char *rail_state(const struct sr_fabric *fabric, unsigned rail)
{
    const struct sr_rail *r = &fabric->shm->rail[rail];

    return atomic_load(&r->gone) ? "gone" : atomic_load(&r->down) ? "down" : "active";
}

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * UINT64_C(1000000000) + (uint64_t) ts.tv_nsec;
}

/* ---- JSON --------------------------------------------------------------------------------------- */

static json_t *rail_json(const struct sr_fabric *fabric, unsigned rail)
{
    const struct sr_rail *r = &fabric->shm->rail[rail];
    struct sr_totals t;
    char name[16];

    snprintf(name, sizeof(name), "sr%u", rail);
    sr_fabric_totals(fabric, rail, &t);
    return json_pack("{s:i, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "rail", (int) rail, "name",
                     name, "state", rail_state(fabric, rail), "tx_messages", (json_int_t) t.tx_messages, "tx_bytes",
                     (json_int_t) t.tx_bytes, "rx_messages", (json_int_t) t.rx_messages, "rx_bytes",
                     (json_int_t) t.rx_bytes, "errors", (json_int_t) t.errors, "retries", (json_int_t) t.retries,
                     "faults", (json_int_t) t.faults, "queue_pairs", (json_int_t) t.qps, "rate_bits",
                     (json_int_t) atomic_load(&r->rate), "latency_ns", (json_int_t) atomic_load(&r->latency));
}

static json_t *process_json(const struct sr_proc *proc, unsigned slot)
{
    char command[sizeof(proc->command)];
    json_t *down = json_array();

    memcpy(command, proc->command, sizeof(command));
    command[sizeof(command) - 1] = '\0';
    for (int rail = 0; rail < SR_MAX_RAILS; ++rail) {
        if (0 != (atomic_load(&proc->down_rails) >> rail & 1)) {
            json_array_append_new(down, json_integer(rail));
        }
    }
    return json_pack("{s:i, s:i, s:s*, s:o}", "slot", (int) slot, "pid", (int) atomic_load(&proc->pid), "command",
                     command, "rails_down", down);
}

json_t *sr_status_json(const struct sr_fabric *fabric)
{
    const struct sr_fabric_shm *shm = fabric->shm;
    json_t *rails = json_array(), *processes = json_array();

    for (unsigned rail = 0; rail < shm->rails; ++rail) {
        json_array_append_new(rails, rail_json(fabric, rail));
    }
    for (unsigned slot = 0; slot < SR_MAX_PROCS; ++slot) {
        if (0 != atomic_load(&shm->proc[slot].incarnation)) {
            json_array_append_new(processes, process_json(&shm->proc[slot], slot));
        }
    }
    return json_pack("{s:s, s:s, s:I, s:s, s:I, s:o, s:o}", "version", BFO_VERSION, "fabric",
                     strrchr(fabric->path, '/') + 1, "owner_pid", (json_int_t) shm->owner_pid, "link_layer",
                     IBV_LINK_LAYER_ETHERNET == shm->link_layer ? "ethernet" : "infiniband", "time_ns",
                     (json_int_t) now_ns(), "rails", rails, "processes", processes);
}

/* ---- table -------------------------------------------------------------------------------------- */

static void print_table(const struct sr_fabric *fabric)
{
    const struct sr_fabric_shm *shm = fabric->shm;

    printf("fabric %s, %s, %u rails\n", strrchr(fabric->path, '/') + 1,
           IBV_LINK_LAYER_ETHERNET == shm->link_layer ? "ethernet" : "infiniband", shm->rails);
    printf("%-5s %-7s %6s %14s %16s %14s %16s %8s %8s %8s\n", "rail", "state", "QPs", "tx messages", "tx bytes",
           "rx messages", "rx bytes", "errors", "retries", "faults");
    for (unsigned rail = 0; rail < shm->rails; ++rail) {
        struct sr_totals t;
        sr_fabric_totals(fabric, rail, &t);
        printf("sr%-3u %-7s %6llu %14llu %16llu %14llu %16llu %8llu %8llu %8llu\n", rail, rail_state(fabric, rail),
               (unsigned long long) t.qps, (unsigned long long) t.tx_messages, (unsigned long long) t.tx_bytes,
               (unsigned long long) t.rx_messages, (unsigned long long) t.rx_bytes, (unsigned long long) t.errors,
               (unsigned long long) t.retries, (unsigned long long) t.faults);
    }
    for (unsigned slot = 0; slot < SR_MAX_PROCS; ++slot) {
        const struct sr_proc *proc = &shm->proc[slot];
        if (0 != atomic_load(&proc->incarnation)) {
            printf("process %u: pid %u, %.47s", slot, atomic_load(&proc->pid), proc->command);
            for (unsigned rail = 0; rail < shm->rails; ++rail) {
                if (0 != (atomic_load(&proc->down_rails) >> rail & 1)) {
                    printf(", its sr%u is down", rail);
                }
            }
            putchar('\n');
        }
    }
}

/* ---- commands ----------------------------------------------------------------------------------- */

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct choice *choice = state->input;
    char *end;

    switch (key) {
    case KEY_JSON: choice->json = true; return 0;
    case KEY_FABRIC: choice->fabric = arg; return 0;
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
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

#define FABRIC_OPTION { "fabric", KEY_FABRIC, "NAME", 0, "name of the fabric, if several are running", 0 }

int sr_cmd_status(int argc, char **argv)
{
    static const struct argp_option options[] = { { "json", KEY_JSON, NULL, 0, "for programs", 0 }, FABRIC_OPTION,
                                                  { NULL, 0, NULL, 0, NULL, 0 } };
    static const struct argp argp = { .options = options, .parser = parse,
                                      .doc = "Show rails, processes and counters of a running fabric." };
    struct choice choice = { .process = -1 };
    struct sr_fabric fabric;
    int rc;

    argv[0] = (char *) "softrail status";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    rc = sr_find_fabric(&fabric, choice.fabric);
    if (0 != rc) {
        return rc;
    }
    if (choice.json) {
        json_t *json = sr_status_json(&fabric);
        json_dumpf(json, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
        putchar('\n');
        json_decref(json);
    } else {
        print_table(&fabric);
    }
    sr_fabric_close(&fabric);
    return 0;
}

int sr_cmd_rail(int argc, char **argv)
{
    static const struct argp_option options[] = {
        FABRIC_OPTION,
        { "process", KEY_PROCESS, "N", 0, "only the port of this process (see 'softrail status')", 0 },
        { NULL, 0, NULL, 0, NULL, 0 } };
    static const struct argp argp = {
        .options = options, .parser = parse, .args_doc = "RAIL",
        .doc = "Pull (down) or plug in (up) the cable of a rail, such as sr1. Processes get PORT_ERR or PORT_ACTIVE; "
               "messages on their way are retried, then end in RETRY_EXC_ERR." };
    struct choice choice = { .process = -1 };
    bool down = 0 == strcmp(argv[0], "down");
    struct sr_fabric fabric;
    int rc, rail;

    argv[0] = (char *) (down ? "softrail down" : "softrail up");
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    if (NULL == choice.rail) {
        fprintf(stderr, "%s: which rail?\n", argv[0]);
        return SR_EXIT_USAGE;
    }
    rc = sr_find_fabric(&fabric, choice.fabric);
    if (0 != rc) {
        return rc;
    }
    rail = sr_parse_rail(&fabric, choice.rail);
    if (0 <= rail && 0 <= choice.process && 0 == atomic_load(&fabric.shm->proc[choice.process].incarnation)) {
        fprintf(stderr, "%s: there is no process %d; see 'softrail status'\n", argv[0], choice.process);
        rail = -1;
    }
    if (0 <= rail) {
        sr_fabric_set_rail(&fabric, (unsigned) rail, choice.process, down);
    }
    sr_fabric_close(&fabric);
    return 0 > rail ? SR_EXIT_USAGE : 0;
}
