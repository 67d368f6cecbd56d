/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A rail with its actions: when it is asked whether it works again, and what the answer opens; the stable time of both sides; how each side
 * learns the address of the other. DESIGN.txt 10.2, "Return".
 */
#include "rail_played.h"

static void question_is_asked_and_the_answer_opens_the_rail(void **state)
{
    ofo_ctl_t dack = message_of(OFO_CTL_DACK, 0);

    dack.flags = OFO_DACK_VALID | OFO_CTL_ASKS;
    connects();
    goes_down();
    ofo_rail_message(rail, &dack); /* nothing was asked */
    assert_int_equal(wants, 0);
    sent[OFO_CTL_DOWN] = 0;
    time_passes(999);
    assert_int_equal(sent[OFO_CTL_DOWN], 0);
    time_passes(1);
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    assert_int_equal(last[OFO_CTL_DOWN].flags, OFO_CTL_ASKS);
    assert_int_equal(renewed, 0);
    time_passes(2000); /* no answer: twice the time, over another path, and the address is looked up again */
    assert_int_equal(sent[OFO_CTL_DOWN], 2);
    assert_int_equal(renewed, 1);
    ofo_rail_message(rail, &dack);
    assert_int_equal(wants, 1);
    module[0].port_up = false; /* meanwhile */
    ofo_rail_rejoin(rail);
    is_in(OFO_ST_DOWN, 0);
    assert_int_equal(rail->rejoin.at, OFO_REJOIN_WITH_PORT);
    time_passes(5000);
    assert_int_equal(sent[OFO_CTL_DOWN], 2);
    module[0].port_up = true;
    time_passes(1);
    assert_int_equal(rail->rejoin.at, now + 1000);
    time_passes(1000);
    ofo_rail_message(rail, &dack);
    ofo_rail_rejoin(rail);
    is_in(OFO_ST_REQUESTED, 1);
    ofo_rail_rejoin(rail); /* it is open */
    is_in(OFO_ST_REQUESTED, 1);
    assert_int_equal(renewed, 1); /* the third question was answered as it stood */
}

static void last_rail_is_asked_often(void **state)
{
    is_last = true;
    connects();
    goes_down();
    sent[OFO_CTL_DOWN] = 0;
    for (unsigned i = 0; i < 10; ++i) {
        time_passes(50);
    }
    assert_int_equal(sent[OFO_CTL_DOWN], 10);
    comes(OFO_CTL_DOWN, 1); /* DOWN is repeated as often, and DACK with it */
    sent[OFO_CTL_DOWN] = sent[OFO_CTL_DACK] = 0;
    for (unsigned i = 0; i < 100; ++i) {
        time_passes(10);
    }
    assert_in_range(sent[OFO_CTL_DOWN], 14, 26);
    assert_int_equal(sent[OFO_CTL_DACK], sent[OFO_CTL_DOWN]);
    OFO.params.rejoin_after = 10;
    dack_comes(1, true, 0);
    assert_int_equal(rail->rejoin.at, now + 10);
}

static void last_rail_is_asked_at_once_when_its_port_returns(void **state)
{
    connects();
    module[0].port_up = false;
    goes_down();
    sent[OFO_CTL_DOWN] = 0;
    time_passes(5000);
    assert_int_equal(rail->rejoin.at, OFO_REJOIN_WITH_PORT);
    is_last = module[0].port_up = true;
    time_passes(1); /* sees the port */
    time_passes(0); /* what is due at once */
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    assert_int_equal(last[OFO_CTL_DOWN].flags, OFO_CTL_ASKS);
    time_passes(49);
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    time_passes(1);
    assert_int_equal(sent[OFO_CTL_DOWN], 2);
}

/* The answer to the question of a loss check comes soon, and a peer without another rail waits for it. */
static void last_rail_looks_soon_again_after_a_loss_check(void **state)
{
    is_last = true;
    connects();
    goes_down();
    sent[OFO_CTL_DOWN] = 0;
    rail->check_open = true;
    time_passes(50);
    assert_int_equal(sent[OFO_CTL_DOWN], 0);
    rail->check_open = false;
    time_passes(50);
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
}

static void rail_that_flaps_stays_out_unless_it_is_the_last(void **state)
{
    OFO.params.rejoin_half_life = 1000;
    connects();
    goes_down();
    rail->rejoin.penalty = 10 * OFO_REJOIN_FALL;
    rail->rejoin.fell_at = now;
    rail->rejoin.is_held = true;
    sent[OFO_CTL_DOWN] = 0;
    time_passes(1000);
    assert_int_equal(sent[OFO_CTL_DOWN], 0);
    assert_int_equal(rail->rejoin.at, now + 1000);
    is_last = true;
    time_passes(1000);
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
}

/* Questions without an answer, an attempt that the peer refuses, and an attempt that gets no answer add nothing. */
static void only_a_fall_from_up_counts_against_a_rail(void **state)
{
    ofo_ctl_t dack = message_of(OFO_CTL_DACK, 0), rej = message_of(OFO_CTL_REJ, 1);

    OFO.params.rejoin_half_life = 1000000;
    connects();
    goes_down();
    assert_int_equal(OFO_REJOIN_FALL, rail->rejoin.penalty);
    sent[OFO_CTL_DOWN] = 0;
    for (unsigned i = 0; i < 15; ++i) {
        time_passes(1000);
    }
    assert_in_range(sent[OFO_CTL_DOWN], 3, 5);
    assert_int_equal(OFO_REJOIN_FALL, rail->rejoin.penalty);
    dack.flags = OFO_DACK_VALID | OFO_CTL_ASKS;
    ofo_rail_message(rail, &dack);
    ofo_rail_rejoin(rail);
    is_in(OFO_ST_REQUESTED, 1);
    rej.reason = OFO_REJ_PORT_DOWN;
    ofo_rail_message(rail, &rej);
    fence_ends(false);
    dack_comes(1, true, 0);
    is_in(OFO_ST_DOWN, 1);
    ofo_rail_rejoin(rail);
    time_passes(1000 * CONNECT_S);
    fence_ends(false);
    dack_comes(2, true, 0);
    is_in(OFO_ST_DOWN, 2);
    assert_int_equal(OFO_REJOIN_FALL, rail->rejoin.penalty);
    ofo_rail_rejoin(rail);
    comes(OFO_CTL_REP, 3);
    ofo_rail_event(rail, OFO_EV_PROVED, NULL);
    is_in(OFO_ST_UP, 3);
    free(rail->building);
    rail->building = NULL;
    goes_down();
    assert_in_range(rail->rejoin.penalty, 2 * OFO_REJOIN_FALL - 20, 2 * OFO_REJOIN_FALL);
}

static void nothing_is_asked_without_hope(void **state)
{
    connects();
    goes_down();
    sent[OFO_CTL_DOWN] = 0;
    module[0].port_up = false;
    time_passes(1000);
    assert_int_equal(rail->rejoin.at, OFO_REJOIN_WITH_PORT);
    module[0].port_up = true;
    time_passes(1);
    is_gone = true;
    time_passes(1000);
    assert_int_equal(rail->rejoin.at, 0);
    is_gone = false;
    rail->rejoin.at = now;
    peer.closing = true;
    time_passes(1);
    assert_int_equal(rail->rejoin.at, 0);
    peer.closing = false;
    rail->rejoin.at = now;
    OFO.closing = true;
    time_passes(1);
    assert_int_equal(rail->rejoin.at, 0);
    OFO.closing = false;
    rail->rejoin.at = now;
    rail->fsm.gen = UINT16_MAX; /* no number is left */
    time_passes(1);
    assert_int_equal(rail->rejoin.at, 0);
    assert_int_equal(sent[OFO_CTL_DOWN], 0);
}

static void answer_opens_nothing_when_the_peer_leaves(void **state)
{
    ofo_ctl_t dack = message_of(OFO_CTL_DACK, 0);

    dack.flags = OFO_DACK_VALID | OFO_CTL_ASKS;
    connects();
    goes_down();
    time_passes(1000);
    assert_int_equal(last[OFO_CTL_DOWN].flags, OFO_CTL_ASKS);
    peer.closing = true;
    ofo_rail_message(rail, &dack);
    assert_int_equal(wants, 0);
    is_in(OFO_ST_DOWN, 0);
}


/* Our port was away and the peer's was not: the peer may ask before our port has been up for the stable time. */
static void rail_returns_only_after_the_stable_time_of_both_ports(void **state)
{
    ofo_ctl_t ask = message_of(OFO_CTL_DOWN, 0);

    ask.flags = OFO_CTL_ASKS;
    connects();
    goes_down();
    module[0].port_up = false;
    time_passes(5000);
    module[0].port_up = true;
    module[0].up_since = now;
    time_passes(999);
    ofo_rail_message(rail, &ask);
    assert_int_equal(last[OFO_CTL_DACK].flags & OFO_CTL_ASKS, 0);
    request_comes(1); /* an older build takes any DACK for an answer */
    is_in(OFO_ST_DOWN, 0);
    assert_int_equal(sent[OFO_CTL_REJ], 0);
    is_last = true; /* the peer has no other rail */
    ofo_rail_message(rail, &ask);
    assert_int_equal(last[OFO_CTL_DACK].flags & OFO_CTL_ASKS, OFO_CTL_ASKS);
    is_last = false;
    now += 1;
    ofo_rail_message(rail, &ask);
    assert_int_equal(last[OFO_CTL_DACK].flags & OFO_CTL_ASKS, OFO_CTL_ASKS);
    request_comes(1);
    is_in(OFO_ST_READY, 1);
}

/* The port goes down and comes up between two looks of the timer. */
static void flap_during_the_wait_starts_the_stable_time_again(void **state)
{
    connects();
    goes_down();
    sent[OFO_CTL_DOWN] = 0;
    module[0].up_since = now + 900;
    time_passes(1000);
    assert_int_equal(sent[OFO_CTL_DOWN], 0);
    time_passes(899);
    assert_int_equal(sent[OFO_CTL_DOWN], 0);
    time_passes(1);
    assert_int_equal(sent[OFO_CTL_DOWN], 1);
    assert_int_equal(last[OFO_CTL_DOWN].flags, OFO_CTL_ASKS);
}

/* Both ports have other addresses than the other side knows. So the question does not arrive, and the address goes over another rail. */
static void question_without_answer_tells_the_peer_our_address(void **state)
{
    connects();
    goes_down();
    module[0].port_attr.lid = 9;
    OFO.record.port[0].gid[15] = 3;
    time_passes(1000);
    assert_int_equal(last[OFO_CTL_DOWN].flags, OFO_CTL_ASKS);
    letters[OFO_MAIL_SEND] = 0;
    last_letter.flags = 0;
    time_passes(2000);
    assert_int_equal(last[OFO_CTL_DOWN].flags, OFO_CTL_ASKS);
    assert_int_equal(letters[OFO_MAIL_SEND], 1);
    assert_int_equal(last_letter.flags, OFO_CTL_ADDRESS);
    assert_int_equal(last_letter.lid, 9);
    assert_int_equal(last_letter.gid[15], 3);
    time_passes(4000); /* that DOWN may be lost */
    assert_int_equal(letters[OFO_MAIL_SEND], 2);
    dack_comes(0, true, 0);
    time_passes(8000);
    assert_int_equal(letters[OFO_MAIL_SEND], 2);
    OFO.record.port[0].gid[15] = 4;
    time_passes(16000);
    assert_int_equal(letters[OFO_MAIL_SEND], 3);
    OFO.record.port[0].gid[15] = 0;
}

static void address_of_the_peer_starts_the_questions_again(void **state)
{
    ofo_ctl_t down = message_of(OFO_CTL_DOWN, 0);

    down.flags = OFO_CTL_ADDRESS;
    down.lid = 7;
    connects();
    goes_down();
    for (unsigned i = 0; i < 10; ++i) {
        time_passes(100000);
    }
    assert_true(rail->rejoin.at > now + 100000);
    forgotten = 0;
    ofo_rail_message(rail, &down);
    assert_int_equal(rail->remote.lid, 7);
    assert_int_equal(forgotten, 1);
    assert_int_equal(rail->rejoin.at, now + 1000);
    time_passes(500);
    ofo_rail_message(rail, &down); /* a copy */
    assert_int_equal(rail->rejoin.at, now + 500);
    down.gen = 1; /* of another generation: no address of this one */
    down.lid = 8;
    ofo_rail_message(rail, &down);
    assert_int_equal(rail->remote.lid, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(question_is_asked_and_the_answer_opens_the_rail),
        CASE(last_rail_is_asked_often),
        CASE(last_rail_is_asked_at_once_when_its_port_returns),
        CASE(last_rail_looks_soon_again_after_a_loss_check),
        CASE(rail_that_flaps_stays_out_unless_it_is_the_last),
        CASE(nothing_is_asked_without_hope),
        CASE(answer_opens_nothing_when_the_peer_leaves),
        CASE(only_a_fall_from_up_counts_against_a_rail),
        CASE(rail_returns_only_after_the_stable_time_of_both_ports),
        CASE(flap_during_the_wait_starts_the_stable_time_again),
        CASE(question_without_answer_tells_the_peer_our_address),
        CASE(address_of_the_peer_starts_the_questions_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
