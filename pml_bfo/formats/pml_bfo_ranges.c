/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The ranges of parameters. Plain C without Open MPI, because the command bfo links it too. DESIGN.txt section 14.8.
 */
#include "bfo_parameters.h"

#include <stddef.h>
#include <string.h>

/* For verbose, -1 and 100 are the limits of Open MPI's own verbosity levels. */
static const bfo_range_t ranges[BFO_PARAMETERS] = {
    [BFO_PARAMETER_VERBOSE] = {"verbose", -1, 100, false, "-1 to 100"},
    [BFO_PARAMETER_COUNTERS] = {"counters", 0, 1, false, "0 to 1"},
    [BFO_PARAMETER_WARNINGS_PER_MINUTE] = {"warnings_per_minute", 0, 1000, false, "0 to 1000"},
    [BFO_PARAMETER_LAST_RAIL_TIMEOUT] = {"last_rail_timeout", -1, 1000000, false, "-1 to 1000000 seconds"},
    [BFO_PARAMETER_RESEND_BURST] = {"resend_burst", 1, 1000000, false, "1 to 1000000"},
    [BFO_PARAMETER_MAX_RAILS] = {"max_rails", 1, 8, false, "1 to 8"},
    [BFO_PARAMETER_SEND_PIPELINE_DEPTH] = {"send_pipeline_depth", 1, 1000, false, "1 to 1000"},
    [BFO_PARAMETER_RECV_PIPELINE_DEPTH] = {"recv_pipeline_depth", 1, 1000, false, "1 to 1000"},
    [BFO_PARAMETER_EAGER_LIMIT] = {"eager_limit", 128, UINT32_MAX, true, "0 (the BTLs' limit) or at least 128 bytes"},
    [BFO_PARAMETER_FRAG_SIZE] = {"frag_size", 1024, UINT32_MAX, true, "0 (the BTLs' size) or at least 1024 bytes"},
    [BFO_PARAMETER_UNEXPECTED_LIMIT] = {"unexpected_limit", 64, 1 << 20, false, "64 to 1048576 bytes"},
};

const bfo_range_t *bfo_range_of(uint32_t parameter)
{
    return &ranges[parameter];
}

bool bfo_range_has(uint32_t parameter, int64_t value)
{
    if (parameter >= BFO_PARAMETERS) {
        return false;
    }
    return (ranges[parameter].or_zero && 0 == value) || (ranges[parameter].least <= value && value <= ranges[parameter].most);
}

uint32_t bfo_range_find(const char *name)
{
    const size_t n = strlen(BFO_PARAMETER_PREFIX);
    uint32_t i = 0;

    if (0 == strncmp(name, BFO_PARAMETER_PREFIX, n)) {
        name += n;
    }
    while (i < BFO_PARAMETERS && 0 != strcmp(name, ranges[i].name)) {
        ++i;
    }
    return i;
}
