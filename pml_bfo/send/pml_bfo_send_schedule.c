/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The body of a long message: FRAGs striped over the rails after an ACK, WRITEs after a PUT, and the FIN
 * that ends each WRITE. DESIGN.txt sections 7 (rows S5-S10) and 14.5.
 */
#include "types/pml_bfo.h"

#include "rails/pml_bfo_adopt.h"
#include "failover/pml_bfo_failover.h"
#include "failover/pml_bfo_failover_errors.h"
#include "tables/pml_bfo_failover_fire.h"
#include "failover/pml_bfo_failover_peer.h"
#include "ends/pml_bfo_failover_raise.h"
#include "types/pml_bfo_local.h"
#include "types/pml_bfo_params.h"
#include "rails/pml_bfo_pending.h"
#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"
#include "ends/pml_bfo_send_buffer.h"
#include "ends/pml_bfo_send_complete.h"
#include "send/pml_bfo_send_schedule.h"
#include "show/pml_bfo_tell.h"

#include <string.h>

/* ---- FRAG ----------------------------------------------------------------------------------------- */

inline void bfo_send_act_count_frag(void *request, void *arg)
{
    bfo_send_t *req = request;
    const size_t *length = arg;

    BFO_ASSERT(*length > sizeof(bfo_frag_hdr_t)); /* the length that frag_post() counted */
    (void) bfo_add_size(&req->bytes, *length - sizeof(bfo_frag_hdr_t));
    bfo_send_schedule(req);
}

static void frag_completed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des, int status)
{
    bfo_send_t *req = des->des_cbdata;
    bfo_peer_t *peer = req->lane->peer;
    size_t length = 0;
    int32_t in_flight;

    for (size_t i = 0; i < des->des_segment_count; ++i) {
        length += des->des_segments[i].seg_len;
    }
    if (1 < peer->n_rails) {
        bfo_rails_bulk_end(peer, bfo_rail_index(peer, btl), peer->send_mask, length, OPAL_SUCCESS == status);
    }
    in_flight = bfo_add32(&req->in_flight, -1);
    BFO_ASSERT(0 <= in_flight);
    if (bfo_unlikely(OPAL_SUCCESS != status)) {
        bfo_failover_data_failed(req, bfo_rail_index(peer, btl), status);
        return;
    }
    bfo_rail_carried(peer, bfo_rail_index(peer, btl), length);
    if (bfo_likely(bfo_send_fire(&req->m, BFO_SEV_FRAG_OK, bfo_threads, req, &length))) {
        bfo_send_put(req);
    } else {
        bfo_failover_send_raise(req, BFO_SEV_FRAG_OK, NULL);
    }
}

/* The next FRAG of a request. */
typedef struct {
    bfo_send_t *req;
    size_t size;  /* out: payload, as much as the rail takes */
    uint8_t rail; /* out: the rail that was asked last */
} frag_t;

static inline __attribute__((always_inline)) mca_btl_base_descriptor_t *frag_build(void *what, bfo_peer_t *peer, uint8_t r)
{
    frag_t *frag = what;
    bfo_send_t *req = frag->req;
    opal_convertor_t *convertor = bfo_send_convertor(req);
    const bfo_rail_t *rail = &peer->rails[r];
    mca_btl_base_descriptor_t *des;
    size_t position = req->next;

    BFO_ASSERT(req->next < req->end);
    BFO_ASSERT(req->end <= bfo_send_length(req));
    frag->size = bfo_smaller(rail->frag_limit - sizeof(bfo_frag_hdr_t), req->end - req->next);
    opal_convertor_set_position(convertor, &position);
    des = rail->btl->btl_prepare_src(rail->btl, rail->endpoint, convertor, MCA_BTL_NO_ORDER, sizeof(bfo_frag_hdr_t), &frag->size, BFO_DES_FLAGS);
    if (NULL == des) {
        return NULL;
    }
    if (bfo_unlikely(0 == frag->size)) {
        rail->btl->btl_free(rail->btl, des);
        return NULL;
    }
    bfo_hdr_pack_frag(des->des_segments[0].seg_addr.pval, bfo_se_epoch(req->m.se), bfo_name_id(&req->name), req->dst_id, req->next);
    des->des_cbfunc = frag_completed;
    des->des_cbdata = req;
    frag->rail = r;
    return des;
}

/* Posts the next FRAG. OMPI_SUCCESS: posted; otherwise OMPI_ERR_OUT_OF_RESOURCE or OMPI_ERR_UNREACH. */
static int frag_post(bfo_send_t *req, bfo_peer_t *peer)
{
    const size_t left = req->end - req->next;
    const uint8_t up = __atomic_load_n(&peer->send_mask, __ATOMIC_RELAXED); /* read once, because another thread may lose the last rail */
    const uint8_t r = 0 == up ? BFO_MAX_RAILS
                              : bfo_rail_for_data(peer, bfo_rails_at_most(up, bfo_params.max_send_per_range), bfo_smaller(left, 65536));
    frag_t frag = {.req = req};
    int rc;

    bfo_send_get(req);
    (void) bfo_add32(&req->in_flight, 1);
    rc = bfo_post(peer, r, &peer->send_mask, 0xff, frag_build, &frag);
    if (bfo_likely(OMPI_SUCCESS == rc)) {
        req->next += frag.size;
        BFO_ASSERT(req->next <= req->end);
        BFO_ASSERT(frag.rail < peer->n_rails);
        bfo_bulk_begin(peer, frag.rail, frag.size + sizeof(bfo_frag_hdr_t)); /* the sum of the descriptor's segments at its end */
        bfo_stat_add(BFO_STAT_FRAG_BYTES, frag.size);
        return OMPI_SUCCESS;
    }
    (void) bfo_add32(&req->in_flight, -1);
    if (OMPI_ERR_OUT_OF_RESOURCE == rc) {
        bfo_send_unget(req);
    } else {
        bfo_failover_data_failed(req, BFO_MAX_RAILS, OPAL_ERROR); /* takes the event */
    }
    return rc;
}

static int schedule_retry(bfo_work_t *work)
{
    bfo_send_t *req = bfo_container(work, bfo_send_t, work);

    bfo_send_schedule(req);
    bfo_send_put(req);
    return OMPI_SUCCESS;
}

/* With nothing in flight no completion comes that would continue, therefore progress must. */
static void schedule_later(bfo_send_t *req)
{
    if (0 != __atomic_load_n(&req->in_flight, __ATOMIC_SEQ_CST)) {
        return;
    }
    bfo_send_get(req);
    if (!bfo_work_queue(req->lane->peer, &req->work, schedule_retry)) {
        bfo_send_unget(req);
    }
}

void bfo_send_schedule(bfo_send_t *req)
{
    bfo_peer_t *peer = req->lane->peer;
    int32_t depth;
    int rc = OMPI_SUCCESS;

    BFO_ASSERT(0 < bfo_events_load(&req->m)); /* the caller's: the request does not end meanwhile */
    if (1 != bfo_add32(&req->scheduling, 1)) {
        return; /* another thread, or a caller further up the stack, works here and will look again */
    }
    do {
        depth = (int32_t) bfo_params.send_pipeline_depth * __builtin_popcount(peer->send_mask);
        while (req->next < req->end && (req->in_flight < depth || 0 == depth) && BFO_SEND_STREAM == bfo_se_state(bfo_se_load(&req->m))) {
            rc = frag_post(req, peer);
            if (bfo_unlikely(OMPI_SUCCESS != rc)) {
                break;
            }
        }
    } while (OMPI_SUCCESS == rc && 0 != bfo_add32(&req->scheduling, -1));
    if (bfo_unlikely(OMPI_SUCCESS != rc)) {
        BFO_ASSERT(0 < __atomic_load_n(&req->scheduling, __ATOMIC_RELAXED)); /* only the thread that works here lowers it */
        __atomic_store_n(&req->scheduling, 0, __ATOMIC_SEQ_CST);
        if (OMPI_ERR_OUT_OF_RESOURCE == rc) {
            schedule_later(req);
        }
    }
}

/* ---- answers of the receiver ---------------------------------------------------------------------- */

void bfo_send_act_drop_stale(void *request, void *arg)
{
    bfo_stat_drop(BFO_STAT_STALE);
}

/* The request that an answer names, with an event taken; NULL: the answer is stale, and was counted. */
static bfo_send_t *send_get_by_id(bfo_id_t id, uint16_t epoch)
{
    bfo_name_t *name = bfo_ids_find(&bfo.sends, id);
    bfo_send_t *req = NULL == name ? NULL : bfo_container(name, bfo_send_t, name);

    if (NULL == req) {
        bfo_stat_drop(BFO_STAT_STALE);
        return NULL;
    }
    bfo_send_get(req);
    if (bfo_name_id(name) == id && bfo_send_takes_response(bfo_se_load(&req->m), epoch)) {
        return req;
    }
    if (!bfo_send_fire(&req->m, BFO_SEV_STALE, bfo_threads, req, NULL)) {
        bfo_stat_drop(BFO_STAT_STALE);
    }
    bfo_send_put(req);
    return NULL;
}

static void send_answered(bfo_send_t *req, bfo_id_t dst_id)
{
    req->dst_id = dst_id;
    __atomic_store_n(&req->resp, true, __ATOMIC_RELEASE); /* acquire: first_retry */
    bfo_send_take_response(&req->m, bfo_threads);
}

/* The receiver refuses the message, which had no receive yet: the communicator is revoked, or one of its processes has failed and
 * the message belongs to a collective operation (BFO_FLAG_FAILED). */
static BFO_COLD void refused(bfo_send_t *req, const bfo_ack_hdr_t *ack)
{
    int error = 0 != (ack->flags & BFO_FLAG_FAILED) ? BFO_OMPI_ERR_PROC_FAILED : BFO_OMPI_ERR_REVOKED;

    if (!BFO_OMPI_ULFM_IS_ON || !bfo_send_fire(&req->m, BFO_SEV_REFUSED, bfo_threads, req, &error)) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
    }
}

/* S5. The state changes once `resp` is set (send_answered()). */
inline __attribute__((always_inline)) void bfo_send_act_take_ack(void *request, void *arg)
{
    bfo_send_t *req = request;
    const bfo_ack_hdr_t *ack = arg;

    if (NULL != req->regs) {
        __atomic_store_n(&req->bytes, ack->send_offset, __ATOMIC_SEQ_CST); /* bytes beyond this offset are sent again */
    }
    req->next = ack->send_offset;
    req->end = ack->send_offset + ack->send_size;
    send_answered(req, ack->dst_id);
    bfo_send_schedule(req);
}

void bfo_send_on_ack(const bfo_ack_hdr_t *ack)
{
    bfo_send_t *req = send_get_by_id(ack->src_id, ack->epoch);

    if (NULL == req) {
        return;
    }
    if (0 == ack->dst_id) {
        refused(req, ack);
    } else if (ack->send_offset + ack->send_size > bfo_send_length(req) || __atomic_exchange_n(&req->acked, true, __ATOMIC_ACQ_REL)) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER); /* or a second copy over another rail, perhaps in another thread at the same time */
    } else {
        BFO_SEND_ROW(req->m.se, ACK);
        bfo_send_act_take_ack(req, (void *) ack);
    }
    bfo_send_put(req);
}

/* Counts what the peer has read over each of several rails. The last rail gets what is lost by rounding. */
static __attribute__((noinline)) void count_shares(bfo_peer_t *peer, const bfo_fin_hdr_t *fin)
{
    uint64_t left = fin->size;
    uint8_t last = BFO_MAX_RAILS;

    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        const uint8_t name = bfo_rail_name(peer, r);
        const uint64_t share = name < BFO_MAX_RAILS ? fin->share[name] : 0;
        const uint64_t part = fin->size / UINT8_MAX * share + fin->size % UINT8_MAX * share / UINT8_MAX; /* the size times the share may overflow */

        if (0 != part) {
            bfo_rail_count(peer, r, false, bfo_smaller(part, left));
            left -= bfo_smaller(part, left);
            last = r;
        }
    }
    bfo_rail_count(peer, last, false, left);
}

/* Counts what the peer has read. If there is one rail, the shares in the FIN say nothing more. */
static inline void count_reads(bfo_peer_t *peer, const bfo_fin_hdr_t *fin)
{
    if (bfo_likely(1 == peer->n_rails)) {
        bfo_rail_count(peer, 0, false, fin->size);
    } else {
        count_shares(peer, fin);
    }
}

inline void bfo_send_act_take_fin(void *request, void *arg)
{
    bfo_send_t *req = request;
    const bfo_fin_hdr_t *fin = arg;

    BFO_ASSERT(BFO_MSG_RGET == req->rts_type && NULL != req->rget);
    BFO_ASSERT(fin->size <= bfo_send_length(req));
    req->resp = true;
    if (bfo_unlikely(req->lane->peer->failover)) { /* otherwise there is no counter */
        count_reads(req->lane->peer, fin);
    }
    (void) bfo_add_size(&req->bytes, fin->size);
}

/* Drops a FIN of which a copy over another rail came first; `req` NULL: the fragment is in use for something else. */
static BFO_COLD void fin_is_stale(bfo_send_t *req)
{
    bfo_stat_drop(BFO_STAT_STALE);
    if (NULL != req) {
        bfo_send_put(req);
    }
}

void bfo_send_on_fin(bfo_frag_t *frag, const bfo_fin_hdr_t *fin)
{
    bfo_send_t *req = __atomic_load_n(&frag->send, __ATOMIC_RELAXED);
    const uint32_t seq = fin->match.seq;

    if (bfo_unlikely(NULL == req)) {
        fin_is_stale(NULL);
        return;
    }
    bfo_send_get(req);
    if (!bfo_send_takes_response(bfo_se_load(&req->m), fin->epoch) || req->rget != frag || req->match_seq != seq || fin->size > bfo_send_length(req)
        || !bfo_name_claim(&frag->name, fin->frag_id, bfo_threads) || !bfo_send_fire(&req->m, BFO_SEV_FIN, bfo_threads, req, (void *) fin)) {
        fin_is_stale(req);
        return;
    }
    bfo_send_put(req);
}

/* ---- PUT: write, then FIN ------------------------------------------------------------------------- */

static void write_finish(bfo_frag_t *frag, uint8_t flags)
{
    const bfo_send_t *req = frag->send;
    const mca_pml_base_request_t *base = &req->req_send.req_base;
    bfo_match_hdr_t message;
    bfo_fin_hdr_t fin;

    BFO_ASSERT(BFO_FRAG_WRITE == frag->kind && 0 != frag->peer_frag);
    bfo_hdr_pack_match(&message, 0, 0, (uint16_t) BFO_OMPI_CTX_OF(base->req_comm), base->req_comm->c_my_rank, base->req_tag, req->match_seq);
    bfo_hdr_pack_fin(&fin, frag->epoch, BFO_FIN_WRITE | flags, frag->peer_frag, frag->length, &message);
    fin.wrail = bfo_rail_name(frag->peer, frag->rail);
    fin.wgen = frag->gen;
    /* our BTL uses the same queue pair for every WRITE and every short message */
    if (OMPI_SUCCESS != bfo_ctl_send(frag->peer, (bfo_path_t){frag->rail, false}, &fin, sizeof(fin), NULL, NULL)) {
        bfo_failover_ctl_failed(frag->peer, BFO_MAX_RAILS, &fin, sizeof(fin), OPAL_ERROR);
    }
}

/* `refused`: btl_put itself refused or was not called, and nothing was begun. If the bytes may be copied, a FIN with REFUSED makes the
 * receiver ask for them by ACK. A rail that has come back since is not blamed for its last generation. */
static BFO_COLD void write_failed(bfo_frag_t *frag, int status, bool refused)
{
    const uint8_t rail = frag->rail;
    const uint16_t gen = frag->gen;
    bfo_send_t *req = frag->send;
    const bool copied = bfo_failover_may_copy(frag->peer, rail, refused) && BFO_SE(BFO_SEND_STREAM, frag->epoch) == bfo_se_load(&req->m);

    if (copied) {
        write_finish(frag, BFO_FIN_REFUSED);
    }
    bfo_cache_give(BFO_CACHE_FRAG, &frag->super);
    if (copied) {
        bfo_send_put(req);
    } else {
        bfo_failover_data_failed(req, refused && gen != bfo_rail_gen(req->lane->peer, rail) ? BFO_MAX_RAILS : rail, status);
    }
}

inline void bfo_send_act_count_write_post_fin(void *request, void *arg)
{
    bfo_send_t *req = request;
    bfo_frag_t *frag = arg;

    (void) bfo_add_size(&req->bytes, frag->length);
    write_finish(frag, 0);
}

static void write_completed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local,
                            struct mca_btl_base_registration_handle_t *handle, void *context, void *cbdata, int status)
{
    bfo_frag_t *frag = cbdata;
    bfo_send_t *req = frag->send;
    bool is_taken;

    BFO_ASSERT(BFO_FRAG_WRITE == frag->kind);
    BFO_ASSERT(0 < bfo_events_load(&req->m) && frag->peer == req->lane->peer);
    if (bfo_unlikely(OPAL_SUCCESS != status)) {
        write_failed(frag, status, false);
        return;
    }
    bfo_stat_add(BFO_STAT_PUT_BYTES, frag->length);
    bfo_rail_carried(frag->peer, frag->rail, frag->length);
    frag->gen = bfo_rail_gen(frag->peer, frag->rail); /* which carried it (B8), because the rail may have come back right before the post */
    is_taken = bfo_send_fire(&req->m, BFO_SEV_WRITE_OK, bfo_threads, req, frag);
    bfo_cache_give(BFO_CACHE_FRAG, &frag->super);
    if (bfo_likely(is_taken)) {
        bfo_send_put(req);
    } else {
        bfo_failover_send_raise(req, BFO_SEV_WRITE_OK, NULL);
    }
}

/* Owns the event of the WRITE until the callback. */
static int write_try(bfo_work_t *work)
{
    bfo_frag_t *frag = bfo_container(work, bfo_frag_t, work);
    const bfo_rail_t *rail = &frag->peer->rails[frag->rail];
    bfo_send_t *req = frag->send;
    int rc = OMPI_ERR_UNREACH;

    if (BFO_SE(BFO_SEND_STREAM, frag->epoch) != bfo_se_load(&req->m)) { /* the attempt is over */
        if (!bfo_send_fire(&req->m, BFO_SEV_DISCARDED, bfo_threads, req, NULL)) {
            bfo_stat_drop(BFO_STAT_STALE); /* the request was abandoned (DESIGN.txt section 14.11) */
        }
        bfo_cache_give(BFO_CACHE_FRAG, &frag->super);
        bfo_send_put(req);
        return OMPI_SUCCESS;
    }
    if (frag->gen == rail->gen) { /* else it waited while its rail was lost */
        rc = bfo_post_rdma(frag, rail->btl->btl_put, req->base + frag->offset, frag->local, frag->handle, write_completed);
    }
    if (bfo_unlikely(OMPI_ERR_UNREACH == rc)) {
        write_failed(frag, OPAL_ERROR, true);
        rc = OMPI_SUCCESS;
    }
    return rc;
}

static inline __attribute__((always_inline)) int write_start(bfo_send_t *req, uint8_t rail, const bfo_put_hdr_t *put)
{
    bfo_peer_t *peer = req->lane->peer;
    bfo_frag_t *frag = bfo_cache_take(BFO_CACHE_FRAG);

    if (NULL == frag) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    BFO_ASSERT(BFO_FRAG_PUT != frag->kind); /* as in put_ask() */
    BFO_ASSERT(put->rdma_offset + put->dst_size <= bfo_send_length(req));
    BFO_ASSERT(req->regs->mask >> rail & 1);
    frag->kind = BFO_FRAG_WRITE;
    frag->send = req;
    frag->recv = NULL;
    frag->peer = peer;
    frag->rail = rail;
    frag->epoch = put->epoch;
    frag->gen = peer->rails[rail].gen;
    frag->offset = put->rdma_offset;
    frag->length = put->dst_size;
    frag->remote = put->dst_ptr;
    frag->peer_frag = put->frag_id;
    frag->local = req->regs->handle[rail];
    memcpy(frag->handle, put + 1, peer->handle_size);
    bfo_send_get(req);
    if (OMPI_ERR_OUT_OF_RESOURCE == write_try(&frag->work)) {
        (void) bfo_work_queue_bound(peer, &frag->work, write_try);
    }
    return OMPI_SUCCESS;
}

/* S6b. Case 1: the rail is lost, or was lost when the message began. The next attempt registers with the rails that are UP then. Case 2: this
 * process does not use the rail, or cannot write over it. The next attempts offer no PUT, and so the receiver asks for none. */
static BFO_COLD void put_elsewhere(bfo_send_t *req, uint8_t rail, bfo_id_t dst_id)
{
    bfo_peer_t *peer = req->lane->peer;

    if (BFO_MAX_RAILS == rail || 0 == (peer->rails[rail].flags & MCA_BTL_FLAGS_PUT)) {
        bfo_rails_offer_no_put(peer);
        bfo_tell_foreign_put(peer);
    }
    if (!peer->failover) {
        bfo_failover_declare(peer, "it asks for data over a rail that this process does not use");
    } else if (PML_BFO) {
        bfo_failover_put_on_dead_rail(req, dst_id);
    }
}

/* A PUT of this attempt, and the rail by which it came. */
typedef struct {
    const bfo_put_hdr_t *header;
    uint8_t rail;
} put_t;

/* S6. The state changes once `resp` is set (send_answered()). */
inline __attribute__((always_inline)) void bfo_send_act_take_put(void *request, void *arg)
{
    bfo_send_t *req = request;
    const put_t *put = arg;

    send_answered(req, put->header->dst_id);
    if (bfo_unlikely(OMPI_SUCCESS != write_start(req, put->rail, put->header))) {
        bfo_failover_declare(req->lane->peer, "no memory for a transfer that it waits for");
    }
}

void bfo_send_on_put(mca_btl_base_module_t *btl, const bfo_put_hdr_t *put)
{
    bfo_send_t *req = send_get_by_id(put->src_id, put->epoch);
    uint8_t rail;

    if (NULL == req) {
        return;
    }
    rail = bfo_rail_index(req->lane->peer, btl);
    if (NULL == req->regs || 0 == put->dst_id || put->rdma_offset + put->dst_size > bfo_send_length(req)) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
    } else if (bfo_unlikely(0 == (req->lane->peer->up_mask & req->regs->mask & 1u << rail))) {
        put_elsewhere(req, rail, put->dst_id); /* also a rail that was dead before: the buffer has no registration with it */
    } else {
        BFO_SEND_ROW(req->m.se, PUT);
        bfo_send_act_take_put(req, &(put_t){put, rail});
    }
    bfo_send_put(req);
}
