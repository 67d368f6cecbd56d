/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The half of sr_check about time: shared queues and their events, the link that goes down and up, a process that
 * dies, threads, retry times. Run sr_check under softrail run with two rails and --retry-time 60ms.
 */
#include "sr_check.h"

#include "sr_pair.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct pair_options rc = {.type = IBV_QPT_RC, .rnr_retry = -1, .min_rnr_timer = 12};

/* ---- shared receive queue, events --------------------------------------------------------------- */

void srq_raises_limit_once_and_last_wqe(void **state)
{
    struct pair_options options = {.type = IBV_QPT_RC, .rnr_retry = -1, .srq = true};
    struct ibv_srq_attr limit = {.srq_limit = 3};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct pair p;

    pair_open(&p, options);
    for (uint64_t i = 0; i < 5; ++i) {
        assert_int_equal(0, post_recv(&p.b, i, (uint32_t) i * 100, 100));
    }
    assert_int_equal(0, ibv_modify_srq(p.b.srq, &limit, IBV_SRQ_LIMIT));
    for (uint64_t i = 0; i < 5; ++i) {
        assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, i, 0, 50, 0, NULL, 0));
        expect_wc(p.a.send_cq, i, IBV_WC_SUCCESS);
        if (1 == i) {
            expect_no_event(p.context); /* three are left */
        }
    }
    assert_ptr_equal(p.b.srq, expect_event(p.context, IBV_EVENT_SRQ_LIMIT_REACHED).element.srq);
    expect_no_event(p.context);
    for (uint64_t i = 0; i < 5; ++i) {
        expect_wc(p.b.recv_cq, i, IBV_WC_SUCCESS);
    }
    assert_int_equal(0, ibv_modify_qp(p.b.qp, &attr, IBV_QP_STATE));
    assert_ptr_equal(p.b.qp, expect_event(p.context, IBV_EVENT_QP_LAST_WQE_REACHED).element.qp);
    pair_close(&p);
}

void channel_wakes_for_what_was_asked(void **state)
{
    struct pair p;
    struct ibv_cq *cq;
    void *context;

    pair_open(&p, rc);
    for (uint64_t i = 0; i < 4; ++i) {
        assert_int_equal(0, post_recv(&p.b, i, 0, 100));
    }
    assert_int_equal(0, ibv_req_notify_cq(p.b.recv_cq, 1));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 0, 0, 10, 0, NULL, 0));
    expect_wc(p.b.recv_cq, 0, IBV_WC_SUCCESS);
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, IBV_SEND_SOLICITED, NULL, 0));
    assert_int_equal(0, ibv_get_cq_event(p.channel, &cq, &context)); /* exactly one event, of the solicited send */
    assert_ptr_equal(p.b.recv_cq, cq);
    ibv_ack_cq_events(cq, 1);
    expect_wc(p.b.recv_cq, 1, IBV_WC_SUCCESS);
    assert_int_equal(0, ibv_req_notify_cq(p.b.recv_cq, 0));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 2, 0, 10, 0, NULL, 0));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 3, 0, 10, 0, NULL, 0));
    assert_int_equal(0, ibv_get_cq_event(p.channel, &cq, &context));
    ibv_ack_cq_events(cq, 1);
    pair_close(&p);
}

void cq_keeps_completions_when_resized(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    for (uint64_t i = 0; i < 20; ++i) {
        assert_int_equal(0, post_recv(&p.b, i, 0, 100));
        assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, i, 0, 10, 0, NULL, 0));
    }
    expect_wc(p.b.recv_cq, 0, IBV_WC_SUCCESS);
    assert_int_equal(0, ibv_resize_cq(p.b.recv_cq, 1000));
    assert_true(p.b.recv_cq->cqe >= 1000);
    for (uint64_t i = 1; i < 20; ++i) {
        expect_wc(p.b.recv_cq, i, IBV_WC_SUCCESS);
    }
    for (uint64_t i = 0; i < 20; ++i) {
        expect_wc(p.a.send_cq, i, IBV_WC_SUCCESS);
    }
    pair_close(&p);
}

/* ---- the link ----------------------------------------------------------------------------------- */

void short_outage_is_survived(void **state)
{
    struct pair p;
    struct ibv_port_attr port;

    pair_open(&p, rc);
    softrail("down sr0");
    expect_event(p.context, IBV_EVENT_PORT_ERR);
    assert_int_equal(0, ibv_query_port(p.context, 1, &port));
    assert_int_equal(IBV_PORT_DOWN, port.state);
    assert_int_equal(0, post_recv(&p.b, 2, 0, 100));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    expect_nothing(p.b.recv_cq);
    softrail("up sr0");
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.b.recv_cq, 2, IBV_WC_SUCCESS);
    expect_event(p.context, IBV_EVENT_PORT_ACTIVE);
    pair_close(&p);
}

void long_outage_ends_in_retry_exceeded(void **state)
{
    struct pair p, other;

    pair_open(&p, rc);
    pair_open(&other, (struct pair_options){.type = IBV_QPT_RC, .rnr_retry = -1, .rail = 1});
    softrail("down sr0");
    expect_event(p.context, IBV_EVENT_PORT_ERR);
    expect_no_event(other.context);
    assert_int_equal(0, post_recv(&p.b, 9, 0, 100));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 2, 0, 10, 0, NULL, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    expect_wc(p.a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    expect_nothing(p.b.recv_cq); /* the other end learns nothing */
    assert_int_equal(0, post_recv(&other.b, 9, 0, 100));
    assert_int_equal(0, post_send(&other.a, IBV_WR_SEND, 3, 0, 10, 0, NULL, 0));
    expect_wc(other.a.send_cq, 3, IBV_WC_SUCCESS);
    softrail("up sr0");
    expect_event(p.context, IBV_EVENT_PORT_ACTIVE);
    pair_close(&other);
    pair_close(&p);
}

void sleeping_program_is_woken_when_retries_end(void **state)
{
    struct pair p;
    struct ibv_cq *cq;
    void *context;

    pair_open(&p, rc);
    softrail("down sr0");
    assert_int_equal(0, ibv_req_notify_cq(p.a.send_cq, 0));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    assert_int_equal(0, ibv_get_cq_event(p.channel, &cq, &context)); /* no thread polls meanwhile */
    ibv_ack_cq_events(cq, 1);
    expect_wc(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    softrail("up sr0");
    drain_events(p.context);
    pair_close(&p);
}

/* How often the threads of this process, without the main thread, went to sleep so far. */
static unsigned long sleeps_of_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    unsigned long sum = 0, sleeps;
    char path[300], line[100];

    assert_non_null(tasks);
    while (NULL != (entry = readdir(tasks))) {
        FILE *in = NULL;
        if ('.' != entry->d_name[0] && getpid() != atoi(entry->d_name)) {
            snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
            in = fopen(path, "r");
        }
        while (NULL != in && NULL != fgets(line, sizeof(line), in)) {
            sum += 1 == sscanf(line, "voluntary_ctxt_switches: %lu", &sleeps) ? sleeps : 0;
        }
        if (NULL != in) {
            fclose(in);
        }
    }
    closedir(tasks);
    return sum;
}

/* A program that polls in a loop tries its waiting requests itself. The thread would wake up for each of them, and processes of other sessions
 * would get no time of the core. */
void thread_sleeps_while_the_program_polls(void **state)
{
    enum { MESSAGES = 2000 };
    struct pair p;
    unsigned long sleeps;
    uint64_t begin;

    pair_open(&p, rc);
    softrail("set sr0 --latency 100us");
    begin = now_ms();
    sleeps = sleeps_of_threads();
    for (uint64_t i = 0; i < MESSAGES; ++i) {
        assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_WRITE, i, 0, 10, 0, &p.b, 0));
        expect_wc(p.a.send_cq, i, IBV_WC_SUCCESS);
    }
    sleeps = sleeps_of_threads() - sleeps;
    assert_in_range(sleeps, 0, MESSAGES * 3 / 4 + (now_ms() - begin) / 5);
    softrail("set sr0 --latency 0us");
    pair_close(&p);
}

/* ---- processes ---------------------------------------------------------------------------------- */

/* A child connects to this process, then dies. After the retry time its queue pair is a dead remote end. */
void killed_peer_is_a_dead_remote_end(void **state)
{
    struct pair p;
    struct {
        uint32_t qpn;
        struct ibv_ah_attr address;
    } mine, theirs;
    int to_child[2], from_child[2], status;
    pid_t child;

    assert_int_equal(0, pipe(to_child));
    assert_int_equal(0, pipe(from_child));
    child = fork();
    if (0 == child) {
        struct pair c = {.type = IBV_QPT_RC};
        mine.qpn = half_open(&c, &mine.address);
        post_recv(&c.a, 1, 0, 100);
        if (sizeof(mine) != write(from_child[1], &mine, sizeof(mine)) || sizeof(theirs) != read(to_child[0], &theirs, sizeof(theirs))) {
            _exit(1);
        }
        side_connect(&c, &c.a, &theirs.address, theirs.qpn, rc);
        if (sizeof(mine) != write(from_child[1], &mine, sizeof(mine))) {
            _exit(1);
        }
        pause();
    }
    memset(&p, 0, sizeof(p));
    p.type = IBV_QPT_RC;
    mine.qpn = half_open(&p, &mine.address);
    assert_int_equal(sizeof(theirs), read(from_child[0], &theirs, sizeof(theirs)));
    assert_int_equal(sizeof(mine), write(to_child[1], &mine, sizeof(mine)));
    side_connect(&p, &p.a, &theirs.address, theirs.qpn, rc);
    assert_int_equal(sizeof(theirs), read(from_child[0], &theirs, sizeof(theirs)));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 50, 0, NULL, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    kill(child, SIGKILL);
    assert_int_equal(child, waitpid(child, &status, 0));
    usleep(20000);
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 2, 0, 50, 0, NULL, 0));
    expect_wc(p.a.send_cq, 2, IBV_WC_RETRY_EXC_ERR);
    side_close(&p.a);
    assert_int_equal(0, ibv_dealloc_pd(p.pd));
    assert_int_equal(0, ibv_close_device(p.context));
}

/* ---- threads ------------------------------------------------------------------------------------ */

#define PER_THREAD 3000

struct sender {
    struct side *side;
    uint64_t base;
};

/* Posts to a queue pair to which other threads post too. */
static void *send_many(void *arg)
{
    struct sender *s = arg;

    for (uint64_t i = 0; i < PER_THREAD;) {
        int rc = post_send(s->side, IBV_WR_SEND, s->base + i, 0, i % 2 ? 8 : 200, 0, NULL, 0);
        i += 0 == rc;
        if (0 != rc && ENOMEM != rc) {
            return arg;
        }
    }
    return NULL;
}

void threads_may_share_a_queue_pair(void **state)
{
    struct pair p;
    pthread_t threads[3];
    struct sender senders[3];
    uint64_t next[3] = {0, 0, 0};
    unsigned sent = 0, received = 0;
    uint64_t end = now_ms() + 30000;

    pair_open(&p, rc);
    for (uint64_t i = 0; i < PAIR_DEPTH; ++i) {
        assert_int_equal(0, post_recv(&p.b, i, 0, 300));
    }
    for (unsigned t = 0; t < 3; ++t) {
        senders[t] = (struct sender){&p.a, (uint64_t) t << 32};
        assert_int_equal(0, pthread_create(&threads[t], NULL, send_many, &senders[t]));
    }
    while ((sent < 3 * PER_THREAD || received < 3 * PER_THREAD) && now_ms() < end) {
        struct ibv_wc wc[8];
        int n = ibv_poll_cq(p.a.send_cq, 8, wc);
        for (int i = 0; i < n; ++i) { /* each completion comes once; those of a thread come in order */
            assert_int_equal(IBV_WC_SUCCESS, wc[i].status);
            assert_int_equal(next[wc[i].wr_id >> 32]++, wc[i].wr_id & 0xffffffff);
        }
        sent += (unsigned) n;
        n = ibv_poll_cq(p.b.recv_cq, 8, wc);
        for (int i = 0; i < n; ++i) {
            assert_int_equal(IBV_WC_SUCCESS, wc[i].status);
            assert_int_equal(0, post_recv(&p.b, wc[i].wr_id, 0, 300));
        }
        received += (unsigned) n;
    }
    assert_int_equal(3 * PER_THREAD, sent);
    assert_int_equal(3 * PER_THREAD, received);
    for (unsigned t = 0; t < 3; ++t) {
        void *result;
        assert_int_equal(0, pthread_join(threads[t], &result));
        assert_null(result);
    }
    pair_close(&p);
}

/* ---- states and times --------------------------------------------------------------------------- */

void drained_send_queue_keeps_what_is_posted(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct pair p;

    pair_open(&p, rc);
    assert_int_equal(0, ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    expect_event(p.context, IBV_EVENT_SQ_DRAINED);
    assert_int_equal(0, post_recv(&p.b, 2, 0, 100));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    expect_nothing(p.b.recv_cq);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(0, ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE));
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.b.recv_cq, 2, IBV_WC_SUCCESS);
    pair_close(&p);
}

void unreliable_sender_stops_at_its_own_error_only(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    struct ibv_sge sge = {4096, 10, 1};
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct pair p;

    pair_open(&p, (struct pair_options){.type = IBV_QPT_UC});
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 9, 0, 10, 0, NULL, 0)); /* no receive: dropped */
    expect_wc(p.a.send_cq, 9, IBV_WC_SUCCESS);
    assert_int_equal(0, post_wr(&p.a, &wr));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 2, 0, 10, 0, NULL, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
    expect_wc(p.a.send_cq, 2, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(0, ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE));
    assert_int_equal(0, post_recv(&p.b, 4, 0, 100));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 3, 0, 10, 0, NULL, 0));
    expect_wc(p.a.send_cq, 3, IBV_WC_SUCCESS);
    expect_wc(p.b.recv_cq, 4, IBV_WC_SUCCESS);
    assert_int_equal(EINVAL, post_send(&p.a, IBV_WR_RDMA_READ, 5, 0, 10, 0, &p.b, 0));
    pair_close(&p);
}

static uint64_t time_to_the_error(void)
{
    struct pair p;
    uint64_t begin, took;

    pair_open(&p, rc);
    softrail("down sr0");
    begin = now_ms();
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    took = now_ms() - begin;
    softrail("up sr0");
    pair_close(&p);
    return took;
}

/* Without --retry-time the retry time is 4.096 us x 2^14 x 8 = 0.537 s. A busy machine may add to it, but not in each try. */
void retry_time_is_that_of_the_attributes(void **state)
{
    uint64_t took = 0;

    for (int try = 0; 0 == try || (took > 900 && try < 10); ++try) {
        took = time_to_the_error();
        assert_true(took >= 536);
    }
    assert_true(took <= 900);
}
