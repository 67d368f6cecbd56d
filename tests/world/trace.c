/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Random numbers, and the trace of a run. See trace.h.
 */
#include "trace.h"

#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool trace_is_verbose;

static uint64_t random_state, fingerprint;

void trace_begin(uint64_t seed)
{
    random_state = seed;
    fingerprint = UINT64_C(0xcbf29ce484222325);
}

static uint64_t next_random(void)
{
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

unsigned world_draw(unsigned n)
{
    return (unsigned) ((next_random() >> 32) * n >> 32);
}

bool world_chance(unsigned n)
{
    return world_draw(1000) < n;
}

void trace_mix(const void *data, size_t size)
{
    const uint8_t *byte = data;

    for (size_t i = 0; i < size; ++i) {
        fingerprint = (fingerprint ^ byte[i]) * UINT64_C(0x100000001b3);
    }
}

void world_trace(const char *format, ...)
{
    char line[500];
    va_list values;
    int n = snprintf(line, sizeof(line), "%12.6f %c%u ", (double) world_now / 1e9, NULL != world_me ? 'r' : 'h',
                     NULL != world_me ? world_me->rank : 0);

    va_start(values, format);
    vsnprintf(line + n, sizeof(line) - (size_t) n, format, values);
    va_end(values);
    trace_mix(line, strlen(line));
    if (trace_is_verbose) {
        fprintf(stderr, "%s\n", line);
    }
}

uint64_t trace_fingerprint(void)
{
    return fingerprint;
}
