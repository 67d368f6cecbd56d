/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo drain and bfo release: take a port out of service for the jobs of this node, and give it back. The wish goes into the lists that
 * the jobs read (bt_out.c); their files of figures show how far they are. DESIGN.txt sections 10.5 and 19.
 */
#include "bt_hosts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    bt_source_t source;
    const char *port, *wait_text;
    double wait; /* seconds */
    bool json, force;
} choice_t;

/* ---- how far the jobs are ---------------------------------------------------------------------------------- */

static const bfo_figures_port_t *port_of(const bt_process_t *process, const char *name)
{
    for (uint32_t i = 0; process->alive && i < process->f.n_ports; ++i) {
        if (0 == strcmp(name, process->f.port[i].name)) {
            return &process->f.port[i];
        }
    }
    return NULL;
}

static bool is_done(const bfo_figures_port_t *port, bool out)
{
    return out ? BFO_FIGURES_DRAINED == port->state : !port->is_out;
}

static json_t *process_json(const bt_process_t *process, const bfo_figures_port_t *port, bool out)
{
    char name[16];

    return json_pack("{s:s, s:I, s:I, s:b, s:b, s:s, s:I, s:I, s:I}", "job", bt_job_name(name, process->f.job), "rank", (json_int_t) process->f.rank,
                     "pid", (json_int_t) process->f.pid, "done", is_done(port, out), "noticed", out == (0 != port->is_out), "state",
                     bt_state_name(port->state), "rails_kept", (json_int_t) port->rails_kept, "rails_draining", (json_int_t) port->rails_draining,
                     "rails_drained", (json_int_t) port->rails_drained);
}

static void say_process(const bt_process_t *process, const bfo_figures_port_t *port, bool out, bool force)
{
    char name[16];

    printf("  job %s rank %u (pid %u): ", bt_job_name(name, process->f.job), process->f.rank, process->f.pid);
    if (out != (0 != port->is_out)) {
        puts("it has not noticed yet; it will in its next MPI call that waits");
    } else if (0 != port->rails_kept) {
        printf("%u rail%s on, because %s, or failover is not in force\n", port->rails_kept, 1 == port->rails_kept ? " goes" : "s go",
               force ? "the process does not wait for rails (pml_bfo_last_rail_timeout 0)" : "no other rail reaches the process at the other end");
    } else {
        printf("on %u rail%s messages are in flight, or the process at the other end has not answered\n", port->rails_draining,
               1 == port->rails_draining ? "" : "s");
    }
}

/* Counts the processes that use the port, and those that have not done the wish yet. */
static void count(const bt_all_t *all, const choice_t *choice, bool out, size_t *users, size_t *late)
{
    *users = *late = 0;
    for (size_t i = 0; i < all->n; ++i) {
        const bfo_figures_port_t *port = port_of(all->process[i], choice->port);

        *users += NULL != port;
        *late += NULL != port && !is_done(port, out);
    }
}

/* Does a port that was drained without --force serve the process again, as the last one? */
static bool uses_port_again(const bt_process_t *process)
{
    for (uint32_t i = 0; i < process->f.n_ports; ++i) {
        if (process->f.port[i].is_out && 0 != process->f.port[i].rails_kept) {
            return true;
        }
    }
    return false;
}

/* Reports what the processes do for which the port had the last rail to another process. */
static void say_who_waits(const bt_all_t *all, const choice_t *choice)
{
    size_t waits = 0, uses = 0;

    for (size_t i = 0; i < all->n; ++i) {
        if (NULL != port_of(all->process[i], choice->port)) {
            waits += 0 != all->process[i]->f.peers_waited_for;
            uses += uses_port_again(all->process[i]);
        }
    }
    if (0 != waits) {
        printf("%zu process%s for a process that no other rail reaches, until 'bfo release %s', but no longer than pml_bfo_last_rail_timeout\n",
               waits, 1 == waits ? " waits" : "es wait", choice->port);
    }
    if (0 != uses) {
        printf("%zu process%s a port again that was drained without --force, because no other rail is left\n", uses, 1 == uses ? " uses" : "es use");
    }
}

static void report(const bt_all_t *all, const choice_t *choice, bool out, size_t users, size_t late)
{
    json_t *processes = choice->json ? json_array() : NULL;

    if (!choice->json && 0 == users) {
        printf("no job on this node uses %s; %s\n", choice->port, out ? "jobs that begin later leave it out" : "jobs that begin later use it");
    } else if (!choice->json && 0 == late) {
        printf("%s %s in %zu process%s\n", choice->port, out ? "is drained" : "is given back", users, 1 == users ? "" : "es");
    } else if (!choice->json) {
        printf("%s %s in %zu of %zu processes:\n", choice->port, out ? "is not drained yet" : "is not given back yet", late, users);
    }
    for (size_t i = 0; i < all->n; ++i) {
        const bfo_figures_port_t *port = port_of(all->process[i], choice->port);

        if (NULL != port && choice->json) {
            json_array_append_new(processes, process_json(all->process[i], port, out));
        } else if (NULL != port && !is_done(port, out)) {
            say_process(all->process[i], port, out, choice->force);
        }
    }
    if (choice->force && !choice->json && 0 == late) {
        say_who_waits(all, choice);
    }
    if (choice->json) {
        bt_print_json(json_pack("{s:s, s:b, s:b, s:o}", "port", choice->port, "out", out, "done", 0 == late, "processes", processes), false);
    }
}

static int wait_for_jobs(const choice_t *choice, bool out)
{
    const double end = bt_now() + choice->wait;
    size_t users, late;
    bt_all_t all;

    for (;;) {
        if (!bt_read(&all, choice->source.root, NULL)) {
            fputs("bfo: no memory\n", stderr);
            return BT_TROUBLE;
        }
        count(&all, choice, out, &users, &late);
        if (0 == late || bt_now() >= end) {
            break;
        }
        bt_free(&all);
        bt_sleep_a_while();
    }
    report(&all, choice, out, users, late);
    bt_free(&all);
    return 0 != late ? BT_NOT_WELL : 0 != users ? BT_WELL : BT_NO_JOB;
}

/* ---- commands ---------------------------------------------------------------------------------------------- */

enum { KEY_JSON = 300, KEY_WAIT, KEY_FORCE };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    choice_t *choice = state->input;

    switch (key) {
    case KEY_JSON:
        choice->json = true;
        return 0;
    case KEY_FORCE:
        choice->force = true;
        return 0;
    case KEY_WAIT:
        choice->wait = bt_take_wait(state, arg);
        choice->wait_text = arg;
        return 0;
    case ARGP_KEY_ARG:
        bt_take_word(state, &choice->port, arg);
        if (!bt_is_port_name(arg)) {
            argp_error(state, "'%s' is no name of a port; 'bfo status' shows the names (mlx5_0:1)", arg);
        }
        return 0;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &choice->source;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&bt_source_argp, 0, NULL, 0}, {0}};
#define WAIT_OPTION \
    { \
        "wait", KEY_WAIT, "SECONDS", 0, "how long to wait for the jobs (30; 0: not at all)", 0 \
    }
#define JSON_OPTION \
    { \
        "json", KEY_JSON, NULL, 0, "for programs", 0 \
    }
static const struct argp_option drain_options[] = {
    {"force", KEY_FORCE, NULL, 0, "drain the port even where it has the last rail to a process: the jobs then wait for the release", 0},
    WAIT_OPTION,
    JSON_OPTION,
    {0}};
static const struct argp_option release_options[] = {WAIT_OPTION, JSON_OPTION, {0}};

static int print_names(bt_wish_t *wish, bool json)
{
    if (json) {
        bt_print_json(json_pack("{s:O, s:O}", "out", wish->ports, "forced", wish->forced), false);
    } else {
        for (size_t i = 0; i < json_array_size(wish->ports); ++i) {
            const char *port = json_string_value(json_array_get(wish->ports, i));

            printf("%s%s\n", port, bt_is_among(wish->forced, port) ? " by force" : "");
        }
    }
    return wish->has_failed ? BT_TROUBLE : BT_WELL;
}

/* Runs the same command on each of the hosts. */
static int run_there(const choice_t *choice, bool out)
{
    const char *words[BT_MOST_WORDS] = {NULL};
    size_t n = bt_hosts_words(words, out ? "drain" : "release", choice->wait_text, choice->json, &choice->source);

    if (choice->force) {
        words[n++] = "--force";
    }
    words[n] = choice->port;
    return bt_hosts_forward(&choice->source, words, choice->json, choice->wait + BT_LOGIN_SECONDS);
}

static int run(int argc, char **argv, const struct argp *argp, bool out)
{
    choice_t choice = {.wait = 30};
    bt_wish_t wish = {.out = out, .tries = BT_STEER_TRIES};
    int verdict;

    argp_parse(argp, argc, argv, 0, NULL, &choice);
    if (NULL == choice.port && (!out || choice.force)) {
        fprintf(stderr, "bfo %s: which port? 'bfo drain' without a port lists the ports that are out of service\n",
                out ? "drain --force" : "release");
        return BT_USAGE;
    }
    if (NULL != choice.source.hosts) {
        return run_there(&choice, out);
    }
    wish.port = choice.port;
    wish.force = choice.force;
    wish.ports = json_array();
    wish.forced = json_array();
    bt_out(&wish, choice.source.root);
    if (NULL == choice.port) {
        verdict = print_names(&wish, choice.json);
    } else if (wish.has_failed) {
        verdict = BT_TROUBLE;
    } else if (0 == wish.lists) { /* root makes no directories for other users */
        fputs("bfo: no user has run a job under the PML bfo on this node yet: there is no list of ports to write\n", stderr);
        verdict = BT_NO_JOB;
    } else if (!out && 0 == wish.changed) {
        fprintf(stderr, "bfo: the port '%s' is not out of service; 'bfo drain' without a port lists the ports that are\n", choice.port);
        verdict = BT_NOT_WELL;
    } else {
        verdict = wait_for_jobs(&choice, out);
    }
    json_decref(wish.ports);
    json_decref(wish.forced);
    return 0 == fflush(stdout) && !ferror(stdout) ? verdict : BT_TROUBLE;
}

int bt_cmd_drain(int argc, char **argv)
{
    static const struct argp argp = {
        .options = drain_options,
        .parser = parse,
        .children = children,
        .args_doc = "[PORT]",
        .doc =
            "Take a port out of service: the jobs of this user on this node (of root: of all users who have run a job here) begin nothing "
            "new on its rails, at either end. The command waits until nothing is in flight on these rails. Then you can unplug the port, "
            "and no message is lost or sent again. Later jobs leave the port out, too, until 'bfo release PORT'. Without PORT: list the "
            "ports that are out of service. The last rail to a process is kept, and the port is not drained, without --force.\vExit status: 0 drained, 1 not yet (the command names the processes that it waits for), 2 wrong usage, "
            "3 trouble, 4 no job uses the port."};

    argv[0] = (char *) "bfo drain";
    return run(argc, argv, &argp, true);
}

int bt_cmd_release(int argc, char **argv)
{
    static const struct argp argp = {
        .options = release_options,
        .parser = parse,
        .children = children,
        .args_doc = "PORT",
        .doc =
            "Give back a port that 'bfo drain' took out of service.\vExit status: 0 the jobs use the port again, 1 the port was not out of service, "
            "or a process has not noticed yet, 2 wrong usage, 3 trouble, 4 no job uses the port."};

    argv[0] = (char *) "bfo release";
    return run(argc, argv, &argp, false);
}
