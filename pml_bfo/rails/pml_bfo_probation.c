/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails that came back serve a probation, which begins in bfo_rail_bring_up(). Input: bytes of long messages, the BTL's word. Output: a mask
 * of the peer, which the choice of rails reads. DESIGN.txt 10.2 ("Return") and 14.6.
 */
#include "types/pml_bfo.h"

#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_probation.h"
#include "rails/pml_bfo_rails.h"
#include "show/pml_bfo_tell.h"

#if PML_BFO
enum { ENOUGH = 1024 * 1024 /* bytes: several hundred packets of full size, and a few ms of the slowest rail */ };

/* An end that belongs to another generation is void. */
static void probation_ends(bfo_peer_t *peer, uint8_t rail, uint16_t gen, const char *why)
{
    const uint8_t bit = (uint8_t) (1u << rail);
    bool ends;

    BFO_ASSERT(rail < peer->n_rails);
    BFO_LOCK(&bfo.lock);
    ends = 0 != (peer->probation & bit) && 0 != (peer->up_mask & bit) && gen == peer->rails[rail].gen;
    if (ends) {
        (void) __atomic_fetch_and(&peer->probation, (uint8_t) ~bit, __ATOMIC_RELAXED);
        bfo_rails_choose_again(peer);
    }
    BFO_UNLOCK(&bfo.lock);
    if (ends) {
        bfo_tell_rail_trusted(peer, rail, why);
    }
}

static void carried(bfo_peer_t *peer, uint8_t rail, size_t bytes)
{
    BFO_ASSERT(rail < peer->n_rails);
    if (ENOUGH <= bfo_add_size(&peer->rails[rail].carried, bytes)) {
        probation_ends(peer, rail, bfo_rail_gen(peer, rail), "it has carried long messages");
    }
}

static void rail_trusted(mca_btl_base_module_t *btl, opal_proc_t *proc, uint8_t name, uint16_t generation)
{
    bfo_peer_t *peer = ((ompi_proc_t *) proc)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
    const bool is_ready = NULL != peer && __atomic_load_n(&peer->ready, __ATOMIC_ACQUIRE);
    const uint8_t r = is_ready ? bfo_rail_index(peer, btl) : BFO_MAX_RAILS;

    if (BFO_MAX_RAILS != r) {
        probation_ends(peer, r, generation, "the BTL trusts it");
    }
}

void bfo_probation_init(void)
{
    bfo.callbacks.rail_trusted = rail_trusted;
    bfo.carried_on_probation = carried;
}
#else
void bfo_probation_init(void) {}
#endif
