/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Windows are freed while the owner's answers are in flight: rank 0 gets from rank 1, both ranks free the window, and the
 * rails report the completions of rank 1's answers only later. Blocks that rank 1 meanwhile takes from the heap, where the
 * window was, must not change.
 */
#include "mpi_check.h"

enum { ROUNDS = 2, BLOCKS = 4000, STEP = 16 };

static size_t size_of(int i)
{
    return 16 + (size_t) (i % 100) * STEP;
}

/* Makes progress for 0.6 s, which is longer than the delay of a completion. */
static void wait_for_completions(void)
{
    const double end = MPI_Wtime() + 0.6;
    int flag;

    while (MPI_Wtime() < end) {
        MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    }
}

static void get_and_free(size_t bytes)
{
    static void *blocks[BLOCKS];
    unsigned char *memory = malloc(bytes), *got = malloc(bytes);
    MPI_Win win;

    CHECK(NULL != memory && NULL != got);
    fill(memory, bytes, (uint32_t) rank + 1);
    MPI(MPI_Win_create(memory, (MPI_Aint) bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    if (0 == rank) {
        MPI(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
        MPI(MPI_Get(got, (int) bytes, MPI_BYTE, 1, 0, (int) bytes, MPI_BYTE, win));
        MPI(MPI_Win_unlock(1, win));
        CHECK(is_filled(got, bytes, 2));
    }
    MPI(MPI_Win_free(&win));
    for (int i = 0; i < BLOCKS; ++i) {
        blocks[i] = malloc(size_of(i));
        CHECK(NULL != blocks[i]);
        memset(blocks[i], 0x5a, size_of(i));
    }
    wait_for_completions();
    for (int i = 0; i < BLOCKS; ++i) {
        CHECK(is_only(blocks[i], size_of(i), 0x5a));
        free(blocks[i]);
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    free(memory);
    free(got);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(2 == ranks);
    for (int round = 0; round < ROUNDS; ++round) {
        get_and_free(64);
        get_and_free(6000);
        get_and_free(1000000);
    }
    return finish();
}
