/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Effects of the PML's parameters that no test over rails can see: how much of a message is posted at a time, in which
 * pieces, by which protocol, and where early messages are kept. fuzz_dispatch runs this at its start. DESIGN.txt section 14.8.
 */
#include "fuzz_must.h"
#include "fuzz_world.h"

#include "door/pml_bfo_recv_api.h"
#include "door/pml_bfo_send_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char room[9000];

/* Rank 1 has two rails. */
static bfo_peer_t *life_begins(void)
{
    bfo_peer_t *peer;

    world_begin();
    peer = bfo_peer_get(world_proc[1]);
    must(OMPI_SUCCESS == bfo_peer_connect(peer), "no rails");
    return peer;
}

static void life_ends(ompi_request_t *request)
{
    world_drain();
    must(REQUEST_COMPLETED == request->req_complete, "a request does not end");
    request->req_free(&request);
    world_end();
}

static const bfo_hdr_t *posted(unsigned n)
{
    return world_posted_message(n);
}

static unsigned posted_of(uint8_t type)
{
    unsigned n = 0;

    for (unsigned i = 0; i < world_posted(); ++i) {
        n += type == posted(i)->common.type;
    }
    return n;
}

static ompi_request_t *send_start(size_t length)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_isend(room, length, &ompi_mpi_byte.dt, 1, 3, MCA_PML_BASE_SEND_SYNCHRONOUS, world_comm[0], &request),
         "a send does not start");
    return request;
}

/* ---- how much at a time ------------------------------------------------------------------------------ */

static void fragments_at_a_time(unsigned depth)
{
    ompi_request_t *request;
    bfo_send_t *req;
    bfo_ack_hdr_t ack;

    bfo_params.send_pipeline_depth = depth;
    bfo_params.use_put = bfo_params.use_get = false;
    (void) life_begins();
    request = send_start(sizeof(room));
    req = (bfo_send_t *) request;
    world_complete(0, OPAL_SUCCESS);
    bfo_hdr_pack_ack(&ack, 0, bfo_name_id(&req->name), 0x700000001u, req->rts_length, sizeof(room) - req->rts_length);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_ACK), &ack, sizeof(ack), sizeof(ack));
    must(2 * depth == posted_of(BFO_MSG_FRAG), "send_pipeline_depth is not the number of FRAGs per rail");
    world_complete(0, OPAL_SUCCESS);
    must(2 * depth == posted_of(BFO_MSG_FRAG), "the next FRAG does not follow");
    life_ends(request);
    bfo_params.use_put = bfo_params.use_get = true;
    bfo_params.send_pipeline_depth = 3;
}

/* A receive posts as many PUTs as recv_pipeline_depth allows, and none longer than frag_size. */
static void puts_at_a_time(unsigned depth, unsigned longest)
{
    bfo_rndv_hdr_t rndv = {.msg_length = sizeof(room), .src_id = 0x800000001u};
    ompi_request_t *request = NULL;

    bfo_params.recv_pipeline_depth = depth;
    bfo_params.frag_size = longest;
    (void) life_begins();
    must(OMPI_SUCCESS == bfo_irecv(room, sizeof(room), &ompi_mpi_byte.dt, 1, 6, world_comm[0], &request), "no receive");
    bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, BFO_FLAG_PIN | BFO_FLAG_CONTIG, 0, 1, 6, 0);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    must(2 * depth == posted_of(BFO_MSG_PUT), "recv_pipeline_depth is not the number of PUTs per rail");
    for (unsigned i = 0; i < world_posted(); ++i) {
        const uint64_t size = posted(i)->put.dst_size;

        must((0 == longest ? 1500 : longest) == size, "a PUT is not as long as frag_size says");
    }
    life_ends(request);
    bfo_params.frag_size = 0;
    bfo_params.recv_pipeline_depth = 4;
}

/* A rail is lost with its messages: `burst` of them are sent again at once, and `burst` more in each call of progress. */
static void resends_at_a_time(unsigned burst)
{
    enum { N = 20 };
    ompi_request_t *request[N];
    unsigned lost = 0, n;

    bfo_params.resend_burst = burst;
    (void) life_begins();
    for (n = 0; n < N; ++n) {
        request[n] = send_start(100);
    }
    must(N == world_posted(), "a message is not posted");
    for (n = 0; n < N; ++n) { /* messages that are sent again are posted after the others */
        const bool fails = world_btl_of(0) == &world_btl[0];

        lost += fails;
        world_complete(0, fails ? OPAL_ERROR : OPAL_SUCCESS);
    }
    must(lost > 2 * burst && burst == world_posted(), "resend_burst is not the number of messages sent again at once");
    fuzz_progress();
    must(2 * burst == world_posted(), "resend_burst is not the number of messages sent again in a call of progress");
    for (n = 0; n < 2 * N; ++n) {
        fuzz_progress();
    }
    must(lost == world_posted(), "a message that was lost is not sent again");
    world_drain();
    for (n = 0; n < N; ++n) {
        request[n]->req_free(&request[n]);
    }
    world_end();
    bfo_params.resend_burst = 64;
}

/* ---- which protocol ---------------------------------------------------------------------------------- */

static uint8_t type_of_first(size_t length)
{
    ompi_request_t *request = NULL;
    uint8_t type;

    (void) life_begins();
    must(OMPI_SUCCESS == bfo_isend_init(room, length, &ompi_mpi_byte.dt, 1, 3, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "no request");
    must(OMPI_SUCCESS == bfo_send_restart(&request) && 1 == world_posted(), "a send does not start");
    type = posted(0)->common.type;
    life_ends(request);
    return type;
}

static bool is_pinned(size_t length)
{
    ompi_request_t *request;
    bool pinned;

    (void) life_begins();
    request = send_start(length);
    pinned = 0 != (posted(0)->common.flags & BFO_FLAG_PIN);
    life_ends(request);
    return pinned;
}

static void protocol_by_length(void)
{
    must(BFO_MSG_MATCH == type_of_first(496) && BFO_MSG_RGET == type_of_first(497), "the PML does not use the BTLs' eager limit");
    bfo_params.eager_limit = 128;
    must(BFO_MSG_MATCH == type_of_first(112) && BFO_MSG_RGET == type_of_first(113), "eager_limit has no effect");
    bfo_params.eager_limit = 0;
    bfo_params.rdma_min = 2000;
    must(BFO_MSG_RNDV == type_of_first(1999) && BFO_MSG_RGET == type_of_first(2000), "rdma_min has no effect");
    bfo_params.use_get = false;
    must(!is_pinned(1999) && is_pinned(2000), "rdma_min has no effect on PUTs");
    bfo_params.rdma_min = 0;
    must(is_pinned(1999), "rdma_min of 0 does not leave the choice to the BTLs");
    must(BFO_MSG_RNDV == type_of_first(2000), "a buffer is offered for READs although they are off");
    bfo_params.use_put = false;
    must(BFO_MSG_RNDV == type_of_first(2000) && !is_pinned(2000), "use_put has no effect");
    bfo_params.use_get = true;
    must(BFO_MSG_RGET == type_of_first(2000), "no READ although WRITE is off");
    bfo_params.use_put = true;
}

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Is a message of this length (with its header) kept in an element of the list while it waits for its communicator? */
static bool is_kept_in_element(size_t length)
{
    const bfo_unexpected_frag_t *g;
    union {
        bfo_match_hdr_t h;
        char bytes[2000];
    } message = {.bytes = ""};
    bool is;

    world_begin();
    bfo_hdr_pack_match(&message.h, BFO_MSG_MATCH, 0, (uint16_t) world_comm[1]->c_contextid, 1, 4, 0);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_MATCH), &message, length, length);
    must(!bfo_link_is_empty(&bfo.orphans), "a message does not wait for its communicator");
    g = bfo_container(bfo.orphans.next, bfo_unexpected_frag_t, link);
    is = g->data == g->room;
    world_drain();
    world_end();
    return is;
}

static void unexpected_limit(unsigned limit)
{
    bfo_params.unexpected_limit = limit;
    must(is_kept_in_element(limit) && !is_kept_in_element(limit + 1), "unexpected_limit has no effect");
    bfo_params.unexpected_limit = 512;
}

static void requests_at_a_time(int first, int more)
{
    const int num = bfo_params.free_list_num, inc = bfo_params.free_list_inc;
    ompi_request_t *request[64];
    int n = 0;

    bfo_params.free_list_num = first;
    bfo_params.free_list_inc = more;
    (void) life_begins();
    must((size_t) first == mca_pml_base_recv_requests.fl_num_allocated, "free_list_num has no effect");
    while ((size_t) first == mca_pml_base_recv_requests.fl_num_allocated && n < 64) {
        must(OMPI_SUCCESS == bfo_irecv_init(room, 1, &ompi_mpi_byte.dt, 1, 6, world_comm[0], &request[n++]), "no request");
    }
    must((size_t) (first + more) == mca_pml_base_recv_requests.fl_num_allocated, "free_list_inc has no effect");
    while (n-- > 0) {
        request[n]->req_free(&request[n]);
    }
    world_drain();
    world_end();
    bfo_params.free_list_num = num;
    bfo_params.free_list_inc = inc;
}

void fuzz_params(void)
{
    fragments_at_a_time(1);
    fragments_at_a_time(3);
    puts_at_a_time(1, 0);
    puts_at_a_time(2, 1024);
    resends_at_a_time(2);
    resends_at_a_time(4);
    protocol_by_length();
    unexpected_limit(64);
    unexpected_limit(700);
    requests_at_a_time(7, 3);
    requests_at_a_time(2, 5);
}
