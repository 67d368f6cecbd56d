/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which values the parameters pml_bfo_* take, and which of them may change while a job runs: one table for the PML, at start and later, and for
 * the command bfo. No header of Open MPI is needed. DESIGN.txt sections 14.8 and 19.6.
 */
#ifndef BFO_PARAMETERS_H
#define BFO_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers that stand in files: a number is never given to another parameter. Those before BFO_PARAMETERS_LIVE may change while a job runs:
 * each place that reads them takes whatever value of the range it finds, at any moment. */
typedef enum {
    BFO_PARAMETER_VERBOSE,
    BFO_PARAMETER_COUNTERS,
    BFO_PARAMETER_WARNINGS_PER_MINUTE,
    BFO_PARAMETER_LAST_RAIL_TIMEOUT,
    BFO_PARAMETER_RESEND_BURST,
    BFO_PARAMETERS_LIVE,
    BFO_PARAMETER_MAX_RAILS = BFO_PARAMETERS_LIVE,
    BFO_PARAMETER_SEND_PIPELINE_DEPTH,
    BFO_PARAMETER_RECV_PIPELINE_DEPTH,
    BFO_PARAMETER_EAGER_LIMIT,
    BFO_PARAMETER_FRAG_SIZE,
    BFO_PARAMETER_UNEXPECTED_LIMIT,
    BFO_PARAMETERS
} bfo_parameter_t;

#define BFO_PARAMETER_PREFIX "pml_bfo_"

typedef struct {
    const char *name; /* without pml_bfo_ */
    int64_t least, most;
    bool or_zero;       /* 0 is right, too */
    const char *values; /* the same for people: "1 to 8" */
} bfo_range_t;

/* Of a parameter < BFO_PARAMETERS. */
const bfo_range_t *bfo_range_of(uint32_t parameter);
/* Is it a value of that parameter? No, if there is no such parameter. */
bool bfo_range_has(uint32_t parameter, int64_t value);
/* The parameter of that name, with or without pml_bfo_; BFO_PARAMETERS: it has no range of ours. */
uint32_t bfo_range_find(const char *name);

#endif /* BFO_PARAMETERS_H */
