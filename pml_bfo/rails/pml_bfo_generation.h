/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The generations of a rail and their fences: the generation in use, the last one that is fenced, and the fences that run. Only these
 * functions write those members of bfo_rail_t and bfo_peer_t; the BTL owns the state of a rail. DESIGN.txt sections 10 and 14.1.
 * Locks of all: bfo.lock held.
 */
#ifndef PML_BFO_GENERATION_H
#define PML_BFO_GENERATION_H

#include "bfo_assert.h"
#include "types/pml_bfo.h"

/* A new rail has generation 0, and no generation is fenced. */
static inline void bfo_generation_init(bfo_rail_t *rail)
{
    rail->gen = rail->awaited = 0;
    rail->fenced = -1;
}

/* May the rail use a generation that its BTL has connected? False: the rail uses it already, or it is known to be dead. */
static inline bool bfo_generation_is_next(const bfo_rail_t *rail, uint16_t gen)
{
    return gen > rail->gen && rail->fenced < (int32_t) gen;
}

/* Uses the next generation. The caller puts the rail into a mask afterwards: a thread that sees the rail there sees its generation. */
static inline void bfo_generation_use(bfo_rail_t *rail, uint16_t gen)
{
    BFO_ASSERT(bfo_generation_is_next(rail, gen)); /* generations only grow */
    BFO_ASSERT(rail->awaited <= rail->gen);
    __atomic_store_n(&rail->gen, gen, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

#if PML_BFO
/* The first contact finds a rail in the state of `info`. Returns true if the rail is down; if its fence runs, the fence is waited for. */
bool bfo_generation_found(bfo_peer_t *peer, uint8_t rail, const bfo_rail_info_t *info);
/* The fence of a generation, or of the one in use if that is newer, is waited for. False: the fence is done, or the rail has none. */
bool bfo_generation_fence_begins(bfo_peer_t *peer, uint8_t rail, uint16_t gen) BFO_COLD;
/* The BTL has fenced a generation. `lossy`: bytes that were written may be missing. */
void bfo_generation_fence_ends(bfo_peer_t *peer, uint8_t rail, uint16_t gen, bool lossy) BFO_COLD;
/* The BTL refuses the fence, and nothing waits for it. */
void bfo_generation_fence_refused(bfo_peer_t *peer, uint8_t rail) BFO_COLD;
#endif

#endif /* PML_BFO_GENERATION_H */
