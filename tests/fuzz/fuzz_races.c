/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Orders of events that threads can bring about; this file forces them one after the other in the world of fuzz_world.h. A rail refuses
 * before it reports its error. An answer comes to a first fragment that waits to be sent again. Work is listed twice. The last event
 * returns while another event is held. Another thread has used a later sequence number. Messages of a peer or an attempt that was given
 * up come late. fuzz_dispatch runs this at its start. DESIGN.txt sections 7.3, 11, 14.4.
 */
#include "fuzz_must.h"
#include "fuzz_world.h"

#include "door/pml_bfo_hooks.h"
#include "types/pml_bfo_local.h"
#include "door/pml_bfo_recv_api.h"
#include "ends/pml_bfo_recv_complete.h"
#include "door/pml_bfo_send_api.h"
#include "ends/pml_bfo_send_complete.h"

#include "opal/mca/pmix/pmix.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static char room[80 * 40];

static bfo_send_t *send_strided(unsigned count)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_isend(room, count, world_strided, 1, 3, MCA_PML_BASE_SEND_SYNCHRONOUS, world_comm[0], &request),
         "a send does not start");
    return (bfo_send_t *) request;
}

static void acknowledge(const bfo_send_t *req)
{
    bfo_ack_hdr_t ack;

    bfo_hdr_pack_ack(&ack, 0, bfo_name_id(&req->name), 0x700000001u, req->rts_length, bfo_send_length(req) - req->rts_length);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_ACK), &ack, sizeof(ack), sizeof(ack));
}

static void all_succeed(void)
{
    for (unsigned turn = 0; turn < 100 && (world_posted() > 0 || bfo.n_pending > 0); ++turn) {
        if (world_posted() > 0) {
            world_complete(0, OPAL_SUCCESS);
        }
        (void) bfo_progress();
    }
}

static bool is_complete(const void *req)
{
    return REQUEST_COMPLETED == ((const ompi_request_t *) req)->req_complete;
}

static void give_back(void *req, const char *text)
{
    ompi_request_t *request = req;

    must(is_complete(request) && MPI_SUCCESS == request->req_status.MPI_ERROR, text);
    request->req_free(&request);
}

static void give_back_lost(void *req, const char *text)
{
    ompi_request_t *request = req;

    must(is_complete(request) && MPI_ERR_OTHER == request->req_status.MPI_ERROR, text);
    request->req_free(&request);
}

static bfo_recv_t *receive_started(int tag)
{
    bfo_rndv_hdr_t rndv = {.msg_length = 600, .src_id = 0x800000001u};
    const bfo_lane_t *lane = bfo_comm_of(world_comm[0])->lanes[1];
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_irecv(room, 600, &ompi_mpi_byte.dt, 1, tag, world_comm[0], &request), "no receive");
    bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, 0, 0, 1, tag, NULL == lane ? 0 : lane->match.next_recv);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    return (bfo_recv_t *) request;
}

static void data_for(const bfo_recv_t *req)
{
    struct {
        bfo_frag_hdr_t h;
        char data[600];
    } frag = {.data = {0}};

    bfo_hdr_pack_frag(&frag.h, 0, req->src_id, bfo_name_id(&req->name), 0);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_FRAG), &frag, sizeof(frag), sizeof(frag));
}

/* A rail that is still in the masks refuses a post: the fragment goes to the other rail. */
static void refused_post_goes_to_the_next_rail(void)
{
    bfo_send_t *send;
    bfo_recv_t *recv;

    world_begin();
    world_refuse_dead = 1;
    send = send_strided(4);
    must(!is_complete(send) && 1 == world_posted(), "a refused first fragment was not sent by the other rail");
    acknowledge(send);
    all_succeed();
    give_back(send, "a send whose first rail refused does not end well");
    world_drain();
    world_end();

    world_begin();
    world_refuse_dead = 1;
    recv = receive_started(4);
    must(!is_complete(recv) && 1 == world_posted(), "a refused answer was not sent by the other rail");
    data_for(recv);
    all_succeed();
    give_back(recv, "a receive whose answer was refused does not end well");
    world_drain();
    world_end();
}

/* The first fragment was delivered, but came back with an error. While its copy waits, the answer comes. */
static void answered_first_fragment_counts_as_delivered(void)
{
    bfo_send_t *send;

    world_begin();
    send = send_strided(30);
    world_refuse_busy = 1;
    world_complete(0, OPAL_ERROR);
    must(1 == bfo.n_pending && 0 == world_posted(), "the first fragment does not wait to be sent again");
    acknowledge(send);
    all_succeed();
    give_back(send, "a send that was answered before its copy went out does not end");
    world_drain();
    world_end();
}

/* Neither the BTL nor the list of control messages has memory for an ACK. The PML sends it when there is memory again. */
static void ack_without_memory_is_sent_later(void)
{
    const size_t most = bfo.ctl_list.fl_max_to_alloc;
    opal_free_list_item_t *all[64];
    unsigned n = 0;
    bfo_recv_t *recv;

    world_begin();
    (void) bfo_peer_connect(bfo_peer_get(world_proc[1]));
    bfo.ctl_list.fl_max_to_alloc = bfo.ctl_list.fl_num_allocated;
    while (n < 64 && NULL != (all[n] = opal_free_list_get(&bfo.ctl_list))) {
        ++n;
    }
    must(n < 64, "the list of control messages does not end");
    world_refuse_memory = 4; /* each of the two rails refuses twice */
    recv = receive_started(4);
    must(!is_complete(recv) && 0 == world_posted() && 1 == bfo.n_pending, "an ACK without memory does not wait");
    (void) bfo_progress(); /* still no memory */
    must(0 == world_posted() && 1 == bfo.n_pending, "an ACK without memory does not go on waiting");
    (void) bfo_progress();
    must(0 <= world_find(BFO_MSG_ACK) && 0 == bfo.n_pending, "an ACK is not sent when there is memory again");
    data_for(recv);
    all_succeed();
    give_back(recv, "a receive whose ACK waited for memory does not end well");

    world_refuse_memory = 2; /* the peer is lost while an ACK waits */
    recv = receive_started(4);
    must(1 == bfo.n_pending, "an ACK without memory does not wait");
    world_drain();
    must(0 == bfo.n_pending, "an ACK to a lost peer waits");
    give_back_lost(recv, "a receive from a lost peer does not end with an error");
    while (n > 0) {
        opal_free_list_return(&bfo.ctl_list, all[--n]);
    }
    bfo.ctl_list.fl_max_to_alloc = most;
    world_end();
}

static unsigned worked;
static int work_done(bfo_work_t *work)
{
    ++worked;
    return OMPI_SUCCESS;
}

static void work_is_listed_once(void)
{
    bfo_work_t work = {.queued = false};
    bfo_peer_t *peer;

    world_begin();
    peer = bfo_peer_get(world_proc[1]);
    worked = 0;
    must(bfo_work_queue(peer, &work, work_done) && !bfo_work_queue(peer, &work, work_done), "work was listed twice");
    must(1 == bfo.n_pending, "one piece of work counts as more");
    (void) bfo_progress();
    must(1 == worked && 0 == bfo.n_pending, "work was not done once");
    must(bfo_work_queue(peer, &work, work_done), "work that was done cannot be listed again");
    (void) bfo_progress();
    world_end();
}

/* All bytes are counted, but a thread still holds the request. This thread ends the request when it lets go. */
static void held_request_does_not_end(void)
{
    bfo_send_t *send;
    bfo_recv_t *recv;

    opal_uses_threads = true;
    world_begin();
    send = send_strided(30);
    bfo_send_get(send);
    acknowledge(send);
    all_succeed();
    must(send->bytes == bfo_send_length(send) && 1 == send->m.events, "not all of a send was counted");
    bfo_send_check(send);
    must(!is_complete(send), "a send ended while a thread holds it");
    bfo_send_put(send);
    give_back(send, "a send does not end when it is let go");

    recv = receive_started(5);
    bfo_recv_get(recv);
    data_for(recv);
    all_succeed();
    must(recv->bytes == recv->length && 1 == recv->m.events, "not all of a receive was counted");
    bfo_recv_check(recv);
    must(!is_complete(recv), "a receive ended while a thread holds it");
    bfo_recv_put(recv);
    give_back(recv, "a receive does not end when it is let go");
    world_drain();
    world_end();
    opal_uses_threads = false;
}

static ompi_request_t *start_short(mca_pml_base_send_mode_t mode)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_isend(room, 8, &ompi_mpi_byte.dt, 1, 3, mode, world_comm[0], &request), "a short message does not start");
    return request;
}

static void refuse_one(void)
{
    world_refuse_busy = 1;
}

/* Another thread takes the next number and its message goes out; then the BTL refuses the first message. */
static void pass_by_and_refuse_one(void)
{
    must(&ompi_request_empty == start_short(MCA_PML_BASE_SEND_STANDARD), "the other thread's message was not taken at once");
    refuse_one();
}

static uint32_t number_of_posted(unsigned n)
{
    return ((const bfo_match_hdr_t *) world_posted_message(n))->seq;
}

/* btl_sendi refuses the message, but another thread has the next number. Therefore the message must keep its number and go
 * out, in spite of a limit on requests, or of an attached buffer without room. */
static void number_that_was_passed_is_used(mca_pml_base_send_mode_t mode, bool no_requests)
{
    const int most = bfo_params.free_list_max;
    ompi_request_t *request;
    void *spare[8] = {NULL};

    bfo_params.free_list_max = no_requests ? 4 : most;
    world_begin();
    for (unsigned i = 0; no_requests && i < 8; ++i) {
        spare[i] = bfo_cache_take(BFO_CACHE_SEND);
    }
    must(!no_requests || NULL == spare[7], "there are more requests than allowed");
    world_in_sendi = pass_by_and_refuse_one;
    request = start_short(mode);
    must(2 == world_posted() && 1 == number_of_posted(0) && 0 == number_of_posted(1),
         "a message did not go out with its number after a later number was used");
    must(2 == bfo_comm_of(world_comm[0])->lanes[1]->next_send, "a number was given out twice, or lost");
    all_succeed();
    give_back(request, "a message does not end well after a later number was used");
    for (unsigned i = 0; i < 8 && NULL != spare[i]; ++i) {
        bfo_cache_give(BFO_CACHE_SEND, spare[i]);
    }
    world_drain();
    world_end();
    bfo_params.free_list_max = most;
}

/* No other thread took a number: the PML takes the refused number back, and gives it to the next message. */
static void refused_number_is_given_back(void)
{
    ompi_request_t *request;

    world_begin();
    world_in_sendi = refuse_one;
    request = start_short(MCA_PML_BASE_SEND_STANDARD);
    must(1 == world_posted() && 0 == number_of_posted(0), "a refused message did not go out as the first one");
    must(&ompi_request_empty == start_short(MCA_PML_BASE_SEND_STANDARD) && 1 == number_of_posted(1), "the PML skipped a number");
    all_succeed();
    give_back(request, "a message that was refused first does not end well");
    world_drain();
    world_end();
}

/* ---- lost peers and receives -------------------------------------------------------------------------- */

static bfo_recv_t *receive_by_put(int tag)
{
    bfo_rndv_hdr_t rndv = {.msg_length = 3000, .src_id = 0x800000001u};
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_irecv(room, 3000, &ompi_mpi_byte.dt, 1, tag, world_comm[0], &request), "no receive");
    bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, BFO_FLAG_PIN | BFO_FLAG_CONTIG, 0, 1, tag, 0);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    return (bfo_recv_t *) request;
}

/* A receive that ends with an error has asked for data by PUT that nobody will write. A late FIN must not find these PUTs. */
static void puts_of_a_lost_receive_come_back(void)
{
    bfo_handshake_hdr_t notify = {
        .match = {.type = BFO_MSG_NOTIFY, .flags = BFO_FLAG_FAILED}, .src_id = 0x800000001u, .epoch = 1, .jobid = 77, .vpid = 1};
    bfo_recv_t *recv;

    world_begin();
    recv = receive_by_put(6);
    must(0 != world_open_puts(), "nothing was asked for by PUT");
    world_drain();
    give_back_lost(recv, "a receive of a lost peer does not end with an error");
    must(0 == world_open_puts(), "a PUT of a lost peer is still open");
    world_end();

    world_begin();
    recv = receive_by_put(6);
    all_succeed();
    must(0 != world_open_puts(), "nothing was asked for by PUT");
    notify.dst_id = bfo_name_id(&recv->name);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_NOTIFY), &notify, sizeof(notify), sizeof(notify));
    give_back_lost(recv, "a receive whose sender gave the message up does not end with an error");
    must(0 == world_open_puts(), "a PUT of a message that the sender gave up is still open");
    world_drain();
    world_end();
}

static ompi_request_t *receive_from(int source, ompi_communicator_t *comm)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_irecv(room, 16, &ompi_mpi_byte.dt, source, 7, comm, &request), "no receive");
    return request;
}

static void message_late(uint16_t ctx, uint32_t seq)
{
    struct {
        bfo_match_hdr_t h;
        char data[16];
    } match = {.data = {1}};

    bfo_hdr_pack_match(&match.h, BFO_MSG_MATCH, 0, ctx, 1, 7, seq);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_MATCH), &match, sizeof(match), sizeof(match));
}

/* The receive of the message has ended with an error. The next receive must not match this message. */
static void late_message_of_a_lost_peer_is_dropped(void)
{
    ompi_request_t *first, *any, *other;
    uint64_t dropped;

    world_begin();
    (void) bfo_peer_connect(bfo_peer_get(world_proc[1]));
    first = receive_from(1, world_comm[0]);
    message_late(0, 0);
    give_back(first, "a message is not received");
    first = receive_from(1, world_comm[0]);
    world_rail_fails(&world_btl[0]);
    world_rail_fails(&world_btl[1]);
    give_back_lost(first, "a receive from a lost peer does not end with an error");
    any = receive_from(MPI_ANY_SOURCE, world_comm[0]);
    world_comm_add();
    other = receive_from(MPI_ANY_SOURCE, world_comm[1]);
    dropped = bfo_local_stat(BFO_STAT_STALE);
    message_late(0, 1);                                     /* for the receive that has ended */
    message_late(0, 2);                                     /* ahead of its sequence */
    message_late((uint16_t) world_comm[1]->c_contextid, 0); /* in a communicator where the peer has sent nothing yet */
    must(!is_complete(any) && !is_complete(other), "a late message of a lost peer was received");
    must(dropped + 3 == bfo_local_stat(BFO_STAT_STALE), "late messages of a lost peer were kept");
    any->req_cancel(any, 1);
    other->req_cancel(other, 1);
    give_back(any, "a receive cannot be cancelled");
    give_back(other, "a receive cannot be cancelled");
    world_drain();
    world_end();
}

/* ---- the end ------------------------------------------------------------------------------------------ */

static int runtime_fences;

static int runtime_fence(opal_list_t *procs, int collect)
{
    ++runtime_fences;
    return OPAL_SUCCESS;
}

static int runtime_fence_nb(opal_list_t *procs, int collect, opal_pmix_op_cbfunc_t done, void *data)
{
    ++runtime_fences;
    done(OPAL_SUCCESS, data);
    return OPAL_SUCCESS;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static double takes_it_at;
static const bfo_send_t *taken;

/* The peer takes the message later than the PML writes its line about the wait. */
static void peer_that_takes_its_time(void)
{
    if (seconds() > takes_it_at) {
        world_on_progress = NULL;
        acknowledge(taken);
        for (unsigned turn = 0; turn < 100 && world_posted() > 0; ++turn) {
            world_complete(0, OPAL_SUCCESS);
        }
    }
}

static void flush_waits_for_a_slow_peer(void)
{
    bfo_send_t *send;

    opal_pmix.fence = runtime_fence;
    opal_pmix.fence_nb = runtime_fence_nb;
    runtime_fences = 0;
    (void) bfo_hooks_open(); /* sets only the hook of the fence, because this world has no attributes */
    world_begin();
    send = send_strided(4);
    must(1 == world_posted(), "a send was not posted");
    taken = send;
    takes_it_at = seconds() + BFO_FLUSH_SECONDS + 1.2;
    world_on_progress = peer_that_takes_its_time;
    must(OPAL_SUCCESS == opal_pmix.fence(NULL, 0), "the fence fails");
    must(NULL == world_on_progress && 0 == world_posted(), "the fence was entered with a message under way");
    must(1 == runtime_fences, "the runtime's fence was not entered once");
    world_on_progress = NULL;
    all_succeed();
    give_back(send, "a send that was flushed does not end well");
    world_drain();
    world_end();
    must(runtime_fence == opal_pmix.fence, "the runtime's fence was not given back");
    opal_pmix.fence = NULL;
    opal_pmix.fence_nb = NULL;
}

void fuzz_races(void)
{
    puts_of_a_lost_receive_come_back();
    late_message_of_a_lost_peer_is_dropped();
    flush_waits_for_a_slow_peer();
    refused_number_is_given_back();
    number_that_was_passed_is_used(MCA_PML_BASE_SEND_STANDARD, false);
    number_that_was_passed_is_used(MCA_PML_BASE_SEND_STANDARD, true);
    number_that_was_passed_is_used(MCA_PML_BASE_SEND_BUFFERED, false);
    refused_post_goes_to_the_next_rail();
    answered_first_fragment_counts_as_delivered();
    work_is_listed_once();
    ack_without_memory_is_sent_later();
    held_request_does_not_end();
}
