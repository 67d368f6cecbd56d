/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * vm_ring ROUNDS BYTES...: a message of each size goes around all ranks again and again. Every rank verifies its length and every byte,
 * and ends the job if anything is wrong ("WRONG DATA"). Rank 0 prints "round N" at most four times a second, and "ok" at the end.
 * SIGUSR2 to rank 0 ends all ranks without an error after a last round. Uses only MPI. DESIGN.txt 17. */
#include "../payload.h"

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAG = 1 }; /* one tag for all messages: a message that comes twice is taken for the next message */

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void) number;
    stop = 1;
}

/* Passes one message around; wrong bytes end the job. */
static void go_around(unsigned char *buffer, int size, int round, int rank, int ranks)
{
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks, got = -1;
    const size_t length = (size_t) size;
    const char *fault;
    MPI_Status status;
    size_t at;
    if (0 == rank) {
        payload_fill(buffer, length, (uint32_t) round);
        MPI_Send(buffer, size, MPI_BYTE, next, TAG, MPI_COMM_WORLD);
        payload_fill(buffer, length, (uint32_t) round + 1);
    }
    MPI_Recv(buffer, size, MPI_BYTE, previous, TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &got);
    at = payload_first_wrong(buffer, length, (uint32_t) round);
    fault = payload_fault(buffer, payload_room_length(buffer), "outside its message");
    if (at < length || got != size || NULL != fault) {
        printf("WRONG DATA: the first %zu of %d bytes are right (%d came) at rank %d in round %d; %s\n", at, size, got, rank, round,
               NULL == fault ? "no byte beside the buffer was written" : fault);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (0 != rank) {
        MPI_Send(buffer, size, MPI_BYTE, next, TAG, MPI_COMM_WORLD);
    }
}

/* Did rank 0 get the signal to stop? Every 16 rounds a word that says so goes around. */
static int must_stop(int round)
{
    int all = stop;
    if (0 == round % 16) {
        MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
        return all;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int rank, ranks, round = 0;
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
    unsigned char *buffer = payload_room((size_t) size);
    if (NULL == buffer) {
        fprintf(stderr, "vm_ring: no memory for messages of %d bytes\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    signal(SIGUSR2, on_signal);
    for (; round < rounds * sizes && !must_stop(round); round++) {
        go_around(buffer, atoi(argv[2 + round % sizes]), round, rank, ranks);
        if (0 == rank && MPI_Wtime() - said > 0.25) {
            said = MPI_Wtime();
            printf("round %d\n", round);
            fflush(stdout);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        printf("ok: %d rounds of %d bytes over %d ranks, 0 wrong\n", round, size, ranks);
    }
    payload_room_free(buffer);
    MPI_Finalize();
    return 0;
}
