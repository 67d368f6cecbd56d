/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo status --prometheus: the text format of node_exporter's textfile collector. Labels device and port are those of
 * node_infiniband_*. DESIGN.txt section 19.
 */
#include "bt.h"

#include <string.h>

typedef struct {
    const char *name, *type, *help;
    double (*value)(const bt_job_t *job, const bt_port_t *port); /* port NULL: the job's value */
} metric_t;

static double port_up(const bt_job_t *job, const bt_port_t *port)
{
    return BFO_FIGURES_UP == port->state;
}
static double port_rails(const bt_job_t *job, const bt_port_t *port)
{
    return port->rails;
}
static double port_rails_lost(const bt_job_t *job, const bt_port_t *port)
{
    return port->rails_lost;
}
static double port_lost(const bt_job_t *job, const bt_port_t *port)
{
    return (double) port->losses;
}
static double port_out(const bt_job_t *job, const bt_port_t *port)
{
    return port->is_out;
}
static double port_returned(const bt_job_t *job, const bt_port_t *port)
{
    return (double) port->returns;
}
static double port_since(const bt_job_t *job, const bt_port_t *port)
{
    return (double) (port->port->since_wall / 1000000) / 1e3;
}
static double port_sent(const bt_job_t *job, const bt_port_t *port)
{
    return (double) port->sent_bytes;
}
static double port_received(const bt_job_t *job, const bt_port_t *port)
{
    return (double) port->received_bytes;
}
static double port_messages_sent(const bt_job_t *job, const bt_port_t *port)
{
    return (double) port->sent_messages;
}
static double port_messages_received(const bt_job_t *job, const bt_port_t *port)
{
    return (double) port->received_messages;
}
static double port_resent(const bt_job_t *job, const bt_port_t *port)
{
    return (double) port->resent;
}
static double port_down(const bt_job_t *job, const bt_port_t *port)
{
    return (double) port->down_ns / 1e9;
}
static double port_penalty(const bt_job_t *job, const bt_port_t *port)
{
    return port->penalty;
}
static double waited_for(const bt_job_t *job, const bt_port_t *port)
{
    return (double) job->peers_waited_for;
}
static double ranks(const bt_job_t *job, const bt_port_t *port)
{
    return (double) job->n;
}
static double ranks_dead(const bt_job_t *job, const bt_port_t *port)
{
    return (double) job->n_dead;
}
static double in_force(const bt_job_t *job, const bt_port_t *port)
{
    return BFO_FIGURES_IN_FORCE == job->verdict;
}
static double given_up(const bt_job_t *job, const bt_port_t *port)
{
    return (double) job->peers_given_up;
}
static double on_last_rail(const bt_job_t *job, const bt_port_t *port)
{
    return (double) job->peers_on_last_rail;
}
static double resent(const bt_job_t *job, const bt_port_t *port)
{
    return (double) job->resent;
}

static const metric_t of_ports[] = {
    {"bfo_port_up", "gauge", "1 if every rail of the job over this port is in use.", port_up},
    {"bfo_port_rails", "gauge", "Rails of the job's processes on this node over this port.", port_rails},
    {"bfo_port_rails_lost", "gauge", "Of those, rails that are lost now.", port_rails_lost},
    {"bfo_port_out", "gauge", "1 if the port is taken out of service (bfo drain).", port_out},
    {"bfo_port_data_transmitted_bytes_total", "counter", "Bytes that the job's processes have sent over this port, RDMA of either side included.",
     port_sent},
    {"bfo_port_data_received_bytes_total", "counter", "Bytes that they have received over this port, likewise.", port_received},
    {"bfo_port_messages_transmitted_total", "counter", "Messages that they have sent over this port, without RDMA.", port_messages_sent},
    {"bfo_port_messages_received_total", "counter", "Messages that they have received over this port, without RDMA.", port_messages_received},
    {"bfo_port_messages_resent_total", "counter", "Messages sent again after a rail of this port was lost.", port_resent},
    {"bfo_port_down_seconds_total", "counter", "How long all rails over this port were lost, in the process where it was longest.", port_down},
    {"bfo_port_penalty", "gauge", "Largest penalty of the rails over this port for having fallen; 1000 a fall, it decays.", port_penalty},
    {"bfo_port_rails_lost_total", "counter", "Rails lost so far.", port_lost},
    {"bfo_port_rails_returned_total", "counter", "Rails that came back so far.", port_returned},
    {"bfo_port_state_since_seconds", "gauge", "Unix time of the last change of the port's state for the job.", port_since},
};
static const metric_t of_jobs[] = {
    {"bfo_job_ranks", "gauge", "Processes of the job on this node.", ranks},
    {"bfo_job_ranks_dead", "gauge", "Of those, processes that ended without MPI_Finalize.", ranks_dead},
    {"bfo_job_failover_in_force", "gauge", "1 if a lost rail is survived.", in_force},
    {"bfo_job_peers_given_up", "gauge", "Pairs of processes that no rail joins any more.", given_up},
    {"bfo_job_peers_waited_for", "gauge", "Pairs of processes without a rail whose requests wait for one.", waited_for},
    {"bfo_job_peers_on_last_rail", "gauge", "Pairs of processes that had more rails and have one.", on_last_rail},
    {"bfo_job_messages_resent_total", "counter", "Messages sent again.", resent},
};

/* Texts were cleaned when they were read; only quotation marks and backslashes need care here. */
static void print_label(const char *name, const char *value, size_t length, const char *before)
{
    printf("%s%s=\"", before, name);
    for (size_t i = 0; i < length && '\0' != value[i]; ++i) {
        printf('"' == value[i] || '\\' == value[i] ? "\\%c" : "%c", value[i]);
    }
    putchar('"');
}

static void print_sample(const metric_t *metric, const bt_job_t *job, const bt_port_t *port)
{
    char name[16], uid[16];

    snprintf(uid, sizeof(uid), "%u", (unsigned) job->first->uid);
    fputs(metric->name, stdout);
    print_label("job_id", bt_job_name(name, job->first->f.job), sizeof(name), "{");
    print_label("batch", job->first->f.batch, sizeof(job->first->f.batch), ",");
    print_label("uid", uid, sizeof(uid), ",");
    if (NULL != port) {
        const char *colon = strrchr(port->port->name, ':');
        const size_t length = NULL == colon ? strlen(port->port->name) : (size_t) (colon - port->port->name);

        print_label("device", port->port->name, length, ",");
        print_label("port", NULL == colon ? "" : colon + 1, sizeof(port->port->name), ",");
    }
    printf("} %.15g\n", metric->value(job, port));
}

static void print_metric(const metric_t *metric, const bt_all_t *all, bool is_of_port)
{
    printf("# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name, metric->type);
    for (size_t at = 0; at < all->n; at += bt_job_size(all, at)) {
        bt_job_t job;

        bt_job_sum(&job, all, at, bt_job_size(all, at));
        if (!is_of_port) {
            print_sample(metric, &job, NULL);
        }
        for (size_t i = 0; is_of_port && i < job.n_ports; ++i) {
            print_sample(metric, &job, &job.port[i]);
        }
    }
}

void bt_print_prometheus(const bt_all_t *all)
{
    for (size_t i = 0; i < sizeof(of_jobs) / sizeof(of_jobs[0]); ++i) {
        print_metric(&of_jobs[i], all, false);
    }
    for (size_t i = 0; i < sizeof(of_ports) / sizeof(of_ports[0]); ++i) {
        print_metric(&of_ports[i], all, true);
    }
}
