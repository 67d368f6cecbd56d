/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Probes: look for a message that waits; the matched kind takes it out and hands it over as an MPI_Message.
 * DESIGN.txt section 14.3.
 */
#include "pml_bfo.h"

#include "pml_bfo_rails.h"
#include "pml_bfo_recv.h"

#include "ompi/message/message.h"
#include "opal/runtime/opal_progress.h"

static void status_of(const bfo_got_frag_t *g, ompi_status_public_t *status)
{
    const bfo_hdr_t *h = (const bfo_hdr_t *) g->data;

    if (MPI_STATUS_IGNORE == status) {
        return;
    }
    status->MPI_SOURCE = g->got.by_key.src;
    status->MPI_TAG = g->got.by_key.tag;
    status->_cancelled = 0;
    status->_ucount = BFO_MSG_MATCH == h->common.type ? g->length - sizeof(bfo_match_hdr_t) : h->rndv.msg_length;
}

/* The waiting message for (src, tag), taken out if `take`. *lost: the peer can send nothing any more. */
static bfo_got_frag_t *probe_once(int src, int tag, ompi_communicator_t *comm, bool take, ompi_status_public_t *status,
                                  bool *lost)
{
    bfo_comm_t *bc = bfo_comm_of(comm);
    bfo_lane_t *lane = BFO_ANY_SOURCE == src ? NULL : bfo_lane(bc, (uint32_t) src);
    bfo_got_frag_t *g = NULL;
    bfo_got_t *got = NULL;

    bfo_lock(&bc->lock);
    if (BFO_ANY_SOURCE == src || NULL != lane) {
        got = bfo_match_peek(&bc->match, NULL == lane ? NULL : &lane->match, src, tag);
    }
    if (NULL != got) {
        g = bfo_container(got, bfo_got_frag_t, got);
        status_of(g, status);
        if (take) {
            bfo_match_take(&bc->match, got);
        }
    }
    bfo_unlock(&bc->lock);
    *lost = NULL == g && NULL != lane && lane->peer->declared;
    return g;
}

static int message_make(bfo_got_frag_t *g, ompi_communicator_t *comm, ompi_message_t **message)
{
    ompi_message_t *m = ompi_message_alloc();
    bfo_comm_t *bc = bfo_comm_of(comm);

    if (NULL == m) {
        bfo_lock(&bc->lock);
        bfo_match_store(&bc->match, &bc->lanes[g->got.by_key.src]->match, &g->got);
        bfo_unlock(&bc->lock);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    m->comm = comm;
    m->req_ptr = g;
    m->peer = g->got.by_key.src;
    m->count = g->length;
    *message = m;
    return OMPI_SUCCESS;
}

int bfo_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_status_public_t *status)
{
    bool lost;

    *matched = NULL != probe_once(src, tag, comm, false, status, &lost);
    if (!*matched) {
        opal_progress();
        *matched = NULL != probe_once(src, tag, comm, false, status, &lost);
    }
    return lost ? MPI_ERR_OTHER : OMPI_SUCCESS;
}

int bfo_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    bool lost;

    while (NULL == probe_once(src, tag, comm, false, status, &lost)) {
        if (lost) {
            return MPI_ERR_OTHER;
        }
        opal_progress();
    }
    return OMPI_SUCCESS;
}

int bfo_improbe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_message_t **message,
                ompi_status_public_t *status)
{
    bool lost;
    bfo_got_frag_t *g = probe_once(src, tag, comm, true, status, &lost);

    if (NULL == g) {
        opal_progress();
        g = probe_once(src, tag, comm, true, status, &lost);
    }
    *matched = NULL != g;
    if (NULL == g) {
        return lost ? MPI_ERR_OTHER : OMPI_SUCCESS;
    }
    return message_make(g, comm, message);
}

int bfo_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message, ompi_status_public_t *status)
{
    bfo_got_frag_t *g;
    bool lost;

    while (NULL == (g = probe_once(src, tag, comm, true, status, &lost))) {
        if (lost) {
            return MPI_ERR_OTHER;
        }
        opal_progress();
    }
    return message_make(g, comm, message);
}
