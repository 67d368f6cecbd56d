/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Messages that come before their communicator exists, or before their turn, and copies of them. Ends the process if a byte or a request
 * goes wrong. fuzz_dispatch runs this at its start. DESIGN.txt sections 14.2 and 14.7.
 */
#include "fuzz_must.h"
#include "fuzz_world.h"

#include "../payload.h"

#include "door/pml_bfo_recv_api.h"
#include "types/pml_bfo_local.h"

#include <string.h>

static void life_begins(void)
{
    opal_uses_threads = true;
    world_begin();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
}

static void life_ends(void)
{
    world_drain();
    world_end();
    opal_uses_threads = false;
}

static bool is_over(const void *request)
{
    return REQUEST_COMPLETED == ((const ompi_request_t *) request)->req_complete;
}

/* ---- messages that come before their communicator ------------------------------------------------------------ */

static void early_for_comm(uint32_t seq, size_t length)
{
    struct {
        bfo_match_hdr_t h;
        char data[1000];
    } m = {.data = ""};

    payload_fill(m.data, length, seq);
    bfo_hdr_pack_match(&m.h, BFO_MSG_MATCH, 0, (uint16_t) world_comm[1]->c_contextid, 1, 4, seq);
    world_receive(&world_btl[seq % 2], BFO_TAG(BFO_MSG_MATCH), &m, sizeof(m.h) + length, sizeof(m.h) + length);
}

static void early_rndv_for_comm(uint32_t seq, size_t here, size_t length)
{
    struct {
        bfo_rndv_hdr_t h;
        char data[400];
    } m = {.h = {.msg_length = length, .src_id = 0x800000001u}};

    payload_fill(m.data, here, seq);
    bfo_hdr_pack_match(&m.h.match, BFO_MSG_RNDV, 0, (uint16_t) world_comm[1]->c_contextid, 1, 4, seq);
    world_receive(&world_btl[seq % 2], BFO_TAG(BFO_MSG_RNDV), &m, sizeof(m.h) + here, sizeof(m.h) + here);
}

static void rest_of_rndv(uint32_t seq, const bfo_recv_t *req, size_t here, size_t length)
{
    struct {
        bfo_frag_hdr_t h;
        char data[1000];
    } m = {.data = ""};

    payload_fill_part(m.data, length - here, seq, here);
    bfo_hdr_pack_frag(&m.h, 0, req->src_id, bfo_name_id(&req->name), here);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_FRAG), &m, sizeof(m.h) + length - here, sizeof(m.h) + length - here);
}

/* Short messages, a message too long for an element of the list, and a rendezvous come in the order given, each over another rail than
 * the message before; one message comes twice. Receives that are posted afterwards get them in sequence, with all bytes. */
static void early_messages_wait_for_their_communicator(const uint32_t order[5])
{
    enum { N = 5, RNDV = 2, HERE = 300, LENGTH = 1000 };
    static const size_t lengths[N] = {16, 900, LENGTH, 0, 200};
    ompi_request_t *request[N];
    static char in[N][LENGTH + 1];
    const uint64_t orphans = bfo_local_stat(BFO_STAT_ORPHAN), twice = bfo_local_stat(BFO_STAT_DUPLICATE);

    life_begins();
    for (int i = 0; i < N; ++i) {
        if (RNDV == order[i]) {
            early_rndv_for_comm(RNDV, HERE, LENGTH);
        } else {
            early_for_comm(order[i], lengths[order[i]]);
        }
    }
    early_for_comm(4, lengths[4]);
    must(orphans + N + 1 == bfo_local_stat(BFO_STAT_ORPHAN), "a message does not wait for its communicator");
    world_comm_add();
    must(bfo_link_is_empty(&bfo.orphans), "a message still waits although its communicator exists");
    must(twice + 1 == bfo_local_stat(BFO_STAT_DUPLICATE), "a copy was not dropped");
    for (int i = 0; i < N; ++i) {
        memset(in[i], 0x5a, sizeof(in[i]));
        must(OMPI_SUCCESS == bfo_irecv(in[i], LENGTH, &ompi_mpi_byte.dt, 1, 4, world_comm[1], &request[i]), "no receive");
        must((RNDV != i) == is_over(request[i]), "a message that was early is not matched in its turn");
    }
    must(0 <= world_find(BFO_MSG_ACK), "a rendezvous that was early is not answered");
    while (world_posted() > 0) {
        world_complete(0, OPAL_SUCCESS);
    }
    rest_of_rndv(RNDV, (bfo_recv_t *) request[RNDV], HERE, LENGTH);
    for (uint32_t i = 0; i < N; ++i) {
        must(is_over(request[i]) && MPI_SUCCESS == request[i]->req_status.MPI_ERROR && lengths[i] == request[i]->req_status._ucount,
             "a message that was early does not end well");
        must(lengths[i] == payload_first_wrong(in[i], lengths[i], i), "a message that was early has other bytes");
        for (size_t k = lengths[i]; k <= LENGTH; ++k) {
            must(0x5a == in[i][k], "a message that was early has more bytes");
        }
        request[i]->req_free(&request[i]);
    }
    life_ends();
}

/* ---- a copy of a message comes just before the message is delivered ----------------------------------------- */

static int copy_of_1_comes(ompi_request_t *request)
{
    early_for_comm(1, 100);
    return 0;
}

/* The thread that delivers early messages has released the lock to deliver number 0. Another thread gets number 1 over another rail. */
static void copy_does_not_pass_its_held_message(void)
{
    enum { N = 4 };
    const uint64_t twice = bfo_local_stat(BFO_STAT_DUPLICATE);
    ompi_request_t *request[N];
    static char in[N][100];

    life_begins();
    world_comm_add();
    for (int i = 0; i < N; ++i) {
        must(OMPI_SUCCESS == bfo_irecv(in[i], 100, &ompi_mpi_byte.dt, 1, 4, world_comm[1], &request[i]), "no receive");
    }
    request[0]->req_complete_cb = copy_of_1_comes;
    early_for_comm(3, 100);
    early_for_comm(1, 100);
    early_for_comm(0, 100);
    must(twice + 1 == bfo_local_stat(BFO_STAT_DUPLICATE), "a copy passed its held message");
    must(is_over(request[1]) && !is_over(request[2]), "a held message is not delivered in its turn");
    early_for_comm(2, 100);
    must(0 == bfo_comm_of(world_comm[1])->lanes[1]->match.n_early, "a message is held although its turn has come");
    for (uint32_t i = 0; i < N; ++i) {
        must(is_over(request[i]) && 100 == payload_first_wrong(in[i], 100, i), "a receive has another message, or none");
        request[i]->req_free(&request[i]);
    }
    life_ends();
}

/* ---- messages for a communicator that has ended here, in a job that survives failures ------------------------ */

static bool is_in_use; /* the context id of the second communicator */

static bool says_in_use(uint16_t ctx)
{
    must(world_comm[1]->c_contextid == ctx, "another context id is looked up");
    return is_in_use;
}

static void ulfm_life_begins(void)
{
    life_begins();
    bfo.id_is_in_use = says_in_use;
    is_in_use = true;
}

static void ulfm_life_ends(void)
{
    bfo.id_is_in_use = NULL;
    life_ends();
}

/* The sender of `n` rendezvous messages is told that nobody will receive them; and no message waits. */
static void are_refused(unsigned n)
{
    for (unsigned i = 0; i < n; ++i) {
        const int at = world_find(BFO_MSG_ACK);
        const bfo_ack_hdr_t *ack = at < 0 ? NULL : world_posted_message((unsigned) at);

        must(NULL != ack && 0 == ack->dst_id && 0x800000001u == ack->src_id && 0 == ack->flags, "a sender is not refused, and waits without end");
        world_complete((unsigned) at, OPAL_SUCCESS);
    }
    must(world_find(BFO_MSG_ACK) < 0, "a message is answered that was not to be");
    must(bfo_link_is_empty(&bfo.orphans), "a message of an ended communicator waits for the next one of its id");
}

static void is_received(uint32_t seq)
{
    ompi_request_t *request = NULL;
    static char in[100];

    must(OMPI_SUCCESS == bfo_irecv(in, 100, &ompi_mpi_byte.dt, 1, 4, world_comm[1], &request), "no receive");
    must(is_over(request) && 100 == payload_first_wrong(in, 100, seq), "a communicator gets another message, or none");
    request->req_free(&request);
}

/* The second communicator has received number 0, and has ended here. */
static void second_ends(void)
{
    world_comm_add();
    early_for_comm(0, 100);
    is_received(0);
    world_comm_remove();
    is_in_use = false;
}

/* They come out of order, and some twice. The next communicator of the id continues with the numbers after them. */
static void late_messages_of_an_ended_communicator_are_refused(void)
{
    ulfm_life_begins();
    second_ends();
    early_rndv_for_comm(3, 300, 1000);
    are_refused(1);
    early_rndv_for_comm(1, 300, 1000);
    are_refused(1);
    early_for_comm(2, 100);
    early_for_comm(4, 100);
    early_rndv_for_comm(0, 300, 1000); /* a copy of a message that was taken: its sender may be told nothing */
    are_refused(0);
    is_in_use = true;
    early_rndv_for_comm(3, 300, 1000); /* whoever uses the id now */
    are_refused(1);
    world_comm_add();
    early_for_comm(5, 100);
    is_received(5);
    ulfm_life_ends();
}

/* The id is in use while Open MPI agrees on it: then the message may belong to the next communicator, and waits. */
static void message_waits_while_its_id_is_agreed_on(void)
{
    ulfm_life_begins();
    second_ends();
    is_in_use = true;
    early_for_comm(1, 100);
    early_rndv_for_comm(2, 300, 1000);
    opal_progress();
    must(!bfo_link_is_empty(&bfo.orphans) && world_find(BFO_MSG_ACK) < 0, "a message of the next communicator of an id is refused");
    is_in_use = false; /* Open MPI has agreed on another id */
    opal_progress();
    are_refused(1);
    is_in_use = true;
    early_for_comm(3, 100);
    world_comm_add();
    is_received(3);
    ulfm_life_ends();
}

/* A communicator in which a process has failed ends with a rendezvous that nobody has received, and one out of order. */
static void messages_left_in_a_communicator_are_refused(void)
{
    ulfm_life_begins();
    world_comm_add();
    early_rndv_for_comm(0, 300, 1000);
    early_rndv_for_comm(2, 300, 1000);
    early_for_comm(3, 100);
    bfo_comm_of(world_comm[1])->is_marked = true; /* as by bfo_revoke_comm(), which Open MPI 4.1 has not */
    world_comm_remove();
    are_refused(2);
    is_in_use = false;
    early_rndv_for_comm(1, 300, 1000);
    are_refused(1);
    ulfm_life_ends();
}

/* The process is in no communicator that has the id here. */
static void stranger_is_refused(void)
{
    bfo_rndv_hdr_t h = {.msg_length = 1000, .src_id = 0x800000001u};

    ulfm_life_begins();
    world_comm_add();
    bfo_hdr_pack_match(&h.match, BFO_MSG_RNDV, 0, (uint16_t) world_comm[1]->c_contextid, 2, 4, 7);
    must(NULL != bfo_lane(bfo_comm_of(world_comm[1]), 2), "no lane");
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &h, sizeof(h), sizeof(h));
    are_refused(1);
    ulfm_life_ends();
}

void fuzz_early(void)
{
    late_messages_of_an_ended_communicator_are_refused();
    message_waits_while_its_id_is_agreed_on();
    messages_left_in_a_communicator_are_refused();
    stranger_is_refused();
    copy_does_not_pass_its_held_message();
    early_messages_wait_for_their_communicator((const uint32_t[]){0, 1, 2, 3, 4});
    early_messages_wait_for_their_communicator((const uint32_t[]){4, 3, 2, 1, 0});
    early_messages_wait_for_their_communicator((const uint32_t[]){2, 0, 4, 1, 3});
}
