/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What a post does when the rail of first choice does not take it, and the sending of control messages. DESIGN.txt sections 9
 * and 14.4.
 */
#include "types/pml_bfo.h"

#include "rails/pml_bfo_pending.h"
#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"

#include <stdlib.h>
#include <string.h>

int bfo_post_refused(bfo_peer_t *peer, uint8_t r, uint16_t gen, mca_btl_base_descriptor_t *des, int rc)
{
    mca_btl_base_module_t *btl = peer->rails[r].btl;

    BFO_ASSERT(0 > rc && OMPI_ERR_RESOURCE_BUSY != rc); /* otherwise the BTL has the descriptor */
    btl->btl_free(btl, des);
    if (OMPI_ERR_OUT_OF_RESOURCE == rc) {
        return rc;
    }
    bfo.up.rail_failed(peer, r, gen, "a message was refused");
    return OMPI_ERR_UNREACH;
}

/* A rail that fails here leaves *up. Another thread may post between the BTL's first refusal on a dead rail and its report of the loss.
 * If no rail is left and this process waits for one, the result is the same as if the rails had no room now. */
int bfo_post_elsewhere(bfo_peer_t *peer, uint8_t r, int rc, const uint8_t *up, uint8_t only, bfo_build_fn_t build, void *what)
{
    const bool is_ready = bfo_peer_is_ready(peer);

    BFO_ASSERT(OMPI_ERR_OUT_OF_RESOURCE == rc || OMPI_ERR_UNREACH == rc); /* a message that a rail has taken is not posted again */
    for (only &= (uint8_t) ~(1u << r); is_ready && OMPI_SUCCESS != rc && 0 != (*up & only); only &= (uint8_t) ~(1u << r)) {
        int next;

        r = (uint8_t) __builtin_ctz(*up & only);
        next = bfo_post_by(peer, r, build, what);
        rc = OMPI_ERR_UNREACH == next ? rc : next; /* a rail without room now is worth waiting for */
    }
    return OMPI_ERR_UNREACH == rc && bfo_peer_may_wait(peer) ? OMPI_ERR_OUT_OF_RESOURCE : rc;
}

/* ---- control messages ---------------------------------------------------------------------------- */

static void ctl_completed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des, int status)
{
    if (bfo_unlikely(OPAL_SUCCESS != status)) {
        bfo_peer_t *peer = des->des_context;

        bfo.up.ctl_failed(peer, bfo_rail_index(peer, btl), des->des_segments[0].seg_addr.pval, des->des_segments[0].seg_len, status);
    }
}

/* A message to send. */
typedef struct {
    const void *header;
    size_t length;
    mca_btl_base_completion_fn_t done;
    void *context;
    bfo_path_t path;
    uint32_t flags; /* besides BFO_DES_FLAGS */
} message_t;

static inline __attribute__((always_inline)) mca_btl_base_descriptor_t *ctl_build(void *what, bfo_peer_t *peer, uint8_t r)
{
    const message_t *m = what;
    const bfo_rail_t *rail = &peer->rails[r];
    mca_btl_base_descriptor_t *des = rail->btl->btl_alloc(rail->btl, rail->endpoint, MCA_BTL_NO_ORDER, m->length, BFO_DES_FLAGS | m->flags);

    BFO_ASSERT(!m->path.bound || r == m->path.rail);
    if (bfo_unlikely(NULL == des)) {
        return NULL;
    }
    if (bfo_likely(sizeof(bfo_fin_hdr_t) == m->length)) {
        memcpy(des->des_segments[0].seg_addr.pval, m->header, sizeof(bfo_fin_hdr_t)); /* FIN and ACK, in line */
    } else {
        memcpy(des->des_segments[0].seg_addr.pval, m->header, m->length);
    }
    if (bfo_unlikely(r != m->path.rail && BFO_MSG_FIN == ((const bfo_hdr_t *) m->header)->common.type)) {
        bfo_fin_hdr_t *fin = des->des_segments[0].seg_addr.pval;

        fin->fflags |= 0 != (fin->fflags & BFO_FIN_WRITE) ? BFO_FIN_RESENT : 0; /* it may overtake its data */
    }
    des->des_segments[0].seg_len = m->length;
    des->des_cbfunc = NULL != m->done ? m->done : ctl_completed;
    des->des_cbdata = m->context;
    return des;
}

static inline uint8_t ctl_rail(bfo_path_t path, bfo_peer_t *peer)
{
    if (path.rail < BFO_MAX_RAILS && (peer->up_mask >> path.rail & 1)) {
        return path.rail;
    }
    return path.bound ? BFO_MAX_RAILS : bfo_rail_for_first(peer, 0);
}

/* If all rails stand out by force, a message that ends what has begun on a rail takes any UP rail, and all others wait. */
static BFO_COLD int ctl_elsewhere(bfo_peer_t *peer, uint8_t r, int rc, message_t *m)
{
    const uint8_t *up = BFO_MAX_RAILS > m->path.rail && 0 == peer->eager_mask ? &peer->up_mask : &peer->eager_mask;

    return m->path.bound ? rc : bfo_post_elsewhere(peer, r, rc, up, 0xff, ctl_build, m);
}

static inline __attribute__((always_inline)) int ctl_post(bfo_peer_t *peer, uint8_t r, const message_t *m)
{
    return bfo_likely(BFO_MAX_RAILS != r) ? bfo_post_by(peer, r, ctl_build, (void *) m) : OMPI_ERR_UNREACH;
}

static void ctl_free(bfo_ctl_t *ctl)
{
    if (ctl->text != ctl->room) {
        free(ctl->text);
    }
    opal_free_list_return(&bfo.ctl_list, &ctl->super);
}

/* While a FIN waited, the rail of its WRITE may have been lost and come back: then its data came over other queue pairs. */
static void fin_waited(const bfo_ctl_t *ctl)
{
    bfo_fin_hdr_t *fin = (bfo_fin_hdr_t *) ctl->text;

    if (sizeof(*fin) == ctl->length && BFO_MSG_FIN == ((const bfo_hdr_t *) ctl->text)->common.type
        && fin->wgen != bfo_rail_gen(ctl->peer, ctl->rail)) {
        fin->fflags |= 0 != (fin->fflags & BFO_FIN_WRITE) ? BFO_FIN_RESENT : 0;
    }
}

static int ctl_retry(bfo_work_t *work)
{
    bfo_ctl_t *ctl = bfo_container(work, bfo_ctl_t, work);
    message_t m = {ctl->text, ctl->length, ctl->done, ctl->context, {ctl->rail, ctl->bound}, ctl->flags};
    const uint8_t r = ctl_rail(m.path, ctl->peer);
    int rc;

    BFO_ASSERT(!ctl->work.queued && 0 != ctl->length);
    fin_waited(ctl);
    rc = ctl_post(ctl->peer, r, &m);
    rc = OMPI_SUCCESS == rc ? rc : ctl_elsewhere(ctl->peer, r, rc, &m);
    if (OMPI_ERR_OUT_OF_RESOURCE == rc) {
        return rc;
    }
    if (OMPI_SUCCESS != rc && NULL != ctl->done) {
        /* makes the callback that the sender waits for, as if a rail had died with the message */
        mca_btl_base_segment_t seg = {.seg_addr.pval = ctl->text, .seg_len = ctl->length};
        mca_btl_base_descriptor_t des = {.des_segments = &seg, .des_segment_count = 1, .des_cbdata = ctl->context, .des_context = ctl->peer};

        ctl->done(NULL, NULL, &des, OPAL_ERROR);
    }
    ctl_free(ctl);
    return OMPI_SUCCESS;
}

/* Queues a copy for progress, as a resend if `again`. A message that prefers a rail ends there what has begun on it. */
static int ctl_queue(bfo_peer_t *peer, const message_t *m, bool again)
{
    bfo_ctl_t *ctl = (bfo_ctl_t *) opal_free_list_get(&bfo.ctl_list);

    BFO_ASSERT(0 != m->length && m->path.rail <= BFO_MAX_RAILS);
    BFO_ASSERT(!m->path.bound || BFO_MAX_RAILS != m->path.rail); /* bound to one rail: that rail has a name */
    if (NULL == ctl) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    ctl->text = m->length <= sizeof(ctl->room) ? ctl->room : malloc(m->length);
    if (NULL == ctl->text) {
        opal_free_list_return(&bfo.ctl_list, &ctl->super);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    ctl->work.queued = false;
    ctl->peer = peer;
    ctl->rail = m->path.rail;
    ctl->bound = m->path.bound;
    ctl->length = (uint32_t) m->length;
    ctl->done = m->done;
    ctl->context = m->context;
    ctl->flags = m->flags;
    memcpy(ctl->text, m->header, m->length);
    (void) (again                          ? bfo_work_queue_resend(peer, &ctl->work, ctl_retry)
            : BFO_MAX_RAILS > m->path.rail ? bfo_work_queue_bound(peer, &ctl->work, ctl_retry)
                                           : bfo_work_queue(peer, &ctl->work, ctl_retry));
    return OMPI_SUCCESS;
}

/* Takes the values one by one, because a structure whose address a cold function takes would be written to memory for every message. */
static BFO_COLD int ctl_send_elsewhere(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length, mca_btl_base_completion_fn_t done,
                                       void *context, uint8_t r, int rc)
{
    message_t m = {header, length, done, context, path, 0};

    rc = ctl_elsewhere(peer, r, rc, &m);
    return OMPI_ERR_OUT_OF_RESOURCE != rc ? rc : ctl_queue(peer, &m, false);
}

int bfo_ctl_send(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length, mca_btl_base_completion_fn_t done, void *context)
{
    const message_t m = {header, length, done, context, path, 0};
    const uint8_t r = ctl_rail(path, peer);
    const int rc = ctl_post(peer, r, &m);

    return bfo_likely(OMPI_SUCCESS == rc) ? rc : ctl_send_elsewhere(peer, path, header, length, done, context, r, rc);
}

#if PML_BFO
static inline bool is_first_fin_of_write(const bfo_hdr_t *h)
{
    return BFO_MSG_FIN == h->common.type && BFO_FIN_WRITE == (h->fin.fflags & (BFO_FIN_WRITE | BFO_FIN_RESENT));
}

int bfo_ctl_resend(bfo_peer_t *peer, const void *header, size_t length)
{
    const message_t m = {header, length, NULL, NULL, BFO_ANY_PATH, 0};

    BFO_ASSERT(!is_first_fin_of_write(header)); /* a copy may overtake the data, and says so */
    return bfo_resend_may_go(peer) ? bfo_ctl_send(peer, BFO_ANY_PATH, header, length, NULL, NULL) : ctl_queue(peer, &m, true);
}

int bfo_ctl_copy(bfo_peer_t *peer, const void *message, size_t length, mca_btl_base_completion_fn_t done, void *context)
{
    message_t m = {message, length, done, context, BFO_ANY_PATH, BFO_BTL_DES_COPY};
    const uint8_t r = bfo_rail_for_first(peer, 0);
    int rc = OMPI_ERR_OUT_OF_RESOURCE;

    BFO_ASSERT(BFO_MSG_FRAG != ((const bfo_hdr_t *) message)->common.type); /* the receiver would count its bytes twice */
    if (bfo_resend_may_go(peer)) {
        rc = ctl_post(peer, r, &m);
        rc = OMPI_SUCCESS == rc ? rc : ctl_elsewhere(peer, r, rc, &m);
    }
    return OMPI_ERR_OUT_OF_RESOURCE == rc ? ctl_queue(peer, &m, true) : rc;
}
#endif

int bfo_fin_send(bfo_peer_t *peer, const bfo_fin_hdr_t *fin)
{
    const uint8_t r = bfo_rail_for_first(peer, 0);
    opal_convertor_t convertor; /* without data */

    BFO_ASSERT(0 == (fin->fflags & BFO_FIN_WRITE)); /* that of a WRITE follows its data over one rail */
    if (bfo_likely(BFO_MAX_RAILS != r) && NULL != peer->rails[r].btl->btl_sendi) {
        const bfo_rail_t *rail = &peer->rails[r];

        convertor.flags = OPAL_DATATYPE_FLAG_NO_GAPS | CONVERTOR_COMPLETED;
        if (bfo_likely(OPAL_SUCCESS
                       == rail->btl->btl_sendi(rail->btl, rail->endpoint, &convertor, (void *) fin, sizeof(*fin), 0, MCA_BTL_NO_ORDER,
                                               MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP, BFO_TAG(BFO_MSG_FIN), NULL))) {
            return OMPI_SUCCESS;
        }
    }
    return bfo_ctl_send(peer, BFO_ANY_PATH, fin, sizeof(*fin), NULL, NULL);
}
