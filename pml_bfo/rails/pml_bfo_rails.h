/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails and peers: which BTL modules reach a process, what they can do, and which one is next.
 * DESIGN.txt sections 10 and 14.5.
 */
#ifndef PML_BFO_RAILS_H
#define PML_BFO_RAILS_H

#include "bfo_assert.h"
#include "types/pml_bfo.h"

/* The peer structure of a process, made at the first call; it belongs to the PML. NULL without memory. Context: any. */
bfo_peer_t *bfo_peer_get(ompi_proc_t *proc);

/* Finds the rails of the peer. OMPI_SUCCESS (it has a rail, or this process waits for one) or OMPI_ERR_UNREACH. Locks: none held. */
int bfo_peer_connect(bfo_peer_t *peer);

/* How processes of the same machine find a process, read from the modex; all zero: not known. */
bfo_life_t bfo_rails_life_of(const ompi_proc_t *proc) BFO_COLD;

/* Frees the peer structure of a process that leaves. */
void bfo_peer_free(ompi_proc_t *proc);

/* Makes the lane to `rank` of `bc`; its sequence numbers go on where the last communicator of this context id stopped.
 * NULL if the process cannot be found. Locks: none of ours held. */
bfo_lane_t *bfo_lane_create(bfo_comm_t *bc, uint32_t rank);

/* A first fragment of a source without a lane (yet) was lost for lack of memory: the process is declared when it gets the lane. */
void bfo_lane_has_hole(uint16_t ctx, int32_t src) BFO_COLD;
#define BFO_HOLE "no memory for a message that waits for its receive"

/* Index of the rail of `btl`, or BFO_MAX_RAILS if the peer has none. */
uint8_t bfo_rail_index(const bfo_peer_t *peer, const mca_btl_base_module_t *btl);

/* Bytes of a registration handle in a header; 0: the BTL needs no registration. */
static inline size_t bfo_handle_size(const mca_btl_base_module_t *btl)
{
    return NULL == btl->btl_register_mem ? 0 : btl->btl_registration_handle_size;
}

/* Generation of a rail: the one in use, or the last one; 0 for BFO_MAX_RAILS. */
static inline uint16_t bfo_rail_gen(const bfo_peer_t *peer, uint8_t rail)
{
    return rail < BFO_MAX_RAILS ? peer->rails[rail].gen : 0;
}

/* Counts the peer's RDMA in our memory over a rail, because the BTL does not know of it. */
static inline void bfo_rail_count(bfo_peer_t *peer, uint8_t rail, bool wrote, size_t bytes)
{
    bfo_btl_ext_t *ext = rail < peer->n_rails ? peer->rails[rail].ext : NULL;

    if (NULL != ext) {
        bfo_traffic_t *traffic = bfo_traffic_of(ext);

        bfo_traffic_add(wrote ? &traffic->peer_written_bytes : &traffic->peer_read_bytes, bytes, bfo_threads);
    }
}

/* From now on no send offers its buffer to the peer's PUTs. */
void bfo_rails_offer_no_put(bfo_peer_t *peer) BFO_COLD;

/* Starts nothing new on the rail from now on. Returns false if it was down already. */
bool bfo_rail_take_down(bfo_peer_t *peer, uint8_t rail);

/* Uses a new generation of a lost rail. False: the rail is not used, because that generation is known to be dead, or the peer is declared. */
bool bfo_rail_bring_up(bfo_peer_t *peer, uint8_t rail, uint16_t gen) BFO_COLD;
/* Reads which rails stand out; no new work begins on them. Returns true if the answer is new. Locks: none held. */
bool bfo_rails_stand_out(bfo_peer_t *peer) BFO_COLD;
/* Begins no new work on the rail while it is soft (DESIGN.txt 10.2, "Silence"). False: it is not UP, or no rail would be left that is neither
 * soft nor stands out; then nothing changes. Locks: none held. */
bool bfo_rail_soften(bfo_peer_t *peer, uint8_t rail, bool is_soft) BFO_COLD;

/* Rails stand out, are soft or are on probation that were not before, or the other way round. Locks: bfo.lock held. */
void bfo_rails_choose_again(bfo_peer_t *peer) BFO_COLD;
/* The rails of `mask` without those of `avoid`, or all of `mask` if none would be left. */
static inline uint8_t bfo_rails_but(uint8_t mask, uint8_t avoid)
{
    return 0 != (mask & ~avoid) ? (uint8_t) (mask & ~avoid) : mask;
}

/* Returns true if the peer reads long messages. A READ needs one round trip less than a PUT, and no message to the sender for each piece. But
 * if some rails have no READ, or the sides have no names of rails in common, a READ would use one rail where PUTs use all. */
static inline bool bfo_rails_offer_reads(const bfo_peer_t *peer)
{
    return 0 != peer->get_mask
           && (0 == (peer->send_mask & (peer->send_mask - 1)) || 0 == peer->put_mask || (peer->failover && 0 == (peer->put_mask & ~peer->get_mask)));
}

/* For rails that need registrations: as bfo_regs_make() and bfo_regs_drop(). */
uint8_t bfo_regs_register(bfo_peer_t *peer, uint8_t mask, void *base, size_t size, uint32_t access, bfo_regs_t **regs);
void bfo_regs_deregister(bfo_regs_t *regs);
/* Registers a buffer with the rails of `mask` too; the other arguments are those of the first call. Returns those of `mask` now registered. */
uint8_t bfo_regs_extend(bfo_regs_t *regs, uint8_t mask, void *base, size_t size, uint32_t access) BFO_COLD;

/* Registers [base, base+size) with the rails of `mask`. Returns the mask of rails with which all of it is registered; *regs holds the
 * registrations until bfo_regs_drop(). Returns 0 with *regs NULL if refused or without RDMA. `access` is MCA_BTL_REG_FLAG_*. */
static inline uint8_t bfo_regs_make(bfo_peer_t *peer, uint8_t mask, void *base, size_t size, uint32_t access, bfo_regs_t **regs)
{
    BFO_ASSERT(0 == mask >> peer->n_rails);
    if (NULL != peer->no_regs && 0 == (mask & ~peer->no_regs->mask)) {
        *regs = 0 != mask ? peer->no_regs : NULL;
        return mask;
    }
    return bfo_regs_register(peer, mask, base, size, access, regs);
}
static inline void bfo_regs_drop(bfo_regs_t *regs)
{
    BFO_ASSERT(NULL != regs->peer && 0 != regs->mask);
    if (regs != regs->peer->no_regs) {
        bfo_regs_deregister(regs);
    }
}

/* The first `most` rails of `mask`; 0: all of them. */
static inline uint8_t bfo_rails_at_most(uint8_t mask, unsigned most)
{
    uint8_t rest = mask;

    for (unsigned n = 0; bfo_unlikely(0 != most) && n < most; ++n) {
        rest &= (uint8_t) (rest - 1);
    }
    return bfo_likely(0 == most) ? mask : (uint8_t) (mask & ~rest);
}

/* The rail of `mask` (not 0) that carries the next `bytes` of a message. */
static inline uint8_t bfo_rail_for_data(bfo_peer_t *peer, uint8_t mask, size_t bytes)
{
    BFO_ASSERT(0 != mask && 0 == mask >> peer->n_rails);
    return (uint8_t) (bfo_likely(0 == (peer->send_mask & (peer->send_mask - 1))) ? (unsigned) __builtin_ctz(mask)
                                                                                 : bfo_stripe_next(&peer->stripe, mask, bytes));
}

/* A piece of a long message begins on a rail, or ends there. `mask`: rails that carry such pieces; `carried`: the whole piece arrived. */
static inline void bfo_bulk_begin(bfo_peer_t *peer, uint8_t rail, size_t bytes)
{
    if (1 < peer->n_rails) {
        bfo_stripe_begin(&peer->stripe, rail, bytes);
    }
}
void bfo_rails_bulk_end(bfo_peer_t *peer, uint8_t rail, uint8_t mask, size_t bytes, bool carried);
static inline void bfo_bulk_end(bfo_peer_t *peer, uint8_t rail, uint8_t mask, size_t bytes, bool carried)
{
    if (1 < peer->n_rails) {
        bfo_rails_bulk_end(peer, rail, mask, bytes, carried);
    }
}

/* A FRAG, WRITE or READ of this process has succeeded. Its generation is the one in use, because every callback of an older one has run
 * before the rail could come back (B8). `rail` may be BFO_MAX_RAILS. */
static inline void bfo_rail_carried(bfo_peer_t *peer, uint8_t rail, size_t bytes)
{
    if (bfo_unlikely(__atomic_load_n(&peer->probation, __ATOMIC_RELAXED) >> rail & 1)) {
        bfo.carried_on_probation(peer, rail, bytes);
    }
}

static inline bfo_lane_t *bfo_lane(bfo_comm_t *bc, uint32_t rank)
{
    bfo_lane_t *lane;

    BFO_ASSERT(rank < bc->size);
    lane = __atomic_load_n(&bc->lanes[rank], __ATOMIC_ACQUIRE);
    return bfo_likely(NULL != lane) ? lane : bfo_lane_create(bc, rank);
}

/* True if the rails of the peer are known, found now if necessary: the peer can be sent to. */
static inline bool bfo_peer_is_ready(bfo_peer_t *peer)
{
    return bfo_likely(__atomic_load_n(&peer->ready, __ATOMIC_ACQUIRE)) || OMPI_SUCCESS == bfo_peer_connect(peer);
}

/* The rail for a first fragment of a message of `bytes`, or for a control message (0); BFO_MAX_RAILS if none is up. */
static inline uint8_t bfo_rail_for_first(bfo_peer_t *peer, size_t bytes)
{
    const uint8_t mask = peer->eager_mask;
    uint16_t turn;
    uint8_t rail;

    if (bfo_likely(0 == (mask & (mask - 1)))) {
        return 0 != mask ? (uint8_t) __builtin_ctz(mask) : BFO_MAX_RAILS;
    }
    turn = __atomic_load_n(&peer->eager_turn, __ATOMIC_RELAXED);
    rail = bfo_turn_next(&turn, mask, bytes);
    BFO_ASSERT(mask >> rail & 1 && rail < peer->n_rails);
    __atomic_store_n(&peer->eager_turn, turn, __ATOMIC_RELAXED);
    return rail;
}

#endif /* PML_BFO_RAILS_H */
