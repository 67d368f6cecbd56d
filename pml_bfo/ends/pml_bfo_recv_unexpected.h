/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Copies of fragments that wait. DESIGN.txt section 14.2.
 */
#ifndef PML_BFO_RECV_UNEXPECTED_H
#define PML_BFO_RECV_UNEXPECTED_H

#include "types/pml_bfo.h"

/* Copies a fragment; the caller frees the copy with bfo_unexpected_free(). NULL without memory. */
bfo_unexpected_frag_t *bfo_unexpected_keep(const bfo_in_t *in, bfo_peer_t *peer);
void bfo_unexpected_free(bfo_unexpected_frag_t *g);
/* A kept fragment in the form in which it arrived. The caller provides `segment`. */
static inline bfo_in_t bfo_unexpected_in(const bfo_unexpected_frag_t *g, mca_btl_base_segment_t *segment)
{
    *segment = (mca_btl_base_segment_t){.seg_addr.pval = g->data, .seg_len = g->length};
    return (bfo_in_t){g->btl, segment, 1, g->length};
}

#endif /* PML_BFO_RECV_UNEXPECTED_H */
