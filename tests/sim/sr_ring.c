/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MPI program: passes messages of mixed sizes round a ring and verifies every byte. Argument: rounds.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned char expected(size_t at, int round, int rank)
{
    return (unsigned char) (at * 7 + at / 251 + (size_t) round * 13 + (size_t) rank * 31);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {0, 1, 100, 5000, 20000, 70000, 1000003, 4194304};
    int rank, size, rounds = 1 < argc ? atoi(argv[1]) : 10;
    long bad = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < rounds; ++round) {
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
            int from = (rank + size - 1) % size, to = (rank + 1) % size, length = (int) sizes[s];
            unsigned char *out = malloc(sizes[s] + 1), *in = calloc(1, sizes[s] + 1);
            for (size_t i = 0; i < sizes[s]; ++i) {
                out[i] = expected(i, round, rank);
            }
            MPI_Sendrecv(out, length, MPI_BYTE, to, 5, in, length, MPI_BYTE, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (size_t i = 0; i < sizes[s]; ++i) {
                bad += in[i] != expected(i, round, from);
            }
            free(out);
            free(in);
        }
    }
    printf(0 == bad ? "rank %d verified\n" : "rank %d: %ld bytes are wrong\n", rank, bad);
    MPI_Finalize();
    return 0 != bad;
}
