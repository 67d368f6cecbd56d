/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * pml_dump, shows what is stuck where: every request of a communicator that is not done, with its state, peer, tag and
 * progress and what it waits for; the messages that wait; the rails. Reads without locks: a snapshot, not a proof.
 * DESIGN.txt section 14.9.
 */
#include "types/pml_bfo.h"

#include "tables/pml_bfo_failover_fsm.h"
#include "types/pml_bfo_local.h"
#include "show/pml_bfo_show.h"

#include "opal/util/output.h"
#include "opal/util/proc.h"

/* ---- what a request waits for ------------------------------------------------------------------------ */

static const char *send_waits_for(const bfo_send_t *req)
{
    if (req->first.queued || req->work.queued) {
        return "resources of a rail";
    }
    switch (bfo_se_state(req->m.se)) {
    case BFO_SEND_EAGER:
        return "the rail to take the message";
    case BFO_SEND_RTS:
        return !req->rts_done && !req->resp ? "the rail to take the first fragment" : "the receiver to match it";
    case BFO_SEND_STREAM:
        return 0 != req->m.events ? "the rails to take its data" : "the receiver to take or to ask for the rest";
    case BFO_SEND_ERRD:
        return "its fragments to come back from lost rails";
    case BFO_SEND_NOTIFIED:
        return req->got_ack || req->got_nack ? "its restart message to come back" : "the receiver to agree to a restart";
    default:
        return "its fragments and the rails of a lost peer";
    }
}

static const char *recv_waits_for(const bfo_recv_t *req)
{
    if (req->work.queued) {
        return "resources of a rail";
    }
    switch (bfo_se_state(req->m.se)) {
    case BFO_RECV_UNMATCHED:
        return "a message";
    case BFO_RECV_ACTIVE:
        return 0 != req->open ? "its transfers" : req->bytes < req->length ? "data" : "the rail to take its answer";
    case BFO_RECV_ERRL:
        return "the sender to begin a restart";
    case BFO_RECV_QUIESCE:
    case BFO_RECV_SEALED:
        return 0 != req->m.events ? "its answers to come back from lost rails" : "lost rails to be fenced";
    case BFO_RECV_WAITRTS:
        return "the sender to send again";
    default:
        return "its answers and the rails of a lost peer";
    }
}

/* ---- requests ---------------------------------------------------------------------------------------- */

static void dump_sends(const ompi_communicator_t *comm)
{
    for (uint32_t i = 0; i < bfo_load(&bfo.sends.size); ++i) {
        const bfo_send_t *req = bfo_container(bfo_ids_at(&bfo.sends, i), bfo_send_t, name);
        const mca_pml_base_request_t *base = &req->req_send.req_base;
        const uint32_t se = req->m.se;

        if (bfo_send_state_is_open(bfo_se_state(se)) && base->req_comm == comm) {
            opal_output(0,
                        "bfo: ctx %u send req 0x%x.%x to %d tag %d seq %u: %s epoch %u, %s, %zu of %zu bytes "
                        "delivered, %d events, waits for %s",
                        BFO_OMPI_CTX_OF(comm), req->name.gen, req->name.slot, base->req_peer, base->req_tag, req->match_seq,
                        bfo_send_state_name(bfo_se_state(se)), bfo_se_epoch(se), bfo_hdr_name(req->rts_type), req->bytes, bfo_send_length(req),
                        req->m.events, send_waits_for(req));
        }
    }
}

static const char *wanted(int value, char *room, size_t size)
{
    if (MPI_ANY_SOURCE == value) { /* and MPI_ANY_TAG */
        return "any";
    }
    snprintf(room, size, "%d", value);
    return room;
}

static void dump_recvs(const ompi_communicator_t *comm)
{
    char from[16], tag[16];

    for (uint32_t i = 0; i < bfo_load(&bfo.recvs.size); ++i) {
        const bfo_recv_t *req = bfo_container(bfo_ids_at(&bfo.recvs, i), bfo_recv_t, name);
        const mca_pml_base_request_t *base = &req->req_recv.req_base;
        const ompi_status_public_t *status = &base->req_ompi.req_status;
        const uint32_t se = req->m.se;

        if (!bfo_recv_state_is_open(bfo_se_state(se)) || base->req_comm != comm) {
            continue;
        }
        if (BFO_RECV_UNMATCHED == bfo_se_state(se)) {
            opal_output(0, "bfo: ctx %u recv req 0x%x.%x from %s tag %s: unmatched, buffer of %zu bytes, waits for %s", BFO_OMPI_CTX_OF(comm),
                        req->name.gen, req->name.slot, wanted(base->req_peer, from, sizeof(from)), wanted(base->req_tag, tag, sizeof(tag)),
                        req->capacity, recv_waits_for(req));
        } else {
            opal_output(0,
                        "bfo: ctx %u recv req 0x%x.%x from %d tag %d seq %u: %s epoch %u, %zu of %zu bytes here, "
                        "%d transfers open, %d events, waits for %s",
                        BFO_OMPI_CTX_OF(comm), req->name.gen, req->name.slot, status->MPI_SOURCE, status->MPI_TAG, req->match_seq,
                        bfo_recv_state_name(bfo_se_state(se)), bfo_se_epoch(se), req->bytes, req->length, req->open, req->m.events,
                        recv_waits_for(req));
        }
    }
}

/* ---- messages and rails ------------------------------------------------------------------------------ */

static void dump_message(unsigned ctx, const bfo_unexpected_frag_t *g, const char *what)
{
    const bfo_hdr_t *h = (const bfo_hdr_t *) g->data;
    const bool whole = BFO_MSG_MATCH == h->common.type;

    opal_output(0, "bfo: ctx %u message from %d tag %d seq %u waits for %s: %s, %zu bytes", ctx, g->unexpected.by_key.src, g->unexpected.by_key.tag,
                g->unexpected.seq, what, bfo_hdr_name(h->common.type), whole ? g->length - sizeof(bfo_match_hdr_t) : (size_t) h->rndv.msg_length);
}

static void dump_rails(const bfo_peer_t *peer, int verbose)
{
    for (uint8_t r = 0; peer->ready && r < peer->n_rails; ++r) {
        const bfo_rail_t *rail = &peer->rails[r];

        opal_output(0, "bfo:   rail %u (%s) generation %u %s%s%s", rail->name, rail->btl->btl_component->btl_version.mca_component_name, rail->gen,
                    peer->up_mask >> r & 1 ? "up" : "down", peer->fencing >> r & 1 ? ", being fenced" : "",
                    (peer->out_own | peer->out_theirs) >> r & 1 ? ", stands out"
                    : peer->soft >> r & 1                       ? ", seems silent"
                    : peer->probation >> r & 1                  ? ", on probation"
                                                                : "");
        if (verbose > 0 && NULL != rail->btl->btl_dump) {
            rail->btl->btl_dump(rail->btl, rail->endpoint, verbose);
        }
    }
}

static void dump_lane(const ompi_communicator_t *comm, uint32_t rank, const bfo_lane_t *lane, int verbose)
{
    const bfo_link_t *own = &bfo_comm_of(comm)->match.own_unexpected;
    uint32_t waiting = 0;

    for (const bfo_link_t *l = lane->match.unexpected.next; l != &lane->match.unexpected; l = l->next) {
        ++waiting;
        if (verbose > 0) {
            dump_message(BFO_OMPI_CTX_OF(comm), bfo_container(bfo_container(l, bfo_unexpected_t, by_lane), bfo_unexpected_frag_t, unexpected),
                         "a receive");
        }
    }
    for (const bfo_link_t *l = own->next; l != own; l = l->next) {
        const bfo_unexpected_t *unexpected = bfo_container(l, bfo_unexpected_t, by_comm);

        if ((uint32_t) unexpected->by_key.src == rank) {
            ++waiting;
            if (verbose > 0) {
                dump_message(BFO_OMPI_CTX_OF(comm), bfo_container(unexpected, bfo_unexpected_frag_t, unexpected), "a receive");
            }
        }
    }
    for (const bfo_link_t *l = lane->match.early.next; verbose > 0 && l != &lane->match.early; l = l->next) {
        dump_message(BFO_OMPI_CTX_OF(comm), bfo_container(bfo_container(l, bfo_unexpected_t, by_lane), bfo_unexpected_frag_t, unexpected),
                     "those in front of it");
    }
    opal_output(0, "bfo: ctx %u rank %u is %s: next to send %u, next expected %u, %u waiting, %u early, rails up 0x%x%s", BFO_OMPI_CTX_OF(comm), rank,
                OPAL_NAME_PRINT(lane->peer->proc->super.proc_name), lane->next_send, lane->match.next_recv, waiting, lane->match.n_early,
                lane->peer->up_mask, lane->peer->declared ? ", declared unreachable" : "");
    dump_rails(lane->peer, verbose);
}

/* Shows what belongs to no communicator of this process. */
static void dump_process(int verbose)
{
    uint32_t orphans = 0, fins = 0;

    for (const bfo_link_t *l = bfo.orphans.next; l != &bfo.orphans; l = l->next) {
        const bfo_unexpected_frag_t *g = bfo_container(l, bfo_unexpected_frag_t, link);

        ++orphans;
        if (verbose > 0) {
            dump_message(((const bfo_match_hdr_t *) g->data)->ctx, g, "its communicator");
        }
    }
    for (const bfo_link_t *l = bfo.held_fins.next; l != &bfo.held_fins; l = l->next) {
        ++fins;
    }
    opal_output(0,
                "bfo: %u pieces of work wait for resources, %u messages for their communicator, %u ends of transfers "
                "for a fence; %llu messages dropped so far",
                bfo.n_pending, orphans, fins, (unsigned long long) bfo_local_stat(BFO_STAT_DROPPED));
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
    dump_process(verbose);
    return OMPI_SUCCESS;
}
