/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MCA parameters. DESIGN.txt section 14.8.
 */
#ifndef PML_BFO_PARAMS_H
#define PML_BFO_PARAMS_H

#include "pml_bfo_sync.h"

#include <stdbool.h>

typedef struct {
    int priority;
    int verbose;                /* BFO_TELL_* */
    bool counters;
    bool warn_no_failover, say_protected;
    unsigned warnings_per_minute;
    bool rejoin;
    const char *status_dir;     /* of the files of figures; BFO_FIGURES_OFF or NULL: none */
    int last_rail_timeout;      /* seconds; -1: for ever */
    unsigned eager_limit;       /* bytes, 0 = the BTLs' */
    unsigned rdma_min;          /* bytes, 0 = the BTLs' */
    unsigned send_pipeline_depth;
    unsigned recv_pipeline_depth;
    unsigned frag_size;         /* bytes, 0 = the BTLs' */
    bool use_put;
    bool use_get;
    unsigned max_rails;
    unsigned max_rdma_per_request; /* rails, 0 = all */
    unsigned max_send_per_range;   /* rails, 0 = all */
    unsigned unexpected_limit;  /* bytes */
    unsigned resend_burst;      /* resends to a peer in one call of progress */
    unsigned protocol_version;  /* announced; other than ours only to test the refusal */
    int free_list_num;
    int free_list_max;
    int free_list_inc;
} bfo_params_t;

extern BFO_OURS bfo_params_t bfo_params;

/* Registers the table. */
int bfo_params_register(void);
/* False if the values contradict each other; says so with a help text. */
bool bfo_params_are_sound(void);

#endif /* PML_BFO_PARAMS_H */
