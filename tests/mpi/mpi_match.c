/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which receive gets which message: order per source, wildcards, Open MPI's own tags, probes and matched probes,
 * cancel, MPI_PROC_NULL, messages of a rank to itself, many small messages.
 */
#include "mpi_check.h"

static void test_order(void)
{
    const int n = 2000;

    /* every rank sends n numbered messages of mixed size to rank 0, which receives them in order from each source */
    if (0 != rank) {
        int *buf = malloc(20000 * sizeof(int));

        for (int i = 0; i < n; ++i) {
            buf[0] = i;
            buf[1] = rank;
            MPI(MPI_Send(buf, 2 + (0 == i % 50 ? 15000 : i % 7), MPI_INT, 0, 3, MPI_COMM_WORLD));
        }
        free(buf);
    } else {
        int *next = calloc((size_t) ranks, sizeof(int)), *buf = malloc(20000 * sizeof(int));

        for (int k = 0; k < n * (ranks - 1); ++k) {
            MPI_Status st;
            const int from = 0 == k % 3 ? MPI_ANY_SOURCE : 1 + k % (ranks - 1);
            const bool done = MPI_ANY_SOURCE != from && next[from] == n;

            MPI(MPI_Recv(buf, 20000, MPI_INT, done ? MPI_ANY_SOURCE : from, 0 == k % 2 ? MPI_ANY_TAG : 3, MPI_COMM_WORLD, &st));
            CHECK(3 == st.MPI_TAG && buf[1] == st.MPI_SOURCE && buf[0] == next[st.MPI_SOURCE]);
            ++next[st.MPI_SOURCE];
        }
        free(next);
        free(buf);
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* Receives of several kinds posted together: the earliest posted that fits wins. */
static void test_wildcard_order(int peer)
{
    int got[6] = {0}, mine[6] = {10, 11, 12, 13, 14, 15};
    static const int tags[6] = {1, 2, 1, 2, 3, 1};
    MPI_Request r[6];
    MPI_Status st[6];

    MPI(MPI_Irecv(&got[0], 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &r[0]));                     /* 10 */
    MPI(MPI_Irecv(&got[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r[1])); /* 11 */
    MPI(MPI_Irecv(&got[2], 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &r[2]));           /* 13 */
    MPI(MPI_Irecv(&got[3], 1, MPI_INT, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &r[3]));           /* 12 */
    MPI(MPI_Irecv(&got[4], 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &r[4]));                     /* 15 */
    MPI(MPI_Irecv(&got[5], 1, MPI_INT, peer, 3, MPI_COMM_WORLD, &r[5]));                     /* 14 */
    MPI(MPI_Barrier(MPI_COMM_WORLD));                                                        /* wildcards do not match negative tags */
    for (int i = 0; i < 6; ++i) {
        MPI(MPI_Send(&mine[i], 1, MPI_INT, peer, tags[i], MPI_COMM_WORLD));
    }
    MPI(MPI_Waitall(6, r, st));
    CHECK(10 == got[0] && 11 == got[1] && 13 == got[2] && 12 == got[3] && 15 == got[4] && 14 == got[5]);
    CHECK(peer == st[1].MPI_SOURCE && 2 == st[1].MPI_TAG && 1 == st[3].MPI_TAG);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void test_probe(int peer)
{
    static const int sizes[] = {0, 1, 100, 5000, 100000, 1000000};
    uint8_t *out = malloc(1000000);

    for (unsigned i = 0; i < 6; ++i) {
        MPI_Message message;
        MPI_Request send, recv;
        MPI_Status st;
        uint8_t *in = receive_room((size_t) sizes[i]);
        int count, flag = 0;

        fill(out, (size_t) sizes[i], i);
        MPI(MPI_Isend(out, sizes[i], MPI_BYTE, peer, (int) i, MPI_COMM_WORLD, &send));
        MPI(MPI_Probe(MPI_ANY_SOURCE, (int) i, MPI_COMM_WORLD, &st));
        MPI(MPI_Get_count(&st, MPI_BYTE, &count));
        CHECK(sizes[i] == count && peer == st.MPI_SOURCE);
        MPI(MPI_Iprobe(peer, 999, MPI_COMM_WORLD, &flag, &st));
        CHECK(!flag);
        if (i % 2) {
            MPI(MPI_Mprobe(peer, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &st));
        } else {
            while (!flag) {
                MPI(MPI_Improbe(peer, (int) i, MPI_COMM_WORLD, &flag, &message, &st));
            }
        }
        CHECK((int) i == st.MPI_TAG);
        MPI(MPI_Iprobe(peer, (int) i, MPI_COMM_WORLD, &flag, &st)); /* the matched probe took it: no other probe sees it */
        CHECK(!flag);
        if (i % 2) {
            MPI(MPI_Mrecv(in, sizes[i], MPI_BYTE, &message, &st));
        } else {
            MPI(MPI_Imrecv(in, sizes[i], MPI_BYTE, &message, &recv));
            MPI(MPI_Wait(&recv, &st));
        }
        MPI(MPI_Get_count(&st, MPI_BYTE, &count));
        CHECK(MPI_MESSAGE_NULL == message && sizes[i] == count && (int) i == st.MPI_TAG && peer == st.MPI_SOURCE);
        CHECK(is_filled(in, (size_t) sizes[i], i));
        give_back(in, (size_t) sizes[i]);
        MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
        MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    free(out);
}

static void test_cancel(int peer)
{
    MPI_Request r, keep;
    MPI_Status st;
    int x = 5, y = 0, z = 0, cancelled;

    MPI(MPI_Irecv(&y, 1, MPI_INT, peer, 50, MPI_COMM_WORLD, &r));
    MPI(MPI_Irecv(&z, 1, MPI_INT, peer, 50, MPI_COMM_WORLD, &keep));
    MPI(MPI_Cancel(&r));
    MPI(MPI_Wait(&r, &st));
    MPI(MPI_Test_cancelled(&st, &cancelled));
    CHECK(cancelled);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_Send(&x, 1, MPI_INT, peer, 50, MPI_COMM_WORLD));
    MPI(MPI_Wait(&keep, &st));
    CHECK(5 == z && 0 == y);
    MPI(MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_Send(&x, 1, MPI_INT, peer, 51, MPI_COMM_WORLD));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_Cancel(&r)); /* if the message has come, the receive completes instead */
    MPI(MPI_Wait(&r, &st));
    MPI(MPI_Test_cancelled(&st, &cancelled));
    if (cancelled) {
        MPI(MPI_Recv(&y, 1, MPI_INT, peer, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    CHECK(5 == y);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void test_null_and_self(void)
{
    static const int sizes[] = {0, 1, 1000, 100000, 3000000};
    uint8_t *out = malloc(3000000), *in = receive_room(3000000);
    MPI_Status st;
    int x = 1, count;

    MPI(MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    MPI(MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st));
    CHECK(1 == x && MPI_PROC_NULL == st.MPI_SOURCE);
    for (unsigned i = 0; i < 5; ++i) {
        MPI_Request r, s;

        fill(out, (size_t) sizes[i], i);
        memset(in, 0, (size_t) sizes[i]);
        MPI(MPI_Irecv(in, sizes[i], MPI_BYTE, rank, 1, MPI_COMM_WORLD, &r));
        MPI(MPI_Ssend(out, sizes[i], MPI_BYTE, rank, 1, MPI_COMM_WORLD));
        MPI(MPI_Wait(&r, &st));
        CHECK(is_filled(in, (size_t) sizes[i], i));
        memset(in, 0, (size_t) sizes[i]);
        MPI(MPI_Isend(out, sizes[i], MPI_BYTE, 0, 2, MPI_COMM_SELF, &s)); /* unexpected */
        MPI(MPI_Recv(in, sizes[i], MPI_BYTE, MPI_ANY_SOURCE, 2, MPI_COMM_SELF, &st));
        MPI(MPI_Wait(&s, MPI_STATUS_IGNORE));
        MPI(MPI_Get_count(&st, MPI_BYTE, &count));
        CHECK(sizes[i] == count && is_filled(in, (size_t) sizes[i], i));
    }
    free(out);
    give_back(in, 3000000);
}

/* Many short messages, all unexpected at first, received in the opposite order of tags, a few requests at a time. */
static void test_storm(int peer)
{
    enum { N = 10000, GROUP = 50 };
    int *in = malloc(N * sizeof(int));
    MPI_Request r[GROUP];

    for (int i = 0; i < N; ++i) {
        in[i] = -1;
        MPI(MPI_Isend(&i, 1, MPI_INT, peer, i, MPI_COMM_WORLD, &r[0]));
        MPI(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = N - 1; i >= 0; --i) {
        MPI(MPI_Irecv(&in[i], 1, MPI_INT, 0 == i % 2 ? MPI_ANY_SOURCE : peer, i, MPI_COMM_WORLD, &r[i % GROUP]));
        if (0 == i % GROUP) {
            MPI(MPI_Waitall(GROUP, r, MPI_STATUSES_IGNORE));
        }
    }
    for (int i = 0; i < N; ++i) {
        CHECK(i == in[i]);
    }
    free(in);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* A request is freed while its message is in flight. */
static void test_early_free(int peer)
{
    const int n = 500000;
    uint8_t *out = malloc((size_t) n);

    fill(out, (size_t) n, 3);
    for (int i = 0; i < 20; ++i) {
        uint8_t *in = receive_room((size_t) n);
        MPI_Request s, r;

        MPI(MPI_Irecv(in, n, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &r));
        MPI(MPI_Isend(out, n, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &s));
        MPI(MPI_Request_free(&s));
        MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
        CHECK(is_filled(in, (size_t) n, 3));
        give_back(in, (size_t) n);
        MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    free(out);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    test_order();
    test_wildcard_order(neighbour());
    test_probe(neighbour());
    test_cancel(neighbour());
    test_null_and_self();
    test_storm(neighbour());
    test_early_free(neighbour());
    return finish();
}
