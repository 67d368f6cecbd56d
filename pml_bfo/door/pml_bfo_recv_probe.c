/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Probes: look for an unexpected message; the matched kind takes it out and returns it as an MPI_Message.
 * DESIGN.txt section 14.3.
 */
#include "types/pml_bfo.h"

#include "rails/pml_bfo_rails.h"
#include "door/pml_bfo_recv_probe.h"
#include "types/pml_bfo_ulfm.h"

#include "ompi/message/message.h"
#include "opal/runtime/opal_progress.h"

static void status_of(const bfo_unexpected_frag_t *g, ompi_status_public_t *status)
{
    const bfo_hdr_t *h = (const bfo_hdr_t *) g->data;

    if (MPI_STATUS_IGNORE == status) {
        return;
    }
    status->MPI_SOURCE = g->unexpected.by_key.src;
    status->MPI_TAG = g->unexpected.by_key.tag;
    status->_cancelled = 0;
    status->_ucount = BFO_MSG_MATCH == h->common.type ? g->length - sizeof(bfo_match_hdr_t) : h->rndv.msg_length;
}

/* Takes the message out, for MPI_Mrecv; without memory it stays where it is. Locks: the communicator's held. */
static int message_make(bfo_match_t *match, bfo_unexpected_frag_t *g, ompi_communicator_t *comm, ompi_message_t **message)
{
    ompi_message_t *m = ompi_message_alloc();

    if (NULL == m) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    bfo_match_take(match, &g->unexpected);
    m->comm = comm;
    m->req_ptr = g;
    m->peer = g->unexpected.by_key.src;
    m->count = g->length;
    *message = m;
    return OMPI_SUCCESS;
}

/* Is there a message for (src, tag)? With `message` it is taken out. Returns false with an error in *rc if the peer can send no message
 * any more (bfo_lost_error(), or the error of ULFM), or OMPI_ERR_OUT_OF_RESOURCE if the message could not be taken out. */
static bool probe_once(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message, ompi_status_public_t *status, int *rc)
{
    bfo_comm_t *bc = bfo_comm_of(comm);
    bfo_lane_t *lane = BFO_ANY_SOURCE == src ? NULL : bfo_lane(bc, (uint32_t) src);
    bfo_unexpected_t *unexpected = NULL;

    *rc = OMPI_SUCCESS;
    bfo_lock(&bc->lock);
    if (BFO_ANY_SOURCE == src || NULL != lane) {
        unexpected = bfo_match_peek(&bc->match, NULL == lane ? NULL : &lane->match, src, tag);
    }
    if (NULL != unexpected) {
        bfo_unexpected_frag_t *g = bfo_container(unexpected, bfo_unexpected_frag_t, unexpected);

        status_of(g, status);
        if (NULL != message) {
            *rc = message_make(&bc->match, g, comm, message);
        }
    } else if (BFO_ANY_SOURCE == src ? bc->is_deserted : NULL != lane && lane->peer->declared) {
        *rc = bfo_lost_error();
    } else {
        *rc = bfo_ulfm_probe_error(comm, src, tag);
    }
    bfo_unlock(&bc->lock);
    return NULL != unexpected && OMPI_SUCCESS == *rc;
}

/* Looks, makes progress if nothing is there, and looks again. */
static int probe_twice(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_message_t **message, ompi_status_public_t *status)
{
    int rc;

    *matched = probe_once(src, tag, comm, message, status, &rc);
    if (!*matched && OMPI_SUCCESS == rc) {
        opal_progress();
        *matched = probe_once(src, tag, comm, message, status, &rc);
    }
    return rc;
}

static int probe_until(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message, ompi_status_public_t *status)
{
    int rc;

    while (!probe_once(src, tag, comm, message, status, &rc)) {
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        opal_progress();
    }
    return OMPI_SUCCESS;
}

int bfo_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_status_public_t *status)
{
    return probe_twice(src, tag, comm, matched, NULL, status);
}

int bfo_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    return probe_until(src, tag, comm, NULL, status);
}

int bfo_improbe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_message_t **message, ompi_status_public_t *status)
{
    return probe_twice(src, tag, comm, matched, message, status);
}

int bfo_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message, ompi_status_public_t *status)
{
    return probe_until(src, tag, comm, message, status);
}
