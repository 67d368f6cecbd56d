/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * perf_beside SECONDS: two ranks exchange 8 bytes for this time. Rank 0 prints the median and the 99th percentile of the time of one way, in ns,
 * and the number of exchanges. For the script `status`: a command that runs at the same time may not slow the exchange down.
 * perf_beside SECONDS BYTES: meanwhile the same two ranks stream messages of BYTES both ways. For the script `pml`: how long a short message waits
 * for long ones. Rank 0 prints lines "KIND SIZE VALUE", and also the mean and the bandwidth of the stream in one direction, in MB/s.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 8, STEP_NS = 10, STEPS = 10000000, BATCH = 100, STREAM = 4 };

static unsigned count[STEPS];
static MPI_Request stream[2 * STREAM]; /* STREAM messages in each direction; the next ones begin when all have ended */
static int streamed;                   /* how often these messages began */

static void exchange(int rank)
{
    char out[BYTES] = "exchang", in[BYTES];

    if (0 == rank) {
        MPI_Send(out, BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (0 != memcmp(in, out, BYTES)) {
            fputs("wrong bytes\n", stderr);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    } else {
        MPI_Recv(in, BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(in, BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
}

static void stream_begins(int rank, int bytes)
{
    for (int i = 0; i < STREAM; ++i) {
        char *out = malloc((size_t) bytes), *in = malloc((size_t) bytes);

        if (NULL == out || NULL == in) {
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        memset(out, 1, (size_t) bytes); /* pages of its own */
        memset(in, 2, (size_t) bytes);
        MPI_Send_init(out, bytes, MPI_CHAR, 1 - rank, 2, MPI_COMM_WORLD, &stream[2 * i]);
        MPI_Recv_init(in, bytes, MPI_CHAR, 1 - rank, 2, MPI_COMM_WORLD, &stream[2 * i + 1]);
    }
    MPI_Startall(2 * STREAM, stream);
    streamed = 1;
}

static void stream_goes_on(void)
{
    int ended;

    MPI_Testall(2 * STREAM, stream, &ended, MPI_STATUSES_IGNORE);
    if (ended) {
        MPI_Startall(2 * STREAM, stream);
        ++streamed;
    }
}

/* One rank may have begun once more than the other. */
static void stream_ends(void)
{
    int most;

    MPI_Allreduce(&streamed, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Waitall(2 * STREAM, stream, MPI_STATUSES_IGNORE);
    if (streamed < most) {
        MPI_Startall(2 * STREAM, stream);
        MPI_Waitall(2 * STREAM, stream, MPI_STATUSES_IGNORE);
    }
}

/* A percentile of the time of one way. */
static unsigned long part(unsigned long all, unsigned parts)
{
    unsigned long sum = 0;
    int i = 0;

    while (i < STEPS - 1 && (sum += count[i]) * 100 < all * parts) {
        ++i;
    }
    return (unsigned long) i * STEP_NS;
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 5;
    const int bytes = argc > 2 ? atoi(argv[2]) : 0;
    unsigned long all = 0;
    int rank, goes_on = 1;
    double begin;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 1000; ++i) {
        exchange(rank);
    }
    if (0 < bytes) {
        stream_begins(rank, bytes);
    }
    for (begin = MPI_Wtime(); goes_on;) {
        for (int i = 0; i < BATCH; ++i) {
            const double from = MPI_Wtime();

            exchange(rank);
            const double step = (MPI_Wtime() - from) / 2 * 1e9 / STEP_NS;
            ++count[step < 0 ? 0 : step >= STEPS ? STEPS - 1 : (int) step];
            ++all;
            if (0 < bytes) {
                stream_goes_on();
            }
        }
        goes_on = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    begin = MPI_Wtime() - begin;
    if (0 < bytes) {
        stream_ends();
    }
    if (0 == rank && 0 < bytes) {
        printf("mean %d %.0f\nmedian %d %lu\np99 %d %lu\nbandwidth %d %.1f\n", BYTES, begin / 2 * 1e9 / (double) all, BYTES, part(all, 50), BYTES,
               part(all, 99), bytes, 1e-6 * bytes * STREAM * (streamed - 1) / begin);
    } else if (0 == rank) {
        printf("%lu %lu %lu\n", part(all, 50), part(all, 99), all);
    }
    MPI_Finalize();
    return 0;
}
