/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What happens when a fragment, a rail or a peer fails: the cold half of the PML. All symptoms are reported here; the
 * hot half never polls for them. DESIGN.txt sections 7, 10, 11 and 14.6.
 */
#ifndef PML_BFO_FAILOVER_H
#define PML_BFO_FAILOVER_H

#include "pml_bfo.h"

/* Puts our callbacks into the BTL's extension and returns it; NULL if the BTL has no extension that may be used. */
bfo_btl_ext_t *bfo_failover_adopt(mca_btl_base_module_t *btl);
/* The same for all modules, before the first contact. */
void bfo_failover_adopt_all(void);

/* Handles every symptom of a rail's failure: a descriptor with error status, a refused post, a report of the BTL or of the
 * peer. `gen`: the generation that failed; nothing happens if the rail has a later one. For a refused post the caller passes the
 * generation read before the post. For a descriptor bfo_rail_gen() is right, because the descriptor comes back before the fence of its
 * generation is done (B8). `rail` may be BFO_MAX_RAILS: none. Context: progress or post; locks: none held. */
void bfo_failover_rail_failed(bfo_peer_t *peer, uint8_t rail, uint16_t gen, const char *cause) BFO_COLD;

/* A PUT or READ failed: may its bytes be copied instead, without the loss of a rail? */
bool bfo_failover_may_copy(const bfo_peer_t *peer, uint8_t rail, bool refused) BFO_COLD;

/* The BML's error callback. */
void bfo_failover_btl_error(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info);

#if PML_BFO
/* Name of the module's rail to the peer; BFO_MAX_RAILS: it has none. */
uint8_t bfo_failover_rail_name(const bfo_peer_t *peer, mca_btl_base_module_t *btl);
/* As bfo_rail_name(), for a rail whose name is not known yet. */
uint8_t bfo_failover_learn_name(bfo_peer_t *peer, uint8_t rail) BFO_COLD;
/* Reads the names and generations of the peer's rails, and decides whether interrupted transfers can be restarted. Returns the mask of
 * the rails that are down already; of these, the ones whose fence is not done count as being fenced. Locks: bfo.lock held. */
uint8_t bfo_failover_name_rails(bfo_peer_t *peer);
/* Asks the BTL for the fence of that generation and marks it as running (peer->fencing), unless the fence is done or the rail has none. */
void bfo_failover_fence(bfo_peer_t *peer, uint8_t rail, uint16_t gen) BFO_COLD;
/* Brings those rails down at the peer too, which may never have seen the port down. peer->ready is set. Locks: none held. */
void bfo_failover_fence_down(bfo_peer_t *peer, uint8_t down);
/* Fills in the dead rails of this side, for NOTIFY. */
void bfo_failover_dead_set(bfo_peer_t *peer, bfo_dance_hdr_t *h);
/* False: the NOTIFY names a generation that cannot exist; the caller drops it. */
bool bfo_failover_rails_are_possible(bfo_peer_t *peer, uint8_t mask, const uint16_t *gen);
/* Handles the dead rails that a NOTIFY names: fences each of them that is still alive here. */
void bfo_failover_rails_down(bfo_peer_t *peer, uint8_t mask, const uint16_t *gen);
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
static inline void bfo_failover_fence(bfo_peer_t *peer, uint8_t rail, uint16_t gen) {}
static inline void bfo_failover_fence_down(bfo_peer_t *peer, uint8_t down) {}
#endif
/* Name of a rail, the same on both sides; BFO_MAX_RAILS: it has none yet, and has carried nothing. */
static inline uint8_t bfo_rail_name(bfo_peer_t *peer, uint8_t rail)
{
    const uint8_t name = peer->rails[rail].name;

    return bfo_likely(name < BFO_MAX_RAILS) ? name : bfo_failover_learn_name(peer, rail);
}

/* May the FIN be handled now? False: it waits for the fence of the rail that carried its data. */
bool bfo_failover_fin_is_visible(bfo_peer_t *from, const bfo_fin_hdr_t *fin) BFO_COLD;
/* A FIN or another message without a request failed. `header` is valid only during the call. */
void bfo_failover_ctl_failed(bfo_peer_t *peer, uint8_t rail, const void *header, size_t length, int status) BFO_COLD;

#endif /* PML_BFO_FAILOVER_H */
