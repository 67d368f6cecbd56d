/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Eager rings. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_RING_H
#define BTL_OPENIB_RING_H

#include "bfo_assert.h"
#include "formats/btl_openib_credits.h"
#include "types/btl_openib_types.h"

enum { OFO_RING_TURNS = 255 };

/* The payload of OFO_TAG_RING says where the ring is. Network byte order. */
typedef struct {
    uint32_t address_high, address_low;
    uint32_t rkey;
    uint32_t slots;
} ofo_ring_msg_t;

/* Asks service for a ring for this peer, if it may have one. Context: progress. */
void ofo_ring_ask(ofo_module_t *module, ofo_qpset_t *qps);
/* The peer has announced its ring: messages may go there from now on. */
void ofo_ring_announced(ofo_qpset_t *qps, const void *bytes, size_t length);
/* Makes *wr a write into the next slot of the peer's ring; the post succeeded. Locks of both: ep->lock held. */
void ofo_ring_prepare(ofo_qpset_t *qps, ofo_frag_t *frag, struct ibv_sge *sge, struct ibv_send_wr *wr);
void ofo_ring_posted(ofo_qpset_t *qps);
/* Must a message go out only to return slots of the eager ring? Any message takes them along. A message for them alone must not use the
 * last credit, which is kept for returning credits. Locks: ep->lock held. */
static inline bool ofo_ring_must_return(const ofo_qpset_t *qps)
{
    BFO_ASSERT(!qps->ring_in.is_open || 0 < qps->ring_in.slots);
    return qps->ring_in.is_open && 2 * qps->ring_in.owed >= qps->ring_in.slots && (qps->qp[0].shared || ofo_credits_may_send(&qps->qp[0].credits));
}

#endif /* BTL_OPENIB_RING_H */
