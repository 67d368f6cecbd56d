/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Posts of descriptors and RDMA transfers, and control messages, which need nothing more. This code alone knows what a rail may answer to a
 * post, and that another rail is tried then. The caller makes the descriptors (build). If no rail has room, the caller queues its own work
 * (pml_bfo_pending.h); control messages queue themselves. btl_sendi is called without bfo_post(), in pml_bfo_send_api.c and bfo_fin_send(),
 * and a refused message goes by bfo_post() after all. DESIGN.txt sections 9 and 14.4.
 */
#ifndef PML_BFO_POST_H
#define PML_BFO_POST_H

#include "types/pml_bfo.h"

/* Flags of every descriptor the PML allocates: one callback, then the BTL frees it. */
#define BFO_DES_FLAGS (MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK)

/* Makes the descriptor of `what` for one rail, with header, des_cbfunc and des_cbdata. NULL: the rail has no room now. */
typedef mca_btl_base_descriptor_t *(*bfo_build_fn_t)(void *what, bfo_peer_t *peer, uint8_t rail);

/* btl_send returned `rc`. Frees the descriptor; unless the rail only lacks room, it has failed, in generation `gen`. */
int bfo_post_refused(bfo_peer_t *peer, uint8_t rail, uint16_t gen, mca_btl_base_descriptor_t *des, int rc) BFO_COLD;
/* The first choice `rail` (BFO_MAX_RAILS: there was none) returned `rc`: tries the other rails. As bfo_post(). */
int bfo_post_elsewhere(bfo_peer_t *peer, uint8_t rail, int rc, const uint8_t *up, uint8_t only, bfo_build_fn_t build, void *what) BFO_COLD;

/* Posts to one rail. OMPI_SUCCESS; OMPI_ERR_OUT_OF_RESOURCE: no room now; OMPI_ERR_UNREACH: the rail has failed. */
static inline __attribute__((always_inline)) int bfo_post_by(bfo_peer_t *peer, uint8_t r, bfo_build_fn_t build, void *what)
{
    const bfo_rail_t *rail = &peer->rails[r];
    const uint16_t gen = rail->gen;
    mca_btl_base_descriptor_t *des = build(what, peer, r);
    int rc;

    BFO_ASSERT(r < peer->n_rails);
    if (bfo_unlikely(NULL == des)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    BFO_ASSERT(NULL != des->des_cbfunc && 0 != des->des_segment_count);
    des->des_context = peer;
    rc = rail->btl->btl_send(rail->btl, rail->endpoint, des, BFO_TAG(((const bfo_hdr_t *) des->des_segments[0].seg_addr.pval)->common.type));
    return bfo_likely(rc >= 0 || OMPI_ERR_RESOURCE_BUSY == rc) ? OMPI_SUCCESS : bfo_post_refused(peer, r, gen, des, rc);
}

/* Posts a message to the rail `r` (BFO_MAX_RAILS: none was found), or else to the first rail that takes it among those in both *up, a
 * mask of the peer, and `only`. OMPI_SUCCESS: posted, and the callback may have run. In the other cases nothing is posted.
 * OMPI_ERR_OUT_OF_RESOURCE: no rail has room now, or none is left and this process waits for one; OMPI_ERR_UNREACH: none is left. */
static inline __attribute__((always_inline)) int bfo_post(bfo_peer_t *peer, uint8_t r, const uint8_t *up, uint8_t only, bfo_build_fn_t build,
                                                          void *what)
{
    const int rc = bfo_likely(BFO_MAX_RAILS != r) ? bfo_post_by(peer, r, build, what) : OMPI_ERR_UNREACH;

    return bfo_likely(OMPI_SUCCESS == rc) ? rc : bfo_post_elsewhere(peer, r, rc, up, only, build, what);
}

/* Posts an RDMA transfer to its rail, `frag`->rail. No other rail will do, because this one holds the registrations. `transfer` is the rail's
 * btl_put or btl_get, `done` gets `frag` as its cbdata. OMPI_SUCCESS: the callback has run, or will;
 * OMPI_ERR_OUT_OF_RESOURCE: the rail has no room now; OMPI_ERR_UNREACH: the rail is down or refuses, nothing was begun. */
static inline __attribute__((always_inline)) int bfo_post_rdma(bfo_frag_t *frag, mca_btl_base_module_put_fn_t transfer, void *local,
                                                               mca_btl_base_registration_handle_t *own, char *theirs,
                                                               mca_btl_base_rdma_completion_fn_t done)
{
    const bfo_rail_t *rail = &frag->peer->rails[frag->rail];
    int rc;

    BFO_ASSERT(frag->rail < frag->peer->n_rails);
    BFO_ASSERT((NULL == frag->send) != (NULL == frag->recv)); /* it belongs to one request */
    if (bfo_unlikely(0 == (frag->peer->up_mask >> frag->rail & 1))) {
        return OMPI_ERR_UNREACH;
    }
    rc = transfer(rail->btl, rail->endpoint, local, frag->remote, own, (mca_btl_base_registration_handle_t *) theirs, frag->length, 0,
                  MCA_BTL_NO_ORDER, done, NULL, frag);
    if (bfo_likely(OMPI_SUCCESS == rc) || OMPI_ERR_OUT_OF_RESOURCE == rc) {
        return rc;
    }
    if (0 > rc) {
        return OMPI_ERR_UNREACH;
    }
    done(rail->btl, rail->endpoint, NULL, NULL, NULL, frag, OPAL_SUCCESS); /* the transfer is done already, and the BTL does not call back */
    return OMPI_SUCCESS;
}

/* ---- control messages ---------------------------------------------------------------------------- */

/* Where a control message may go. */
typedef struct {
    uint8_t rail; /* BFO_MAX_RAILS: any */
    bool bound;   /* only this rail */
} bfo_path_t;
#define BFO_ANY_PATH ((bfo_path_t){BFO_MAX_RAILS, false})

/* Sends `length` bytes, a header or for a resend a whole first fragment, or queues a copy of them. If it returns OMPI_SUCCESS, `done` is
 * called exactly once, possibly inside this call. If `done` is NULL the message is self-contained: the PML sends it again until one copy
 * succeeds. des_cbdata is `context`, des_context the peer.
 * Errors: OMPI_ERR_UNREACH (no rail, or the bound rail is down), OMPI_ERR_OUT_OF_RESOURCE (no memory). */
int bfo_ctl_send(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length, mca_btl_base_completion_fn_t done, void *context);

/* Sends a message without a request again, over any rail: now, or when its turn comes. OMPI_SUCCESS or an error. */
int bfo_ctl_resend(bfo_peer_t *peer, const void *header, size_t length) BFO_COLD;

/* Sends a second copy of a message, or queues it. As bfo_ctl_send(). */
int bfo_ctl_copy(bfo_peer_t *peer, const void *message, size_t length, mca_btl_base_completion_fn_t done, void *context) BFO_COLD;

/* Sends a FIN whose order relative to other messages does not matter, by btl_sendi if the BTL has it. As bfo_ctl_send() without `done`. */
int bfo_fin_send(bfo_peer_t *peer, const bfo_fin_hdr_t *fin);

#endif /* PML_BFO_POST_H */
