/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A fragment that waits is copied, because the BTL takes its memory back when the callback returns. DESIGN.txt section 14.2.
 */
#include "types/pml_bfo.h"

#include "types/pml_bfo_local.h"
#include "types/pml_bfo_params.h"
#include "ends/pml_bfo_recv_unexpected.h"

#include <stdlib.h>
#include <string.h>

bfo_unexpected_frag_t *bfo_unexpected_keep(const bfo_in_t *in, bfo_peer_t *peer)
{
    bfo_unexpected_frag_t *g = bfo_cache_take(BFO_CACHE_UNEXPECTED);
    const bfo_match_hdr_t *h = in->segments[0].seg_addr.pval;

    if (NULL == g) {
        return NULL;
    }
    g->data = in->length <= bfo_params.unexpected_limit ? g->room : malloc(in->length);
    if (NULL == g->data) {
        bfo_cache_give(BFO_CACHE_UNEXPECTED, &g->super);
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
        BFO_ASSERT(to == g->data + in->length); /* the length is that of all segments */
    }
    g->length = in->length;
    g->btl = in->btl;
    g->peer = peer;
    g->unexpected.by_key.src = h->src;
    g->unexpected.by_key.tag = h->tag;
    g->unexpected.seq = h->seq;
    return g;
}

void bfo_unexpected_free(bfo_unexpected_frag_t *g)
{
    BFO_ASSERT(NULL != g->data);
    if (g->data != g->room) {
        free(g->data);
    }
    bfo_cache_give(BFO_CACHE_UNEXPECTED, &g->super);
}
