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

void fuzz_early(void)
{
    copy_does_not_pass_its_held_message();
    early_messages_wait_for_their_communicator((const uint32_t[]){0, 1, 2, 3, 4});
    early_messages_wait_for_their_communicator((const uint32_t[]){4, 3, 2, 1, 0});
    early_messages_wait_for_their_communicator((const uint32_t[]){2, 0, 4, 1, 3});
}
