/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Asks a BTL for the fence of a rail. DESIGN.txt section 10.
 */
#include "types/pml_bfo.h"

#include "rails/pml_bfo_adopt.h"
#include "types/pml_bfo_extension.h"
#include "rails/pml_bfo_failover_fence.h"
#include "rails/pml_bfo_generation.h"

#if PML_BFO
/* A BTL that does not know the rail has nothing in flight on it, and never reports the fence as done. */
static BFO_COLD void fence_refused(bfo_peer_t *peer, uint8_t r)
{
    BFO_LOCK(&bfo.lock);
    BFO_ASSERT(r < peer->n_rails && NULL != peer->rails[r].ext); /* only a rail with failover is asked */
    bfo_generation_fence_refused(peer, r);
    BFO_UNLOCK(&bfo.lock);
    bfo.up.declare(peer, "its BTL does not know a rail that is to be closed");
    bfo.up.settle_all();
}

bool bfo_failover_fence_begins(bfo_peer_t *peer, uint8_t r, uint16_t gen)
{
    bool to_come;

    BFO_ASSERT(r < peer->n_rails);
    BFO_LOCK(&bfo.lock);
    to_come = bfo_generation_fence_begins(peer, r, gen);
    BFO_UNLOCK(&bfo.lock);
    return to_come;
}

void bfo_failover_fence(bfo_peer_t *peer, uint8_t r, uint16_t gen)
{
    const bfo_rail_t *rail = &peer->rails[r];

    if (bfo_failover_fence_begins(peer, r, gen) && !bfo_ext_fence(peer, rail, bfo_rail_name(peer, r), gen)) {
        fence_refused(peer, r);
    }
}

void bfo_failover_fence_down(bfo_peer_t *peer, uint8_t down)
{
    BFO_ASSERT(0 == down >> peer->n_rails);
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        if (down >> r & 1) {
            bfo_failover_fence(peer, r, peer->rails[r].gen);
        }
    }
}
#endif
