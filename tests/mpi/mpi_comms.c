/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Communicators under traffic: dup and free storms that reuse context ids, splits, messages that arrive
 * before the communicator exists at the receiver, messages left over, inter-communicators of equal and of unequal sides,
 * and MPI_Finalize with messages still in flight.
 */
#include "mpi_check.h"

static void exchange(MPI_Comm comm, uint32_t seed, int n)
{
    uint8_t *out = malloc((size_t) n + 1), *in = receive_room((size_t) n);
    int me, size;

    MPI(MPI_Comm_rank(comm, &me));
    MPI(MPI_Comm_size(comm, &size));
    fill(out, (size_t) n, seed + (uint32_t) me);
    MPI(MPI_Sendrecv(out, n, MPI_BYTE, (me + 1) % size, 1, in, n, MPI_BYTE, (me + size - 1) % size, 1, comm, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, (size_t) n, seed + (uint32_t) ((me + size - 1) % size)));
    free(out);
    give_back(in, (size_t) n);
}

static void test_storm(int rounds)
{
    for (int i = 0; i < rounds; ++i) {
        MPI_Comm a, b, c;

        MPI(MPI_Comm_dup(MPI_COMM_WORLD, &a));
        exchange(a, (uint32_t) i, 0 == i % 10 ? 100000 : 100);
        MPI(MPI_Comm_split(a, rank % 2, -rank, &b));
        exchange(b, (uint32_t) i, 300);
        MPI(MPI_Comm_free(&a)); /* the next communicator takes its id again */
        MPI(MPI_Comm_dup(b, &c));
        exchange(c, (uint32_t) i, 50);
        MPI(MPI_Comm_free(&b));
        exchange(c, (uint32_t) i + 7, 5000);
        MPI(MPI_Comm_free(&c));
    }
}

/* Rank 0 leaves MPI_Comm_dup first and sends at once. The other ranks have the communicator all the same, because Open MPI adds it
 * in every process before any process leaves the call (tests/fuzz/fuzz_threads.c shows what the PML does otherwise). */
static void test_early_messages(int rounds)
{
    for (int i = 0; i < rounds; ++i) {
        MPI_Comm a;
        MPI_Request r[64];
        int n = 0, x = i, y = -1;

        MPI(MPI_Comm_dup(MPI_COMM_WORLD, &a));
        if (0 == rank) {
            for (int p = 1; p < ranks; ++p) {
                for (int k = 0; k < 4; ++k) {
                    MPI(MPI_Isend(&x, 1, MPI_INT, p, k, a, &r[n++]));
                }
                MPI(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
                n = 0;
            }
        } else {
            for (int k = 3; k >= 0; --k) {
                y = -1;
                MPI(MPI_Recv(&y, 1, MPI_INT, 0, k, a, MPI_STATUS_IGNORE));
                CHECK(i == y);
            }
        }
        if (0 == i % 2) {
            nothing_is_left(a);
        }
        MPI(MPI_Comm_free(&a));
    }
}

static void test_intercomm(void)
{
    MPI_Comm half, inter, merged;
    const int color = rank % 2;
    uint8_t *out = malloc(300000), *in = receive_room(300000);
    int me, remote;

    MPI(MPI_Comm_split(MPI_COMM_WORLD, color, rank, &half));
    MPI(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - color, 12, &inter));
    MPI(MPI_Comm_rank(inter, &me));
    MPI(MPI_Comm_remote_size(inter, &remote));
    for (int n = 1; n <= 300000; n *= 20) {
        MPI_Status st;
        MPI_Request r;

        fill(out, (size_t) n, (uint32_t) (2 * me + color));
        MPI(MPI_Irecv(in, n, MPI_BYTE, MPI_ANY_SOURCE, 4, inter, &r));
        MPI(MPI_Send(out, n, MPI_BYTE, me % remote, 4, inter));
        MPI(MPI_Wait(&r, &st));
        CHECK(me == st.MPI_SOURCE && is_filled(in, (size_t) n, (uint32_t) (2 * me + 1 - color)));
    }
    MPI(MPI_Intercomm_merge(inter, color, &merged));
    exchange(merged, 99, 1000);
    MPI(MPI_Comm_free(&merged));
    MPI(MPI_Comm_free(&inter));
    MPI(MPI_Comm_free(&half));
    free(out);
    give_back(in, 300000);
}

/* The lower quarter of the ranks, at least rank 0, forms one side, all other ranks the other side. Each of the others sends to the first
 * rank of the small side, which takes the messages by receives, probes and matched probes. */
static void test_uneven_intercomm(void)
{
    const int color = rank >= (ranks + 3) / 4, big = 200000;
    uint8_t *buf = receive_room((size_t) big);
    MPI_Comm half, inter;
    int me, remote;

    MPI(MPI_Comm_split(MPI_COMM_WORLD, color, rank, &half));
    MPI(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 0 == color ? (ranks + 3) / 4 : 0, 13, &inter));
    MPI(MPI_Comm_rank(inter, &me));
    MPI(MPI_Comm_remote_size(inter, &remote));
    for (int i = 0; i < 6; ++i) {
        const int n = i % 2 ? big : 10 * i;

        if (0 != color) {
            fill(buf, (size_t) n, (uint32_t) (100 * me + i));
            MPI(MPI_Send(buf, n, MPI_BYTE, 0, i, inter));
            continue;
        }
        for (int k = 0; 0 == me && k < remote; ++k) {
            MPI_Message message;
            MPI_Status st;
            int count;

            if (0 == i % 3) {
                MPI(MPI_Recv(buf, n, MPI_BYTE, MPI_ANY_SOURCE, i, inter, &st));
            } else if (1 == i % 3) {
                MPI(MPI_Probe(MPI_ANY_SOURCE, i, inter, &st));
                MPI(MPI_Recv(buf, n, MPI_BYTE, st.MPI_SOURCE, i, inter, &st));
            } else {
                MPI(MPI_Mprobe(k, MPI_ANY_TAG, inter, &message, &st));
                MPI(MPI_Mrecv(buf, n, MPI_BYTE, &message, &st));
            }
            MPI(MPI_Get_count(&st, MPI_BYTE, &count));
            CHECK(n == count && i == st.MPI_TAG && st.MPI_SOURCE >= 0 && st.MPI_SOURCE < remote);
            CHECK(is_filled(buf, (size_t) n, (uint32_t) (100 * st.MPI_SOURCE + i)));
        }
    }
    MPI(MPI_Barrier(inter));
    MPI(MPI_Comm_free(&inter));
    MPI(MPI_Comm_free(&half));
    give_back(buf, (size_t) big);
}

/* A message that nobody received before its communicator was freed is gone: the next communicator with that context id does not see it. */
static void test_left_over(int rounds)
{
    for (int i = 0; i < rounds; ++i) {
        int x = i, y = -1, found;
        MPI_Comm a;

        MPI(MPI_Comm_dup(MPI_COMM_WORLD, &a));
        MPI(MPI_Send(&x, 1, MPI_INT, rank ^ 1, 11, a));
        MPI(MPI_Send(&x, 1, MPI_INT, rank ^ 1, 12, a));
        MPI(MPI_Recv(&y, 1, MPI_INT, rank ^ 1, 12, a, MPI_STATUS_IGNORE));
        MPI(MPI_Iprobe(rank ^ 1, MPI_ANY_TAG, a, &found, MPI_STATUS_IGNORE));
        CHECK(i == y && found); /* the message with tag 11 is still there */
        MPI(MPI_Comm_free(&a));
        MPI(MPI_Comm_dup(MPI_COMM_WORLD, &a));
        MPI(MPI_Iprobe(MPI_ANY_SOURCE, 11, a, &found, MPI_STATUS_IGNORE));
        CHECK(!found);
        exchange(a, (uint32_t) i, 3000);
        MPI(MPI_Comm_free(&a));
    }
}

static void test_collectives(void)
{
    const int n = 20000;
    int *a = malloc((size_t) n * sizeof(int)), *b = malloc((size_t) n * sizeof(int) * (size_t) ranks);
    MPI_Request r;

    for (int i = 0; i < n; ++i) {
        a[i] = i + rank;
    }
    MPI(MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < n; ++i) {
        CHECK(b[i] == ranks * i + ranks * (ranks - 1) / 2);
    }
    MPI(MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD));
    for (int p = 0; p < ranks; ++p) {
        CHECK(b[p * n] == p && b[p * n + n - 1] == n - 1 + p);
    }
    MPI(MPI_Ibcast(a, n, MPI_INT, 0, MPI_COMM_WORLD, &r));
    MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(0 == a[0] && n - 1 == a[n - 1]);
    free(a);
    free(b);
}

int main(int argc, char **argv)
{
    static int last_in, last_out = 77;

    start(&argc, &argv);
    CHECK(0 == ranks % 2);
    test_storm(60);
    test_early_messages(200);
    test_left_over(20);
    test_intercomm();
    test_uneven_intercomm();
    test_collectives();
    /* a message that nobody has waited for when MPI_Finalize is called */
    MPI_Request r;
    MPI(MPI_Irecv(&last_in, 1, MPI_INT, rank ^ 1, 1, MPI_COMM_WORLD, &r));
    MPI(MPI_Send(&last_out, 1, MPI_INT, rank ^ 1, 1, MPI_COMM_WORLD));
    MPI(MPI_Request_free(&r));
    return finish();
}
