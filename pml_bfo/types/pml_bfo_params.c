/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MCA parameters: one table, registered once; contradictory values are refused with a help text. A parameter that may change while the job
 * runs is registered with a separate variable, which MPI_T writes from any thread; the code reads only checked values.
 * docs/parameters.md has the same table for people. DESIGN.txt section 14.8.
 */
#include "types/pml_bfo.h"

#include "bfo_figures.h"
#include "bfo_help.h"
#include "types/pml_bfo_params.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/runtime/opal_params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bfo_params_t bfo_params = {
    .priority = 1,
    .warn_no_failover = true,
    .say_protected = true,
    .rejoin = true,
    .last_rail_timeout = 300,
    .warnings_per_minute = 8,
    .status_dir = BFO_FIGURES_ROOT,
    .send_pipeline_depth = 3,
    .recv_pipeline_depth = 4,
    .use_put = true,
    .use_get = true,
    .max_rails = 8,
    .unexpected_limit = 512,
    .resend_burst = 64,
    .protocol_version = BFO_PROTOCOL_VERSION,
    .free_list_num = 16,
    .free_list_max = -1,
    .free_list_inc = 64,
};

/* Parameters that may change: the values in Open MPI's variables, and the values accepted or refused last. Atomic. */
static bfo_params_t asked, answered;

static const struct {
    const char *name, *text;
    mca_base_var_type_t type;
    void *value;
    mca_base_var_info_lvl_t level;
    bool may_change;
} table[] = {
    {"priority", "Priority reported to Open MPI 4.1, which takes the first PML of its list whatever the priorities", MCA_BASE_VAR_TYPE_INT,
     &bfo_params.priority, OPAL_INFO_LVL_9},
    {"verbose",
     "What bfo writes to stderr: 0 lost rails and peers, once per node; 1 also each process's rails; 2 also every step of "
     "recovery; 3 also every message sent again or dropped",
     MCA_BASE_VAR_TYPE_INT, &asked.verbose, OPAL_INFO_LVL_5, true},
    {"counters", "Each process prints its counters that are not 0 when it ends", MCA_BASE_VAR_TYPE_BOOL, &asked.counters, OPAL_INFO_LVL_4, true},
    {"warn_no_failover",
     "Say once per node, at the first contact, if a lost rail would not be survived, and why; and "
     "which components of the job go past this PML",
     MCA_BASE_VAR_TYPE_BOOL, &bfo_params.warn_no_failover, OPAL_INFO_LVL_3},
    {"say_protected",
     "Rank 0 says once, at its first contact over two or more rails, that a lost rail would be survived, and names "
     "the rails",
     MCA_BASE_VAR_TYPE_BOOL, &bfo_params.say_protected, OPAL_INFO_LVL_3},
    {"warnings_per_minute",
     "Lines about lost rails, and about lost processes, per node and minute at most (0 to 1000); the "
     "next line, or the end, says how many were held back",
     MCA_BASE_VAR_TYPE_UNSIGNED_INT, &asked.warnings_per_minute, OPAL_INFO_LVL_4, true},
    {"rejoin", "A rail that was lost is used again by the same job once it works again", MCA_BASE_VAR_TYPE_BOOL, &bfo_params.rejoin, OPAL_INFO_LVL_4},
    {"status_dir",
     "Directory in which each process keeps a small file of figures for the command bfo, in a folder of the user's "
     "(none: no file)",
     MCA_BASE_VAR_TYPE_STRING, &bfo_params.status_dir, OPAL_INFO_LVL_4},
    {"pmix_events",
     "Notify the processes of the same node of events of rails, ports and peers by PMIx as well; bfo(7) has the code and the "
     "keys (Open MPI 4.1 only)",
     MCA_BASE_VAR_TYPE_BOOL, &bfo_params.pmix_events, OPAL_INFO_LVL_4},
    {"last_rail_timeout",
     "Seconds for which the requests of a peer wait when the last rail to it is lost, or drained by force (0: no longer than a rail is "
     "coming back, and no rail is drained by force; -1: without limit). A process of which its machine says that it is dead is not waited for. With pml_bfo_rejoin 0 it "
     "is 0. A change also counts for waits that have begun",
     MCA_BASE_VAR_TYPE_INT, &asked.last_rail_timeout, OPAL_INFO_LVL_4, true},
    {"eager_limit",
     "Longest message sent without rendezvous, in bytes with header (0: smallest of the BTLs' limits; "
     "a larger value than theirs has no effect)",
     MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.eager_limit, OPAL_INFO_LVL_4},
    {"rdma_min", "Shortest message for which memory is registered for RDMA, in bytes (0: the BTLs' choice)", MCA_BASE_VAR_TYPE_UNSIGNED_INT,
     &bfo_params.rdma_min, OPAL_INFO_LVL_4},
    {"send_pipeline_depth", "Fragments of one message under way at a time, per rail", MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.send_pipeline_depth,
     OPAL_INFO_LVL_4},
    {"recv_pipeline_depth", "RDMA transfers of one message under way at a time, per rail", MCA_BASE_VAR_TYPE_UNSIGNED_INT,
     &bfo_params.recv_pipeline_depth, OPAL_INFO_LVL_4},
    {"frag_size", "Longest RDMA transfer in bytes (0: the BTLs' pipeline fragment size)", MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.frag_size,
     OPAL_INFO_LVL_5},
    {"use_put", "Use RDMA write where the rails have it, for long messages that are not read", MCA_BASE_VAR_TYPE_BOOL, &bfo_params.use_put,
     OPAL_INFO_LVL_5},
    {"use_get", "Use RDMA read for long messages where the rails have it", MCA_BASE_VAR_TYPE_BOOL, &bfo_params.use_get, OPAL_INFO_LVL_5},
    {"max_rails", "Rails used to one peer at most, 1 to 8: those of the lowest names", MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.max_rails,
     OPAL_INFO_LVL_4},
    {"max_rdma_per_request", "Rails used for RDMA write of one message at most (0: all)", MCA_BASE_VAR_TYPE_UNSIGNED_INT,
     &bfo_params.max_rdma_per_request, OPAL_INFO_LVL_9},
    {"max_send_per_range", "Rails used for the fragments of one message at most (0: all)", MCA_BASE_VAR_TYPE_UNSIGNED_INT,
     &bfo_params.max_send_per_range, OPAL_INFO_LVL_9},
    {"unexpected_limit",
     "Longest unexpected message, in bytes with header, that is kept in an element of the list; "
     "room for longer ones is allocated",
     MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.unexpected_limit, OPAL_INFO_LVL_9},
    {"resend_burst", "After a rail was lost: fragments sent again to a peer at most in one call of progress", MCA_BASE_VAR_TYPE_UNSIGNED_INT,
     &asked.resend_burst, OPAL_INFO_LVL_8, true},
    {"protocol_version", "Protocol version announced to the peers; any other than the default is refused by them", MCA_BASE_VAR_TYPE_UNSIGNED_INT,
     &bfo_params.protocol_version, OPAL_INFO_LVL_9},
    {"free_list_num", "Requests and fragments of each kind allocated at start", MCA_BASE_VAR_TYPE_INT, &bfo_params.free_list_num, OPAL_INFO_LVL_9},
    {"free_list_max", "Send requests, and receive requests, at most (-1: no limit)", MCA_BASE_VAR_TYPE_INT, &bfo_params.free_list_max,
     OPAL_INFO_LVL_9},
    {"free_list_inc", "Requests and fragments of each kind allocated at a time", MCA_BASE_VAR_TYPE_INT, &bfo_params.free_list_inc, OPAL_INFO_LVL_9},
};

/* ---- values by number ------------------------------------------------------------------------------------ */

/* Address of an integer parameter; BFO_PARAMETER_COUNTERS is the only parameter that is no integer. */
static void *place_in(bfo_params_t *p, uint32_t parameter)
{
    switch (parameter) {
    case BFO_PARAMETER_VERBOSE:
        return &p->verbose;
    case BFO_PARAMETER_WARNINGS_PER_MINUTE:
        return &p->warnings_per_minute;
    case BFO_PARAMETER_LAST_RAIL_TIMEOUT:
        return &p->last_rail_timeout;
    case BFO_PARAMETER_RESEND_BURST:
        return &p->resend_burst;
    case BFO_PARAMETER_MAX_RAILS:
        return &p->max_rails;
    case BFO_PARAMETER_SEND_PIPELINE_DEPTH:
        return &p->send_pipeline_depth;
    case BFO_PARAMETER_RECV_PIPELINE_DEPTH:
        return &p->recv_pipeline_depth;
    case BFO_PARAMETER_EAGER_LIMIT:
        return &p->eager_limit;
    case BFO_PARAMETER_FRAG_SIZE:
        return &p->frag_size;
    default:
        return &p->unexpected_limit;
    }
}

static bool is_signed(uint32_t parameter)
{
    return BFO_PARAMETER_VERBOSE == parameter || BFO_PARAMETER_LAST_RAIL_TIMEOUT == parameter;
}

/* The byte of a bool may have any value, because MPI_T may have written it. */
static int64_t value_in(bfo_params_t *p, uint32_t parameter)
{
    BFO_ASSERT(parameter < BFO_PARAMETERS);
    if (BFO_PARAMETER_COUNTERS == parameter) {
        return __atomic_load_n((uint8_t *) &p->counters, __ATOMIC_RELAXED);
    }
    return is_signed(parameter) ? (int64_t) __atomic_load_n((int *) place_in(p, parameter), __ATOMIC_RELAXED)
                                : (int64_t) __atomic_load_n((unsigned *) place_in(p, parameter), __ATOMIC_RELAXED);
}

static void put_in(bfo_params_t *p, uint32_t parameter, int64_t value)
{
    if (BFO_PARAMETER_COUNTERS == parameter) {
        __atomic_store_n((uint8_t *) &p->counters, (uint8_t) value, __ATOMIC_RELAXED);
    } else {
        __atomic_store_n((uint32_t *) place_in(p, parameter), (uint32_t) value, __ATOMIC_RELAXED);
    }
}

int64_t bfo_params_value(uint32_t parameter)
{
    return value_in(&bfo_params, parameter);
}

bool bfo_params_may_be(uint32_t parameter, int64_t value, char why[BFO_PARAMS_WHY])
{
    if (!bfo_range_has(parameter, value)) {
        snprintf(why, BFO_PARAMS_WHY, "it must be %s", bfo_range_of(parameter)->values);
        return false;
    }
    if (BFO_PARAMETER_LAST_RAIL_TIMEOUT == parameter && 0 != value && !bfo_params.rejoin) {
        snprintf(why, BFO_PARAMS_WHY, "it must be 0 unless pml_bfo_rejoin is 1, because no rail comes back");
        return false;
    }
    return true;
}

void bfo_params_set(uint32_t parameter, int64_t value)
{
    BFO_ASSERT(parameter < BFO_PARAMETERS_LIVE);
    put_in(&bfo_params, parameter, value);
    put_in(&answered, parameter, value);
    put_in(&asked, parameter, value);
}

bool bfo_params_asked(uint32_t *parameter, int64_t *value)
{
    for (uint32_t i = 0; i < BFO_PARAMETERS_LIVE; ++i) {
        *parameter = i;
        *value = value_in(&asked, i);
        if (*value != value_in(&answered, i)) {
            return true;
        }
    }
    return false;
}

static void take_asked(void)
{
    for (uint32_t i = 0; i < BFO_PARAMETERS_LIVE; ++i) {
        const int64_t value = value_in(&asked, i);

        put_in(&bfo_params, i, value);
        put_in(&answered, i, value);
    }
}

/* ---- at start ---------------------------------------------------------------------------------------------- */

static bool is_default(int variable)
{
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;

    return OPAL_SUCCESS == mca_base_var_get_value(variable, NULL, &source, NULL) && MCA_BASE_VAR_SOURCE_DEFAULT == source;
}

/* pml_bfo_rejoin comes before pml_bfo_last_rail_timeout in the table, so its value is known in time. */
int bfo_params_register(void)
{
    asked = bfo_params;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
        const bool may_change = PML_BFO && table[i].may_change;
        const int rc = mca_base_component_var_register(&mca_pml_bfo_component.pmlm_version, table[i].name, table[i].text, table[i].type, NULL, 0,
                                                       may_change ? MCA_BASE_VAR_FLAG_SETTABLE : 0, table[i].level,
                                                       may_change ? MCA_BASE_VAR_SCOPE_LOCAL : MCA_BASE_VAR_SCOPE_READONLY, table[i].value);
        if (rc < 0) {
            return rc;
        }
        if (&asked.last_rail_timeout == table[i].value && !bfo_params.rejoin && is_default(rc)) {
            asked.last_rail_timeout = 0; /* no rail comes back: do not wait unless the user asked for it */
        }
    }
    take_asked();
    return OPAL_SUCCESS;
}

static bool refuse(const char *name, const char *value, const char *why)
{
    bfo_help_say("help-pml-bfo.txt", "bad-parameter", name, value, why);
    return false;
}

static bool refuse_number(const char *name, int64_t value, const char *why)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long) value);
    return refuse(name, text, why);
}

bool bfo_params_are_sound(void)
{
    const bfo_params_t *p = &bfo_params;
    char why[BFO_PARAMS_WHY];

    take_asked();
    for (uint32_t i = 0; i < BFO_PARAMETERS; ++i) {
        if (!bfo_params_may_be(i, bfo_params_value(i), why)) {
            return refuse_number(bfo_range_of(i)->name, bfo_params_value(i), why);
        }
    }
    if (NULL != p->status_dir && '/' != p->status_dir[0] && 0 != strcmp(BFO_FIGURES_OFF, p->status_dir)) {
        return refuse("status_dir", p->status_dir, "it must be a path that begins with /, or none");
    }
    if (p->pmix_events && !BFO_OMPI_HAS_PMIX_EVENTS) {
        return refuse("pmix_events", "1", "it must be 0 with this release of Open MPI, because events of PMIx were tried with Open MPI 4.1 only");
    }
    if (p->free_list_inc < 1 || p->free_list_num < 0 || (p->free_list_max >= 0 && p->free_list_max < p->free_list_num)) {
        return refuse_number("free_list_max", p->free_list_max, "it must be -1 or at least free_list_num, and free_list_inc at least 1");
    }
    return true;
}
