/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A rail comes back after its ports have flapped: the stable time of both sides. DESIGN.txt 10.2, "Return".
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(rail_returns_only_after_the_stable_time_of_both_ports),
        CASE(flap_during_the_wait_starts_the_stable_time_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
