/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A job on this node: the sum over its processes. The present state comes from the living ones only, unless all are dead. DESIGN.txt
 * section 19.
 */
#include "bt.h"

#include <string.h>

static bt_port_t *port_of(bt_job_t *job, const bfo_figures_port_t *port)
{
    for (size_t i = 0; i < job->n_ports; ++i) {
        if (0 == strcmp(job->port[i].port->name, port->name)) {
            return &job->port[i];
        }
    }
    if (BFO_FIGURES_PORTS == job->n_ports) {
        return NULL;
    }
    job->port[job->n_ports] = (bt_port_t){.port = port, .state = port->state};
    return &job->port[job->n_ports++];
}

static bool stands_out(uint32_t state)
{
    return BFO_FIGURES_DRAINED == state || BFO_FIGURES_DRAINING == state;
}

static bool is_down(uint32_t state)
{
    return BFO_FIGURES_LOST == state || BFO_FIGURES_NEVER_UP == state;
}

/* The state of a port that two processes see together. A process that does not use the port does not count. */
static uint32_t both(uint32_t a, uint32_t b)
{
    if (a == b || BFO_FIGURES_UNUSED == b) {
        return a;
    }
    if (BFO_FIGURES_UNUSED == a) {
        return b;
    }
    return stands_out(a) || stands_out(b) ? BFO_FIGURES_DRAINING : is_down(a) && is_down(b) ? BFO_FIGURES_LOST : BFO_FIGURES_PART;
}

static void add_traffic(bt_port_t *sum, const bfo_figures_t *f, uint32_t port)
{
    for (uint32_t m = 0; m < f->n_modules; ++m) {
        const bfo_traffic_t *t = &f->traffic[m];

        if (port == f->module_port[m]) {
            sum->counts = true;
            sum->sent_messages += t->sent_messages;
            sum->received_messages += t->received_messages;
            sum->sent_bytes += t->sent_bytes + t->written_bytes + t->peer_read_bytes;
            sum->received_bytes += t->received_bytes + t->read_bytes + t->peer_written_bytes;
        }
    }
}

uint64_t bt_down_ns(const bfo_figures_port_t *port)
{
    const uint64_t now = bt_wall_ns(); /* the wall clock, because the port may belong to another node */

    return port->down_ns + (BFO_FIGURES_LOST == port->state && now > port->since_wall ? now - port->since_wall : 0);
}

static void add_losses(bt_port_t *sum, const bfo_figures_port_t *port)
{
    const uint64_t down_ns = bt_down_ns(port);

    sum->losses += port->losses;
    sum->returns += port->returns;
    sum->resent += port->resent;
    sum->downs = port->downs > sum->downs ? port->downs : sum->downs;
    sum->lost_wall = port->lost_wall > sum->lost_wall ? port->lost_wall : sum->lost_wall;
    sum->down_ns = down_ns > sum->down_ns ? down_ns : sum->down_ns;
    sum->penalty = port->penalty > sum->penalty ? port->penalty : sum->penalty;
    sum->rails_held += port->rails_held;
    sum->rails_asking += port->rails_asking;
}

static void add_ports(bt_job_t *job, const bfo_figures_t *f)
{
    for (uint32_t i = 0; i < f->n_ports; ++i) {
        bt_port_t *sum = port_of(job, &f->port[i]);

        if (NULL != sum) {
            sum->state = both(sum->state, f->port[i].state);
            sum->is_out = sum->is_out || 0 != f->port[i].is_out;
            sum->rails_kept += f->port[i].rails_kept;
            sum->rails_draining += f->port[i].rails_draining;
            sum->rails_drained += f->port[i].rails_drained;
            sum->rails += f->port[i].rails;
            sum->rails_lost += f->port[i].rails_lost;
            add_losses(sum, &f->port[i]);
            add_traffic(sum, f, i);
            if (f->port[i].since_mono > sum->port->since_mono) {
                sum->port = &f->port[i];
            }
        }
    }
}

void bt_job_sum(bt_job_t *job, const bt_all_t *all, size_t at, size_t n)
{
    memset(job, 0, sizeof(*job));
    job->first = all->process[at];
    job->n = n;
    job->reason = "";
    for (size_t i = at; i < at + n; ++i) {
        job->n_dead += !all->process[i]->alive;
    }
    for (size_t i = at; i < at + n; ++i) {
        const bfo_figures_t *f = &all->process[i]->f;

        if (!all->process[i]->alive && job->n_dead < n) {
            continue;
        }
        if (f->verdict > job->verdict) { /* the worst verdict counts */
            job->verdict = f->verdict;
            job->reason = f->reason;
        }
        job->ranks = f->ranks > job->ranks ? f->ranks : job->ranks;
        job->peers_given_up += f->peers_given_up;
        job->peers_on_last_rail += f->peers_on_last_rail;
        job->peers_waited_for += f->peers_waited_for;
        job->resent += f->resent;
        add_ports(job, f);
    }
    for (size_t i = 0; i < job->n_ports; ++i) {
        job->n_ports_lost += BFO_FIGURES_UP != job->port[i].state && BFO_FIGURES_UNUSED != job->port[i].state && !stands_out(job->port[i].state);
    }
}

bool bt_job_is_well(const bt_job_t *job)
{
    return 0 == job->n_dead && 0 == job->n_ports_lost && 0 == job->peers_given_up && 0 == job->peers_waited_for
           && BFO_FIGURES_NOT_IN_FORCE != job->verdict;
}
