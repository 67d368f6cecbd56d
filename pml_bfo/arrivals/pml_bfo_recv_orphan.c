/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * First fragments that find no communicator of their context id, because it is not made here yet or was freed. They wait in
 * bfo.orphans, and the next communicator of that context id takes them. DESIGN.txt section 8.
 */
#include "types/pml_bfo.h"

#include "failover/pml_bfo_failover_peer.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_rails.h"
#include "ends/pml_bfo_recv_unexpected.h"
#include "arrivals/pml_bfo_recv_orphan.h"

void bfo_unexpected_has_no_memory(bfo_peer_t *peer, const bfo_match_hdr_t *h)
{
    if (NULL != peer) {
        bfo_failover_declare(peer, BFO_HOLE);
    } else {
        bfo_lane_has_hole(h->ctx, h->src);
    }
}

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
    if (NULL != kept && (int32_t) (h->seq - kept->next_recv) < 0) {
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
