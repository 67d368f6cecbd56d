/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The user takes a port out of service while its rails work, and gives it back: which messages go over its rails, what both sides report
 * to each other, and what the user is shown. Two rails with failover reach rank 1. DESIGN.txt section 10.5.
 */
#define _GNU_SOURCE
#include "world_case.h"
#include "world_figures.h"

#include "failover/pml_bfo_failover.h"
#include "door/pml_bfo_recv_api.h"
#include "door/pml_bfo_send_api.h"
#include "send/pml_bfo_send_start.h"

#include "ompi/communicator/communicator.h"

enum { SHORT = 100, LONG = 8000 };

static char room[9000];
/* Checks the RAILS message that is posted: its rail (NULL: any) and its two masks; then it arrives. */
static void rails_go(const world_btl_t *by, unsigned names_out, unsigned names_quiet)
{
    const int n = world_find(BFO_MSG_RAILS);
    const bfo_rails_hdr_t *h;

    must(0 <= n, "no RAILS message is posted");
    h = world_posted_message((unsigned) n);
    must(NULL == by || by == world_btl_of((unsigned) n), "the RAILS message goes over another rail");
    must(names_out == h->out && names_quiet == h->quiet && 0 != h->number, "the RAILS message has other contents");
    world_complete((unsigned) n, OPAL_SUCCESS);
}

static void peer_says_all(uint32_t number, unsigned names_out, unsigned names_quiet, unsigned names_forced)
{
    const bfo_rails_hdr_t h = {.type = BFO_MSG_RAILS,
                               .out = (uint8_t) names_out,
                               .quiet = (uint8_t) names_quiet,
                               .number = number,
                               .jobid = 77,
                               .vpid = 1,
                               .forced = (uint8_t) names_forced};

    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_RAILS), &h, sizeof(h), sizeof(h));
    fuzz_progress();
}

static void peer_says(uint32_t number, unsigned names_out, unsigned names_quiet)
{
    peer_says_all(number, names_out, names_quiet, 0);
}

static bfo_send_t *send_start(size_t size)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_isend(room, size, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_SYNCHRONOUS, world_comm[0], &request),
         "a send does not start");
    return (bfo_send_t *) request;
}

/* A long message of the peer begins over rail 0, and its receive was posted before. */
static ompi_request_t *recv_begins(void)
{
    bfo_rndv_hdr_t rndv = {.msg_length = LONG, .src_id = 0x700000001u};
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_irecv(room, LONG, &ompi_mpi_byte.dt, 1, 7, world_comm[0], &request), "a receive does not start");
    bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, BFO_FLAG_PIN | BFO_FLAG_CONTIG, 0, 1, 7, 0);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    return request;
}

/* The rail has nothing in flight. This process reports that to the peer, and the peer reports the same. */
static void drain(const char *port)
{
    out(port);
    rails_go(&world_btl[1], 1, 0);
    fuzz_progress();
    fuzz_progress();
    rails_go(&world_btl[1], 1, 1);
    must(BFO_FIGURES_DRAINING == state_of(port), "a port is drained although the other side has not reported");
    peer_says(1, 0, 1);
    must(BFO_FIGURES_DRAINED == state_of(port), "a port is not drained although nothing is in flight");
}

static void port_that_is_out_carries_nothing_new(void)
{
    bfo_peer_t *peer = life_begins();

    drain("a:1");
    must(3 == peer->up_mask && 2 == peer->send_mask && 2 == peer->eager_mask && 2 == peer->put_mask, "its rail is in a mask");
    for (int i = 0; i < 4; ++i) {
        (void) send_start(0 == (i & 1) ? SHORT : LONG);
    }
    for (unsigned i = 0; i < world_posted(); ++i) {
        must(&world_btl[1] == world_btl_of(i), "its rail carries a message");
    }
    must(0 == bfo_local_stat(BFO_STAT_RAILS_LOST) && 0 == world_fences(), "its rail counts as lost");
    out(NULL);
    must(3 == peer->send_mask && 3 == peer->eager_mask, "its rail is not used after its return");
    must(BFO_FIGURES_UP == state_of("a:1"), "the port is not shown as given back");
    rails_go(NULL, 0, 0);
    fuzz_progress();
    must(0 > world_find(BFO_MSG_RAILS), "the peer gets a second RAILS message");
    life_ends();
}

/* A drained port costs nothing when messages are sent, but the timer still looks at it. */
static void what_is_drained_costs_nothing(void)
{
    bfo_peer_t *peer = life_begins();

    out("a:1");
    must(world_looks_at_ports(), "progress does not look at a port that stands out");
    rails_go(&world_btl[1], 1, 0);
    fuzz_progress();
    fuzz_progress();
    rails_go(&world_btl[1], 1, 1);
    fuzz_progress();
    must(!world_looks_at_ports(), "progress looks in each call although nothing is in flight here");
    world_rail_fails(&world_btl[1]); /* the rail that stands out serves again, therefore nothing has to end on it */
    world_fence_done(0, false);
    fuzz_progress();
    fuzz_progress();
    must(BFO_FIGURES_DRAINING == state_of("a:1") && !world_looks_at_ports(), "progress looks in each call although the rail is kept");
    (void) send_start(SHORT);
    must(&world_btl[0] == world_btl_of(0), "the last rail carries nothing");
    world_rail_returns(&world_btl[1]);
    must(2 == peer->send_mask, "its rail is in use although another rail is back");
    fuzz_progress();
    fuzz_progress();
    must(world_looks_at_ports(), "progress does not look at messages in flight on a rail that stands out again");
    life_ends();
}

/* The WRITE that the peer asked for over the drained rail, and the FIN after it. */
static void what_is_under_way_ends_where_it_began(void)
{
    bfo_peer_t *peer = life_begins();
    const bfo_send_t *req = send_start(LONG);

    world_complete(0, OPAL_SUCCESS);
    out("a:1");
    rails_go(&world_btl[1], 1, 0);
    must(2 == peer->send_mask, "new work may begin");
    world_put_comes(&world_btl[0], req, req->rts_length, 1000);
    must(1 == world_posted() && 0 == world_find(WORLD_PUT) && &world_btl[0] == world_btl_of(0), "the peer's PUT is not done");
    fuzz_progress();
    fuzz_progress();
    must(0 > world_find(BFO_MSG_RAILS), "a rail with a WRITE in flight counts as quiet");
    world_complete(0, OPAL_SUCCESS);
    must(0 == world_find(BFO_MSG_FIN) && &world_btl[0] == world_btl_of(0), "the FIN leaves the rail of its WRITE");
    must(0 == (((const bfo_fin_hdr_t *) world_posted_message(0))->fflags & BFO_FIN_RESENT), "the FIN counts as sent again");
    world_complete(0, OPAL_SUCCESS);
    fuzz_progress();
    fuzz_progress();
    rails_go(&world_btl[1], 1, 1);
    life_ends();
}

/* This process has asked the peer for data over the drained rail. */
static void data_that_was_asked_for_is_under_way(void)
{
    bfo_peer_t *peer = life_begins();
    int put;

    out("b:1"); /* so that the receive asks over rail 0 */
    rails_go(&world_btl[0], 2, 0);
    (void) recv_begins();
    put = world_find(BFO_MSG_PUT);
    must(0 <= put && &world_btl[0] == world_btl_of((unsigned) put), "no PUT goes over the remaining rail");
    out("a:1");
    while (0 <= (put = world_find(BFO_MSG_PUT)) || 0 <= (put = world_find(BFO_MSG_RAILS))) {
        world_complete((unsigned) put, OPAL_SUCCESS);
    }
    must(0 != world_open_puts() && 2 == peer->send_mask, "the PUT is forgotten");
    fuzz_progress();
    fuzz_progress();
    must(0 > world_find(BFO_MSG_RAILS), "a rail over which data is to come counts as quiet");
    life_ends();
}

static void last_rail_is_kept(void)
{
    bfo_peer_t *peer = life_begins();

    world_rail_fails(&world_btl[1]);
    world_fence_done(0, false);
    out("a:1");
    must(1 == peer->send_mask && !peer->declared, "the last rail is taken out of use");
    must(BFO_FIGURES_DRAINING == state_of("a:1"), "a port whose rail is still used is not shown as draining");
    (void) send_start(SHORT);
    must(0 <= world_find(BFO_MSG_RNDV) || 0 <= world_find(BFO_MSG_MATCH), "no message goes over the last rail");
    while (0 != world_posted()) {
        world_complete(0, OPAL_SUCCESS);
    }
    world_rail_returns(&world_btl[1]);
    must(2 == peer->send_mask, "the port does not stand out although there is another rail");
    life_ends();
}

/* ---- by force ---------------------------------------------------------------------------------------- */

enum { PATIENCE = 60 };

/* Rail 0 is the last one. */
static bfo_peer_t *life_begins_with_one_rail(int timeout)
{
    bfo_peer_t *peer = life_begins();

    bfo_params.last_rail_timeout = timeout;
    world_rail_fails(&world_btl[1]);
    world_fence_done(0, false);
    return peer;
}

/* The last rail has nothing in flight. This process reports that to the peer over that rail, and the peer reports the same. */
static void drain_by_force(bfo_peer_t *peer)
{
    take_out("a:1", true);
    must(1 == ((const bfo_rails_hdr_t *) world_posted_message((unsigned) world_find(BFO_MSG_RAILS)))->forced, "the peer does not hear of the force");
    rails_go(&world_btl[0], 1, 0);
    must(0 == peer->send_mask && 1 == peer->up_mask && !peer->declared, "the last rail is used, or the peer is given up");
    must(0 != peer->waits_since && 1 == figures->peers_waited_for, "the peer is not waited for");
    fuzz_progress();
    fuzz_progress();
    peer_says(1, 0, 1);
    must(BFO_FIGURES_DRAINING == state_of("a:1"), "a port is drained although a report is in flight on its rail");
    rails_go(&world_btl[0], 1, 1);
    for (unsigned i = 0; i < 3; ++i) {
        fuzz_progress();
    }
    must(0 == world_posted() && BFO_FIGURES_DRAINED == state_of("a:1"), "the last rail is not drained, or its reports never end");
}

static void last_rail_is_drained_by_force(void)
{
    bfo_peer_t *peer = life_begins_with_one_rail(PATIENCE);

    drain_by_force(peer);
    (void) send_start(SHORT);
    (void) send_start(LONG);
    fuzz_progress();
    fuzz_progress();
    must(0 == world_posted() && 2 == bfo.n_pending, "a rail that is drained by force carries a message, or a message is forgotten");
    must(BFO_FIGURES_DRAINED == state_of("a:1"), "messages that wait for the release count as in flight");
    must(world_btl[0].stands_out && !world_btl[1].stands_out, "the BTL does not hear which rail stands out");
    out(NULL);
    must(!world_btl[0].stands_out, "the BTL does not hear of the release");
    must(1 == peer->send_mask && 0 == peer->waits_since && 0 == figures->peers_waited_for, "the wait does not end with the release");
    rails_go(&world_btl[0], 0, 0);
    fuzz_progress();
    must(2 == world_posted() && 0 == bfo.n_pending && 0 == bfo_local_stat(BFO_STAT_RESENDS), "the messages do not go after the release");
    life_ends();
}

/* The peer asks for a WRITE before it hears of the force, and the rail has no room at first. */
static void what_is_under_way_ends_in_spite_of_force(void)
{
    bfo_peer_t *peer = life_begins_with_one_rail(PATIENCE);
    const bfo_send_t *req = send_start(LONG);

    world_complete(0, OPAL_SUCCESS);
    take_out("a:1", true);
    rails_go(&world_btl[0], 1, 0);
    (void) send_start(SHORT);
    must(1 == bfo.n_pending && 0 == world_posted(), "a new message does not wait");
    world_refuse_busy = 1;
    world_put_comes(&world_btl[0], req, req->rts_length, 1000);
    must(2 == bfo.n_pending && 0 == world_posted(), "the WRITE does not wait for room");
    fuzz_progress();
    must(1 == bfo.n_pending && 0 == world_find(WORLD_PUT), "the WRITE that has begun waits for the release, or the new message does not");
    fuzz_progress();
    fuzz_progress();
    must(0 > world_find(BFO_MSG_RAILS), "a rail with a WRITE in flight counts as quiet");
    world_complete(0, OPAL_SUCCESS);
    must(0 == world_find(BFO_MSG_FIN) && &world_btl[0] == world_btl_of(0), "the FIN after the WRITE waits");
    world_complete(0, OPAL_SUCCESS);
    fuzz_progress();
    fuzz_progress();
    rails_go(&world_btl[0], 1, 1);
    must(!peer->declared && 0 == bfo_local_stat(BFO_STAT_RESENDS), "something is sent again");
    life_ends();
}

/* The PUT that is posted arrives over rail 0, and the peer writes. Returns the end of the bytes that it asked for. */
static size_t put_is_served(size_t from, bfo_fin_hdr_t *fin)
{
    const bfo_match_hdr_t message = {.src = 1, .tag = 7};
    const int n = world_find(BFO_MSG_PUT);
    bfo_put_hdr_t put;

    must(0 <= n && 1 == world_open_puts() && &world_btl[0] == world_btl_of((unsigned) n),
         "not one PUT is open, or it goes over a rail that cannot write");
    memcpy(&put, world_posted_message((unsigned) n), sizeof(put));
    must(from == put.rdma_offset, "the PUT asks for other bytes");
    world_complete((unsigned) n, OPAL_SUCCESS);
    memset((void *) (uintptr_t) put.dst_ptr, 'w', put.dst_size);
    bfo_hdr_pack_fin(fin, 0, BFO_FIN_WRITE, put.frag_id, put.dst_size, &message);
    return from + put.dst_size;
}

/* The receive asks for one WRITE after the other, and only rail 0 can write. The peer drains both rails after the first PUT, and rail 1 is
 * lost after the second PUT. */
static void receive_that_has_begun_is_written_in_spite_of_force(void)
{
    bfo_peer_t *peer;
    ompi_request_t *recv;
    bfo_fin_hdr_t fin;
    size_t from = 0;

    world_btl[1].super.btl_put = NULL;
    bfo_params.recv_pipeline_depth = 1;
    bfo_params.last_rail_timeout = PATIENCE;
    peer = life_begins();
    recv = recv_begins();
    while (from < LONG) {
        must(!is_complete(recv), "a receive is complete before its bytes are there");
        from = put_is_served(from, &fin);
        if (3 == peer->send_mask) {
            peer_says_all(1, 3, 0, 3);
            must(0 == peer->send_mask && 3 == peer->up_mask, "a rail that the peer drains by force gets new work");
        } else if (3 == peer->up_mask) {
            world_rail_fails(&world_btl[1]);
        }
        world_receive(&world_btl[0], BFO_TAG(BFO_MSG_FIN), &fin, sizeof(fin), sizeof(fin));
    }
    must(is_well(recv) && room[0] == 'w' && 0 == memcmp(room, room + 1, LONG - 1), "a receive that has begun does not end with its bytes");
    must(!peer->declared && 0 == world_open_puts() && 0 > world_find(BFO_MSG_PUT), "the peer is declared, or asked for more than the message");
    life_ends();
}

static void peer_drains_its_last_rail_by_force(void)
{
    bfo_peer_t *peer = life_begins();

    bfo_params.last_rail_timeout = PATIENCE;
    peer_says_all(1, 3, 0, 3);
    must(0 == peer->send_mask && 0 != peer->waits_since && !peer->declared, "rails are used that the peer drains by force");
    must(world_btl[0].stands_out && world_btl[1].stands_out, "the BTL does not hear what the peer drains");
    fuzz_progress();
    fuzz_progress();
    rails_go(&world_btl[0], 0, 3);
    (void) send_start(SHORT);
    must(0 == world_posted(), "a rail carries a message although the peer drains it by force");
    peer_says_all(2, 3, 0, 1);
    fuzz_progress();
    must(2 == peer->send_mask && 0 == peer->waits_since && 0 == bfo.n_pending && 0 != world_posted(),
         "a rail that stands out without force is not used as the last one");
    must(world_btl[0].stands_out && !world_btl[1].stands_out, "a rail that may serve as the last one is no rail to the BTL");
    life_ends();
}

static void force_waits_no_longer_than_for_a_lost_rail(void)
{
    bfo_peer_t *peer = life_begins_with_one_rail(PATIENCE);

    drain_by_force(peer);
    peer->waits_since -= 1000u * (PATIENCE - 10);
    fuzz_progress();
    must(!peer->declared, "the wait ends early");
    peer->waits_since -= 1000u * 10;
    fuzz_progress();
    must(peer->declared && 0 == bfo.n_waits, "the wait has no end");
    life_ends();
}

/* Without patience the last rail is kept: force must not fail what could go on. */
static void force_without_patience_keeps_the_last_rail(void)
{
    bfo_peer_t *peer = life_begins_with_one_rail(0);

    take_out("a:1", true);
    must(1 == peer->send_mask && !peer->declared && 0 == bfo.n_waits, "the last rail is taken although nobody waits for rails");
    must(BFO_FIGURES_DRAINING == state_of("a:1"), "a port whose rail is still used is not shown as draining");
    life_ends();
}

/* The cable is pulled and comes back: the rail still stands out, and the wait goes on. The other rail ends the wait. */
static void loss_while_drained_by_force_leaves_it_drained(void)
{
    bfo_peer_t *peer = life_begins_with_one_rail(PATIENCE);
    uint64_t since;

    drain_by_force(peer);
    (void) send_start(SHORT);
    since = peer->waits_since;
    world_rail_fails(&world_btl[0]);
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    fuzz_progress();
    must(1 == peer->up_mask && 0 == peer->send_mask && since == peer->waits_since, "a rail is used because it was lost, or the wait begins again");
    must(0 > world_find(BFO_MSG_MATCH) && 1 == figures->peers_waited_for, "a rail that returned carries a message although it stands out");
    world_rail_returns(&world_btl[1]);
    fuzz_progress();
    must(2 == peer->send_mask && 0 == peer->waits_since && 0 == bfo.n_pending, "another rail that returns does not end the wait");
    life_ends();
}

/* The process has computed since the user gave the port back: it learns of that only when the time for the wait has passed. */
static void release_while_the_process_computes_ends_the_wait(void)
{
    bfo_peer_t *peer = life_begins_with_one_rail(PATIENCE);

    drain_by_force(peer);
    steer->sequence += 1;
    steer->n_out = 0;
    steer->sequence += 1;
    peer->waits_since -= 1000u * (PATIENCE + 10);
    fuzz_progress();
    must(!peer->declared && 0 == bfo.n_waits && 1 == peer->send_mask, "a port that was given back in time costs its peer");
    life_ends();
}

/* ---- rails that seem silent ---------------------------------------------------------------------------- */

/* The BTL finds that the rail seems silent, or that it answers again; false: the PML does not obey. */
static bool seems_silent(unsigned rail, bool is_silent)
{
    return world_btl[rail].ext.rail_soft(&world_btl[rail].super, &world_proc[1]->super, (uint8_t) rail, 0, is_silent);
}

/* The other rail is soft too, stands out here or at the peer, or is lost. */
static void last_rail_that_does_not_seem_silent_is_kept(void)
{
    bfo_peer_t *peer = life_begins();

    must(seems_silent(0, true) && 2 == peer->send_mask, "a rail that seems silent gets new work");
    must(!seems_silent(1, true) && 1 == peer->soft && 2 == peer->send_mask, "all rails are soft");
    must(seems_silent(0, false) && 3 == peer->send_mask, "a rail that answers again gets no new work");
    drain("a:1");
    must(!seems_silent(1, true) && 0 == peer->soft && 2 == peer->send_mask, "a rail is soft although the other one stands out");
    out(NULL);
    peer_says(2, 1, 0);
    must(!seems_silent(1, true) && 0 == peer->soft && 2 == peer->send_mask, "a rail is soft although the other one stands out at the peer");
    peer_says(3, 0, 0);
    must(seems_silent(1, true) && 1 == peer->send_mask && seems_silent(1, false), "a rail that seems silent gets new work after the release");
    world_rail_fails(&world_btl[0]);
    must(!seems_silent(1, true) && 0 == peer->soft && 2 == peer->send_mask, "the last rail is soft");
    life_ends();
}

/* The first message began before the rail seemed silent, the second message after. */
static void put_over_a_rail_that_seems_silent_is_served_there(void)
{
    bfo_peer_t *peer;

    bfo_params.use_get = false;
    peer = life_begins();
    for (int i = 0; i < 2; ++i) {
        const bfo_send_t *req = send_start(LONG);

        must(1 == world_posted() && (0 == i || &world_btl[1] == world_btl_of(0)), "a message begins on a rail that seems silent");
        world_complete(0, OPAL_SUCCESS);
        must(0 != i || seems_silent(0, true), "a rail does not become soft");
        must(2 == peer->send_mask && 3 == peer->up_mask, "another rail is in use");
        world_put_comes(&world_btl[0], req, req->rts_length, 1000);
        must(1 == world_posted() && 0 == world_find(WORLD_PUT) && &world_btl[0] == world_btl_of(0), "the PUT is not served on its rail");
        world_complete(0, OPAL_SUCCESS);
        must(1 == world_posted() && 0 == world_find(BFO_MSG_FIN) && &world_btl[0] == world_btl_of(0), "the FIN leaves the rail of its WRITE");
        must(0 == (((const bfo_fin_hdr_t *) world_posted_message(0))->fflags & BFO_FIN_RESENT), "the FIN counts as sent again");
        world_complete(0, OPAL_SUCCESS);
    }
    must(0 == bfo_local_stat(BFO_STAT_RESENDS) && !peer->foreign_puts, "a message is restarted, or later messages offer no PUT");
    life_ends();
}

/* ---- losses, other reports --------------------------------------------------------------- */

static void rail_that_is_drained_serves_when_the_other_is_lost(void)
{
    bfo_peer_t *peer = life_begins();

    drain("a:1");
    world_rail_fails(&world_btl[1]);
    must(!peer->declared && 1 == peer->send_mask, "a peer is given up although a drained rail reaches it");
    fuzz_progress();
    must(BFO_FIGURES_DRAINING == state_of("a:1"), "a port whose rail serves is shown as drained");
    life_ends();
}

static void loss_while_drained_leaves_it_drained(void)
{
    bfo_peer_t *peer = life_begins();

    drain("a:1");
    world_rail_fails(&world_btl[0]);
    must(2 == peer->up_mask && 2 == peer->send_mask, "a drained rail is not lost");
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    must(3 == peer->up_mask && 2 == peer->send_mask, "a drained rail is used because it was lost");
    out(NULL);
    must(3 == peer->send_mask, "a drained rail is not used after its return");
    life_ends();
}

/* The rail fails before the WRITE that the peer asked for has ended. */
static void loss_while_draining_leaves_it_drained(void)
{
    bfo_peer_t *peer;
    const bfo_send_t *req;

    bfo_params.use_get = false;
    peer = life_begins();
    req = send_start(LONG);
    world_complete(0, OPAL_SUCCESS);
    out("a:1");
    rails_go(&world_btl[1], 1, 0);
    world_put_comes(&world_btl[0], req, req->rts_length, 1000);
    must(1 == world_posted() && 0 == world_find(WORLD_PUT), "the peer's PUT is not done");
    must(BFO_FIGURES_DRAINING == state_of("a:1"), "a port with a WRITE in flight is drained");
    world_rail_fails(&world_btl[0]);
    world_complete(0, OPAL_ERROR);
    must(2 == peer->up_mask && 2 == peer->send_mask && !peer->declared, "a rail is not lost because it drains");
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    must(3 == peer->up_mask && 2 == peer->send_mask, "a rail that was being drained is used because it was lost");
    for (unsigned i = 0; i < world_posted(); ++i) {
        must(&world_btl[1] == world_btl_of(i), "the restart goes over a rail that stands out");
    }
    out(NULL);
    must(3 == peer->send_mask, "a drained rail is not used after its return");
    life_ends();
}

static void peers_port_stands_out(void)
{
    bfo_peer_t *peer = life_begins();
    bfo_rails_hdr_t odd = {.type = BFO_MSG_RAILS, .out = 1, .number = 9, .jobid = 78, .vpid = 1};

    peer_says(5, 2, 0);
    must(1 == peer->send_mask, "a rail whose port stands out at the peer is used");
    must(BFO_FIGURES_UP == state_of("b:1"), "our port is shown as taken out of service");
    fuzz_progress();
    fuzz_progress();
    rails_go(&world_btl[0], 0, 2);
    peer_says(4, 0, 0);
    must(1 == peer->send_mask, "an older report counts");
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RAILS), &odd, sizeof(odd), sizeof(odd));
    fuzz_progress();
    must(1 == peer->send_mask, "the report of another job counts");
    peer_says(6, 0, 0);
    must(3 == peer->send_mask, "a port that the peer gave back is not used");
    rails_go(NULL, 0, 0);
    life_ends();
}

static void word_that_is_lost_is_said_again(void)
{
    bfo_peer_t *peer = life_begins();

    world_rail_fails(&world_btl[0]); /* so that the report goes over rail 1 */
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    out("a:1");
    must(0 <= world_find(BFO_MSG_RAILS) && &world_btl[1] == world_btl_of((unsigned) world_find(BFO_MSG_RAILS)), "the report goes over another rail");
    world_complete((unsigned) world_find(BFO_MSG_RAILS), OPAL_ERROR);
    must(!peer->declared && 1 == peer->up_mask, "the rail that lost the report is not lost, or the peer is declared");
    fuzz_progress();
    rails_go(&world_btl[0], 1, 1);
    life_ends();
}

static const world_case_t cases[] = {
    {"port_that_is_out_carries_nothing_new", port_that_is_out_carries_nothing_new},
    {"what_is_drained_costs_nothing", what_is_drained_costs_nothing},
    {"what_is_under_way_ends_where_it_began", what_is_under_way_ends_where_it_began},
    {"data_that_was_asked_for_is_under_way", data_that_was_asked_for_is_under_way},
    {"last_rail_is_kept", last_rail_is_kept},
    {"last_rail_is_drained_by_force", last_rail_is_drained_by_force},
    {"what_is_under_way_ends_in_spite_of_force", what_is_under_way_ends_in_spite_of_force},
    {"receive_that_has_begun_is_written_in_spite_of_force", receive_that_has_begun_is_written_in_spite_of_force},
    {"peer_drains_its_last_rail_by_force", peer_drains_its_last_rail_by_force},
    {"force_waits_no_longer_than_for_a_lost_rail", force_waits_no_longer_than_for_a_lost_rail},
    {"force_without_patience_keeps_the_last_rail", force_without_patience_keeps_the_last_rail},
    {"loss_while_drained_by_force_leaves_it_drained", loss_while_drained_by_force_leaves_it_drained},
    {"release_while_the_process_computes_ends_the_wait", release_while_the_process_computes_ends_the_wait},
    {"last_rail_that_does_not_seem_silent_is_kept", last_rail_that_does_not_seem_silent_is_kept},
    {"put_over_a_rail_that_seems_silent_is_served_there", put_over_a_rail_that_seems_silent_is_served_there},
    {"rail_that_is_drained_serves_when_the_other_is_lost", rail_that_is_drained_serves_when_the_other_is_lost},
    {"loss_while_drained_leaves_it_drained", loss_while_drained_leaves_it_drained},
    {"loss_while_draining_leaves_it_drained", loss_while_draining_leaves_it_drained},
    {"peers_port_stands_out", peers_port_stands_out},
    {"word_that_is_lost_is_said_again", word_that_is_lost_is_said_again},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
