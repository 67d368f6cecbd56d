/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Striping by what each rail has in flight, was given and delivers. DESIGN.txt section 14.5.
 */
#include "bfo_config.h"

#include "formats/pml_bfo_stripe.h"

#include "bfo_assert.h"

enum {
    WINDOW = 8 * 1024 * 1024, /* bytes per rail that carries long messages, before the rails are judged: a few pieces */
    LEAST_PART = 32           /* a slow rail keeps at least this part of its weight, so that the bytes it carries show when it recovers */
};

void bfo_stripe_add(bfo_stripe_t *s, unsigned rail, uint32_t bandwidth)
{
    const uint32_t most = 1u << 21; /* more Mbit/s than any rail has; keeps the shifted value and the sum of all within their types */

    BFO_ASSERT(BFO_STRIPE_MAX > rail);
    s->nominal[rail] = (0 == bandwidth ? 1 : bandwidth < most ? bandwidth : most) << 8;
    s->weight[rail] = s->seen[rail] = s->nominal[rail];
}

/* Is rail `a` better than `b`? */
static bool is_before(const bfo_stripe_t *s, unsigned a, unsigned b)
{
    const double of_a = (double) __atomic_load_n(&s->under_way[a], __ATOMIC_RELAXED) * s->weight[b];
    const double of_b = (double) __atomic_load_n(&s->under_way[b], __ATOMIC_RELAXED) * s->weight[a];

    return of_a < of_b || (of_a <= of_b && __atomic_load_n(&s->load[a], __ATOMIC_RELAXED) < __atomic_load_n(&s->load[b], __ATOMIC_RELAXED));
}

unsigned bfo_stripe_least(const bfo_stripe_t *s, unsigned mask)
{
    unsigned best = (unsigned) __builtin_ctz(mask);

    BFO_ASSERT(0 != mask && 0 == mask >> BFO_STRIPE_MAX);
    for (unsigned r = best + 1; r < BFO_STRIPE_MAX; ++r) {
        if ((mask >> r & 1) && is_before(s, r, best)) {
            best = r;
        }
    }
    BFO_ASSERT(mask >> best & 1);
    return best;
}

void bfo_stripe_charge(bfo_stripe_t *s, unsigned rail, size_t bytes)
{
    const uint64_t cost = (((uint64_t) bytes + 1) << 18) / s->weight[rail];

    BFO_ASSERT(BFO_STRIPE_MAX > rail && 0 != s->weight[rail]);
    __atomic_store_n(&s->load[rail], __atomic_load_n(&s->load[rail], __ATOMIC_RELAXED) + cost, __ATOMIC_RELAXED);
}

unsigned bfo_stripe_next(bfo_stripe_t *s, unsigned mask, size_t bytes)
{
    const unsigned rail = bfo_stripe_least(s, mask);

    BFO_ASSERT(mask >> rail & 1);
    bfo_stripe_charge(s, rail, bytes);
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
        __atomic_store_n(&s->carried[r], 0, __ATOMIC_RELAXED); /* the new rail has not had time to carry anything */
    }
    s->weight[rail] = s->seen[rail] = s->nominal[rail];
    s->slow &= (uint8_t) ~(1u << rail);
}

void bfo_stripe_begin(bfo_stripe_t *s, unsigned rail, size_t bytes)
{
    BFO_ASSERT(BFO_STRIPE_MAX > rail);
    (void) __atomic_add_fetch(&s->under_way[rail], (int64_t) bytes, __ATOMIC_RELAXED);
}

/* Does every rail of `mask` except `rail` have bytes in flight? */
static bool all_others_work(const bfo_stripe_t *s, unsigned mask, unsigned rail)
{
    for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
        if (r != rail && (mask >> r & 1) && 0 >= __atomic_load_n(&s->under_way[r], __ATOMIC_RELAXED)) {
            return false;
        }
    }
    return 0 != (mask & ~(1u << rail));
}

/* Averages what the rails carried in a window with what was seen before. While each rail has two thirds of its share, the weights are those
 * of the BTL, because a smaller difference is noise and the weights would follow it. True: the set of slow rails has changed. */
static bool judge(bfo_stripe_t *s, unsigned mask, const uint64_t *carried, uint64_t all)
{
    const uint8_t before = s->slow;
    uint64_t nominal = 0;
    double part[BFO_STRIPE_MAX], best = 0; /* relative to what the BTL says */
    bool is_well = true;

    for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
        nominal += mask >> r & 1 ? s->nominal[r] : 0;
    }
    for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
        if (mask >> r & 1) {
            const double now = (double) carried[r] * (double) nominal / (double) all;

            s->seen[r] = (uint32_t) ((s->seen[r] + now) / 2);
            part[r] = (double) s->seen[r] / s->nominal[r];
            best = part[r] > best ? part[r] : best;
            is_well = is_well && 3 * part[r] >= 2;
        }
    }
    for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
        if (mask >> r & 1) {
            const uint32_t least = s->nominal[r] / LEAST_PART;
            const bool is_slow = !is_well && 3 * part[r] < 2 * best && (2 * part[r] < best || (before >> r & 1));

            s->weight[r] = is_well ? s->nominal[r] : s->seen[r] > least ? s->seen[r] : least;
            s->slow = (uint8_t) ((s->slow & ~(1u << r)) | (is_slow ? 1u << r : 0));
        }
    }
    BFO_ASSERT(0 != (mask & ~s->slow)); /* the best is not slow */
    return before != s->slow;
}

bool bfo_stripe_end(bfo_stripe_t *s, unsigned rail, unsigned mask, size_t bytes, bool carried)
{
    const uint64_t window = (uint64_t) WINDOW * (unsigned) __builtin_popcount(mask);
    uint64_t part[BFO_STRIPE_MAX] = {0}, all = 0;

    BFO_ASSERT(BFO_STRIPE_MAX > rail && 0 == mask >> BFO_STRIPE_MAX);
    (void) __atomic_sub_fetch(&s->under_way[rail], (int64_t) bytes, __ATOMIC_RELAXED);
    if (!carried || 0 == (mask >> rail & 1) || !all_others_work(s, mask, rail)) {
        return false;
    }
    (void) __atomic_add_fetch(&s->carried[rail], bytes, __ATOMIC_RELAXED);
    for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
        all += mask >> r & 1 ? __atomic_load_n(&s->carried[r], __ATOMIC_RELAXED) : 0;
    }
    if (all < window) {
        return false;
    }
    all = 0;
    for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
        part[r] = __atomic_exchange_n(&s->carried[r], 0, __ATOMIC_RELAXED);
        all += mask >> r & 1 ? part[r] : 0;
    }
    return all >= window / 2 && judge(s, mask, part, all); /* less: another thread took the window */
}

size_t bfo_stripe_piece(const bfo_stripe_t *s, unsigned mask, unsigned rail, size_t length, size_t least, size_t most)
{
    double all = 0, fastest = 0, share, cap;
    size_t piece;

    for (unsigned r = 0; r < BFO_STRIPE_MAX; ++r) {
        if (mask >> r & 1) {
            all += s->weight[r];
            fastest = s->weight[r] > fastest ? s->weight[r] : fastest;
        }
    }
    BFO_ASSERT(mask >> rail & 1);
    BFO_ASSERT(0 < all && 0 < fastest && fastest <= all);
    share = (double) length * s->weight[rail] / all;
    cap = (double) most * s->weight[rail] / fastest;
    share = share < cap ? share : cap;
    piece = share < (double) least ? least : ((size_t) share + 4095) / 4096 * 4096; /* rounded up: no small last piece */
    BFO_ASSERT(piece >= least);
    return piece < most ? piece : most;
}
