/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Eager RDMA: small messages are written into a ring of slots in the receiver's memory, which the receiver polls. A ring
 * belongs to one queue pair, the first of its rail. A slot is taken only together with a work request, so the messages
 * that arrived are always a prefix. A message ends at the end of its slot; the last byte shows that it is complete and to
 * which turn of the ring it belongs. See DESIGN.txt 4 (B4, B9) and 15.
 */
#include "out/btl_openib_ring.h"

#include "types/btl_openib_mail.h"
#include "device/btl_openib_ring_memory.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* The peer sends often, so service makes a ring for it. */
void ofo_ring_ask(ofo_module_t *module, ofo_qpset_t *qps)
{
    if (!qps->ring_asked && module->ring_count + module->rings_asked < OFO.params.max_eager_rdma && ofo_drain_is_live(&qps->drain)) {
        qps->ring_asked = true;
        ++module->rings_asked;
        ofo_tell_service(qps->ep, OFO_MAIL_RING, qps->gen, NULL, NULL);
    }
}

/* The address and the key need no check, because only writes to this peer use them, and its adapter checks them. */
void ofo_ring_announced(ofo_qpset_t *qps, const void *bytes, size_t length)
{
    const ofo_ring_msg_t *msg = bytes;
    ofo_ring_out_t *out = &qps->ring_out;
    ofo_endpoint_t *ep = qps->ep;

    if (sizeof(*msg) != length || OFO_RING_SLOTS_MAX < ntohl(msg->slots) || 0 == ntohl(msg->slots) || 0 != out->slots) {
        ++qps->module->count.bad_messages;
        return;
    }
    OPAL_THREAD_LOCK(&ep->lock);
    out->address = (uint64_t) ntohl(msg->address_high) << 32 | ntohl(msg->address_low);
    out->rkey = ntohl(msg->rkey);
    out->next = 0;
    out->turn = 1;
    out->slots = out->free = (int32_t) ntohl(msg->slots);
    OPAL_THREAD_UNLOCK(&ep->lock);
}

/* The footer follows the payload in the fragment's buffer. Locks: ep->lock held. */
void ofo_ring_prepare(ofo_qpset_t *qps, ofo_frag_t *frag, struct ibv_sge *sge, struct ibv_send_wr *wr)
{
    ofo_ring_out_t *out = &qps->ring_out;
    uint32_t length = sge->length, padded = ofo_ring_round_up(length), size = ofo_ring_slot_size();
    ofo_ring_footer_t *footer = (ofo_ring_footer_t *) ((uint8_t *) frag->hdr + padded);

    BFO_ASSERT(0 < out->free && out->free <= out->slots && out->next < (uint32_t) out->slots);
    BFO_ASSERT(padded + sizeof(*footer) <= size);
    BFO_ASSERT(0 != out->turn);
    memset((uint8_t *) frag->hdr + length, 0, padded - length);
    *footer = (ofo_ring_footer_t){.length = htonl(length), .turn = out->turn};
    sge->length = padded + (uint32_t) sizeof(*footer);
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->wr.rdma.remote_addr = out->address + (uint64_t) (out->next + 1) * size - sge->length;
    wr->wr.rdma.rkey = out->rkey;
}

/* Locks: ep->lock held. */
void ofo_ring_posted(ofo_qpset_t *qps)
{
    ofo_ring_out_t *out = &qps->ring_out;

    BFO_ASSERT(0 < out->free && out->free <= out->slots);
    --out->free;
    if (++out->next == (uint32_t) out->slots) {
        out->next = 0;
        out->turn = (uint8_t) (out->turn % OFO_RING_TURNS + 1);
    }
    BFO_ASSERT(out->next < (uint32_t) out->slots && 0 != out->turn);
}
