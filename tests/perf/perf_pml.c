/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One measurement of point-to-point between two ranks: prints "KIND SIZE VALUE" lines, latency as half a round
 * trip in microseconds, rate in messages per second, bandwidth in MB/s. The script `pml` runs it in turns
 * under two PMLs and compares. perf_pml [-t] [-n REPEAT]: -t asks for MPI_THREAD_MULTIPLE.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 4 << 20, WINDOW = 64 };
static char *out, *in;
static int rank;

static double latency(int size, int rounds)
{
    double t = 0;

    for (int i = -rounds / 10; i < rounds; ++i) {
        if (0 == i) {
            t = MPI_Wtime();
        }
        if (0 == rank) {
            MPI_Send(out, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(in, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - t) / rounds / 2 * 1e6;
}

/* Seconds for `rounds` windows of messages in one direction. */
static double windows(int size, int rounds)
{
    MPI_Request r[WINDOW];
    double t = 0;

    for (int i = -rounds / 10; i < rounds; ++i) {
        if (0 == i) {
            t = MPI_Wtime();
        }
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

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};
    int provided, want = MPI_THREAD_SINGLE, scale = 1, opt;

    while (-1 != (opt = getopt(argc, argv, "tn:"))) {
        if ('t' == opt) {
            want = MPI_THREAD_MULTIPLE;
        } else if ('n' == opt) {
            scale = atoi(optarg);
        } else {
            return 2;
        }
    }
    MPI_Init_thread(&argc, &argv, want, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    out = malloc(MOST);
    in = malloc(MOST);
    memset(out, 1, MOST);
    memset(in, 2, MOST);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        const int n = scale * (sizes[i] <= 4096 ? 20000 : sizes[i] <= 65536 ? 2000 : sizes[i] <= 1048576 ? 200 : 50);
        const double value = latency(sizes[i], n);

        if (0 == rank) {
            printf("latency %d %.4f\n", sizes[i], value);
        }
    }
    {
        const int n = scale * 1000;
        const double t = windows(64, n);

        if (0 == rank) {
            printf("rate 64 %.0f\n", n * WINDOW / t);
        }
    }
    {
        const int n = scale * 5;
        const double t = windows(1048576, n);

        if (0 == rank) {
            printf("bandwidth 1048576 %.1f\n", n * WINDOW * 1.048576 / t);
        }
    }
    MPI_Finalize();
    return 0;
}
