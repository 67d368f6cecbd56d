/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * mpi_slow ROUNDS PINGS: in each round both ranks exchange four messages of 1 MiB, and every byte is checked; then 8 bytes go back and forth
 * PINGS times.
 */
#include "mpi_check.h"

enum { MESSAGES = 4, BYTES = 1 << 20 };

static char sent[MESSAGES][BYTES], got[MESSAGES][BYTES];

static void exchange(int round)
{
    MPI_Request requests[2 * MESSAGES];

    for (int i = 0; i < MESSAGES; ++i) {
        fill(sent[i], BYTES, (uint32_t) (round * 100 + i * 2 + rank));
        MPI(MPI_Irecv(got[i], BYTES, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[i]));
    }
    for (int i = 0; i < MESSAGES; ++i) {
        MPI(MPI_Isend(sent[i], BYTES, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[MESSAGES + i]));
    }
    MPI(MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MESSAGES; ++i) {
        CHECK(is_filled(got[i], BYTES, (uint32_t) (round * 100 + i * 2 + 1 - rank)));
    }
}

int main(int argc, char **argv)
{
    MPI(MPI_Init(&argc, &argv));
    MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    CHECK(2 == ranks && 3 == argc);
    for (int i = 0; i < atoi(argv[1]); ++i) {
        exchange(i);
    }
    for (int64_t i = 0; i < atoi(argv[2]); ++i) {
        int64_t answer = i;

        if (0 == rank) {
            MPI(MPI_Send(&i, 1, MPI_INT64_T, 1, 1, MPI_COMM_WORLD));
        }
        MPI(MPI_Recv(&answer, 1, MPI_INT64_T, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(i == answer);
        if (1 == rank) {
            MPI(MPI_Send(&i, 1, MPI_INT64_T, 0, 1, MPI_COMM_WORLD));
        }
    }
    return finish();
}
