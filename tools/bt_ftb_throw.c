/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Makes fault events from figures. At each look it compares the figures of all processes of this node with the states that it reported
 * before, and throws events for changes: ports of a job that are lost, drained or back, and ranks that are dead. DESIGN.txt section 19.11.
 */
#include "bt_ftb.h"

#include <string.h>
#include <unistd.h>

static uint64_t began; /* ns of the wall clock: earlier events are not thrown */

enum { MOST_SAID = 1024 }; /* most states of one user's jobs in one look; later looks report the rest */
static unsigned n_said;

/* Adds the user, because the server of root sees the jobs of all users, and two jobs may have the same number. */
static void add_user(bt_ftb_event_t *e, const bt_process_t *p)
{
    if (0 == geteuid()) {
        bt_ftb_add_number(e, "user", p->uid);
    }
}

void bt_ftb_begin_of_job(bt_ftb_event_t *e, const char *name, const char *iface, const bt_process_t *p)
{
    char room[16];

    bt_ftb_begin(e, name);
    if (NULL != iface) {
        bt_ftb_add(e, "iface", iface);
    }
    bt_ftb_add(e, "node", p->f.host);
    bt_ftb_add(e, "job", bt_job_name(room, p->f.job));
    add_user(e, p);
    if ('\0' != p->f.batch[0]) {
        bt_ftb_add(e, "batch", p->f.batch);
    }
}

void bt_ftb_begin_ranks(bt_ftb_event_t *e, const char *name, const char *node, const bt_process_t *p)
{
    char room[16];

    bt_ftb_begin(e, name);
    add_user(e, p);
    bt_ftb_add_set(e, "nodes");
    (void) bt_ftb_add_to_set(e, node);
    bt_ftb_add_set(e, "jobs");
    (void) bt_ftb_add_to_set(e, bt_job_name(room, p->f.job));
    bt_ftb_add_set(e, "ranks");
}

bool bt_ftb_add_rank(bt_ftb_event_t *e, uint32_t rank)
{
    char word[16];

    snprintf(word, sizeof(word), "%u", rank);
    return bt_ftb_add_to_set(e, word);
}

/* ---- ranks ------------------------------------------------------------------------------------------------- */

static void throw_dead_ranks(const bt_ftb_event_t *e, bt_ftb_sink_t sink)
{
    bt_ftb_event_t whole = *e;

    bt_ftb_add(&whole, "state", "dead");
    sink(&whole);
    ++n_said;
}

/* Is the death of this process news, and not reported yet? The remains of an old crash are no news. */
static bool is_news(const bt_job_t *job, const bt_process_t *p)
{
    const bt_ftb_known_t key = {.kind = BT_FTB_PROCESS, .uid = p->uid, .job = p->f.job, .rank = p->f.rank, .pid = p->f.pid};
    const bt_ftb_known_t rank = {.kind = BT_FTB_RANK, .uid = p->uid, .job = p->f.job, .rank = p->f.rank};
    bool is_new;
    bt_ftb_known_t *known = bt_ftb_know(&key, &is_new), *told;

    if (NULL == known || p->alive) {
        if (NULL != known) {
            known->was_alive = true;
        }
        return false;
    }
    if (!known->was_alive && job->n_dead == job->n && p->f.began_wall < began) {
        return false;
    }
    told = MOST_SAID <= n_said ? NULL : bt_ftb_know(&rank, &is_new);
    if (NULL == told || BFO_FIGURES_LOST == told->state) {
        return false;
    }
    told->state = BFO_FIGURES_LOST;
    return true;
}

static void look_at_ranks(const bt_job_t *job, const bt_all_t *all, size_t at, bt_ftb_sink_t sink)
{
    bt_ftb_event_t e;
    size_t n = 0;

    for (size_t i = at; i < at + job->n; ++i) {
        const bt_process_t *p = all->process[i];

        if (!is_news(job, p)) {
            continue;
        }
        if (0 == n || !bt_ftb_add_rank(&e, p->f.rank)) {
            if (0 != n) {
                throw_dead_ranks(&e, sink);
            }
            bt_ftb_begin_ranks(&e, "MPI_RANKS_DEAD", p->f.host, p);
            (void) bt_ftb_add_rank(&e, p->f.rank);
        }
        ++n;
    }
    if (0 != n) {
        throw_dead_ranks(&e, sink);
    }
}

/* ---- ports --------------------------------------------------------------------------------------------------- */

/* The event to throw when a port of a job goes from one state to another; NULL if there is none. */
static const char *event_between(uint32_t before, uint32_t now)
{
    if (before == now) {
        return NULL;
    }
    switch (now) {
    case BFO_FIGURES_LOST:
    case BFO_FIGURES_NEVER_UP:
    case BFO_FIGURES_DRAINED:
        return "MPI_IFACE_DEAD";
    case BFO_FIGURES_UP:
        return "MPI_IFACE_RESTORED";
    case BFO_FIGURES_PART:
        return BFO_FIGURES_UP == before ? "CHECK_INTERFACE" : "MPI_IFACE_RESTORED";
    case BFO_FIGURES_DRAINING:
        return BFO_FIGURES_DRAINED == before ? NULL : "MPI_IFACE_DRAINING";
    default:
        return NULL;
    }
}

void bt_ftb_add_port(bt_ftb_event_t *e, const bt_port_t *port)
{
    bt_ftb_add(e, "state", bt_state_name(port->state));
    bt_ftb_add_number(e, "rails", port->rails);
    bt_ftb_add_number(e, "rails_lost", port->rails_lost);
    if (0 != port->rails_kept) {
        bt_ftb_add_number(e, "rails_kept", port->rails_kept);
    }
    if (0 != port->rails_lost && '\0' != port->port->cause[0]) {
        bt_ftb_add(e, "cause", port->port->cause);
    }
}

static void look_at_port(const bt_job_t *job, const bt_port_t *port, bt_ftb_sink_t sink)
{
    bt_ftb_known_t key = {.kind = BT_FTB_PORT, .uid = job->first->uid, .job = job->first->f.job, .state = BFO_FIGURES_UP};
    bt_ftb_known_t *known;
    bt_ftb_event_t e;
    const char *name;
    bool is_new;

    snprintf(key.name, sizeof(key.name), "%s", port->port->name);
    snprintf(key.host, sizeof(key.host), "%s", job->first->f.host);
    known = bt_ftb_know(&key, &is_new);
    name = NULL == known || MOST_SAID <= n_said ? NULL : event_between(known->state, port->state);
    if (NULL != known && MOST_SAID > n_said && BFO_FIGURES_NONE != port->state) {
        known->state = port->state;
    }
    if (NULL != name) {
        bt_ftb_begin_of_job(&e, name, port->port->name, job->first);
        bt_ftb_add_port(&e, port);
        sink(&e);
        ++n_said;
    }
}

static void say_again(bt_ftb_known_t *port, void *context)
{
    const bt_ftb_known_t *wish = context;

    if (0 == strcmp(port->name, wish->name) && port->state == wish->state) {
        port->state = BFO_FIGURES_DRAINING;
    }
}

void bt_ftb_throw_port_again(const char *port, bool out)
{
    bt_ftb_known_t wish = {.state = out ? BFO_FIGURES_DRAINED : BFO_FIGURES_UP};

    snprintf(wish.name, sizeof(wish.name), "%s", port);
    bt_ftb_known_ports(say_again, &wish);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

void bt_ftb_throw(const bt_all_t *all, bt_ftb_sink_t sink)
{
    bt_job_t job;
    bool is_new;

    began = 0 == began ? bt_wall_ns() : began;
    bt_ftb_throw_written(all, began, sink);
    for (size_t at = 0; at < all->n; at += job.n) {
        const bt_ftb_known_t key = {.kind = BT_FTB_JOB, .uid = all->process[at]->uid, .job = all->process[at]->f.job};

        n_said = 0 == at || all->process[at]->uid != all->process[at - 1]->uid ? 0 : n_said;
        (void) bt_ftb_know(&key, &is_new);
        bt_job_sum(&job, all, at, bt_job_size(all, at));
        look_at_ranks(&job, all, at, sink);
        for (size_t i = 0; job.n_dead < job.n && i < job.n_ports; ++i) {
            look_at_port(&job, &job.port[i], sink);
        }
    }
    bt_ftb_forget_others();
}
