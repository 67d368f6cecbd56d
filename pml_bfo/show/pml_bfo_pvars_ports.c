/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MPI_T performance variables pml_bfo_port_*: one value per local port, from the figures of this process, in the order in which the
 * ports were first used; pml_bfo_port_names has their names. DESIGN.txt section 14.9.
 */
#include "types/pml_bfo.h"

#include "show/pml_bfo_figures.h"
#include "types/pml_bfo_local.h"
#include "show/pml_bfo_pvars_ports.h"

#include "opal/mca/base/mca_base_pvar.h"

#include <string.h>
#include <time.h>

typedef struct {
    const char *name, *text;
    int class;
    uint64_t (*read)(const bfo_figures_t *f, uint32_t port);
} variable_t;

/* Sums the counters at these offsets over the port's modules. */
static uint64_t sum_of(const bfo_figures_t *f, uint32_t port, const size_t *offset, size_t n)
{
    uint64_t sum = 0;

    for (uint32_t m = 0; m < f->n_modules && m < BFO_FIGURES_MODULES; ++m) {
        for (size_t i = 0; port == f->module_port[m] && i < n; ++i) {
            sum += __atomic_load_n((const uint64_t *) ((const char *) &f->traffic[m] + offset[i]), __ATOMIC_RELAXED);
        }
    }
    return sum;
}
#define SUM(...) sum_of(f, port, (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))
#define OF(field) offsetof(bfo_traffic_t, field)

static uint64_t sent_bytes(const bfo_figures_t *f, uint32_t port)
{
    return SUM(OF(sent_bytes), OF(written_bytes), OF(peer_read_bytes));
}
static uint64_t received_bytes(const bfo_figures_t *f, uint32_t port)
{
    return SUM(OF(received_bytes), OF(read_bytes), OF(peer_written_bytes));
}
static uint64_t sent_messages(const bfo_figures_t *f, uint32_t port)
{
    return SUM(OF(sent_messages));
}
static uint64_t received_messages(const bfo_figures_t *f, uint32_t port)
{
    return SUM(OF(received_messages));
}
static uint64_t resent(const bfo_figures_t *f, uint32_t port)
{
    return f->port[port].resent;
}
static uint64_t lost(const bfo_figures_t *f, uint32_t port)
{
    return f->port[port].losses;
}
static uint64_t returned(const bfo_figures_t *f, uint32_t port)
{
    return f->port[port].returns;
}
static uint64_t lost_at(const bfo_figures_t *f, uint32_t port)
{
    return f->port[port].lost_wall;
}
static uint64_t penalty(const bfo_figures_t *f, uint32_t port)
{
    return f->port[port].penalty;
}

static uint64_t down(const bfo_figures_t *f, uint32_t port)
{
    const bfo_figures_port_t *p = &f->port[port];

    return p->down_ns + (BFO_FIGURES_LOST == p->state ? bfo_clock_ns(CLOCK_MONOTONIC) - p->since_mono : 0);
}

static const variable_t variables[] = {
    {"port_sent_bytes", "bytes that each port has sent: messages with their headers, and RDMA of either side", MCA_BASE_PVAR_CLASS_COUNTER,
     sent_bytes},
    {"port_received_bytes", "bytes that each port has received, likewise", MCA_BASE_PVAR_CLASS_COUNTER, received_bytes},
    {"port_sent_messages", "messages that each port has sent, without RDMA", MCA_BASE_PVAR_CLASS_COUNTER, sent_messages},
    {"port_received_messages", "messages that each port has received, without RDMA", MCA_BASE_PVAR_CLASS_COUNTER, received_messages},
    {"port_resent", "messages sent again, or restarted, after a rail of the port was lost", MCA_BASE_PVAR_CLASS_COUNTER, resent},
    {"port_lost", "rails of each port that were lost so far", MCA_BASE_PVAR_CLASS_COUNTER, lost},
    {"port_returned", "rails of each port that came back so far", MCA_BASE_PVAR_CLASS_COUNTER, returned},
    {"port_lost_at", "time of each port's last loss of a rail, in ns since 1970, 0: none", MCA_BASE_PVAR_CLASS_GENERIC, lost_at},
    {"port_down_ns", "how long all rails of each port were lost, in ns and in sum", MCA_BASE_PVAR_CLASS_COUNTER, down},
    {"port_penalty", "largest penalty of each port's rails for having fallen; 1000 a fall, it decays", MCA_BASE_PVAR_CLASS_GENERIC, penalty},
};

static int read_values(const mca_base_pvar_t *pvar, void *value, void *object)
{
    const bfo_figures_t *f = bfo_figures_now();
    const variable_t *variable = pvar->ctx;
    unsigned long long *values = value;

    memset(values, 0, BFO_FIGURES_PORTS * sizeof(*values));
    for (uint32_t port = 0; port < f->n_ports && port < BFO_FIGURES_PORTS; ++port) {
        values[port] = variable->read(f, port);
    }
    return OPAL_SUCCESS;
}

static int values_notify(mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *object, int *count)
{
    if (MCA_BASE_PVAR_HANDLE_BIND == event) {
        *count = BFO_FIGURES_PORTS;
    }
    return OPAL_SUCCESS;
}

/* Room for all names with commas between them, and a terminating 0. */
enum { NAMES = BFO_FIGURES_PORTS * sizeof(((bfo_figures_port_t *) 0)->name) };

static int read_names(const mca_base_pvar_t *pvar, void *value, void *object)
{
    const bfo_figures_t *f = bfo_figures_now();
    char *text = value;
    size_t at = 0;

    memset(text, 0, NAMES);
    for (uint32_t port = 0; port < f->n_ports && port < BFO_FIGURES_PORTS; ++port) {
        at += (size_t) snprintf(text + at, NAMES - at, "%s%.62s", 0 == port ? "" : ",", f->port[port].name);
    }
    return OPAL_SUCCESS;
}

static int names_notify(mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *object, int *count)
{
    if (MCA_BASE_PVAR_HANDLE_BIND == event) {
        *count = NAMES;
    }
    return OPAL_SUCCESS;
}

void bfo_pvars_register_ports(void)
{
    const mca_base_pvar_flag_t flags = MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS;

    (void) mca_base_component_pvar_register(&mca_pml_bfo_component.pmlm_version, "port_names",
                                            "names of the ports of the variables pml_bfo_port_*, in their order, with commas between",
                                            OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_GENERIC, MCA_BASE_VAR_TYPE_STRING, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
                                            flags, read_names, NULL, names_notify, NULL);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); ++i) {
        (void) mca_base_component_pvar_register(&mca_pml_bfo_component.pmlm_version, variables[i].name, variables[i].text, OPAL_INFO_LVL_4,
                                                variables[i].class, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT, flags,
                                                read_values, NULL, values_notify, (void *) &variables[i]);
    }
}
