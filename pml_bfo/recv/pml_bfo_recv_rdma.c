/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A message that comes by RDMA: PUTs that the receiver asks for, or READs of what the sender offers, spread over the rails. DESIGN.txt
 * sections 7 (rows R2, R4 to R6), 14.3 and 14.5.
 */
#include "types/pml_bfo.h"

#include "tables/pml_bfo_failover_fire.h"
#include "failover/pml_bfo_failover.h"
#include "ends/pml_bfo_recv_complete.h"
#include "failover/pml_bfo_failover_errors.h"
#include "ends/pml_bfo_failover_raise.h"
#include "types/pml_bfo_local.h"
#include "types/pml_bfo_params.h"
#include "rails/pml_bfo_adopt.h"
#include "rails/pml_bfo_pending.h"
#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"
#include "rails/pml_bfo_rails_out.h"
#include "recv/pml_bfo_recv_answer.h"
#include "recv/pml_bfo_recv_copy.h"
#include "recv/pml_bfo_recv_rdma.h"

#include <string.h>

/* ---- PUT and READ ----------------------------------------------------------------------------------- */

enum { PIECE_LEAST = 128 * 1024 /* a shorter piece costs more than a second rail gains */ };

/* The rail of `mask` (not 0) for the next PUT or READ. */
static inline uint8_t rail_for_piece(const bfo_peer_t *peer, uint8_t mask)
{
    BFO_ASSERT(0 != mask && 0 == mask >> peer->n_rails);
    return (uint8_t) (bfo_likely(0 == (mask & (mask - 1))) ? (unsigned) __builtin_ctz(mask) : bfo_stripe_least(&peer->stripe, mask));
}

/* Largest piece of a message for this rail; at most `limit` bytes. */
static inline size_t piece_most(const bfo_peer_t *peer, uint8_t rail, size_t limit)
{
    const size_t wanted = 0 != bfo_params.frag_size ? bfo_params.frag_size : peer->rails[rail].btl->btl_rdma_pipeline_frag_size;

    return 0 != wanted && wanted < limit ? wanted : limit;
}

/* Bytes of the next PUT or READ over the rail, `most` at most. Pieces are spread over the rails of `mask` so that all of them end at about
 * the same time. */
static inline size_t piece_size(const bfo_recv_t *req, const bfo_peer_t *peer, uint8_t mask, uint8_t rail, size_t most)
{
    const bool is_alone = 0 == (mask & (mask - 1));

    return bfo_smaller(is_alone ? most : bfo_stripe_piece(&peer->stripe, mask, rail, req->length, PIECE_LEAST, most), req->end - req->next);
}

/* A PUT or READ has ended, and `open` of them are left. */
static inline void rdma_ended(bfo_recv_t *req, int32_t open)
{
    BFO_ASSERT(0 <= open);
    if (bfo_likely(!__atomic_load_n(&req->copies, __ATOMIC_RELAXED))) {
        bfo_recv_schedule(req);
    } else if (0 == open) {
        bfo_recv_copy_rest(req);
    }
}

static inline void piece_begins(bfo_peer_t *peer, uint8_t rail, size_t bytes)
{
    if (1 < peer->n_rails) {
        bfo_stripe_charge(&peer->stripe, rail, bytes);
        bfo_stripe_begin(&peer->stripe, rail, bytes);
    }
}

/* ---- PUT: ask the sender to write ------------------------------------------------------------------ */


/* Clears `recv`, because other threads walk over all fragments and look for the PUTs of their request: a fragment that is reused for a PUT,
 * and has no new owner yet, must not be taken for a PUT of its old request. */
static inline void put_ends(bfo_frag_t *frag, bool carried)
{
    BFO_ASSERT(BFO_FRAG_PUT == frag->kind); /* a PUT ends once */
    bfo_bulk_end(frag->peer, frag->rail, frag->peer->put_mask, frag->length, carried);
    frag->kind = BFO_FRAG_NONE;
    __atomic_store_n(&frag->recv, NULL, __ATOMIC_RELAXED);
}

/* The rails over which the next WRITE may come. */
static uint8_t put_rails(const bfo_recv_t *req, const bfo_peer_t *peer)
{
    const uint8_t mask = req->regs->mask & peer->put_mask;

    return bfo_likely(0 != mask) ? mask : req->regs->mask & bfo_rails_out_put(peer); /* a rail that stands out finishes what it has begun */
}

static int put_ask(bfo_recv_t *req, bfo_peer_t *peer)
{
    union {
        bfo_put_hdr_t h;
        char room[BFO_HDR_MAX];
    } u;
    const uint8_t mask = put_rails(req, peer);
    bfo_frag_t *frag;
    size_t limit;
    int32_t open;
    uint8_t r;
    int rc;

    if (bfo_unlikely(0 == mask)) {
        bfo_recv_get(req);
        bfo_failover_answer_failed(req, BFO_MAX_RAILS, OPAL_ERROR);
        return OMPI_ERR_UNREACH;
    }
    frag = bfo_cache_take(BFO_CACHE_FRAG);
    if (NULL == frag) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    (void) bfo_add32(&req->open, 1);
    if (bfo_unlikely(__atomic_load_n(&req->copies, __ATOMIC_SEQ_CST))) {
        bfo_cache_give(BFO_CACHE_FRAG, &frag->super);
        return bfo_recv_copies_instead(req);
    }
    r = rail_for_piece(peer, mask);
    limit = peer->rails[r].btl->btl_put_limit;
    BFO_ASSERT(BFO_FRAG_PUT != frag->kind); /* put_ends() came before the fragment was given back */
    frag->send = NULL;
    frag->recv = req;
    __atomic_store_n(&frag->kind, BFO_FRAG_PUT, __ATOMIC_RELEASE); /* acquire: bfo_recv_forget_puts */
    frag->peer = peer;
    frag->rail = r;
    frag->epoch = bfo_se_epoch(req->m.se);
    frag->offset = req->next;
    frag->length = piece_size(req, peer, mask, r, piece_most(peer, r, 0 != limit ? limit : SIZE_MAX));
    BFO_ASSERT(0 < frag->length && frag->offset + frag->length <= req->end);
    BFO_ASSERT(req->end <= req->capacity); /* the peer writes into the user's buffer */
    bfo_hdr_pack_put(&u.h, frag->epoch, req->src_id, bfo_name_id(&frag->name), bfo_name_id(&req->name), frag->offset, req->base + frag->offset,
                     frag->length);
    if (NULL != req->regs->handle[r]) {
        memcpy(&u.h + 1, req->regs->handle[r], peer->handle_size);
    } else {
        memset(&u.h + 1, 0, peer->handle_size);
    }
    piece_begins(peer, r, frag->length);
    req->next += frag->length;
    rc = bfo_recv_answer(req, (bfo_path_t){r, true}, &u, sizeof(u.h) + peer->handle_size);
    if (bfo_unlikely(OMPI_SUCCESS != rc)) {
        req->next -= frag->length;
        open = bfo_add32(&req->open, -1);
        BFO_ASSERT(0 <= open);
        bfo_name_retire(&frag->name);
        put_ends(frag, false);
        bfo_cache_give(BFO_CACHE_FRAG, &frag->super);
    }
    return rc;
}

/* A PUT and its FIN. */
typedef struct {
    bfo_frag_t *frag;
    const bfo_fin_hdr_t *fin;
} ended_put_t;

/* R4 */
inline __attribute__((always_inline)) void bfo_recv_act_take_fin(void *request, void *arg)
{
    const ended_put_t *put = arg;
    bfo_frag_t *frag = put->frag;
    bfo_recv_t *req = request;
    size_t bytes;

    put_ends(frag, 0 == (put->fin->fflags & BFO_FIN_REFUSED));
    if (bfo_likely(0 == (put->fin->fflags & BFO_FIN_REFUSED))) {
        bfo_rail_count(frag->peer, frag->rail, true, frag->length);
        bytes = bfo_add_size(&req->bytes, frag->length);
        BFO_ASSERT(bytes <= req->length || __atomic_load_n(&req->copies, __ATOMIC_RELAXED)); /* each byte was asked for once */
    } else {
        bfo_recv_copy_from(req, frag->offset);
    }
    bfo_cache_give(BFO_CACHE_FRAG, &frag->super);
    rdma_ended(req, bfo_add32(&req->open, -1));
}

/* R4 in ACTIVE, the only state in which bfo_recv_schedule() asks for more. */
inline __attribute__((always_inline)) void bfo_recv_act_take_fin_more(void *request, void *arg)
{
    bfo_recv_act_take_fin(request, arg);
}

void bfo_recv_on_fin(bfo_frag_t *frag, const bfo_fin_hdr_t *fin)
{
    bfo_recv_t *req = __atomic_load_n(&frag->recv, __ATOMIC_RELAXED);
    uint32_t se;

    if (bfo_unlikely(NULL == req)) { /* as in bfo_send_on_fin() */
        bfo_stat_drop(BFO_STAT_STALE);
        return;
    }
    bfo_recv_get(req);
    se = bfo_se_load(&req->m);
    if (!bfo_recv_takes_data(se, frag->epoch) || req->match_seq != fin->match.seq || fin->size != frag->length
        || !bfo_name_claim(&frag->name, fin->frag_id, bfo_threads)) {
        bfo_stat_drop(BFO_STAT_STALE);
    } else {
        BFO_RECV_ROW(se, FIN);
        bfo_recv_act_take_fin_more(req, &(ended_put_t){frag, fin}); /* in ERRL and QUIESCE this does what take_fin does */
    }
    bfo_recv_put(req);
}

void bfo_recv_forget_puts(bfo_recv_t *req)
{
    for (uint32_t i = 0; req->extras && NULL != req->regs && NULL == req->rget && i < bfo_load(&bfo.frags.size); ++i) {
        bfo_frag_t *frag = bfo_container(bfo_ids_at(&bfo.frags, i), bfo_frag_t, name);

        if (BFO_FRAG_PUT == __atomic_load_n(&frag->kind, __ATOMIC_ACQUIRE) && frag->recv == req) {
            bfo_name_retire(&frag->name);
            put_ends(frag, false);
            bfo_cache_give(BFO_CACHE_FRAG, &frag->super);
        }
    }
}

/* ---- RGET: read ------------------------------------------------------------------------------------ */

/* Rails over which the sender's buffer may be read. A sender without names of rails offers the rail over which the RGET came. The header was
 * checked with the size of that rail's handles, so only handles of this size are in it. */
static inline __attribute__((always_inline)) uint8_t rails_offered(bfo_peer_t *peer, const bfo_in_t *in, const bfo_rget_hdr_t *h)
{
    uint8_t r;

    if (bfo_unlikely(0 != h->rails)) {
        return peer->handle_size == bfo_handle_size(in->btl) && BFO_HANDLE_MAX >= bfo_rget_handles_size(h->rails, peer->handle_size)
                   ? bfo_failover_rails_of_names(peer, h->rails)
                   : 0;
    }
    r = bfo_likely(in->btl == peer->rails[0].btl) ? 0 : bfo_rail_index(peer, in->btl); /* a rail with handles of another size reads nothing */
    return BFO_MAX_RAILS != r ? (uint8_t) (1u << r) : 0;
}

/* The place of a rail's handle among those of `rails`. */
static inline size_t handle_at(const bfo_peer_t *peer, uint8_t rails, uint8_t below)
{
    const uint8_t before = (uint8_t) (rails & ((1u << below) - 1));

    return bfo_likely(0 == before) ? 0 : peer->handle_size * bfo_rails_in(before);
}

/* Takes over the sender's address and handles. The header has the handles by name, the fragment has those of the rails that are used here. */
static inline void take_offer(bfo_recv_t *req, bfo_peer_t *peer, uint8_t offered, const bfo_rget_hdr_t *h)
{
    bfo_frag_t *rget = req->rget;

    rget->offered = offered;
    rget->named = 0 != h->rails;
    rget->remote = h->src_ptr;
    rget->peer_frag = h->frag_id;
    if (0 == peer->handle_size) {
        return;
    }
    if (bfo_likely(0 == h->rails)) {
        memcpy(rget->handle, h + 1, peer->handle_size);
        return;
    }
    for (uint8_t rest = offered; 0 != rest; rest &= (uint8_t) (rest - 1)) {
        const uint8_t r = (uint8_t) __builtin_ctz(rest);

        BFO_ASSERT(handle_at(peer, offered, r) + peer->handle_size <= BFO_HANDLE_MAX);
        memcpy(rget->handle + handle_at(peer, offered, r), (const char *) (h + 1) + handle_at(peer, h->rails, peer->rails[r].name),
               peer->handle_size);
    }
}

/* Tells the sender how much each of several rails has carried, because its BTL does not know of the READs. */
static __attribute__((noinline)) void name_shares(bfo_fin_hdr_t *fin, const bfo_recv_t *req, bfo_peer_t *peer)
{
    const bfo_frag_t *rget = req->rget;

    if (bfo_likely(BFO_FRAG_READ == rget->kind)) { /* one READ of the whole message */
        const uint8_t name = bfo_rail_name(peer, rget->rail);

        if (name < BFO_MAX_RAILS) {
            fin->share[name] = UINT8_MAX;
        }
        return;
    }
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        const uint64_t carried = __atomic_load_n(&rget->carried[r], __ATOMIC_RELAXED);
        const uint8_t name = 0 == carried ? BFO_MAX_RAILS : bfo_rail_name(peer, r);

        if (name < BFO_MAX_RAILS) {
            BFO_ASSERT(carried <= req->length);
            fin->share[name] = (uint8_t) ((double) carried * UINT8_MAX / (double) req->length);
        }
    }
}

static inline __attribute__((always_inline)) void read_finish(bfo_recv_t *req)
{
    const mca_pml_base_request_t *base = &req->req_recv.req_base;
    bfo_peer_t *peer = req->lane->peer;
    bfo_match_hdr_t message;
    bfo_fin_hdr_t fin;

    BFO_ASSERT(bfo_threads || 0 == req->open); /* the sender may change its buffer now; another thread may have counted its bytes alone */
    bfo_hdr_pack_match(&message, 0, 0, (uint16_t) BFO_OMPI_CTX_OF(base->req_comm), base->req_ompi.req_status.MPI_SOURCE,
                       base->req_ompi.req_status.MPI_TAG, req->match_seq);
    bfo_hdr_pack_fin(&fin, bfo_se_epoch(req->m.se), 0, req->rget->peer_frag, req->length, &message);
    if ((req->rget->named || 1 < peer->n_rails) && peer->failover) { /* otherwise both sides have one rail, or there is no counter */
        name_shares(&fin, req, peer);
    }
    if (bfo_unlikely(OMPI_SUCCESS != bfo_fin_send(peer, &fin))) {
        bfo_failover_ctl_failed(peer, BFO_MAX_RAILS, &fin, sizeof(fin), OPAL_ERROR);
    }
}

/* `rail`: the rail that failed; BFO_MAX_RAILS: none did. `refused`: btl_get itself said no, nothing was begun. */
static BFO_COLD void read_failed(bfo_frag_t *frag, uint8_t rail, int status, bool refused)
{
    bfo_recv_t *req = frag->recv;
    const bool copied = bfo_failover_may_copy(frag->peer, frag->rail, refused) && BFO_SE(BFO_RECV_ACTIVE, frag->epoch) == bfo_se_load(&req->m);
    int32_t open;

    bfo_bulk_end(frag->peer, frag->rail, frag->peer->get_mask, frag->length, false);
    if (copied) {
        bfo_recv_copy_from(req, frag->offset);
    }
    if (frag != req->rget) {
        bfo_cache_give(BFO_CACHE_FRAG, &frag->super);
    }
    open = bfo_add32(&req->open, -1);
    BFO_ASSERT(0 <= open);
    if (!copied) {
        bfo_failover_answer_failed(req, rail, status);
        return;
    }
    if (0 == open) {
        bfo_recv_copy_rest(req);
    }
    bfo_recv_put(req);
}

inline void bfo_recv_act_count_read(void *request, void *arg)
{
    bfo_recv_t *req = request;

    rdma_ended(req, bfo_add32(&req->open, -1));
}

inline __attribute__((always_inline)) void bfo_recv_act_count_read_post_fin(void *request, void *arg)
{
    bfo_recv_t *req = request;

    (void) bfo_add32(&req->open, -1);
    read_finish(req);
}

/* The caller's sum of the bytes tells which of the two events this is. */
static void read_completed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local,
                           struct mca_btl_base_registration_handle_t *handle, void *context, void *cbdata, int status)
{
    bfo_frag_t *frag = cbdata;
    bfo_recv_t *req = frag->recv;
    const size_t length = frag->length;

    BFO_ASSERT(BFO_FRAG_READ == frag->kind);
    BFO_ASSERT(0 < bfo_events_load(&req->m) && frag->peer == req->lane->peer);
    if (bfo_unlikely(OPAL_SUCCESS != status)) {
        read_failed(frag, frag->rail, status, false);
        return;
    }
    bfo_rail_carried(frag->peer, frag->rail, length);
    bfo_bulk_end(frag->peer, frag->rail, frag->peer->get_mask, length, true);
    if (frag != req->rget) {
        (void) bfo_add_size(&req->rget->carried[frag->rail], length);
        bfo_cache_give(BFO_CACHE_FRAG, &frag->super);
    }
    bfo_stat_add(BFO_STAT_GET_BYTES, length);
    if (bfo_likely(req->length == bfo_add_size(&req->bytes, length))) {
        if (bfo_unlikely(!bfo_recv_fire_at(&req->m, BFO_SEEN(&req->m), BFO_REV_READ_ALL_OK, bfo_threads, req, NULL))) {
            bfo_failover_recv_raise(req, BFO_REV_READ_ALL_OK, NULL);
            return;
        }
    } else if (bfo_unlikely(!bfo_recv_fire_at(&req->m, BFO_SEEN(&req->m), BFO_REV_READ_OK, bfo_threads, req, NULL))) {
        bfo_failover_recv_raise(req, BFO_REV_READ_OK, NULL);
        return;
    }
    bfo_recv_put(req);
}

/* Owns the event of the READ until the callback. */
static inline __attribute__((always_inline)) int read_try(bfo_frag_t *frag)
{
    bfo_recv_t *req = frag->recv;
    uint8_t rail = BFO_MAX_RAILS; /* the attempt may be over: then no rail is to blame */
    int rc = OMPI_ERR_UNREACH;

    if (BFO_SE(BFO_RECV_ACTIVE, frag->epoch) == bfo_se_load(&req->m)) {
        rail = frag->rail;
        rc = bfo_post_rdma(frag, frag->peer->rails[rail].btl->btl_get, req->base + frag->offset, req->regs->handle[rail],
                           req->rget->handle + handle_at(frag->peer, req->rget->offered, rail), read_completed);
    }
    if (bfo_unlikely(OMPI_ERR_UNREACH == rc)) {
        read_failed(frag, rail, OPAL_ERROR, true);
        rc = OMPI_SUCCESS;
    }
    return rc;
}

static int read_retry(bfo_work_t *work)
{
    return read_try(bfo_container(work, bfo_frag_t, work));
}

/* Starts the READ of the next `length` bytes over a rail; it is counted in `open`. */
static inline __attribute__((always_inline)) void read_begin(bfo_recv_t *req, bfo_peer_t *peer, bfo_frag_t *frag, uint8_t rail, size_t length)
{
    BFO_ASSERT(BFO_FRAG_PUT != frag->kind); /* as in put_ask() */
    BFO_ASSERT(0 < __atomic_load_n(&req->open, __ATOMIC_RELAXED));
    BFO_ASSERT(req->next + length <= req->length && req->length <= req->capacity);
    BFO_ASSERT(req->regs->mask & req->rget->offered & 1u << rail);
    frag->kind = BFO_FRAG_READ;
    frag->send = NULL;
    frag->recv = req;
    frag->peer = peer;
    frag->rail = rail;
    frag->epoch = bfo_se_epoch(req->m.se);
    frag->offset = req->next;
    frag->length = length;
    req->next += length;
    piece_begins(peer, rail, length);
    bfo_recv_get(req);
    if (bfo_unlikely(OMPI_ERR_OUT_OF_RESOURCE == read_try(frag))) {
        (void) bfo_work_queue_bound(peer, &frag->work, read_retry);
    }
}

/* The rails over which the next READ may go: those in use, else those that are UP, because a message that has begun ends. */
static uint8_t read_rails(const bfo_recv_t *req, const bfo_peer_t *peer)
{
    const uint8_t mask = req->regs->mask & req->rget->offered;

    return 0 != (mask & peer->get_mask) ? mask & peer->get_mask : 0 != (mask & peer->up_mask) ? mask & peer->up_mask : mask;
}

static int read_start(bfo_recv_t *req, bfo_peer_t *peer)
{
    const uint8_t mask = read_rails(req, peer), rail = rail_for_piece(peer, mask);
    const size_t limit = peer->rails[rail].get_limit;
    bfo_frag_t *frag = bfo_cache_take(BFO_CACHE_FRAG);

    if (bfo_unlikely(NULL == frag)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    (void) bfo_add32(&req->open, 1);
    if (bfo_unlikely(__atomic_load_n(&req->copies, __ATOMIC_SEQ_CST))) {
        bfo_cache_give(BFO_CACHE_FRAG, &frag->super);
        return bfo_recv_copies_instead(req);
    }
    frag->remote = req->rget->remote + req->next;
    read_begin(req, peer, frag, rail, piece_size(req, peer, mask, rail, 0 == (mask & (mask - 1)) ? limit : piece_most(peer, rail, limit)));
    return OMPI_SUCCESS;
}

/* Reads the whole message with one READ, which uses the fragment that describes the RGET. */
static inline void read_all(bfo_recv_t *req, bfo_peer_t *peer, uint8_t rail)
{
    req->open = 1;
    read_begin(req, peer, req->rget, rail, req->length);
}

/* ---- the pipeline ---------------------------------------------------------------------------------- */

static int schedule_retry(bfo_work_t *work)
{
    bfo_recv_t *req = bfo_container(work, bfo_recv_t, work);

    bfo_recv_schedule(req);
    bfo_recv_put(req);
    return OMPI_SUCCESS;
}

void bfo_recv_schedule(bfo_recv_t *req)
{
    bfo_peer_t *peer = req->lane->peer;
    int rc = OMPI_SUCCESS;
    int32_t depth;

    BFO_ASSERT(0 < bfo_events_load(&req->m)); /* as in bfo_send_schedule() */
    if (1 != bfo_add32(&req->scheduling, 1)) {
        return;
    }
    do {
        depth = (int32_t) bfo_params.recv_pipeline_depth
                * __builtin_popcount(NULL != req->rget     ? req->regs->mask & req->rget->offered
                                     : 0 != peer->put_mask ? peer->put_mask
                                                           : bfo_rails_out_put(peer));
        while (req->next < req->end && (__atomic_load_n(&req->open, __ATOMIC_RELAXED) < depth || 0 == depth)
               && BFO_RECV_ACTIVE == bfo_se_state(bfo_se_load(&req->m))) {
            rc = NULL != req->rget ? read_start(req, peer) : put_ask(req, peer);
            if (bfo_unlikely(OMPI_SUCCESS != rc)) {
                break;
            }
        }
    } while (OMPI_SUCCESS == rc && 0 != bfo_add32(&req->scheduling, -1));
    if (bfo_unlikely(OMPI_SUCCESS != rc)) {
        BFO_ASSERT(0 < __atomic_load_n(&req->scheduling, __ATOMIC_RELAXED)); /* only the thread that works here lowers it */
        __atomic_store_n(&req->scheduling, 0, __ATOMIC_SEQ_CST);
        if (OMPI_ERR_OUT_OF_RESOURCE == rc && 0 == __atomic_load_n(&req->open, __ATOMIC_SEQ_CST)) {
            bfo_recv_get(req);
            if (!bfo_work_queue(peer, &req->work, schedule_retry)) {
                bfo_recv_unget(req);
            }
        }
    }
}

/* ---- the rendezvous ------------------------------------------------------------------------------------ */

/* Returns the offered rails over which this process reads the message; 0: the message is copied. A message of one piece takes one rail. */
static inline __attribute__((always_inline)) uint8_t rails_that_read(const bfo_recv_t *req, const bfo_peer_t *peer, uint8_t offered, uint64_t address)
{
    const uint8_t mask = offered & peer->get_mask;

    if (0 == mask || !req->flat || req->length > req->capacity || 0 != ((address | (uintptr_t) req->base | req->length) & peer->get_align)) {
        return 0;
    }
    if (bfo_likely(0 == (mask & (mask - 1)))) {
        return mask;
    }
    return PIECE_LEAST >= req->length ? (uint8_t) (1u << rail_for_piece(peer, mask)) : bfo_rails_at_most(mask, bfo_params.max_rdma_per_request);
}

/* No rail reads the message: it is restarted if all rails that were offered are lost, else its sender sends copies. */
static BFO_COLD void copy_instead(bfo_recv_t *req, const bfo_peer_t *peer, uint8_t offered)
{
    if (PML_BFO && 0 != offered && 0 == (offered & peer->up_mask) && NULL != peer->rails[__builtin_ctz(offered)].ext) {
        bfo_failover_rget_on_dead_rail(req);
        return;
    }
    if (NULL != req->regs) {
        bfo_regs_drop(req->regs);
        req->regs = NULL;
    }
    bfo_recv_ask(req, 0);
}

void bfo_recv_begin_rget(bfo_recv_t *req, bfo_peer_t *peer, const bfo_in_t *in, const bfo_rget_hdr_t *h)
{
    const uint8_t offered = rails_offered(peer, in, h), mask = rails_that_read(req, peer, offered, h->src_ptr);
    uint8_t rail;

    if (bfo_likely(0 != mask && bfo_recv_opens_to_writes(req, peer, mask))) {
        req->rget = bfo_cache_take(BFO_CACHE_FRAG);
    }
    if (bfo_unlikely(NULL == req->rget)) {
        req->open = 0;
        copy_instead(req, peer, offered);
        return;
    }
    take_offer(req, peer, offered, h);
    req->next = 0;
    req->end = req->length;
    rail = (uint8_t) __builtin_ctz(mask);
    if (bfo_likely(0 == (mask & (mask - 1)) && req->length <= peer->rails[rail].get_limit)) {
        read_all(req, peer, rail);
    } else {
        req->open = 0;
        req->rget->kind = BFO_FRAG_NONE;
        memset(req->rget->carried, 0, sizeof(req->rget->carried));
        bfo_recv_schedule(req);
    }
}
