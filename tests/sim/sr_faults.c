/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Every fault of softrail-plan(5), as either end of a connection sees it; sr_breaks.c has those that break a queue. Run this program
 * under softrail run with two rails and --retry-time 60ms.
 */
#include "sr_pair.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const struct pair_options rc = {.type = IBV_QPT_RC, .rnr_retry = -1, .min_rnr_timer = 12};

static void lost_message_ends_in_retry_exceeded(void **state)
{
    struct pair p;
    uint64_t begin;

    pair_open(&p, rc);
    softrail("fault lose rail=sr0 op=send nth=2");
    send_one(&p, 1);
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    begin = now_ms();
    send_one(&p, 2);
    send_one(&p, 3);
    expect_wc(p.a.send_cq, 2, IBV_WC_RETRY_EXC_ERR);
    assert_true(now_ms() - begin >= 55);
    expect_wc(p.a.send_cq, 3, IBV_WC_WR_FLUSH_ERR);
    expect_wc(p.b.recv_cq, 1001, IBV_WC_SUCCESS);
    expect_nothing(p.b.recv_cq);
    pair_close(&p);
}

static void unacknowledged_messages_arrive_exactly_once(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    softrail("fault unacked op=send nth=2-3");
    for (uint64_t i = 1; i <= 4; ++i) {
        send_one(&p, i);
    }
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.a.send_cq, 2, IBV_WC_RETRY_EXC_ERR);
    expect_wc(p.a.send_cq, 3, IBV_WC_WR_FLUSH_ERR);
    expect_wc(p.a.send_cq, 4, IBV_WC_WR_FLUSH_ERR);
    for (uint64_t i = 1; i <= 3; ++i) { /* the second and third arrived although the sender got errors */
        expect_wc(p.b.recv_cq, 1000 + i, IBV_WC_SUCCESS);
    }
    usleep(100000);
    expect_nothing(p.b.recv_cq);
    pair_close(&p);
}

static void migrated_path_is_an_event_and_no_error(void **state)
{
    struct pair p;
    struct ibv_async_event event;

    pair_open(&p, rc);
    softrail("fault migrated op=send nth=2");
    send_one(&p, 1);
    send_one(&p, 2);
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.a.send_cq, 2, IBV_WC_SUCCESS);
    assert_int_equal(0, ibv_get_async_event(p.context, &event));
    assert_int_equal(IBV_EVENT_PATH_MIG, event.event_type);
    assert_ptr_equal(p.a.qp, event.element.qp);
    ibv_ack_async_event(&event);
    pair_close(&p);
}

static void swallowed_message_is_a_success_for_its_sender_only(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    softrail("fault swallow op=send nth=2");
    for (uint64_t i = 1; i <= 3; ++i) {
        send_one(&p, i);
        expect_wc(p.a.send_cq, i, IBV_WC_SUCCESS);
    }
    expect_wc(p.b.recv_cq, 1001, IBV_WC_SUCCESS);
    expect_wc(p.b.recv_cq, 1002, IBV_WC_SUCCESS); /* the third message takes this receive */
    expect_nothing(p.b.recv_cq);
    pair_close(&p);
}

static void silent_and_delayed_messages_take_their_time(void **state)
{
    struct pair p;
    uint64_t begin;

    pair_open(&p, rc);
    softrail("fault silent op=send nth=1 time=1s");
    softrail("fault delay op=write time=1s");
    begin = now_ms();
    send_one(&p, 1);
    expect_wc(p.b.recv_cq, 1001, IBV_WC_SUCCESS);
    expect_nothing(p.a.send_cq); /* the answer takes a second */
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    assert_true(now_ms() - begin >= 999);
    memset(p.b.memory, 0, 100);
    begin = now_ms();
    fill(p.a.memory, 100, 7);
    assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_WRITE, 2, 0, 100, 0, &p.b, 0));
    expect_nothing(p.a.send_cq);
    assert_int_equal(0, p.b.memory[50]);
    expect_wc(p.a.send_cq, 2, IBV_WC_SUCCESS);
    assert_true(now_ms() - begin >= 999);
    verify(p.b.memory, 100, 7);
    pair_close(&p);
}

static void one_payload_byte_is_inverted(void **state)
{
    static const uint32_t sizes[] = {10, 1000, 100000};
    struct pair p;

    pair_open(&p, rc);
    softrail("fault corrupt at=7");
    for (unsigned i = 0; i < 3; ++i) {
        fill(p.a.memory, sizes[i], i);
        assert_int_equal(0, post_recv(&p.b, i, 0, PAIR_BYTES));
        assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, i, 0, sizes[i], 0, NULL, 0));
        expect_wc(p.a.send_cq, i, IBV_WC_SUCCESS);
        expect_wc(p.b.recv_cq, i, IBV_WC_SUCCESS);
        verify(p.a.memory, sizes[i], i); /* the sender's memory is not corrupted */
        p.b.memory[7] ^= 0xff;
        verify(p.b.memory, sizes[i], i);
    }
    fill(p.b.memory, 100, 3);
    assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_READ, 9, 500, 100, 0, &p.b, 0));
    expect_wc(p.a.send_cq, 9, IBV_WC_SUCCESS);
    p.a.memory[507] ^= 0xff;
    verify(p.a.memory + 500, 100, 3);
    pair_close(&p);
}

static void error_reaches_one_side_only(void **state)
{
    struct pair p;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    pair_open(&p, rc);
    softrail("fault error status=general nth=1");
    send_one(&p, 1);
    expect_wc(p.a.send_cq, 1, IBV_WC_GENERAL_ERR);
    expect_nothing(p.b.recv_cq);
    assert_int_equal(0, ibv_query_qp(p.b.qp, &attr, IBV_QP_STATE, &init));
    assert_int_equal(IBV_QPS_RTS, attr.qp_state);
    pair_close(&p);
}

static void rule_counts_only_behind_the_rule_it_names(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    softrail("fault swallow nth=3"); /* the first rule that fires decides */
    softrail("fault lose nth=2 after=1");
    for (uint64_t id = 1; id <= 5; ++id) {
        send_one(&p, id);
    }
    for (uint64_t id = 1; id <= 4; ++id) {
        expect_wc(p.a.send_cq, id, IBV_WC_SUCCESS);
    }
    expect_wc(p.a.send_cq, 5, IBV_WC_RETRY_EXC_ERR);
    pair_close(&p);
}

static void mark_does_nothing_but_starts_a_rule(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    softrail("fault mark nth=2");
    softrail("fault lose other=1 after=1"); /* no message on another rail */
    softrail("fault lose nth=2 same=1");    /* the marked message counts */
    for (uint64_t id = 1; id <= 3; ++id) {
        send_one(&p, id);
    }
    for (uint64_t id = 1; id <= 2; ++id) {
        expect_wc(p.a.send_cq, id, IBV_WC_SUCCESS);
    }
    expect_wc(p.a.send_cq, 3, IBV_WC_RETRY_EXC_ERR);
    pair_close(&p);
}

static void payload_pattern_names_one_kind_of_message(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    softrail("fault error payload=2:41b0/fff0");
    p.a.memory[2] = 0x41;
    p.a.memory[3] = 0xc7; /* the masked value differs */
    assert_int_equal(0, post_recv(&p.b, 1, 0, 100));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 50, 0, NULL, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    p.a.memory[3] = 0xb9;
    assert_int_equal(0, post_recv(&p.b, 2, 0, 100));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 2, 0, 3, 0, NULL, 0)); /* too short to match */
    expect_wc(p.a.send_cq, 2, IBV_WC_SUCCESS);
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 3, 0, 4, 0, NULL, 0));
    expect_wc(p.a.send_cq, 3, IBV_WC_RETRY_EXC_ERR);
    pair_close(&p);
}

static void exhaustion_is_reported_as_such(void **state)
{
    struct pair p;
    struct ibv_qp_attr broken = {.qp_state = IBV_QPS_ERR};
    struct ibv_qp_init_attr init;

    pair_open(&p, rc);
    softrail("fault enomem op=reg_mr nth=1");
    softrail("fault enomem op=create_qp nth=1");
    softrail("fault enomem op=qp_error nth=1");
    softrail("fault enomem op=send nth=1-2");
    softrail("fault rnr op=send nth=1 time=50ms");
    assert_null(ibv_reg_mr(p.pd, p.a.memory, 100, 0));
    assert_int_equal(ENOMEM, errno);
    memset(&init, 0, sizeof(init));
    init.send_cq = init.recv_cq = p.a.send_cq;
    init.qp_type = IBV_QPT_RC;
    assert_null(ibv_create_qp(p.pd, &init));
    assert_int_equal(ENOMEM, errno);
    assert_int_equal(ENOMEM, ibv_modify_qp(p.b.qp, &broken, IBV_QP_STATE)); /* the queue pair does not change */
    assert_int_equal(0, post_recv(&p.b, 1, 0, 100));
    assert_int_equal(ENOMEM, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    assert_int_equal(ENOMEM, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0)); /* the receiver is not ready at first */
    expect_nothing(p.a.send_cq);
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.b.recv_cq, 1, IBV_WC_SUCCESS);
    pair_close(&p);
}

static void slow_call_comes_back_late(void **state)
{
    struct pair p;
    struct ibv_qp_attr broken = {.qp_state = IBV_QPS_ERR};
    uint64_t begin;

    pair_open(&p, rc);
    softrail("fault slow op=qp_error nth=1 time=1s");
    begin = now_ms();
    assert_int_equal(0, ibv_modify_qp(p.a.qp, &broken, IBV_QP_STATE));
    assert_true(now_ms() - begin >= 999);
    assert_int_equal(0, post_recv(&p.b, 1, 0, 100)); /* other calls are not slower */
    begin = now_ms();
    assert_int_equal(0, ibv_modify_qp(p.b.qp, &broken, IBV_QP_STATE));
    assert_true(now_ms() - begin < 999);
    pair_close(&p);
}

static void late_write_lands_after_its_error(void **state)
{
    struct pair p;
    uint64_t end;

    pair_open(&p, rc);
    softrail("fault late op=write time=1s"); /* long enough for a machine without a free processor */
    fill(p.a.memory, 5000, 4);
    assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 5000, 0, &p.b, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(0, p.b.memory[3]);
    memset(p.a.memory, 0, 5000); /* the WRITE carries the bytes as they were when it was posted */
    for (end = now_ms() + 20000; 0 == *(volatile unsigned char *) &p.b.memory[4999] && now_ms() < end;) {
        usleep(1000);
    }
    verify(p.b.memory, 5000, 4);
    pair_close(&p);
}

static void late_write_is_fenced_by_the_error_state(void **state)
{
    struct pair p;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    pair_open(&p, rc);
    softrail("fault late op=write time=1s");
    fill(p.a.memory, 100, 4);
    assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 100, 0, &p.b, 0));
    assert_int_equal(0, ibv_modify_qp(p.b.qp, &attr, IBV_QP_STATE));
    usleep(1200000);
    assert_int_equal(0, p.b.memory[3]);
    pair_close(&p);
}

static void cable_goes_at_the_message_named(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    softrail("fault down rail=sr0 nth=2 time=20ms"); /* a flap, shorter than the retry time */
    send_one(&p, 1);
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    expect_no_event(p.context);
    send_one(&p, 2);
    expect_event(p.context, IBV_EVENT_PORT_ERR);
    expect_event(p.context, IBV_EVENT_PORT_ACTIVE);
    expect_wc(p.a.send_cq, 2, IBV_WC_SUCCESS);
    pair_close(&p);
}

static void quiet_cable_is_seen_by_the_query_alone(void **state)
{
    struct pair p;
    struct ibv_port_attr port;

    pair_open(&p, rc);
    softrail("fault down quiet rail=sr0 nth=1");
    send_one(&p, 1);
    expect_wc(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(0, ibv_query_port(p.context, 1, &port));
    assert_int_equal(IBV_PORT_DOWN, port.state);
    expect_no_event(p.context);
    softrail("up sr0");
    expect_event(p.context, IBV_EVENT_PORT_ACTIVE);
    pair_close(&p);
}

static void device_that_is_gone_refuses_everything(void **state)
{
    struct pair p;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_port_attr port;

    pair_open(&p, (struct pair_options){.type = IBV_QPT_RC, .rail = 1});
    softrail("gone sr1");
    expect_event(p.context, IBV_EVENT_DEVICE_FATAL);
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(EIO, ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE));
    assert_int_equal(EIO, ibv_query_port(p.context, 1, &port));
    assert_null(ibv_alloc_pd(p.context));
    assert_int_equal(EIO, errno);
    pair_close(&p); /* the objects that are left can be destroyed */
}

static void gid_changes_with_an_event(void **state)
{
    struct pair p;
    union ibv_gid before, after;

    pair_open(&p, rc);
    assert_int_equal(0, ibv_query_gid(p.context, 1, 0, &before));
    softrail("gid sr0");
    expect_event(p.context, IBV_EVENT_GID_CHANGE);
    assert_int_equal(0, ibv_query_gid(p.context, 1, 0, &after));
    assert_memory_not_equal(&before, &after, sizeof(before));
    pair_close(&p);
}

/* Returns how long 20 WRITEs of that size take that are posted together, in ms. */
static uint64_t twenty_writes(struct pair *p, uint32_t bytes)
{
    const uint64_t begin = now_ms();

    for (uint64_t i = 0; i < 20; ++i) {
        assert_int_equal(0, post_send(&p->a, IBV_WR_RDMA_WRITE, i, 0, bytes, 0, &p->b, 0));
    }
    for (uint64_t i = 0; i < 20; ++i) {
        expect_wc(p->a.send_cq, i, IBV_WC_SUCCESS);
    }
    return now_ms() - begin;
}

/* They take at least `least`, and at most `most` in one of several tries, because a busy machine may be late. */
static void twenty_writes_take(struct pair *p, uint32_t bytes, uint64_t least, uint64_t most)
{
    uint64_t took = 0;

    for (int try = 0; 0 == try || (took > most && try < TRIES); ++try) {
        took = twenty_writes(p, bytes);
        assert_true(took >= least);
    }
    assert_true(took <= most);
}

static void limited_rail_carries_what_it_may(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    softrail("set sr0 --rate 800M"); /* 100 MB/s: 20 x 1 MiB take 0.21 s */
    twenty_writes_take(&p, PAIR_BYTES, 207, 400);
    softrail("set sr0 --rate 0 --latency 30ms");
    twenty_writes_take(&p, 10, 29, 200); /* the latencies overlap */
    softrail("set sr0 --latency 0us");
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lost_message_ends_in_retry_exceeded, no_rules),
        cmocka_unit_test_teardown(unacknowledged_messages_arrive_exactly_once, no_rules),
        cmocka_unit_test_teardown(migrated_path_is_an_event_and_no_error, no_rules),
        cmocka_unit_test_teardown(swallowed_message_is_a_success_for_its_sender_only, no_rules),
        cmocka_unit_test_teardown(silent_and_delayed_messages_take_their_time, no_rules),
        cmocka_unit_test_teardown(one_payload_byte_is_inverted, no_rules),
        cmocka_unit_test_teardown(error_reaches_one_side_only, no_rules),
        cmocka_unit_test_teardown(rule_counts_only_behind_the_rule_it_names, no_rules),
        cmocka_unit_test_teardown(mark_does_nothing_but_starts_a_rule, no_rules),
        cmocka_unit_test_teardown(payload_pattern_names_one_kind_of_message, no_rules),
        cmocka_unit_test_teardown(exhaustion_is_reported_as_such, no_rules),
        cmocka_unit_test_teardown(slow_call_comes_back_late, no_rules),
        cmocka_unit_test_teardown(late_write_lands_after_its_error, no_rules),
        cmocka_unit_test_teardown(late_write_is_fenced_by_the_error_state, no_rules),
        cmocka_unit_test_teardown(cable_goes_at_the_message_named, no_rules),
        cmocka_unit_test_teardown(quiet_cable_is_seen_by_the_query_alone, no_rules),
        cmocka_unit_test_teardown(gid_changes_with_an_event, no_rules),
        cmocka_unit_test_teardown(limited_rail_carries_what_it_may, no_rules),
        cmocka_unit_test_teardown(device_that_is_gone_refuses_everything, no_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
