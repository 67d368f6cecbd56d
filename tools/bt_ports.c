/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A job on this node: the sum over its processes. Only living ones are asked what is now, unless all are dead. DESIGN.txt section 19.
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

/* What two processes together make of a port. */
static uint32_t both(uint32_t a, uint32_t b)
{
    return a == b ? a : stands_out(a) || stands_out(b) ? BFO_FIGURES_DRAINING : BFO_FIGURES_PART;
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
            sum->losses += f->port[i].losses;
            sum->returns += f->port[i].returns;
            sum->downs = f->port[i].downs > sum->downs ? f->port[i].downs : sum->downs;
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
        if (f->verdict > job->verdict) { /* what is worse counts more */
            job->verdict = f->verdict;
            job->reason = f->reason;
        }
        job->ranks = f->ranks > job->ranks ? f->ranks : job->ranks;
        job->peers_given_up += f->peers_given_up;
        job->peers_on_last_rail += f->peers_on_last_rail;
        job->resent += f->resent;
        add_ports(job, f);
    }
    for (size_t i = 0; i < job->n_ports; ++i) {
        job->n_ports_lost += BFO_FIGURES_UP != job->port[i].state && !stands_out(job->port[i].state);
    }
}

bool bt_job_is_well(const bt_job_t *job)
{
    return 0 == job->n_dead && 0 == job->n_ports_lost && 0 == job->peers_given_up && BFO_FIGURES_NOT_IN_FORCE != job->verdict;
}
