/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The rules of MPI that a recovery could break: two ranks check them while rails are lost, for the given number of seconds at least, and until
 * mpirun gets SIGUSR1.
 * Buffered sends whose buffer is used again at once, synchronous sends that must not end early, cancelled and matched receives,
 * probes, communicators and requests that are freed with messages in flight, many short messages at a time. In the end no
 * message may be left over, and MPI_Finalize is called with messages still in flight. DESIGN.txt section 9.
 */
#include "mpi_check.h"

#include <signal.h>
#include <unistd.h>

enum { LONG = 250000, SHORT = 64, MANY = 600, TAG = 3, TOKEN = 4, GO = 5, UNUSED = 6, LAST = 7 };

static uint8_t *a, *b;
static int peer;
static volatile sig_atomic_t is_over;

static void end(int signal)
{
    is_over = 1;
}

static int size_of(unsigned round)
{
    static const int sizes[] = {0, 8, SHORT, 2000, 20000, 90000, LONG};

    return sizes[round % 7];
}

static void receive(MPI_Comm comm, int tag, int n, uint32_t seed)
{
    MPI_Status status;
    int got;

    memset(b, 0xff, (size_t) n);
    MPI(MPI_Recv(b, LONG, MPI_BYTE, peer, tag, comm, &status));
    MPI(MPI_Get_count(&status, MPI_BYTE, &got));
    CHECK(n == got && is_filled(b, (size_t) n, seed));
}

/* MPI_Bsend has copied the message into the attached buffer: later changes of the user's buffer do not matter. */
static void check_buffered(unsigned round)
{
    const int n = size_of(round);
    void *buffer;
    int size;

    fill(a, (size_t) n, round);
    MPI(MPI_Bsend(a, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
    fill(a, (size_t) n, ~round);
    MPI(MPI_Bsend(a, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
    memset(a, 0xee, (size_t) n);
    receive(MPI_COMM_WORLD, TAG, n, round);
    receive(MPI_COMM_WORLD, TAG, n, ~round);
    MPI(MPI_Buffer_detach(&buffer, &size)); /* waits until no message uses the buffer */
    memset(buffer, 0, (size_t) size);
    MPI(MPI_Buffer_attach(buffer, size));
}

/* A synchronous send does not end before its receive was posted. */
static void check_synchronous(unsigned round)
{
    const int n = size_of(round);
    MPI_Request r;
    int flag = 0;

    if (round % 2 == (unsigned) rank) {
        fill(a, (size_t) n, round);
        MPI(MPI_Issend(a, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r));
        MPI(MPI_Recv(b, 0, MPI_BYTE, peer, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 50; ++i) {
            MPI(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
        }
        MPI(MPI_Send(b, 0, MPI_BYTE, peer, GO, MPI_COMM_WORLD));
        MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    } else {
        MPI(MPI_Send(b, 0, MPI_BYTE, peer, TOKEN, MPI_COMM_WORLD));
        MPI(MPI_Recv(b, 0, MPI_BYTE, peer, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        receive(MPI_COMM_WORLD, TAG, n, round);
    }
}

/* Unmatched receives can be cancelled; matched ones end with their message. */
static void check_cancel(unsigned round)
{
    const int n = size_of(round);
    MPI_Request r, s;
    MPI_Status status;
    int cancelled;

    MPI(MPI_Irecv(b, LONG, MPI_BYTE, peer, UNUSED, MPI_COMM_WORLD, &r));
    MPI(MPI_Cancel(&r));
    MPI(MPI_Wait(&r, &status));
    MPI(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled);
    fill(a, (size_t) n, round);
    MPI(MPI_Isend(a, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &s));
    MPI(MPI_Probe(peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI(MPI_Irecv(b, LONG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r));
    MPI(MPI_Cancel(&r));
    MPI(MPI_Wait(&r, &status));
    MPI(MPI_Test_cancelled(&status, &cancelled));
    CHECK(!cancelled && is_filled(b, (size_t) n, round));
    MPI(MPI_Wait(&s, MPI_STATUS_IGNORE));
}

/* A probe sees each message once; a matched message is received through its handle, however late. */
static void check_probe(unsigned round)
{
    const int n = size_of(round), m = size_of(round + 3);
    MPI_Message message;
    MPI_Request s[2];
    MPI_Status status;
    int got;

    fill(a, (size_t) n, round);
    fill(a + LONG, (size_t) m, round + 1);
    MPI(MPI_Isend(a, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &s[0]));
    MPI(MPI_Isend(a + LONG, m, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &s[1]));
    MPI(MPI_Mprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &message, &status));
    MPI(MPI_Get_count(&status, MPI_BYTE, &got));
    CHECK(n == got);
    MPI(MPI_Probe(peer, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    MPI(MPI_Get_count(&status, MPI_BYTE, &got));
    CHECK(m == got);
    receive(MPI_COMM_WORLD, TAG, m, round + 1); /* the second message first */
    MPI(MPI_Mrecv(b, LONG, MPI_BYTE, &message, &status));
    CHECK(is_filled(b, (size_t) n, round));
    MPI(MPI_Waitall(2, s, MPI_STATUSES_IGNORE));
}

/* A communicator and a request are freed while their messages are in flight. */
static void check_teardown(unsigned round)
{
    const int n = size_of(round);
    MPI_Request r, s, given;
    MPI_Comm comm, gone;

    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    gone = comm;
    fill(a, (size_t) n, round);
    MPI(MPI_Irecv(b, LONG, MPI_BYTE, peer, TAG, comm, &r));
    MPI(MPI_Isend(a, n, MPI_BYTE, peer, TAG, comm, &s));
    MPI(MPI_Isend(a, n, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &given));
    MPI(MPI_Request_free(&given));
    MPI(MPI_Comm_free(&gone));
    MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(is_filled(b, (size_t) n, round));
    MPI(MPI_Wait(&s, MPI_STATUS_IGNORE));
    receive(MPI_COMM_WORLD, TAG, n, round);
    MPI(MPI_Barrier(MPI_COMM_WORLD)); /* the message of the freed request is sent: `a` may be used again */
}

/* More short messages than one burst sends again. */
static void check_many(unsigned round)
{
    static MPI_Request r[2 * MANY];
    static uint8_t out[MANY][SHORT], in[MANY][SHORT];

    for (unsigned i = 0; i < MANY; ++i) {
        fill(out[i], SHORT, round + i);
        MPI(MPI_Irecv(in[i], SHORT, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r[i]));
        MPI(MPI_Isend(out[i], SHORT, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r[MANY + i]));
    }
    MPI(MPI_Waitall(2 * MANY, r, MPI_STATUSES_IGNORE));
    for (unsigned i = 0; i < MANY; ++i) {
        CHECK(is_filled(in[i], SHORT, round + i));
    }
}

static void nothing_comes_late(void)
{
    int found;

    MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 200; ++i) {
        MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
        CHECK(!found);
        usleep(1000);
    }
}

/* The last message is sent, and its sender is in MPI_Finalize before it knows whether the message arrived. */
static void finalize(void)
{
    static const uint8_t last[8] = {0xde, 0xad, 0xbe, 0xef, 0x1a, 0x57, 0x1a, 0x57};
    unsigned long all = 0;
    MPI_Request s;

    MPI(MPI_Reduce(&checks, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD));
    if (0 == rank) {
        MPI(MPI_Isend(a, LONG, MPI_BYTE, peer, LAST, MPI_COMM_WORLD, &s));
        MPI(MPI_Request_free(&s));
        MPI(MPI_Send(last, sizeof(last), MPI_BYTE, peer, LAST, MPI_COMM_WORLD));
        printf("PASSED %lu checks on %d ranks\n", all, ranks);
        fflush(stdout);
    } else {
        fill(a, LONG, 99);
        receive(MPI_COMM_WORLD, LAST, LONG, 99);
        MPI(MPI_Recv(b, LONG, MPI_BYTE, peer, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(0 == memcmp(b, last, sizeof(last)));
        fprintf(stderr, "last word received\n");
    }
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    static void (*const checks_of[])(unsigned) = {check_buffered, check_synchronous, check_cancel, check_probe, check_teardown, check_many};
    const int attached = 4 * (LONG + MPI_BSEND_OVERHEAD);
    unsigned round = 0;
    int more = 1;
    double begin;

    signal(SIGUSR1, end);
    start(&argc, &argv);
    CHECK(2 == argc && 2 == ranks);
    peer = 1 - rank;
    CHECK(NULL != (a = malloc(2 * LONG)) && NULL != (b = malloc(LONG)));
    MPI(MPI_Buffer_attach(malloc((size_t) attached), attached));
    for (begin = MPI_Wtime(); more; ++round) {
        checks_of[round % 6](round);
        if (0 == rank && 11 == round) {
            printf("ready\n");
            fflush(stdout);
        }
        more = !is_over || MPI_Wtime() - begin < atof(argv[1]);
        MPI(MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
    nothing_comes_late();
    fill(a, LONG, 99);
    finalize();
    return 0;
}
