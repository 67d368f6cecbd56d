/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the user sees of ports without a rail in use, and what a wait for a rail does when the user sets another limit. DESIGN.txt
 * sections 14.8 and 19.
 */
#define _GNU_SOURCE
#include "world_case.h"
#include "world_figures.h"

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

static const world_case_t cases[] = {
    {"port_that_was_never_up_is_not_lost", port_that_was_never_up_is_not_lost},
    {"port_that_nobody_uses_is_not_lost", port_that_nobody_uses_is_not_lost},
    {"wait_is_made_shorter", wait_is_made_shorter},
    {"wait_is_made_longer_while_the_process_computes", wait_is_made_longer_while_the_process_computes},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
