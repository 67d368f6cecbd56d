/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A rail comes back after its ports have flapped, or have changed their addresses: the stable time of both sides, and how each side learns
 * the address of the other. DESIGN.txt 10.2, "Return".
 */
#include "rail_played.h"

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
        CASE(rail_returns_only_after_the_stable_time_of_both_ports),
        CASE(flap_during_the_wait_starts_the_stable_time_again),
        CASE(question_without_answer_tells_the_peer_our_address),
        CASE(address_of_the_peer_starts_the_questions_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
