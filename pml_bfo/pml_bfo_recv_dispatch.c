/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Everything that arrives: check the header, find the communicator and the source, sort by number, match,
 * and hand over. Bytes from the wire are trusted for nothing else. DESIGN.txt sections 8 and 14.2.
 */
#include "pml_bfo.h"

#include "pml_bfo_failover.h"
#include "pml_bfo_params.h"
#include "pml_bfo_rails.h"
#include "pml_bfo_recv.h"
#include "pml_bfo_send.h"
#include "pml_bfo_local.h"

#include <stdlib.h>
#include <string.h>

/* ---- keeping a fragment ---------------------------------------------------------------------------- */

bfo_got_frag_t *bfo_got_keep(const bfo_in_t *in, bfo_peer_t *peer)
{
    bfo_got_frag_t *g = bfo_spare_take(BFO_SPARE_GOT);
    const bfo_match_hdr_t *h = in->segments[0].seg_addr.pval;

    if (NULL == g) {
        return NULL;
    }
    g->data = in->length <= bfo_params.unexpected_limit ? g->room : malloc(in->length);
    if (NULL == g->data) {
        bfo_spare_give(BFO_SPARE_GOT, &g->super);
        return NULL;
    }
    if (bfo_likely(1 == in->n_segments)) {
        memcpy(g->data, h, in->length);
    } else {
        char *to = g->data;

        for (size_t i = 0; i < in->n_segments; ++i) {
            memcpy(to, in->segments[i].seg_addr.pval, in->segments[i].seg_len);
            to += in->segments[i].seg_len;
        }
    }
    g->length = in->length;
    g->btl = in->btl;
    g->peer = peer;
    g->got.src = h->src;
    g->got.tag = h->tag;
    g->got.seq = h->seq;
    return g;
}

void bfo_got_free(bfo_got_frag_t *g)
{
    if (g->data != g->room) {
        free(g->data);
    }
    bfo_spare_give(BFO_SPARE_GOT, &g->super);
}

static bfo_in_t in_of(const bfo_got_frag_t *g, mca_btl_base_segment_t *segment)
{
    *segment = (mca_btl_base_segment_t){.seg_addr.pval = g->data, .seg_len = g->length};
    return (bfo_in_t){g->btl, segment, 1, g->length};
}

/* A first fragment that cannot be kept is a hole in its stream: there is no memory left to go on. */
static BFO_COLD void no_memory(bfo_peer_t *peer)
{
    if (NULL != peer) {
        bfo_failover_declare(peer, "no memory for a message that waits for its receive");
    }
}

/* ---- first fragments ------------------------------------------------------------------------------- */

/* Messages that came too early and whose turn it is now. */
static BFO_COLD void deliver_held(bfo_comm_t *bc, bfo_lane_t *lane)
{
    mca_btl_base_segment_t segment;
    bfo_got_frag_t *g;
    bfo_want_t *want;
    bfo_got_t *got;
    bfo_in_t in;

    for (;;) {
        bfo_lock(&bc->lock);
        got = bfo_lane_next_held(&lane->match);
        want = NULL == got ? NULL : bfo_match_arrive(&bc->match, &lane->match, got->src, got->tag);
        if (NULL != got && NULL == want) {
            bfo_match_store(&bc->match, &lane->match, got);
        }
        g = NULL == want ? NULL : bfo_container(got, bfo_got_frag_t, got);
        if (NULL != g && BFO_MSG_MATCH != ((const bfo_hdr_t *) g->data)->common.type) {
            bfo_recv_hold_back(bfo_container(want, bfo_recv_t, want), lane);
        }
        bfo_unlock(&bc->lock);
        if (NULL == got) {
            return;
        }
        if (NULL != g) {
            in = in_of(g, &segment);
            bfo_recv_begin(bfo_container(want, bfo_recv_t, want), lane, &in);
            bfo_got_free(g);
        }
    }
}

void bfo_dispatch_release(bfo_comm_t *bc, bfo_lane_t *lane)
{
    bool more;

    bfo_lock(&bc->lock);
    more = 0 == --lane->match.n_open && 0 != lane->match.n_early;
    bfo_unlock(&bc->lock);
    if (more) {
        deliver_held(bc, lane);
    }
}

/* Under the communicator's lock, which it gives back. Of a declared peer nothing is kept. */
static BFO_COLD void hold_early(bfo_comm_t *bc, bfo_lane_t *lane, const bfo_in_t *in, uint32_t seq)
{
    bfo_got_frag_t *g = NULL;
    const bool is_ended = 0 != (lane->match.n_open & BFO_LANE_ENDED);
    bool is_held = bfo_lane_is_held(&lane->match, seq);

    if (!is_held && !is_ended) {
        g = bfo_got_keep(in, lane->peer);
        if (NULL != g) {
            bfo_lane_hold(&lane->match, &g->got);
        }
    }
    bfo_unlock(&bc->lock);
    if (is_ended) {
        bfo_stat_drop(BFO_STAT_STALE);
    } else if (is_held) {
        bfo_stat_drop(BFO_STAT_DUPLICATE);
    } else if (NULL == g) {
        no_memory(lane->peer);
    } else {
        bfo_stat_add(BFO_STAT_EARLY, 1);
    }
}

/* The complete rule for a first fragment of an active communicator; `whole` if it can only be a MATCH. */
static inline __attribute__((always_inline)) void first_arrived_now(bfo_comm_t *bc, const bfo_in_t *in,
                                                                    const bfo_peer_t *from, bool whole)
{
    const bfo_match_hdr_t *h = in->segments[0].seg_addr.pval;
    bfo_got_frag_t *g;
    bfo_lane_t *lane;
    bfo_want_t *want;
    bfo_seq_verdict_t verdict;
    bool more;

    if (bfo_unlikely((uint32_t) h->src >= bc->size) || bfo_unlikely(NULL == (lane = bfo_lane(bc, (uint32_t) h->src)))
        || bfo_unlikely(NULL != from && from != lane->peer)) {
        bfo_stat_drop(BFO_STAT_WRONG_SOURCE);
        return;
    }
    bfo_lock(&bc->lock);
    verdict = bfo_unlikely(0 != lane->match.n_open) ? bfo_lane_admit_none(&lane->match, h->seq)
                                                    : bfo_lane_admit(&lane->match, h->seq);
    BFO_RECV_ROW(BFO_SE(BFO_RECV_NONE, 0), RTS_FIRST);
    if (bfo_unlikely(BFO_SEQ_NEXT != verdict)) {
        if (BFO_SEQ_EARLY == verdict) {
            hold_early(bc, lane, in, h->seq);
            return;
        }
        bfo_unlock(&bc->lock);
        bfo_stat_drop(BFO_STAT_DUPLICATE);
        return;
    }
    want = bfo_match_arrive(&bc->match, &lane->match, h->src, h->tag);
    more = 0 != lane->match.n_early;
    if (bfo_likely(NULL != want)) {
        if (!whole && BFO_MSG_MATCH != h->type) {
            bfo_recv_hold_back(bfo_container(want, bfo_recv_t, want), lane);
        }
        bfo_unlock(&bc->lock);
        bfo_recv_begin(bfo_container(want, bfo_recv_t, want), lane, in);
    } else {
        g = bfo_got_keep(in, lane->peer);
        if (NULL != g) {
            bfo_match_store(&bc->match, &lane->match, &g->got);
        }
        bfo_unlock(&bc->lock);
        bfo_stat_add(BFO_STAT_UNEXPECTED, 1);
        if (NULL == g) {
            no_memory(lane->peer);
        }
    }
    if (bfo_unlikely(more)) {
        deliver_held(bc, lane);
    }
}

/* For all but the hottest caller. */
static __attribute__((noinline)) void first_arrived(bfo_comm_t *bc, const bfo_in_t *in, const bfo_peer_t *from)
{
    first_arrived_now(bc, in, from, false);
}

/* No communicator of this context id here, not yet or not any more (DESIGN.txt section 8). */
static BFO_COLD void orphan_arrived(const bfo_in_t *in, bfo_peer_t *from)
{
    const bfo_match_hdr_t *h = in->segments[0].seg_addr.pval;
    const bfo_seqs_t *kept;
    bfo_got_frag_t *g;
    bfo_comm_t *bc;

    BFO_LOCK(&bfo.lock);
    bc = bfo_comm_find(h->ctx);
    if (NULL != bc) { /* added meanwhile by another thread */
        BFO_UNLOCK(&bfo.lock);
        first_arrived(bc, in, from);
        return;
    }
    kept = NULL == from ? NULL : bfo_seqmap_find(&from->kept, h->ctx);
    if (NULL != from && from->declared) {
        BFO_UNLOCK(&bfo.lock);
        bfo_stat_drop(BFO_STAT_STALE);
        return;
    }
    if (NULL != kept && (int32_t) (h->seq - kept->next_recv) < 0) {
        BFO_UNLOCK(&bfo.lock);
        bfo_stat_drop(BFO_STAT_DUPLICATE);
        return;
    }
    g = bfo_got_keep(in, from);
    if (NULL != g) {
        bfo_link_append(&bfo.orphans, &g->link);
    }
    BFO_UNLOCK(&bfo.lock);
    bfo_stat_add(BFO_STAT_ORPHAN, 1);
    if (NULL == g) {
        no_memory(from);
    }
}

void bfo_dispatch_adopt_orphans(bfo_comm_t *bc)
{
    const uint16_t ctx = (uint16_t) bc->comm->c_contextid;
    mca_btl_base_segment_t segment;
    bfo_link_t mine, *l, *next;
    bfo_got_frag_t *g;
    bfo_in_t in;

    bfo_link_init(&mine);
    BFO_LOCK(&bfo.lock);
    for (l = bfo.orphans.next; l != &bfo.orphans; l = next) {
        next = l->next;
        g = bfo_container(l, bfo_got_frag_t, link);
        if (ctx == ((const bfo_match_hdr_t *) g->data)->ctx) {
            bfo_link_remove(l);
            bfo_link_append(&mine, l);
        }
    }
    BFO_UNLOCK(&bfo.lock);
    while (!bfo_link_is_empty(&mine)) {
        g = bfo_container(mine.next, bfo_got_frag_t, link);
        bfo_link_remove(&g->link);
        in = in_of(g, &segment);
        first_arrived(bc, &in, g->peer);
        bfo_got_free(g);
    }
}

/* The process the BTL received the fragment from; NULL if its rails cannot fail. */
static inline bfo_peer_t *source_of(mca_btl_base_module_t *btl, const mca_btl_base_descriptor_t *des)
{
    bfo_peer_t *peer;
    ompi_proc_t *proc;

    if (!PML_BFO || btl->btl_component != bfo.failover_component) {
        return NULL;
    }
    proc = (ompi_proc_t *) bfo_btl_ext(btl)->des_peer(btl, des);
    if (bfo_unlikely(NULL == proc)) {
        return NULL;
    }
    peer = __atomic_load_n(&proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML], __ATOMIC_ACQUIRE);
    return bfo_unlikely(NULL == peer) ? bfo_peer_get(proc) : peer;
}

/* ---- callbacks of the BTLs ------------------------------------------------------------------------- */

static inline bfo_in_t in_from(mca_btl_base_module_t *btl, const mca_btl_base_descriptor_t *des)
{
    bfo_in_t in = {btl, des->des_segments, des->des_segment_count, des->des_segments[0].seg_len};

    for (size_t i = 1; bfo_unlikely(i < in.n_segments); ++i) {
        in.length += des->des_segments[i].seg_len;
    }
    return in;
}

static void on_match(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t *des, void *cbdata)
{
    const bfo_in_t in = in_from(btl, des);
    const bfo_match_hdr_t *h = des->des_segments[0].seg_addr.pval;
    bfo_peer_t *from;
    bfo_comm_t *bc;

    if (bfo_unlikely(!bfo_hdr_match_is_valid(h, des->des_segments[0].seg_len))) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return;
    }
    from = source_of(btl, des);
    bc = bfo_comm_find(h->ctx);
    if (bfo_unlikely(NULL == bc)) {
        orphan_arrived(&in, from);
        return;
    }
    first_arrived_now(bc, &in, from, true);
}

static inline size_t handle_size_of(const mca_btl_base_module_t *btl)
{
    return NULL == btl->btl_register_mem ? 0 : btl->btl_registration_handle_size;
}

static inline void rendezvous_arrived(mca_btl_base_module_t *btl, const mca_btl_base_descriptor_t *des,
                                      const bfo_in_t *in, const bfo_match_hdr_t *h)
{
    bfo_peer_t *from = source_of(btl, des);
    bfo_comm_t *bc;

    if (PML_BFO && bfo_unlikely(h->flags & BFO_FLAG_RESTART)) {
        bfo_failover_on_restart(in, handle_size_of(btl));
        return;
    }
    bc = bfo_comm_find(h->ctx);
    if (bfo_unlikely(NULL == bc)) {
        orphan_arrived(in, from);
        return;
    }
    first_arrived_now(bc, in, from, false);
}

static void on_rndv(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t *des, void *cbdata)
{
    const bfo_in_t in = in_from(btl, des);
    const bfo_rndv_hdr_t *h = des->des_segments[0].seg_addr.pval;

    if (bfo_unlikely(!bfo_hdr_rndv_is_valid(h, des->des_segments[0].seg_len, in.length))) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return;
    }
    rendezvous_arrived(btl, des, &in, &h->match);
}

static void on_rget(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t *des, void *cbdata)
{
    const bfo_in_t in = in_from(btl, des);
    const bfo_rget_hdr_t *h = des->des_segments[0].seg_addr.pval;

    if (bfo_unlikely(!bfo_hdr_rget_is_valid(h, des->des_segments[0].seg_len, in.length, handle_size_of(btl)))) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return;
    }
    rendezvous_arrived(btl, des, &in, &h->rndv.match);
}

void bfo_dispatch_fin(const bfo_fin_hdr_t *fin)
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

static void on_frag(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t *des, void *cbdata)
{
    const bfo_in_t in = in_from(btl, des);
    const bfo_frag_hdr_t *h = des->des_segments[0].seg_addr.pval;

    if (bfo_unlikely(!bfo_hdr_frag_is_valid(h, des->des_segments[0].seg_len, in.length))) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return;
    }
    bfo_recv_on_frag(&in, h);
}

static void on_fin(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t *des, void *cbdata)
{
    const bfo_in_t in = in_from(btl, des);
    const bfo_fin_hdr_t *h = des->des_segments[0].seg_addr.pval;

    if (bfo_unlikely(!bfo_hdr_fin_is_valid(h, des->des_segments[0].seg_len, in.length))) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return;
    }
    if (!PML_BFO || bfo_likely(0 == (h->fflags & BFO_FIN_RESENT)) || bfo_failover_fin_is_visible(source_of(btl, des), h)) {
        bfo_dispatch_fin(h);
    }
}

/* Every other message. */
static void on_other(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t *des, void *cbdata)
{
    const bfo_in_t in = in_from(btl, des);
    const bfo_hdr_t *h = des->des_segments[0].seg_addr.pval;
    const uint8_t type = (uint8_t) (tag - BFO_TAG_BASE);

    if (bfo_unlikely(!bfo_hdr_is_valid(type, h, des->des_segments[0].seg_len, in.length, handle_size_of(btl)))) {
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
    default:
        if (PML_BFO) {
            bfo_failover_on_dance(source_of(btl, des), &h->dance);
        }
        break;
    }
}

int bfo_dispatch_register(void)
{
    static const struct {
        uint8_t type;
        mca_btl_base_module_recv_cb_fn_t handler;
    } table[] = {
        {BFO_MSG_MATCH, on_match}, {BFO_MSG_RNDV, on_rndv}, {BFO_MSG_RGET, on_rget},  {BFO_MSG_ACK, on_other},
        {BFO_MSG_FRAG, on_frag},   {BFO_MSG_PUT, on_other}, {BFO_MSG_FIN, on_fin},    {BFO_MSG_NOTIFY, on_other},
        {BFO_MSG_RACK, on_other},  {BFO_MSG_NACK, on_other}, {BFO_MSG_RERR, on_other},
    };
    int rc = OMPI_SUCCESS;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && OMPI_SUCCESS == rc; ++i) {
        rc = mca_bml.bml_register(BFO_TAG(table[i].type), table[i].handler, NULL);
    }
    return rc;
}
