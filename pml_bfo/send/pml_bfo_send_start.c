/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The start of a send request: chooses the protocol of this attempt, and posts the first fragment (MATCH,
 * RNDV or RGET). The receiver's answers drive the rest. DESIGN.txt sections 9 and 14.3.
 */
#include "types/pml_bfo.h"

#include "failover/pml_bfo_failover_errors.h"
#include "tables/pml_bfo_failover_fire.h"
#include "failover/pml_bfo_failover_peer.h"
#include "ends/pml_bfo_failover_raise.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_adopt.h"
#include "rails/pml_bfo_pending.h"
#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"
#include "ends/pml_bfo_send_buffer.h"
#include "ends/pml_bfo_send_complete.h"
#include "send/pml_bfo_send_schedule.h"
#include "send/pml_bfo_send_start.h"

#include <stddef.h>
#include <string.h>

/* From this payload size on, a BTL that can send from the user's buffer may do so. */
#define INPLACE_MIN 2048u

/* ---- completion of a first fragment --------------------------------------------------------------- */

inline void bfo_send_act_count_rts(void *request, void *arg)
{
    bfo_send_t *req = request;

    BFO_ASSERT(req->rts_length <= bfo_send_length(req));
    if (!req->rts_done) {
        req->rts_done = true;
        (void) bfo_add_size(&req->bytes, req->rts_length);
    }
}

inline void bfo_send_act_count_match(void *request, void *arg)
{
    bfo_send_act_count_rts(request, arg);
}

/* A separate function, so that first_completed() needs no stack where nothing fails. */
static BFO_COLD void first_failed(bfo_send_t *req, const mca_btl_base_module_t *btl, int status)
{
    bfo_failover_rts_failed(req, bfo_rail_index(req->lane->peer, btl), status);
}

static void first_completed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des, int status)
{
    bfo_send_t *req = des->des_cbdata;

    if (bfo_unlikely(OPAL_SUCCESS != status)) {
        first_failed(req, btl, status);
        return;
    }
    if (BFO_MSG_MATCH == req->rts_type) {
        if (bfo_unlikely(!bfo_send_fire(&req->m, BFO_SEV_MATCH_OK, bfo_threads, req, NULL))) {
            bfo_failover_send_raise(req, BFO_SEV_MATCH_OK, NULL);
            return;
        }
    } else if (bfo_unlikely(!bfo_send_fire(&req->m, BFO_SEV_RTS_OK, bfo_threads, req, NULL))) {
        bfo_failover_send_raise(req, BFO_SEV_RTS_OK, NULL);
        return;
    }
    bfo_send_put(req);
}

/* ---- building a first fragment -------------------------------------------------------------------- */

/* Makes a descriptor with `head` bytes of room and the first `size` bytes of the message; NULL: try again later. `own`: a convertor to
 * use instead of the request's, with which another thread may be packing FRAGs at this moment. */
static inline __attribute__((always_inline)) mca_btl_base_descriptor_t *first_alloc(bfo_send_t *req, const bfo_rail_t *rail, size_t head, size_t size,
                                                                                    opal_convertor_t *own)
{
    mca_btl_base_descriptor_t *des = NULL;
    size_t got = size, zero = 0;
    struct iovec iov;
    uint32_t n = 1;

    if (size >= INPLACE_MIN && req->flat && (rail->flags & MCA_BTL_FLAGS_SEND_INPLACE)) {
        opal_convertor_t *convertor = NULL != own ? own : bfo_send_convertor(req);

        opal_convertor_set_position(convertor, &zero);
        des = rail->btl->btl_prepare_src(rail->btl, rail->endpoint, convertor, MCA_BTL_NO_ORDER, head, &got, BFO_DES_FLAGS);
        if (NULL == des || got == size) {
            return des;
        }
        rail->btl->btl_free(rail->btl, des);
    }
    des = rail->btl->btl_alloc(rail->btl, rail->endpoint, MCA_BTL_NO_ORDER, head + size, BFO_DES_FLAGS);
    if (NULL == des || 0 == size) {
        return des;
    }
    iov.iov_base = (char *) des->des_segments[0].seg_addr.pval + head;
    iov.iov_len = size;
    if (req->flat) {
        memcpy(iov.iov_base, req->base, size);
    } else {
        opal_convertor_t *convertor = NULL != own ? own : bfo_send_convertor(req);

        opal_convertor_set_position(convertor, &zero);
        opal_convertor_pack(convertor, &iov, &n, &got);
        /* a strided type may pack a little less than asked for: RNDV sends the rest by FRAG */
    }
    des->des_segments[0].seg_len = head + got;
    return des;
}

/* Adds the part that names the receive request. */
static BFO_COLD void restart_header(const bfo_send_t *req, uint16_t epoch, bfo_hdr_t *h, size_t at)
{
    BFO_ASSERT(BFO_MSG_MATCH != req->rts_type && at + sizeof(bfo_restart_hdr_t) <= BFO_HDR_MAX);
    const bfo_restart_hdr_t restart = {.dst_id = req->dst_id, .epoch = epoch};

    memcpy((char *) h + at, &restart, sizeof(restart));
}

/* Names of the rails over which the peer may read the message; 0: the rail over which the RGET goes, because the peer has no other, or the
 * sides have no names in common, or not yet. */
static inline __attribute__((always_inline)) uint8_t rget_names(const bfo_send_t *req, bfo_peer_t *peer)
{
    const uint8_t mask = req->regs->mask & peer->get_mask;

    if (bfo_likely(1 == peer->n_rails) || !peer->failover || BFO_HANDLE_MAX < bfo_rget_handles_size(mask, peer->handle_size)) {
        return 0;
    }
    return bfo_failover_names_of_rails(peer, mask);
}

/* `names` as in rget_names(), for an RGET. */
static inline size_t first_header_size(const bfo_send_t *req, const bfo_peer_t *peer, uint8_t names)
{
    const uint8_t flags = !PML_BFO || bfo_likely(0 == bfo_se_epoch(req->m.se)) ? 0 : BFO_FLAG_RESTART;

    if (BFO_MSG_MATCH == req->rts_type) {
        return sizeof(bfo_match_hdr_t);
    }
    if (bfo_likely(0 == flags)) {
        return BFO_MSG_RNDV == req->rts_type ? sizeof(bfo_rndv_hdr_t) : bfo_rget_hdr_size(bfo_rget_handles_size(names, peer->handle_size), false);
    }
    return bfo_hdr_size(req->rts_type, flags, bfo_rget_handles_size(names, peer->handle_size));
}

/* Packs the handles of the rails named. */
static __attribute__((noinline)) void named_handles(const bfo_send_t *req, const bfo_peer_t *peer, uint8_t names, char *out)
{
    for (uint8_t rest = req->regs->mask; 0 != rest; rest &= (uint8_t) (rest - 1)) {
        const uint8_t r = (uint8_t) __builtin_ctz(rest), name = peer->rails[r].name;

        if (name < BFO_MAX_RAILS && (names >> name & 1)) {
            memcpy(out + peer->handle_size * bfo_rails_in((uint8_t) (names & ((1u << name) - 1))), req->regs->handle[r], peer->handle_size);
        }
    }
}

/* Packs the handles of the rails named, or of `rail` if none is. */
static inline void rget_handles(const bfo_send_t *req, const bfo_peer_t *peer, uint8_t names, uint8_t rail, char *out)
{
    if (0 == peer->handle_size) {
        return;
    }
    if (bfo_likely(0 == names)) {
        memcpy(out, req->regs->handle[rail], peer->handle_size);
    } else {
        named_handles(req, peer, names, out);
    }
}

/* Builds the header in the descriptor, with the length of first_header_size(). */
static inline __attribute__((always_inline)) void first_header(bfo_send_t *req, uint8_t rail, uint8_t names, bfo_hdr_t *h)
{
    const mca_pml_base_request_t *base = &req->req_send.req_base;
    const bfo_peer_t *peer = req->lane->peer;
    const uint16_t epoch = PML_BFO ? bfo_se_epoch(req->m.se) : 0;
    uint8_t flags = 0;

    if (BFO_MSG_MATCH != req->rts_type) {
        flags = (req->flat ? BFO_FLAG_CONTIG : 0) | (MCA_PML_BASE_SEND_SYNCHRONOUS == req->req_send.req_send_mode ? BFO_FLAG_ACK : 0)
                | (NULL != req->regs ? BFO_FLAG_PIN : 0) | (0 != epoch ? BFO_FLAG_RESTART : 0);
    }
    bfo_hdr_pack_match(&h->match, req->rts_type, flags, (uint16_t) BFO_OMPI_CTX_OF(base->req_comm), base->req_comm->c_my_rank, base->req_tag,
                       req->match_seq);
    if (BFO_MSG_MATCH == req->rts_type) {
        return;
    }
    h->rndv.msg_length = bfo_send_length(req);
    h->rndv.src_id = bfo_name_id(&req->name);
    if (BFO_MSG_RNDV == req->rts_type) {
        if (bfo_unlikely(0 != epoch)) {
            restart_header(req, epoch, h, sizeof(bfo_rndv_hdr_t));
        }
        return;
    }
    BFO_ASSERT(NULL != req->rget && (0 != names || req->regs->mask >> rail & 1)); /* the peer reads with the registrations of these rails */
    h->rget.frag_id = bfo_name_id(&req->rget->name);
    h->rget.src_ptr = (uint64_t) (uintptr_t) req->base;
    h->rget.rails = names;
    memset(h->rget.pad, 0, sizeof(h->rget.pad));
    rget_handles(req, peer, names, rail, (char *) h + sizeof(bfo_rget_hdr_t));
    if (bfo_unlikely(0 != epoch)) {
        const size_t handles = bfo_rget_handles_size(names, peer->handle_size);

        memset((char *) h + sizeof(bfo_rget_hdr_t) + handles, 0, 8);
        restart_header(req, epoch, h, bfo_rget_hdr_size(handles, true) - sizeof(bfo_restart_hdr_t));
    }
}

/* A rail for the RGET, with which the buffer is registered. */
static inline __attribute__((always_inline)) uint8_t rail_for_rget(const bfo_send_t *req, bfo_peer_t *peer)
{
    const uint8_t mask = req->regs->mask & peer->get_mask;
    uint8_t rail;

    if (bfo_likely(0 == (mask & (mask - 1)))) {
        return 0 == mask ? BFO_MAX_RAILS : (uint8_t) __builtin_ctz(mask);
    }
    rail = bfo_rail_for_first(peer, bfo_send_length(req));
    return mask & 1u << rail ? rail : (uint8_t) __builtin_ctz(mask);
}

/* `own` as in first_alloc(). */
static inline __attribute__((always_inline)) mca_btl_base_descriptor_t *first_build_with(bfo_send_t *req, bfo_peer_t *peer, uint8_t r,
                                                                                         opal_convertor_t *own)
{
    const uint8_t names = BFO_MSG_RGET == req->rts_type ? rget_names(req, peer) : 0;
    const size_t head = first_header_size(req, peer, names);
    mca_btl_base_descriptor_t *des = first_alloc(req, &peer->rails[r], head, req->rts_length, own);

    if (bfo_unlikely(NULL == des)) {
        return NULL;
    }
    first_header(req, r, names, des->des_segments[0].seg_addr.pval);
    if (1 == des->des_segment_count && bfo_unlikely(des->des_segments[0].seg_len - head != req->rts_length)) {
        /* a strided type, before any copy was posted: later copies ask for the packed length, and need not write it */
        req->rts_length = des->des_segments[0].seg_len - head;
    }
    des->des_cbfunc = first_completed;
    des->des_cbdata = req;
    return des;
}

static inline __attribute__((always_inline)) mca_btl_base_descriptor_t *first_build(void *req, bfo_peer_t *peer, uint8_t r)
{
    return first_build_with(req, peer, r, NULL);
}

/* Builds the first fragment again, after an error or because nothing could be posted. A posted copy may have been delivered, and its
 * answer may come at any moment; then another thread packs the FRAGs with the request's convertor. */
static BFO_COLD mca_btl_base_descriptor_t *first_build_again(void *what, bfo_peer_t *peer, uint8_t r)
{
    mca_btl_base_descriptor_t *des = NULL;
    bfo_send_t *req = what;
    opal_convertor_t own;

    OBJ_CONSTRUCT(&own, opal_convertor_t);
    if (OMPI_SUCCESS == bfo_send_prepare_own(req, &own, MCA_PML_BASE_SEND_BUFFERED == req->req_send.req_send_mode)) {
        des = first_build_with(req, peer, r, &own);
    }
    OBJ_DESTRUCT(&own);
    return des;
}

/* Every rail with which the message is registered is lost. Registers the message with rails that have come back since it began, which
 * happens only now that they are needed. */
static BFO_COLD int rget_by_returned(bfo_send_t *req, bfo_peer_t *peer, bfo_build_fn_t build)
{
    const uint8_t mask = bfo_regs_extend(req->regs, peer->get_mask, req->base, bfo_send_length(req), MCA_BTL_REG_FLAG_REMOTE_READ);

    return bfo_post_elsewhere(peer, BFO_MAX_RAILS, OMPI_ERR_UNREACH, &peer->get_mask, mask, build, req);
}

/* Takes an event if it returns OMPI_SUCCESS. The caller holds another event. */
static inline __attribute__((always_inline)) int first_try(bfo_send_t *req, bfo_build_fn_t build)
{
    bfo_peer_t *peer = req->lane->peer;
    const bool rget = BFO_MSG_RGET == req->rts_type;
    int rc;

    bfo_send_get(req);
    rc = bfo_post(peer, rget ? rail_for_rget(req, peer) : bfo_rail_for_first(peer, req->rts_length), rget ? &peer->get_mask : &peer->eager_mask,
                  rget ? req->regs->mask : 0xff, build, req);
    if (bfo_unlikely(OMPI_SUCCESS != rc)) {
        rc = rget && 0 != peer->get_mask && 0 == (peer->get_mask & req->regs->mask) ? rget_by_returned(req, peer, build) : rc;
        if (OMPI_SUCCESS != rc) {
            bfo_send_unget(req);
        }
    }
    return rc;
}

static int first_retry(bfo_work_t *work)
{
    bfo_send_t *req = bfo_container(work, bfo_send_t, first);
    const uint32_t state = bfo_se_state(bfo_se_load(&req->m));
    int rc = OMPI_SUCCESS;

    BFO_ASSERT(bfo_send_state_is_open(state) || 0 != (req->life & BFO_LIFE_ABANDONED)); /* the work holds an event */
    if (BFO_SEND_STREAM == state || (BFO_SEND_RTS == state && __atomic_load_n(&req->resp, __ATOMIC_ACQUIRE))) {
        if (!bfo_send_fire(&req->m, BFO_SEV_RTS_ERR_ANSWERED, bfo_threads, req, NULL)) {
            bfo_stat_drop(BFO_STAT_STALE); /* another thread has abandoned the request (DESIGN.txt section 14.11) */
        }
        bfo_send_schedule(req);
    } else if (BFO_SEND_EAGER == state || BFO_SEND_RTS == state) {
        rc = first_try(req, first_build_again);
        if (OMPI_ERR_OUT_OF_RESOURCE == rc) {
            return rc;
        }
    }
    if (OMPI_SUCCESS != rc) {
        bfo_failover_declare(req->lane->peer, "no rail takes a message that has its number");
        bfo_send_fail(req, bfo_lost_error());
    }
    bfo_send_put(req);
    return OMPI_SUCCESS;
}

static inline __attribute__((always_inline)) int first_posted(bfo_send_t *req, int rc)
{
    if (bfo_unlikely(OMPI_ERR_OUT_OF_RESOURCE == rc)) {
        bfo_send_get(req);
        (void) bfo_work_queue(req->lane->peer, &req->first, first_retry);
        rc = OMPI_SUCCESS;
    }
    return rc;
}

static inline __attribute__((always_inline)) int post_first(bfo_send_t *req)
{
    return first_posted(req, first_try(req, first_build));
}

#if PML_BFO
int bfo_send_post_first_again(bfo_send_t *req)
{
    if (bfo_resend_may_go(req->lane->peer)) {
        return first_posted(req, first_try(req, first_build_again));
    }
    bfo_send_get(req);
    if (!bfo_work_queue_resend(req->lane->peer, &req->first, first_retry)) {
        bfo_send_unget(req); /* it is queued already */
    }
    return OMPI_SUCCESS;
}
#endif

int bfo_send_post_first(bfo_send_t *req)
{
    return post_first(req);
}

/* ---- the choice ----------------------------------------------------------------------------------- */

/* RDMA needs a flat buffer, enough bytes, and a registration with every rail that may be used. */
static inline __attribute__((always_inline)) void choose_rdma(bfo_send_t *req, bfo_peer_t *peer)
{
    const size_t size = bfo_send_length(req);
    uint8_t mask = peer->get_mask;

    BFO_ASSERT(NULL == req->regs && NULL == req->rget); /* the last attempt has dropped them */
    if (!req->flat || size < peer->rdma_min) {
        return;
    }
    if (peer->offers_reads) {
        if (mask == bfo_regs_make(peer, mask, req->base, size, MCA_BTL_REG_FLAG_REMOTE_READ, &req->regs)) {
            req->rget = bfo_cache_take(BFO_CACHE_FRAG);
            if (NULL != req->rget) {
                BFO_ASSERT(BFO_FRAG_PUT != req->rget->kind); /* as in put_ask() */
                req->rget->kind = BFO_FRAG_RGET;
                req->rget->send = req;
                req->rget->recv = NULL;
                req->rget->peer = peer;
                req->rget->length = size;
                req->rts_type = BFO_MSG_RGET;
                req->rts_length = 0;
                return;
            }
        }
        if (NULL != req->regs) {
            bfo_regs_drop(req->regs); /* a rail without registration could not carry the RGET again: copy instead */
            req->regs = NULL;
        }
        return;
    }
    mask = peer->pin_mask;
    if (0 != mask && mask != bfo_regs_make(peer, mask, req->base, size, 0, &req->regs) && NULL != req->regs) {
        bfo_regs_drop(req->regs); /* a rail without registration could not answer a PUT: copy instead */
        req->regs = NULL;
    }
    if (NULL != req->regs) {
        req->rts_length = 0;
    }
}

#if PML_BFO
int bfo_send_begin_again(bfo_send_t *req)
{
    bfo_peer_t *peer = req->lane->peer;
    const size_t size = bfo_send_length(req);

    BFO_ASSERT(BFO_MSG_MATCH != req->rts_type); /* a MATCH has no attempts */
    req->rts_type = BFO_MSG_RNDV;
    req->rts_length = size < peer->rndv_limit ? size : peer->rndv_limit;
    if (size > peer->match_limit) {
        choose_rdma(req, peer);
    }
    return bfo_send_post_first(req);
}
#endif

/* No rail takes the message, but the receiver waits for its sequence number: declares the peer. */
static BFO_COLD void number_is_lost(bfo_send_t *req)
{
    req->unposted = true;
    bfo_failover_declare(req->lane->peer, "no rail takes a message that has its number");
    bfo_send_fail(req, bfo_lost_error());
}

/* M1 */
inline __attribute__((always_inline)) void bfo_send_act_post_match(void *request, void *arg)
{
    bfo_stat_add(BFO_STAT_EAGER, 1);
    if (bfo_unlikely(OMPI_SUCCESS != bfo_send_post_first(request))) {
        number_is_lost(request);
    }
}

/* S1 */
inline __attribute__((always_inline)) void bfo_send_act_post_rts(void *request, void *arg)
{
    bfo_send_t *req = request;

    bfo_stat_add(BFO_MSG_RGET == req->rts_type ? BFO_STAT_RGET : BFO_STAT_RENDEZVOUS, 1);
    if (bfo_unlikely(OMPI_SUCCESS != post_first(req))) {
        number_is_lost(req);
    }
}

int bfo_send_begin(bfo_send_t *req)
{
    const ompi_datatype_t *datatype = req->req_send.req_base.req_datatype;
    const size_t size = bfo_send_length(req);
    bfo_peer_t *peer = req->lane->peer;
    const bool is_large = size > peer->match_limit;
    const bool buffered = MCA_PML_BASE_SEND_BUFFERED == req->req_send.req_send_mode;
    ompi_status_public_t *status = &req->req_send.req_base.req_ompi.req_status;

    BFO_ASSERT(!bfo_send_state_is_open(bfo_se_state(bfo_se_load(&req->m)))); /* rows M1 and S1 */
    BFO_ASSERT(0 == req->scheduling);
    BFO_ASSERT(!req->first.queued && !req->work.queued);
    status->MPI_SOURCE = req->req_send.req_base.req_comm->c_my_rank; /* a buffered send completes for MPI below */
    status->MPI_TAG = req->req_send.req_base.req_tag;
    status->_ucount = size;
    req->flat = buffered || bfo_buffer_is_flat(datatype, req->req_send.req_base.req_count, req->req_send.req_base.req_addr);
    req->base = (char *) req->req_send.req_addr + (buffered ? 0 : datatype->super.true_lb);
    memset((char *) req + offsetof(bfo_send_t, resp), 0, offsetof(bfo_send_t, first) - offsetof(bfo_send_t, resp));
    req->req_send.req_base.req_ompi.req_state = OMPI_REQUEST_ACTIVE;
    bfo_send_get(req);
    if (!is_large && MCA_PML_BASE_SEND_SYNCHRONOUS != req->req_send.req_send_mode) {
        req->rts_type = BFO_MSG_MATCH;
        req->rts_length = size;
        BFO_SEND_ROW(req->m.se, START_EAGER);
        bfo_send_start(&req->m, true);
        bfo_send_act_post_match(req, NULL);
    } else {
        req->rts_type = BFO_MSG_RNDV;
        req->rts_length = size < peer->rndv_limit ? size : peer->rndv_limit;
        if (is_large) {
            choose_rdma(req, peer);
        }
        BFO_SEND_ROW(req->m.se, START);
        bfo_send_start(&req->m, false);
        bfo_send_act_post_rts(req, NULL);
    }
    if (buffered) {
        ompi_request_complete(&req->req_send.req_base.req_ompi, true);
    }
    bfo_send_put(req);
    return OMPI_SUCCESS;
}
