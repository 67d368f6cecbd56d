/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The receiver's side of eager rings: opens and polls them, and empties them when their rail ends. See DESIGN.txt 4 (B4, B9).
 */
#include "in/btl_openib_ring_in.h"

#include "bfo_assert.h"
#include "out/btl_openib_frag.h"
#include "types/btl_openib_log.h"
#include "in/btl_openib_recv.h"
#include "out/btl_openib_ring.h"
#include "device/btl_openib_ring_memory.h"
#include "out/btl_openib_send.h"

#include <arpa/inet.h>

enum { POLL_BATCH = 16 };

void ofo_ring_open(ofo_module_t *module, ofo_endpoint_t *ep, uint16_t gen)
{
    ofo_qpset_t *qps = ep->qps;
    ofo_frag_t *frag;
    ofo_ring_msg_t *msg;
    uint64_t address;

    BFO_ASSERT(0 < module->rings_asked);
    --module->rings_asked;
    if (NULL == qps || gen != qps->gen || !ofo_drain_is_live(&qps->drain) || NULL == qps->ring_in.memory) {
        return;
    }
    frag = ofo_frag_alloc_whole(module, OFO_RING_QP);
    if (NULL == frag) {
        return;
    }
    address = (uintptr_t) qps->ring_in.memory;
    msg = frag->segment.seg_addr.pval;
    *msg = (ofo_ring_msg_t){.address_high = htonl((uint32_t) (address >> 32)),
                            .address_low = htonl((uint32_t) address),
                            .rkey = htonl(qps->ring_in.mr->rkey),
                            .slots = htonl(qps->ring_in.slots)};
    frag->segment.seg_len = sizeof(*msg);
    frag->base.order = OFO_RING_QP;
    frag->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    BFO_ASSERT(!qps->ring_in.is_open && module->ring_count < OFO.params.max_eager_rdma);
    qps->ring_in.is_open = true;
    module->ring[module->ring_count++] = qps;
    ofo_log(1, "%s: eager ring of %u slots for rail %u from %u, ring %u of this port", module->name, qps->ring_in.slots, ep->rail,
            ep->peer->name.vpid, module->ring_count);
    if (OPAL_SUCCESS != ofo_send_own(ep, frag, OFO_TAG_RING)) {
        opal_free_list_return(frag->list, &frag->base.super);
    }
}

/* The slot is free again. The next message returns it, or a message of its own when half of the ring is free. */
static void slot_done(ofo_qpset_t *qps)
{
    ofo_endpoint_t *ep = qps->ep;
    bool due;

    OPAL_THREAD_LOCK(&ep->lock);
    ++qps->ring_in.owed;
    due = ofo_ring_must_return(qps);
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (OPAL_UNLIKELY(due)) {
        ofo_credits_return(ep, qps, OFO_RING_QP);
    }
}

static void take(ofo_module_t *module, ofo_qpset_t *qps, ofo_ring_footer_t *footer)
{
    ofo_ring_in_t *in = &qps->ring_in;
    uint32_t length = ntohl(footer->length);

    BFO_ASSERT(in->head < in->slots && 0 != in->turn);
    if (++in->head == in->slots) {
        in->head = 0;
        in->turn = (uint8_t) (in->turn % OFO_RING_TURNS + 1);
    }
    ++qps->n_eager_recv;
    ++qps->n_received;
    if (OPAL_UNLIKELY(sizeof(ofo_data_hdr_t) > length || ofo_ring_slot_size() - sizeof(*footer) < length)) {
        ++module->count.bad_messages;
    } else {
        ofo_data_hdr_t *hdr = (ofo_data_hdr_t *) ((uint8_t *) footer - ofo_ring_round_up(length));
        ++module->count.ring_receives;
        ofo_recv_message(module, qps, hdr, length);
    }
    if (OPAL_LIKELY(ofo_drain_is_live(&qps->drain))) {
        slot_done(qps);
    }
}

static int poll_ring(ofo_module_t *module, ofo_qpset_t *qps)
{
    ofo_ring_in_t *in = &qps->ring_in;
    uint32_t size = ofo_ring_slot_size();
    int count = 0;

    BFO_ASSERT(in->is_open && NULL != in->memory);
    for (; count < POLL_BATCH; ++count) {
        ofo_ring_footer_t *footer = (ofo_ring_footer_t *) (in->memory + (size_t) (in->head + 1) * size - sizeof(*footer));
        if (in->turn != __atomic_load_n(&footer->turn, __ATOMIC_ACQUIRE)) {
            break;
        }
        take(module, qps, footer);
    }
    return count;
}

int ofo_rings_poll(ofo_module_t *module)
{
    int count = 0;

    for (unsigned i = 0; i < module->ring_count; ++i) {
        BFO_ASSERT(module == module->ring[i]->module);
        count += poll_ring(module, module->ring[i]);
    }
    return count;
}

void ofo_ring_drain(ofo_qpset_t *qps)
{
    ofo_module_t *module = qps->module;

    BFO_ASSERT(!qps->ring_in.is_open || 0 < module->ring_count);
    if (!qps->ring_in.is_open) {
        return;
    }
    while (0 < poll_ring(module, qps)) {
    }
    qps->ring_in.is_open = false;
    for (unsigned i = 0; i < module->ring_count; ++i) {
        if (qps == module->ring[i]) {
            module->ring[i] = module->ring[--module->ring_count];
            break;
        }
    }
}
