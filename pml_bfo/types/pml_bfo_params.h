/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MCA parameters. DESIGN.txt section 14.8.
 */
#ifndef PML_BFO_PARAMS_H
#define PML_BFO_PARAMS_H

#include "bfo_parameters.h"
#include "formats/pml_bfo_sync.h"

#include <stdbool.h>

/* Parameters before BFO_PARAMETERS_LIVE in bfo_parameter_t may change while the job runs: they are atomic, read with bfo_param(). */
typedef struct {
    int priority;
    int verbose; /* BFO_TELL_* */
    bool counters;
    bool warn_no_failover, say_protected;
    unsigned warnings_per_minute;
    bool rejoin;
    const char *status_dir; /* directory of the files of figures; BFO_FIGURES_OFF or NULL: none */
    bool pmix_events;       /* events of rails are also sent as PMIx events */
    int last_rail_timeout;  /* seconds; -1: without limit */
    unsigned eager_limit;   /* bytes, 0 = the BTLs' */
    unsigned rdma_min;      /* bytes, 0 = the BTLs' */
    unsigned send_pipeline_depth;
    unsigned recv_pipeline_depth;
    unsigned frag_size; /* bytes, 0 = the BTLs' */
    bool use_put;
    bool use_get;
    unsigned max_rails;
    unsigned max_rdma_per_request; /* rails, 0 = all */
    unsigned max_send_per_range;   /* rails, 0 = all */
    unsigned unexpected_limit;     /* bytes */
    unsigned resend_burst;         /* resends to a peer in one call of progress */
    unsigned protocol_version;     /* announced in the modex; differs from ours only to test the refusal */
    int free_list_num;
    int free_list_max;
    int free_list_inc;
} bfo_params_t;

extern BFO_OURS bfo_params_t bfo_params;

/* The current value of a parameter that may change while the job runs. */
#define bfo_param(name) __atomic_load_n(&bfo_params.name, __ATOMIC_RELAXED)

/* Registers the table. */
int bfo_params_register(void);
/* Also takes over what a program has asked for before MPI_Init. False if the values contradict each other; a help text says so. */
bool bfo_params_are_sound(void);

/* ---- while the job runs: `parameter` is one of those that may change -------------------------------------- */

enum { BFO_PARAMS_WHY = 80 };
/* The current value. */
int64_t bfo_params_value(uint32_t parameter) BFO_COLD;
/* May the parameter have this value? If not, `why` says why. */
bool bfo_params_may_be(uint32_t parameter, int64_t value, char why[BFO_PARAMS_WHY]) BFO_COLD;
/* Sets the value, which MPI_T reads from now on. The caller has checked the value. */
void bfo_params_set(uint32_t parameter, int64_t value) BFO_COLD;
/* Has the program written a variable of MPI_T? If so, returns which one and the value, which is not checked yet. The value takes no effect
 * until the caller accepts or refuses it with bfo_params_set(). */
bool bfo_params_asked(uint32_t *parameter, int64_t *value);

#endif /* PML_BFO_PARAMS_H */
