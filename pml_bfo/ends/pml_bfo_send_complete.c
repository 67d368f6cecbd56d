/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The end of a send request: its guards, and its completion towards MPI.
 * DESIGN.txt section 7 (rows S12, S19) and 14.3.
 */
#include "types/pml_bfo.h"

#include "tables/pml_bfo_failover_fire.h"
#include "ends/pml_bfo_failover_raise.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_rails.h"
#include "ends/pml_bfo_send_buffer.h"
#include "ends/pml_bfo_send_complete.h"
#include "types/pml_bfo_ulfm.h"

static int send_free(ompi_request_t **request)
{
    bfo_send_t *req = (bfo_send_t *) *request;

    *request = MPI_REQUEST_NULL;
    if (MCA_PML_BASE_SEND_BUFFERED == req->req_send.req_send_mode ? 0 != (bfo_set_bits(&req->life, BFO_LIFE_FREED) & BFO_LIFE_PML_DONE)
                                                                  : bfo_request_free(&req->req_send.req_base.req_ompi, &req->life)) {
        bfo_send_recycle(req);
    }
    return OMPI_SUCCESS;
}

/* A send cannot be cancelled, because the receiver may have the message. As with ob1 the call has no effect. */
static int send_cancel(ompi_request_t *request, int complete)
{
    bfo_ulfm_cancel_denied(request);
    return OMPI_SUCCESS;
}

static void send_construct(bfo_send_t *req)
{
    req->req_send.req_base.req_type = MCA_PML_REQUEST_SEND;
    req->req_send.req_base.req_ompi.req_free = send_free;
    req->req_send.req_base.req_ompi.req_cancel = send_cancel;
    req->req_send.req_base.req_ompi.req_start = bfo_module.pml_start;
    bfo_machine_construct(&req->m);
    req->scheduling = 0;
    req->first.queued = req->work.queued = false;
    req->got_ack = req->got_nack = false;
    (void) bfo_ids_add(&bfo.sends, &req->name);
}

OBJ_CLASS_INSTANCE(bfo_send_t, mca_pml_base_send_request_t, send_construct, NULL);

void bfo_send_recycle(bfo_send_t *req)
{
    mca_pml_base_request_t *base = &req->req_send.req_base;

    OMPI_REQUEST_FINI(&base->req_ompi);
    OBJ_RELEASE(base->req_comm);
    if (bfo_likely(0 != base->req_count)) {
        OMPI_DATATYPE_RELEASE(base->req_datatype);
    }
    bfo_send_unprepare(req);
    if (BFO_OMPI_HAS_ULFM && bfo_unlikely(0 != (req->life & BFO_LIFE_ABANDONED))) {
        return;
    }
    bfo_cache_give(BFO_CACHE_SEND, &base->req_ompi.super);
}

/* Open MPI 4.1 increments the number of messages in the attached buffer without the lock under which it decrements it. With
 * threads the number becomes wrong, and MPI_Buffer_detach takes the buffer away from messages that are still in it. */
static opal_mutex_t buffer_lock = OPAL_MUTEX_STATIC_INIT;

int bfo_send_buffer(bfo_send_t *req)
{
    int rc;

    BFO_LOCK(&buffer_lock);
    rc = mca_pml_base_bsend_request_start(&req->req_send.req_base.req_ompi);
    BFO_UNLOCK(&buffer_lock);
    return rc;
}

/* The request completed towards MPI at the start; now its room in the attached buffer is free. As bfo_request_finish(). */
static BFO_COLD bool buffered_finish(bfo_send_t *req)
{
    mca_pml_base_request_t *base = &req->req_send.req_base;

    if (req->req_send.req_addr != base->req_addr) {
        BFO_LOCK(&buffer_lock);
        mca_pml_base_bsend_request_fini(&base->req_ompi);
        BFO_UNLOCK(&buffer_lock);
    }
    return bfo_set_bits(&req->life, BFO_LIFE_PML_DONE) & BFO_LIFE_FREED;
}

/* As buffered_finish(). The callback may free the request. */
static BFO_COLD bool watched_finish(bfo_send_t *req)
{
    mca_pml_base_request_t *base = &req->req_send.req_base;
    ompi_communicator_t *comm = base->req_comm;
    bool recycle;

    OBJ_RETAIN(comm);
    recycle = bfo_request_finish(&base->req_ompi, &req->life);
    bfo_callback_was_made(comm);
    OBJ_RELEASE(comm);
    return recycle;
}

static BFO_COLD bool unusual_finish(bfo_send_t *req)
{
    return MCA_PML_BASE_SEND_BUFFERED == req->req_send.req_send_mode ? buffered_finish(req) : watched_finish(req);
}

static inline bool is_unusual(const bfo_send_t *req)
{
    return MCA_PML_BASE_SEND_BUFFERED == req->req_send.req_send_mode || 0 != (req->life & BFO_LIFE_WATCHED);
}

/* The request is in state DONE, claimed by the caller. */
void bfo_send_complete(bfo_send_t *req)
{
    mca_pml_base_request_t *base = &req->req_send.req_base;

    BFO_ASSERT(BFO_SEND_DONE == bfo_se_state(bfo_se_load(&req->m)));
    BFO_ASSERT(0 == req->in_flight || 0 != (req->life & BFO_LIFE_ABANDONED));
    BFO_ASSERT((!req->first.queued && !req->work.queued) || 0 != (req->life & BFO_LIFE_ABANDONED)); /* queued work holds an event */
    BFO_ASSERT(NULL == req->rget || (BFO_FRAG_RGET == req->rget->kind && req == req->rget->send));
    if (BFO_MSG_MATCH != req->rts_type) {
        bfo_name_retire(&req->name); /* a MATCH does not carry the name */
    }
    if (NULL != req->rget) {
        bfo_name_retire(&req->rget->name);
        bfo_cache_give(BFO_CACHE_FRAG, &req->rget->super);
        req->rget = NULL;
    }
    if (NULL != req->regs) {
        bfo_regs_drop(req->regs);
        req->regs = NULL;
    }
    if (bfo_unlikely(MPI_SUCCESS != req->error)) {
        base->req_ompi.req_status.MPI_ERROR = req->error;
    }
    base->req_pml_complete = true;
    if (bfo_unlikely(is_unusual(req)) ? unusual_finish(req) : bfo_request_finish(&base->req_ompi, &req->life)) {
        bfo_send_recycle(req);
    }
}

inline void bfo_send_act_complete(void *request, void *arg)
{
    const bfo_send_t *req = request;

    BFO_ASSERT(BFO_MSG_MATCH != req->rts_type || req->rts_done); /* a MATCH is complete when it was delivered */
    bfo_send_complete(request);
}

void bfo_send_act_complete_dead(void *request, void *arg)
{
    bfo_send_t *req = request;

    req->error = MPI_SUCCESS != req->error ? req->error : bfo_lost_error();
    bfo_send_complete(req);
}

/* Reads `events` before and after the facts, as the engine does: a thread that holds an event tests the facts when it releases it. */
void bfo_send_check(bfo_send_t *req)
{
    const bool threads = bfo_threads;
    const bfo_look_t look = bfo_look_at(&req->m);
    bool may_end;

    if (bfo_is_held(&req->m.events, threads)) {
        return;
    }
    switch (bfo_se_state(look.se)) {
    case BFO_SEND_EAGER:
        may_end = req->rts_done;
        break;
    case BFO_SEND_RTS:
    case BFO_SEND_STREAM:
        may_end = req->resp && req->rts_done && req->bytes == bfo_send_length(req);
        break;
    case BFO_SEND_IDLE:
    case BFO_SEND_DONE:
        may_end = false;
        break;
    default:
        bfo_failover_send_settle(req);
        return;
    }
    if (may_end && !bfo_is_held(&req->m.events, threads)) {
        (void) bfo_send_fire_at(&req->m, look, BFO_SEV_ALL_DELIVERED, threads, req, NULL);
    }
}

/* Work that is queued for the request is discarded when its turn comes (DESIGN.txt section 9 rule 2). */
void bfo_send_act_die(void *request, void *arg)
{
    bfo_send_t *req = request;

    BFO_ASSERT(BFO_SEND_DEAD == bfo_se_state(bfo_se_load(&req->m))); /* the caller's event keeps it there */
    req->error = *(const int *) arg;
    BFO_ASSERT(MPI_SUCCESS != req->error); /* a request that dies completes with an error */
}

void bfo_send_fail(bfo_send_t *req, int error)
{
    if (BFO_SEND_DEAD != bfo_se_state(bfo_se_load(&req->m))) {
        (void) bfo_send_fire(&req->m, BFO_SEV_PEER_DECLARED, bfo_threads, req, &error);
    }
}
