/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Damping: only a fall from UP adds to a rail's penalty, which decays and is not forgotten when the rail comes back. Questions back
 * off and never end. See DESIGN.txt 10.2.
 */
#include "btl_openib_rejoin.h"

#include "bfo_assert.h"

enum { PENALTY_MOST = 16 * OFO_REJOIN_FALL };

/* Halved with each half-life, in a straight line between. */
static uint32_t decayed(const ofo_rejoin_t *r, uint64_t now, uint64_t half_life)
{
    const uint64_t age = now > r->fell_at ? now - r->fell_at : 0, halvings = 0 == half_life ? 32 : age / half_life;
    uint32_t left;

    if (halvings >= 32) {
        return 0;
    }
    left = r->penalty >> halvings;
    return left - (uint32_t) (left * (age % half_life) / (2 * half_life));
}

void ofo_rejoin_fall(ofo_rejoin_t *r, uint64_t now, uint64_t half_life)
{
    const uint32_t penalty = decayed(r, now, half_life) + OFO_REJOIN_FALL;

    r->penalty = penalty < PENALTY_MOST ? penalty : PENALTY_MOST;
    r->fell_at = now;
    r->is_held = 0 != half_life && OFO_REJOIN_SUPPRESS < r->penalty;
}

bool ofo_rejoin_is_held(ofo_rejoin_t *r, uint64_t now, uint64_t half_life)
{
    if (r->is_held && (OFO_REJOIN_REUSE >= decayed(r, now, half_life) || now - r->fell_at >= OFO_REJOIN_MOST_MS)) {
        r->is_held = false;
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
