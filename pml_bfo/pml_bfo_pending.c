/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The queues of work that waits for the rails of its peer, and the sending of control messages.
 * DESIGN.txt sections 9 and 14.4.
 */
#include "pml_bfo.h"

#include "pml_bfo_failover.h"
#include "pml_bfo_local.h"
#include "pml_bfo_params.h"
#include "pml_bfo_pending.h"
#include "pml_bfo_rails.h"

#include "opal/runtime/opal_progress.h"

#include <stdlib.h>
#include <string.h>

/* Refusals after which progress leaves a peer. */
#define MAX_REFUSALS 16u

bool bfo_resend_may_go(bfo_peer_t *peer)
{
    return peer->resends++ < bfo_params.resend_burst;
}

/* Lock: pending_lock */
static void work_append(bfo_peer_t *peer, bfo_work_t *work)
{
    if (bfo_link_is_empty(&peer->waiting)) {
        bfo_link_append(&bfo.pending, &peer->turn);
    }
    bfo_link_append(&peer->waiting, &work->link);
    work->queued = true;
    ++peer->n_waiting;
    ++bfo.n_pending;
}

static bool work_queue(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work), bool is_resend)
{
    bool is_first;

    BFO_LOCK(&bfo.pending_lock);
    if (work->queued) {
        BFO_UNLOCK(&bfo.pending_lock);
        return false;
    }
    work->retry = retry;
    work->is_resend = is_resend;
    work_append(peer, work);
    is_first = !bfo.progress_registered;
    bfo.progress_registered = true;
    BFO_UNLOCK(&bfo.pending_lock);
    bfo_stat_add(BFO_STAT_PENDED, 1);
    if (is_first) {
        opal_progress_register(bfo_progress);
    }
    return true;
}

bool bfo_work_queue(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work))
{
    return work_queue(peer, work, retry, false);
}

bool bfo_work_queue_resend(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work))
{
    return work_queue(peer, work, retry, true);
}

void bfo_work_forget(bfo_peer_t *peer)
{
    BFO_LOCK(&bfo.pending_lock);
    if (!bfo_link_is_empty(&peer->waiting)) {
        bfo_link_remove(&peer->turn);
        bfo.n_pending -= peer->n_waiting;
    }
    BFO_UNLOCK(&bfo.pending_lock);
}

static void work_put_back(bfo_peer_t *peer, bfo_work_t *work)
{
    BFO_LOCK(&bfo.pending_lock);
    work_append(peer, work);
    BFO_UNLOCK(&bfo.pending_lock);
}

static bfo_work_t *work_pop(bfo_peer_t *peer)
{
    bfo_work_t *work = NULL;

    BFO_LOCK(&bfo.pending_lock);
    if (!bfo_link_is_empty(&peer->waiting)) {
        work = bfo_container(peer->waiting.next, bfo_work_t, link);
        bfo_link_remove(&work->link);
        work->queued = false;
        --peer->n_waiting;
        --bfo.n_pending;
        if (bfo_link_is_empty(&peer->waiting)) {
            bfo_link_remove(&peer->turn);
        }
    }
    BFO_UNLOCK(&bfo.pending_lock);
    return work;
}

/* What was refused goes behind the rest: a rail without room does not hold up the others. */
static int peer_visit(bfo_peer_t *peer)
{
    unsigned refusals = 0;
    int done = 0;

    peer->resends = 0;
    for (uint32_t n = peer->n_waiting; 0 < n && refusals < MAX_REFUSALS; --n) {
        bfo_work_t *work = work_pop(peer);

        if (NULL == work) {
            break;
        }
        if (work->is_resend && !bfo_resend_may_go(peer)) {
            work_put_back(peer, work);
        } else if (OMPI_ERR_OUT_OF_RESOURCE == work->retry(work)) {
            work_put_back(peer, work);
            ++refusals;
        } else {
            ++done;
        }
    }
    return done;
}

static unsigned peers_that_wait(void)
{
    unsigned n = 0;

    BFO_LOCK(&bfo.pending_lock);
    for (const bfo_link_t *l = bfo.pending.next; l != &bfo.pending; l = l->next) {
        ++n;
    }
    BFO_UNLOCK(&bfo.pending_lock);
    return n;
}

/* The peer whose turn it is; its next turn comes after those of all others. */
static bfo_peer_t *peer_next(void)
{
    bfo_link_t *l = NULL;

    BFO_LOCK(&bfo.pending_lock);
    if (!bfo_link_is_empty(&bfo.pending)) {
        l = bfo.pending.next;
        bfo_link_remove(l);
        bfo_link_append(&bfo.pending, l);
    }
    BFO_UNLOCK(&bfo.pending_lock);
    return NULL == l ? NULL : bfo_container(l, bfo_peer_t, turn);
}

int bfo_progress(void)
{
    int done = 0;

    if (bfo_likely(0 == bfo.n_pending)) {
        return 0;
    }
    for (unsigned n = peers_that_wait(); 0 < n; --n) {
        bfo_peer_t *peer = peer_next();

        if (NULL == peer) {
            break;
        }
        done += peer_visit(peer);
    }
    return done;
}

/* ---- control messages ---------------------------------------------------------------------------- */

static void ctl_completed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                          mca_btl_base_descriptor_t *des, int status)
{
    if (bfo_unlikely(OPAL_SUCCESS != status)) {
        bfo_peer_t *peer = des->des_context;

        bfo_failover_ctl_failed(peer, bfo_rail_index(peer, btl), des->des_segments[0].seg_addr.pval,
                                des->des_segments[0].seg_len, status);
    }
}

static uint8_t rail_for(const bfo_path_t *path, bfo_peer_t *peer)
{
    if (path->rail < BFO_MAX_RAILS && (peer->send_mask >> path->rail & 1)) {
        return path->rail;
    }
    return path->bound ? BFO_MAX_RAILS : bfo_rail_for_first(peer);
}

static inline __attribute__((always_inline)) int ctl_try(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length,
                   mca_btl_base_completion_fn_t done, void *context)
{
    const uint8_t type = ((const bfo_hdr_t *) header)->common.type;
    mca_btl_base_descriptor_t *des;
    const bfo_rail_t *rail;
    uint16_t gen;
    uint8_t r;
    int rc;

    if (!bfo_peer_is_ready(peer)) {
        return OMPI_ERR_UNREACH;
    }
    r = rail_for(&path, peer);
    if (BFO_MAX_RAILS == r) {
        return OMPI_ERR_UNREACH;
    }
    rail = &peer->rails[r];
    gen = rail->gen;
    des = rail->btl->btl_alloc(rail->btl, rail->endpoint, path.order, length, BFO_DES_FLAGS);
    if (NULL == des) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (bfo_likely(sizeof(bfo_fin_hdr_t) == length)) {
        memcpy(des->des_segments[0].seg_addr.pval, header, sizeof(bfo_fin_hdr_t)); /* FIN and ACK, in line */
    } else {
        memcpy(des->des_segments[0].seg_addr.pval, header, length);
    }
    if (bfo_unlikely(r != path.rail && BFO_MSG_FIN == type)) {
        bfo_fin_hdr_t *fin = des->des_segments[0].seg_addr.pval;

        fin->fflags |= 0 != (fin->fflags & BFO_FIN_WRITE) ? BFO_FIN_RESENT : 0; /* it may overtake its data */
    }
    des->des_segments[0].seg_len = length;
    des->des_cbfunc = NULL != done ? done : ctl_completed;
    des->des_cbdata = context;
    des->des_context = peer;
    rc = rail->btl->btl_send(rail->btl, rail->endpoint, des, BFO_TAG(type));
    if (rc >= 0 || OMPI_ERR_RESOURCE_BUSY == rc) {
        return OMPI_SUCCESS;
    }
    rail->btl->btl_free(rail->btl, des);
    if (OMPI_ERR_OUT_OF_RESOURCE != rc) {
        bfo_failover_rail_failed(peer, r, gen, "a control message was refused");
        rc = OMPI_ERR_UNREACH;
    }
    return rc;
}

/* A rail that refuses has been taken out: on to the next one, unless only that one will do. */
static BFO_COLD int ctl_post_elsewhere(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length,
                                       mca_btl_base_completion_fn_t done, void *context)
{
    int rc = OMPI_ERR_UNREACH;

    for (unsigned n = 1; bfo_unlikely(OMPI_ERR_UNREACH == rc) && !path.bound && n < BFO_MAX_RAILS
                         && 0 != peer->send_mask; ++n) {
        rc = ctl_try(peer, path, header, length, done, context);
    }
    return rc;
}

static inline int ctl_post(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length,
                           mca_btl_base_completion_fn_t done, void *context)
{
    const int rc = ctl_try(peer, path, header, length, done, context);

    return bfo_likely(OMPI_ERR_UNREACH != rc) ? rc : ctl_post_elsewhere(peer, path, header, length, done, context);
}

static void ctl_free(bfo_ctl_t *ctl)
{
    if (ctl->text != ctl->room) {
        free(ctl->text);
    }
    opal_free_list_return(&bfo.ctl_list, &ctl->super);
}

static int ctl_retry(bfo_work_t *work)
{
    bfo_ctl_t *ctl = bfo_container(work, bfo_ctl_t, work);
    const bfo_path_t path = {ctl->rail, ctl->bound, ctl->order};
    const int rc = ctl_post(ctl->peer, path, ctl->text, ctl->length, ctl->done, ctl->context);

    if (OMPI_ERR_OUT_OF_RESOURCE == rc) {
        return rc;
    }
    if (OMPI_SUCCESS != rc && NULL != ctl->done) {
        /* whoever waits for the callback gets it, as from a rail that died with the message in it */
        mca_btl_base_segment_t seg = {.seg_addr.pval = ctl->text, .seg_len = ctl->length};
        mca_btl_base_descriptor_t des = {.des_segments = &seg, .des_segment_count = 1, .des_cbdata = ctl->context,
                                         .des_context = ctl->peer};

        ctl->done(NULL, NULL, &des, OPAL_ERROR);
    }
    ctl_free(ctl);
    return OMPI_SUCCESS;
}

/* Keeps a copy for progress; a resend if `again`. */
static int ctl_queue(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length,
                     mca_btl_base_completion_fn_t done, void *context, bool again)
{
    bfo_ctl_t *ctl = (bfo_ctl_t *) opal_free_list_get(&bfo.ctl_list);

    if (NULL == ctl) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    ctl->text = length <= sizeof(ctl->room) ? ctl->room : malloc(length);
    if (NULL == ctl->text) {
        opal_free_list_return(&bfo.ctl_list, &ctl->super);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    ctl->work.queued = false;
    ctl->peer = peer;
    ctl->rail = path.rail;
    ctl->bound = path.bound;
    ctl->order = path.order;
    ctl->length = (uint32_t) length;
    ctl->done = done;
    ctl->context = context;
    memcpy(ctl->text, header, length);
    (void) work_queue(peer, &ctl->work, ctl_retry, again);
    return OMPI_SUCCESS;
}

int bfo_ctl_send(bfo_peer_t *peer, bfo_path_t path, const void *header, size_t length,
                 mca_btl_base_completion_fn_t done, void *context)
{
    const int rc = ctl_post(peer, path, header, length, done, context);

    return bfo_likely(OMPI_ERR_OUT_OF_RESOURCE != rc) ? rc : ctl_queue(peer, path, header, length, done, context, false);
}

#if PML_BFO
int bfo_ctl_resend(bfo_peer_t *peer, const void *header, size_t length)
{
    return bfo_resend_may_go(peer) ? bfo_ctl_send(peer, BFO_ANY_PATH, header, length, NULL, NULL)
                                   : ctl_queue(peer, BFO_ANY_PATH, header, length, NULL, NULL, true);
}
#endif

int bfo_fin_send(bfo_peer_t *peer, const bfo_fin_hdr_t *fin)
{
    const uint8_t r = bfo_rail_for_first(peer);
    opal_convertor_t convertor; /* of no data */

    if (bfo_likely(BFO_MAX_RAILS != r) && NULL != peer->rails[r].btl->btl_sendi) {
        const bfo_rail_t *rail = &peer->rails[r];

        convertor.flags = OPAL_DATATYPE_FLAG_NO_GAPS | CONVERTOR_COMPLETED;
        if (bfo_likely(OPAL_SUCCESS
                       == rail->btl->btl_sendi(rail->btl, rail->endpoint, &convertor, (void *) fin, sizeof(*fin), 0,
                                               MCA_BTL_NO_ORDER,
                                               MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP,
                                               BFO_TAG(BFO_MSG_FIN), NULL))) {
            return OMPI_SUCCESS;
        }
    }
    return bfo_ctl_send(peer, BFO_ANY_PATH, fin, sizeof(*fin), NULL, NULL);
}
