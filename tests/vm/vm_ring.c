/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * vm_ring ROUNDS BYTES...: a message goes around all ranks, again and again, of each size, and every byte of it is verified
 * by every rank. Rank 0 says "round N" at most four times a second and at the end "ok". Uses MPI alone. DESIGN.txt 17. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void fill(unsigned char *at, int size, int round)
{
    for (int i = 0; i < size; i++) {
        at[i] = (unsigned char)(i * 31 + round * 17 + (i >> 8));
    }
}

static int count_wrong(const unsigned char *at, int size, int round)
{
    int wrong = 0;
    for (int i = 0; i < size; i++) {
        wrong += at[i] != (unsigned char)(i * 31 + round * 17 + (i >> 8));
    }
    return wrong;
}

/* One message around; returns how many bytes of it were wrong here. */
static int go_around(unsigned char *buffer, int size, int round, int rank, int ranks)
{
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks, wrong;
    if (0 == rank) {
        fill(buffer, size, round);
        MPI_Send(buffer, size, MPI_BYTE, next, round & 1023, MPI_COMM_WORLD);
        fill(buffer, size, round + 1);
    }
    MPI_Recv(buffer, size, MPI_BYTE, previous, round & 1023, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong = count_wrong(buffer, size, round);
    if (0 != rank) {
        MPI_Send(buffer, size, MPI_BYTE, next, round & 1023, MPI_COMM_WORLD);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0, all = 0;
    double said = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (3 > argc || 2 > ranks || 1 > atoi(argv[1]) || 0 > atoi(argv[2])) {
        fprintf(stderr, "usage: mpirun -np N vm_ring ROUNDS BYTES...   (two ranks or more)\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rounds = atoi(argv[1]), size = 0, sizes = argc - 2;
    for (int i = 0; i < sizes; i++) {
        size = atoi(argv[2 + i]) > size ? atoi(argv[2 + i]) : size;
    }
    unsigned char *buffer = malloc((size_t)size + 1);
    for (int round = 0; NULL != buffer && round < rounds * sizes; round++) {
        wrong += go_around(buffer, atoi(argv[2 + round % sizes]), round, rank, ranks);
        if (0 == rank && MPI_Wtime() - said > 0.25) {
            said = MPI_Wtime();
            printf("round %d\n", round);
            fflush(stdout);
        }
    }
    wrong += NULL == buffer;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf(0 == all ? "ok: %d rounds of %d bytes over %d ranks\n" : "WRONG DATA: %d rounds of %d bytes over %d ranks\n", rounds, size, ranks);
    }
    free(buffer);
    MPI_Finalize();
    return 0 == all ? 0 : 1;
}
