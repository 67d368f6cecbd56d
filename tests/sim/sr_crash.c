/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Processes that die at any moment: children send to one shared receive queue of this process without pause, and are killed at
 * random moments. This process receives all the time, and at the end gets all messages of a child that is not killed.
 * SR_CHILDREN: number of children. The program prints its seed; SR_SEED replays it.
 */
#include "sr_pair.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES 3000
#define LAST 500

struct hello {
    uint32_t qpn;
    struct ibv_ah_attr address;
};

static const struct pair_options rc = {.type = IBV_QPT_RC, .rnr_retry = -1, .min_rnr_timer = 1};

static void exchange(int out, int in, const struct hello *mine, struct hello *theirs)
{
    if (sizeof(*mine) != write(out, mine, sizeof(*mine)) || sizeof(*theirs) != read(in, theirs, sizeof(*theirs))) {
        _exit(2);
    }
}

/* Sends without end, or sends LAST messages, which must all arrive. */
static void child_main(int out, int in, bool last)
{
    struct pair c = {.type = IBV_QPT_RC};
    struct hello mine, theirs;

    mine.qpn = half_open(&c, &mine.address);
    exchange(out, in, &mine, &theirs);
    side_connect(&c, &c.a, &theirs.address, theirs.qpn, rc);
    fill(c.a.memory, BYTES, 5);
    for (unsigned i = 0; !last || i < LAST; ++i) {
        uint32_t length = 0 == i % 3 ? 10 : 1 == i % 3 ? 1000 : BYTES;
        if (0 != post_send(&c.a, IBV_WR_SEND, i, 0, length, 0, NULL, 0)) {
            _exit(3);
        }
        expect_wc(c.a.send_cq, i, IBV_WC_SUCCESS);
    }
    _exit(0);
}

/* Makes a queue pair for the child, on the shared queue. */
static struct ibv_qp *serve(struct pair *p, struct side *side, const struct hello *theirs, int out)
{
    struct ibv_qp_init_attr init = {
        .send_cq = side->send_cq, .recv_cq = side->recv_cq, .srq = side->srq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4, .max_send_sge = 1}};
    struct side one = *side;
    struct hello mine;

    one.qp = ibv_create_qp(p->pd, &init);
    assert_non_null(one.qp);
    side_to_init(p, &one);
    side_connect(p, &one, &theirs->address, theirs->qpn, rc);
    own_address(p, &mine.address);
    mine.qpn = one.qp->qp_num;
    assert_int_equal(sizeof(mine), write(out, &mine, sizeof(mine)));
    return one.qp;
}

static unsigned receive(struct side *side)
{
    struct ibv_wc wc[16];
    int n = ibv_poll_cq(side->recv_cq, 16, wc);

    for (int i = 0; i < n; ++i) {
        assert_int_equal(IBV_WC_SUCCESS, wc[i].status);
        verify(side->memory + wc[i].wr_id * 4096, wc[i].byte_len, 5);
        memset(side->memory + wc[i].wr_id * 4096, 0, wc[i].byte_len);
        assert_int_equal(0, post_recv(side, wc[i].wr_id, (uint32_t) wc[i].wr_id * 4096, 4096));
    }
    return (unsigned) n;
}

static unsigned one_child(struct pair *p, struct side *side, bool last, unsigned microseconds)
{
    int to_child[2], from_child[2], status = 0;
    unsigned received = 0;
    struct hello theirs;
    struct ibv_qp *qp;
    pid_t child;
    uint64_t end;

    assert_int_equal(0, pipe(to_child));
    assert_int_equal(0, pipe(from_child));
    child = fork();
    if (0 == child) {
        child_main(from_child[1], to_child[0], last);
    }
    assert_int_equal(sizeof(theirs), read(from_child[0], &theirs, sizeof(theirs)));
    qp = serve(p, side, &theirs, to_child[1]);
    end = now_ms() + (last ? 10000 : 1 + microseconds / 1000);
    while (now_ms() < end && !(last && LAST == received)) {
        received += receive(side);
    }
    if (!last) {
        usleep(microseconds % 1000);
        kill(child, SIGKILL);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    received += receive(side);
    assert_int_equal(last ? 0 : SIGKILL, last ? status : WTERMSIG(status));
    assert_int_equal(0, ibv_destroy_qp(qp));
    close(to_child[0]), close(to_child[1]), close(from_child[0]), close(from_child[1]);
    return received;
}

static void survivor_goes_on_receiving(void **state)
{
    const char *env = getenv("SR_SEED"), *children = getenv("SR_CHILDREN");
    unsigned seed = NULL == env ? (unsigned) time(NULL) : (unsigned) atoi(env), received = 0;
    struct pair_options options = {.type = IBV_QPT_RC, .rnr_retry = -1, .srq = true};
    struct pair p;

    printf("SR_SEED=%u\n", seed);
    srand(seed);
    pair_open(&p, options);
    for (uint64_t i = 0; i < PAIR_DEPTH; ++i) {
        assert_int_equal(0, post_recv(&p.b, i, (uint32_t) i * 4096, 4096));
    }
    for (int i = NULL == children ? 20 : atoi(children); 0 < i; --i) {
        received += one_child(&p, &p.b, false, (unsigned) rand() % 4000);
    }
    printf("%u messages from the killed\n", received);
    assert_true(0 < received);
    assert_int_equal(LAST, one_child(&p, &p.b, true, 0));
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(survivor_goes_on_receiving)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
