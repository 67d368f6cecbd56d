/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The keepalive of a process with many idle peers: it asks each peer once in a round, few of them at a time, and two processes
 * that keep step ask different peers. A rail that was never used is connected when no other rail is left. DESIGN.txt section 15.5.
 */
#include "bfo_config.h"

#include "qp/btl_openib_drain.h"
#include "types/btl_openib_endpoints.h"
#include "qp/btl_openib_gate.h"
#include "out/btl_openib_keepalive.h"
#include "types/btl_openib_mail.h"
#include "qp/btl_openib_qpset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PEERS = 4 * OFO_KEEPALIVE_TURNS };

ofo_component_t mca_btl_openib_component;

static ofo_module_t module;
static ofo_peer_t peer[PEERS];
static ofo_endpoint_t ep[PEERS];
static ofo_qpset_t *qps[PEERS];
static unsigned posts, wanted, turns; /* wanted: connections that were asked for; turns: events of queue pairs */
static bool refuses;

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **wrong)
{
    ++posts;
    return refuses ? -1 : 0;
}
void ofo_qpset_ask(const ofo_qpset_t *qps, struct ibv_send_wr *wr, struct ibv_sge *sge, uint32_t length) {}
bool ofo_drain_raise(ofo_qpset_t *qps, ofo_drain_event_t event, const char *why)
{
    turns += OFO_DEV_TURN == event;
    return ofo_drain_step(&qps->drain, event).listed;
}
void ofo_tell_service(ofo_endpoint_t *ep, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    wanted += OFO_MAIL_POST == kind;
}
void ofo_for_each_endpoint(ofo_module_t *module, void (*visit)(ofo_endpoint_t *))
{
    for (int i = 0; i < PEERS; ++i) {
        visit(&ep[i]);
    }
}

static int begin(void **state)
{
    static struct ibv_context context = {.ops = {.post_send = post_send}};
    static struct ibv_qp qp = {.context = &context};

    module = (ofo_module_t){.keepalive_turn = 0};
    refuses = OFO.closing = false;
    posts = wanted = turns = 0;
    OFO.self.vpid = 0;
    for (int i = 0; i < PEERS; ++i) {
        qps[i] = calloc(1, sizeof(*qps[i]) + sizeof(qps[i]->qp[0]));
        qps[i]->qp[0].qp = &qp;
        peer[i] = (ofo_peer_t){.name = {.jobid = 0, .vpid = (uint32_t) i}};
        ep[i] = (ofo_endpoint_t){.module = &module, .peer = &peer[i], .gate = OFO_GATE_UP, .qps = qps[i]};
    }
    return 0;
}

static int end(void **state)
{
    for (int i = 0; i < PEERS; ++i) {
        free(qps[i]);
    }
    return 0;
}

static void idle_peers_are_asked_a_few_at_a_time(void **state)
{
    for (int turn = 0; turn < OFO_KEEPALIVE_TURNS; ++turn) {
        posts = 0;
        ofo_keepalive(&module);
        assert_int_equal(posts, PEERS / OFO_KEEPALIVE_TURNS);
    }
    for (int i = 0; i < PEERS; ++i) {
        assert_true(qps[i]->is_asking);
    }
}

static void processes_in_step_ask_different_peers(void **state)
{
    bool first[PEERS];

    ofo_keepalive(&module);
    for (int i = 0; i < PEERS; ++i) {
        first[i] = qps[i]->is_asking;
    }
    end(NULL);
    begin(NULL);
    OFO.self.vpid = 1;
    ofo_keepalive(&module);
    for (int i = 0; i < PEERS; ++i) {
        assert_false(first[i] && qps[i]->is_asking);
    }
}

/* The first peer has two rails: one was never connected, the state of the other is given. No other peer has an idle rail. */
static unsigned connections_of_a_round(ofo_gate_t other_gate, int32_t refused_gen)
{
    ofo_endpoint_t other = {.module = &module, .peer = &peer[0], .gate = other_gate, .refused_gen = refused_gen};

    peer[0].rail[0] = &other;
    peer[0].rail[1] = &ep[0];
    peer[0].rail_count = 2;
    ep[0].gate = OFO_GATE_CLOSED;
    ep[0].qps = NULL;
    ep[0].refused_gen = OFO_GEN_NONE;
    wanted = 0;
    for (int turn = 0; turn < 2 * OFO_KEEPALIVE_TURNS; ++turn) {
        ofo_keepalive(&module);
    }
    peer[0].rail_count = 0;
    return wanted;
}

static void unused_rail_is_connected_once_when_the_used_rail_is_lost(void **state)
{
    assert_int_equal(connections_of_a_round(OFO_GATE_REFUSING, 0), 1);
    assert_int_equal(ep[0].gate, OFO_GATE_WAITING);
}

static void unused_rail_stays_closed_while_another_rail_is_in_use_or_none_was(void **state)
{
    assert_int_equal(connections_of_a_round(OFO_GATE_UP, OFO_GEN_NONE), 0);
    assert_int_equal(connections_of_a_round(OFO_GATE_WAITING, OFO_GEN_NONE), 0);
    assert_int_equal(connections_of_a_round(OFO_GATE_REFUSING, OFO_GEN_NONE), 0);
    assert_int_equal(ep[0].gate, OFO_GATE_CLOSED);
}

/* Runs the keepalive until each peer has had its turn. */
static void round_passes(void)
{
    for (int turn = 0; turn < OFO_KEEPALIVE_TURNS; ++turn) {
        ofo_keepalive(&module);
    }
}

static void refused_post_brings_the_rail_down(void **state)
{
    refuses = true;
    round_passes();
    assert_int_equal(posts, PEERS);
    for (int i = 0; i < PEERS; ++i) {
        assert_false(qps[i]->is_asking);
        assert_false(ofo_drain_is_live(&qps[i]->drain));
    }
    round_passes(); /* no more on a rail that has failed */
    assert_int_equal(posts, PEERS);
}

static void rail_with_traffic_is_not_asked(void **state)
{
    round_passes();
    for (int i = 0; i < PEERS; ++i) {
        qps[i]->is_asking = false;
        ++qps[i]->n_received;
    }
    round_passes();
    assert_int_equal(posts, PEERS);
    round_passes(); /* idle again */
    assert_int_equal(posts, 2 * PEERS);
    round_passes(); /* asked already */
    assert_int_equal(posts, 2 * PEERS);
}

static void nobody_asks_a_peer_that_leaves_or_belongs_to_another_job(void **state)
{
    for (int i = 0; i < PEERS; ++i) {
        peer[i].closing = 0 == i % 3;
        peer[i].declared = 1 == i % 3;
        peer[i].name.jobid = 2 == i % 3;
        assert_false(ofo_keepalive_may_ask(&peer[i]));
    }
    round_passes();
    assert_int_equal(posts, 0);
    (void) end(NULL);
    (void) begin(NULL);
    assert_true(ofo_keepalive_may_ask(&peer[0]));
    OFO.closing = true;
    assert_false(ofo_keepalive_may_ask(&peer[0]));
    ep[1].gate = OFO_GATE_REFUSING;
    ep[2].qps = NULL;
    round_passes();
    assert_int_equal(posts, 0);
}

/* Queue pairs that the peer has closed take their turn, unless this process or the peer ends. */
static void closed_queue_pairs_take_their_turn(void **state)
{
    for (int i = 0; i < PEERS; ++i) {
        qps[i]->drain.own = OFO_DRAIN_CLOSED;
        peer[i].closing = 0 != i;
    }
    round_passes();
    assert_int_equal(turns, 1);
    peer[1].closing = false;
    OFO.closing = true;
    round_passes();
    assert_int_equal(turns, 1);
    assert_int_equal(posts, 0);
}

static void closed_rail_of_a_declared_peer_refuses(void **state)
{
    bool begins = false;
    int rc = OPAL_SUCCESS;

    ep[0].gate = OFO_GATE_CLOSED;
    peer[0].declared = true;
    ofo_gate_ask(&ep[0], &begins, &rc);
    assert_int_equal(ep[0].gate, OFO_GATE_REFUSING);
    assert_int_equal(rc, OPAL_ERR_UNREACH);
    assert_false(begins);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(idle_peers_are_asked_a_few_at_a_time),
        TEST(processes_in_step_ask_different_peers),
        TEST(unused_rail_is_connected_once_when_the_used_rail_is_lost),
        TEST(unused_rail_stays_closed_while_another_rail_is_in_use_or_none_was),
        TEST(refused_post_brings_the_rail_down),
        TEST(rail_with_traffic_is_not_asked),
        TEST(nobody_asks_a_peer_that_leaves_or_belongs_to_another_job),
        TEST(closed_queue_pairs_take_their_turn),
        TEST(closed_rail_of_a_declared_peer_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
