/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Striping: which rail carries the next bytes, so that over time each gets its share by weight, and how much each rail really delivers.
 * Turns: which rail carries the next first fragment.
 * DESIGN.txt section 14.5.
 */
#ifndef PML_BFO_STRIPE_H
#define PML_BFO_STRIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BFO_STRIPE_MAX 8

/* The rail with the fewest bytes in flight for its weight is next; among equal rails, the one with the least virtual
 * time, which is the bytes given to it so far divided by its weight.
 * Locks: none; `under_way` and `carried` are atomic, a lost update of another word only shifts the shares a little. */
typedef struct {
    uint64_t load[BFO_STRIPE_MAX];     /* virtual time: (bytes << 18) / weight */
    uint32_t nominal[BFO_STRIPE_MAX];  /* bandwidth that the BTL states, << 8 */
    uint32_t weight[BFO_STRIPE_MAX];   /* `nominal`, or the bandwidth that was measured if a rail delivers too little, in the same unit; not 0 */
    int64_t under_way[BFO_STRIPE_MAX]; /* bytes of pieces in flight; below 0 while another thread is still counting the begin of a piece */
    uint32_t seen[BFO_STRIPE_MAX];     /* bandwidth measured in the last windows, the latest with the most weight, in the same unit */
    uint64_t carried[BFO_STRIPE_MAX];  /* bytes that ended while all other rails had bytes in flight, since the last judgement */
    uint8_t slow;                      /* rails that deliver less than half of their share, until they deliver two thirds again */
} bfo_stripe_t;

/* Adds a rail of `bandwidth` (in any unit, the same for all rails; 0: unknown) to those of the peer. */
void bfo_stripe_add(bfo_stripe_t *s, unsigned rail, uint32_t bandwidth);

/* Chooses the rail in `mask` (not 0) to send the next `bytes`, and charges it. */
unsigned bfo_stripe_next(bfo_stripe_t *s, unsigned mask, size_t bytes);

/* As bfo_stripe_next(), but charges nothing: the caller charges the rail when the number of bytes is known. */
unsigned bfo_stripe_least(const bfo_stripe_t *s, unsigned mask);
void bfo_stripe_charge(bfo_stripe_t *s, unsigned rail, size_t bytes);

/* Adds a rail to those of `mask`, with the largest virtual time among them. Otherwise the new rail would carry everything until its time had
 * caught up. Forgets what was measured of the rail. */
void bfo_stripe_join(bfo_stripe_t *s, unsigned rail, unsigned mask);

/* A piece of `bytes` of a long message begins on a rail, or ends there; `carried`: all of it arrived. `mask`: rails that carry such
 * pieces. bfo_stripe_end() returns true if the set of slow rails has changed. */
void bfo_stripe_begin(bfo_stripe_t *s, unsigned rail, size_t bytes);
bool bfo_stripe_end(bfo_stripe_t *s, unsigned rail, unsigned mask, size_t bytes, bool carried);

/* Bytes of the next piece for `rail`, of a message of `length` that is spread over all rails of `mask`: its share by weight, but at most
 * `most` for the fastest rail, a piece that takes the same time for each other rail, and at least `least`. */
size_t bfo_stripe_piece(const bfo_stripe_t *s, unsigned mask, unsigned rail, size_t length, size_t least, size_t most);

/* A rail has its turn for BFO_TURN_BYTES of first fragments, and each of them counts BFO_TURN_LEAST bytes more than its message has. */
#define BFO_TURN_SHIFT 13
#define BFO_TURN_BYTES (1u << BFO_TURN_SHIFT)
#ifndef BFO_TURN_LEAST
#define BFO_TURN_LEAST 64u
#endif
_Static_assert(BFO_STRIPE_MAX << BFO_TURN_SHIFT == UINT16_MAX + 1, "the turn of the last rail ends where that of the first begins");

/* Returns the rail of `mask` (not 0) for a first fragment of a message of `bytes`. *turn is the rail whose turn it is << BFO_TURN_SHIFT | the
 * bytes counted in its turn. */
static inline uint8_t bfo_turn_next(uint16_t *turn, unsigned mask, size_t bytes)
{
    const unsigned whose = *turn >> BFO_TURN_SHIFT, above = mask & (0xffu << whose);
    const unsigned rail = (unsigned) __builtin_ctz(0 != above ? above : mask);
    const size_t end = (rail + 1) << BFO_TURN_SHIFT, counted = (rail == whose ? *turn : rail << BFO_TURN_SHIFT) + bytes + BFO_TURN_LEAST;

    *turn = (uint16_t) (counted < end ? counted : end);
    return (uint8_t) rail;
}

/* The first turn between two processes of these ranks in their job, for both alike. The peers of a process begin with all of its rails, and its
 * neighbours in a ring with two. */
static inline uint16_t bfo_turn_first(uint32_t own, uint32_t peer, unsigned rails)
{
    return (uint16_t) (((uint64_t) own + peer) / 2 % rails << BFO_TURN_SHIFT);
}

#endif /* PML_BFO_STRIPE_H */
