/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Takes the extension of a BTL with failover, and asks it for the names and generations of rails. DESIGN.txt sections 4 and 10.
 */
#include "types/pml_bfo.h"

#include "rails/pml_bfo_adopt.h"
#include "types/pml_bfo_extension.h"
#include "rails/pml_bfo_generation.h"
#include "show/pml_bfo_figures_file.h"
#include "types/pml_bfo_params.h"

#include "opal/mca/btl/base/base.h"

bfo_btl_ext_t *bfo_failover_adopt(mca_btl_base_module_t *btl)
{
#if PML_BFO
    if (BFO_BTL_EXT_OK == bfo_btl_ext_check(btl)) {
        BFO_ASSERT(NULL == bfo.failover_component || bfo.failover_component == btl->btl_component); /* the only one with failover */
        bfo.failover_component = btl->btl_component;
        bfo_btl_ext(btl)->failed_frag = bfo.callbacks.failed_frag;
        bfo_btl_ext(btl)->fence_done = bfo.callbacks.fence_done;
        bfo_btl_ext(btl)->rail_restored = bfo_params.rejoin ? bfo.callbacks.rail_restored : NULL;
        bfo_btl_ext(btl)->peer_dead = bfo.callbacks.peer_dead;
        bfo_btl_ext(btl)->rail_soft = bfo.callbacks.rail_soft;
        bfo_btl_ext(btl)->send_again = bfo.callbacks.send_again;
        bfo_btl_ext(btl)->rail_trusted = bfo.callbacks.rail_trusted;
        bfo_btl_ext(btl)->waits = bfo_params.rejoin && 0 != bfo_params.last_rail_timeout;
        return bfo_btl_ext(btl);
    }
#endif
    return NULL;
}

/* A peer may connect a rail, lose it and want it back before this process has sent or received anything. */
void bfo_failover_adopt_all(void)
{
    mca_btl_base_selected_module_t *selected;

    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        if (NULL != bfo_failover_adopt(selected->btl_module)) {
            bfo_ext_share(selected->btl_module, bfo_figures_directory());
        }
    }
}

#if PML_BFO
uint8_t bfo_failover_rail_name(const bfo_peer_t *peer, mca_btl_base_module_t *btl)
{
    const bfo_rail_t rail = {.btl = btl, .ext = bfo_failover_adopt(btl)};
    bfo_rail_info_t info;

    return bfo_ext_rail_state(peer, &rail, &info) && info.name < BFO_MAX_RAILS ? info.name : BFO_MAX_RAILS;
}

uint8_t bfo_failover_name_rails(bfo_peer_t *peer)
{
    bfo_rail_info_t info;
    uint8_t down = 0;

    peer->failover = 0 != peer->n_rails;
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        bfo_rail_t *rail = &peer->rails[r];

        if (NULL == rail->ext) {
            peer->failover = false;
        } else if (!bfo_ext_rail_state(peer, rail, &info)) {
            peer->failover = false;
            rail->name = BFO_MAX_RAILS; /* its index may be another rail's name */
        } else {
            rail->name = info.name < BFO_MAX_RAILS ? info.name : BFO_MAX_RAILS;
            down |= bfo_generation_found(peer, r, &info) ? (uint8_t) (1u << r) : 0;
        }
    }
    return down;
}

/* A rail may get its name only when it connects, but always before its first data. */
uint8_t bfo_failover_learn_name(bfo_peer_t *peer, uint8_t rail)
{
    BFO_ASSERT(rail < peer->n_rails);
    BFO_ASSERT(peer->rails[rail].name >= BFO_MAX_RAILS || bfo_threads); /* a rail that has a name keeps it */
    if (NULL != peer->rails[rail].ext) {
        peer->rails[rail].name = bfo_failover_rail_name(peer, peer->rails[rail].btl);
    }
    return peer->rails[rail].name;
}
#endif

uint8_t bfo_failover_rails_of_names(bfo_peer_t *peer, uint8_t names)
{
    uint8_t mask = 0;

    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        const uint8_t name = 0 == names ? BFO_MAX_RAILS : bfo_rail_name(peer, r);

        mask |= name < BFO_MAX_RAILS && (names >> name & 1) ? (uint8_t) (1u << r) : 0;
    }
    BFO_ASSERT(!peer->failover || __builtin_popcount(mask) <= __builtin_popcount(names)); /* no two rails have the same name */
    return mask;
}

uint8_t bfo_failover_names_of_rails(bfo_peer_t *peer, uint8_t mask)
{
    uint8_t names = 0;

    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        const uint8_t name = 0 == (mask >> r & 1) ? BFO_MAX_RAILS : bfo_rail_name(peer, r);

        BFO_ASSERT(!peer->failover || name >= BFO_MAX_RAILS || 0 == (names >> name & 1));
        names |= name < BFO_MAX_RAILS ? (uint8_t) (1u << name) : 0;
    }
    return names;
}
