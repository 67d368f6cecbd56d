/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The generations of a rail and their fences. Input: what the BTL and the peer report. Output: the members that guards of the request
 * machines read. DESIGN.txt sections 10 and 14.1.
 */
#include "rails/pml_bfo_generation.h"

#if PML_BFO
/* What holds between two calls. */
static inline void is_consistent(const bfo_peer_t *peer, uint8_t r)
{
    BFO_ASSERT(r < peer->n_rails);
    BFO_ASSERT(peer->rails[r].awaited <= peer->rails[r].gen);
    BFO_ASSERT(0 == (peer->fencing >> r & 1) || NULL != peer->rails[r].ext);                     /* only a rail with failover is fenced */
    BFO_ASSERT(0 == (peer->fencing >> r & 1) || peer->rails[r].fenced < peer->rails[r].awaited); /* otherwise no end of a fence clears the bit */
    BFO_ASSERT(!peer->rails[r].is_lossy || peer->rails[r].lossy_first <= peer->rails[r].lossy_last);
    BFO_ASSERT(!peer->rails[r].is_lossy || peer->rails[r].lossy_last <= peer->rails[r].fenced); /* a fence that was given up is over */
}

bool bfo_generation_found(bfo_peer_t *peer, uint8_t r, const bfo_rail_info_t *info)
{
    bfo_rail_t *rail = &peer->rails[r];

    BFO_ASSERT(-1 == rail->fenced && 0 == rail->gen && !peer->ready); /* a rail of a peer that is not ready yet was never fenced */
    rail->gen = info->generation;
    if (BFO_RAIL_DOWN_BOTH == info->state) {
        rail->fenced = info->generation;
    } else if (BFO_RAIL_DOWN_LOCAL == info->state) {
        rail->awaited = info->generation;
        peer->fencing |= (uint8_t) (1u << r);
    }
    is_consistent(peer, r);
    return BFO_RAIL_DOWN_BOTH == info->state || BFO_RAIL_DOWN_LOCAL == info->state;
}

bool bfo_generation_fence_begins(bfo_peer_t *peer, uint8_t r, uint16_t gen)
{
    bfo_rail_t *rail = &peer->rails[r];
    const bool to_come = NULL != rail->ext && rail->fenced < gen; /* otherwise nobody would clear the bit */

    BFO_ASSERT(peer->ready); /* the report of the end of a fence finds only a peer that is ready */
    if (to_come) {
        rail->gen = rail->gen < gen ? gen : rail->gen;
        rail->awaited = rail->gen;
        peer->fencing |= (uint8_t) (1u << r);
    }
    is_consistent(peer, r);
    return to_come;
}

void bfo_generation_fence_ends(bfo_peer_t *peer, uint8_t r, uint16_t gen, bool lossy)
{
    bfo_rail_t *rail = &peer->rails[r];

    rail->fenced = rail->fenced < gen ? gen : rail->fenced;
    if (lossy) {
        rail->lossy_first = rail->is_lossy ? rail->lossy_first : gen;
        rail->lossy_last = gen;
        rail->is_lossy = true;
    }
    if (rail->fenced >= rail->awaited) { /* otherwise the fence of a newer generation runs */
        peer->fencing &= (uint8_t) ~(1u << r);
    }
    is_consistent(peer, r);
}

void bfo_generation_fence_refused(bfo_peer_t *peer, uint8_t r)
{
    is_consistent(peer, r);
    peer->fencing &= (uint8_t) ~(1u << r);
}
#endif
