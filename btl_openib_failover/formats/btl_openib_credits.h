/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Flow control of one per-peer receive queue, both directions. `have`: receive buffers that the peer has posted for
 * us; `owed`: buffers that we posted again and have not reported to the peer yet. The last credit is kept for a message
 * that only returns credits. Such a message is sent only if it returns at least `window` of them. Therefore both sides can
 * always return credits, and never answer each other without end. See DESIGN.txt 15. No Open MPI header.
 */
#ifndef BTL_OPENIB_CREDITS_H
#define BTL_OPENIB_CREDITS_H

#include "bfo_assert.h"

#include <stdbool.h>
#include <stdint.h>

#define OFO_WINDOW_MIN 2  /* a message that returns credits costs a credit: two sides that return single credits never stop */
#define OFO_CREDITS_MIN 4 /* buffers of a queue */

#define OFO_BATCH_MAX 8 /* most buffers that are posted again together */

typedef struct {
    int32_t have;
    int32_t owed;
    int32_t collected; /* buffers that were received and are not posted again yet */
    int32_t batch;     /* `collected` buffers are posted again when there are so many */
    int32_t count;     /* buffers of either side's queue */
    int32_t window;    /* credits are returned when this many are owed; OFO_WINDOW_MIN <= window < count */
} ofo_credits_t;

static inline void ofo_credits_init(ofo_credits_t *credits, int32_t count, int32_t window)
{
    BFO_ASSERT(OFO_WINDOW_MIN < count);
    credits->have = credits->count = count;
    credits->owed = credits->collected = 0;
    credits->window = window < OFO_WINDOW_MIN ? OFO_WINDOW_MIN : window >= count ? count - 1 : window;
    /* A peer that has used its credits has sent count - 1 messages. So many must make at least `window` owed, without those collected. */
    credits->batch = (count - credits->window) / 2;
    credits->batch = credits->batch < 1 ? 1 : credits->batch > OFO_BATCH_MAX ? OFO_BATCH_MAX : credits->batch;
    BFO_ASSERT(OFO_WINDOW_MIN <= credits->window && credits->window < count);
    BFO_ASSERT(count - credits->batch >= credits->window);
}

static inline bool ofo_credits_may_send(const ofo_credits_t *credits)
{
    BFO_ASSERT(0 <= credits->have && credits->have <= credits->count);
    return 1 < credits->have;
}

static inline bool ofo_credits_must_return(const ofo_credits_t *credits)
{
    BFO_ASSERT(0 < credits->window);
    return __atomic_load_n(&credits->owed, __ATOMIC_RELAXED) >= credits->window && 0 < credits->have;
}

static inline void ofo_credits_use(ofo_credits_t *credits)
{
    BFO_ASSERT(0 < credits->have);
    --credits->have;
}

/* Counts one received message. If true the caller posts all collected buffers again and then calls ofo_credits_owe(). */
static inline bool ofo_credits_collect(ofo_credits_t *credits)
{
    BFO_ASSERT(0 <= credits->collected && credits->collected < credits->count);
    return ++credits->collected >= credits->batch;
}

static inline void ofo_credits_owe(ofo_credits_t *credits)
{
    BFO_ASSERT(0 < credits->collected);
    BFO_ASSERT(0 <= credits->owed);
    __atomic_store_n(&credits->owed, credits->owed + credits->collected, __ATOMIC_RELAXED);
    credits->collected = 0;
}

/* Takes the credits that the next message returns to the peer. */
static inline uint16_t ofo_credits_take_owed(ofo_credits_t *credits)
{
    uint16_t owed = (uint16_t) credits->owed;

    BFO_ASSERT(0 <= credits->owed);
    __atomic_store_n(&credits->owed, 0, __ATOMIC_RELAXED);
    return owed;
}

/* Takes credits that the peer returns. False if these are more than it can owe: the message cannot be trusted, and nothing is taken. */
static inline bool ofo_credits_gain(ofo_credits_t *credits, uint16_t returned)
{
    BFO_ASSERT(0 <= credits->have && credits->have <= credits->count);
    if (credits->have + (int32_t) returned > credits->count) {
        return false;
    }
    credits->have += returned;
    BFO_ASSERT(credits->have <= credits->count);
    return true;
}

#endif /* BTL_OPENIB_CREDITS_H */
