/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A program of a user who does not know bfo: MPI_THREAD_MULTIPLE, a window, a put to the other rank.
 * With an argument it asks for MPI_THREAD_SERIALIZED.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int provided, rank, put, got = -1;
    MPI_Win win;

    MPI_Init_thread(&argc, &argv, 1 < argc ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    put = 7 + rank;
    MPI_Win_create(&got, sizeof(got), sizeof(got), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&put, 1, MPI_INT, 1 - rank, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    printf("rank %d level %d got %d\n", rank, provided, got);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 8 - rank == got ? 0 : 1;
}
