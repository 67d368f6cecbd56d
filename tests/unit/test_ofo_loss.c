/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A rail is brought down: who is told, the loss check, what is repeated until the peer has answered. DESIGN.txt 10.2 to 10.4.
 */
#include "rail_played.h"

/* ---- bring-down and the loss check -------------------------------------------------------------- */

static void down_goes_over_the_rail_and_over_another_live_port(void **state)
{
    connects();
    ofo_rail_event(rail, OFO_EV_LOCAL_ERROR, &(ofo_ctl_t){.cause = OFO_CAUSE_PORT});
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    assert_int_equal(letters[OFO_MAIL_SEND], 1);
    assert_int_equal(last[OFO_CTL_DOWN].cause, OFO_CAUSE_PORT);
    module[1].port_up = false;
    time_passes(1000);
    assert_int_equal(sent[OFO_CTL_DOWN], 2);
    assert_int_equal(letters[OFO_MAIL_SEND], 1);
    module[1].port_up = true;
    peer.rail[1] = NULL; /* it has no name yet */
    time_passes(2000);
    assert_int_equal(sent[OFO_CTL_DOWN], 3);
    assert_int_equal(letters[OFO_MAIL_SEND], 1);
}

static void many_bring_downs_wait_for_their_turns(void **state)
{
    OFO.params.ctl_rate = 2; /* a second between two of one module */
    module[0].ctl_turn = 0;
    connects();
    ofo_rail_event(rail, OFO_EV_LOCAL_ERROR, &(ofo_ctl_t){.cause = OFO_CAUSE_PORT});
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    fence_ends(false);
    dack_comes(0, true, 0);
    request_comes(1);
    ofo_rail_event(rail, OFO_EV_LOCAL_ERROR, &(ofo_ctl_t){.cause = OFO_CAUSE_PORT});
    is_in(OFO_ST_DRAINING, 1);
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    time_passes(999);
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    time_passes(1);
    assert_int_equal(sent[OFO_CTL_DOWN], 2);
}

static void lossy_fence_waits_for_the_peers_counts(void **state)
{
    connects();
    carried[1].n_ok = 5;
    comes(OFO_CTL_DOWN, 0);
    fence_ends(true);
    assert_true(rail->check_open);
    assert_int_equal(letters[OFO_MAIL_FENCED], 0);
    dack_comes(0, true, 5);
    assert_int_equal(declared, 0);
    assert_false(rail->check_open);
    assert_int_equal(letters[OFO_MAIL_FENCED], 1);
    assert_int_equal(letter_gen[OFO_MAIL_FENCED], 0);
}

static void lost_message_declares_the_peer(void **state)
{
    connects();
    carried[1].n_ok = 5;
    comes(OFO_CTL_DOWN, 0);
    fence_ends(true);
    dack_comes(0, true, 6);
    assert_int_equal(declared, 1);
}

/* A complete fence is checked, too: the adapter of the peer may be the one that died. */
static void lost_message_declares_the_peer_after_a_complete_fence(void **state)
{
    connects();
    carried[1].n_ok = 5;
    dack_comes(0, true, 6);
    is_in(OFO_ST_DRAINING_ACKED, 0);
    assert_int_equal(declared, 0);
    fence_ends(false);
    assert_int_equal(declared, 1);
}

static void unknown_counts_are_asked_for_again(void **state)
{
    connects();
    comes(OFO_CTL_DOWN, 0);
    fence_ends(true);
    dack_comes(0, false, 0);
    is_in(OFO_ST_DOWN, 0);
    assert_int_equal(rail->unknown_until, now + T_LOSS);
    assert_int_equal(letters[OFO_MAIL_FENCED], 0);
    ofo_rail_rejoin(rail); /* not before the check has ended */
    request_comes(1);
    is_in(OFO_ST_DOWN, 0);
    sent[OFO_CTL_DOWN] = 0;
    time_passes(200);
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    now += 100;
    dack_comes(0, false, 0); /* still unknown: the time goes on */
    assert_int_equal(rail->unknown_until, now + T_LOSS - 300);
    dack_comes(0, true, 0);
    assert_int_equal(rail->unknown_until, 0);
    assert_int_equal(letters[OFO_MAIL_FENCED], 1);
    assert_int_equal(declared, 0);
    dack_comes(0, true, 99); /* a copy after the check: of no interest */
    assert_int_equal(declared, 0);
    request_comes(1);
    is_in(OFO_ST_READY, 1);
}

static void counts_that_stay_unknown_declare_the_peer(void **state)
{
    connects();
    comes(OFO_CTL_DOWN, 0);
    fence_ends(true);
    dack_comes(0, false, 0);
    time_passes(T_LOSS - 1);
    assert_int_equal(declared, 0);
    time_passes(1);
    assert_int_equal(declared, 1);
    ofo_rail_declared(rail);
    assert_int_equal(letters[OFO_MAIL_FENCED], 1);
}

/* The peer has begun the next generation while our check of this one is due. */
static void check_of_an_older_generation_is_made_up_for(void **state)
{
    connects();
    carried[1].n_ok = 5;
    comes(OFO_CTL_DOWN, 0);
    fence_ends(true);
    comes(OFO_CTL_DOWN, 1);
    is_in(OFO_ST_ASKING, 1);
    assert_int_equal(rail->fsm.check_gen, 0);
    assert_int_equal(last[OFO_CTL_DACK].gen, 1);
    assert_int_equal(last[OFO_CTL_DACK].flags, OFO_DACK_VALID); /* nothing was sent in it, and that is known */
    sent[OFO_CTL_DOWN] = 0;
    time_passes(1000);
    assert_int_equal(sent[OFO_CTL_DOWN], 2); /* one asks for the older counts, the other for these */
    dack_comes(7, true, 99);                 /* moves on, and is no older one */
    is_in(OFO_ST_DOWN, 7);
    dack_comes(2, true, 99); /* an older generation, whose check is not due */
    assert_int_equal(declared, 0);
    dack_comes(0, true, 5);
    assert_int_equal(rail->fsm.check_gen, OFO_GEN_NONE);
    assert_int_equal(letters[OFO_MAIL_FENCED], 1);
    assert_int_equal(declared, 0);
}

static void check_of_an_older_generation_shows_a_loss(void **state)
{
    connects();
    carried[1].n_ok = 5;
    comes(OFO_CTL_DOWN, 0);
    fence_ends(false);
    comes(OFO_CTL_DOWN, 1);
    dack_comes(0, true, 6);
    assert_int_equal(declared, 1);
}

/* The peer has ended a generation of which we know nothing, and its DACK may be lost. Without it the rail would never return. */
static void dack_of_a_newer_generation_is_asked_for(void **state)
{
    connects();
    goes_down();
    comes(OFO_CTL_DOWN, 1);
    is_in(OFO_ST_ASKING, 1);
    sent[OFO_CTL_DOWN] = 0;
    time_passes(200);
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    assert_int_equal(last[OFO_CTL_DOWN].gen, 1);
    dack_comes(1, true, 0);
    is_in(OFO_ST_DOWN, 1);
    request_comes(2);
    is_in(OFO_ST_READY, 2);
}

/* The answer for the newer generation came first, and the one for the older generation is lost. */
static void older_check_is_asked_for_after_the_newer_answer(void **state)
{
    connects();
    comes(OFO_CTL_DOWN, 0);
    fence_ends(true);
    comes(OFO_CTL_DOWN, 1);
    dack_comes(1, true, 0);
    is_in(OFO_ST_DOWN, 1);
    request_comes(2); /* not while the check is due */
    is_in(OFO_ST_DOWN, 1);
    sent[OFO_CTL_DOWN] = 0;
    time_passes(500);
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    assert_int_equal(last[OFO_CTL_DOWN].gen, 0);
    dack_comes(0, true, 0);
    assert_int_equal(letters[OFO_MAIL_FENCED], 1);
    request_comes(2);
    is_in(OFO_ST_READY, 2);
}

static void unknown_counts_of_an_older_generation_are_asked_for_again(void **state)
{
    connects();
    comes(OFO_CTL_DOWN, 0);
    fence_ends(true);
    comes(OFO_CTL_DOWN, 1);
    dack_comes(1, true, 0);
    dack_comes(0, false, 0);
    assert_int_equal(rail->unknown_until, now + T_LOSS);
    sent[OFO_CTL_DOWN] = 0;
    time_passes(500);
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    assert_int_equal(last[OFO_CTL_DOWN].gen, 0);
    dack_comes(0, true, 0);
    assert_int_equal(rail->unknown_until, 0);
    assert_int_equal(letters[OFO_MAIL_FENCED], 1);
}

/* DACK has the counts of a generation, or says that they are unknown because the generation is too old. */
static void dack_of_older_generations(void **state)
{
    connects();
    carried[0].n_ok = 3;
    goes_down();
    ofo_rail_rejoin(rail);
    comes(OFO_CTL_REP, 1);
    ofo_rail_event(rail, OFO_EV_PROVED, NULL);
    carried[0].n_ok = 4;
    goes_down();
    ofo_rail_rejoin(rail);
    comes(OFO_CTL_DOWN, 2); /* never used */
    carried[0].n_ok = 0;
    fence_ends(false);
    comes(OFO_CTL_DOWN, 1);
    assert_int_equal(last[OFO_CTL_DACK].counts.n_ok, 4);
    assert_int_equal(last[OFO_CTL_DACK].flags, OFO_DACK_VALID);
    assert_int_equal(last[OFO_CTL_DACK].cause, OFO_CAUSE_UNKNOWN);
    comes(OFO_CTL_DOWN, 0);
    assert_int_equal(last[OFO_CTL_DACK].flags, 0);
    dack_comes(2, true, 0);
    comes(OFO_CTL_DOWN, 5);
    comes(OFO_CTL_DOWN, 3); /* between the two that are kept: not used here */
    assert_int_equal(last[OFO_CTL_DACK].flags, OFO_DACK_VALID);
    assert_int_equal(last[OFO_CTL_DACK].counts.n_ok, 0);
}

static void pml_asks_for_a_fence(void **state)
{
    ofo_mail_t mail = {.gen = 0, .ctl = message_of(OFO_CTL_DOWN, 0)};

    connects();
    module[0].port_up = false;
    ofo_rail_fence(rail, &mail);
    is_in(OFO_ST_DRAINING, 0);
    assert_int_equal(rail->cause, OFO_CAUSE_PORT);
    assert_int_equal(letters[OFO_MAIL_FENCED], 0);
    fence_ends(true);
    ofo_rail_fence(rail, &mail); /* the loss check is open */
    assert_int_equal(letters[OFO_MAIL_FENCED], 0);
    dack_comes(0, true, 0);
    assert_int_equal(letters[OFO_MAIL_FENCED], 1);
    ofo_rail_fence(rail, &mail);
    assert_int_equal(letters[OFO_MAIL_FENCED], 2);
    module[0].port_up = true;
    request_comes(1);
    is_in(OFO_ST_READY, 1);
    ofo_rail_fence(rail, &mail); /* of the generation before */
    assert_int_equal(letters[OFO_MAIL_FENCED], 3);
}

/* The event of its death has not come. */
static void fence_of_a_dead_adapter_may_miss_data(void **state)
{
    connects();
    comes(OFO_CTL_DOWN, 0);
    fence_ends(false);
    assert_int_equal(letters[OFO_MAIL_FENCED], 1);
    assert_int_equal(rail->lossy_gen, OFO_GEN_NONE);
    dack_comes(0, true, 0);
    request_comes(1);
    comes(OFO_CTL_DOWN, 1);
    is_dead = true;
    fence_ends(false);
    assert_int_equal(letters[OFO_MAIL_FENCED], 2);
    assert_int_equal(letter_gen[OFO_MAIL_FENCED], 1);
    assert_int_equal(rail->lossy_gen, 1);
    assert_false(rail->check_open); /* all work has come back, and the counts are known */
}

static void declared_peer_hears_it_over_each_live_port(void **state)
{
    connects();
    comes(OFO_CTL_DOWN, 0);
    peer.declared = true;
    ofo_rail_declared(rail);
    assert_int_equal(sent[OFO_CTL_PEERDEAD], 1);
    module[0].port_up = false;
    ofo_rail_declared(rail);
    assert_int_equal(sent[OFO_CTL_PEERDEAD], 1);
    fence_ends(true);
    assert_int_equal(letters[OFO_MAIL_FENCED], 1); /* no check any more */
    rail->last_wqe_at = now;
    time_passes(1);
    assert_int_equal(late, 1);
    assert_int_equal(rail->retransmit_at, 0);
    assert_int_equal(rail->rejoin.at, 0);
}

static void copy_of_the_old_request_is_refused_while_the_check_is_open(void **state)
{
    connects();
    comes(OFO_CTL_DOWN, 0);
    fence_ends(true);
    assert_true(rail->check_open);
    request_comes(0);
    is_in(OFO_ST_ASKING, 0);
    assert_int_equal(module[0].count.ctl_dropped, 0); /* the table refuses the request, and no timer waits for another */
    assert_int_equal(module[0].count.ctl_refused, 1);
    assert_true(rail->check_open);
}

static void rail_whose_older_check_is_due_asks_for_counts_and_for_nothing_else(void **state)
{
    connects();
    comes(OFO_CTL_DOWN, 0);
    fence_ends(false);
    comes(OFO_CTL_DOWN, 1);
    dack_comes(1, true, 0);
    is_in(OFO_ST_DOWN, 1);
    assert_int_equal(rail->fsm.check_gen, 0);
    time_passes(1000); /* rejoin_after */
    assert_int_equal(last[OFO_CTL_DOWN].flags & OFO_CTL_ASKS, 0);
    assert_int_equal(last[OFO_CTL_DOWN].gen, 0);
    assert_int_equal(rail->rejoin.at, now + 1000); /* later */
    dack_comes(0, true, 0);
    assert_int_equal(rail->fsm.check_gen, OFO_GEN_NONE);
    sent[OFO_CTL_DOWN] = 0;
    assert_int_not_equal(rail->retransmit_at, 0); /* the timer still runs once, and sends nothing */
    time_passes((unsigned) (rail->retransmit_at - now));
    assert_int_equal(sent[OFO_CTL_DOWN], 0);
    assert_int_equal(rail->retransmit_at, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(down_goes_over_the_rail_and_over_another_live_port),
        CASE(many_bring_downs_wait_for_their_turns),
        CASE(lossy_fence_waits_for_the_peers_counts),
        CASE(lost_message_declares_the_peer),
        CASE(lost_message_declares_the_peer_after_a_complete_fence),
        CASE(unknown_counts_are_asked_for_again),
        CASE(counts_that_stay_unknown_declare_the_peer),
        CASE(check_of_an_older_generation_is_made_up_for),
        CASE(check_of_an_older_generation_shows_a_loss),
        CASE(dack_of_a_newer_generation_is_asked_for),
        CASE(older_check_is_asked_for_after_the_newer_answer),
        CASE(unknown_counts_of_an_older_generation_are_asked_for_again),
        CASE(dack_of_older_generations),
        CASE(pml_asks_for_a_fence),
        CASE(fence_of_a_dead_adapter_may_miss_data),
        CASE(declared_peer_hears_it_over_each_live_port),
        CASE(copy_of_the_old_request_is_refused_while_the_check_is_open),
        CASE(rail_whose_older_check_is_due_asks_for_counts_and_for_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
