/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A message goes back to its owner. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_COMPLETE_H
#define BTL_OPENIB_COMPLETE_H

#include "types/btl_openib_types.h"

/* Counts a message that arrived, for DACK and the loss check. Context: progress. */
static inline void ofo_send_count(ofo_qpset_t *qps, const ofo_frag_t *frag)
{
    if (frag->in_ring) {
        ++qps->n_eager;
    } else {
        ++qps->qp[frag->work.qp].n_send;
    }
    ++qps->n_ok;
}
/* The messages that sendi copied into the fragment, or the only message. */
static inline uint32_t ofo_send_messages(const ofo_frag_t *frag)
{
    return 0 < frag->joined ? frag->joined : 1;
}
/* Runs the fragment's callback, or the PML's hook, and returns the fragment; does so for each part of a carrier. Context: progress,
 * ep->lock not held. */
void ofo_send_complete(ofo_frag_t *frag, int status);

#endif /* BTL_OPENIB_COMPLETE_H */
