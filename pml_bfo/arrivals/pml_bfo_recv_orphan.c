/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * First fragments that find no communicator of their context id, because it is not made here yet or was freed. They wait in
 * bfo.orphans, and the next communicator of that context id takes them. DESIGN.txt section 8. In a job that survives failures, those that
 * come for a communicator that has ended here are refused instead (section 14.11).
 */
#include "types/pml_bfo.h"

#include "failover/pml_bfo_failover_peer.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_rails.h"
#include "ends/pml_bfo_recv_unexpected.h"
#include "ulfm/pml_bfo_revoke.h"
#include "arrivals/pml_bfo_recv_orphan.h"

#include "opal/runtime/opal_progress.h"

void bfo_unexpected_has_no_memory(bfo_peer_t *peer, const bfo_match_hdr_t *h)
{
    if (NULL != peer) {
        bfo_failover_declare(peer, BFO_HOLE);
    } else {
        bfo_lane_has_hole(h->ctx, h->src);
    }
}

bfo_peer_t *bfo_orphan_source(const mca_btl_base_module_t *btl, const struct mca_btl_base_endpoint_t *endpoint)
{
    if (NULL == bfo.id_is_in_use || NULL == endpoint) {
        return NULL;
    }
    BFO_FOREACH_PEER(peer)
    {
        const uint8_t r = bfo_peer_is_ready(peer) ? bfo_rail_index(peer, btl) : BFO_MAX_RAILS;

        if (BFO_MAX_RAILS != r && peer->rails[r].endpoint == endpoint) {
            return peer;
        }
    }
    return NULL;
}

/* ---- communicators that have ended here (ULFM) ----------------------------------------------------------- */

/* Does the first fragment come for a communicator that has ended here? If so, its number counts as used, and the caller refuses it. A copy of a
 * message that was taken is no such fragment. The id of a communicator that has not ended is in use at all its members, and `stranger`, who is
 * not in the communicator that has the id here, can mean none but an ended one. Locks: bfo.lock held. */
static bool comes_late(bfo_peer_t *from, const bfo_match_hdr_t *h, bool is_stranger)
{
    const bfo_seqs_t *kept;

    if (NULL == from || NULL == bfo.id_is_in_use) {
        return false;
    }
    kept = bfo_seqmap_find(&from->kept, h->ctx);
    if (bfo_seqs_is_taken(kept, h->seq)) {
        return false;
    }
    if (bfo_seqs_is_used(kept, h->seq)) {
        return true;
    }
    return (is_stranger || !bfo.id_is_in_use(h->ctx)) && 0 == bfo_seqmap_skip(&from->kept, h->ctx, h->seq + 1);
}

bool bfo_orphan_is_refused(bfo_peer_t *from, const bfo_match_hdr_t *h)
{
    bool is_late;

    BFO_LOCK(&bfo.lock);
    is_late = comes_late(from, h, true);
    BFO_UNLOCK(&bfo.lock);
    if (is_late) {
        bfo_refuse(from, (const bfo_hdr_t *) h, false);
    }
    return is_late;
}

static int is_looking; /* atomic */

/* A progress function: has Open MPI given up an id on which it was agreeing when a fragment came? */
static int look(void)
{
    bfo_unexpected_frag_t *g;
    bfo_link_t late, *l, *next;

    if (&bfo.orphans == __atomic_load_n(&bfo.orphans.next, __ATOMIC_RELAXED)) {
        return 0;
    }
    bfo_link_init(&late);
    BFO_LOCK(&bfo.lock);
    for (l = bfo.orphans.next; l != &bfo.orphans; l = next) {
        next = l->next;
        g = bfo_container(l, bfo_unexpected_frag_t, link);
        if (comes_late(g->peer, (const bfo_match_hdr_t *) g->data, false)) {
            bfo_link_remove(l);
            bfo_link_append(&late, l);
        }
    }
    BFO_UNLOCK(&bfo.lock);
    while (!bfo_link_is_empty(&late)) {
        g = bfo_container(late.next, bfo_unexpected_frag_t, link);
        bfo_link_remove(&g->link);
        bfo_refuse(g->peer, (const bfo_hdr_t *) g->data, false);
        bfo_unexpected_free(g);
    }
    return 0;
}

void bfo_orphans_close(void)
{
    if (__atomic_exchange_n(&is_looking, 0, __ATOMIC_RELAXED)) {
        opal_progress_unregister(look);
    }
}

/* ---- communicators that are to come ----------------------------------------------------------------------- */

bfo_comm_t *bfo_orphan_keep(const bfo_in_t *in, bfo_peer_t *from)
{
    const bfo_match_hdr_t *h = in->segments[0].seg_addr.pval;
    const bfo_seqs_t *kept;
    bfo_unexpected_frag_t *g;
    bfo_comm_t *bc;

    BFO_LOCK(&bfo.lock);
    bc = bfo_comm_find(h->ctx);
    if (NULL != bc) {
        BFO_UNLOCK(&bfo.lock);
        return bc;
    }
    kept = NULL == from ? NULL : bfo_seqmap_find(&from->kept, h->ctx);
    if (NULL != from && from->declared) {
        BFO_UNLOCK(&bfo.lock);
        bfo_stat_drop(BFO_STAT_STALE);
        return NULL;
    }
    if (comes_late(from, h, false)) {
        BFO_UNLOCK(&bfo.lock);
        bfo_refuse(from, (const bfo_hdr_t *) h, false);
        return NULL;
    }
    if (bfo_seqs_is_used(kept, h->seq)) {
        BFO_UNLOCK(&bfo.lock);
        bfo_stat_drop(BFO_STAT_DUPLICATE);
        return NULL;
    }
    g = bfo_unexpected_keep(in, from);
    if (NULL != g) {
        bfo_link_append(&bfo.orphans, &g->link);
    }
    BFO_UNLOCK(&bfo.lock);
    bfo_stat_add(BFO_STAT_ORPHAN, 1);
    if (NULL == g) {
        bfo_unexpected_has_no_memory(from, h);
    } else if (NULL != bfo.id_is_in_use && !__atomic_exchange_n(&is_looking, 1, __ATOMIC_RELAXED)) {
        opal_progress_register_lp(look);
    }
    return NULL;
}

void bfo_orphans_adopt(bfo_comm_t *bc, void (*deliver)(bfo_comm_t *bc, const bfo_in_t *in, bfo_peer_t *from))
{
    const uint16_t ctx = (uint16_t) BFO_OMPI_CTX_OF(bc->comm);
    mca_btl_base_segment_t segment;
    bfo_link_t mine, *l, *next;
    bfo_unexpected_frag_t *g;
    bfo_in_t in;

    bfo_link_init(&mine);
    BFO_LOCK(&bfo.lock);
    for (l = bfo.orphans.next; l != &bfo.orphans; l = next) {
        next = l->next;
        g = bfo_container(l, bfo_unexpected_frag_t, link);
        if (ctx == ((const bfo_match_hdr_t *) g->data)->ctx) {
            bfo_link_remove(l);
            bfo_link_append(&mine, l);
        }
    }
    BFO_UNLOCK(&bfo.lock);
    while (!bfo_link_is_empty(&mine)) {
        g = bfo_container(mine.next, bfo_unexpected_frag_t, link);
        bfo_link_remove(&g->link);
        in = bfo_unexpected_in(g, &segment);
        deliver(bc, &in, g->peer);
        bfo_unexpected_free(g);
    }
}
