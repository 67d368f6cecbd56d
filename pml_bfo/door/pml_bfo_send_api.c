/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The sending functions of the PML interface. A short message is sent with btl_sendi without any
 * request; every other message gets a request and continues in pml_bfo_send_start.c. DESIGN.txt section 14.3.
 */
#include "types/pml_bfo.h"

#include "failover/pml_bfo_failover_peer.h"
#include "door/pml_bfo_hooks.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_pending.h"
#include "rails/pml_bfo_rails.h"
#include "door/pml_bfo_send_api.h"
#include "ends/pml_bfo_send_buffer.h"
#include "ends/pml_bfo_send_complete.h"
#include "send/pml_bfo_send_start.h"

#include "opal/mca/btl/base/base.h"

#include <sched.h>

/* Gives a sequence number back, because btl_sendi did not take the message. False: another thread has the next number
 * already. Then the message must be sent with this number whatever happens, because otherwise the receiver waits for it forever. */
static BFO_COLD bool number_give_back(bfo_lane_t *lane, uint32_t seq)
{
    uint32_t next = seq + 1;

    return __atomic_compare_exchange_n(&lane->next_send, &next, seq, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Does the message fit into a MATCH, and may it complete before it has its receive? */
static inline bool is_short(bfo_lane_t *lane, size_t count, const ompi_datatype_t *datatype, mca_pml_base_send_mode_t mode)
{
    return MCA_PML_BASE_SEND_SYNCHRONOUS != mode && bfo_peer_is_ready(lane->peer)
           && bfo_likely(count * datatype->super.size <= lane->peer->match_limit);
}

/* True: the BTL has the message and the buffer is free. False: not sent; if *numbered, the message must be sent with the
 * sequence number *seq. */
static bool send_immediately(bfo_lane_t *lane, const void *buf, size_t count, ompi_datatype_t *datatype, int tag, ompi_communicator_t *comm,
                             uint32_t *seq, bool *numbered)
{
    const size_t size = count * datatype->super.size;
    bfo_peer_t *peer = lane->peer;
    opal_convertor_t convertor;
    const bfo_rail_t *rail;
    bfo_match_hdr_t hdr;
    const uint8_t r = bfo_rail_for_first(peer, size);
    int rc;

    if (bfo_unlikely(BFO_MAX_RAILS == r) || NULL == peer->rails[r].btl->btl_sendi) {
        return false;
    }
    rail = &peer->rails[r];
    convertor.stack_size = DT_STATIC_STACK_SIZE;
    convertor.pStack = convertor.static_stack;
    convertor.bConverted = 0;
    convertor.flags = OPAL_DATATYPE_FLAG_NO_GAPS | CONVERTOR_COMPLETED;
    if (bfo_likely(0 != size)) {
        opal_convertor_copy_and_prepare_for_send(peer->proc->super.proc_convertor, &datatype->super, count, buf, 0, &convertor);
    }
    *seq = bfo_fetch_next(&lane->next_send);
    bfo_hdr_pack_match(&hdr, BFO_MSG_MATCH, 0, (uint16_t) BFO_OMPI_CTX_OF(comm), comm->c_my_rank, tag, *seq);
    rc = rail->btl->btl_sendi(rail->btl, rail->endpoint, &convertor, &hdr, sizeof(hdr), size, MCA_BTL_NO_ORDER,
                              MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP, BFO_TAG(BFO_MSG_MATCH), NULL);
    if (bfo_unlikely(convertor.stack_size > DT_STATIC_STACK_SIZE)) {
        opal_convertor_cleanup(&convertor);
    }
    if (bfo_unlikely(OPAL_SUCCESS != rc)) {
        *numbered = !number_give_back(lane, *seq);
        return false;
    }
    bfo_stat_add(BFO_STAT_EAGER, 1);
    return true;
}

/* Makes a request beyond the user's limit, for a message that has its sequence number. */
static BFO_COLD bfo_send_t *send_beyond_limit(bfo_peer_t *peer)
{
    bfo_send_t *req = bfo_cache_beyond_limit(BFO_CACHE_SEND);

    if (NULL == req) {
        bfo_failover_declare(peer, "no memory for a message that had its number");
    }
    return req;
}

/* `must`: a request is needed, whatever the limit. NULL: no request is left. */
static inline __attribute__((always_inline)) bfo_send_t *send_new(bfo_lane_t *lane, const void *buf, size_t count, ompi_datatype_t *datatype, int dst,
                                                                  int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, bool persistent,
                                                                  bool must)
{
    bfo_send_t *req = bfo_cache_take(BFO_CACHE_SEND);
    mca_pml_base_request_t *base;

    if (bfo_unlikely(NULL == req)) {
        req = must ? send_beyond_limit(lane->peer) : NULL;
        if (NULL == req) {
            return NULL;
        }
    }
    base = &req->req_send.req_base;
    OBJ_RETAIN(comm);
    if (bfo_likely(count > 0)) {
        OMPI_DATATYPE_RETAIN(datatype);
    }
    OMPI_REQUEST_INIT(&base->req_ompi, persistent);
    base->req_ompi.req_mpi_object.comm = comm;
    base->req_ompi.req_status.MPI_ERROR = MPI_SUCCESS;
    base->req_ompi.req_status._cancelled = 0;
    base->req_addr = (void *) buf;
    base->req_count = count;
    base->req_datatype = datatype;
    base->req_peer = dst;
    base->req_tag = tag;
    base->req_comm = comm;
    base->req_proc = lane->peer->proc;
    base->req_pml_complete = false;
    base->req_free_called = false;
    req->req_send.req_addr = buf;
    req->req_send.req_send_mode = mode;
    req->req_send.req_bytes_packed = count * datatype->super.size;
    req->lane = lane;
    req->life = persistent ? BFO_LIFE_PML_DONE : 0;
    req->prepared = false;
    return req;
}

int bfo_isend_init(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag, mca_pml_base_send_mode_t mode,
                   ompi_communicator_t *comm, ompi_request_t **request)
{
    bfo_lane_t *lane = bfo_lane(bfo_comm_of(comm), (uint32_t) dst);
    bfo_send_t *req;

    if (NULL == lane) {
        return OMPI_ERR_UNREACH;
    }
    req = send_new(lane, buf, count, datatype, dst, tag, mode, comm, true, false);
    if (NULL == req) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *request = &req->req_send.req_base.req_ompi;
    return OMPI_SUCCESS;
}

/* Packs into the attached buffer. If there is no room, a message that has its sequence number is sent in standard mode instead. */
static BFO_COLD int buffered_start(bfo_send_t *req, bool numbered)
{
    int rc;

    (void) bfo_send_convertor(req);
    rc = bfo_send_buffer(req);
    if (OMPI_SUCCESS != rc && numbered) {
        req->req_send.req_send_mode = MCA_PML_BASE_SEND_STANDARD;
        req->req_send.req_addr = req->req_send.req_base.req_addr;
        rc = OMPI_SUCCESS;
    }
    return rc;
}

/* Starts a request that has a sequence number or takes one now. */
static inline int send_start_numbered(bfo_send_t *req, bfo_lane_t *lane, bool numbered, uint32_t seq)
{
    if (bfo_unlikely(!bfo_peer_is_ready(lane->peer))) {
        return bfo_lost_error(); /* before it takes a number that no message would carry */
    }
    if (bfo_unlikely(MCA_PML_BASE_SEND_BUFFERED == req->req_send.req_send_mode)) {
        const int rc = buffered_start(req, numbered);

        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    req->match_seq = numbered ? seq : bfo_fetch_next(&lane->next_send);
    return bfo_send_begin(req);
}

int bfo_isend(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
              ompi_request_t **request)
{
    bfo_lane_t *lane = bfo_lane(bfo_comm_of(comm), (uint32_t) dst);
    bool numbered = false;
    uint32_t seq = 0;
    bfo_send_t *req;
    int rc;

    if (bfo_unlikely(NULL == lane)) {
        return OMPI_ERR_UNREACH;
    }
    if (is_short(lane, count, datatype, mode) && bfo_likely(send_immediately(lane, buf, count, datatype, tag, comm, &seq, &numbered))) {
        *request = &ompi_request_empty;
        return OMPI_SUCCESS;
    }
    req = send_new(lane, buf, count, datatype, dst, tag, mode, comm, false, numbered);
    if (bfo_unlikely(NULL == req)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = send_start_numbered(req, lane, numbered, seq);
    if (bfo_unlikely(OMPI_SUCCESS != rc)) {
        bfo_send_recycle(req);
        return rc;
    }
    *request = &req->req_send.req_base.req_ompi;
    return OMPI_SUCCESS;
}

#if PML_BFO
/* osc/pt2pt answers some requests by a blocking send, under a lock for which it runs progress. From within progress as a whole it would take the
 * next request here, and wait for its own lock without end. Over ob1 such a send leaves at once; here a lost rail may delay it. So the rails make
 * progress alone, for as long as most rails are away. */
static BFO_COLD void wait_for_rails(ompi_request_t *request)
{
    const uint64_t until = bfo_clock_ns(CLOCK_MONOTONIC) + UINT64_C(5000000000);
    mca_btl_base_selected_module_t *selected;

    while (!REQUEST_COMPLETE(request) && bfo_clock_ns(CLOCK_MONOTONIC) < until) {
        int found = bfo_progress() + bfo_failover_look_at_waits();

        OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
        {
            if (NULL != selected->btl_component->btl_progress) {
                found += selected->btl_component->btl_progress();
            }
        }
        if (0 == found) {
            sched_yield();
        }
    }
}
#endif

int bfo_send(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    bfo_lane_t *lane = bfo_lane(bfo_comm_of(comm), (uint32_t) dst);
    bool numbered = false;
    uint32_t seq = 0;
    bfo_send_t *req;
    int rc;

    if (bfo_unlikely(NULL == lane)) {
        return OMPI_ERR_UNREACH;
    }
    if (is_short(lane, count, datatype, mode) && bfo_likely(send_immediately(lane, buf, count, datatype, tag, comm, &seq, &numbered))) {
        return OMPI_SUCCESS;
    }
    req = send_new(lane, buf, count, datatype, dst, tag, mode, comm, false, numbered);
    if (bfo_unlikely(NULL == req)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = send_start_numbered(req, lane, numbered, seq);
    if (bfo_likely(OMPI_SUCCESS == rc)) {
#if PML_BFO
        if (lane->peer->failover && BFO_MSG_MATCH == req->rts_type) {
            wait_for_rails(&req->req_send.req_base.req_ompi);
        }
#endif
        ompi_request_wait_completion(&req->req_send.req_base.req_ompi);
        rc = req->req_send.req_base.req_ompi.req_status.MPI_ERROR;
        if (bfo_unlikely(MCA_PML_BASE_SEND_BUFFERED == req->req_send.req_send_mode)
            && 0 == (bfo_set_bits(&req->life, BFO_LIFE_FREED) & BFO_LIFE_PML_DONE)) {
            return rc; /* in flight: the PML recycles it */
        }
    }
    bfo_send_recycle(req);
    return rc;
}

int bfo_send_restart(ompi_request_t **request)
{
    bfo_send_t *req = (bfo_send_t *) *request;
    mca_pml_base_request_t *base = &req->req_send.req_base;
    int rc;

    if (MCA_PML_BASE_SEND_BUFFERED == req->req_send.req_send_mode && 0 == (__atomic_load_n(&req->life, __ATOMIC_SEQ_CST) & BFO_LIFE_PML_DONE)) {
        /* the last round of a buffered send is still in flight: it keeps its request, and this round gets another one */
        bfo_send_t *fresh = send_new(req->lane, base->req_addr, base->req_count, base->req_datatype, base->req_peer, base->req_tag,
                                     req->req_send.req_send_mode, base->req_comm, true, false);
        if (NULL == fresh) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        base->req_ompi.req_persistent = false;
        *request = &fresh->req_send.req_base.req_ompi;
        if (bfo_set_bits(&req->life, BFO_LIFE_FREED) & BFO_LIFE_PML_DONE) {
            bfo_send_recycle(req);
        }
        req = fresh;
        base = &req->req_send.req_base;
    } else {
        bfo_send_unprepare(req);
        req->req_send.req_addr = base->req_addr;
    }
    req->life = 0;
    base->req_pml_complete = false;
    base->req_free_called = false;
    base->req_ompi.req_complete = REQUEST_PENDING;
    base->req_ompi.req_state = OMPI_REQUEST_ACTIVE;
    base->req_ompi.req_status.MPI_ERROR = MPI_SUCCESS;
    base->req_ompi.req_status._cancelled = 0;
    if (bfo_unlikely(NULL != base->req_ompi.req_complete_cb) && MCA_PML_BASE_SEND_BUFFERED != req->req_send.req_send_mode) {
        req->life = BFO_LIFE_WATCHED;
        bfo_hooks_callback_is_owed(base->req_comm, bfo_is_onesided(&base->req_ompi));
    }
    rc = send_start_numbered(req, req->lane, false, 0);
    if (bfo_unlikely(OMPI_SUCCESS != rc)) {
        if (BFO_LIFE_WATCHED == req->life) {
            bfo_callback_was_made(base->req_comm);
        }
        bfo_request_undo_start(&req->req_send.req_base.req_ompi, &req->life);
    }
    return rc;
}
