/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Striping: which rail carries the next bytes, so that over time each gets its share by weight.
 * DESIGN.txt section 14.5.
 */
#ifndef PML_BFO_STRIPE_H
#define PML_BFO_STRIPE_H

#include <stddef.h>
#include <stdint.h>

#define BFO_STRIPE_MAX 8

/* Virtual time per rail: bytes sent so far divided by weight. The rail that is furthest behind is next.
 * Locks: none; a lost update under threads only bends the shares. */
typedef struct {
    uint64_t load[BFO_STRIPE_MAX]; /* (bytes << 10) / weight */
} bfo_stripe_t;

/* Of the rails in `mask` (not 0) the one to send `bytes` next, charged at once. `weight`[r] > 0 for each. */
unsigned bfo_stripe_next(bfo_stripe_t *s, unsigned mask, const uint32_t *weight, size_t bytes);

/* A rail joins: it starts level with the least loaded of `mask`, so that it does not get everything. */
void bfo_stripe_join(bfo_stripe_t *s, unsigned mask, unsigned rail);

#endif /* PML_BFO_STRIPE_H */
