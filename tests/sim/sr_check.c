/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Behaviour of the verbs that no tool shows: error and flush semantics, keys and access, limits. Events, the link and
 * time are in sr_check_events.c. Run this program under softrail run with two rails and --retry-time 60ms.
 */
#include "sr_check.h"
#include "sr_pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct pair_options rc = {.type = IBV_QPT_RC, .rnr_retry = -1, .min_rnr_timer = 12};

/* ---- data --------------------------------------------------------------------------------------- */

static void send_of_every_size_arrives_whole(void **state)
{
    static const uint32_t sizes[] = {0, 1, 8, 20, 21, 64, 1000, 2048, 2049, 4096, 65536, 300001};
    struct pair p;

    pair_open(&p, rc);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        struct ibv_wc wc;
        fill(p.a.memory, sizes[i], i);
        assert_int_equal(0, post_recv(&p.b, 100 + i, 0, PAIR_BYTES));
        assert_int_equal(0, post_send(&p.a, IBV_WR_SEND_WITH_IMM, i, 0, sizes[i], 0, NULL, 0));
        expect_wc(p.a.send_cq, i, IBV_WC_SUCCESS);
        wc = expect_wc(p.b.recv_cq, 100 + i, IBV_WC_SUCCESS);
        assert_int_equal(sizes[i], wc.byte_len);
        assert_int_equal(0x11223344, wc.imm_data);
        assert_int_equal(IBV_WC_RECV, wc.opcode);
        assert_int_equal(p.b.qp->qp_num, wc.qp_num);
        verify(p.b.memory, sizes[i], i);
        memset(p.b.memory, 0xee, sizes[i]);
    }
    pair_close(&p);
}

static void scattered_send_lands_in_scattered_receive(void **state)
{
    struct pair p;
    struct ibv_send_wr *bad_send;
    struct ibv_recv_wr *bad_recv;

    pair_open(&p, rc);
    for (uint32_t unit = 3; unit < 9000; unit *= 9) {
        struct ibv_sge from[3], to[2];
        for (uint32_t i = 0; i < 3; ++i) {
            from[i] = (struct ibv_sge){(uintptr_t) p.a.memory + i * 20000, unit + i, p.a.mr->lkey};
        }
        to[0] = (struct ibv_sge){(uintptr_t) p.b.memory + 500, unit / 2, p.b.mr->lkey};
        to[1] = (struct ibv_sge){(uintptr_t) p.b.memory + 100000, 50000, p.b.mr->lkey};
        struct ibv_recv_wr recv = {.wr_id = 2, .sg_list = to, .num_sge = 2};
        struct ibv_send_wr send = {.wr_id = 1, .sg_list = from, .num_sge = 3, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
        unsigned char expected[30000], got[30000];
        uint32_t total = 0;
        fill(p.a.memory, 60000, unit);
        for (uint32_t i = 0; i < 3; total += from[i++].length) {
            memcpy(expected + total, (void *) (uintptr_t) from[i].addr, from[i].length);
        }
        assert_int_equal(0, ibv_post_recv(p.b.qp, &recv, &bad_recv));
        assert_int_equal(0, ibv_post_send(p.a.qp, &send, &bad_send));
        expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
        assert_int_equal(total, expect_wc(p.b.recv_cq, 2, IBV_WC_SUCCESS).byte_len);
        memcpy(got, p.b.memory + 500, unit / 2);
        memcpy(got + unit / 2, p.b.memory + 100000, total - unit / 2);
        assert_memory_equal(expected, got, total);
    }
    pair_close(&p);
}

static void write_read_and_atomics_reach_memory(void **state)
{
    struct pair p;
    struct ibv_wc wc;
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    uint64_t value;

    pair_open(&p, rc);
    fill(p.a.memory, 100000, 9);
    assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 99999, 0, &p.b, 5));
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    verify(p.b.memory + 5, 99999, 9);
    assert_int_equal(0, post_recv(&p.b, 7, 0, 0));
    assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 500, 0, &p.b, 200000));
    expect_wc(p.a.send_cq, 2, IBV_WC_SUCCESS);
    wc = expect_wc(p.b.recv_cq, 7, IBV_WC_SUCCESS);
    assert_int_equal(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
    assert_int_equal(500, wc.byte_len);
    verify(p.b.memory + 200000, 500, 9);
    assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_READ, 3, 300000, 99999, 0, &p.b, 5));
    assert_int_equal(IBV_WC_RDMA_READ, expect_wc(p.a.send_cq, 3, IBV_WC_SUCCESS).opcode);
    verify(p.a.memory + 300000, 99999, 9);

    value = 40;
    memcpy(p.b.memory, &value, 8);
    sge = (struct ibv_sge){(uintptr_t) p.a.memory, 8, p.a.mr->lkey};
    memset(&wr, 0, sizeof(wr));
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.remote_addr = (uintptr_t) p.b.memory;
    wr.wr.atomic.rkey = p.b.mr->rkey;
    wr.wr.atomic.compare_add = 2;
    assert_int_equal(0, post_wr(&p.a, &wr));
    expect_wc(p.a.send_cq, 0, IBV_WC_SUCCESS);
    assert_int_equal(40, *(uint64_t *) (void *) p.a.memory);
    wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr.wr.atomic.compare_add = 42;
    wr.wr.atomic.swap = 99;
    assert_int_equal(0, post_wr(&p.a, &wr));
    expect_wc(p.a.send_cq, 0, IBV_WC_SUCCESS);
    assert_int_equal(42, *(uint64_t *) (void *) p.a.memory);
    assert_int_equal(99, *(uint64_t *) (void *) p.b.memory);
    pair_close(&p);
}

static void inline_data_may_change_after_the_post(void **state)
{
    struct pair p;
    unsigned char local[100]; /* not registered, as inline data need not be */
    struct ibv_sge sge = {(uintptr_t) local, 100, 0};
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};

    pair_open(&p, rc);
    fill(local, 100, 5);
    assert_int_equal(0, post_wr(&p.a, &wr)); /* waits: no receive is posted */
    memset(local, 0, 100);
    assert_int_equal(0, post_recv(&p.b, 2, 0, 100));
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.b.recv_cq, 2, IBV_WC_SUCCESS);
    verify(p.b.memory, 100, 5);
    pair_close(&p);
}

static void datagram_carries_header_and_qkey(void **state)
{
    struct pair p;
    struct ibv_ah_attr attr;
    struct ibv_ah *ah;
    struct ibv_wc wc;
    struct ibv_sge sge;
    struct ibv_send_wr wr;

    pair_open(&p, (struct pair_options){.type = IBV_QPT_UD});
    own_address(&p, &attr);
    ah = ibv_create_ah(p.pd, &attr);
    assert_non_null(ah);
    fill(p.a.memory, 4096, 3);
    sge = (struct ibv_sge){(uintptr_t) p.a.memory, 4096, p.a.mr->lkey};
    memset(&wr, 0, sizeof(wr));
    wr.wr_id = 1;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = p.b.qp->qp_num;
    wr.wr.ud.remote_qkey = 0x9999; /* wrong: the datagram is dropped without an error */
    assert_int_equal(0, post_recv(&p.b, 2, 0, 5000));
    assert_int_equal(0, post_wr(&p.a, &wr));
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    expect_nothing(p.b.recv_cq);
    wr.wr.ud.remote_qkey = 0x1234;
    assert_int_equal(0, post_wr(&p.a, &wr));
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    wc = expect_wc(p.b.recv_cq, 2, IBV_WC_SUCCESS);
    assert_int_equal(4136, wc.byte_len);
    assert_int_equal(p.a.qp->qp_num, wc.src_qp);
    verify(p.b.memory + 40, 4096, 3);
    sge.length = 4097; /* more than the MTU */
    assert_int_equal(EINVAL, post_wr(&p.a, &wr));
    assert_int_equal(0, ibv_destroy_ah(ah));
    pair_close(&p);
}

/* ---- errors and the flush ----------------------------------------------------------------------- */

static void wrong_rkey_fails_once_then_everything_is_flushed(void **state)
{
    struct pair p;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_sge sge;

    pair_open(&p, rc);
    sge = (struct ibv_sge){(uintptr_t) p.a.memory, 64, p.a.mr->lkey};
    wr.sg_list = &sge;
    wr.wr.rdma.remote_addr = (uintptr_t) p.b.memory;
    wr.wr.rdma.rkey = p.b.mr->rkey ^ 1;
    assert_int_equal(0, post_recv(&p.a, 10, 0, 100));
    assert_int_equal(0, post_recv(&p.b, 20, 0, 100));
    assert_int_equal(0, post_recv(&p.b, 21, 0, 100));
    assert_int_equal(0, post_wr(&p.a, &wr));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 2, 0, 8, 0, NULL, 0)); /* posting in the error state works */
    expect_wc(p.a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
    expect_wc(p.a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    expect_wc(p.a.recv_cq, 10, IBV_WC_WR_FLUSH_ERR);
    expect_wc(p.b.recv_cq, 20, IBV_WC_WR_FLUSH_ERR);
    expect_wc(p.b.recv_cq, 21, IBV_WC_WR_FLUSH_ERR);
    assert_ptr_equal(p.b.qp, expect_event(p.context, IBV_EVENT_QP_ACCESS_ERR).element.qp);
    assert_int_equal(0, post_recv(&p.b, 22, 0, 100));
    expect_wc(p.b.recv_cq, 22, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(0, ibv_query_qp(p.b.qp, &attr, IBV_QP_STATE, &init));
    assert_int_equal(IBV_QPS_ERR, attr.qp_state);
    pair_close(&p);
}

static void memory_access_is_checked(void **state)
{
    struct pair p;
    struct ibv_mr *read_only;
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_sge sge;

    for (int variant = 0; variant < 4; ++variant) {
        pair_open(&p, rc);
        read_only = ibv_reg_mr(p.pd, p.b.memory, 4096, IBV_ACCESS_REMOTE_READ);
        sge = (struct ibv_sge){(uintptr_t) p.a.memory, 64, p.a.mr->lkey};
        wr.sg_list = &sge;
        wr.wr.rdma.remote_addr = (uintptr_t) p.b.memory;
        wr.wr.rdma.rkey = 0 == variant ? read_only->rkey : p.b.mr->rkey;
        if (1 == variant) {
            wr.wr.rdma.remote_addr += PAIR_BYTES - 63; /* one byte too far */
        }
        if (2 == variant) {
            wr.wr.rdma.remote_addr = UINT64_MAX - 10; /* wraps */
        }
        if (3 == variant) {
            sge.lkey ^= 0x100;
        }
        memset(p.b.memory, 0xaa, 64);
        assert_int_equal(0, post_wr(&p.a, &wr));
        expect_wc(p.a.send_cq, 1, 3 == variant ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR);
        assert_int_equal(0xaa, p.b.memory[0]);
        if (3 != variant) {
            expect_event(p.context, IBV_EVENT_QP_ACCESS_ERR);
        }
        assert_int_equal(0, ibv_dereg_mr(read_only));
        pair_close(&p);
    }
}

static void deregistered_memory_is_out_of_reach(void **state)
{
    struct pair p;
    struct ibv_mr *mr;
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_READ, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_sge sge;
    uint32_t old_key;

    pair_open(&p, rc);
    mr = ibv_reg_mr(p.pd, p.b.memory, 4096, IBV_ACCESS_REMOTE_READ);
    old_key = mr->rkey;
    assert_int_equal(0, ibv_dereg_mr(mr));
    mr = ibv_reg_mr(p.pd, p.b.memory, 4096, IBV_ACCESS_REMOTE_READ);
    assert_int_not_equal(old_key, mr->rkey);
    sge = (struct ibv_sge){(uintptr_t) p.a.memory, 64, p.a.mr->lkey};
    wr.sg_list = &sge;
    wr.wr.rdma.remote_addr = (uintptr_t) p.b.memory;
    wr.wr.rdma.rkey = old_key;
    assert_int_equal(0, post_wr(&p.a, &wr));
    expect_wc(p.a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(0, ibv_dereg_mr(mr));
    pair_close(&p);
}

static void too_long_a_message_fails_both_ends(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    assert_int_equal(0, post_recv(&p.b, 2, 0, 99));
    assert_int_equal(0, post_recv(&p.b, 3, 0, 99));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 100, 0, NULL, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
    expect_wc(p.b.recv_cq, 2, IBV_WC_LOC_LEN_ERR);
    expect_wc(p.b.recv_cq, 3, IBV_WC_WR_FLUSH_ERR);
    pair_close(&p);
}

static void receive_without_a_valid_key_fails_both_ends(void **state)
{
    struct pair p;
    struct ibv_recv_wr *bad;
    struct ibv_sge sge;
    struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};

    pair_open(&p, rc);
    sge = (struct ibv_sge){(uintptr_t) p.b.memory, 100, p.b.mr->lkey ^ 0x300};
    assert_int_equal(0, ibv_post_recv(p.b.qp, &wr, &bad));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_REM_OP_ERR);
    expect_wc(p.b.recv_cq, 2, IBV_WC_LOC_PROT_ERR);
    pair_close(&p);
}

static void receiver_not_ready_waits_or_ends(void **state)
{
    struct pair_options few = {.type = IBV_QPT_RC, .rnr_retry = 2, .min_rnr_timer = 20 /* 10.24 ms */};
    struct pair p;
    uint64_t begin;

    pair_open(&p, rc); /* retries without end */
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 2, 0, 10, 0, NULL, 0));
    expect_nothing(p.a.send_cq);
    usleep(30000);
    assert_int_equal(0, post_recv(&p.b, 3, 0, 100));
    assert_int_equal(0, post_recv(&p.b, 4, 0, 100));
    expect_wc(p.b.recv_cq, 3, IBV_WC_SUCCESS);
    expect_wc(p.b.recv_cq, 4, IBV_WC_SUCCESS);
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.a.send_cq, 2, IBV_WC_SUCCESS);
    pair_close(&p);

    pair_open(&p, few);
    begin = now_ms();
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 2, 0, 10, 0, NULL, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    assert_true(now_ms() - begin >= 19);
    expect_wc(p.a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    pair_close(&p);
}

static void error_state_discards_what_comes_in(void **state)
{
    struct pair p;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    uint64_t begin = now_ms();

    pair_open(&p, rc);
    assert_int_equal(0, ibv_modify_qp(p.b.qp, &attr, IBV_QP_STATE));
    memset(p.b.memory, 0x55, 100);
    assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 100, 0, &p.b, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    assert_true(now_ms() - begin >= 55); /* --retry-time 60ms */
    assert_int_equal(0x55, p.b.memory[0]);
    attr.qp_state = IBV_QPS_RESET;
    assert_int_equal(0, ibv_modify_qp(p.b.qp, &attr, IBV_QP_STATE));
    pair_close(&p);
}

static void reset_queue_pair_can_be_connected_again(void **state)
{
    struct pair p;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    struct ibv_ah_attr address;

    pair_open(&p, rc);
    assert_int_equal(0, post_recv(&p.b, 1, 0, 100));
    assert_int_equal(0, post_recv(&p.b, 2, 0, 100));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 3, 0, 100, 0, NULL, 0));
    assert_int_equal(0, ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE));
    assert_int_equal(0, ibv_modify_qp(p.b.qp, &attr, IBV_QP_STATE));
    expect_nothing(p.a.send_cq); /* the reset has removed the completions */
    expect_nothing(p.b.recv_cq);
    side_to_init(&p, &p.a);
    side_to_init(&p, &p.b);
    own_address(&p, &address);
    side_connect(&p, &p.a, &address, p.b.qp->qp_num, rc);
    side_connect(&p, &p.b, &address, p.a.qp->qp_num, rc);
    for (uint64_t i = 0; i < 100; ++i) {
        assert_int_equal(0, post_recv(&p.b, 50 + i, 0, 3000));
        assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 10 + i, 0, 1500, 0, NULL, 0));
        expect_wc(p.a.send_cq, 10 + i, IBV_WC_SUCCESS);
        expect_wc(p.b.recv_cq, 50 + i, IBV_WC_SUCCESS);
    }
    pair_close(&p);
}

/* ---- limits ------------------------------------------------------------------------------------- */

static void full_queues_refuse_and_polling_makes_room(void **state)
{
    struct pair p;
    int posted = 0;

    pair_open(&p, rc);
    while (0 == post_recv(&p.b, (uint64_t) posted, 0, 64)) {
        ++posted;
    }
    assert_int_equal(PAIR_DEPTH, posted);
    assert_int_equal(ENOMEM, post_recv(&p.b, 99, 0, 64));
    for (int i = 0; i < PAIR_DEPTH; ++i) {
        assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, (uint64_t) i, 0, 64, 0, NULL, 0));
    }
    assert_int_equal(ENOMEM, post_send(&p.a, IBV_WR_SEND, 99, 0, 64, 0, NULL, 0)); /* the completions are not polled yet */
    expect_wc(p.a.send_cq, 0, IBV_WC_SUCCESS);
    assert_int_equal(ENOMEM, post_recv(&p.b, 99, 0, 64));
    expect_wc(p.b.recv_cq, 0, IBV_WC_SUCCESS);
    assert_int_equal(0, post_recv(&p.b, 99, 0, 64));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 99, 0, 64, 0, NULL, 0));
    pair_close(&p);
}

static void illegal_requests_are_refused(void **state)
{
    struct pair p;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    struct ibv_qp_init_attr init;
    char *hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    pair_open(&p, rc);
    assert_int_equal(EINVAL, ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE));                        /* RTS to RTR */
    assert_int_equal(EINVAL, post_send(&p.a, IBV_WR_SEND, 1, 0, 200, IBV_SEND_INLINE, NULL, 0)); /* max 128 */
    assert_int_equal(EINVAL, post_send(&p.a, IBV_WR_TSO, 1, 0, 20, 0, NULL, 0));
    memset(&init, 0, sizeof(init));
    init.send_cq = init.recv_cq = p.a.send_cq;
    init.qp_type = IBV_QPT_RAW_PACKET;
    assert_null(ibv_create_qp(p.pd, &init));
    assert_int_equal(EOPNOTSUPP, errno);
    init.qp_type = IBV_QPT_RC;
    init.cap.max_send_wr = 1000000;
    assert_null(ibv_create_qp(p.pd, &init));
    assert_int_equal(EINVAL, errno);
    assert_null(ibv_create_cq(p.context, 0, NULL, NULL, 0));
    assert_null(ibv_reg_mr(p.pd, hole, 4096, IBV_ACCESS_REMOTE_WRITE)); /* without local write */
    munmap(hole, 8192);
    assert_null(ibv_reg_mr(p.pd, hole, 4096, IBV_ACCESS_LOCAL_WRITE));
    assert_int_equal(EFAULT, errno);
    assert_int_equal(EBUSY, ibv_dealloc_pd(p.pd));
    assert_int_equal(EBUSY, ibv_destroy_cq(p.a.send_cq));
    pair_close(&p);
}

static void unsignalled_sends_complete_silently(void **state)
{
    struct pair p;
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

    pair_open(&p, rc);
    sge = (struct ibv_sge){(uintptr_t) p.a.memory, 16, p.a.mr->lkey};
    for (int round = 0; round < 4; ++round) {
        for (uint64_t i = 0; i < PAIR_DEPTH; ++i) {
            assert_int_equal(0, post_recv(&p.b, i, 0, 64));
        }
        for (uint64_t i = 0; i < PAIR_DEPTH; ++i) {
            wr.wr_id = i;
            wr.send_flags = PAIR_DEPTH - 1 == i ? IBV_SEND_SIGNALED : 0;
            assert_int_equal(0, post_wr(&p.a, &wr));
        }
        expect_wc(p.a.send_cq, PAIR_DEPTH - 1, IBV_WC_SUCCESS); /* this completion frees the whole queue */
        expect_nothing(p.a.send_cq);
        for (uint64_t i = 0; i < PAIR_DEPTH; ++i) {
            expect_wc(p.b.recv_cq, i, IBV_WC_SUCCESS);
        }
    }
    pair_close(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest timing[] = {cmocka_unit_test(retry_time_is_that_of_the_attributes)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send_of_every_size_arrives_whole),
        cmocka_unit_test(scattered_send_lands_in_scattered_receive),
        cmocka_unit_test(write_read_and_atomics_reach_memory),
        cmocka_unit_test(inline_data_may_change_after_the_post),
        cmocka_unit_test(datagram_carries_header_and_qkey),
        cmocka_unit_test(wrong_rkey_fails_once_then_everything_is_flushed),
        cmocka_unit_test(memory_access_is_checked),
        cmocka_unit_test(deregistered_memory_is_out_of_reach),
        cmocka_unit_test(too_long_a_message_fails_both_ends),
        cmocka_unit_test(receive_without_a_valid_key_fails_both_ends),
        cmocka_unit_test(receiver_not_ready_waits_or_ends),
        cmocka_unit_test(error_state_discards_what_comes_in),
        cmocka_unit_test(reset_queue_pair_can_be_connected_again),
        cmocka_unit_test(full_queues_refuse_and_polling_makes_room),
        cmocka_unit_test(illegal_requests_are_refused),
        cmocka_unit_test(unsignalled_sends_complete_silently),
        cmocka_unit_test(srq_raises_limit_once_and_last_wqe),
        cmocka_unit_test(channel_wakes_for_what_was_asked),
        cmocka_unit_test(cq_keeps_completions_when_resized),
        cmocka_unit_test(long_outage_ends_in_retry_exceeded),
        cmocka_unit_test(sleeping_program_is_woken_when_retries_end),
        cmocka_unit_test(thread_sleeps_while_the_program_polls),
        cmocka_unit_test(threads_may_share_a_queue_pair),
        cmocka_unit_test(drained_send_queue_keeps_what_is_posted),
        cmocka_unit_test(unreliable_sender_stops_at_its_own_error_only),
        cmocka_unit_test(killed_peer_is_a_dead_remote_end),
    };

    const struct CMUnitTest outage[] = {
        cmocka_unit_test(short_outage_is_survived), /* the retry time must be longer than any outage of a busy machine */
    };

    if (1 < argc && 0 == strcmp(argv[1], "outage")) {
        return cmocka_run_group_tests(outage, NULL, NULL);
    }
    if (1 < argc && 0 == strcmp(argv[1], "timing")) {
        return cmocka_run_group_tests(timing, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
