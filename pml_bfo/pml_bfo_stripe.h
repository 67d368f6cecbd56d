/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Striping: which rail carries the next bytes, so that over time each gets its share by weight, and what each rail really delivers.
 * DESIGN.txt section 14.5.
 */
#ifndef PML_BFO_STRIPE_H
#define PML_BFO_STRIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BFO_STRIPE_MAX 8

/* The rail with the least under way for its weight is next; of rails that are alike in this, the one that is furthest behind in virtual
 * time, which is bytes given so far divided by weight.
 * Locks: none; `under_way` and `carried` are atomic, a lost update of another word only bends the shares. */
typedef struct {
    uint64_t load[BFO_STRIPE_MAX];     /* virtual time: (bytes << 18) / weight */
    uint32_t nominal[BFO_STRIPE_MAX];  /* what the BTL says of the rail: its bandwidth << 8 */
    uint32_t weight[BFO_STRIPE_MAX];   /* what the rail was seen to deliver, in the same unit; not 0 */
    int64_t under_way[BFO_STRIPE_MAX]; /* bytes of pieces that have begun and not ended; below 0 while another thread counts a piece's begin */
    uint32_t seen[BFO_STRIPE_MAX];     /* what the last windows showed, the last counting most, in the same unit */
    uint64_t carried[BFO_STRIPE_MAX];  /* bytes that ended while all other rails had some under way, since the last judgement */
    uint8_t slow;                      /* rails that deliver less than half of their share, until it is two thirds again */
} bfo_stripe_t;

/* A rail of `bandwidth` (any unit, alike for all rails; 0: unknown) is one of the peer's. */
void bfo_stripe_add(bfo_stripe_t *s, unsigned rail, uint32_t bandwidth);

/* Of the rails in `mask` (not 0) the one to send `bytes` next, charged at once. */
unsigned bfo_stripe_next(bfo_stripe_t *s, unsigned mask, size_t bytes);

/* As bfo_stripe_next(), but nothing is charged: the caller does it when it knows how much. */
unsigned bfo_stripe_least(const bfo_stripe_t *s, unsigned mask);
void bfo_stripe_charge(bfo_stripe_t *s, unsigned rail, size_t bytes);

/* A rail joins those of `mask`: it is as far as the one that is furthest ahead, or it would carry everything until it has caught up.
 * Nothing is known of what it delivers. */
void bfo_stripe_join(bfo_stripe_t *s, unsigned rail, unsigned mask);

/* A piece of `bytes` of a long message begins on a rail; it ends there, `carried` if all of it arrived. `mask`: rails that carry such
 * pieces. True: another set of rails is slow now. */
void bfo_stripe_begin(bfo_stripe_t *s, unsigned rail, size_t bytes);
bool bfo_stripe_end(bfo_stripe_t *s, unsigned rail, unsigned mask, size_t bytes, bool carried);

/* Bytes of the next piece for `rail` of `mask`, of a message of `length` that goes by all of them: its share by weight, but
 * `most` at most for the fastest, as long for each of the others, and `least` at least. */
size_t bfo_stripe_piece(const bfo_stripe_t *s, unsigned mask, unsigned rail, size_t length, size_t least, size_t most);

#endif /* PML_BFO_STRIPE_H */
