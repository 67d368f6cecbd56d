/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A message restarts as both sides agree, and not by messages that are late, odd or of others; or no rail is left for the restart. Two rails
 * with failover reach rank 1. DESIGN.txt sections 6 and 7.
 */
#include "world_case.h"

#include "door/pml_bfo_recv_api.h"
#include "door/pml_bfo_send_api.h"
#include "failover/pml_bfo_failover_peer.h"

enum { SIZE = 3000 };

static char room[SIZE];

static bfo_peer_t *life_begins(void)
{
    world_begin();
    bfo_params.rejoin = true;
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    return peer_of_rank(1);
}

static void handshake_comes(const bfo_handshake_hdr_t *h)
{
    world_receive(&world_btl[1], BFO_TAG(h->match.type), h, sizeof(*h), sizeof(*h));
}

/* A message of this kind is posted; it arrives. */
static void answer_goes(unsigned type, const char *what)
{
    const int n = world_find(type);

    must(0 <= n && 1 == world_posted(), what);
    world_complete((unsigned) n, OPAL_SUCCESS);
}

/* The sender restarts a message of FRAGs. With `odd` 0 everything fits; other numbers name what does not. */
static void restart_comes(const bfo_recv_t *req, unsigned odd)
{
    struct {
        bfo_rndv_hdr_t h;
        bfo_restart_hdr_t restart;
    } m = {.h = {.msg_length = SIZE + (1 == odd), .src_id = 0x800000001u + (2 == odd)},
           .restart = {.dst_id = bfo_name_id(&req->name) + (3 == odd ? 1 : 0), .epoch = (uint16_t) (1 + (4 == odd))}};

    bfo_hdr_pack_match(&m.h.match, BFO_MSG_RNDV, BFO_FLAG_RESTART, 0, 1, 4, 5 == odd);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_RNDV), &m, sizeof(m), sizeof(m));
}

static void frags_come(const bfo_recv_t *req, uint16_t epoch, char with)
{
    struct {
        bfo_frag_hdr_t h;
        char data[SIZE];
    } frag;

    memset(frag.data, with, sizeof(frag.data));
    bfo_hdr_pack_frag(&frag.h, epoch, req->src_id, bfo_name_id(&req->name), 0);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_FRAG), &frag, sizeof(frag), sizeof(frag));
}

static bfo_recv_t *recv_is_answered(void)
{
    bfo_rndv_hdr_t rndv = {.msg_length = SIZE, .src_id = 0x800000001u};
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_irecv(room, SIZE, &ompi_mpi_byte.dt, 1, 4, world_comm[0], &request), "a receive does not start");
    bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, 0, 0, 1, 4, 0);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    answer_goes(BFO_MSG_ACK, "a message is not asked for");
    return (bfo_recv_t *) request;
}

/* The sender has lost rail 0, and wants to restart the message. */
static bfo_handshake_hdr_t notify_of(const bfo_recv_t *req)
{
    return (bfo_handshake_hdr_t){.match = {.type = BFO_MSG_NOTIFY, .src = 1, .tag = 4},
                                 .src_id = 0x800000001u,
                                 .dst_id = bfo_name_id(&req->name),
                                 .epoch = 1,
                                 .nrails = 2,
                                 .dead_mask = 1,
                                 .jobid = 77,
                                 .vpid = 1};
}

/* The receiver is ready for the restart. */
static bfo_handshake_hdr_t rack_of(const bfo_send_t *req)
{
    return (bfo_handshake_hdr_t){.match = {.type = BFO_MSG_RACK, .seq = req->match_seq},
                                 .src_id = bfo_name_id(&req->name),
                                 .dst_id = 0x700000001u,
                                 .epoch = 1,
                                 .jobid = 77,
                                 .vpid = 1};
}

static bfo_send_t *send_streams(void)
{
    ompi_request_t *request = NULL;
    const bfo_send_t *req;
    bfo_ack_hdr_t ack;

    bfo_params.use_get = bfo_params.use_put = false;
    (void) life_begins();
    must(OMPI_SUCCESS == bfo_isend(room, SIZE, &ompi_mpi_byte.dt, 1, 4, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "no send");
    req = (const bfo_send_t *) request;
    answer_goes(BFO_MSG_RNDV, "a message is not announced");
    bfo_hdr_pack_ack(&ack, 0, bfo_name_id(&req->name), 0x700000001u, req->rts_length, SIZE - req->rts_length);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_ACK), &ack, sizeof(ack), sizeof(ack));
    must(BFO_SE(BFO_SEND_STREAM, 0) == req->m.se, "an ACK does not start the FRAGs");
    return (bfo_send_t *) request;
}

/* The FRAGs of rail 0 are lost. With `is_alone` the other rail refuses the message that follows the last completion. */
static void rail_is_lost(bool is_alone)
{
    world_rail_fails(&world_btl[0]);
    world_fence_done(0, false);
    for (int n = world_find(BFO_MSG_FRAG); 0 <= n; n = world_find(BFO_MSG_FRAG)) {
        world_refuse_dead = is_alone && 1 == world_posted() ? 1 : 0;
        world_complete((unsigned) n, OPAL_SUCCESS);
    }
}

/* A NOTIFY from another job, of an epoch that is not the next, and with a rail's generation that cannot be there yet. */
static void forged_notify_restarts_nothing(void)
{
    bfo_handshake_hdr_t notify;
    ompi_request_t *request;
    bfo_recv_t *req;

    (void) life_begins();
    req = recv_is_answered();
    request = &req->req_recv.req_base.req_ompi;
    notify = notify_of(req);
    notify.jobid = 78;
    handshake_comes(&notify);
    must(1 == bfo_local_stat(BFO_STAT_WRONG_SOURCE), "a message of another job counts");
    notify.jobid = 77;
    notify.epoch = 2;
    handshake_comes(&notify);
    must(1 == bfo_local_stat(BFO_STAT_STALE), "a message of an impossible epoch counts");
    notify.epoch = notify.rail_gen[0] = 1;
    handshake_comes(&notify);
    must(1 == bfo_local_stat(BFO_STAT_BAD_HEADER), "a message that names an impossible generation counts");
    must(0 == world_posted() && 0 == world_fences() && 3 == peer_of_rank(1)->send_mask, "a forged NOTIFY is answered, or costs a rail");
    frags_come(req, 0, 'o');
    must(is_well(request) && 'o' == room[0] && 'o' == room[SIZE - 1], "a receive does not end well after a forged NOTIFY");
}

/* Messages about the receive that come from another process, are late, or name a generation that does not exist. */
static void receive_is_restarted_only_by_its_own_sender(void)
{
    bfo_handshake_hdr_t good, odd[5];
    const bfo_peer_t *peer = life_begins();
    bfo_recv_t *req = recv_is_answered();

    good = notify_of(req);
    for (int i = 0; i < 5; ++i) {
        odd[i] = good;
    }
    odd[0].jobid += 1;
    odd[1].vpid = 2;
    odd[2].rail_gen[0] = 7;
    odd[3].epoch = 3;
    odd[4].epoch = 0;
    for (int i = 0; i < 5; ++i) {
        handshake_comes(&odd[i]);
        must(BFO_SE(BFO_RECV_ACTIVE, 0) == req->m.se && 0 == world_posted() && 3 == peer->send_mask, "a NOTIFY that does not fit restarts a message");
    }
    handshake_comes(&good);
    must(2 == peer->send_mask && 0 == world_posted(), "a NOTIFY does not end its rail, or is answered before the fence");
    world_fence_done(0, false);
    answer_goes(BFO_MSG_RACK, "a NOTIFY is not answered after the fence");
    handshake_comes(&good);
    must(0 == world_posted() && 0 == world_fences(), "a second copy of the NOTIFY is answered, or ends another rail");
    for (unsigned i = 1; i <= 5; ++i) {
        restart_comes(req, i);
        must(BFO_SE(BFO_RECV_WAITRTS, 1) == req->m.se && 0 == world_posted(), "a restart that does not fit is taken");
    }
    restart_comes(req, 0);
    answer_goes(BFO_MSG_ACK, "a restarted message is not asked for");
    frags_come(req, 0, 'o');
    must(!is_complete(&req->req_recv.req_base.req_ompi), "bytes of the attempt before count");
    frags_come(req, 1, 'n');
    must(is_well(&req->req_recv.req_base.req_ompi) && 'n' == room[0] && 0 == memcmp(room, room + 1, SIZE - 1), "a restarted message has other bytes");
}

/* The same for the sender: answers to its NOTIFY. */
static void send_is_restarted_only_by_its_own_receiver(void)
{
    const bfo_send_t *req = send_streams();
    const bfo_handshake_hdr_t good = rack_of(req);
    const bfo_rndv_hdr_t *again;
    bfo_handshake_hdr_t odd[6];

    for (int i = 0; i < 6; ++i) {
        odd[i] = good;
    }
    odd[0].jobid += 1;
    odd[1].vpid = 2;
    odd[2].epoch = 2;
    odd[3].epoch = 0;
    odd[4].match.seq += 1;
    odd[5].match.type = BFO_MSG_RERR;
    handshake_comes(&odd[5]); /* an error of an attempt that has not begun */
    must(BFO_SE(BFO_SEND_STREAM, 0) == req->m.se, "an error of another attempt ends this attempt");
    rail_is_lost(false);
    answer_goes(BFO_MSG_NOTIFY, "the receiver is not notified");
    for (int i = 0; i < 6; ++i) {
        handshake_comes(&odd[i]);
        must(BFO_SE(BFO_SEND_NOTIFIED, 0) == req->m.se && 0 == world_posted(), "an answer that does not fit restarts a message");
    }
    handshake_comes(&good);
    must(BFO_SE(BFO_SEND_RTS, 1) == req->m.se && 0 == world_find(BFO_MSG_RNDV) && 1 == world_posted(), "the message does not restart");
    again = world_posted_message(0);
    must(0 != (again->match.flags & BFO_FLAG_RESTART) && SIZE == again->msg_length && req->match_seq == again->match.seq,
         "the restart is of another message");
}

/* The last rail refuses a restart message. Nobody waits for a rail, therefore the peer is given up. */
static void peer_is_given_up(const ompi_request_t *request)
{
    must(0 == world_refuse_dead && peer_of_rank(1)->declared, "a peer is not given up although no rail is left");
    while (world_fences() > 0) {
        world_fence_done(0, false);
    }
    must(0 == world_posted() && is_complete(request) && MPI_ERR_OTHER == request->req_status.MPI_ERROR,
         "a request waits for a peer that is given up");
}

static void notify_without_a_rail_fails_the_send(void)
{
    const bfo_send_t *req = send_streams();

    rail_is_lost(true);
    peer_is_given_up(&req->req_send.req_base.req_ompi);
}

static void restart_without_a_rail_fails_the_send(void)
{
    const bfo_send_t *req = send_streams();
    const bfo_handshake_hdr_t rack = rack_of(req);

    rail_is_lost(false);
    answer_goes(BFO_MSG_NOTIFY, "the receiver is not notified");
    world_refuse_dead = 1;
    handshake_comes(&rack);
    peer_is_given_up(&req->req_send.req_base.req_ompi);
}

/* A receive whose sender has lost rail 0; the other rail refuses the next message. */
static bfo_recv_t *recv_will_restart_without_a_rail(void)
{
    bfo_handshake_hdr_t notify;
    bfo_recv_t *req;

    (void) life_begins();
    req = recv_is_answered();
    notify = notify_of(req);
    handshake_comes(&notify);
    world_refuse_dead = 1;
    return req;
}

static void rack_without_a_rail_fails_the_receive(void)
{
    bfo_recv_t *req = recv_will_restart_without_a_rail();

    world_fence_done(0, false);
    peer_is_given_up(&req->req_recv.req_base.req_ompi);
}

/* All bytes come before the fence ends. Only the sender does not hear of that. */
static void nack_without_a_rail_fails_no_receive(void)
{
    bfo_recv_t *req = recv_will_restart_without_a_rail();

    frags_come(req, 0, 'o');
    must(0 == world_refuse_dead && peer_of_rank(1)->declared && 0 == world_posted(), "a peer is not given up although no rail is left");
    must(is_well(&req->req_recv.req_base.req_ompi) && 'o' == room[SIZE - 1], "a receive with all its bytes fails");
}

/* The sender has seen rail 0 come back and fail again; this process has seen neither. */
static void generation_that_only_the_sender_has_seen_is_fenced(void)
{
    bfo_handshake_hdr_t notify;

    (void) life_begins();
    world_rail_fails(&world_btl[0]);
    world_fence_done(0, false);
    notify = notify_of(recv_is_answered());
    notify.rail_gen[0] = 1;
    handshake_comes(&notify);
    must(1 == world_fences() && 0 == world_posted(), "the restart does not wait for the fence of the next generation");
    world_fence_done(0, false);
    answer_goes(BFO_MSG_RACK, "a NOTIFY is not answered after the fence");
}

/* Message 0 to the peer cannot be delivered, as a rail reports. Then another rail reports the same of an answer about message 0 of the peer. */
static void suspicion_of_a_message_is_none_of_an_answer(void)
{
    bfo_handshake_hdr_t notify = {.match = {.type = BFO_MSG_NOTIFY, .src = 1, .tag = 4},
                                  .src_id = 0x800000001u,
                                  .dst_id = 0x700000001u,
                                  .epoch = 1,
                                  .nrails = 2,
                                  .jobid = 77,
                                  .vpid = 1};
    const bfo_peer_t *peer = life_begins();
    ompi_request_t *request = NULL;
    world_btl_t *first;

    must(OMPI_SUCCESS == bfo_isend(room, 8, &ompi_mpi_byte.dt, 1, 4, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "no send");
    first = world_btl_of(0);
    world_complete(0, OPAL_ERR_FATAL);
    must(1 == world_posted() && first != world_btl_of(0), "a message is not sent again over the other rail");
    answer_goes(BFO_MSG_MATCH, "a message is not sent again");
    world_fence_done(0, false);
    world_rail_returns(first);
    handshake_comes(&notify);
    must(1 == world_posted() && 0 == world_find(BFO_MSG_NACK), "a NOTIFY about no receive is not answered");
    world_complete(0, OPAL_ERR_FATAL);
    must(!peer->declared, "a peer is given up for two messages, each of which one rail could not deliver");
    answer_goes(BFO_MSG_NACK, "the answer is not sent again");
}

static const bfo_recv_t *restarting;
static unsigned steps;

static void restart_goes_on(void)
{
    switch (++steps) {
    case 3:
        world_fence_done(0, false);
        break;
    case 6:
        answer_goes(BFO_MSG_RACK, "a NOTIFY is not answered after the fence");
        break;
    case 9:
        restart_comes(restarting, 0);
        break;
    case 12:
        answer_goes(BFO_MSG_ACK, "a restarted message is not asked for");
        break;
    }
}

/* The receive restarts while the process is already in MPI_Finalize. */
static void finalize_waits_for_a_restart(void)
{
    bfo_handshake_hdr_t notify;

    (void) life_begins();
    restarting = recv_is_answered();
    notify = notify_of(restarting);
    handshake_comes(&notify);
    world_on_progress = restart_goes_on;
    bfo_failover_flush();
    must(12 <= steps && BFO_SE(BFO_RECV_ACTIVE, 1) == restarting->m.se && 0 == world_posted(), "MPI_Finalize leaves a restart behind");
    frags_come(restarting, 1, 'n');
    must(is_well(&restarting->req_recv.req_base.req_ompi) && 'n' == room[SIZE - 1], "a message that restarts in MPI_Finalize is lost");
}

/* The answer to the NOTIFY comes when the process is already in MPI_Finalize. A receive from any source never gets a message. */
static bfo_handshake_hdr_t late_rack;

static void send_restarts(void)
{
    switch (++steps) {
    case 3:
        handshake_comes(&late_rack);
        break;
    case 6:
        answer_goes(BFO_MSG_RNDV, "a message does not restart");
        break;
    }
}

static void finalize_waits_for_the_answer_to_a_notify(void)
{
    const bfo_send_t *req = send_streams();
    ompi_request_t *never = NULL;

    late_rack = rack_of(req);
    must(OMPI_SUCCESS == bfo_irecv(room, SIZE, &ompi_mpi_byte.dt, MPI_ANY_SOURCE, 5, world_comm[0], &never), "no receive");
    rail_is_lost(false);
    answer_goes(BFO_MSG_NOTIFY, "the receiver is not notified");
    world_on_progress = send_restarts;
    bfo_failover_flush();
    must(6 == steps && BFO_SE(BFO_SEND_RTS, 1) == req->m.se, "MPI_Finalize does not wait for the restart, or waits for a receive without a message");
}

/* The answer to a NOTIFY for a complete receive belongs to no request, and takes longer than MPI_Finalize waits without a word. */
static uint64_t answer_goes_at;

static void answer_takes_its_time(void)
{
    if (bfo_clock_ns(CLOCK_MONOTONIC) >= answer_goes_at) {
        world_on_progress = NULL;
        answer_goes(BFO_MSG_NACK, "MPI_Finalize has dropped an answer");
    }
}

static void finalize_waits_for_an_answer_without_a_request(void)
{
    bfo_handshake_hdr_t notify;

    (void) life_begins();
    restarting = recv_is_answered();
    notify = notify_of(restarting);
    frags_come(restarting, 0, 'n');
    must(is_well(&restarting->req_recv.req_base.req_ompi), "a message is lost");
    handshake_comes(&notify);
    must(0 <= world_find(BFO_MSG_NACK), "a NOTIFY for a complete receive is not answered");
    answer_goes_at = bfo_clock_ns(CLOCK_MONOTONIC) + UINT64_C(1200000000) * BFO_FLUSH_SECONDS;
    world_on_progress = answer_takes_its_time;
    bfo_failover_flush();
    must(NULL == world_on_progress && 0 == world_posted(), "MPI_Finalize does not wait for an answer");
}

/* Both sides have tried generation 1 of rail 0 in vain, but only the sender has heard of it. Here generation 2 follows generation 0. */
static void generation_that_was_never_used_needs_no_fence(void)
{
    const bfo_peer_t *peer = life_begins();
    bfo_handshake_hdr_t notify;

    world_rail_fails(&world_btl[0]);
    world_fence_done(0, false);
    world_rail_returns_unheard(&world_btl[0]);
    world_rail_returns(&world_btl[0]);
    must(3 == peer->send_mask && 2 == peer->rails[0].gen && 0 == peer->rails[0].fenced, "rail 0 is not of generation 2");
    notify = notify_of(recv_is_answered());
    notify.rail_gen[0] = 1;
    handshake_comes(&notify);
    must(0 == world_fences() && 3 == peer->send_mask, "a rail is lost because of an older generation");
    answer_goes(BFO_MSG_RACK, "the restart waits for a fence that never begins");
}

static const world_case_t cases[] = {
    {"forged_notify_restarts_nothing", forged_notify_restarts_nothing},
    {"receive_is_restarted_only_by_its_own_sender", receive_is_restarted_only_by_its_own_sender},
    {"send_is_restarted_only_by_its_own_receiver", send_is_restarted_only_by_its_own_receiver},
    {"notify_without_a_rail_fails_the_send", notify_without_a_rail_fails_the_send},
    {"restart_without_a_rail_fails_the_send", restart_without_a_rail_fails_the_send},
    {"rack_without_a_rail_fails_the_receive", rack_without_a_rail_fails_the_receive},
    {"nack_without_a_rail_fails_no_receive", nack_without_a_rail_fails_no_receive},
    {"generation_that_only_the_sender_has_seen_is_fenced", generation_that_only_the_sender_has_seen_is_fenced},
    {"suspicion_of_a_message_is_none_of_an_answer", suspicion_of_a_message_is_none_of_an_answer},
    {"finalize_waits_for_a_restart", finalize_waits_for_a_restart},
    {"finalize_waits_for_the_answer_to_a_notify", finalize_waits_for_the_answer_to_a_notify},
    {"finalize_waits_for_an_answer_without_a_request", finalize_waits_for_an_answer_without_a_request},
    {"generation_that_was_never_used_needs_no_fence", generation_that_was_never_used_needs_no_fence},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
