/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The fence of a rail: nothing of its generation is under way any more. DESIGN.txt section 10.
 */
#ifndef PML_BFO_FAILOVER_FENCE_H
#define PML_BFO_FAILOVER_FENCE_H

#include "types/pml_bfo.h"

#if PML_BFO
/* Marks the fence as running before the BTL is asked, because its end may come at once. False: the fence is done, or there is none. */
bool bfo_failover_fence_begins(bfo_peer_t *peer, uint8_t rail, uint16_t gen) BFO_COLD;
/* Asks the BTL for the fence of that generation and marks it as running (peer->fencing), unless the fence is done or the rail has none. */
void bfo_failover_fence(bfo_peer_t *peer, uint8_t rail, uint16_t gen) BFO_COLD;
/* Brings those rails down at the peer too, which may never have seen the port down. peer->ready is set. Locks: none held. */
void bfo_failover_fence_down(bfo_peer_t *peer, uint8_t down);
#else
/* Compiled out: no rail has a fence. */
static inline void bfo_failover_fence(bfo_peer_t *peer, uint8_t rail, uint16_t gen) {}
static inline void bfo_failover_fence_down(bfo_peer_t *peer, uint8_t down) {}
#endif

#endif /* PML_BFO_FAILOVER_FENCE_H */
