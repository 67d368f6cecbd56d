/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A rail with its actions: connection and the time it gets, refusals, messages. DESIGN.txt 10.2.
 */
#include "rail_played.h"

/* ---- connection --------------------------------------------------------------------------------- */

static void both_sides_connect(void **state)
{
    connects();
    assert_int_equal(sent[OFO_CTL_REQ], 1);
    assert_int_equal(sent[OFO_CTL_RTU], 1);
    assert_int_equal(letters[OFO_MAIL_UP], 1);
    ofo_rail_event(rail, OFO_EV_POST, NULL); /* too late: nothing to do */
    is_in(OFO_ST_UP, 0);
    assert_int_equal(rail->fsm.refused, 0);
}

static void other_number_of_queue_pairs_ends_the_rail(void **state)
{
    ofo_ctl_t ctl = message_of(OFO_CTL_REP, 0);

    ofo_rail_event(rail, OFO_EV_POST, NULL);
    ctl.nqp = 2;
    ofo_rail_message(rail, &ctl);
    is_in(OFO_ST_DRAINING, 0);
    assert_int_equal(last[OFO_CTL_DOWN].cause, OFO_CAUSE_UNKNOWN);
    fence_ends(false);
    dack_comes(0, true, 0);
    is_in(OFO_ST_DOWN, 0);
    ctl = message_of(OFO_CTL_REQ, 1);
    ctl.nqp = 3;
    ofo_rail_asked(rail, &ctl);
    is_in(OFO_ST_DRAINING, 1);
}

static void join_fails_on_either_side(void **state)
{
    no_join = true;
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    comes(OFO_CTL_REP, 0);
    is_in(OFO_ST_DRAINING, 0);
    fence_ends(false);
    dack_comes(0, true, 0);
    request_comes(1);
    is_in(OFO_ST_DRAINING, 1);
}

static void no_queue_pairs_can_be_made(void **state)
{
    no_set = true;
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    is_in(OFO_ST_DRAINING, 0);
    assert_int_equal(sent[OFO_CTL_REQ], 0);
    ofo_rail_fence_done(rail, 0, NULL);
    dack_comes(0, true, 0);
    request_comes(1);
    is_in(OFO_ST_DRAINING, 1);
}

static void port_is_down_when_the_first_message_is_posted(void **state)
{
    module[0].port_up = false;
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    is_in(OFO_ST_DRAINING, 0);
    (void) begin(NULL);
    module[0].port_up = false;
    is_spared = true;
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    is_in(OFO_ST_REQUESTED, 0);
    request_comes(0); /* ours yields, but the port is down: the peer asks again */
    is_in(OFO_ST_REQUESTED, 0);
    assert_int_equal(module[0].count.ctl_dropped, 1);
    assert_int_equal(sent[OFO_CTL_REJ], 0);
}

static void both_begin_and_the_higher_yields(void **state)
{
    ofo_qpset_t *first;

    ofo_rail_event(rail, OFO_EV_POST, NULL);
    first = rail->building;
    request_comes(0);
    is_in(OFO_ST_READY, 0);
    assert_ptr_equal(rail->building, first);
    comes(OFO_CTL_RTU, 0);
    is_in(OFO_ST_CHECKING, 0);
    ofo_rail_event(rail, OFO_EV_PROVED, NULL);
    is_in(OFO_ST_UP, 0);
    assert_int_equal(sent[OFO_CTL_REP], 1);
}

/* A message that finds no room is lost, and would count as not answered. */
static void timers_wait_for_room(void **state)
{
    unsigned wait, asked;

    ofo_rail_event(rail, OFO_EV_POST, NULL);
    wait = rail->backoff_ms;
    is_full = true;
    for (int i = 0; i < 1000; ++i) {
        time_passes(1);
    }
    assert_int_equal(sent[OFO_CTL_REQ], 1);
    assert_int_equal(rail->backoff_ms, wait);
    is_full = false;
    time_passes(1);
    assert_int_equal(sent[OFO_CTL_REQ], 2);
    comes(OFO_CTL_REP, 0);
    ofo_rail_event(rail, OFO_EV_PROVED, NULL);
    goes_down();
    asked = sent[OFO_CTL_DOWN];
    is_full = true;
    for (int i = 0; i < 5000; ++i) {
        time_passes(1);
    }
    assert_int_equal(sent[OFO_CTL_DOWN], asked);
    is_full = false;
    time_passes(1);
    assert_int_equal(sent[OFO_CTL_DOWN], asked + 1); /* the question whether the rail carries packets again */
}

static void iwarp_needs_a_new_set_to_yield(void **state)
{
    module[0].transport = &ofo_transport_iwarp;
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    request_comes(0);
    is_in(OFO_ST_READY, 0);
    assert_int_equal(buried, 1);
    (void) end(NULL);
    (void) begin(NULL);
    module[0].transport = &ofo_transport_iwarp;
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    no_set = true;
    request_comes(0);
    is_in(OFO_ST_DRAINING, 0);
    assert_null(rail->building);
}

static void requests_are_refused_with_the_reason(void **state)
{
    ofo_ctl_t req = message_of(OFO_CTL_REQ, 0);

    module[0].port_up = false;
    ofo_rail_message(rail, &req);
    assert_int_equal(last[OFO_CTL_REJ].reason, OFO_REJ_PORT_DOWN);
    module[0].port_up = true;
    peer.closing = true;
    ofo_rail_message(rail, &req);
    assert_int_equal(last[OFO_CTL_REJ].reason, OFO_REJ_DISABLED);
    peer.closing = false;
    peer.declared = true;
    ofo_rail_message(rail, &req);
    assert_int_equal(last[OFO_CTL_REJ].reason, OFO_REJ_DISABLED);
    peer.declared = false;
    req.rail_hash = HASH + 1;
    ofo_rail_message(rail, &req);
    ofo_rail_message(rail, &req);
    assert_int_equal(last[OFO_CTL_REJ].reason, OFO_REJ_RAIL_HASH);
    assert_int_equal(sent[OFO_CTL_REJ], 5);
    is_in(OFO_ST_CLOSED, 0);
}

/* A PML that takes no rail back gets a first generation, and no second. */
static void no_second_generation_without_rail_restored(void **state)
{
    module[0].ext.rail_restored = NULL;
    request_comes(0);
    is_in(OFO_ST_READY, 0);
    goes_down();
    request_comes(1);
    is_in(OFO_ST_DOWN, 0);
    assert_int_equal(last[OFO_CTL_REJ].reason, OFO_REJ_DISABLED);
    assert_int_equal(rail->rejoin.at, 0);
}

static void refused_for_good_means_no_return(void **state)
{
    ofo_ctl_t rej = message_of(OFO_CTL_REJ, 0);

    connects();
    goes_down();
    rej.reason = OFO_REJ_DISABLED;
    ofo_rail_message(rail, &rej); /* of no request */
    assert_false(rail->rejoin.is_refused);
    ofo_rail_rejoin(rail);
    is_in(OFO_ST_REQUESTED, 1);
    ofo_rail_message(rail, &rej); /* of an older one */
    assert_false(rail->rejoin.is_refused);
    rej.gen = 1;
    rej.reason = OFO_REJ_PORT_DOWN;
    ofo_rail_message(rail, &rej);
    assert_false(rail->rejoin.is_refused);
    is_in(OFO_ST_DRAINING, 1);
    assert_int_equal(rail->cause, OFO_CAUSE_CONNECT);
    fence_ends(false);
    dack_comes(1, true, 0);
    ofo_rail_rejoin(rail);
    rej.gen = 2;
    rej.reason = OFO_REJ_DISABLED;
    ofo_rail_message(rail, &rej);
    assert_true(rail->rejoin.is_refused);
    fence_ends(false);
    dack_comes(2, true, 0);
    is_in(OFO_ST_DOWN, 2);
    assert_int_equal(rail->rejoin.at, 0);
    ofo_rail_message(rail, &rej); /* a copy changes nothing */
    assert_true(rail->rejoin.is_refused);
}

/* ---- the time that a connection gets ------------------------------------------------------------ */

static void other_rails_exist_therefore_no_patience(void **state)
{
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    time_passes(1000 * CONNECT_S);
    is_in(OFO_ST_DRAINING, 0);
    assert_int_equal(doubted, 1);
    assert_int_equal(rail->cause, OFO_CAUSE_CONNECT);
    fence_ends(false);
    dack_comes(0, true, 0);
    ofo_rail_rejoin(rail);
    time_passes(1000 * CONNECT_S);
    is_in(OFO_ST_DRAINING, 1);
    assert_int_equal(doubted, 1); /* only the first generation shows that two ports do not reach each other */
}

static void without_failover_the_rail_gets_more_time(void **state)
{
    module[0].ext.failed_frag = NULL;
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    for (unsigned i = 0; i < OFO_CONNECT_PATIENCE; ++i) {
        time_passes(1000 * CONNECT_S);
        is_in(OFO_ST_REQUESTED, 0);
    }
    assert_int_equal(rail->patience, 0);
    time_passes(1000 * CONNECT_S);
    is_in(OFO_ST_DRAINING, 0);
}

static void spared_rail_gets_more_time_while_its_port_is_down(void **state)
{
    is_spared = true;
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    module[0].port_up = false;
    time_passes(1000 * CONNECT_S);
    is_in(OFO_ST_REQUESTED, 0);
    module[0].port_up = true;
    time_passes(1000 * CONNECT_S);
    is_in(OFO_ST_DRAINING, 0);
}

static void lists_that_differ_end_the_patience(void **state)
{
    ofo_ctl_t rep = message_of(OFO_CTL_REP, 5); /* of no generation of ours */
    ofo_ctl_t rtu = message_of(OFO_CTL_RTU, 5); /* carries no list */

    module[0].ext.failed_frag = NULL;
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    rtu.rail_hash = 0;
    ofo_rail_message(rail, &rtu);
    assert_int_equal(rail->patience, OFO_CONNECT_PATIENCE);
    rep.rail_hash = HASH + 1;
    ofo_rail_message(rail, &rep);
    assert_int_equal(rail->patience, 0);
    is_in(OFO_ST_REQUESTED, 0);
    time_passes(1000 * CONNECT_S);
    is_in(OFO_ST_DRAINING, 0);
}

static void busy_peer_starts_the_time_again(void **state)
{
    ofo_ctl_t busy = message_of(OFO_CTL_REJ, 0);

    busy.reason = OFO_REJ_BUSY;
    ofo_rail_message(rail, &busy); /* nothing was asked */
    assert_int_equal(rail->give_up_at, 0);
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    time_passes(1000 * CONNECT_S - 1);
    busy.gen = 7;
    ofo_rail_message(rail, &busy); /* another request */
    assert_int_equal(rail->give_up_at, now + 1);
    busy.gen = 0;
    ofo_rail_message(rail, &busy);
    assert_int_equal(rail->give_up_at, now + 1000 * CONNECT_S);
    is_in(OFO_ST_REQUESTED, 0);
}

static void requests_are_repeated(void **state)
{
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    for (unsigned i = 0; i < 40; ++i) {
        time_passes(40);
    }
    assert_in_range(sent[OFO_CTL_REQ], 4, 8); /* several tries within the time for a connection */
    assert_int_equal(probes, sent[OFO_CTL_REQ] - 1);
    is_in(OFO_ST_REQUESTED, 0);
}

static void silence_ends_a_rail_that_connects_and_progress_decides_for_one_that_is_up(void **state)
{
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    is_silent = true;
    time_passes(1);
    is_in(OFO_ST_DRAINING, 0);
    assert_int_equal(rail->cause, OFO_CAUSE_SILENT);
    (void) end(NULL);
    (void) begin(NULL);
    connects();
    is_silent = true;
    time_passes(1);
    is_in(OFO_ST_UP, 0);
    assert_int_equal(letters[OFO_MAIL_SILENT], 1);
}

/* ---- messages ----------------------------------------------------------------------------------- */

static void address_of_the_last_request_is_used(void **state)
{
    ofo_ctl_t req = message_of(OFO_CTL_REQ, 0);

    ofo_rail_message(rail, &req);
    assert_int_equal(forgotten, 0);
    req.lid = 9;
    ofo_rail_message(rail, &req);
    req.gid[15] = 3;
    ofo_rail_message(rail, &req);
    assert_int_equal(forgotten, 2);
    assert_int_equal(rail->remote.lid, 9);
    assert_int_equal(rail->remote.gid[15], 3);
    req.lid = 10;
    req.gen = 4; /* an old copy */
    ofo_rail_message(rail, &req);
    assert_int_equal(rail->remote.lid, 9);
    cpc.type = OFO_CPC_RDMACM;
    req.gen = 0;
    ofo_rail_message(rail, &req);
    assert_int_equal(rail->remote.lid, 9);
}

static void each_message_goes_to_its_room(void **state)
{
    ofo_ctl_t ctl = message_of(OFO_CTL_ANSWER, 0);

    ctl.flags = OFO_CTL_PROBATION;
    ofo_rail_message(rail, &ctl);
    assert_int_equal(wants, 1);
    ctl.flags = 0;
    ofo_rail_message(rail, &ctl);
    comes(OFO_CTL_PROBE, 0);
    assert_int_equal(probes, 2);
    comes(OFO_CTL_ASK, 0);
    assert_int_equal(asks, 1);
    ofo_rail_asked(rail, &(ofo_ctl_t){.type = OFO_CTL_ASK});
    is_in(OFO_ST_REQUESTED, 0);
    comes(OFO_CTL_ASK, 0); /* not any more */
    assert_int_equal(asks, 1);
    no_fit = true;
    comes(OFO_CTL_REP, 0);
    is_in(OFO_ST_REQUESTED, 0);
    assert_int_equal(module[0].count.ctl_dropped, 1);
    comes(0, 0);
    assert_int_equal(module[0].count.ctl_dropped, 2);
}

static void process_that_ends_opens_nothing(void **state)
{
    peer.closing = true;
    ofo_rail_asked(rail, &(ofo_ctl_t){.type = OFO_CTL_ASK});
    is_in(OFO_ST_CLOSED, 0);
}

static void rdmacm_decides_at_once(void **state)
{
    cpc.type = OFO_CPC_RDMACM;
    cpc.refuse = refuse;
    comes(OFO_CTL_REQ, 0);
    is_in(OFO_ST_READY, 0);
    assert_int_equal(asks, 0);
    assert_int_equal(refusals, 1);
}

/* Its turn came after the port went down. */
static void request_that_waited_for_its_turn_is_dropped_if_the_port_died(void **state)
{
    const ofo_ctl_t req = message_of(OFO_CTL_REQ, 0);

    module[0].port_up = false;
    is_spared = true;
    ofo_rail_asked(rail, &req);
    is_in(OFO_ST_CLOSED, 0);
    assert_int_equal(sent[OFO_CTL_REJ], 0); /* a refusal would end the peer's rail */
}

static void reply_with_another_list_of_rails_ends_the_rail(void **state)
{
    ofo_ctl_t rep = message_of(OFO_CTL_REP, 0);

    rep.rail_hash = HASH + 1;
    ofo_rail_event(rail, OFO_EV_POST, NULL);
    ofo_rail_message(rail, &rep);
    is_in(OFO_ST_DRAINING, 0);
    assert_int_equal(last[OFO_CTL_DOWN].cause, OFO_CAUSE_CONNECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(both_sides_connect),
        CASE(other_number_of_queue_pairs_ends_the_rail),
        CASE(join_fails_on_either_side),
        CASE(no_queue_pairs_can_be_made),
        CASE(port_is_down_when_the_first_message_is_posted),
        CASE(both_begin_and_the_higher_yields),
        CASE(timers_wait_for_room),
        CASE(iwarp_needs_a_new_set_to_yield),
        CASE(requests_are_refused_with_the_reason),
        CASE(no_second_generation_without_rail_restored),
        CASE(refused_for_good_means_no_return),
        CASE(other_rails_exist_therefore_no_patience),
        CASE(without_failover_the_rail_gets_more_time),
        CASE(spared_rail_gets_more_time_while_its_port_is_down),
        CASE(lists_that_differ_end_the_patience),
        CASE(busy_peer_starts_the_time_again),
        CASE(requests_are_repeated),
        CASE(silence_ends_a_rail_that_connects_and_progress_decides_for_one_that_is_up),
        CASE(address_of_the_last_request_is_used),
        CASE(each_message_goes_to_its_room),
        CASE(process_that_ends_opens_nothing),
        CASE(rdmacm_decides_at_once),
        CASE(request_that_waited_for_its_turn_is_dropped_if_the_port_died),
        CASE(reply_with_another_list_of_rails_ends_the_rail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
