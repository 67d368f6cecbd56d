/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Every size class in every send mode between neighbours, expected and unexpected, blocking, non-blocking
 * and persistent; truncation. Every byte is checked, and the bytes around the buffer as well.
 */
#include "mpi_check.h"

static const size_t sizes[] = {0,     1,     2,     7,     8,     63,    64,     65,     255,    256,     1000,    1024,
                               2000,  2048,  4000,  4064,  4079,  4080,  4081,   4096,   4097,   8192,    12345,   32752,
                               32768, 40000, 65519, 65520, 65521, 65536, 131072, 262144, 300001, 1048576, 1048577, 4200001};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define MOST 4200001

static uint8_t *out;

typedef int (*sender_t)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
static const sender_t senders[] = {MPI_Send, MPI_Ssend, MPI_Bsend};

static void receive(size_t n, int from, uint32_t seed, bool late)
{
    MPI_Status status;
    uint8_t *in = receive_room(n);
    int count;

    if (late) {
        int flag = 0;

        while (!flag) { /* waits until the message is unexpected */
            MPI(MPI_Iprobe(from, (int) seed, MPI_COMM_WORLD, &flag, &status));
        }
        MPI(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK((size_t) count == n && status.MPI_SOURCE == from && status.MPI_TAG == (int) seed);
    }
    MPI(MPI_Recv(in, (int) n, MPI_BYTE, from, (int) seed, MPI_COMM_WORLD, &status));
    MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK((size_t) count == n && status.MPI_SOURCE == from && status.MPI_TAG == (int) seed);
    CHECK(is_filled(in, n, seed));
    give_back(in, n);
}

static void test_blocking(int peer, bool first)
{
    uint32_t seed = 1;

    for (size_t s = 0; s < N_SIZES; ++s) {
        for (unsigned mode = 0; mode < 3; ++mode) {
            for (int late = 0; late < 2; ++late, ++seed) {
                if (first) {
                    fill(out, sizes[s], seed);
                    MPI(senders[mode](out, (int) sizes[s], MPI_BYTE, peer, (int) seed, MPI_COMM_WORLD));
                    memset(out, 0, sizes[s]); /* the buffer is ours again */
                    receive(sizes[s], peer, seed, late);
                } else {
                    receive(sizes[s], peer, seed, late);
                    fill(out, sizes[s], seed);
                    MPI(senders[mode](out, (int) sizes[s], MPI_BYTE, peer, (int) seed, MPI_COMM_WORLD));
                    memset(out, 0, sizes[s]);
                }
            }
        }
    }
}

/* A message longer than the buffer: MPI_ERR_TRUNCATE, and nothing after the buffer is written. */
static void test_truncation(int peer, bool first)
{
    MPI_Status status;
    int rc, class;

    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (size_t s = 1; s < N_SIZES; ++s) {
        const size_t n = sizes[s], room = n / 2;

        for (int late = 0; late < 2; ++late) {
            if (first) {
                fill(out, n, 77);
                MPI(MPI_Send(out, (int) n, MPI_BYTE, peer, 5, MPI_COMM_WORLD));
            } else {
                uint8_t *in = receive_room(n);

                if (late) {
                    MPI(MPI_Probe(peer, 5, MPI_COMM_WORLD, &status));
                }
                rc = MPI_Recv(in, (int) room, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &status);
                MPI(MPI_Error_class(rc, &class));
                CHECK(MPI_ERR_TRUNCATE == class);
                CHECK(is_filled(in, room, 77));
                give_back(in, room);
            }
        }
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

/* All sizes in flight at once, in both directions. */
static void test_nonblocking(int peer)
{
    MPI_Request requests[2 * N_SIZES];
    MPI_Status statuses[2 * N_SIZES];
    uint8_t *to[N_SIZES], *from[N_SIZES];

    for (size_t s = 0; s < N_SIZES; ++s) {
        to[s] = malloc(sizes[s] + 1);
        from[s] = receive_room(sizes[s]);
        fill(to[s], sizes[s], (uint32_t) (1000 + s));
    }
    for (size_t s = 0; s < N_SIZES; ++s) { /* receives in the reverse order of the sends */
        const size_t r = N_SIZES - 1 - s;

        MPI(MPI_Irecv(from[r], (int) sizes[r], MPI_BYTE, peer, (int) r, MPI_COMM_WORLD, &requests[N_SIZES + r]));
    }
    for (size_t s = 0; s < N_SIZES; ++s) {
        switch (s % 3) {
        case 0:
            MPI(MPI_Isend(to[s], (int) sizes[s], MPI_BYTE, peer, (int) s, MPI_COMM_WORLD, &requests[s]));
            break;
        case 1:
            MPI(MPI_Issend(to[s], (int) sizes[s], MPI_BYTE, peer, (int) s, MPI_COMM_WORLD, &requests[s]));
            break;
        default:
            MPI(MPI_Ibsend(to[s], (int) sizes[s], MPI_BYTE, peer, (int) s, MPI_COMM_WORLD, &requests[s]));
            break;
        }
    }
    MPI(MPI_Waitall(2 * N_SIZES, requests, statuses));
    for (size_t s = 0; s < N_SIZES; ++s) {
        int count;

        MPI(MPI_Get_count(&statuses[N_SIZES + s], MPI_BYTE, &count));
        CHECK((size_t) count == sizes[s] && statuses[N_SIZES + s].MPI_TAG == (int) s);
        CHECK(is_filled(from[s], sizes[s], (uint32_t) (1000 + s)));
        free(to[s]);
        give_back(from[s], sizes[s]);
    }
}

static void test_persistent(int peer)
{
    for (size_t s = 0; s < N_SIZES; s += 3) {
        const size_t n = sizes[s];
        MPI_Request r[5];
        uint8_t *a = receive_room(n), *b = receive_room(n), *c = receive_room(n);

        MPI(MPI_Send_init(out, (int) n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[0]));
        MPI(MPI_Ssend_init(out, (int) n, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &r[1]));
        MPI(MPI_Bsend_init(out, (int) n, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &r[2]));
        MPI(MPI_Recv_init(a, (int) n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[3]));
        for (uint32_t round = 0; round < 6; ++round) {
            MPI_Status st;

            fill(out, n, round + 9);
            memset(a, 0, n);
            MPI(MPI_Start(&r[3]));
            MPI(MPI_Startall(3, r));
            MPI(MPI_Recv(b, (int) n, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &st));
            MPI(MPI_Recv(c, (int) n, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &st));
            MPI(MPI_Waitall(4, r, MPI_STATUSES_IGNORE));
            CHECK(is_filled(a, n, round + 9) && is_filled(b, n, round + 9) && is_filled(c, n, round + 9));
            MPI(MPI_Barrier(MPI_COMM_WORLD));
        }
        for (int i = 0; i < 4; ++i) {
            MPI(MPI_Request_free(&r[i]));
        }
        give_back(a, n);
        give_back(b, n);
        give_back(c, n);
    }
}

int main(int argc, char **argv)
{
    const int room = 3 * (4200001 + MPI_BSEND_OVERHEAD) + 64 * 1024 * 1024;
    void *attached = malloc((size_t) room);
    int peer;

    start(&argc, &argv);
    if (0 != ranks % 2) {
        fprintf(stderr, "an even number of ranks, please\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    out = malloc(MOST);
    MPI(MPI_Buffer_attach(attached, room));
    peer = rank ^ 1;
    test_blocking(peer, 0 == (rank & 1));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    test_truncation(peer, 0 == (rank & 1));
    test_nonblocking(peer);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    test_persistent(peer);
    MPI(MPI_Buffer_detach(&attached, &peer));
    free(attached);
    free(out);
    return finish();
}
