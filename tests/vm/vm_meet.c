/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * vm_meet: every pair of ranks has its first contact, and both ranks start at once: after a barrier each sends to the
 * other. Every byte is verified. The number of ranks is a power of two. Rank 0 prints "ok" at the end. DESIGN.txt 17. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { SIZE = 3000 };

int main(int argc, char **argv)
{
    static unsigned char out[SIZE], in[SIZE], expected[SIZE];
    int rank, ranks, wrong = 0, all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (2 > ranks || 0 != (ranks & (ranks - 1))) {
        fprintf(stderr, "usage: mpirun -np 2|4|8|... vm_meet\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int step = ranks - 1; step > 0; step--) { /* the furthest rank first, because the barrier itself contacts the others */
        int peer = rank ^ step;
        memset(out, 1 + rank + 16 * step, SIZE);
        memset(expected, 1 + peer + 16 * step, SIZE);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Sendrecv(out, SIZE, MPI_BYTE, peer, step, in, SIZE, MPI_BYTE, peer, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += 0 != memcmp(in, expected, SIZE);
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf(0 == all ? "ok: %d ranks met\n" : "WRONG DATA: %d ranks met\n", ranks);
    }
    MPI_Finalize();
    return 0 == all ? 0 : 1;
}
