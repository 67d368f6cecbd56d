/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MPI program: passes messages of mixed sizes round a ring and verifies every byte. Argument: rounds.
 */
#include "../payload.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Reports a fault of payload.h. */
static int is_wrong(const char *fault)
{
    if (NULL != fault) {
        fprintf(stderr, "%s\n", fault);
    }
    return NULL != fault;
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {0, 1, 100, 5000, 20000, 70000, 1000003, 4194304};
    int rank, size, rounds = 1 < argc ? atoi(argv[1]) : 10;
    int bad = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < rounds; ++round) {
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
            int from = (rank + size - 1) % size, to = (rank + 1) % size, length = (int) sizes[s];
            unsigned char *out = malloc(sizes[s] + 1), *in = payload_room(sizes[s]);
            payload_fill(out, sizes[s], (uint32_t) (round * size + rank));
            MPI_Sendrecv(out, length, MPI_BYTE, to, 5, in, length, MPI_BYTE, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            bad += sizes[s] != payload_first_wrong(in, sizes[s], (uint32_t) (round * size + from));
            bad += is_wrong(payload_give_back(in, sizes[s]));
            free(out);
        }
    }
    bad += is_wrong(payload_recheck());
    printf(0 == bad ? "rank %d verified\n" : "rank %d: %d messages are wrong\n", rank, bad);
    MPI_Finalize();
    return 0 != bad;
}
