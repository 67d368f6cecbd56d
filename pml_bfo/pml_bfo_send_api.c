/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The sending functions of the PML interface. A short message goes out through btl_sendi without any
 * request; everything else becomes a request and continues in _send_start.c. DESIGN.txt section 14.3.
 */
#include "pml_bfo.h"

#include "pml_bfo_rails.h"
#include "pml_bfo_send.h"
#include "pml_bfo_stats.h"

/* A number was taken for a message that cannot be sent: give it back if it is still the last one, so that
 * the receiver does not wait for it. */
static void number_give_back(bfo_lane_t *lane, uint32_t seq)
{
    uint32_t next = seq + 1;

    (void) __atomic_compare_exchange_n(&lane->next_send, &next, seq, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* OMPI_SUCCESS: the message is with the BTL and the buffer free. Anything else: not sent; *seq is the
 * number to send it with if *numbered. */
static inline int send_immediately(bfo_lane_t *lane, const void *buf, size_t count, ompi_datatype_t *datatype, int tag,
                                   ompi_communicator_t *comm, uint32_t *seq, bool *numbered)
{
    bfo_peer_t *peer = lane->peer;
    opal_convertor_t convertor;
    const bfo_rail_t *rail;
    bfo_match_hdr_t hdr;
    uint8_t r;
    size_t size;
    int rc;

    *numbered = false;
    size = count * datatype->super.size;
    if (!bfo_peer_is_ready(peer) || bfo_unlikely(size > peer->match_limit)) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    r = bfo_rail_for_first(peer);
    if (bfo_unlikely(BFO_MAX_RAILS == r) || NULL == peer->rails[r].btl->btl_sendi) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    rail = &peer->rails[r];
    convertor.stack_size = DT_STATIC_STACK_SIZE;
    convertor.pStack = convertor.static_stack;
    convertor.bConverted = 0;
    convertor.flags = OPAL_DATATYPE_FLAG_NO_GAPS | CONVERTOR_COMPLETED;
    if (bfo_likely(0 != size)) {
        opal_convertor_copy_and_prepare_for_send(peer->proc->super.proc_convertor, &datatype->super, count, buf, 0,
                                                 &convertor);
    }
    *numbered = true;
    *seq = bfo_fetch_next(&lane->next_send);
    bfo_hdr_pack_match(&hdr, BFO_MSG_MATCH, 0, (uint16_t) comm->c_contextid, comm->c_my_rank, tag, *seq);
    rc = rail->btl->btl_sendi(rail->btl, rail->endpoint, &convertor, &hdr, sizeof(hdr), size, MCA_BTL_NO_ORDER,
                              MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP, BFO_TAG(BFO_MSG_MATCH),
                              NULL);
    if (bfo_unlikely(convertor.stack_size > DT_STATIC_STACK_SIZE)) {
        opal_convertor_cleanup(&convertor);
    }
    if (bfo_likely(OPAL_SUCCESS == rc)) {
        bfo_stat_add(BFO_STAT_EAGER, 1);
    }
    return rc;
}

static bfo_send_t *send_new(bfo_lane_t *lane, const void *buf, size_t count, ompi_datatype_t *datatype, int dst,
                            int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, bool persistent)
{
    bfo_send_t *req = (bfo_send_t *) opal_free_list_get(&mca_pml_base_send_requests);

    if (NULL == req) {
        return NULL;
    }
    req->req_send.req_base.req_proc = lane->peer->proc;
    MCA_PML_BASE_SEND_REQUEST_INIT(&req->req_send, buf, count, datatype, dst, tag, comm, mode, persistent, 0);
    req->req_send.req_base.req_ompi.req_status.MPI_ERROR = MPI_SUCCESS;
    req->lane = lane;
    req->life = persistent ? BFO_LIFE_PML_DONE : 0;
    return req;
}

int bfo_isend_init(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                   mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    bfo_lane_t *lane = bfo_lane(bfo_comm_of(comm), (uint32_t) dst);
    bfo_send_t *req;

    if (NULL == lane) {
        return OMPI_ERR_UNREACH;
    }
    req = send_new(lane, buf, count, datatype, dst, tag, mode, comm, true);
    if (NULL == req) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *request = &req->req_send.req_base.req_ompi;
    return OMPI_SUCCESS;
}

/* Starts a request that has, or is to take, a number. */
static int send_start_numbered(bfo_send_t *req, bfo_lane_t *lane, bool numbered, uint32_t seq)
{
    int rc;

    if (MCA_PML_BASE_SEND_BUFFERED == req->req_send.req_send_mode) {
        rc = bfo_send_buffer(req);
        if (OMPI_SUCCESS != rc) {
            if (!numbered) {
                return rc;
            }
            number_give_back(lane, seq);
            return rc;
        }
    }
    req->match_seq = numbered ? seq : bfo_fetch_next(&lane->next_send);
    return bfo_send_begin(req);
}

int bfo_isend(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
              mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    bfo_lane_t *lane = bfo_lane(bfo_comm_of(comm), (uint32_t) dst);
    bool numbered = false;
    uint32_t seq = 0;
    bfo_send_t *req;
    int rc;

    if (bfo_unlikely(NULL == lane)) {
        return OMPI_ERR_UNREACH;
    }
    if (MCA_PML_BASE_SEND_SYNCHRONOUS != mode
        && bfo_likely(OMPI_SUCCESS == send_immediately(lane, buf, count, datatype, tag, comm, &seq, &numbered))) {
        *request = &ompi_request_empty;
        return OMPI_SUCCESS;
    }
    req = send_new(lane, buf, count, datatype, dst, tag, mode, comm, false);
    if (bfo_unlikely(NULL == req)) {
        if (numbered) {
            number_give_back(lane, seq);
        }
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

/* A request for a blocking call: the kept one, or a fresh one. */
static bfo_send_t *send_borrow(bfo_lane_t *lane, const void *buf, size_t count, ompi_datatype_t *datatype, int dst,
                               int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    bfo_send_t *req;

    if (opal_uses_threads) {
        req = __atomic_exchange_n(&bfo.cached_send, NULL, __ATOMIC_SEQ_CST);
    } else {
        req = bfo.cached_send;
        bfo.cached_send = NULL;
    }
    if (NULL == req) {
        return send_new(lane, buf, count, datatype, dst, tag, mode, comm, false);
    }
    req->req_send.req_base.req_proc = lane->peer->proc;
    MCA_PML_BASE_SEND_REQUEST_INIT(&req->req_send, buf, count, datatype, dst, tag, comm, mode, false, 0);
    req->req_send.req_base.req_ompi.req_status.MPI_ERROR = MPI_SUCCESS;
    req->lane = lane;
    req->life = 0;
    return req;
}

int bfo_send(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
             mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    bfo_lane_t *lane = bfo_lane(bfo_comm_of(comm), (uint32_t) dst);
    bool numbered = false;
    uint32_t seq = 0;
    bfo_send_t *req;
    int rc;

    if (bfo_unlikely(NULL == lane)) {
        return OMPI_ERR_UNREACH;
    }
    if (MCA_PML_BASE_SEND_SYNCHRONOUS != mode
        && bfo_likely(OMPI_SUCCESS == send_immediately(lane, buf, count, datatype, tag, comm, &seq, &numbered))) {
        return OMPI_SUCCESS;
    }
    req = send_borrow(lane, buf, count, datatype, dst, tag, mode, comm);
    if (bfo_unlikely(NULL == req)) {
        if (numbered) {
            number_give_back(lane, seq);
        }
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = send_start_numbered(req, lane, numbered, seq);
    if (bfo_likely(OMPI_SUCCESS == rc)) {
        ompi_request_wait_completion(&req->req_send.req_base.req_ompi);
        rc = req->req_send.req_base.req_ompi.req_status.MPI_ERROR;
        if (0 == (bfo_set_bits(&req->life, BFO_LIFE_FREED) & BFO_LIFE_PML_DONE)) {
            return rc; /* a buffered send under way: the PML recycles it */
        }
    }
    bfo_send_recycle(req);
    return rc;
}

int bfo_send_restart(ompi_request_t **request)
{
    bfo_send_t *req = (bfo_send_t *) *request;
    mca_pml_base_request_t *base = &req->req_send.req_base;

    if (0 == (__atomic_load_n(&req->life, __ATOMIC_SEQ_CST) & BFO_LIFE_PML_DONE)) {
        /* the last round of a buffered send still runs: it keeps its request, this round gets another */
        bfo_send_t *fresh = send_new(req->lane, base->req_addr, base->req_count, base->req_datatype, base->req_peer,
                                     base->req_tag, req->req_send.req_send_mode, base->req_comm, true);
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
    } else if (base->req_count > 0) {
        opal_convertor_cleanup(&base->req_convertor);
        opal_convertor_copy_and_prepare_for_send(base->req_proc->super.proc_convertor, &base->req_datatype->super,
                                                 base->req_count, base->req_addr, 0, &base->req_convertor);
        req->req_send.req_addr = base->req_addr;
    }
    req->life = 0;
    base->req_pml_complete = false;
    base->req_free_called = false;
    base->req_ompi.req_complete = REQUEST_PENDING;
    base->req_ompi.req_state = OMPI_REQUEST_ACTIVE;
    base->req_ompi.req_status.MPI_ERROR = MPI_SUCCESS;
    base->req_ompi.req_status._cancelled = 0;
    return send_start_numbered(req, req->lane, false, 0);
}
