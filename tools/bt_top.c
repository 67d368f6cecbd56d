/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo top: what each port of the jobs carries now. It reads the sums of the processes twice and shows their growth per second.
 * DESIGN.txt section 19.4.
 */
#include "bt.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_COUNT = 1000000, MOST_INTERVAL = 3600 };

typedef struct {
    bt_source_t source;
    const char *job;
    double interval; /* s */
    long count;      /* 0: until it is interrupted */
    bool json;
} choice_t;

/* The sums of a job's port at the last look. */
typedef struct {
    char host[64], name[64];
    uid_t uid;
    uint32_t job;
    uint64_t sent_bytes, received_bytes, messages;
} seen_t;

typedef struct {
    seen_t *port;
    size_t n;
    double at; /* s */
} sight_t;

static volatile sig_atomic_t is_over;

static void on_signal(int number)
{
    is_over = 1;
}

/* Finds the port in the look before; NULL if it is new. */
static const seen_t *find(const sight_t *before, const seen_t *port)
{
    for (size_t i = 0; i < before->n; ++i) {
        const seen_t *p = &before->port[i];

        if (p->uid == port->uid && p->job == port->job && 0 == strcmp(p->host, port->host) && 0 == strcmp(p->name, port->name)) {
            return p;
        }
    }
    return NULL;
}

/* The growth per second. A sum may shrink, because those of a process that has ended are gone. */
static double rate_of(uint64_t now, uint64_t before, double seconds)
{
    return now > before && 0 < seconds ? (double) (now - before) / seconds : 0;
}

typedef struct {
    double sent, received, messages; /* per second */
    bool is_known;
} flow_t;

static flow_t flow_of(const bt_job_t *job, const bt_port_t *sum, sight_t *now, const sight_t *before)
{
    seen_t *port = &now->port[now->n++];
    const double seconds = now->at - before->at;
    const seen_t *old;

    *port = (seen_t){.uid = job->first->uid,
                     .job = job->first->f.job,
                     .sent_bytes = sum->sent_bytes,
                     .received_bytes = sum->received_bytes,
                     .messages = sum->sent_messages + sum->received_messages};
    strcpy(port->host, job->first->f.host);
    strcpy(port->name, sum->port->name);
    old = find(before, port);
    if (NULL == old || !sum->counts) {
        return (flow_t){.is_known = false};
    }
    return (flow_t){.is_known = true,
                    .sent = rate_of(port->sent_bytes, old->sent_bytes, seconds),
                    .received = rate_of(port->received_bytes, old->received_bytes, seconds),
                    .messages = rate_of(port->messages, old->messages, seconds)};
}

/* The part of the port's rate that the busier direction uses. */
static double use_of(const flow_t *flow, const bt_port_t *sum)
{
    const double most = flow->sent > flow->received ? flow->sent : flow->received;

    return 0 == sum->port->rate ? 0 : most * 8 / (sum->port->rate * 1e6) * 100;
}

static void print_port(const bt_port_t *sum, const flow_t *flow)
{
    char rate[16], room[3][16] = {"-", "-", "-"}, use[16] = "-";

    if (flow->is_known) {
        bt_amount(room[0], flow->sent);
        bt_amount(room[1], flow->received);
        bt_amount(room[2], flow->messages);
        if (0 != sum->port->rate) {
            snprintf(use, sizeof(use), "%.0f%%", use_of(flow, sum));
        }
    }
    printf("  %-16.63s %6s  %s%-11s%s  %8s %8s %8s %5s  %5llu/%-5llu %5llu %7llu  %s\n", sum->port->name, bt_rate(rate, sum->port->rate),
           bt_colour_of(sum->state), bt_state_name(sum->state), bt_no_colour(), room[0], room[1], room[2], use,
           (unsigned long long) (sum->rails - sum->rails_lost), (unsigned long long) sum->rails, (unsigned long long) sum->losses,
           (unsigned long long) sum->resent, sum->port->cause);
}

static json_t *port_json(const bt_port_t *sum, const flow_t *flow)
{
    json_t *port = json_pack("{s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:s}", "port", sum->port->name, "rate_mbits", (json_int_t) sum->port->rate, "state",
                             bt_state_name(sum->state), "rails", (json_int_t) sum->rails, "rails_lost", (json_int_t) sum->rails_lost, "lost",
                             (json_int_t) sum->losses, "resent", (json_int_t) sum->resent, "cause", sum->port->cause);

    if (flow->is_known) {
        json_object_set_new(port, "sent_bytes_per_second", json_real(flow->sent));
        json_object_set_new(port, "received_bytes_per_second", json_real(flow->received));
        json_object_set_new(port, "messages_per_second", json_real(flow->messages));
    }
    return port;
}

static void show_job(const bt_job_t *job, json_t *jobs, sight_t *now, const sight_t *before)
{
    json_t *ports = json_array();
    char name[16];

    bt_job_name(name, job->first->f.job);
    if (NULL == jobs) {
        printf("job %s   %s   %zu of %u ranks on %s   failover: %s; %llu peers given up, %llu waited for, %llu on the last rail\n", name,
               job->first->f.command, job->n, job->ranks, job->first->f.host, bt_verdict_name(job->verdict), (unsigned long long) job->peers_given_up,
               (unsigned long long) job->peers_waited_for, (unsigned long long) job->peers_on_last_rail);
        printf("  %-16s %6s  %-11s  %8s %8s %8s %5s  %11s %5s %7s  %s\n", "PORT", "RATE", "STATE", "SENT/s", "RECV/s", "MSGS/s", "USE", "RAILS",
               "LOST", "RESENT", "LAST CAUSE");
    }
    for (size_t i = 0; i < job->n_ports; ++i) {
        const flow_t flow = flow_of(job, &job->port[i], now, before);

        if (NULL == jobs) {
            print_port(&job->port[i], &flow);
        } else {
            json_array_append_new(ports, port_json(&job->port[i], &flow));
        }
    }
    if (NULL != jobs) {
        json_array_append_new(jobs, json_pack("{s:s, s:I, s:s, s:s, s:s, s:O}", "job", name, "uid", (json_int_t) job->first->uid, "command",
                                              job->first->f.command, "host", job->first->f.host, "failover", bt_verdict_name(job->verdict), "ports",
                                              ports));
    }
    json_decref(ports);
}

/* Shows the ports. False: no memory. */
static bool show(const choice_t *choice, const bt_all_t *all, sight_t *now, const sight_t *before)
{
    json_t *jobs = choice->json ? json_array() : NULL;
    char time_now[BT_TIME];

    bt_time(time_now, (uint64_t) time(NULL) * UINT64_C(1000000000));
    now->port = calloc(all->n + 1, BFO_FIGURES_PORTS * sizeof(*now->port)); /* no more jobs than processes */
    if (NULL == now->port) {
        return false;
    }
    if (!choice->json) {
        printf("%sbfo top   %.19s   every %g s\n", isatty(STDOUT_FILENO) ? "\033[H\033[2J" : "", time_now, choice->interval);
    }
    for (size_t at = 0; at < all->n; at += bt_job_size(all, at)) {
        bt_job_t job;

        bt_job_sum(&job, all, at, bt_job_size(all, at));
        show_job(&job, jobs, now, before);
    }
    if (choice->json) {
        bt_print_json(json_pack("{s:s, s:o}", "time", time_now, "jobs", jobs), true);
    } else if (0 == all->n) {
        puts("no job under the PML bfo runs here");
    }
    return true;
}

static void wait_for(double seconds)
{
    const struct timespec pause = {.tv_sec = (time_t) seconds, .tv_nsec = (long) ((seconds - (double) (time_t) seconds) * 1e9)};

    nanosleep(&pause, NULL);
}

static int run(const choice_t *choice)
{
    sight_t before = {.n = 0};
    int status = BT_WELL;

    for (long i = 0; 0 == is_over && BT_TROUBLE != status && (0 == choice->count || i < choice->count); ++i) {
        sight_t now = {.at = bt_now()};
        bt_all_t all;

        if (0 != i) {
            wait_for(choice->interval);
            now.at = bt_now();
        }
        if (0 != is_over) {
            break;
        }
        if (!bt_read_from(&all, &choice->source, choice->job) || !show(choice, &all, &now, &before)) {
            fputs("bfo: no memory\n", stderr);
            status = BT_TROUBLE;
        } else {
            status = all.has_failed ? BT_TROUBLE : 0 == all.n ? BT_NO_JOB : BT_WELL;
        }
        bt_free(&all);
        free(before.port);
        before = now;
        if (0 != fflush(stdout) || ferror(stdout)) {
            status = BT_TROUBLE;
        }
    }
    free(before.port);
    return status;
}

enum { KEY_JSON = 300, KEY_INTERVAL, KEY_COUNT };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    choice_t *choice = state->input;
    char *rest;

    switch (key) {
    case KEY_JSON:
        choice->json = true;
        return 0;
    case KEY_INTERVAL:
        choice->interval = strtod(arg, &rest);
        if (rest == arg || '\0' != *rest || !(0.1 <= choice->interval && choice->interval <= MOST_INTERVAL)) {
            argp_error(state, "--interval is a number of seconds, 0.1 to %d, not '%s'", MOST_INTERVAL, arg);
        }
        return 0;
    case KEY_COUNT:
        choice->count = strtol(arg, &rest, 10);
        if (rest == arg || '\0' != *rest || choice->count < 1 || choice->count > MOST_COUNT) {
            argp_error(state, "--count is a number from 1 to %d, not '%s'", MOST_COUNT, arg);
        }
        return 0;
    case ARGP_KEY_ARG:
        bt_take_word(state, &choice->job, arg);
        return 0;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &choice->source;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int bt_cmd_top(int argc, char **argv)
{
    static const struct argp_option options[] = {{"interval", KEY_INTERVAL, "SECONDS", 0, "how often (1)", 0},
                                                 {"count", KEY_COUNT, "N", 0, "end after N pictures (default: a signal ends it)", 0},
                                                 {"json", KEY_JSON, NULL, 0, "for programs: one object a line", 0},
                                                 {0}};
    static const struct argp_child children[] = {{&bt_source_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[JOB]",
        .children = children,
        .doc = "Show the traffic of each port of the jobs, every second: bytes and messages per second, and what is lost.\v"
               "Exit status: 0 done, 2 wrong usage, 3 trouble, 4 no job at the end."};
    const struct sigaction action = {.sa_handler = on_signal};
    choice_t choice = {.interval = 1};

    argv[0] = (char *) "bfo top";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    (void) sigaction(SIGINT, &action, NULL);
    (void) sigaction(SIGTERM, &action, NULL);
    return run(&choice);
}
