/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Striping by weighted virtual time. DESIGN.txt section 14.5.
 */
#include "bfo_config.h"

#include "pml_bfo_stripe.h"

static unsigned least_loaded(const bfo_stripe_t *s, unsigned mask)
{
    unsigned best = (unsigned) __builtin_ctz(mask);

    for (unsigned r = best + 1; r < BFO_STRIPE_MAX; ++r) {
        if ((mask >> r & 1)
            && __atomic_load_n(&s->load[r], __ATOMIC_RELAXED) < __atomic_load_n(&s->load[best], __ATOMIC_RELAXED)) {
            best = r;
        }
    }
    return best;
}

unsigned bfo_stripe_next(bfo_stripe_t *s, unsigned mask, const uint32_t *weight, size_t bytes)
{
    const unsigned rail = least_loaded(s, mask);
    const uint64_t cost = (((uint64_t) bytes + 1) << 10) / weight[rail];

    __atomic_store_n(&s->load[rail], __atomic_load_n(&s->load[rail], __ATOMIC_RELAXED) + cost, __ATOMIC_RELAXED);
    return rail;
}

void bfo_stripe_join(bfo_stripe_t *s, unsigned mask, unsigned rail)
{
    mask &= ~(1u << rail);
    if (0 != mask) {
        __atomic_store_n(&s->load[rail], __atomic_load_n(&s->load[least_loaded(s, mask)], __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
    }
}
