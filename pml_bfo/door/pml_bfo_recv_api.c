/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The receiving functions of the PML interface: a receive takes its message from the unexpected ones, or
 * is posted. DESIGN.txt section 14.3.
 */
#include "types/pml_bfo.h"

#include "tables/pml_bfo_failover_fire.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_rails.h"
#include "door/pml_bfo_recv_api.h"
#include "ends/pml_bfo_recv_complete.h"
#include "ends/pml_bfo_recv_unexpected.h"
#include "recv/pml_bfo_recv_place.h"
#include "types/pml_bfo_ulfm.h"

#include "ompi/message/message.h"

_Static_assert(BFO_ANY_SOURCE == MPI_ANY_SOURCE && BFO_ANY_TAG == MPI_ANY_TAG, "wildcards of the matching room");

static inline void recv_init(bfo_recv_t *req, void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm,
                             bool persistent)
{
    MCA_PML_BASE_RECV_REQUEST_INIT(&req->req_recv, buf, count, datatype, src, tag, comm, persistent);
    req->req_recv.req_base.req_ompi.req_status.MPI_ERROR = MPI_SUCCESS;
}

bfo_recv_t *bfo_recv_new(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm, bool persistent)
{
    bfo_recv_t *req = bfo_cache_take(BFO_CACHE_RECV);

    if (NULL != req) {
        recv_init(req, buf, count, datatype, src, tag, comm, persistent);
    }
    return req;
}

/* R0 */
inline __attribute__((always_inline)) void bfo_recv_act_reset(void *request, void *arg)
{
    bfo_recv_t *req = request;
    const ompi_datatype_t *datatype = req->req_recv.req_base.req_datatype;
    const size_t count = req->req_recv.req_base.req_count;

    ompi_request_t *ompi = &req->req_recv.req_base.req_ompi;

    ompi->req_status.MPI_SOURCE = MPI_ANY_SOURCE;
    ompi->req_status.MPI_TAG = MPI_ANY_TAG;
    ompi->req_status.MPI_ERROR = MPI_SUCCESS;
    ompi->req_status._ucount = 0;
    ompi->req_status._cancelled = 0;
    ompi->req_complete = REQUEST_PENDING;
    ompi->req_state = OMPI_REQUEST_ACTIVE;
    req->req_recv.req_base.req_pml_complete = false;
    req->life = 0;
    req->extras = false;
    req->prepared = false;
    req->lane = NULL;
    req->capacity = count * datatype->super.size;
    req->flat = bfo_buffer_is_flat(datatype, count, req->req_recv.req_base.req_addr);
    req->base = (char *) req->req_recv.req_base.req_addr + datatype->super.true_lb;
}

void bfo_recv_activate(bfo_recv_t *req)
{
    BFO_RECV_ROW(req->m.se, POST);
    bfo_recv_act_reset(req, NULL);
    bfo_recv_post(&req->m);
}

/* Begins a receive with an unexpected message. */
static void recv_begin_got(bfo_recv_t *req, bfo_comm_t *bc, bfo_unexpected_t *unexpected)
{
    bfo_unexpected_frag_t *g = bfo_container(unexpected, bfo_unexpected_frag_t, unexpected);
    const mca_btl_base_segment_t segment = {.seg_addr.pval = g->data, .seg_len = g->length};
    const bfo_in_t in = {g->btl, &segment, 1, g->length};

    if (BFO_MSG_MATCH == ((const bfo_hdr_t *) g->data)->common.type) {
        bfo_recv_begin_match(req, bc->lanes[unexpected->by_key.src], (const bfo_match_hdr_t *) g->data, g->length);
    } else {
        bfo_recv_begin(req, bc->lanes[unexpected->by_key.src], &in);
    }
    bfo_unexpected_free(g);
}

/* Locks: the communicator's held. */
static inline void hold_back(bfo_recv_t *req, bfo_comm_t *bc, const bfo_unexpected_t *unexpected)
{
    const bfo_unexpected_frag_t *g = bfo_container(unexpected, bfo_unexpected_frag_t, unexpected);

    if (BFO_MSG_MATCH != ((const bfo_hdr_t *) g->data)->common.type) {
        bfo_recv_hold_back(req, bc->lanes[unexpected->by_key.src]);
    }
}

static int recv_start(bfo_recv_t *req)
{
    const mca_pml_base_request_t *base = &req->req_recv.req_base;
    bfo_comm_t *bc = bfo_comm_of(base->req_comm);
    bfo_lane_t *lane = NULL;
    bfo_unexpected_t *unexpected;

    bfo_recv_activate(req);
    if (BFO_ANY_SOURCE != base->req_peer) {
        lane = bfo_lane(bc, (uint32_t) base->req_peer);
        if (bfo_unlikely(NULL == lane)) {
            bfo_recv_unpost(&req->m);
            return OMPI_ERR_UNREACH;
        }
        req->lane = lane;
    }
    req->posted.key.src = base->req_peer;
    req->posted.key.tag = base->req_tag;
    bfo_lock(&bc->lock);
    unexpected = bfo_match_peek(&bc->match, NULL == lane ? NULL : &lane->match, base->req_peer, base->req_tag);
    if (NULL != unexpected) {
        bfo_match_take(&bc->match, unexpected);
        hold_back(req, bc, unexpected);
    } else {
        bfo_match_post(&bc->match, NULL == lane ? NULL : &lane->match, &req->posted);
    }
    bfo_unlock(&bc->lock);
    if (NULL != unexpected) {
        recv_begin_got(req, bc, unexpected);
    } else if (bfo_unlikely(NULL == lane ? bc->is_deserted : lane->peer->declared)) {
        bfo_recv_fail(req, bfo_lost_error());
    }
    return OMPI_SUCCESS;
}

int bfo_irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm, ompi_request_t **request)
{
    bfo_recv_t *req = bfo_recv_new(buf, count, datatype, src, tag, comm, true);

    if (NULL == req) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    req->req_recv.req_base.req_ompi.req_status._cancelled = 0; /* its last use may have been cancelled, and the start comes later */
    *request = &req->req_recv.req_base.req_ompi;
    return OMPI_SUCCESS;
}

int bfo_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm, ompi_request_t **request)
{
    bfo_recv_t *req = bfo_recv_new(buf, count, datatype, src, tag, comm, false);
    int rc;

    if (bfo_unlikely(NULL == req)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = recv_start(req);
    if (bfo_unlikely(OMPI_SUCCESS != rc)) {
        bfo_recv_recycle(req);
        return rc;
    }
    *request = &req->req_recv.req_base.req_ompi;
    return OMPI_SUCCESS;
}

/* Waits for the request of a blocking call and recycles it. */
static int recv_wait(bfo_recv_t *req, ompi_status_public_t *status)
{
    ompi_request_t *ompi = &req->req_recv.req_base.req_ompi;
    int rc;

    ompi_request_wait_completion(ompi);
    if (BFO_OMPI_HAS_ULFM && bfo_unlikely(!REQUEST_COMPLETE(ompi))) {
        bfo_ulfm_end_wait(ompi);
    }
    if (MPI_STATUS_IGNORE != status) {
        OMPI_COPY_STATUS(status, ompi->req_status, false);
    }
    rc = ompi->req_status.MPI_ERROR;
    bfo_recv_recycle(req);
    return rc;
}

int bfo_recv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    bfo_recv_t *req = bfo_recv_new(buf, count, datatype, src, tag, comm, false);
    int rc;

    if (bfo_unlikely(NULL == req)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = recv_start(req);
    if (bfo_unlikely(OMPI_SUCCESS != rc)) {
        bfo_recv_recycle(req);
        return rc;
    }
    return recv_wait(req, status);
}

int bfo_recv_restart(ompi_request_t *request)
{
    const int rc = recv_start((bfo_recv_t *) request);

    if (bfo_unlikely(OMPI_SUCCESS != rc)) {
        bfo_request_undo_start(request, &((bfo_recv_t *) request)->life);
    }
    return rc;
}

/* ---- matched receives ------------------------------------------------------------------------------ */

static int mrecv_start(bfo_recv_t *req, ompi_message_t **message)
{
    bfo_unexpected_frag_t *g = (*message)->req_ptr;
    bfo_comm_t *bc = bfo_comm_of((*message)->comm);

    bfo_recv_activate(req);
    req->req_recv.req_base.req_peer = g->unexpected.by_key.src;
    req->req_recv.req_base.req_tag = g->unexpected.by_key.tag;
    req->posted.key.src = g->unexpected.by_key.src;
    req->posted.key.tag = g->unexpected.by_key.tag;
    bfo_link_init(&req->posted.key.link);
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    bfo_lock(&bc->lock);
    hold_back(req, bc, &g->unexpected);
    bfo_unlock(&bc->lock);
    recv_begin_got(req, bc, &g->unexpected);
    return OMPI_SUCCESS;
}

int bfo_imrecv(void *buf, size_t count, ompi_datatype_t *datatype, ompi_message_t **message, ompi_request_t **request)
{
    bfo_recv_t *req = bfo_recv_new(buf, count, datatype, (*message)->peer, BFO_ANY_TAG, (*message)->comm, false);

    if (NULL == req) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *request = &req->req_recv.req_base.req_ompi;
    return mrecv_start(req, message);
}

int bfo_mrecv(void *buf, size_t count, ompi_datatype_t *datatype, ompi_message_t **message, ompi_status_public_t *status)
{
    bfo_recv_t *req = bfo_recv_new(buf, count, datatype, (*message)->peer, BFO_ANY_TAG, (*message)->comm, false);

    if (NULL == req) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    mrecv_start(req, message);
    return recv_wait(req, status);
}
