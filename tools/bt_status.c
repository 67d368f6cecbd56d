/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo status and bfo clean: the jobs of this node, for people, programs and Prometheus. DESIGN.txt section 19.
 */
#include "bt.h"

#include <pwd.h>
#include <string.h>
#include <time.h>

#include "bfo_config.h"

typedef struct {
    const char *root, *job;
    bool json, prometheus;
} choice_t;

/* ---- for programs ------------------------------------------------------------------------------------------ */

static json_t *times_json(const bfo_figures_port_t *port)
{
    char room[BT_TIME];

    return json_string(bt_time(room, port->since_wall));
}

static json_t *sum_json(const bt_port_t *sum)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "port", sum->port->name, "address", sum->port->here,
                     "rate_mbits", (json_int_t) sum->port->rate, "state", bt_state_name(sum->state), "since", times_json(sum->port), "rails",
                     (json_int_t) sum->rails, "rails_lost", (json_int_t) sum->rails_lost, "rails_kept", (json_int_t) sum->rails_kept,
                     "rails_draining", (json_int_t) sum->rails_draining, "rails_drained", (json_int_t) sum->rails_drained, "lost", (json_int_t) sum->losses, "returned",
                     (json_int_t) sum->returns, "port_downs", (json_int_t) sum->downs, "cause", sum->port->cause);
}

static json_t *port_json(const bfo_figures_port_t *port)
{
    return json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:s}", "port", port->name, "state", bt_state_name(port->state), "since",
                     times_json(port), "rails", (json_int_t) port->rails, "rails_lost", (json_int_t) port->rails_lost, "lost",
                     (json_int_t) port->losses, "returned", (json_int_t) port->returns, "port_downs", (json_int_t) port->downs, "cause",
                     port->cause);
}

static json_t *process_json(const bt_process_t *process)
{
    const bfo_figures_t *f = &process->f;
    json_t *ports = json_array();
    char began[BT_TIME], changed[BT_TIME];

    for (uint32_t i = 0; i < f->n_ports; ++i) {
        json_array_append_new(ports, port_json(&f->port[i]));
    }
    return json_pack("{s:I, s:I, s:b, s:b, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "rank", (json_int_t) f->rank, "pid",
                     (json_int_t) f->pid, "alive", process->alive, "being_written", process->torn, "began", bt_time(began, f->began_wall),
                     "changed", bt_time(changed, f->changed_wall), "failover", bt_verdict_name(f->verdict), "reason", f->reason, "peers",
                     (json_int_t) f->peers, "peers_given_up", (json_int_t) f->peers_given_up, "peers_on_last_rail",
                     (json_int_t) f->peers_on_last_rail, "resent", (json_int_t) f->resent, "events", (json_int_t) f->n_events, "ports", ports);
}

static json_t *job_json(const bt_all_t *all, size_t at, size_t n)
{
    json_t *ports = json_array(), *processes = json_array();
    char name[16];
    bt_job_t job;

    bt_job_sum(&job, all, at, n);
    for (size_t i = 0; i < job.n_ports; ++i) {
        json_array_append_new(ports, sum_json(&job.port[i]));
    }
    for (size_t i = at; i < at + n; ++i) {
        json_array_append_new(processes, process_json(all->process[i]));
    }
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:s, s:s, s:I, s:I, s:I, s:o, s:o}", "job",
                     bt_job_name(name, job.first->f.job), "batch", job.first->f.batch, "uid", (json_int_t) job.first->uid, "command",
                     job.first->f.command, "host", job.first->f.host, "version", job.first->f.version, "well", bt_job_is_well(&job), "ranks",
                     (json_int_t) job.ranks, "ranks_here", (json_int_t) job.n, "ranks_dead", (json_int_t) job.n_dead, "failover",
                     bt_verdict_name(job.verdict), "reason", job.reason, "peers_given_up", (json_int_t) job.peers_given_up,
                     "peers_on_last_rail", (json_int_t) job.peers_on_last_rail, "resent", (json_int_t) job.resent, "ports", ports,
                     "processes", processes);
}

static void print_json(const bt_all_t *all)
{
    json_t *jobs = json_array(), *refused = json_array();
    char now[BT_TIME];

    for (size_t at = 0; at < all->n; at += bt_job_size(all, at)) {
        json_array_append_new(jobs, job_json(all, at, bt_job_size(all, at)));
    }
    for (size_t i = 0; i < all->n_refused && i < BT_MOST_REFUSED; ++i) {
        json_array_append_new(refused, json_string(all->refused[i]));
    }
    bt_print_json(json_pack("{s:s, s:s, s:o, s:o}", "version", BFO_VERSION, "time", bt_time(now, (uint64_t) time(NULL) * UINT64_C(1000000000)),
                            "jobs", jobs, "refused", refused), false);
}

/* ---- for people --------------------------------------------------------------------------------------------- */

static void print_head(const bt_job_t *job)
{
    const struct passwd *user = getpwuid(job->first->uid);
    char name[16], began[BT_TIME];

    printf("job %s", bt_job_name(name, job->first->f.job));
    if ('\0' != job->first->f.batch[0]) {
        printf(" (batch %s)", job->first->f.batch);
    }
    printf("   %s", job->first->f.command);
    if (NULL != user) {
        printf(" of %s", user->pw_name);
    }
    printf("   %zu of %u ranks on %s   since %.19s\n", job->n, job->ranks, job->first->f.host, bt_time(began, job->first->f.began_wall));
    printf("  failover: %s%s%s%s%s\n", BFO_FIGURES_NOT_IN_FORCE == job->verdict ? bt_colour_of(BFO_FIGURES_LOST) : "",
           bt_verdict_name(job->verdict), BFO_FIGURES_NOT_IN_FORCE == job->verdict ? bt_no_colour() : "", '\0' == job->reason[0] ? "" : ", because ",
           job->reason);
}

static void print_port(const bt_port_t *sum)
{
    char rate[16], since[BT_TIME];

    bt_time(since, sum->port->since_wall);
    printf("  %-16.63s %6s  %s%-11s%s  %-19.19s  %7llu/%-7llu %6llu  %s\n", sum->port->name, bt_rate(rate, sum->port->rate),
           bt_colour_of(sum->state), bt_state_name(sum->state), bt_no_colour(), since, (unsigned long long) (sum->rails - sum->rails_lost),
           (unsigned long long) sum->rails, (unsigned long long) sum->losses, sum->port->cause);
}

static void print_job(const bt_all_t *all, size_t at, size_t n)
{
    bt_job_t job;

    bt_job_sum(&job, all, at, n);
    print_head(&job);
    if (0 != job.n_ports) {
        printf("  %-16s %6s  %-11s  %-19s  %15s %6s  %s\n", "PORT", "RATE", "STATE", "SINCE", "RAILS UP/ALL", "LOST", "LAST CAUSE");
    }
    for (size_t i = 0; i < job.n_ports; ++i) {
        print_port(&job.port[i]);
    }
    for (size_t i = at; i < at + n; ++i) {
        if (!all->process[i]->alive) {
            printf("  rank %u (pid %u) is dead: it ended without MPI_Finalize\n", all->process[i]->f.rank, all->process[i]->f.pid);
        }
    }
    printf("  %zu port%s not up, %llu peer%s given up, %llu on the last rail; %llu messages sent again\n", job.n_ports_lost,
           1 == job.n_ports_lost ? "" : "s", (unsigned long long) job.peers_given_up, 1 == job.peers_given_up ? "" : "s",
           (unsigned long long) job.peers_on_last_rail, (unsigned long long) job.resent);
}

static void print_refused(const bt_all_t *all)
{
    for (size_t i = 0; i < all->n_refused && i < BT_MOST_REFUSED; ++i) {
        fprintf(stderr, "bfo: not read: %s\n", all->refused[i]);
    }
    if (all->n_refused > BT_MOST_REFUSED) {
        fprintf(stderr, "bfo: and %zu more\n", all->n_refused - BT_MOST_REFUSED);
    }
}

static int verdict_of(const bt_all_t *all)
{
    int verdict = 0 == all->n ? BT_NO_JOB : BT_WELL;

    for (size_t at = 0; at < all->n; at += bt_job_size(all, at)) {
        bt_job_t job;

        bt_job_sum(&job, all, at, bt_job_size(all, at));
        verdict = bt_job_is_well(&job) ? verdict : BT_NOT_WELL;
    }
    return verdict;
}

static void print_table(const bt_all_t *all, const char *job)
{
    for (size_t at = 0; at < all->n; at += bt_job_size(all, at)) {
        if (0 != at) {
            putchar('\n');
        }
        print_job(all, at, bt_job_size(all, at));
    }
    if (0 == all->n && NULL == job) {
        fputs("bfo: no job under the PML bfo runs on this node\n", stderr);
    } else if (0 == all->n) {
        fprintf(stderr, "bfo: no job '%s' runs on this node under the PML bfo\n", job);
    }
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

enum { KEY_JSON = 300, KEY_PROMETHEUS, KEY_DIR };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    choice_t *choice = state->input;

    switch (key) {
    case KEY_JSON: choice->json = true; return 0;
    case KEY_PROMETHEUS: choice->prometheus = true; return 0;
    case KEY_DIR: choice->root = arg; return 0;
    case ARGP_KEY_ARG:
        bt_take_word(state, &choice->job, arg);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int bt_cmd_status(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", KEY_JSON, NULL, 0, "for programs", 0},
        {"prometheus", KEY_PROMETHEUS, NULL, 0, "for the textfile collector of node_exporter", 0},
        {"dir", KEY_DIR, "DIR", 0, "the jobs' pml_bfo_status_dir (default: BFO_STATUS_DIR, or " BFO_FIGURES_ROOT ")", 0},
        {0}};
    static const struct argp argp = {.options = options, .parser = parse, .args_doc = "[JOB]",
        .doc = "Show the jobs of this node, their ports, and what is lost. JOB is a number of Open MPI (54321 or 54321.1) or of the batch "
               "system.\vExit status: 0 all is well, 1 something is lost or not protected, 2 wrong usage, 3 trouble, 4 no job."};
    choice_t choice = {.root = NULL};
    bt_all_t all;
    int verdict;

    argv[0] = (char *) "bfo status";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    if (!bt_read(&all, choice.root, choice.job)) {
        fputs("bfo: no memory\n", stderr);
        return BT_TROUBLE;
    }
    verdict = verdict_of(&all);
    if (choice.json) {
        print_json(&all);
    } else if (choice.prometheus) {
        bt_print_prometheus(&all);
    } else {
        print_table(&all, choice.job);
    }
    print_refused(&all);
    bt_free(&all);
    return 0 == fflush(stdout) && !ferror(stdout) ? verdict : BT_TROUBLE;
}

int bt_cmd_clean(int argc, char **argv)
{
    static const struct argp_option options[] = {{"dir", KEY_DIR, "DIR", 0, "the jobs' pml_bfo_status_dir", 0}, {0}};
    static const struct argp argp = {.options = options, .parser = parse,
        .doc = "Remove the files of jobs of which no process of this node lives. The next job of the user does it too."};
    choice_t choice = {.root = NULL};
    unsigned removed;

    argv[0] = (char *) "bfo clean";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    removed = bt_clean(choice.root);
    printf("%u file%s removed\n", removed, 1 == removed ? "" : "s");
    return BT_WELL;
}
