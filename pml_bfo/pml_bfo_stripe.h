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

/* As bfo_stripe_next(), but nothing is charged: the caller does it when it knows how much. */
unsigned bfo_stripe_least(const bfo_stripe_t *s, unsigned mask);
void bfo_stripe_charge(bfo_stripe_t *s, unsigned rail, const uint32_t *weight, size_t bytes);

/* A rail joins those of `mask`: it is as far as the one that is furthest ahead, or it would carry everything until it has caught up. */
void bfo_stripe_join(bfo_stripe_t *s, unsigned rail, unsigned mask);

/* Bytes of the next piece for `rail` of `mask`, of a message of `length` that goes by all of them: its share by weight, but
 * `most` at most for the fastest, as long for each of the others, and `least` at least. */
size_t bfo_stripe_piece(unsigned mask, unsigned rail, const uint32_t *weight, size_t length, size_t least, size_t most);

#endif /* PML_BFO_STRIPE_H */
