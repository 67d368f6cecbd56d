/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which values the parameters pml_bfo_* take, and which of them may change while a job runs. The PML, at start and later, and the command
 * bfo use the same table. It needs no header of Open MPI. DESIGN.txt sections 14.8 and 19.6.
 */
#ifndef BFO_PARAMETERS_H
#define BFO_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

/* These numbers are stored in files, therefore a number is never reused for another parameter. Parameters before BFO_PARAMETERS_LIVE may
 * change while a job runs: code that reads one must cope with any value of its range at any moment. */
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
    bool or_zero;       /* 0 is valid, too */
    const char *values; /* the range in words: "1 to 8" */
} bfo_range_t;

/* The range of a parameter, which must be < BFO_PARAMETERS. */
const bfo_range_t *bfo_range_of(uint32_t parameter);
/* Is the value in the range of that parameter? False also if there is no such parameter. */
bool bfo_range_has(uint32_t parameter, int64_t value);
/* The parameter of that name, with or without the prefix pml_bfo_; BFO_PARAMETERS: the table does not have it. */
uint32_t bfo_range_find(const char *name);

#endif /* BFO_PARAMETERS_H */
