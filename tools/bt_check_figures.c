/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo check: what the figures show of the stream's job. Its processes on this node are the descendants of the mpirun that the check has
 * started. DESIGN.txt section 19.10.
 */
#include "bt_check.h"

#include <string.h>
#include <unistd.h>

enum { MOST_PARENTS = 64, STATUS = 1024 };

/* ---- the job --------------------------------------------------------------------------------------------------- */

/* The parent of a process; 0 if there is no such process. Its name, which comes before the numbers, may have any characters. */
static pid_t parent_of(pid_t pid)
{
    char path[32], text[STATUS];
    const char *at;
    FILE *in;
    int parent = 0;
    size_t n;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
    in = fopen(path, "re");
    n = NULL == in ? 0 : fread(text, 1, sizeof(text) - 1, in);
    text[n] = '\0';
    at = strrchr(text, ')');
    if (NULL == at || 1 != sscanf(at, ") %*c %d", &parent)) {
        parent = 0;
    }
    if (NULL != in) {
        fclose(in);
    }
    return parent;
}

static bool is_below(pid_t pid, pid_t root)
{
    for (int i = 0; i < MOST_PARENTS && 1 < pid; ++i) {
        if (pid == root) {
            return true;
        }
        pid = parent_of(pid);
    }
    return false;
}

static bool is_ours(const bt_check_t *check, const bt_process_t *process)
{
    return process->uid == geteuid()
           && (check->is_found ? process->f.job == check->number : process->alive && is_below((pid_t) process->f.pid, check->stream.pid));
}

void bt_look(bt_check_t *check)
{
    bt_free(&check->all);
    check->n = 0;
    if (0 == check->stream.pid || !bt_read(&check->all, check->choice.root, NULL)) {
        return;
    }
    for (size_t at = 0; at < check->all.n; at += bt_job_size(&check->all, at)) {
        if (is_ours(check, check->all.process[at])) {
            check->is_found = true;
            check->number = check->all.process[at]->f.job;
            check->at = at;
            check->n = bt_job_size(&check->all, at);
            bt_job_sum(&check->job, &check->all, at, check->n);
            return;
        }
    }
}

/* ---- a port ---------------------------------------------------------------------------------------------------- */

const bt_port_t *bt_figures_of(const bt_check_t *check, const char *name)
{
    for (size_t i = 0; 0 != check->n && i < check->job.n_ports; ++i) {
        if (0 == strcmp(name, check->job.port[i].port->name)) {
            return &check->job.port[i];
        }
    }
    return NULL;
}

static const bfo_figures_port_t *port_of(const bfo_figures_t *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_ports; ++i) {
        if (0 == strcmp(name, f->port[i].name)) {
            return &f->port[i];
        }
    }
    return NULL;
}

double bt_since(const bt_check_t *check, const char *name, uint32_t state, double fallback)
{
    uint64_t last = 0;

    for (size_t i = 0; i < check->n; ++i) {
        const bfo_figures_port_t *port = port_of(&check->all.process[check->at + i]->f, name);

        if (NULL == port || 0 == port->rails) {
            continue;
        }
        if (state != port->state) {
            return fallback;
        }
        last = port->since_mono > last ? port->since_mono : last;
    }
    return 0 == last ? fallback : (double) last / 1e9;
}

/* Is the port the last one to some peer? Each peer that the process reaches over this port must be reachable over another port too. */
static bool is_last_of(const bfo_figures_t *f, const char *name)
{
    uint64_t here = 0, others = 0;

    for (uint32_t i = 0; i < f->n_ports; ++i) {
        if (0 == strcmp(name, f->port[i].name)) {
            here += f->port[i].rails;
        } else {
            others += f->port[i].rails - f->port[i].rails_lost;
        }
    }
    return others < here;
}

/* A reason against cutting that does not pass by itself; NULL if there is none. */
static const char *why_never(const bt_job_t *job, char *room, size_t size)
{
    if (BFO_FIGURES_IN_FORCE != job->verdict) {
        snprintf(room, size, "failover is %s%s%s", bt_verdict_name(job->verdict), '\0' == job->reason[0] ? "" : ", because ", job->reason);
        return room;
    }
    if (2 > job->n_ports) {
        return "the job has one rail only on this node";
    }
    for (size_t i = 0; i < job->n_ports; ++i) {
        if (job->port[i].is_out) {
            snprintf(room, size, "%s is taken out of service (bfo release %s)", job->port[i].port->name, job->port[i].port->name);
            return room;
        }
    }
    return NULL;
}

const char *bt_why_not_cut(const bt_check_t *check, const char *name, char *room, size_t size)
{
    const bt_job_t *job = &check->job;
    const char *why = 0 == check->n ? "the job is over" : why_never(job, room, size);

    if (NULL != why) {
        return why;
    }
    for (size_t i = 0; i < job->n_ports; ++i) {
        if ((BFO_FIGURES_UP != job->port[i].state && BFO_FIGURES_UNUSED != job->port[i].state) || 0 != job->port[i].rails_lost) {
            snprintf(room, size, "%s is %s", job->port[i].port->name, bt_state_name(job->port[i].state));
            return room;
        }
    }
    if (0 != job->n_dead || 0 != job->peers_given_up || 0 != job->peers_on_last_rail || 0 != job->peers_waited_for) {
        return "a process is dead, given up, waited for, or reached over its last rail only";
    }
    if (NULL != name && (NULL == bt_figures_of(check, name) || 0 == bt_figures_of(check, name)->rails)) {
        return "no rail of the job is over it";
    }
    for (size_t i = 0; NULL != name && i < check->n; ++i) {
        if (is_last_of(&check->all.process[check->at + i]->f, name)) {
            snprintf(room, size, "rank %u reaches a process over %s only", check->all.process[check->at + i]->f.rank, name);
            return room;
        }
    }
    return NULL;
}

const char *bt_other_lost(const bt_check_t *check)
{
    for (size_t i = 0; 0 != check->n && i < check->job.n_ports; ++i) {
        const bt_port_t *port = &check->job.port[i];

        if (0 != port->rails_lost && 0 != strcmp(check->now->name, port->port->name)) {
            return port->port->name;
        }
    }
    return NULL;
}

/* ---- questions ------------------------------------------------------------------------------------------------- */

/* Have all ranks received something, and have those here met the processes that they talk to? */
bool bt_has_begun(bt_check_t *check)
{
    return 2 <= check->stream.lines && 0 != check->n && BFO_FIGURES_NOT_KNOWN != check->job.verdict;
}

bool bt_is_calm(bt_check_t *check)
{
    char room[256];

    return (0 != check->n && NULL != why_never(&check->job, room, sizeof(room)))
           || (NULL == bt_why_not_cut(check, NULL, room, sizeof(room)) && bt_goes_on(check));
}

/* Are all rails over the port lost by now, or have they been lost? */
bool bt_is_seen_lost(bt_check_t *check)
{
    const bt_port_t *port = bt_figures_of(check, check->now->name);

    return NULL != port && port->losses - check->before.losses >= check->before.rails;
}

/* Are all its rails in use, and does it carry traffic again, if that is counted? */
bool bt_is_back(bt_check_t *check)
{
    const bt_port_t *port = bt_figures_of(check, check->now->name);

    return NULL != port && 0 == port->rails_lost && BFO_FIGURES_UP == port->state
           && (!port->counts || port->sent_bytes + port->received_bytes > check->carried_before);
}

bool bt_goes_on(bt_check_t *check)
{
    return check->stream.lines >= check->lines_before + 2 && check->stream.messages > check->messages_before;
}
