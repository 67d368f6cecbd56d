/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Damping. Only a fall from UP adds to a rail's penalty. The penalty decays with time, but not because the rail comes back. Questions
 * back off and never end. See DESIGN.txt 10.2.
 */
#include "formats/btl_openib_rejoin.h"

#include "bfo_assert.h"

enum { PENALTY_MOST = 16 * OFO_REJOIN_FALL };

/* The penalty is halved with each half-life, and falls in a straight line in between. */
static uint32_t decayed(const ofo_rejoin_t *r, uint64_t now, uint64_t half_life)
{
    const uint64_t fell_at = __atomic_load_n(&r->fell_at, __ATOMIC_RELAXED), age = now > fell_at ? now - fell_at : 0;
    const uint64_t halvings = 0 == half_life ? 32 : age / half_life;
    uint32_t left;

    if (halvings >= 32) {
        return 0;
    }
    left = __atomic_load_n(&r->penalty, __ATOMIC_RELAXED) >> halvings;
    return left - (uint32_t) (left * (age % half_life) / (2 * half_life));
}

void ofo_rejoin_fall(ofo_rejoin_t *r, uint64_t now, uint64_t half_life)
{
    const uint32_t penalty = decayed(r, now, half_life) + OFO_REJOIN_FALL;

    __atomic_store_n(&r->penalty, penalty < PENALTY_MOST ? penalty : PENALTY_MOST, __ATOMIC_RELAXED);
    __atomic_store_n(&r->fell_at, now, __ATOMIC_RELAXED);
    __atomic_store_n(&r->is_held, 0 != half_life && OFO_REJOIN_SUPPRESS < r->penalty, __ATOMIC_RELAXED);
}

uint32_t ofo_rejoin_penalty(const ofo_rejoin_t *r, uint64_t now, uint64_t half_life)
{
    return decayed(r, now, half_life);
}

bool ofo_rejoin_is_held(ofo_rejoin_t *r, uint64_t now, uint64_t half_life)
{
    if (r->is_held && (OFO_REJOIN_REUSE >= decayed(r, now, half_life) || now - r->fell_at >= OFO_REJOIN_MOST_MS)) {
        __atomic_store_n(&r->is_held, false, __ATOMIC_RELAXED);
    }
    return r->is_held;
}

uint32_t ofo_rejoin_back_off(ofo_rejoin_t *r, uint32_t first)
{
    const uint32_t wait = 0 == r->wait ? first : r->wait;

    BFO_ASSERT(0 < first && wait <= OFO_REJOIN_MOST_MS);
    r->wait = wait < OFO_REJOIN_MOST_MS / 2 ? 2 * wait : OFO_REJOIN_MOST_MS;
    return wait;
}

void ofo_rejoin_end(ofo_rejoin_t *r)
{
    r->at = r->asked_at = 0;
    r->wait = 0;
    r->is_answered = false;
}
