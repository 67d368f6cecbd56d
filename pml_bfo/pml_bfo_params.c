/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MCA parameters: one table, registered once; contradictions are refused with a help text.
 * docs/parameters.md has the same table for people.
 */
#include "pml_bfo.h"

#include "bfo_figures.h"
#include "bfo_help.h"
#include "pml_bfo_params.h"

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

static const struct {
    const char *name, *text;
    mca_base_var_type_t type;
    void *value;
    mca_base_var_info_lvl_t level;
} table[] = {
    {"priority", "Priority told to Open MPI 4.1, which takes the first PML of its list whatever the priorities", MCA_BASE_VAR_TYPE_INT, &bfo_params.priority,
     OPAL_INFO_LVL_9},
    {"verbose", "What is told on stderr: 0 lost rails and peers, once per node; 1 also each process's rails; 2 also every step of "
     "recovery; 3 also every message sent again or dropped",
     MCA_BASE_VAR_TYPE_INT, &bfo_params.verbose, OPAL_INFO_LVL_5},
    {"counters", "Each process prints its counters that are not 0 when it ends", MCA_BASE_VAR_TYPE_BOOL,
     &bfo_params.counters, OPAL_INFO_LVL_4},
    {"warn_no_failover", "Say once per node, at the first contact, if a lost rail would not be survived, and why; and "
     "which components of the job go past this PML", MCA_BASE_VAR_TYPE_BOOL, &bfo_params.warn_no_failover, OPAL_INFO_LVL_3},
    {"say_protected", "Rank 0 says once, at its first contact over two or more rails, that a lost rail would be survived, and names "
     "the rails", MCA_BASE_VAR_TYPE_BOOL, &bfo_params.say_protected, OPAL_INFO_LVL_3},
    {"warnings_per_minute", "Lines about lost rails, and about lost processes, per node and minute at most (0 to 1000); the "
     "next line, or the end, says how many were held back", MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.warnings_per_minute, OPAL_INFO_LVL_4},
    {"rejoin", "A rail that was lost is used again by the same job once it works again", MCA_BASE_VAR_TYPE_BOOL, &bfo_params.rejoin,
     OPAL_INFO_LVL_4},
    {"status_dir", "Directory in which each process keeps a small file of figures for the command bfo, in a folder of the user's "
     "(none: no file)", MCA_BASE_VAR_TYPE_STRING, &bfo_params.status_dir, OPAL_INFO_LVL_4},
    {"last_rail_timeout", "Seconds for which the requests of a peer wait when the last rail to it is lost (0: no longer than a rail is "
     "coming back; -1: for ever). Needs pml_bfo_rejoin 1. A process that has died is waited for as well", MCA_BASE_VAR_TYPE_INT, &bfo_params.last_rail_timeout, OPAL_INFO_LVL_4},
    {"eager_limit", "Longest message sent without rendezvous, in bytes with header (0: smallest of the BTLs' limits; "
     "a larger value than theirs has no effect)", MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.eager_limit,
     OPAL_INFO_LVL_4},
    {"rdma_min", "Shortest message for which memory is registered for RDMA, in bytes (0: the BTLs' choice)",
     MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.rdma_min, OPAL_INFO_LVL_4},
    {"send_pipeline_depth", "Fragments of one message under way at a time, per rail", MCA_BASE_VAR_TYPE_UNSIGNED_INT,
     &bfo_params.send_pipeline_depth, OPAL_INFO_LVL_4},
    {"recv_pipeline_depth", "RDMA transfers of one message under way at a time, per rail",
     MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.recv_pipeline_depth, OPAL_INFO_LVL_4},
    {"frag_size", "Longest RDMA transfer in bytes (0: the BTLs' pipeline fragment size)",
     MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.frag_size, OPAL_INFO_LVL_5},
    {"use_put", "Use RDMA write where the rails have it", MCA_BASE_VAR_TYPE_BOOL, &bfo_params.use_put,
     OPAL_INFO_LVL_5},
    {"use_get", "Use RDMA read where the rails have it and there is one rail, or none that has RDMA write",
     MCA_BASE_VAR_TYPE_BOOL, &bfo_params.use_get, OPAL_INFO_LVL_5},
    {"max_rails", "Rails used to one peer at most, 1 to 8: those of the lowest names", MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.max_rails,
     OPAL_INFO_LVL_4},
    {"max_rdma_per_request", "Rails used for RDMA write of one message at most (0: all)",
     MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.max_rdma_per_request, OPAL_INFO_LVL_9},
    {"max_send_per_range", "Rails used for the fragments of one message at most (0: all)",
     MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.max_send_per_range, OPAL_INFO_LVL_9},
    {"unexpected_limit", "Longest unexpected message, in bytes with header, that is kept in an element of the list; "
     "room for longer ones is allocated", MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.unexpected_limit,
     OPAL_INFO_LVL_9},
    {"resend_burst", "After a rail was lost: fragments sent again to a peer at most in one call of progress",
     MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.resend_burst, OPAL_INFO_LVL_8},
    {"protocol_version", "Protocol version announced to the peers; any other than the default is refused by them",
     MCA_BASE_VAR_TYPE_UNSIGNED_INT, &bfo_params.protocol_version, OPAL_INFO_LVL_9},
    {"free_list_num", "Requests and fragments of each kind allocated at start", MCA_BASE_VAR_TYPE_INT,
     &bfo_params.free_list_num, OPAL_INFO_LVL_9},
    {"free_list_max", "Send requests, and receive requests, at most (-1: no limit)", MCA_BASE_VAR_TYPE_INT,
     &bfo_params.free_list_max, OPAL_INFO_LVL_9},
    {"free_list_inc", "Requests and fragments of each kind allocated at a time", MCA_BASE_VAR_TYPE_INT,
     &bfo_params.free_list_inc, OPAL_INFO_LVL_9},
};

int bfo_params_register(void)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
        const int rc = mca_base_component_var_register(&mca_pml_bfo_component.pmlm_version, table[i].name,
                                                       table[i].text, table[i].type, NULL, 0, 0, table[i].level,
                                                       MCA_BASE_VAR_SCOPE_READONLY, table[i].value);
        if (rc < 0) {
            return rc;
        }
    }
    return OPAL_SUCCESS;
}

static bool refuse(const char *name, const char *value, const char *why)
{
    bfo_help_say("help-pml-bfo.txt", "bad-parameter", name, value, why);
    return false;
}

static const char *text_of(char *room, size_t size, long value)
{
    snprintf(room, size, "%ld", value);
    return room;
}

bool bfo_params_are_sound(void)
{
    const bfo_params_t *p = &bfo_params;
    char v[32];

    if (p->max_rails < 1 || p->max_rails > 8) {
        return refuse("max_rails", text_of(v, sizeof(v), (int) p->max_rails), "it must be 1 to 8");
    }
    if (p->warnings_per_minute > 1000) {
        return refuse("warnings_per_minute", text_of(v, sizeof(v), (int) p->warnings_per_minute), "it must be 0 to 1000");
    }
    if (NULL != p->status_dir && '/' != p->status_dir[0] && 0 != strcmp(BFO_FIGURES_OFF, p->status_dir)) {
        return refuse("status_dir", p->status_dir, "it must be a path that begins with /, or none");
    }
    if (p->last_rail_timeout < -1 || p->last_rail_timeout > 1000000) {
        return refuse("last_rail_timeout", text_of(v, sizeof(v), p->last_rail_timeout), "it must be -1 to 1000000 seconds");
    }
    if (0 != p->last_rail_timeout && !p->rejoin) {
        return refuse("last_rail_timeout", text_of(v, sizeof(v), p->last_rail_timeout),
                      "it must be 0, because no rail comes back unless pml_bfo_rejoin is 1");
    }
    if (p->resend_burst < 1 || p->resend_burst > 1000000) {
        return refuse("resend_burst", text_of(v, sizeof(v), (int) p->resend_burst), "it must be 1 to 1000000");
    }
    if (p->send_pipeline_depth < 1 || p->send_pipeline_depth > 1000) {
        return refuse("send_pipeline_depth", text_of(v, sizeof(v), (int) p->send_pipeline_depth),
                      "it must be 1 to 1000");
    }
    if (p->recv_pipeline_depth < 1 || p->recv_pipeline_depth > 1000) {
        return refuse("recv_pipeline_depth", text_of(v, sizeof(v), (int) p->recv_pipeline_depth),
                      "it must be 1 to 1000");
    }
    if (0 != p->eager_limit && p->eager_limit < 128) {
        return refuse("eager_limit", text_of(v, sizeof(v), (int) p->eager_limit),
                      "it must be 0 (the BTLs' limit) or at least 128 bytes");
    }
    if (0 != p->frag_size && p->frag_size < 1024) {
        return refuse("frag_size", text_of(v, sizeof(v), (int) p->frag_size),
                      "it must be 0 (the BTLs' size) or at least 1024 bytes");
    }
    if (p->unexpected_limit < 64 || p->unexpected_limit > 1u << 20) {
        return refuse("unexpected_limit", text_of(v, sizeof(v), (long) p->unexpected_limit),
                      "it must be 64 to 1048576 bytes");
    }
    if (p->free_list_inc < 1 || p->free_list_num < 0 || (p->free_list_max >= 0 && p->free_list_max < p->free_list_num)) {
        return refuse("free_list_max", text_of(v, sizeof(v), p->free_list_max),
                      "it must be -1 or at least free_list_num, and free_list_inc at least 1");
    }
    return true;
}
