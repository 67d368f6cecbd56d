/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Two queue pairs that talk to each other, for tests (sr_pair.h).
 */
#include "sr_pair.h"

#include "../payload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define QKEY 0x1234u

uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

struct ibv_context *open_rail(unsigned rail)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct ibv_context *context;

    assert_non_null(list);
    assert_true((int) rail < count);
    context = ibv_open_device(list[rail]);
    assert_non_null(context);
    ibv_free_device_list(list);
    return context;
}

void own_address(struct pair *pair, struct ibv_ah_attr *attr)
{
    struct ibv_port_attr port;

    memset(attr, 0, sizeof(*attr));
    assert_int_equal(0, ibv_query_port(pair->context, 1, &port));
    attr->port_num = 1;
    attr->dlid = port.lid;
    if (IBV_LINK_LAYER_ETHERNET == port.link_layer) {
        attr->is_global = 1;
        attr->grh.sgid_index = (uint8_t) (port.gid_tbl_len - 1); /* the last GID is the port's own */
        assert_int_equal(0, ibv_query_gid(pair->context, 1, port.gid_tbl_len - 1, &attr->grh.dgid));
    }
}

void side_open(struct pair *pair, struct side *side, bool srq)
{
    struct ibv_qp_init_attr init;

    side->memory = calloc(1, PAIR_BYTES);
    side->mr = ibv_reg_mr(pair->pd, side->memory, PAIR_BYTES, ALL_ACCESS);
    side->send_cq = ibv_create_cq(pair->context, 128, NULL, pair->channel, 0);
    side->recv_cq = ibv_create_cq(pair->context, 128, NULL, pair->channel, 0);
    assert_non_null(side->mr);
    assert_non_null(side->send_cq);
    assert_non_null(side->recv_cq);
    side->srq = NULL;
    if (srq) {
        struct ibv_srq_init_attr attr = {.attr = {.max_wr = PAIR_DEPTH, .max_sge = 2}};
        side->srq = ibv_create_srq(pair->pd, &attr);
        assert_non_null(side->srq);
    }
    memset(&init, 0, sizeof(init));
    init.send_cq = side->send_cq;
    init.recv_cq = side->recv_cq;
    init.srq = side->srq;
    init.qp_type = pair->type;
    init.cap.max_send_wr = init.cap.max_recv_wr = PAIR_DEPTH;
    init.cap.max_send_sge = init.cap.max_recv_sge = 4;
    init.cap.max_inline_data = 128;
    side->qp = ibv_create_qp(pair->pd, &init);
    assert_non_null(side->qp);
}

void side_to_init(struct pair *pair, struct side *side)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_ACCESS, .qkey = QKEY};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (IBV_QPT_UD == pair->type ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);

    assert_int_equal(0, ibv_modify_qp(side->qp, &attr, mask));
}

uint32_t half_open(struct pair *pair, struct ibv_ah_attr *own)
{
    pair->context = open_rail(0);
    pair->pd = ibv_alloc_pd(pair->context);
    side_open(pair, &pair->a, false);
    side_to_init(pair, &pair->a);
    own_address(pair, own);
    return pair->a.qp->qp_num;
}

void side_connect(struct pair *pair, struct side *side, const struct ibv_ah_attr *where, uint32_t qpn, struct pair_options options)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_4096,
                               .dest_qp_num = qpn,
                               .ah_attr = *where,
                               .max_dest_rd_atomic = 4,
                               .min_rnr_timer = (uint8_t) options.min_rnr_timer};
    int mask = IBV_QP_STATE;

    if (IBV_QPT_UD != pair->type) {
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (IBV_QPT_RC == pair->type) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    assert_int_equal(0, ibv_modify_qp(side->qp, &attr, mask));
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = (uint8_t) (0 > options.rnr_retry ? 7 : options.rnr_retry);
    attr.max_rd_atomic = 4;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (IBV_QPT_RC == pair->type) {
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    assert_int_equal(0, ibv_modify_qp(side->qp, &attr, mask));
}

void pair_open(struct pair *pair, struct pair_options options)
{
    struct ibv_ah_attr address;

    memset(pair, 0, sizeof(*pair));
    pair->type = options.type;
    pair->rail = options.rail;
    pair->context = open_rail(options.rail);
    assert_int_equal(0, fcntl(pair->context->async_fd, F_SETFL, O_NONBLOCK));
    pair->channel = ibv_create_comp_channel(pair->context);
    pair->pd = ibv_alloc_pd(pair->context);
    assert_non_null(pair->channel);
    assert_non_null(pair->pd);
    side_open(pair, &pair->a, false);
    side_open(pair, &pair->b, options.srq);
    side_to_init(pair, &pair->a);
    side_to_init(pair, &pair->b);
    own_address(pair, &address);
    side_connect(pair, &pair->a, &address, pair->b.qp->qp_num, options);
    side_connect(pair, &pair->b, &address, pair->a.qp->qp_num, options);
}

void side_close(struct side *side)
{
    assert_int_equal(0, ibv_destroy_qp(side->qp));
    if (NULL != side->srq) {
        assert_int_equal(0, ibv_destroy_srq(side->srq));
    }
    assert_int_equal(0, ibv_destroy_cq(side->send_cq));
    assert_int_equal(0, ibv_destroy_cq(side->recv_cq));
    assert_int_equal(0, ibv_dereg_mr(side->mr));
    free(side->memory);
}

void pair_close(struct pair *pair)
{
    side_close(&pair->a);
    side_close(&pair->b);
    assert_int_equal(0, ibv_dealloc_pd(pair->pd));
    assert_int_equal(0, ibv_destroy_comp_channel(pair->channel));
    assert_int_equal(0, ibv_close_device(pair->context));
}

int post_recv(struct side *side, uint64_t wr_id, uint32_t offset, uint32_t length)
{
    struct ibv_sge sge = {.addr = (uintptr_t) side->memory + offset, .length = length, .lkey = side->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    return NULL != side->srq ? ibv_post_srq_recv(side->srq, &wr, &bad) : ibv_post_recv(side->qp, &wr, &bad);
}

int post_wr(struct side *side, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    return ibv_post_send(side->qp, wr, &bad);
}

int post_send(struct side *side, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t offset, uint32_t length, unsigned flags, const struct side *to,
              uint32_t remote_offset)
{
    struct ibv_sge sge = {.addr = (uintptr_t) side->memory + offset, .length = length, .lkey = side->mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags | IBV_SEND_SIGNALED, .imm_data = 0x11223344};

    if (NULL != to && IBV_WR_ATOMIC_CMP_AND_SWP != opcode && IBV_WR_ATOMIC_FETCH_AND_ADD != opcode) {
        wr.wr.rdma.remote_addr = (uintptr_t) to->memory + remote_offset;
        wr.wr.rdma.rkey = to->mr->rkey;
    }
    return post_wr(side, &wr);
}

struct ibv_wc expect_wc(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
    uint64_t end = now_ms() + 5000;
    struct ibv_wc wc;
    int n;

    memset(&wc, 0, sizeof(wc));
    do {
        n = ibv_poll_cq(cq, 1, &wc);
    } while (0 == n && now_ms() < end);
    if (1 != n) {
        fail_msg("no completion of %llu", (unsigned long long) wr_id);
    }
    if (wr_id != wc.wr_id || status != wc.status) {
        fail_msg("completion of %llu with status %d, not of %llu with status %d", (unsigned long long) wc.wr_id, wc.status,
                 (unsigned long long) wr_id, status);
    }
    return wc;
}

void expect_nothing(struct ibv_cq *cq)
{
    struct ibv_wc wc;

    assert_int_equal(0, ibv_poll_cq(cq, 1, &wc));
}

static bool next_event(struct ibv_context *context, struct ibv_async_event *event, int timeout_ms)
{
    struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};

    return 1 == poll(&fd, 1, timeout_ms) && 0 == ibv_get_async_event(context, event);
}

struct ibv_async_event expect_event(struct ibv_context *context, enum ibv_event_type type)
{
    struct ibv_async_event event;

    if (!next_event(context, &event, 5000)) {
        fail_msg("no event %d", type);
    }
    ibv_ack_async_event(&event);
    if (type != event.event_type) {
        fail_msg("event %d, not %d", event.event_type, type);
    }
    return event;
}

void expect_no_event(struct ibv_context *context)
{
    struct ibv_async_event event;

    if (next_event(context, &event, 0)) {
        fail_msg("event %d came", event.event_type);
    }
}

void drain_events(struct ibv_context *context)
{
    struct ibv_async_event event;

    while (next_event(context, &event, 0)) {
        ibv_ack_async_event(&event);
    }
}

void fill(unsigned char *memory, size_t length, unsigned seed)
{
    payload_fill(memory, length, seed);
}

void verify(const unsigned char *memory, size_t length, unsigned seed)
{
    const size_t at = payload_first_wrong(memory, length, seed);

    if (at < length) {
        fail_msg("byte %zu of %zu is wrong", at, length);
    }
}

void softrail(const char *format, ...)
{
    char arguments[512], command[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(arguments, sizeof(arguments), format, args);
    va_end(args);
    /* without preload, because the command is no verbs program */
    snprintf(command, sizeof(command), "LD_PRELOAD= %s %s", getenv("SOFTRAIL"), arguments);
    assert_int_equal(0, system(command));
}

int no_rules(void **state)
{
    softrail("fault --clear");
    return 0;
}

void send_one(struct pair *p, uint64_t id)
{
    fill(p->a.memory, 100, (unsigned) id);
    assert_int_equal(0, post_recv(&p->b, 1000 + id, (uint32_t) id * 200, 200));
    assert_int_equal(0, post_send(&p->a, IBV_WR_SEND, id, 0, 100, 0, NULL, 0));
}
