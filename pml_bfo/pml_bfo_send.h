/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Sending: from MPI_Send to the last completion. DESIGN.txt sections 7 and 14.3.
 */
#ifndef PML_BFO_SEND_H
#define PML_BFO_SEND_H

#include "pml_bfo.h"

OBJ_CLASS_DECLARATION(bfo_send_t);

/* ---- pml_bfo_send_api.c: the functions of the PML interface --------------------------------------- */
int bfo_isend_init(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                   mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request);
int bfo_isend(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
              mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request);
int bfo_send(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
             mca_pml_base_send_mode_t mode, ompi_communicator_t *comm);
/* Starts a persistent send; *request may be replaced. */
int bfo_send_restart(ompi_request_t **request);

/* ---- pml_bfo_send_start.c ------------------------------------------------------------------------ */
/* Begins the transfer of a request whose base, lane and match_seq are set. An error code means that nothing
 * was sent and the request is not active. */
int bfo_send_begin(bfo_send_t *req);
/* Makes the convertor of the user's buffer. */
void bfo_send_prepare(bfo_send_t *req) __attribute__((noinline));
/* The first fragment of the next attempt, in state RTS(e), bits and bytes reset: RNDV or RGET, never MATCH. */
int bfo_send_begin_again(bfo_send_t *req) BFO_COLD;
/* Sends the RTS or MATCH of the request (again); its event is taken here. */
int bfo_send_post_first(bfo_send_t *req);
/* The same for a copy after an error, now or when its turn comes (pml_bfo_resend_burst). */
int bfo_send_post_first_again(bfo_send_t *req) BFO_COLD;

/* ---- pml_bfo_send_schedule.c ---------------------------------------------------------------------- */
/* Posts FRAGs of [next, end) as the pipeline allows. The caller holds an event. */
void bfo_send_schedule(bfo_send_t *req);
/* ACK, PUT and FIN of RGET, as they come from the dispatch. */
void bfo_send_on_ack(const bfo_ack_hdr_t *ack);
void bfo_send_on_put(mca_btl_base_module_t *btl, const bfo_put_hdr_t *put);
void bfo_send_on_fin(bfo_frag_t *frag, const bfo_fin_hdr_t *fin);

/* ---- pml_bfo_send_complete.c ---------------------------------------------------------------------- */
/* Tests whether the request can move on now that its last event is gone. */
void bfo_send_check(bfo_send_t *req);
/* Packs a buffered send into the attached buffer; OMPI_ERR_BUFFER. */
int bfo_send_buffer(bfo_send_t *req);
/* In state DONE, claimed by the caller: tells MPI. */
void bfo_send_complete(bfo_send_t *req);
/* Gives the request back to its list. */
void bfo_send_recycle(bfo_send_t *req);
/* The request ends with `error` as soon as nothing refers to it any more. The caller holds an event. */
void bfo_send_fail(bfo_send_t *req, int error) BFO_COLD;

static inline void bfo_send_get(bfo_send_t *req)
{
    (void) bfo_add32(&req->m.events, 1);
}
/* For who merely looks at the request, knowing its address or its identifier (see bfo_look()). */
static inline void bfo_send_get_by_look(bfo_send_t *req)
{
    bfo_send_get(req);
    bfo_look(&req->m, bfo_threads);
}
static inline void bfo_send_put(bfo_send_t *req)
{
    if (0 == bfo_add32(&req->m.events, -1)) {
        bfo_send_check(req);
    }
}
/* The request's convertor: only what is packed, or sent from the buffer piece by piece, needs it. */
static inline opal_convertor_t *bfo_send_convertor(bfo_send_t *req)
{
    if (!req->prepared) {
        bfo_send_prepare(req);
    }
    return &req->req_send.req_base.req_convertor;
}
static inline void bfo_send_unprepare(bfo_send_t *req)
{
    if (req->prepared) {
        opal_convertor_cleanup(&req->req_send.req_base.req_convertor);
        req->prepared = false;
    }
}
static inline size_t bfo_send_length(const bfo_send_t *req)
{
    return req->req_send.req_bytes_packed;
}

#endif /* PML_BFO_SEND_H */
