/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Fault events that the server obeys. For events that others published it changes lists of ports (bt_out.c), or answers from the figures
 * of the next look. It answers for this node only, and never more than the figures show. DESIGN.txt section 19.11.
 */
#include "bt_ftb.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MOST_QUESTIONS = 64, LOCK_TRIES = 2 };

static bt_ftb_event_t question[MOST_QUESTIONS];
static size_t n_questions;

/* ---- this node ------------------------------------------------------------------------------------------------ */

/* Are the names the same, with or without a domain? If both have a domain, the domains must be the same. */
static bool is_same_node(const char *a, const char *b)
{
    while ('\0' != *a && '.' != *a && tolower((unsigned char) *a) == tolower((unsigned char) *b)) {
        ++a;
        ++b;
    }
    return ('\0' == *a && ('\0' == *b || '.' == *b)) || ('.' == *a && '\0' == *b) || ('.' == *a && '.' == *b && 0 == strcasecmp(a, b));
}

static const char *this_node(void)
{
    static char name[256];

    if (0 != gethostname(name, sizeof(name) - 1)) {
        name[0] = '\0';
    }
    return name;
}

/* Is this node among those that the event names? `without` is the answer for an event that names none. */
static bool is_for_us(const bt_ftb_event_t *e, const char *key, bool without)
{
    size_t n;
    const char *const *words = bt_ftb_words(e, key, &n);

    for (size_t i = 0; i < n; ++i) {
        if ('\0' != words[i][0] && is_same_node(words[i], this_node())) {
            return true;
        }
    }
    return NULL == words && without;
}

/* ---- ports ------------------------------------------------------------------------------------------------------ */

static const char *steer(const bt_ftb_event_t *e, const char *root, bool out)
{
    static bt_wish_t wish;
    size_t n;
    const char *const *ports = bt_ftb_words(e, "iface", &n);

    for (size_t i = 0; i < n; ++i) {
        wish = (bt_wish_t){.port = ports[i], .out = out, .tries = LOCK_TRIES};
        bt_out(&wish, root);
        if (wish.has_failed && 0 == wish.done) { /* a broken list of one user does not keep root from changing the others */
            return wish.why;
        }
        bt_ftb_throw_port_again(ports[i], out);
    }
    return NULL;
}

static void answer_interface(const bt_ftb_event_t *asked, const bt_job_t *job, bt_ftb_sink_t sink)
{
    bt_ftb_event_t e;

    for (size_t i = 0; i < job->n_ports; ++i) {
        const bt_port_t *port = &job->port[i];

        if (bt_ftb_has(asked, "iface", port->port->name)) {
            const bool is_dead = 0 != port->rails ? port->rails == port->rails_lost
                                                  : BFO_FIGURES_LOST == port->state || BFO_FIGURES_UNUSED == port->state;

            bt_ftb_begin_of_job(&e, is_dead ? "CONFIRM_INTERFACE_DEAD" : "CONFIRM_INTERFACE_ALIVE", port->port->name, job->first);
            bt_ftb_add_port(&e, port);
            sink(&e);
        }
    }
}

/* ---- ranks and jobs ----------------------------------------------------------------------------------------------- */

/* Is the job among those that the event names? If it names none, all are. */
static bool is_asked(const bt_ftb_event_t *asked, const bt_process_t *p)
{
    size_t n;
    const char *const *jobs = bt_ftb_words(asked, "jobs", &n);

    for (size_t i = 0; i < n; ++i) {
        if (bt_is_job(&p->f, jobs[i])) {
            return true;
        }
    }
    return NULL == jobs;
}

/* Answers which ranks of a job on this node are alive, or which are dead; looks at those that were asked for, or at all. */
static void answer_ranks(const bt_ftb_event_t *asked, const bt_all_t *all, size_t at, size_t size, bool alive, const char *name, bt_ftb_sink_t sink)
{
    size_t n;
    const bool only_some = NULL != bt_ftb_words(asked, "ranks", &n);
    bt_ftb_event_t e;

    n = 0;
    for (size_t i = at; i < at + size; ++i) {
        const bt_process_t *p = all->process[i];
        char rank[16];

        snprintf(rank, sizeof(rank), "%u", p->f.rank);
        if (alive != p->alive || (only_some && !bt_ftb_has(asked, "ranks", rank))) {
            continue;
        }
        if (0 == n || !bt_ftb_add_rank(&e, p->f.rank)) {
            if (0 != n) {
                sink(&e);
            }
            bt_ftb_begin_ranks(&e, name, p->f.host, p);
            (void) bt_ftb_add_rank(&e, p->f.rank);
        }
        ++n;
    }
    if (0 != n) {
        sink(&e);
    }
}

/* A job is dead if all its ranks were on this node and all are dead. For other jobs the server knows only the ranks on this node. */
static void answer_job(const bt_ftb_event_t *asked, const bt_job_t *job, const bt_all_t *all, size_t at, bt_ftb_sink_t sink)
{
    const bool is_dead = job->n == job->n_dead;
    char room[16];
    bt_ftb_event_t e;

    if (is_dead && (0 == job->ranks || job->n != job->ranks)) {
        answer_ranks(asked, all, at, job->n, false, "MPI_RANKS_DEAD", sink);
        return;
    }
    bt_ftb_begin(&e, is_dead ? "CONFIRM_JOBS_DEAD" : "CONFIRM_JOBS_RUNNING");
    if (0 == geteuid()) {
        bt_ftb_add_number(&e, "user", job->first->uid);
    }
    bt_ftb_add_set(&e, "jobs");
    (void) bt_ftb_add_to_set(&e, bt_job_name(room, job->first->f.job));
    if ('\0' != job->first->f.batch[0]) {
        bt_ftb_add(&e, "batch", job->first->f.batch);
    }
    bt_ftb_add(&e, "node", job->first->f.host);
    sink(&e);
}

static void answer_node(bt_ftb_sink_t sink)
{
    bt_ftb_event_t e;

    bt_ftb_begin(&e, "CONFIRM_NODES_ALIVE");
    bt_ftb_add_set(&e, "nodes");
    (void) bt_ftb_add_to_set(&e, this_node());
    sink(&e);
}

static void answer(const bt_ftb_event_t *asked, const bt_all_t *all, bt_ftb_sink_t sink)
{
    bt_job_t job;

    if (0 == strcmp("CHECK_NODES_DEAD", asked->name)) {
        answer_node(sink);
    }
    for (size_t at = 0; at < all->n; at += job.n) {
        bt_job_sum(&job, all, at, bt_job_size(all, at));
        if (!is_asked(asked, job.first)) {
            continue;
        }
        if (0 == strcmp("CHECK_INTERFACE", asked->name)) {
            if (job.n_dead < job.n) {
                answer_interface(asked, &job, sink);
            }
        } else if (0 == strcmp("CHECK_JOBS_DEAD", asked->name)) {
            answer_job(asked, &job, all, at, sink);
        } else if (0 == strcmp("CHECK_RANKS_DEAD", asked->name)) {
            answer_ranks(asked, all, at, job.n, true, "CONFIRM_RANKS_ALIVE", sink);
            answer_ranks(asked, all, at, job.n, false, "CONFIRM_RANKS_DEAD", sink);
        } else {
            answer_ranks(asked, all, at, job.n, true, "MPI_RANKS_ALIVE", sink);
            answer_ranks(asked, all, at, job.n, false, "MPI_RANKS_DEAD", sink);
        }
    }
}

/* ---- all ------------------------------------------------------------------------------------------------------------ */

/* The events that are obeyed, the words that they need, and the key that names their nodes. */
static const struct {
    const char *name, *needs, *node;
    bool without_node; /* all nodes are meant if none is named */
} obeyed[] = {
    {"IFACE_DEAD", "iface", "node", false},        {"IFACE_RESTORED", "iface", "node", false}, {"CHECK_INTERFACE", "iface", "node", false},
    {"CHECK_NODES_DEAD", "nodes", "nodes", false}, {"CHECK_JOBS_DEAD", "jobs", "nodes", true}, {"CHECK_RANKS_DEAD", "ranks", "nodes", true},
};
enum { OBEYED = sizeof(obeyed) / sizeof(obeyed[0]), STEERED = 2 /* the first ones */ };

/* NULL, or what the event lacks. */
static const char *what_it_lacks(const bt_ftb_event_t *e, size_t i)
{
    static char why[128];
    size_t n;
    const char *const *words = bt_ftb_words(e, obeyed[i].needs, &n);

    if (NULL == words || (!obeyed[i].without_node && NULL == bt_ftb_words(e, obeyed[i].node, &n))) {
        snprintf(why, sizeof(why), "the payload of %s needs '%s: ...'%s", e->name, obeyed[i].needs, obeyed[i].without_node ? "" : " and the node");

        return why;
    }
    (void) bt_ftb_words(e, obeyed[i].needs, &n);
    for (size_t w = 0; i < STEERED && w < n; ++w) {
        if (!bt_is_port_name(words[w])) {
            return "iface: is the name of a port as 'bfo status' shows it, as mlx5_0:1";
        }
    }
    return NULL;
}

const char *bt_ftb_obey(const bt_ftb_event_t *e, const char *root)
{
    char line[BT_FTB_LINE];
    const char *why;
    size_t i = 0;

    while (i < OBEYED && 0 != strcmp(e->name, obeyed[i].name)) {
        ++i;
    }
    if (OBEYED == i) {
        return NULL;
    }
    why = what_it_lacks(e, i);
    if (NULL != why || !is_for_us(e, obeyed[i].node, obeyed[i].without_node)) {
        return why;
    }
    if (i < STEERED) {
        return steer(e, root, 0 == i);
    }
    if (MOST_QUESTIONS == n_questions) {
        return "64 questions wait already; ask again in a second";
    }
    bt_ftb_write(e, line);
    return bt_ftb_read(&question[n_questions], line) ? (++n_questions, NULL) : question[n_questions].why;
}

void bt_ftb_answer(const bt_all_t *all, bt_ftb_sink_t sink)
{
    for (size_t i = 0; i < n_questions; ++i) {
        answer(&question[i], all, sink);
    }
    n_questions = 0;
}
