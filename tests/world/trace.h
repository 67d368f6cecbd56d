/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Random numbers, and the trace of a run; world.h has what all parts call.
 */
#ifndef WORLD_TRACE_H
#define WORLD_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Everything that is drawn comes from this seed from now on. */
void trace_begin(uint64_t seed);
/* These bytes become part of the fingerprint. */
void trace_mix(const void *data, size_t size);
/* Of all that world_trace() wrote. */
uint64_t trace_fingerprint(void);

extern bool trace_is_verbose;

#endif /* WORLD_TRACE_H */
