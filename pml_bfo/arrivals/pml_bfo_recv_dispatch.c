/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Everything that arrives: checks the header, finds the communicator and the source, puts messages into sequence, matches them
 * and passes them on. It trusts bytes from the wire for nothing else. Messages without a communicator are in
 * pml_bfo_recv_orphan.c. DESIGN.txt sections 8 and 14.2.
 */
#include "types/pml_bfo.h"

#include "tables/pml_bfo_failover_fire.h"
#include "types/pml_bfo_extension.h"
#include "failover/pml_bfo_failover.h"
#include "handshake/pml_bfo_failover_handshake.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_rails.h"
#include "ends/pml_bfo_recv_complete.h"
#include "arrivals/pml_bfo_recv_dispatch.h"
#include "ends/pml_bfo_recv_unexpected.h"
#include "arrivals/pml_bfo_recv_orphan.h"
#include "recv/pml_bfo_recv_place.h"
#include "recv/pml_bfo_recv_rdma.h"
#include "send/pml_bfo_send_schedule.h"

#include <stdlib.h>
#include <string.h>

/* ---- first fragments ------------------------------------------------------------------------------- */

/* Delivers out-of-order messages whose turn it is now. A receive that ends may release the last reference to the
 * communicator, therefore this function takes one more from the first receive on that it ends. */
static BFO_COLD void deliver_held(bfo_comm_t *bc, bfo_lane_t *lane)
{
    ompi_communicator_t *comm = NULL;
    mca_btl_base_segment_t segment;
    bfo_unexpected_frag_t *g;
    bfo_posted_t *posted;
    bfo_unexpected_t *unexpected;
    bfo_in_t in;

    for (;;) {
        bfo_lock(&bc->lock);
        unexpected = bfo_lane_next_held(&lane->match);
        if (NULL != unexpected && bfo_unlikely(0 != (lane->match.n_open & BFO_LANE_REVOKED))
            && bfo.refuses(bc, lane, (const bfo_hdr_t *) bfo_container(unexpected, bfo_unexpected_frag_t, unexpected)->data)) {
            bfo_unexpected_free(bfo_container(unexpected, bfo_unexpected_frag_t, unexpected));
            continue;
        }
        BFO_ASSERT(NULL == unexpected
                   || bfo_container(unexpected, bfo_unexpected_frag_t, unexpected)->peer == lane->peer); /* hold_early() kept it for this lane */
        posted = NULL == unexpected ? NULL : bfo_match_arrive(&bc->match, &lane->match, unexpected->by_key.src, unexpected->by_key.tag);
        if (NULL != unexpected && NULL == posted) {
            bfo_match_store(&bc->match, &lane->match, unexpected);
        }
        g = NULL == posted ? NULL : bfo_container(unexpected, bfo_unexpected_frag_t, unexpected);
        if (NULL != g && BFO_MSG_MATCH != ((const bfo_hdr_t *) g->data)->common.type) {
            bfo_recv_hold_back(bfo_container(posted, bfo_recv_t, posted), lane);
        }
        if (NULL != posted && NULL == comm) {
            comm = bc->comm; /* the receive has a reference */
            OBJ_RETAIN(comm);
        }
        bfo_unlock(&bc->lock);
        if (NULL == unexpected) {
            break;
        }
        if (NULL != g) {
            in = bfo_unexpected_in(g, &segment);
            bfo_recv_begin(bfo_container(posted, bfo_recv_t, posted), lane, &in);
            bfo_unexpected_free(g);
        }
    }
    if (NULL != comm) {
        OBJ_RELEASE(comm);
    }
}

/* A matched receive that held back later messages has completed: delivers them. */
static BFO_COLD void release(bfo_comm_t *bc, bfo_lane_t *lane)
{
    bool more;

    bfo_lock(&bc->lock);                                            /* bfo_recv_complete() holds a reference to the communicator */
    BFO_ASSERT(0 != (lane->match.n_open & (BFO_LANE_REVOKED - 1))); /* bfo_recv_hold_back() counted it */
    more = 0 == (--lane->match.n_open & ~BFO_LANE_REVOKED) && 0 != lane->match.n_early;
    bfo_unlock(&bc->lock);
    if (more) {
        deliver_held(bc, lane);
    }
}

/* Its communicator is not made yet, or is freed. */
static BFO_COLD void orphan_arrived(const bfo_in_t *in, bfo_peer_t *from)
{
    bfo_comm_t *bc = bfo_orphan_keep(in, from);

    if (NULL != bc) {
        bfo_dispatch_first(bc, in, from);
    }
}

/* Holds an out-of-order message; nothing is kept from a declared peer. Locks: the communicator's held on entry, released here. */
static BFO_COLD void hold_early(bfo_comm_t *bc, bfo_lane_t *lane, const bfo_in_t *in, uint32_t seq, bfo_peer_t *from)
{
    bfo_unexpected_frag_t *g = NULL;
    const bool is_ended = 0 != (lane->match.n_open & BFO_LANE_ENDED);
    bool is_held;

    if (0 != (lane->match.n_open & BFO_LANE_GONE)) { /* another thread has freed the communicator meanwhile, and empties the lane */
        bfo_unlock(&bc->lock);
        orphan_arrived(in, from);
        return;
    }
    is_held = bfo_lane_is_held(&lane->match, seq);
    if (!is_held && !is_ended) {
        g = bfo_unexpected_keep(in, lane->peer);
        if (NULL != g) {
            bfo_lane_hold(&lane->match, &g->unexpected);
        }
    }
    bfo_unlock(&bc->lock);
    if (is_ended) {
        bfo_stat_drop(BFO_STAT_STALE);
    } else if (is_held) {
        bfo_stat_drop(BFO_STAT_DUPLICATE);
    } else if (NULL == g) {
        bfo_unexpected_has_no_memory(lane->peer, NULL);
    } else {
        bfo_stat_add(BFO_STAT_EARLY, 1);
    }
}

/* Keeps a message without a receive. Locks: the communicator's held on entry, released here. */
static inline __attribute__((always_inline)) void keep_unwanted(bfo_comm_t *bc, bfo_lane_t *lane, const bfo_in_t *in)
{
    bfo_unexpected_frag_t *g = bfo_unexpected_keep(in, lane->peer);

    if (NULL != g) {
        bfo_match_store(&bc->match, &lane->match, &g->unexpected);
    }
    bfo_unlock(&bc->lock);
    bfo_stat_add(BFO_STAT_UNEXPECTED, 1);
    if (NULL == g) {
        bfo_unexpected_has_no_memory(lane->peer, NULL);
    }
}

/* Takes the next message of its source while later ones wait for it. Locks: the communicator's held on entry, released here. A receive
 * that ends may release the last reference to the communicator. */
static BFO_COLD void arrived_in_front(bfo_comm_t *bc, bfo_lane_t *lane, const bfo_in_t *in, bfo_posted_t *posted)
{
    ompi_communicator_t *comm = bc->comm;

    if (NULL == posted) {
        keep_unwanted(bc, lane, in);
        deliver_held(bc, lane);
        return;
    }
    OBJ_RETAIN(comm); /* the receive has a reference, and now only this thread has the receive */
    if (BFO_MSG_MATCH != ((const bfo_hdr_t *) in->segments[0].seg_addr.pval)->common.type) {
        bfo_recv_hold_back(bfo_container(posted, bfo_recv_t, posted), lane);
    }
    bfo_unlock(&bc->lock);
    bfo_recv_begin(bfo_container(posted, bfo_recv_t, posted), lane, in);
    deliver_held(bc, lane);
    OBJ_RELEASE(comm);
}

/* A first fragment without a lane: its source is not in the group, another thread has freed the communicator since it was found, or there
 * is no memory for a lane. */
static BFO_COLD void without_lane_arrived(const bfo_comm_t *bc, const bfo_in_t *in, bfo_peer_t *from)
{
    const bfo_match_hdr_t *h = in->segments[0].seg_addr.pval;

    if ((uint32_t) h->src >= bc->size || NULL != bc->lanes[h->src]) {
        if (!bfo_orphan_is_refused(from, h)) {
            bfo_stat_drop(BFO_STAT_WRONG_SOURCE);
        }
    } else if (__atomic_load_n(&bc->gone, __ATOMIC_ACQUIRE)) {
        orphan_arrived(in, from);
    } else {
        bfo_unexpected_has_no_memory(from, h);
    }
}

/* False: it is the next message, and the caller takes it. Locks: the communicator's held on entry, released if true. */
static BFO_COLD bool odd_verdict(bfo_comm_t *bc, bfo_lane_t *lane, const bfo_in_t *in, bfo_peer_t *from, bfo_seq_verdict_t verdict)
{
    const bfo_match_hdr_t *h = in->segments[0].seg_addr.pval;

    switch (verdict) {
    case BFO_SEQ_NEXT_REVOKED:
        if (!bfo.refuses(bc, lane, (const bfo_hdr_t *) h)) {
            return false;
        }
        deliver_held(bc, lane);
        return true;
    case BFO_SEQ_EARLY:
        hold_early(bc, lane, in, h->seq, from);
        return true;
    default:
        bfo_unlock(&bc->lock);
        bfo_stat_drop(BFO_STAT_DUPLICATE);
        return true;
    }
}

/* A first fragment, and its sender where the BTL tells it. */
typedef struct {
    const bfo_in_t *in;
    bfo_peer_t *from;
} first_t;

/* R1: applies the complete rule to a first fragment. There is no request yet: `request` is the communicator, which is active. */
inline __attribute__((always_inline)) void bfo_recv_act_match_first(void *request, void *arg)
{
    bfo_comm_t *bc = request;
    const bfo_in_t *in = ((const first_t *) arg)->in;
    bfo_peer_t *from = ((const first_t *) arg)->from;
    const bfo_match_hdr_t *h = in->segments[0].seg_addr.pval;
    bfo_lane_t *lane;
    bfo_posted_t *posted;
    bfo_seq_verdict_t verdict;

    if (bfo_unlikely((uint32_t) h->src >= bc->size) || bfo_unlikely(NULL == (lane = bfo_lane(bc, (uint32_t) h->src)))
        || bfo_unlikely(NULL != from && from != lane->peer)) {
        without_lane_arrived(bc, in, from);
        return;
    }
    bfo_lock(&bc->lock);
    verdict = bfo_unlikely(0 != (lane->match.n_open | lane->match.n_early)) ? bfo_lane_admit_among(&lane->match, h->seq)
                                                                            : bfo_lane_admit(&lane->match, h->seq);
    BFO_RECV_ROW(BFO_SE(BFO_RECV_NONE, 0), RTS_FIRST);
    if (bfo_unlikely(BFO_SEQ_NEXT != verdict) && odd_verdict(bc, lane, in, from, verdict)) {
        return;
    }
    posted = bfo_match_arrive(&bc->match, &lane->match, h->src, h->tag);
    if (bfo_unlikely(0 != lane->match.n_early)) {
        arrived_in_front(bc, lane, in, posted);
        return;
    }
    if (bfo_likely(NULL != posted)) {
        if (BFO_MSG_MATCH != h->type) {
            bfo_recv_hold_back(bfo_container(posted, bfo_recv_t, posted), lane);
        }
        bfo_unlock(&bc->lock);
        bfo_recv_begin(bfo_container(posted, bfo_recv_t, posted), lane, in);
    } else {
        keep_unwanted(bc, lane, in);
    }
}

void bfo_dispatch_first(bfo_comm_t *bc, const bfo_in_t *in, bfo_peer_t *from)
{
    bfo_recv_act_match_first(bc, &(first_t){in, from});
}

static inline bfo_peer_t *peer_of(ompi_proc_t *proc)
{
    bfo_peer_t *peer;

    if (bfo_unlikely(NULL == proc)) {
        return NULL;
    }
    peer = __atomic_load_n(&proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML], __ATOMIC_ACQUIRE);
    return bfo_unlikely(NULL == peer) ? bfo_peer_get(proc) : peer;
}

static inline bfo_peer_t *source_of(mca_btl_base_module_t *btl, const bfo_arrival_t *des)
{
    return peer_of(bfo_ext_source(btl, des));
}

/* ---- callbacks of the BTLs ------------------------------------------------------------------------- */

static inline bfo_in_t in_from(mca_btl_base_module_t *btl, const bfo_arrival_t *des)
{
    bfo_in_t in = {btl, des->des_segments, des->des_segment_count, des->des_segments[0].seg_len};

    for (size_t i = 1; bfo_unlikely(i < in.n_segments); ++i) {
        in.length += des->des_segments[i].seg_len;
    }
    return in;
}

/* A MATCH that on_match() does not handle: out of order, next while later ones are held, duplicate, or without known communicator or source. */
static __attribute__((noinline)) void odd_match_arrived(mca_btl_base_module_t *btl, const bfo_arrival_t *des, bfo_comm_t *bc, ompi_proc_t *proc)
{
    const bfo_in_t in = in_from(btl, des);
    bfo_peer_t *from = peer_of(proc);

    if (NULL == bc) {
        orphan_arrived(&in, NULL == from ? bfo_orphan_source(btl, BFO_ARRIVAL_ENDPOINT(des)) : from);
    } else {
        bfo_dispatch_first(bc, &in, from);
    }
}

/* An unexpected MATCH. Locks: the communicator's held on entry, released here. */
static __attribute__((noinline)) void unwanted_match_arrived(mca_btl_base_module_t *btl, const bfo_arrival_t *des, bfo_comm_t *bc, bfo_lane_t *lane)
{
    const bfo_in_t in = in_from(btl, des);

    keep_unwanted(bc, lane, &in);
}

/* A MATCH with header and payload in two segments (BTL self). */
static __attribute__((noinline)) void begin_pieces(mca_btl_base_module_t *btl, const bfo_arrival_t *des, bfo_lane_t *lane, bfo_recv_t *req)
{
    const bfo_in_t in = in_from(btl, des);

    bfo_recv_begin_pieces(req, lane, &in);
}

/* The rule of bfo_recv_act_match_first() for the next message of its source. On shared memory the payload's cache lines still
 * belong to the sender's core: this function prefetches them before it reads anything (never beyond the message, where the
 * sender writes the next one), and keeps what it needs of the fragment in registers, not in a bfo_in_t (DESIGN.txt
 * section 14.3). */
static void on_match(BFO_ARRIVAL_ARGS)
{
    const bfo_match_hdr_t *h = des->des_segments[0].seg_addr.pval;
    const size_t length = des->des_segments[0].seg_len;
    bfo_lane_t *lane = NULL;
    bfo_seq_verdict_t verdict;
    ompi_proc_t *from;
    bfo_posted_t *posted;
    bfo_comm_t *bc;

    __builtin_prefetch((const char *) h + length / 2);
    __builtin_prefetch((const char *) h + length - 1);
    if (bfo_unlikely(!bfo_hdr_match_is_valid(h, length))) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return;
    }
    from = bfo_ext_source(btl, des);
    bc = bfo_comm_find(h->ctx);
    if (bfo_likely(NULL != bc) && bfo_likely((uint32_t) h->src < bc->size)) {
        lane = __atomic_load_n(&bc->lanes[h->src], __ATOMIC_ACQUIRE);
    }
    if (bfo_unlikely(NULL == lane) || bfo_unlikely(NULL != from && from != lane->peer->proc)) {
        odd_match_arrived(btl, des, bc, from);
        return;
    }
    bfo_lock(&bc->lock);
    if (bfo_unlikely(0 != (lane->match.n_open | lane->match.n_early)) || bfo_unlikely(h->seq != lane->match.next_recv)) {
        bfo_unlock(&bc->lock);
        odd_match_arrived(btl, des, bc, from);
        return;
    }
    verdict = bfo_lane_admit(&lane->match, h->seq);
    BFO_ASSERT(BFO_SEQ_NEXT == verdict);
    BFO_RECV_ROW(BFO_SE(BFO_RECV_NONE, 0), RTS_FIRST);
    posted = bfo_match_arrive(&bc->match, &lane->match, h->src, h->tag);
    if (bfo_likely(NULL != posted)) {
        bfo_unlock(&bc->lock);
        if (bfo_likely(1 == des->des_segment_count)) {
            bfo_recv_begin_match(bfo_container(posted, bfo_recv_t, posted), lane, h, length);
        } else {
            begin_pieces(btl, des, lane, bfo_container(posted, bfo_recv_t, posted));
        }
    } else {
        unwanted_match_arrived(btl, des, bc, lane);
    }
}

static inline void rendezvous_arrived(mca_btl_base_module_t *btl, const bfo_arrival_t *des, const bfo_in_t *in, const bfo_match_hdr_t *h)
{
    bfo_peer_t *from = source_of(btl, des);
    bfo_comm_t *bc;

    if (PML_BFO && bfo_unlikely(h->flags & BFO_FLAG_RESTART)) {
        bfo_failover_on_restart(in);
        return;
    }
    bc = bfo_comm_find(h->ctx);
    if (bfo_unlikely(NULL == bc)) {
        orphan_arrived(in, NULL == from ? bfo_orphan_source(btl, BFO_ARRIVAL_ENDPOINT(des)) : from);
        return;
    }
    bfo_recv_act_match_first(bc, &(first_t){in, from});
}

static void on_rndv(BFO_ARRIVAL_ARGS)
{
    const bfo_in_t in = in_from(btl, des);
    const bfo_rndv_hdr_t *h = des->des_segments[0].seg_addr.pval;

    if (bfo_unlikely(!bfo_hdr_rndv_is_valid(h, des->des_segments[0].seg_len, in.length))) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return;
    }
    rendezvous_arrived(btl, des, &in, &h->match);
}

static void on_rget(BFO_ARRIVAL_ARGS)
{
    const bfo_in_t in = in_from(btl, des);
    const bfo_rget_hdr_t *h = des->des_segments[0].seg_addr.pval;

    if (bfo_unlikely(!bfo_hdr_rget_is_valid(h, des->des_segments[0].seg_len, in.length, bfo_handle_size(btl)))) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return;
    }
    rendezvous_arrived(btl, des, &in, &h->rndv.match);
}

/* Handles a FIN whose data is visible. */
static void fin_arrived(const bfo_fin_hdr_t *fin)
{
    bfo_name_t *name = bfo_ids_find(&bfo.frags, fin->frag_id);
    bfo_frag_t *frag = NULL == name ? NULL : bfo_container(name, bfo_frag_t, name);

    if (NULL == frag || frag->kind != (0 != (fin->fflags & BFO_FIN_WRITE) ? BFO_FRAG_PUT : BFO_FRAG_RGET)) {
        bfo_stat_drop(BFO_STAT_STALE);
    } else if (BFO_FRAG_PUT == frag->kind) {
        bfo_recv_on_fin(frag, fin);
    } else {
        bfo_send_on_fin(frag, fin);
    }
}

static void on_frag(BFO_ARRIVAL_ARGS)
{
    const bfo_in_t in = in_from(btl, des);
    const bfo_frag_hdr_t *h = des->des_segments[0].seg_addr.pval;

    if (bfo_unlikely(!bfo_hdr_frag_is_valid(h, des->des_segments[0].seg_len, in.length))) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return;
    }
    bfo_recv_on_frag(&in, h);
}

/* A FIN that was sent again counts only once its WRITE is visible. */
static BFO_COLD void on_fin_resent(mca_btl_base_module_t *btl, const bfo_arrival_t *des, const bfo_fin_hdr_t *h)
{
    if (bfo_failover_fin_is_visible(source_of(btl, des), h)) {
        fin_arrived(h);
    }
}

static void on_fin(BFO_ARRIVAL_ARGS)
{
    const bfo_fin_hdr_t *h = des->des_segments[0].seg_addr.pval;
    const size_t length = des->des_segments[0].seg_len;

    if (bfo_unlikely(1 != des->des_segment_count || !bfo_hdr_fin_is_valid(h, length, length))) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
    } else if (PML_BFO && bfo_unlikely(0 != (h->fflags & BFO_FIN_RESENT))) {
        on_fin_resent(btl, des, h);
    } else {
        fin_arrived(h);
    }
}

/* Every other message. */
static void on_other(BFO_ARRIVAL_ARGS)
{
    const bfo_in_t in = in_from(btl, des);
    const bfo_hdr_t *h = des->des_segments[0].seg_addr.pval;
    const uint8_t type = (uint8_t) (BFO_ARRIVAL_TAG - BFO_TAG_BASE);

    if (bfo_unlikely(!bfo_hdr_is_valid(type, h, des->des_segments[0].seg_len, in.length, bfo_handle_size(btl)))) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return;
    }
    switch (type) {
    case BFO_MSG_ACK:
        bfo_send_on_ack(&h->ack);
        break;
    case BFO_MSG_PUT:
        bfo_send_on_put(btl, &h->put);
        break;
    case BFO_MSG_RAILS: /* pml_bfo_drain.c and _witness.c register their own handlers; with failover compiled out nobody drains or asks */
    case BFO_MSG_LIFE:
        bfo_stat_drop(BFO_STAT_STALE);
        break;
    default:
        if (PML_BFO) {
            bfo_failover_on_handshake(source_of(btl, des), &h->handshake);
        }
        break;
    }
}

/* ---- first fragments, with threads: another thread may free the communicator they find meanwhile ----------------------- */

#define INSIDE(handler) \
    static void handler##_inside(BFO_ARRIVAL_ARGS) \
    { \
        bfo_local_t *me = bfo_enter(); \
\
        handler(BFO_ARRIVAL_PASS); \
        bfo_leave(me); \
    }
INSIDE(on_match)
INSIDE(on_rndv)
INSIDE(on_rget)

int bfo_dispatch_register(void)
{
    const struct {
        uint8_t type;
        mca_btl_base_module_recv_cb_fn_t handler;
    } table[] = {
        {BFO_MSG_MATCH, bfo_threads ? on_match_inside : on_match},
        {BFO_MSG_RNDV, bfo_threads ? on_rndv_inside : on_rndv},
        {BFO_MSG_RGET, bfo_threads ? on_rget_inside : on_rget},
        {BFO_MSG_ACK, on_other},
        {BFO_MSG_FRAG, on_frag},
        {BFO_MSG_PUT, on_other},
        {BFO_MSG_FIN, on_fin},
        {BFO_MSG_NOTIFY, on_other},
        {BFO_MSG_RACK, on_other},
        {BFO_MSG_NACK, on_other},
        {BFO_MSG_RERR, on_other},
        {BFO_MSG_RAILS, on_other},
        {BFO_MSG_LIFE, on_other},
    };
    int rc = OMPI_SUCCESS;

    bfo.up.release = release;
    bfo.up.fin_is_visible = fin_arrived;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && OMPI_SUCCESS == rc; ++i) {
        rc = mca_bml.bml_register(BFO_TAG(table[i].type), table[i].handler, NULL);
    }
    return rc;
}
