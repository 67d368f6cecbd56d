/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the extension of a BTL with failover says of a rail: its name and its generation. DESIGN.txt sections 4 and 10.
 */
#ifndef PML_BFO_ADOPT_H
#define PML_BFO_ADOPT_H

#include "types/pml_bfo.h"

/* Puts our callbacks into the BTL's extension and returns it; NULL if the BTL has no extension that may be used. */
bfo_btl_ext_t *bfo_failover_adopt(mca_btl_base_module_t *btl);
/* As bfo_failover_adopt(), for all modules, before the first contact. */
void bfo_failover_adopt_all(void);

#if PML_BFO
/* Name of the module's rail to the peer; BFO_MAX_RAILS: it has none. */
uint8_t bfo_failover_rail_name(const bfo_peer_t *peer, mca_btl_base_module_t *btl);
/* As bfo_rail_name(), for a rail whose name is not known yet. */
uint8_t bfo_failover_learn_name(bfo_peer_t *peer, uint8_t rail) BFO_COLD;
/* Reads the names and generations of the peer's rails, and decides whether interrupted transfers can be restarted. Returns the mask of
 * the rails that are down already; of these, the ones whose fence is not done count as being fenced. Locks: bfo.lock held. */
uint8_t bfo_failover_name_rails(bfo_peer_t *peer);
#else
/* Compiled out: no rail has a name, a generation or a fence. */
static inline uint8_t bfo_failover_rail_name(const bfo_peer_t *peer, mca_btl_base_module_t *btl)
{
    return BFO_MAX_RAILS;
}
static inline uint8_t bfo_failover_learn_name(bfo_peer_t *peer, uint8_t rail)
{
    return BFO_MAX_RAILS;
}
static inline uint8_t bfo_failover_name_rails(bfo_peer_t *peer)
{
    return 0;
}
#endif
/* Name of a rail, the same on both sides; BFO_MAX_RAILS: it has none yet, and has carried nothing. */
static inline uint8_t bfo_rail_name(bfo_peer_t *peer, uint8_t rail)
{
    const uint8_t name = peer->rails[rail].name;

    return bfo_likely(name < BFO_MAX_RAILS) ? name : bfo_failover_learn_name(peer, rail);
}
/* Turns a mask of rail names into a mask of rails, and the reverse. Rails without a name yet carry nothing and are left out. */
uint8_t bfo_failover_rails_of_names(bfo_peer_t *peer, uint8_t names);
uint8_t bfo_failover_names_of_rails(bfo_peer_t *peer, uint8_t mask);

#endif /* PML_BFO_ADOPT_H */
