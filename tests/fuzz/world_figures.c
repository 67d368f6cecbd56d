/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the user sees of ports without a rail in use or without failover, and what a wait for a rail does when the user sets another limit.
 * DESIGN.txt sections 14.8 and 19.
 */
#define _GNU_SOURCE
#include "world_case.h"
#include "world_figures.h"

#include "door/pml_bfo_send_api.h"
#include "failover/pml_bfo_failover.h"

enum { PATIENCE = 60 };

/* Rail 0 is down when the peer is met, because its cable was out when the job started. */
static void port_that_was_never_up_is_not_lost(void)
{
    bfo_peer_t *peer;

    life_begins_without_peer();
    world_rail_fails(&world_btl[0]);
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    peer = peer_of_rank(1);
    must(2 == peer->up_mask, "a rail that is down is used");
    must(BFO_FIGURES_NEVER_UP == state_of("a:1") && BFO_FIGURES_UP == state_of("b:1"), "a port that was never up is shown as something else");
    out("a:1");
    out(NULL);
    must(BFO_FIGURES_NEVER_UP == state_of("a:1"), "a port that was never up is another one after its release");
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    must(BFO_FIGURES_UP == state_of("a:1"), "a port that came up is not shown as up");
    world_rail_fails(&world_btl[0]);
    must(BFO_FIGURES_LOST == state_of("a:1"), "a lost port is not shown as lost");
    life_ends();
}

/* No process was met yet. */
static void port_that_nobody_uses_is_not_lost(void)
{
    life_begins_without_peer();
    bfo_failover_btl_error(&world_btl[0].super, MCA_BTL_ERROR_FLAGS_NONFATAL, NULL, NULL);
    must(BFO_FIGURES_UNUSED == state_of("a:1"), "a port without rails is shown as something else");
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    must(BFO_FIGURES_UP == state_of("a:1"), "a port whose rail is in use is not shown as up");
    life_ends();
}

/* No rail is left, and this process waits for a rail. */
static bfo_peer_t *wait_begins(void)
{
    bfo_peer_t *peer = life_begins();

    bfo_params.last_rail_timeout = PATIENCE;
    world_rail_fails(&world_btl[0]);
    world_rail_fails(&world_btl[1]);
    must(!peer->declared && 1 == bfo.n_waits, "nobody waits for a rail");
    return peer;
}

static void wait_is_made_shorter(void)
{
    bfo_peer_t *peer = wait_begins();

    peer->waits_since -= 1000u * (PATIENCE / 2);
    wish(BFO_PARAMETER_LAST_RAIL_TIMEOUT, PATIENCE / 4);
    fuzz_progress();
    fuzz_progress();
    must(peer->declared && 0 == bfo.n_waits, "a wait that has begun keeps its limit");
    life_ends();
}

/* The process has computed all the time: it learns of the new limit only when the old limit has passed. */
static void wait_is_made_longer_while_the_process_computes(void)
{
    bfo_peer_t *peer = wait_begins();

    wish(BFO_PARAMETER_LAST_RAIL_TIMEOUT, 2 * PATIENCE);
    peer->waits_since -= 1000u * (PATIENCE + 10);
    fuzz_progress();
    must(!peer->declared && 1 == bfo.n_waits, "the wait ends by a limit that the user has changed");
    peer->waits_since -= 1000u * PATIENCE;
    fuzz_progress();
    must(peer->declared && 0 == bfo.n_waits, "the wait has no end any more");
    life_ends();
}

/* The peer is waited for because its last rail is drained by force, and then the user wants no more patience. */
static void drain_by_force_goes_on_without_patience(void)
{
    bfo_peer_t *peer = life_begins();
    ompi_request_t *send = NULL;
    char byte = 'x';

    bfo_params.last_rail_timeout = PATIENCE;
    world_rail_fails(&world_btl[1]);
    world_fence_done(0, false);
    take_out("a:1", true);
    must(0 == peer->send_mask && 1 == bfo.n_waits && !peer->declared, "the last rail is used although it is drained by force");
    must(OMPI_SUCCESS == bfo_isend(&byte, 1, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_SYNCHRONOUS, world_comm[0], &send), "a send does not start");
    wish(BFO_PARAMETER_LAST_RAIL_TIMEOUT, 0);
    for (int i = 0; i < 3; ++i) {
        fuzz_progress();
        must(0 == peer->send_mask && 0 > world_find(BFO_MSG_RNDV), "the rail that is drained by force is used because nobody waits any more");
    }
    must(peer->declared && 0 == bfo.n_waits, "the wait does not end at the new limit");
    while (0 != world_fences()) {
        world_fence_done(0, false);
    }
    fuzz_progress();
    must(is_complete(send) && MPI_ERR_OTHER == send->req_status.MPI_ERROR, "a send that waited does not end");
    life_ends();
}

/* ---- other ports, and a list that is none ------------------------------------------------------------- */

/* The rail to rank 2 has no failover. */
static void rail_without_failover_is_kept(void)
{
    const bfo_peer_t *peer;

    (void) life_begins();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[2])), "no rails");
    peer = peer_of_rank(2);
    out("other");
    fuzz_progress();
    fuzz_progress();
    must(1 == peer->send_mask && 0 > world_find(BFO_MSG_RAILS), "a rail without failover is taken out of use, or reported to its peer");
    must(BFO_FIGURES_DRAINING == state_of("other"), "a port is drained although its rail is still used");
    life_ends();
}

static void rails_that_wait_for_the_peer_are_counted(void)
{
    (void) life_begins();
    world_rail_fails(&world_btl[0]);
    world_btl[0].asks = true;
    bfo_figures_refresh();
    must(1 == port_of("a:1").rails_asking, "the figures do not say that a rail waits for the peer");
    world_btl[0].asks = false;
    bfo_figures_refresh();
    must(0 == port_of("a:1").rails_asking, "the figures say that a rail still waits for the peer");
    world_fence_done(0, false);
    life_ends();
}

/* Only the user can write the file; nevertheless it may hold anything. */
static void nonsense_is_no_list(void)
{
    bfo_peer_t *peer = life_begins();

    steer->sequence += 1;
    memset(steer->out, 'a', sizeof(steer->out));
    steer->n_out = 1000000;
    fuzz_progress();
    must(3 == peer->send_mask, "a list that is being written is read");
    steer->sequence += 1;
    fuzz_progress();
    must(3 == peer->send_mask, "a list that is too long is read");
    steer->sequence += 1;
    steer->n_out = BFO_STEER_PORTS;
    steer->sequence += 1;
    fuzz_progress();
    must(3 == peer->send_mask, "names without an end are ports");
    life_ends();
}

/* The last rail to the peer is lost when this process reports that its port stands out. */
static void report_without_a_rail_is_forgotten(void)
{
    const bfo_peer_t *peer = life_begins();

    world_rail_fails(&world_btl[1]);
    world_fence_done(0, false);
    world_refuse_dead = 1;
    out("a:1");
    must(0 == world_refuse_dead && 0 == world_posted() && 0 == peer->telling, "a report is in flight that no rail has taken");
    must(peer->declared && 1 == figures->peers_given_up, "a peer without a rail is waited for, or not shown as given up");
    life_ends();
}

static const world_case_t cases[] = {
    {"port_that_was_never_up_is_not_lost", port_that_was_never_up_is_not_lost},
    {"port_that_nobody_uses_is_not_lost", port_that_nobody_uses_is_not_lost},
    {"wait_is_made_shorter", wait_is_made_shorter},
    {"wait_is_made_longer_while_the_process_computes", wait_is_made_longer_while_the_process_computes},
    {"drain_by_force_goes_on_without_patience", drain_by_force_goes_on_without_patience},
    {"rail_without_failover_is_kept", rail_without_failover_is_kept},
    {"rails_that_wait_for_the_peer_are_counted", rails_that_wait_for_the_peer_are_counted},
    {"nonsense_is_no_list", nonsense_is_no_list},
    {"report_without_a_rail_is_forgotten", report_without_a_rail_is_forgotten},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
