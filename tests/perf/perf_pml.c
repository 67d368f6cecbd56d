/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One measurement of point-to-point between two ranks: prints "KIND SIZE VALUE" lines, latency as half a round
 * trip in microseconds, rate in messages per second, bandwidth in MB/s; each the median of some batches. The
 * script `pml` runs it in turns under two PMLs and compares. perf_pml [-t] [-n PERCENT] [-s BYTES]: -t asks for
 * MPI_THREAD_MULTIPLE, -n scales the number of rounds, -s measures one latency and nothing else.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 4 << 20, WINDOW = 64, BATCHES = 5 };
static char *out, *in;
static int rank;

/* Seconds for `rounds` round trips. */
static double round_trips(int size, int rounds)
{
    const double t = MPI_Wtime();

    for (int i = 0; i < rounds; ++i) {
        if (0 == rank) {
            MPI_Send(out, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(in, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - t;
}

/* Seconds for `rounds` windows of messages in one direction. */
static double windows(int size, int rounds)
{
    const double t = MPI_Wtime();
    MPI_Request r[WINDOW];

    for (int i = 0; i < rounds; ++i) {
        for (int w = 0; w < WINDOW; ++w) {
            if (0 == rank) {
                MPI_Isend(out, size, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &r[w]);
            } else {
                MPI_Irecv(in, size, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &r[w]);
            }
        }
        MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
        if (0 == rank) {
            MPI_Recv(in, 0, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(out, 0, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - t;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

/* Median seconds per round of `measure`, after a first batch that does not count. */
static double per_round(double (*measure)(int, int), int size, int rounds)
{
    double t[BATCHES];

    (void) measure(size, 1 + rounds / 2);
    for (int i = 0; i < BATCHES; ++i) {
        t[i] = measure(size, rounds) / rounds;
    }
    qsort(t, BATCHES, sizeof(t[0]), by_value);
    return t[BATCHES / 2];
}

static int scaled(int rounds, int percent)
{
    const long n = (long) rounds * percent / 100;

    return n < 2 ? 2 : (int) n;
}

/* A buffer in huge pages, if the system has any: the places of ordinary pages make long messages some per cent faster or slower for a
 * whole run. */
static char *buffer(int filled)
{
    void *room = NULL;

    if (0 != posix_memalign(&room, 2 << 20, MOST)) {
        abort();
    }
    (void) madvise(room, MOST, MADV_HUGEPAGE);
    return memset(room, filled, MOST);
}

static void latency(int size, int percent)
{
    const int rounds = size <= 4096 ? 6000 : size <= 65536 ? 1200 : (int) (40000000L / size);
    const double t = per_round(round_trips, size, scaled(rounds, percent));

    if (0 == rank) {
        printf("latency %d %.4f\n", size, t / 2 * 1e6);
    }
}

int main(int argc, char **argv)
{
    int provided, want = MPI_THREAD_SINGLE, percent = 100, only = -1, opt;
    double t;

    while (-1 != (opt = getopt(argc, argv, "tn:s:"))) {
        if ('t' == opt) {
            want = MPI_THREAD_MULTIPLE;
        } else if ('n' == opt) {
            percent = atoi(optarg);
        } else if ('s' == opt) {
            only = atoi(optarg);
        } else {
            return 2;
        }
    }
    MPI_Init_thread(&argc, &argv, want, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    out = buffer(1);
    in = buffer(2);
    if (only >= 0) {
        latency(only <= MOST ? only : MOST, percent);
        MPI_Finalize();
        return 0;
    }
    for (int size = 0; size <= MOST; size = 0 == size ? 1 : size < 8 ? 8 : 2 * size) {
        latency(size, percent);
    }
    t = per_round(windows, 64, scaled(400, percent));
    if (0 == rank) {
        printf("rate 64 %.0f\n", WINDOW / t);
    }
    t = per_round(windows, 1 << 20, scaled(6, percent));
    if (0 == rank) {
        printf("bandwidth 1048576 %.1f\n", WINDOW * 1.048576 / t);
    }
    MPI_Finalize();
    return 0;
}
