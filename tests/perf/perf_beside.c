/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * perf_beside SECONDS: two ranks exchange 8 bytes for this time. Rank 0 prints the median and the 99th percentile of the time of one way, in ns,
 * and the number of exchanges. For the script `status`: a command that runs at the same time may not slow the exchange down.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 8, STEP_NS = 10, STEPS = 100000, BATCH = 100 };

static unsigned long count[STEPS];

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
    unsigned long all = 0;
    int rank, goes_on = 1;
    double begin;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 1000; ++i) {
        exchange(rank);
    }
    for (begin = MPI_Wtime(); goes_on;) {
        for (int i = 0; i < BATCH; ++i) {
            const double from = MPI_Wtime();

            exchange(rank);
            const double step = (MPI_Wtime() - from) / 2 * 1e9 / STEP_NS;
            ++count[step < 0 ? 0 : step >= STEPS ? STEPS - 1 : (int) step];
            ++all;
        }
        goes_on = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (0 == rank) {
        printf("%lu %lu %lu\n", part(all, 50), part(all, 99), all);
    }
    MPI_Finalize();
    return 0;
}
