/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A loop for callgrind: a rank sends messages to itself, so that nothing polls and every instruction counted belongs to
 * the MPI library, the PML or a layer below. perf_ping ROUNDS BYTES LATE: LATE=1 sends first (the message is unexpected),
 * LATE=0 posts the receive first.
 */
#include <mpi.h>
#include <stdlib.h>

void perf_ping_loop(int rounds, int size, int late);

static char *out, *in;

__attribute__((noinline)) void perf_ping_loop(int rounds, int size, int late)
{
    MPI_Request r;

    for (int i = 0; i < rounds; ++i) {
        if (late) {
            MPI_Isend(out, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &r);
            MPI_Recv(in, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Irecv(in, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &r);
            MPI_Send(out, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    const int rounds = argc > 3 ? atoi(argv[1]) : 1, size = argc > 3 ? atoi(argv[2]) : 8;

    out = calloc(1, (size_t) size + 1);
    in = calloc(1, (size_t) size + 1);
    MPI_Init(&argc, &argv);
    perf_ping_loop(rounds, size, argc > 3 && '1' == *argv[3]);
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
