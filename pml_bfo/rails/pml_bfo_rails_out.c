/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which rails of a peer stand out. Input: the ports that the user and the program take out of service, and the rails that the peer
 * reports. Output: masks of rails. DESIGN.txt section 10.5.
 */
#include "types/pml_bfo.h"

#include "bfo_assert.h"
#include "types/pml_bfo_extension.h"
#include "types/pml_bfo_params.h"
#include "rails/pml_bfo_rails_out.h"
#include "show/pml_bfo_steer.h"

/* Mask of the rails whose local port stands out; with `by_force` only those that stand out by force. */
static uint8_t rails_of_ports_out(const bfo_peer_t *peer, bool by_force)
{
    uint8_t mask = 0;

    for (uint8_t r = 0; PML_BFO && peer->failover && r < peer->n_rails; ++r) {
        const uint32_t i = bfo_steer_place(bfo_btl_port_name(peer->rails[r].btl));

        mask |= i < bfo_steer_ports() && (!by_force || bfo_steer_is_forced(i)) ? (uint8_t) (1u << r) : 0;
    }
    return mask;
}

/* Force counts only if this process waits for a peer without a rail. Otherwise the drain of the last rail would fail the requests of the
 * peer at once. A wait that has begun goes on. */
static bool obeys_force(const bfo_peer_t *peer)
{
    return bfo_peer_may_wait(peer) && (0 != bfo_param(last_rail_timeout) || 0 != peer->waits_since);
}

bfo_rails_out_t bfo_rails_out_read(const bfo_peer_t *peer, uint8_t theirs, uint8_t forced_theirs)
{
    const bool forces = obeys_force(peer);

    return (bfo_rails_out_t){.ours = rails_of_ports_out(peer, false),
                             .theirs = theirs,
                             .forced_ours = forces ? rails_of_ports_out(peer, true) : 0,
                             .forced_theirs = forces ? (uint8_t) (theirs & forced_theirs) : 0};
}

bool bfo_rails_out_are(const bfo_peer_t *peer, bfo_rails_out_t out)
{
    return out.ours == peer->out_own && out.theirs == peer->out_theirs && out.forced_ours == peer->forced_own
           && out.forced_theirs == peer->forced_theirs;
}

void bfo_rails_out_set(bfo_peer_t *peer, bfo_rails_out_t out)
{
    BFO_ASSERT(0 == (out.ours | out.theirs) >> peer->n_rails && 0 == (out.forced_ours & ~out.ours));
    BFO_ASSERT(0 == (out.forced_theirs & ~out.theirs));
    peer->out_own = out.ours;
    peer->out_theirs = out.theirs;
    peer->forced_own = out.forced_ours;
    peer->forced_theirs = out.forced_theirs;
}

void bfo_rails_out_tell(const bfo_peer_t *peer)
{
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        bfo_ext_stand_out(peer, &peer->rails[r], (peer->forced_own | peer->forced_theirs) >> r & 1);
    }
}

uint8_t bfo_rails_out_put(const bfo_peer_t *peer)
{
    uint8_t mask = 0;

    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        mask |= (peer->up_mask >> r & 1) && (peer->rails[r].flags & MCA_BTL_FLAGS_PUT) ? (uint8_t) (1u << r) : 0;
    }
    BFO_ASSERT(0 == (peer->put_mask & ~mask) || bfo_threads); /* another thread may bring a rail up or down meanwhile */
    return mask;
}
