/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Faults of softrail-plan(5) that break a queue pair, a completion queue or a shared receive queue, as either end sees them. Run this
 * program under softrail run with two rails and --retry-time 60ms.
 */
#include "sr_pair.h"

static const struct pair_options rc = {.type = IBV_QPT_RC, .rnr_retry = -1, .min_rnr_timer = 12};

static void fatal_breaks_one_queue_pair(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    softrail("fault fatal op=send nth=2");
    send_one(&p, 1);
    send_one(&p, 2);
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    assert_ptr_equal(p.a.qp, expect_event(p.context, IBV_EVENT_QP_FATAL).element.qp);
    expect_wc(p.a.send_cq, 2, IBV_WC_LOC_QP_OP_ERR);
    send_one(&p, 3);
    expect_wc(p.a.send_cq, 3, IBV_WC_WR_FLUSH_ERR);
    pair_close(&p);
}

static void completion_queue_dies_with_an_event(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    softrail("fault cq_error op=send nth=2");
    send_one(&p, 1);
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    expect_no_event(p.context);
    send_one(&p, 2);
    assert_ptr_equal(p.a.send_cq, expect_event(p.context, IBV_EVENT_CQ_ERR).element.cq);
    expect_wc(p.b.recv_cq, 1001, IBV_WC_SUCCESS);
    expect_wc(p.b.recv_cq, 1002, IBV_WC_SUCCESS); /* therefore the completion of the send was due */
    expect_nothing(p.a.send_cq);
    pair_close(&p);
}

static void shared_receive_queue_dies_with_an_event(void **state)
{
    struct pair p;

    pair_open(&p, (struct pair_options){.type = IBV_QPT_RC, .srq = true, .rnr_retry = 1, .min_rnr_timer = 1});
    softrail("fault srq_error op=write nth=1");
    send_one(&p, 1);
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    assert_int_equal(0, post_send(&p.b, IBV_WR_RDMA_WRITE, 2, 0, 10, 0, &p.a, 0));
    expect_wc(p.b.send_cq, 2, IBV_WC_SUCCESS);
    assert_ptr_equal(p.b.srq, expect_event(p.context, IBV_EVENT_SRQ_ERR).element.srq);
    send_one(&p, 3);
    expect_wc(p.a.send_cq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
    pair_close(&p);
}

struct receiver_breaks {
    const char *rule;
    bool arrives;
    enum ibv_wc_status first;
    bool at_once; /* before the 60 ms of a retry or of the rule */
};

/* Returns how long the sender waited, in ms. */
static uint64_t receiver_breaks(const struct receiver_breaks *c)
{
    struct pair p;
    uint64_t begin, took;

    pair_open(&p, rc);
    softrail("%s", c->rule);
    send_one(&p, 1);
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    begin = now_ms();
    send_one(&p, 2);
    expect_wc(p.b.recv_cq, 1001, IBV_WC_SUCCESS);
    if (c->arrives) {
        expect_wc(p.b.recv_cq, 1002, IBV_WC_SUCCESS);
    }
    expect_wc(p.a.send_cq, 2, c->first);
    took = now_ms() - begin;
    assert_ptr_equal(p.b.qp, expect_event(p.context, IBV_EVENT_QP_FATAL).element.qp);
    if (!c->arrives) {
        expect_wc(p.b.recv_cq, 1002, IBV_WC_WR_FLUSH_ERR);
    }
    assert_int_equal(0, post_recv(&p.b, 3, 0, 100));
    expect_wc(p.b.recv_cq, 3, IBV_WC_WR_FLUSH_ERR);
    softrail("fault --clear");
    pair_close(&p);
    return took;
}

/* The receiver's queue pair breaks at a message that is lost, or delivered. The sender gets no answer, or an error too. */
static void queue_pair_of_the_receiver_breaks(void **state)
{
    static const struct receiver_breaks cases[] = {{"fault lose breaks=receiver op=send nth=2", false, IBV_WC_RETRY_EXC_ERR, false},
                                                   {"fault unacked breaks=receiver op=send nth=2", true, IBV_WC_RETRY_EXC_ERR, false},
                                                   {"fault lose breaks=both op=send nth=2", false, IBV_WC_RETRY_EXC_ERR, true},
                                                   {"fault unacked breaks=both op=send nth=2", true, IBV_WC_RETRY_EXC_ERR, true},
                                                   {"fault silent breaks=receiver op=send nth=2 time=80ms", true, IBV_WC_SUCCESS, false},
                                                   {"fault silent breaks=both op=send nth=2 time=80ms", true, IBV_WC_RETRY_EXC_ERR, false}};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        uint64_t took = receiver_breaks(&cases[i]);

        for (int try = 1; cases[i].at_once && took >= 50 && try < TRIES; ++try) {
            took = receiver_breaks(&cases[i]);
        }
        assert_true(cases[i].at_once ? took < 50 : took >= 55);
    }
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    assert_int_equal(0, ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
    return attr.qp_state;
}

/* Returns how long the sender waited for its error, in ms. */
static uint64_t sender_breaks(const char *rule, bool arrives)
{
    struct pair p;
    uint64_t begin, took;

    pair_open(&p, rc);
    softrail("%s", rule);
    begin = now_ms();
    send_one(&p, 1);
    if (arrives) {
        expect_wc(p.b.recv_cq, 1001, IBV_WC_SUCCESS);
    }
    expect_wc(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    took = now_ms() - begin;
    expect_nothing(p.b.recv_cq);
    assert_int_equal(IBV_QPS_RTS, state_of(p.b.qp));
    softrail("fault --clear");
    pair_close(&p);
    return took;
}

/* The sender's queue pair breaks with the message, without a retry clock. The receiver's queue pair works on. */
static void queue_pair_of_the_sender_breaks(void **state)
{
    static const struct {
        const char *rule;
        bool arrives, silent;
    } cases[] = {{"fault lose breaks=sender nth=1", false, false},
                 {"fault unacked breaks=sender nth=1", true, false},
                 {"fault silent breaks=sender nth=1 time=80ms", true, true}};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        uint64_t took = sender_breaks(cases[i].rule, cases[i].arrives);

        for (int try = 1; !cases[i].silent && took >= 50 && try < TRIES; ++try) {
            took = sender_breaks(cases[i].rule, cases[i].arrives);
        }
        assert_true(cases[i].silent ? took >= 75 : took < 50);
    }
}

/* With breaks= a datagram ends with an error too: the sender's send queue stops (SQE), or the receiver's queue pair breaks. */
static void datagram_breaks_queue_pairs_if_asked_to(void **state)
{
    static const struct {
        const char *rule;
        bool arrives;
        enum ibv_wc_status status;
        enum ibv_qp_state a, b;
    } cases[] = {{"fault lose", false, IBV_WC_SUCCESS, IBV_QPS_RTS, IBV_QPS_RTS},
                 {"fault lose breaks=sender", false, IBV_WC_RETRY_EXC_ERR, IBV_QPS_SQE, IBV_QPS_RTS},
                 {"fault unacked breaks=sender", true, IBV_WC_RETRY_EXC_ERR, IBV_QPS_SQE, IBV_QPS_RTS},
                 {"fault silent breaks=sender time=20ms", true, IBV_WC_RETRY_EXC_ERR, IBV_QPS_SQE, IBV_QPS_RTS},
                 {"fault lose breaks=receiver", false, IBV_WC_SUCCESS, IBV_QPS_RTS, IBV_QPS_ERR},
                 {"fault unacked breaks=both", true, IBV_WC_RETRY_EXC_ERR, IBV_QPS_SQE, IBV_QPS_ERR}};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        struct pair p;
        struct ibv_ah_attr attr;
        struct ibv_sge sge;
        struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

        pair_open(&p, (struct pair_options){.type = IBV_QPT_UD});
        own_address(&p, &attr);
        sge = (struct ibv_sge){(uintptr_t) p.a.memory, 100, p.a.mr->lkey};
        wr.wr.ud.ah = ibv_create_ah(p.pd, &attr);
        assert_non_null(wr.wr.ud.ah);
        wr.wr.ud.remote_qpn = p.b.qp->qp_num;
        wr.wr.ud.remote_qkey = 0x1234;
        assert_int_equal(0, post_recv(&p.b, 2, 0, 200));
        softrail("%s", cases[i].rule);
        assert_int_equal(0, post_wr(&p.a, &wr));
        expect_wc(p.a.send_cq, 1, cases[i].status);
        if (cases[i].arrives) {
            expect_wc(p.b.recv_cq, 2, IBV_WC_SUCCESS);
        } else if (IBV_QPS_ERR == cases[i].b) {
            expect_wc(p.b.recv_cq, 2, IBV_WC_WR_FLUSH_ERR);
        }
        expect_nothing(p.b.recv_cq);
        assert_int_equal(cases[i].a, state_of(p.a.qp));
        assert_int_equal(cases[i].b, state_of(p.b.qp));
        if (IBV_QPS_ERR == cases[i].b) {
            assert_ptr_equal(p.b.qp, expect_event(p.context, IBV_EVENT_QP_FATAL).element.qp);
        }
        ibv_destroy_ah(wr.wr.ud.ah);
        softrail("fault --clear");
        pair_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(fatal_breaks_one_queue_pair, no_rules),
        cmocka_unit_test_teardown(completion_queue_dies_with_an_event, no_rules),
        cmocka_unit_test_teardown(shared_receive_queue_dies_with_an_event, no_rules),
        cmocka_unit_test_teardown(queue_pair_of_the_receiver_breaks, no_rules),
        cmocka_unit_test_teardown(queue_pair_of_the_sender_breaks, no_rules),
        cmocka_unit_test_teardown(datagram_breaks_queue_pairs_if_asked_to, no_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
