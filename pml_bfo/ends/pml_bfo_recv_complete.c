/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The end of a receive request: its guards, its completion towards MPI, and cancel.
 * DESIGN.txt section 7 (rows R10, R18) and 14.3.
 */
#include "types/pml_bfo.h"

#include "tables/pml_bfo_failover_fire.h"
#include "ends/pml_bfo_failover_raise.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_rails.h"
#include "ends/pml_bfo_recv_complete.h"
#include "ends/pml_bfo_recv_strided.h"
#include "types/pml_bfo_ulfm.h"

static int recv_free(ompi_request_t **request)
{
    bfo_recv_t *req = (bfo_recv_t *) *request;

    *request = MPI_REQUEST_NULL;
    if (bfo_request_free(&req->req_recv.req_base.req_ompi, &req->life)) {
        bfo_recv_recycle(req);
    }
    return OMPI_SUCCESS;
}

/* Takes a posted receive, which gets no message, out of matching. From then on only the caller knows it. Locks: the communicator's held. */
static void withdraw(bfo_comm_t *bc, bfo_recv_t *req)
{
    BFO_ASSERT(BFO_SE(BFO_RECV_UNMATCHED, 0) == req->m.se); /* a receive in matching is nothing else */
    bfo_match_withdraw(&bc->match, &req->posted);
    req->length = 0;
}

/* False: the receive is not in matching, because its message has come or another caller has withdrawn it. */
static bool recv_withdraw(bfo_recv_t *req)
{
    bfo_comm_t *bc = bfo_comm_of(req->req_recv.req_base.req_comm);
    bool mine;

    bfo_lock(&bc->lock);
    mine = BFO_SE(BFO_RECV_UNMATCHED, 0) == req->m.se && !bfo_link_is_empty(&req->posted.key.link);
    if (mine) {
        withdraw(bc, req);
    }
    bfo_unlock(&bc->lock);
    return mine;
}

void bfo_recv_act_complete_cancelled(void *request, void *arg)
{
    bfo_recv_t *req = request;
    ompi_request_t *ompi = &req->req_recv.req_base.req_ompi;

    BFO_ASSERT(0 == req->length); /* no message came */
    ompi->req_status._cancelled = true;
    bfo_recv_complete(req, bfo_ulfm_cancel_error(ompi));
}

static int recv_cancel(ompi_request_t *request, int complete)
{
    bfo_recv_t *req = (bfo_recv_t *) request;

    if (recv_withdraw(req)) {
        (void) bfo_recv_fire(&req->m, BFO_REV_CANCEL, bfo_threads, req, NULL);
    }
    return OMPI_SUCCESS;
}

static void recv_construct(bfo_recv_t *req)
{
    req->req_recv.req_base.req_type = MCA_PML_REQUEST_RECV;
    req->req_recv.req_base.req_ompi.req_free = recv_free;
    req->req_recv.req_base.req_ompi.req_cancel = recv_cancel;
    req->req_recv.req_base.req_ompi.req_start = bfo_module.pml_start;
    bfo_machine_construct(&req->m);
    req->scheduling = 0;
    req->work.queued = false;
    req->regs = NULL;
    req->rget = NULL;
    bfo_link_init(&req->posted.key.link);
    (void) bfo_ids_add(&bfo.recvs, &req->name);
}

OBJ_CLASS_INSTANCE(bfo_recv_t, mca_pml_base_recv_request_t, recv_construct, NULL);

void bfo_recv_recycle(bfo_recv_t *req)
{
    mca_pml_base_request_t *base = &req->req_recv.req_base;

    OMPI_REQUEST_FINI(&base->req_ompi);
    OBJ_RELEASE(base->req_comm);
    OMPI_DATATYPE_RELEASE(base->req_datatype);
    if (BFO_OMPI_HAS_ULFM && bfo_unlikely(0 != (req->life & BFO_LIFE_ABANDONED))) {
        return;
    }
    bfo_cache_give(BFO_CACHE_RECV, &base->req_ompi.super);
}

/* Registrations and the READ fragment of a rendezvous, and the convertor of a strided buffer. */
void bfo_recv_drop_extras(bfo_recv_t *req)
{
    if (NULL != req->regs) {
        bfo_regs_drop(req->regs);
        req->regs = NULL;
    }
    if (NULL != req->rget) {
        bfo_cache_give(BFO_CACHE_FRAG, &req->rget->super);
        req->rget = NULL;
    }
    if (bfo_unlikely(req->prepared)) {
        bfo_recv_forget_ahead(req);
        opal_convertor_cleanup(&req->req_recv.req_base.req_convertor);
        req->prepared = false;
    }
}

void bfo_recv_complete(bfo_recv_t *req, int error)
{
    mca_pml_base_request_t *base = &req->req_recv.req_base;
    ompi_status_public_t *status = &base->req_ompi.req_status;
    bfo_lane_t *held = NULL;
    ompi_communicator_t *comm = NULL;

    BFO_ASSERT(BFO_RECV_DONE == bfo_se_state(bfo_se_load(&req->m)));
    BFO_ASSERT(bfo_link_is_empty(&req->posted.key.link)); /* no message can be matched with it any more */
    if (bfo_unlikely(req->extras)) {
        bfo_name_retire(&req->name); /* without extras nobody knows the name */
        bfo_recv_drop_extras(req);
        if (bfo_unlikely(req->holds)) {
            held = req->lane;
            comm = base->req_comm;
            OBJ_RETAIN(comm); /* the callback may free the request, and with it the last reference to the communicator */
        }
    }
    status->_ucount = req->length;
    if (bfo_unlikely(req->length > req->capacity)) {
        error = MPI_SUCCESS == error ? MPI_ERR_TRUNCATE : error;
    }
    status->MPI_ERROR = error;
    base->req_pml_complete = true;
    if (bfo_unlikely(bfo_request_finish(&base->req_ompi, &req->life))) {
        bfo_recv_recycle(req);
    }
    if (bfo_unlikely(NULL != held)) {
        bfo.up.release(bfo_comm_of(comm), held);
        OBJ_RELEASE(comm);
    }
}

/* Reads `events` before and after the facts, as the engine does: a thread that holds an event tests the facts when it releases it. */
void bfo_recv_check(bfo_recv_t *req)
{
    const bool threads = bfo_threads;
    const bfo_look_t look = bfo_look_at(&req->m);
    const uint32_t state = bfo_se_state(look.se);

    if (bfo_is_held(&req->m.events, threads)) {
        return;
    }
    if (bfo_likely(BFO_RECV_ACTIVE == state)) {
        if (req->bytes >= req->length && !bfo_is_held(&req->m.events, threads) && bfo_se_claim(&req->m, look, BFO_SE(BFO_RECV_DONE, 0), threads)) {
            BFO_RECV_ROW(look.se, ALL_PLACED);
            bfo_recv_complete(req, req->error);
        }
    } else if (bfo_recv_state_is_open(state) && BFO_RECV_UNMATCHED != state) {
        bfo_failover_recv_settle(req);
    }
}

/* Work that is queued for the request is discarded when its turn comes (DESIGN.txt section 9 rule 2). */
void bfo_recv_act_die(void *request, void *arg)
{
    bfo_recv_t *req = request;

    /* the caller's event keeps it there, unless another thread abandons the request meanwhile, which is then never used again */
    BFO_ASSERT(BFO_RECV_DEAD == bfo_se_state(bfo_se_load(&req->m)) || 0 != (req->life & BFO_LIFE_ABANDONED));
    req->error = *(const int *) arg;
    BFO_ASSERT(MPI_SUCCESS != req->error); /* a request that dies completes with an error */
}

/* The event of each request of the ring lasts until bfo_recv_fail_withdrawn(). */
void bfo_recv_withdraw_all(bfo_comm_t *bc, bfo_lane_match_t *lane, int32_t source, bfo_link_t *ring)
{
    int error = bfo_lost_error();
    bfo_posted_t *posted;
    uint32_t bin = 0;

    while (NULL != (posted = bfo_match_posted_of(&bc->match, lane, source, &bin))) {
        bfo_recv_t *req = bfo_container(posted, bfo_recv_t, posted);

        withdraw(bc, req);
        bfo_recv_get(req);
        (void) bfo_recv_fire(&req->m, BFO_REV_PEER_DECLARED, bfo_threads, req, &error);
        bfo_link_append(ring, &posted->key.link);
    }
}

void bfo_recv_fail_withdrawn(bfo_link_t *ring)
{
    while (!bfo_link_is_empty(ring)) {
        bfo_recv_t *req = bfo_container(ring->next, bfo_recv_t, posted.key.link);

        bfo_link_remove(&req->posted.key.link);
        bfo_recv_put(req);
    }
}

/* A receive that is UNMATCHED, but was not withdrawn here, belongs to a thread that matches or cancels it. */
void bfo_recv_fail(bfo_recv_t *req, int error)
{
    const bool is_mine = recv_withdraw(req);
    unsigned state;

    bfo_recv_get(req);
    state = bfo_se_state(bfo_se_load(&req->m));
    if (is_mine || (BFO_RECV_UNMATCHED != state && BFO_RECV_DEAD != state)) {
        (void) bfo_recv_fire(&req->m, BFO_REV_PEER_DECLARED, bfo_threads, req, &error);
    }
    bfo_recv_put(req);
}
