/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Striping by weighted virtual time. DESIGN.txt section 14.5.
 */
#include "bfo_config.h"

#include "pml_bfo_stripe.h"

#include "bfo_assert.h"

unsigned bfo_stripe_least(const bfo_stripe_t *s, unsigned mask)
{
    unsigned best = (unsigned) __builtin_ctz(mask);

    BFO_ASSERT(0 != mask && 0 == mask >> BFO_STRIPE_MAX);
    for (unsigned r = best + 1; r < BFO_STRIPE_MAX; ++r) {
        if ((mask >> r & 1)
            && __atomic_load_n(&s->load[r], __ATOMIC_RELAXED) < __atomic_load_n(&s->load[best], __ATOMIC_RELAXED)) {
            best = r;
        }
    }
    BFO_ASSERT(mask >> best & 1);
    return best;
}

void bfo_stripe_charge(bfo_stripe_t *s, unsigned rail, const uint32_t *weight, size_t bytes)
{
    const uint64_t cost = (((uint64_t) bytes + 1) << 10) / weight[rail];

    BFO_ASSERT(BFO_STRIPE_MAX > rail && 0 != weight[rail]);
    __atomic_store_n(&s->load[rail], __atomic_load_n(&s->load[rail], __ATOMIC_RELAXED) + cost, __ATOMIC_RELAXED);
}

unsigned bfo_stripe_next(bfo_stripe_t *s, unsigned mask, const uint32_t *weight, size_t bytes)
{
    const unsigned rail = bfo_stripe_least(s, mask);

    BFO_ASSERT(mask >> rail & 1);
    bfo_stripe_charge(s, rail, weight, bytes);
    return rail;
}

void bfo_stripe_join(bfo_stripe_t *s, unsigned rail, unsigned mask)
{
    BFO_ASSERT(BFO_STRIPE_MAX > rail && 0 == mask >> BFO_STRIPE_MAX);
    for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
        const uint64_t load = __atomic_load_n(&s->load[r], __ATOMIC_RELAXED);

        if ((mask >> r & 1) && __atomic_load_n(&s->load[rail], __ATOMIC_RELAXED) < load) {
            __atomic_store_n(&s->load[rail], load, __ATOMIC_RELAXED);
        }
    }
}

size_t bfo_stripe_piece(unsigned mask, unsigned rail, const uint32_t *weight, size_t length, size_t least, size_t most)
{
    double all = 0, fastest = 0, share, cap;
    size_t piece;

    for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
        if (mask >> r & 1) {
            all += weight[r];
            fastest = weight[r] > fastest ? weight[r] : fastest;
        }
    }
    BFO_ASSERT(mask >> rail & 1);
    BFO_ASSERT(0 < all && 0 < fastest && fastest <= all);
    share = (double) length * weight[rail] / all;
    cap = (double) most * weight[rail] / fastest;
    share = share < cap ? share : cap;
    piece = share < (double) least ? least : ((size_t) share + 4095) / 4096 * 4096; /* rounded up: no small last piece */
    BFO_ASSERT(piece >= least);
    return piece < most ? piece : most;
}
