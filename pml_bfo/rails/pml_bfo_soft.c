/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails that seem silent. Input: the BTL's verdict, and the messages that are out on such a rail. Output: the choice of rails changes, and
 * messages that the receiver can recognise as copies go over another rail too. No request is touched: the second copy has the callback
 * of the first one, which has none any more. DESIGN.txt 9 (rule 13) and 10.2, "Silence".
 */
#include "types/pml_bfo.h"

#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"
#include "rails/pml_bfo_soft.h"

#if PML_BFO
static bfo_peer_t *ready_peer(const opal_proc_t *proc)
{
    bfo_peer_t *peer = ((const ompi_proc_t *) proc)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

    return NULL != peer && __atomic_load_n(&peer->ready, __ATOMIC_ACQUIRE) && peer->failover && !peer->declared ? peer : NULL;
}

static bool rail_soft(mca_btl_base_module_t *btl, opal_proc_t *proc, uint8_t name, uint16_t generation, bool is_soft)
{
    bfo_peer_t *peer = ready_peer(proc);
    const uint8_t r = NULL == peer ? BFO_MAX_RAILS : bfo_rail_index(peer, btl);

    BFO_ASSERT(BFO_MAX_RAILS == r || peer->rails[r].name >= BFO_MAX_RAILS || name == peer->rails[r].name);
    return BFO_MAX_RAILS != r && generation == bfo_rail_gen(peer, r) && bfo_rail_soften(peer, r, is_soft);
}

/* Does the receiver drop the copy that comes second? MATCH and RNDV have a number, and an RNDV that restarts has an epoch; an ACK has an
 * epoch, and the sender takes one; a FIN of a READ claims its fragment. A FIN of a WRITE must not come before the bytes, a second PUT would
 * make the peer write again, an RGET has the handle of its rail, and FRAGs are counted. */
static bool may_copy(mca_btl_base_tag_t tag, const bfo_hdr_t *h)
{
    return BFO_TAG(h->common.type) == tag
           && (BFO_MSG_MATCH == h->common.type || BFO_MSG_RNDV == h->common.type || BFO_MSG_ACK == h->common.type
               || (BFO_MSG_FIN == h->common.type && 0 == h->fin.fflags));
}

/* A message of btl_sendi needs no request. */
static bool send_again(mca_btl_base_module_t *btl, opal_proc_t *proc, mca_btl_base_tag_t tag, const void *data, size_t length,
                       const mca_btl_base_descriptor_t *des)
{
    bfo_peer_t *peer = ready_peer(proc);
    const uint8_t r = NULL == peer ? BFO_MAX_RAILS : bfo_rail_index(peer, btl);

    return BFO_MAX_RAILS != r && (peer->soft >> r & 1) && 0 == (peer->eager_mask >> r & 1) && sizeof(bfo_match_hdr_t) <= length && may_copy(tag, data)
           && OMPI_SUCCESS == bfo_ctl_copy(peer, data, length, NULL == des ? NULL : des->des_cbfunc, NULL == des ? NULL : des->des_cbdata);
}

void bfo_soft_init(void)
{
    bfo.callbacks.rail_soft = rail_soft;
    bfo.callbacks.send_again = send_again;
}
#else
void bfo_soft_init(void) {}
#endif
