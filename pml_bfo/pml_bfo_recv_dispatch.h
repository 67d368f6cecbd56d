/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Everything that arrives. DESIGN.txt sections 8 and 14.2.
 */
#ifndef PML_BFO_RECV_DISPATCH_H
#define PML_BFO_RECV_DISPATCH_H

#include "pml_bfo.h"

/* Registers the handler of every tag with the BTLs. */
int bfo_dispatch_register(void);
/* Handles a FIN whose data is visible. */
void bfo_dispatch_fin(const bfo_fin_hdr_t *fin);
/* A matched receive that held back later messages has completed: delivers them. */
void bfo_dispatch_release(bfo_comm_t *bc, bfo_lane_t *lane) BFO_COLD;
/* Applies the complete rule to a first fragment of an active communicator. The hottest callers have their own short form. */
void bfo_dispatch_first(bfo_comm_t *bc, const bfo_in_t *in, bfo_peer_t *from) __attribute__((noinline));
/* Copies a fragment; the caller frees the copy with bfo_got_free(). NULL without memory. */
bfo_got_frag_t *bfo_got_keep(const bfo_in_t *in, bfo_peer_t *peer);
void bfo_got_free(bfo_got_frag_t *g);
/* A kept fragment in the form in which it arrived. The caller provides `segment`. */
static inline bfo_in_t bfo_got_in(const bfo_got_frag_t *g, mca_btl_base_segment_t *segment)
{
    *segment = (mca_btl_base_segment_t){.seg_addr.pval = g->data, .seg_len = g->length};
    return (bfo_in_t){g->btl, segment, 1, g->length};
}

#endif /* PML_BFO_RECV_DISPATCH_H */
