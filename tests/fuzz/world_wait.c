/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * No rail to a peer is left: its requests wait for one, pml_bfo_last_rail_timeout. Rank 1 is reached by two rails with failover.
 * DESIGN.txt section 11.
 */
#define _GNU_SOURCE
#include "world_case.h"

#include "pml_bfo_failover_peer.h"
#include "pml_bfo_recv_api.h"
#include "pml_bfo_send_api.h"

void fuzz_progress(void);

enum { SHORT = 100, LONG = 8000, PATIENCE = 60 };

static char room[9000];

static bfo_peer_t *life_begins(int timeout)
{
    world_begin();
    bfo_params.rejoin = true;
    bfo_params.last_rail_timeout = timeout;
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    return peer_of_rank(1);
}

static void all_rails_fail(void)
{
    world_rail_fails(&world_btl[0]);
    world_rail_fails(&world_btl[1]);
}

/* Everything that was posted comes back with an error. */
static void fences_end(void)
{
    while (0 != world_fences()) {
        world_fence_done(0, false);
    }
    must(0 == world_posted(), "something is still posted");
}

static ompi_request_t *send_start(size_t size, mca_pml_base_send_mode_t mode)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_isend(room, size, &ompi_mpi_byte.dt, 1, 7, mode, world_comm[0], &request), "a send does not start");
    return request;
}

static ompi_request_t *recv_start(size_t size)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_irecv(room, size, &ompi_mpi_byte.dt, 1, 7, world_comm[0], &request), "a receive does not start");
    return request;
}

/* As if so many seconds had passed. */
static void time_passes(bfo_peer_t *peer, unsigned seconds)
{
    must(0 != peer->waits_since, "the peer is not waited for");
    peer->waits_since -= 1000u * seconds;
    fuzz_progress();
}

static void last_rail_is_waited_for(void)
{
    bfo_peer_t *peer = life_begins(PATIENCE);

    all_rails_fail();
    must(!peer->declared, "a peer is declared although its rails may return");
    must(0 != peer->waits_since && 1 == bfo.n_waits && 1 == bfo_local_stat(BFO_STAT_PEERS_WAITED), "the wait is not counted");
    fences_end();
    world_rail_returns(&world_btl[1]);
    must(0 == peer->waits_since && 0 == bfo.n_waits && 2 == peer->send_mask, "the wait does not end");
    world_rail_fails(&world_btl[1]);
    must(!peer->declared && 1 == bfo.n_waits, "the next time it is not waited for");
}

static void nobody_waits_unless_that_is_asked_for(void)
{
    bfo_peer_t *peer = life_begins(0);

    all_rails_fail();
    must(peer->declared && 0 == bfo.n_waits, "a peer without a rail is not declared");
}

/* The peer may have ended the last rail in favour of a rail that is still in its proof here. DESIGN.txt 10.2. */
static void rail_in_its_proof_is_waited_for(void)
{
    bfo_peer_t *peer = life_begins(0);

    world_rail_fails(&world_btl[0]);
    fences_end();
    world_btl[0].returns = true;
    world_rail_fails(&world_btl[1]);
    must(!peer->declared && 1 == bfo.n_waits, "a peer is declared although a rail to it is in its proof");
    fences_end();
    (void) send_start(SHORT, MCA_PML_BASE_SEND_SYNCHRONOUS);
    time_passes(peer, 14);
    must(!peer->declared && 0 == world_posted(), "the wait for a proof ends early");
    world_rail_returns_unheard(&world_btl[0]);
    fuzz_progress();
    must(!peer->declared, "a proof that has just succeeded is taken for a failure");
    world_btl[0].ext.rail_restored(&world_btl[0].super, &world_proc[1]->super, 0, world_btl[0].gen);
    fuzz_progress();
    must(0 == bfo.n_waits && 1 == peer->send_mask && 1 == world_posted(), "the rail is not used after its proof");
}

static void proof_that_fails_ends_the_wait(void)
{
    bfo_peer_t *peer = life_begins(0);

    world_rail_fails(&world_btl[0]);
    fences_end();
    world_btl[0].returns = true;
    world_rail_fails(&world_btl[1]);
    fences_end();
    must(!peer->declared, "a peer is declared although a rail to it is in its proof");
    world_btl[0].returns = false;
    fuzz_progress();
    must(peer->declared && 0 == bfo.n_waits, "the wait goes on after the proof has failed");
}

/* Short and long, started in the meantime. */
static void sends_of_the_meantime_go_afterwards(void)
{
    bfo_peer_t *peer = life_begins(PATIENCE);

    all_rails_fail();
    fences_end();
    (void) send_start(SHORT, MCA_PML_BASE_SEND_STANDARD);
    (void) send_start(SHORT, MCA_PML_BASE_SEND_SYNCHRONOUS);
    (void) send_start(LONG, MCA_PML_BASE_SEND_STANDARD);
    fuzz_progress();
    must(0 == world_posted() && 3 == bfo.n_pending && !peer->declared, "three sends do not wait");
    world_rail_returns(&world_btl[0]);
    fuzz_progress();
    must(3 == world_posted() && 0 == bfo.n_pending, "three sends do not go when a rail is back");
    for (unsigned i = 0; i < 3; ++i) {
        must(&world_btl[0] == world_btl_of(i) && i == ((const bfo_match_hdr_t *) world_posted_message(i))->seq, "they go in another order");
    }
}

/* On both rails, of all kinds that are sent again without a dance. */
static void what_was_under_way_goes_again(void)
{
    bfo_peer_t *peer = life_begins(PATIENCE);
    ompi_request_t *sync;

    (void) send_start(SHORT, MCA_PML_BASE_SEND_STANDARD);
    sync = send_start(SHORT, MCA_PML_BASE_SEND_SYNCHRONOUS);
    (void) send_start(LONG, MCA_PML_BASE_SEND_STANDARD);
    must(3 == world_posted(), "three sends are not under way");
    all_rails_fail();
    fences_end();
    fuzz_progress();
    must(0 == world_posted() && 3 == bfo.n_pending, "three messages do not wait");
    must(!peer->declared && !is_complete(sync), "the wait ends a request");
    world_rail_returns(&world_btl[1]);
    fuzz_progress();
    must(3 == world_posted() && 0 == bfo.n_pending, "three messages do not go again");
}

/* The fence still hands up what had arrived. */
static void answers_wait_too(void)
{
    bfo_peer_t *peer = life_begins(PATIENCE);
    bfo_rndv_hdr_t rndv = {.match = {.type = BFO_MSG_RNDV, .ctx = (uint16_t) BFO_OMPI_CTX_OF(world_comm[0]), .src = 1, .tag = 7, .seq = 0},
                           .msg_length = LONG, .src_id = 0x700000001u};

    (void) recv_start(LONG);
    bfo_params.use_put = false;
    all_rails_fail();
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    must(!peer->declared && 0 == world_posted() && 0 != bfo.n_pending + peer->fencing, "the answer does not wait");
    fences_end();
    fuzz_progress();
    world_rail_returns(&world_btl[0]);
    fuzz_progress();
    must(1 == world_posted() && !peer->declared, "the answer, or the begin of a restart, does not go when a rail is back");
}

static void wait_ends_in_time(void)
{
    bfo_peer_t *peer = life_begins(PATIENCE);
    ompi_request_t *send, *recv;

    recv = recv_start(SHORT);
    all_rails_fail();
    fences_end();
    send = send_start(SHORT, MCA_PML_BASE_SEND_SYNCHRONOUS);
    time_passes(peer, PATIENCE - 10);
    must(!peer->declared && !is_complete(send) && !is_complete(recv), "the wait ends early");
    time_passes(peer, 10);
    must(peer->declared && 0 == bfo.n_waits, "the wait does not end");
    fuzz_progress();
    must(is_complete(send) && MPI_ERR_OTHER == send->req_status.MPI_ERROR, "a send does not end with the wait");
    must(is_complete(recv) && MPI_ERR_OTHER == recv->req_status.MPI_ERROR, "a receive does not end with the wait");
    must(0 == bfo.n_pending, "work of a declared peer waits");
    world_rail_returns(&world_btl[0]);
    must(0 == peer->send_mask && 0 == bfo.n_waits, "a declared peer is used");
}

static void wait_without_end_has_one_at_finalize(void)
{
    bfo_peer_t *peer = life_begins(-1);

    all_rails_fail();
    fences_end();
    (void) send_start(SHORT, MCA_PML_BASE_SEND_SYNCHRONOUS);
    time_passes(peer, 400);
    must(!peer->declared, "a wait without end ends");
    bfo_failover_flush();
    must(peer->declared && 0 == bfo.n_pending, "MPI_Finalize does not give up");
}

/* Nothing is owed to the peer: it may have gone long ago. */
static void finalize_does_not_wait_for_a_rail_that_nobody_needs(void)
{
    bfo_peer_t *peer = life_begins(-1);

    (void) recv_start(SHORT);
    all_rails_fail();
    fences_end();
    bfo_failover_flush();
    must(!peer->declared && 1 == bfo.n_waits, "the end of the program is no end of the wait");
}

/* The message was offered for reading while one of two rails was lost; then the other one is lost, and the first comes back. */
static void message_is_offered_by_a_rail_that_was_away(void)
{
    bfo_peer_t *peer;

    world_begin();
    bfo_params.rejoin = true;
    bfo_params.last_rail_timeout = PATIENCE;
    bfo_params.use_put = false;
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    peer = peer_of_rank(1);
    world_rail_fails(&world_btl[0]);
    fences_end();
    (void) send_start(LONG, MCA_PML_BASE_SEND_STANDARD);
    must(1 == world_posted() && 0 <= world_find(BFO_MSG_RGET), "the message is not offered for reading");
    world_rail_fails(&world_btl[1]);
    fences_end();
    world_rail_returns(&world_btl[0]);
    fuzz_progress();
    must(!peer->declared && 1 == world_posted() && 0 <= world_find(BFO_MSG_RGET), "it is not offered again");
    must(&world_btl[0] == world_btl_of(0), "it goes by a rail that is lost");
}

static const world_case_t cases[] = {
    {"last_rail_is_waited_for", last_rail_is_waited_for},
    {"nobody_waits_unless_that_is_asked_for", nobody_waits_unless_that_is_asked_for},
    {"rail_in_its_proof_is_waited_for", rail_in_its_proof_is_waited_for},
    {"proof_that_fails_ends_the_wait", proof_that_fails_ends_the_wait},
    {"sends_of_the_meantime_go_afterwards", sends_of_the_meantime_go_afterwards},
    {"what_was_under_way_goes_again", what_was_under_way_goes_again},
    {"answers_wait_too", answers_wait_too},
    {"wait_ends_in_time", wait_ends_in_time},
    {"wait_without_end_has_one_at_finalize", wait_without_end_has_one_at_finalize},
    {"finalize_does_not_wait_for_a_rail_that_nobody_needs", finalize_does_not_wait_for_a_rail_that_nobody_needs},
    {"message_is_offered_by_a_rail_that_was_away", message_is_offered_by_a_rail_that_was_away},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
