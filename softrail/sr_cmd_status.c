/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * softrail status and top show what a running fabric does. They read the counters without locks, so the figures need
 * not belong to exactly the same moment. DESIGN.txt 16.
 */
#include "sr_command.h"

#include <argp.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bfo_config.h"

struct sample {
    uint64_t time;
    struct sr_totals rail[SR_MAX_RAILS];
};

static const char *rail_state(const struct sr_fabric *fabric, unsigned rail)
{
    const struct sr_rail *r = &fabric->shm->rail[rail];

    return atomic_load(&r->gone) ? "gone" : atomic_load(&r->down) ? "down" : atomic_load(&r->silent) ? "silent" : "active";
}

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * UINT64_C(1000000000) + (uint64_t) ts.tv_nsec;
}

static void take_sample(const struct sr_fabric *fabric, struct sample *sample)
{
    sample->time = now_ns();
    for (unsigned rail = 0; rail < fabric->shm->rails; ++rail) {
        sr_fabric_totals(fabric, rail, &sample->rail[rail]);
    }
}

/* ---- JSON --------------------------------------------------------------------------------------- */

static json_t *rail_json(const struct sr_fabric *fabric, unsigned rail)
{
    const struct sr_rail *r = &fabric->shm->rail[rail];
    struct sr_totals t;
    char name[16];

    snprintf(name, sizeof(name), "sr%u", rail);
    sr_fabric_totals(fabric, rail, &t);
    return json_pack("{s:i, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "rail", (int) rail, "name", name, "state",
                     rail_state(fabric, rail), "tx_messages", (json_int_t) t.tx_messages, "tx_bytes", (json_int_t) t.tx_bytes, "rx_messages",
                     (json_int_t) t.rx_messages, "rx_bytes", (json_int_t) t.rx_bytes, "errors", (json_int_t) t.errors, "retries",
                     (json_int_t) t.retries, "rnr_waits", (json_int_t) t.rnr_waits, "faults", (json_int_t) t.faults, "registrations",
                     (json_int_t) t.registrations, "memory_regions", (json_int_t) t.regions, "queue_pairs", (json_int_t) t.qps, "rate_bits",
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
    return json_pack("{s:i, s:i, s:s*, s:o}", "process", (int) slot, "pid", (int) atomic_load(&proc->pid), "command", command, "rails_down", down);
}

static json_t *rules_json(const struct sr_plan *plan)
{
    json_t *rules = json_array();
    uint32_t count = atomic_load(&plan->count);

    for (uint32_t i = 0; i < count && i < SR_MAX_RULES; ++i) {
        json_array_append_new(rules, json_pack("{s:s*, s:I, s:I}", "rule", plan->rule[i].text, "matched",
                                               (json_int_t) atomic_load(&plan->rule[i].seen), "done", (json_int_t) atomic_load(&plan->rule[i].hits)));
    }
    return rules;
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
    return json_pack("{s:s, s:s, s:I, s:s, s:I, s:I, s:o, s:o, s:o}", "version", BFO_VERSION, "fabric", strrchr(fabric->path, '/') + 1, "owner_pid",
                     (json_int_t) shm->owner_pid, "link_layer", IBV_LINK_LAYER_ETHERNET == shm->link_layer ? "ethernet" : "infiniband", "time_ns",
                     (json_int_t) now_ns(), "seed", (json_int_t) atomic_load(&shm->plan.seed), "rails", rails, "processes", processes, "faults",
                     rules_json(&shm->plan));
}

/* ---- table -------------------------------------------------------------------------------------- */

/* The rate in MB/s over the time between two samples. */
static double rate(uint64_t before, uint64_t after, uint64_t ns)
{
    return 0 == ns ? 0 : (double) (after - before) * 1000.0 / (double) ns;
}

static void print_rails(const struct sr_fabric *fabric, const struct sample *before, const struct sample *after)
{
    uint64_t ns = after->time - before->time;

    printf("%-5s %-7s %6s %10s %10s %12s %16s %12s %16s %7s %7s %7s\n", "rail", "state", "QPs", "tx MB/s", "rx MB/s", "tx messages", "tx bytes",
           "rx messages", "rx bytes", "errors", "retries", "faults");
    for (unsigned rail = 0; rail < fabric->shm->rails; ++rail) {
        const struct sr_totals *t = &after->rail[rail], *b = &before->rail[rail];
        printf("sr%-3u %-7s %6llu %10.1f %10.1f %12llu %16llu %12llu %16llu %7llu %7llu %7llu\n", rail, rail_state(fabric, rail),
               (unsigned long long) t->qps, rate(b->tx_bytes, t->tx_bytes, ns), rate(b->rx_bytes, t->rx_bytes, ns),
               (unsigned long long) t->tx_messages, (unsigned long long) t->tx_bytes, (unsigned long long) t->rx_messages,
               (unsigned long long) t->rx_bytes, (unsigned long long) t->errors, (unsigned long long) t->retries, (unsigned long long) t->faults);
    }
}

static void print_table(const struct sr_fabric *fabric, const struct sample *before, const struct sample *after)
{
    const struct sr_fabric_shm *shm = fabric->shm;
    uint32_t rules = atomic_load(&shm->plan.count);

    printf("fabric %s, %s, %u rails\n", strrchr(fabric->path, '/') + 1, IBV_LINK_LAYER_ETHERNET == shm->link_layer ? "ethernet" : "infiniband",
           shm->rails);
    print_rails(fabric, before, after);
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
    for (uint32_t i = 0; i < rules && i < SR_MAX_RULES; ++i) {
        printf("fault: %.*s: matched %u, done %u\n", SR_RULE_TEXT, shm->plan.rule[i].text, atomic_load(&shm->plan.rule[i].seen),
               atomic_load(&shm->plan.rule[i].hits));
    }
}

/* ---- commands ----------------------------------------------------------------------------------- */

struct choice {
    const char *fabric;
    bool json;
    unsigned count;
};

enum { KEY_JSON = 300, KEY_FABRIC, KEY_COUNT };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct choice *choice = state->input;

    switch (key) {
    case KEY_JSON:
        choice->json = true;
        return 0;
    case KEY_FABRIC:
        choice->fabric = arg;
        return 0;
    case KEY_COUNT:
        choice->count = (unsigned) strtoul(arg, NULL, 10);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is one word too many", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void pause_ms(unsigned ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long) (ms % 1000) * 1000000};

    nanosleep(&pause, NULL);
}

int sr_cmd_status(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", KEY_JSON, NULL, 0, "for programs: counters, without rates; time_ns is the monotonic clock", 0},
        {"fabric", KEY_FABRIC, "NAME", 0, "name of the fabric, if several are running", 0},
        {NULL, 0, NULL, 0, NULL, 0}};
    static const struct argp argp = {.options = options, .parser = parse, .doc = "Show rails, processes, counters and faults of a running fabric."};
    struct choice choice = {.fabric = NULL};
    struct sample before, after;
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
        take_sample(&fabric, &before);
        pause_ms(100);
        take_sample(&fabric, &after);
        print_table(&fabric, &before, &after);
    }
    sr_fabric_close(&fabric);
    return 0;
}

int sr_cmd_top(int argc, char **argv)
{
    static const struct argp_option options[] = {{"count", KEY_COUNT, "N", 0, "end after N pictures (default: when the fabric ends)", 0},
                                                 {"fabric", KEY_FABRIC, "NAME", 0, "name of the fabric, if several are running", 0},
                                                 {NULL, 0, NULL, 0, NULL, 0}};
    static const struct argp argp = {.options = options, .parser = parse, .doc = "Show what 'softrail status' shows, again every second."};
    struct choice choice = {.count = 0};
    struct sample samples[2];
    struct sr_fabric fabric;
    int rc;

    argv[0] = (char *) "softrail top";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    rc = sr_find_fabric(&fabric, choice.fabric);
    if (0 != rc) {
        return rc;
    }
    take_sample(&fabric, &samples[0]);
    for (unsigned n = 1; sr_fabric_is_alive(&fabric); ++n) {
        pause_ms(1000);
        take_sample(&fabric, &samples[n % 2]);
        fputs(isatty(STDOUT_FILENO) ? "\033[H\033[J" : "", stdout);
        print_table(&fabric, &samples[(n + 1) % 2], &samples[n % 2]);
        fflush(stdout);
        if (n == choice.count) {
            break;
        }
    }
    sr_fabric_close(&fabric);
    return 0;
}
