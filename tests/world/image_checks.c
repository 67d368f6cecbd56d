/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Checks of requests: what a process sees of one of another process, and the invariants I3, I7 and I8. See image_checks.h.
 */
#include "image_checks.h"

#include "image_ompi.h"

#include "tables/pml_bfo_failover_fsm.h"

#include "ompi/communicator/communicator.h"

#include <inttypes.h>

/* Calls of Open MPI's and the product's functions that read atomically are points at which other threads run. Here nothing may run, so
 * this file reads members itself. */

/* ---- requests ------------------------------------------------------------------------------------------------ */

const bfo_name_t *image_name_of(const bfo_ids_t *table, uint64_t id, int32_t *ahead)
{
    const uint32_t slot = (uint32_t) id;
    const bfo_name_t *name = slot < table->size ? table->chunks[slot >> BFO_IDS_CHUNK_BITS][slot & (BFO_IDS_CHUNK - 1)] : NULL;

    *ahead = NULL == name ? -1 : (int32_t) (name->gen - (uint32_t) (id >> 32));
    return name;
}

static unsigned rank_of(const bfo_lane_t *lane)
{
    return NULL == lane ? UINT32_MAX : lane->peer->proc->super.proc_name.vpid;
}

static world_request_t open_request(const bfo_machine_t *m, uint32_t seq, const bfo_lane_t *lane, uint64_t other)
{
    return (world_request_t){
        .is_open = true, .state = bfo_se_state(m->se), .epoch = bfo_se_epoch(m->se), .seq = seq, .rank = rank_of(lane), .other = other};
}

bool image_look_at_send(uint64_t id, world_request_t *seen)
{
    int32_t ahead;
    const bfo_name_t *name = image_name_of(&bfo.sends, id, &ahead);
    const bfo_send_t *req = NULL == name ? NULL : bfo_container(name, bfo_send_t, name);

    *seen = (world_request_t){.is_unborn = 0 > ahead};
    if (0 == ahead && bfo_send_state_is_open(bfo_se_state(req->m.se))) {
        *seen = open_request(&req->m, req->match_seq, req->lane, req->dst_id);
    }
    return 0 != bfo.sends.size;
}

bool image_look_at_recv(uint64_t id, world_request_t *seen)
{
    int32_t ahead;
    const bfo_name_t *name = image_name_of(&bfo.recvs, id, &ahead);
    const bfo_recv_t *req = NULL == name ? NULL : bfo_container(name, bfo_recv_t, name);

    *seen = (world_request_t){.is_unborn = 0 > ahead};
    if (0 == ahead && bfo_recv_state_is_open(bfo_se_state(req->m.se))) {
        *seen = open_request(&req->m, req->match_seq, req->lane, req->src_id);
    }
    return 0 != bfo.recvs.size;
}

static bool has_declared(unsigned rank)
{
    const bfo_peer_t *peer = ompi_comm_peer_lookup(image_world, (int) rank)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

    return NULL != peer && peer->declared;
}

const world_looks_t image_looks = {
    .at_send = image_look_at_send, .at_recv = image_look_at_recv, .at_rail = image_look_at_rail, .has_declared = has_declared};

/* ---- I3 ------------------------------------------------------------------------------------------------------- */

/* A MATCH has no request at the receiver until it comes. Its bytes are checked there, and a job whose MATCH is lost does not end. A FIN of a
 * READ does not name the receive; then the sender may not know it, and it is complete, or is when its last completion was read. */
void image_check_sent(const bfo_send_t *req)
{
    const unsigned to = rank_of(req->lane);
    const world_looks_t *looks = world_looks_of(to);
    world_request_t there;

    if (BFO_MSG_MATCH == req->rts_type || MPI_SUCCESS != req->error || NULL == looks) {
        return;
    }
    if (0 == req->dst_id) {
        if (BFO_MSG_RGET != req->rts_type) {
            world_broken("I3: message %u to process %u is sent, and the receiver has not answered", req->match_seq, to);
        }
        return;
    }
    if (!looks->at_recv(req->dst_id, &there) || !there.is_open) {
        return;
    }
    if (there.rank != world_rank() || there.seq != req->match_seq || there.epoch != bfo_se_epoch(req->m.se)
        || (BFO_RECV_ACTIVE != there.state && BFO_RECV_ERRL != there.state && BFO_RECV_DEAD != there.state)) {
        world_broken("I3: message %u to process %u is sent in attempt %u, and its receive, of message %u from process %u, is %s in attempt %u",
                     req->match_seq, to, bfo_se_epoch(req->m.se), there.seq, there.rank, bfo_recv_state_name(there.state), there.epoch);
    }
}

/* A receive is set back: its sender must still be there to send the message again. */
static void check_rack(unsigned to, const bfo_handshake_hdr_t *h)
{
    const world_looks_t *looks = world_looks_of(to);
    world_request_t there;

    if (NULL == looks || !looks->at_send(h->src_id, &there)) {
        return;
    }
    if (!there.is_open) {
        if (!looks->has_declared(world_rank())) {
            world_broken("I3: message %u from process %u is to be sent again in attempt %u, and its send is complete", h->match.seq, to, h->epoch);
        }
    } else if (there.rank != world_rank() || there.seq != h->match.seq
               || !(BFO_SEND_DEAD == there.state || (BFO_SEND_NOTIFIED == there.state && there.epoch + 1 == h->epoch)
                    || (BFO_SEND_RTS == there.state && there.epoch == h->epoch))) {
        world_broken(
            "I3: message %u from process %u is to be sent again in attempt %u, and its send, of message %u to process %u, is %s in attempt %u",
            h->match.seq, to, h->epoch, there.seq, there.rank, bfo_send_state_name(there.state), there.epoch);
    }
}

/* ---- I7, I8 --------------------------------------------------------------------------------------------------- */

static void check_nack(unsigned to, const bfo_handshake_hdr_t *h)
{
    world_request_t here;

    if (image_look_at_recv(h->dst_id, &here) && here.is_open) {
        world_broken("I7: NACK of message %u to process %u, and its receive is %s in attempt %u", h->match.seq, to, bfo_recv_state_name(here.state),
                     here.epoch);
    }
}

static void check_notify(unsigned to, const bfo_handshake_hdr_t *h)
{
    const world_looks_t *looks = world_looks_of(to);
    world_request_t there;

    if (0 == h->dst_id) {
        world_broken("I8: NOTIFY of message %u to process %u names no receive", h->match.seq, to);
    }
    if (NULL == looks || !looks->at_recv(h->dst_id, &there)) {
        return;
    }
    if (there.is_unborn
        || (there.is_open
            && (there.rank != world_rank() || there.seq != h->match.seq || there.other != h->src_id
                || (there.epoch != h->epoch && there.epoch + 1 != h->epoch)))) {
        world_broken("I8: NOTIFY of message %u to process %u for attempt %u names the receive 0x%" PRIx64
                     ", of message %u from process %u in attempt %u",
                     h->match.seq, to, h->epoch, h->dst_id, there.seq, there.rank, there.epoch);
    }
}

void image_check_control(const bfo_peer_t *to, const bfo_hdr_t *h)
{
    const unsigned rank = to->proc->super.proc_name.vpid;

    switch (h->common.type) {
    case BFO_MSG_RACK:
        check_rack(rank, &h->handshake);
        break;
    case BFO_MSG_NACK:
        check_nack(rank, &h->handshake);
        break;
    case BFO_MSG_NOTIFY:
        check_notify(rank, &h->handshake);
        break;
    default:
        break;
    }
}

void __real_bfo_failover_send_raise(bfo_send_t *req, unsigned event, void *arg);

/* With threads the thread that has changed the state may not have noted the identifier yet. NOTIFY is checked in any case. */
void __wrap_bfo_failover_send_raise(bfo_send_t *req, unsigned event, void *arg);
void __wrap_bfo_failover_send_raise(bfo_send_t *req, unsigned event, void *arg)
{
    __real_bfo_failover_send_raise(req, event, arg);
    if (!bfo_threads && BFO_SEND_ERRD == bfo_se_state(req->m.se) && 0 == req->dst_id) {
        world_broken("I8: message %u to process %u is %s, and its receive is not known", req->match_seq, rank_of(req->lane),
                     bfo_send_state_name(BFO_SEND_ERRD));
    }
}
