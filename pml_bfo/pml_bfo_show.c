/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * pml_dump: every request of a communicator that is not done, with its state, peer, tag and progress, and
 * the messages that wait. Reads without locks: a picture, not a proof. DESIGN.txt section 14.9.
 */
#include "pml_bfo.h"

#include "pml_bfo_failover_fsm.h"
#include "pml_bfo_show.h"
#include "pml_bfo_stats.h"

#include "opal/util/output.h"
#include "opal/util/proc.h"


static void dump_sends(const ompi_communicator_t *comm)
{
    for (uint32_t i = 0; i < bfo_load(&bfo.sends.size); ++i) {
        const bfo_send_t *req = bfo_container(bfo_ids_at(&bfo.sends, i), bfo_send_t, name);
        const mca_pml_base_request_t *base = &req->req_send.req_base;

        if (bfo_send_state_is_open(bfo_se_state(req->m.se)) && base->req_comm == comm) {
            opal_output(0, "bfo: ctx %u send req 0x%x.%x to %d tag %d seq %u: %s epoch %u, %s, %zu of %zu bytes "
                        "delivered, %d events%s", comm->c_contextid, req->name.gen, req->name.slot, base->req_peer,
                        base->req_tag, req->match_seq, bfo_send_state_name(bfo_se_state(req->m.se)), bfo_se_epoch(req->m.se),
                        bfo_hdr_name(req->rts_type), req->bytes, req->req_send.req_bytes_packed, req->m.events,
                        req->first.queued || req->work.queued ? ", waits for resources" : "");
        }
    }
}

static void dump_recvs(const ompi_communicator_t *comm)
{
    for (uint32_t i = 0; i < bfo_load(&bfo.recvs.size); ++i) {
        const bfo_recv_t *req = bfo_container(bfo_ids_at(&bfo.recvs, i), bfo_recv_t, name);
        const mca_pml_base_request_t *base = &req->req_recv.req_base;

        if (!bfo_recv_state_is_open(bfo_se_state(req->m.se)) || base->req_comm != comm) {
            continue;
        }
        if (BFO_RECV_UNMATCHED == bfo_se_state(req->m.se)) {
            opal_output(0, "bfo: ctx %u recv req 0x%x.%x from %d tag %d: unmatched, buffer of %zu bytes",
                        comm->c_contextid, req->name.gen, req->name.slot, base->req_peer, base->req_tag,
                        req->capacity);
        } else {
            opal_output(0, "bfo: ctx %u recv req 0x%x.%x from %d tag %d seq %u: %s epoch %u, %zu of %zu bytes here, "
                        "%d transfers open, %d events", comm->c_contextid, req->name.gen, req->name.slot,
                        base->req_ompi.req_status.MPI_SOURCE, base->req_ompi.req_status.MPI_TAG, req->match_seq,
                        bfo_recv_state_name(bfo_se_state(req->m.se)), bfo_se_epoch(req->m.se), req->bytes, req->length, req->open,
                        req->m.events);
        }
    }
}

static void dump_lane(const ompi_communicator_t *comm, uint32_t rank, const bfo_lane_t *lane, int verbose)
{
    uint32_t waiting = 0;

    for (const bfo_link_t *l = lane->match.gots.next; l != &lane->match.gots; l = l->next) {
        const bfo_got_t *got = bfo_container(l, bfo_got_t, by_lane);

        ++waiting;
        if (verbose > 0) {
            const bfo_got_frag_t *g = bfo_container(got, bfo_got_frag_t, got);

            opal_output(0, "bfo: ctx %u message from %d tag %d seq %u waits for a receive: %s, %zu bytes",
                        comm->c_contextid, got->src, got->tag, got->seq,
                        bfo_hdr_name(((const bfo_hdr_t *) g->data)->common.type), g->length);
        }
    }
    opal_output(0, "bfo: ctx %u rank %u: next to send %u, next expected %u, %u waiting, %u early, rails up 0x%x%s",
                comm->c_contextid, rank, lane->next_send, lane->match.next_recv, waiting, lane->match.n_early,
                lane->peer->send_mask, lane->peer->declared ? ", declared unreachable" : "");
}

int bfo_dump(ompi_communicator_t *comm, int verbose)
{
    const bfo_comm_t *bc = bfo_comm_of(comm);

    if (NULL == bc) {
        return OMPI_ERR_BAD_PARAM;
    }
    dump_sends(comm);
    dump_recvs(comm);
    for (uint32_t rank = 0; rank < bc->size; ++rank) {
        if (NULL != bc->lanes[rank]) {
            dump_lane(comm, rank, bc->lanes[rank], verbose);
        }
    }
    opal_output(0, "bfo: %u pieces of work wait for resources, %llu messages dropped so far", bfo.n_pending,
                (unsigned long long) bfo_stats[BFO_STAT_DROPPED]);
    return OMPI_SUCCESS;
}

