/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Calls that fail (calls.def). The plan names a kind of call, and the first call of this kind that fails, counted over all processes. The
 * same process then meets the failure for a while, on the same rail if the call belongs to a rail.
 */
#include "host.h"

#include <string.h>

enum { WHOLE_PROCESS = CALL_get_device_list };

const char *const failures_names[CALLS] = {
#define CALL(name, meaning) [CALL_##name] = meaning,
#include "calls.def"
#undef CALL
};

static uint64_t counts[CALLS];
static bool has_begun;
static unsigned its_rank, its_rail;
static uint64_t until;

bool world_call_fails(world_call_t call, unsigned rail)
{
    if (NULL == world_me) {
        return false;
    }
    ++counts[call];
    if (CALL_none == call || PLAN_OF(fails) != call) {
        return false;
    }
    if (!has_begun) {
        if (counts[call] < PLAN_OF(fails_from)) {
            return false;
        }
        has_begun = true;
        its_rank = world_me->rank;
        its_rail = rail;
        until = world_now + WORLD_US * PLAN_OF(fails_for);
    } else if (world_now >= until || world_me->rank != its_rank || rail != its_rail) {
        return false;
    }
    world_trace("call %llu fails: %s, rail %u", (unsigned long long) counts[call], failures_names[call], rail);
    return true;
}

bool world_memory_ends(const char *file)
{
    return NULL == strstr(file, "/openmpi/") && world_call_fails(CALL_memory, 0);
}

const uint64_t *failures_counts(void)
{
    return counts;
}

bool failures_met(unsigned rank)
{
    return has_begun && rank == its_rank;
}

bool failures_cost(unsigned rank, unsigned rail)
{
    return failures_met(rank) && (WHOLE_PROCESS >= PLAN_OF(fails) || rail == its_rail);
}

bool failures_are_harmless(void)
{
    return !has_begun || (1 < PLAN_OF(rails) && WHOLE_PROCESS < PLAN_OF(fails));
}
