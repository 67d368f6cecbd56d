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
/* FIN whose data is visible. */
void bfo_dispatch_fin(const bfo_fin_hdr_t *fin);
/* A matched receive that held back what came behind it has completed. */
void bfo_dispatch_release(bfo_comm_t *bc, bfo_lane_t *lane) BFO_COLD;
/* The complete rule for a first fragment of an active communicator, for all but the hottest callers. */
void bfo_dispatch_first(bfo_comm_t *bc, const bfo_in_t *in, bfo_peer_t *from) __attribute__((noinline));
/* A copy of a fragment, or NULL without memory. */
bfo_got_frag_t *bfo_got_keep(const bfo_in_t *in, bfo_peer_t *peer);
void bfo_got_free(bfo_got_frag_t *g);
/* What was kept, as it arrived. `segment` is room. */
static inline bfo_in_t bfo_got_in(const bfo_got_frag_t *g, mca_btl_base_segment_t *segment)
{
    *segment = (mca_btl_base_segment_t){.seg_addr.pval = g->data, .seg_len = g->length};
    return (bfo_in_t){g->btl, segment, 1, g->length};
}

#endif /* PML_BFO_RECV_DISPATCH_H */
