/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo status and bfo clean: the jobs of this node, for people, programs and Prometheus. DESIGN.txt section 19.
 */
#include "bt_hosts.h"

#include <pwd.h>
#include <string.h>
#include <time.h>

#include "bfo_config.h"

typedef struct {
    bt_source_t source;
    const char *job;
    bool json, prometheus;
} choice_t;

/* ---- for programs ------------------------------------------------------------------------------------------ */

static json_t *times_json(const bfo_figures_port_t *port)
{
    char room[BT_TIME];

    return json_string(bt_time(room, port->since_wall));
}

static void add_traffic(json_t *to, const bt_port_t *sum)
{
    if (sum->counts) {
        json_t *traffic = json_pack("{s:I, s:I, s:I, s:I}", "sent_bytes", (json_int_t) sum->sent_bytes, "received_bytes",
                                    (json_int_t) sum->received_bytes, "sent_messages", (json_int_t) sum->sent_messages, "received_messages",
                                    (json_int_t) sum->received_messages);

        json_object_update(to, traffic);
        json_decref(traffic);
    }
}

static json_t *sum_json(const bt_port_t *sum)
{
    json_t *port = json_pack("{s:s, s:s, s:I, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "port", sum->port->name, "address",
                             sum->port->here, "rate_mbits", (json_int_t) sum->port->rate, "state", bt_state_name(sum->state), "since",
                             times_json(sum->port), "rails", (json_int_t) sum->rails, "rails_lost", (json_int_t) sum->rails_lost, "rails_kept",
                             (json_int_t) sum->rails_kept, "rails_draining", (json_int_t) sum->rails_draining, "rails_drained",
                             (json_int_t) sum->rails_drained, "lost", (json_int_t) sum->losses, "returned", (json_int_t) sum->returns, "port_downs",
                             (json_int_t) sum->downs, "cause", sum->port->cause);
    json_t *life = json_pack("{s:I, s:f, s:I, s:I, s:I}", "resent", (json_int_t) sum->resent, "down_seconds", (double) sum->down_ns / 1e9, "penalty",
                             (json_int_t) sum->penalty, "rails_held", (json_int_t) sum->rails_held, "rails_asking", (json_int_t) sum->rails_asking);
    char at[BT_TIME];

    json_object_update(port, life);
    json_object_set_new(port, "lost_at", json_string(bt_time(at, sum->lost_wall)));
    json_decref(life);
    add_traffic(port, sum);
    return port;
}

static json_t *port_json(const bfo_figures_port_t *port)
{
    return json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:s}", "port", port->name, "state", bt_state_name(port->state), "since",
                     times_json(port), "rails", (json_int_t) port->rails, "rails_lost", (json_int_t) port->rails_lost, "lost",
                     (json_int_t) port->losses, "returned", (json_int_t) port->returns, "port_downs", (json_int_t) port->downs, "cause", port->cause);
}

static json_t *process_json(const bt_process_t *process)
{
    const bfo_figures_t *f = &process->f;
    json_t *ports = json_array();
    char began[BT_TIME], changed[BT_TIME];

    for (uint32_t i = 0; i < f->n_ports; ++i) {
        json_array_append_new(ports, port_json(&f->port[i]));
    }
    return json_pack("{s:I, s:I, s:b, s:b, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "rank", (json_int_t) f->rank, "pid",
                     (json_int_t) f->pid, "alive", process->alive, "being_written", process->torn, "began", bt_time(began, f->began_wall), "changed",
                     bt_time(changed, f->changed_wall), "failover", bt_verdict_name(f->verdict), "reason", f->reason, "peers", (json_int_t) f->peers,
                     "peers_given_up", (json_int_t) f->peers_given_up, "peers_on_last_rail", (json_int_t) f->peers_on_last_rail, "peers_waited_for",
                     (json_int_t) f->peers_waited_for, "resent", (json_int_t) f->resent, "events", (json_int_t) f->n_events, "ports", ports);
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
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "job",
                     bt_job_name(name, job.first->f.job), "batch", job.first->f.batch, "uid", (json_int_t) job.first->uid, "command",
                     job.first->f.command, "host", job.first->f.host, "version", job.first->f.version, "well", bt_job_is_well(&job), "ranks",
                     (json_int_t) job.ranks, "ranks_here", (json_int_t) job.n, "ranks_dead", (json_int_t) job.n_dead, "failover",
                     bt_verdict_name(job.verdict), "reason", job.reason, "peers_given_up", (json_int_t) job.peers_given_up, "peers_on_last_rail",
                     (json_int_t) job.peers_on_last_rail, "peers_waited_for", (json_int_t) job.peers_waited_for, "resent", (json_int_t) job.resent,
                     "ports", ports, "processes", processes);
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
                            "jobs", jobs, "refused", refused),
                  false);
}

/* ---- for people --------------------------------------------------------------------------------------------- */

/* Prints the head of a job, for all nodes that were asked. */
static void print_head(const bt_job_t *job, size_t nodes)
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
    printf("   %zu of %u ranks on ", job->n, job->ranks);
    if (1 == nodes) {
        fputs(job->first->f.host, stdout);
    } else {
        printf("%zu nodes", nodes);
    }
    printf("   since %.19s\n", bt_time(began, job->first->f.began_wall));
    printf("  failover: %s%s%s%s%s\n", BFO_FIGURES_NOT_IN_FORCE == job->verdict ? bt_colour_of(BFO_FIGURES_LOST) : "", bt_verdict_name(job->verdict),
           BFO_FIGURES_NOT_IN_FORCE == job->verdict ? bt_no_colour() : "", '\0' == job->reason[0] ? "" : ", because ", job->reason);
}

static void print_port(const bt_job_t *job, const bt_port_t *sum)
{
    char rate[16], since[BT_TIME], sent[16] = "-", received[16] = "-", down[16] = "-", penalty[16] = "-", asking[64] = "";

    bt_time(since, sum->port->since_wall);
    if (sum->counts) {
        bt_amount(sent, (double) sum->sent_bytes);
        bt_amount(received, (double) sum->received_bytes);
    }
    if (0 != sum->down_ns) {
        snprintf(down, sizeof(down), "%.1fs", (double) sum->down_ns / 1e9);
    }
    if (0 != sum->penalty) {
        snprintf(penalty, sizeof(penalty), "%u%s", sum->penalty, 0 == sum->rails_held ? "" : "!");
    }
    if (0 != sum->rails_asking) {
        snprintf(asking, sizeof(asking), "; %u rail%s for the peer", sum->rails_asking, 1 == sum->rails_asking ? " waits" : "s wait");
    }
    printf("  %-12.63s %-12.63s %6s  %s%-11s%s  %-19.19s  %8s %8s  %5llu/%-5llu %5llu %6llu %8s %7s  %s%s\n", job->first->f.host, sum->port->name,
           bt_rate(rate, sum->port->rate), bt_colour_of(sum->state), bt_state_name(sum->state), bt_no_colour(), since, sent, received,
           (unsigned long long) (sum->rails - sum->rails_lost), (unsigned long long) sum->rails, (unsigned long long) sum->losses,
           (unsigned long long) sum->resent, down, penalty, sum->port->cause, asking);
}

static void print_ports(const bt_all_t *all, size_t at, size_t n)
{
    bt_job_t job;

    bt_job_sum(&job, all, at, n);
    for (size_t i = 0; i < job.n_ports; ++i) {
        print_port(&job, &job.port[i]);
    }
}

static void print_dead(const bt_process_t *process)
{
    if (!process->alive) {
        printf("  rank %u (pid %u on %s) is dead: it ended without MPI_Finalize\n", process->f.rank, process->f.pid, process->f.host);
    }
}

static void print_job(const bt_all_t *all, size_t at, size_t n)
{
    size_t nodes = 0, n_ports = 0, n_lost = 0;
    bt_job_t job;

    for (size_t i = at; i < at + n; i += bt_job_size(all, i)) {
        bt_job_sum(&job, all, i, bt_job_size(all, i));
        ++nodes;
        n_ports += job.n_ports;
        n_lost += job.n_ports_lost;
    }
    bt_job_sum(&job, all, at, n);
    print_head(&job, nodes);
    if (0 != n_ports) {
        printf("  %-12s %-12s %6s  %-11s  %-19s  %8s %8s  %11s %5s %6s %8s %7s  %s\n", "NODE", "PORT", "RATE", "STATE", "SINCE", "SENT", "RECEIVED",
               "RAILS UP/ALL", "LOST", "RESENT", "DOWN", "PENALTY", "LAST CAUSE");
    }
    for (size_t i = at; i < at + n; i += bt_job_size(all, i)) {
        print_ports(all, i, bt_job_size(all, i));
    }
    for (size_t i = at; i < at + n; ++i) {
        print_dead(all->process[i]);
    }
    printf("  %zu port%s not up, %llu peer%s given up, %llu waited for, %llu on the last rail; %llu messages sent again\n", n_lost,
           1 == n_lost ? "" : "s", (unsigned long long) job.peers_given_up, 1 == job.peers_given_up ? "" : "s",
           (unsigned long long) job.peers_waited_for, (unsigned long long) job.peers_on_last_rail, (unsigned long long) job.resent);
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

static void print_table(const bt_all_t *all, const choice_t *choice)
{
    const char *where = NULL == choice->source.hosts ? "on this node" : "on these nodes";

    for (size_t at = 0; at < all->n; at += bt_job_size_all_nodes(all, at)) {
        if (0 != at) {
            putchar('\n');
        }
        print_job(all, at, bt_job_size_all_nodes(all, at));
    }
    if (0 == all->n && NULL == choice->job) {
        fprintf(stderr, "bfo: no job under the PML bfo runs %s\n", where);
    } else if (0 == all->n) {
        fprintf(stderr, "bfo: no job '%s' runs %s under the PML bfo\n", choice->job, where);
    }
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

enum { KEY_JSON = 300, KEY_PROMETHEUS };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    choice_t *choice = state->input;

    switch (key) {
    case KEY_JSON:
        choice->json = true;
        return 0;
    case KEY_PROMETHEUS:
        choice->prometheus = true;
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

int bt_cmd_status(int argc, char **argv)
{
    static const struct argp_option options[] = {{"json", KEY_JSON, NULL, 0, "for programs", 0},
                                                 {"prometheus", KEY_PROMETHEUS, NULL, 0, "for the textfile collector of node_exporter", 0},
                                                 {0}};
    static const struct argp_child children[] = {{&bt_source_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[JOB]",
        .children = children,
        .doc = "Show the jobs of this node, their ports, and what is lost. JOB is the number of Open MPI (54321 or 54321.1) or of the batch "
               "system.\vExit status: 0 all is well, 1 something is lost or not protected, 2 wrong usage, 3 trouble, 4 no job."};
    choice_t choice = {.job = NULL};
    bt_all_t all;
    int verdict;

    argv[0] = (char *) "bfo status";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    if (choice.prometheus && NULL != choice.source.hosts) {
        fputs("bfo status: --prometheus is of this node; a textfile collector runs on each\n", stderr);
        return BT_USAGE;
    }
    if (!bt_read_from(&all, &choice.source, choice.job)) {
        fputs("bfo: no memory\n", stderr);
        return BT_TROUBLE;
    }
    verdict = all.has_failed ? BT_TROUBLE : verdict_of(&all);
    if (choice.json) {
        print_json(&all);
    } else if (choice.prometheus) {
        bt_print_prometheus(&all);
    } else {
        print_table(&all, &choice);
    }
    bt_print_refused(&all);
    bt_free(&all);
    return 0 == fflush(stdout) && !ferror(stdout) ? verdict : BT_TROUBLE;
}

int bt_cmd_clean(int argc, char **argv)
{
    static const struct argp_option options[] = {{"json", KEY_JSON, NULL, 0, "for programs", 0}, {0}};
    static const struct argp_child children[] = {{&bt_source_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = children,
        .doc = "Remove the files of jobs that have no living process on this node. The next job of the user removes them, too."};
    choice_t choice = {.job = NULL};
    unsigned removed;

    argv[0] = (char *) "bfo clean";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    if (NULL != choice.job) {
        fprintf(stderr, "bfo clean: '%s' is one word too many: it removes what all dead jobs left\n", choice.job);
        return BT_USAGE;
    }
    if (NULL != choice.source.hosts) {
        const char *words[BT_MOST_WORDS] = {NULL};

        (void) bt_hosts_words(words, "clean", NULL, choice.json, &choice.source);
        return bt_hosts_forward(&choice.source, words, choice.json, 60);
    }
    removed = bt_clean(choice.source.root);
    if (choice.json) {
        bt_print_json(json_pack("{s:I}", "removed", (json_int_t) removed), false);
    } else {
        printf("%u file%s removed\n", removed, 1 == removed ? "" : "s");
    }
    return 0 == fflush(stdout) && !ferror(stdout) ? BT_WELL : BT_TROUBLE;
}
