/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Windows: fence, post-start-complete-wait, lock with flush, accumulate, get_accumulate, compare-and-swap, request based calls,
 * strided types. Every value is checked, also the values that nobody may have touched. mpi_onesided [FILE [KIND]] repeats everything,
 * at least twice and until FILE exists, and prints a line for each round, so that rails can be cut meanwhile. KIND of the window:
 * create (of the program's memory), allocate, or shared (each rank also loads from and stores into its neighbour's window).
 */
#include "mpi_check.h"

#include <unistd.h>

enum { N = 40000, SMALL = 64 };

static int *window, *local;
static MPI_Win win;
static int next, before; /* neighbours on the ring */

static int value(int owner, int round, int i)
{
    return owner * 1000003 + round * 7919 + i;
}

static void window_clear(int to)
{
    for (int i = 0; i < N; ++i) {
        window[i] = to;
    }
}

/* ---- active target ---------------------------------------------------------------------------------- */

static void test_fence(int round)
{
    const int n = 0 == round % 3 ? SMALL : N / 2;

    window_clear(-1);
    for (int i = 0; i < n; ++i) {
        local[i] = value(rank, round, i);
    }
    MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    MPI(MPI_Put(local, n, MPI_INT, next, 10, n, MPI_INT, win));
    MPI(MPI_Win_fence(0, win));
    for (int i = 0; i < N; ++i) {
        CHECK(window[i] == (i >= 10 && i < 10 + n ? value(before, round, i - 10) : -1));
    }
    MPI(MPI_Get(local + N / 2, n, MPI_INT, next, 10, n, MPI_INT, win));
    MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int i = 0; i < n; ++i) {
        CHECK(local[N / 2 + i] == value(rank, round, i));
    }
}

static void test_strided(int round)
{
    MPI_Datatype every_third, pairs;
    const int n = N / 10;

    MPI(MPI_Type_vector(n, 1, 3, MPI_INT, &every_third));
    MPI(MPI_Type_vector(n / 2, 2, 5, MPI_INT, &pairs));
    MPI(MPI_Type_commit(&every_third));
    MPI(MPI_Type_commit(&pairs));
    window_clear(-2);
    for (int i = 0; i < 3 * n; ++i) {
        local[i] = value(rank, round, i);
    }
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Put(local, 1, every_third, next, 0, 1, pairs, win));
    MPI(MPI_Win_fence(0, win));
    for (int k = 0; k < n / 2; ++k) {
        CHECK(window[5 * k] == value(before, round, 6 * k) && window[5 * k + 1] == value(before, round, 6 * k + 3));
        CHECK(5 * k + 2 >= 5 * (n / 2) - 3 || (-2 == window[5 * k + 2] && -2 == window[5 * k + 4]));
    }
    MPI(MPI_Type_free(&every_third));
    MPI(MPI_Type_free(&pairs));
}

/* Post, start, complete, wait between neighbours. */
static void test_pscw(int round)
{
    MPI_Group all, target, origin;

    window_clear(-3);
    for (int i = 0; i < N; ++i) {
        local[i] = value(rank, round, i);
    }
    MPI(MPI_Comm_group(MPI_COMM_WORLD, &all));
    MPI(MPI_Group_incl(all, 1, &next, &target));
    MPI(MPI_Group_incl(all, 1, &before, &origin));
    MPI(MPI_Win_post(origin, 0, win));
    MPI(MPI_Win_start(target, 0, win));
    MPI(MPI_Put(local, SMALL, MPI_INT, next, 0, SMALL, MPI_INT, win));
    MPI(MPI_Put(local + SMALL, N - SMALL, MPI_INT, next, SMALL, N - SMALL, MPI_INT, win));
    MPI(MPI_Win_complete(win));
    MPI(MPI_Win_wait(win));
    for (int i = 0; i < N; ++i) {
        CHECK(window[i] == value(before, round, i));
    }
    MPI(MPI_Group_free(&origin));
    MPI(MPI_Group_free(&target));
    MPI(MPI_Group_free(&all));
}

/* ---- passive target --------------------------------------------------------------------------------- */

static void test_lock(int round)
{
    const int slot = N / (2 * ranks); /* every rank writes a slot of its own at rank 0 */
    MPI_Request r[2];

    if (0 == rank) {
        MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        window_clear(-4);
        MPI(MPI_Win_unlock(0, win));
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < slot; ++i) {
        local[i] = value(rank, round, i);
    }
    MPI(MPI_Win_lock(0 == round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win));
    MPI(MPI_Put(local, slot, MPI_INT, 0, slot * rank, slot, MPI_INT, win));
    MPI(MPI_Win_flush(0, win));
    MPI(MPI_Get(local + N / 2, slot, MPI_INT, 0, slot * rank, slot, MPI_INT, win));
    MPI(MPI_Win_flush(0, win));
    for (int i = 0; i < slot; ++i) {
        CHECK(local[N / 2 + i] == value(rank, round, i));
    }
    MPI(MPI_Win_unlock(0, win));
    MPI(MPI_Win_lock_all(0, win));
    MPI(MPI_Rput(local, SMALL, MPI_INT, 0, slot * rank, SMALL, MPI_INT, win, &r[0]));
    MPI(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
    MPI(MPI_Win_flush_all(win));
    MPI(MPI_Rget(local + N / 2, slot, MPI_INT, 0, slot * rank, slot, MPI_INT, win, &r[1]));
    MPI(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
    MPI(MPI_Win_unlock_all(win));
    for (int i = 0; i < slot; ++i) {
        CHECK(local[N / 2 + i] == value(rank, round, i));
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == rank) {
        MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        for (int p = 0; p < ranks; ++p) {
            for (int i = 0; i < slot; ++i) {
                CHECK(window[slot * p + i] == value(p, round, i));
            }
        }
        MPI(MPI_Win_unlock(0, win));
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* ---- updates: the sums are right only if each was done exactly once ---------------------------------- */

static void test_accumulate(int round)
{
    const int n = 0 == round % 2 ? SMALL : N;
    int sum = 0, largest = 0;

    window_clear(5);
    for (int i = 0; i < n; ++i) {
        local[i] = rank + 1 + i % 3;
    }
    for (int p = 0; p < ranks; ++p) {
        sum += p + 1;
        largest = p + 1;
    }
    MPI(MPI_Win_fence(0, win));
    for (int p = 0; p < ranks; ++p) {
        MPI(MPI_Accumulate(local, n, MPI_INT, p, 0, n, MPI_INT, MPI_SUM, win));
    }
    MPI(MPI_Win_fence(0, win));
    for (int i = 0; i < N; ++i) {
        CHECK(window[i] == (i < n ? 5 + sum + ranks * (i % 3) : 5));
    }
    MPI(MPI_Win_fence(0, win));
    window_clear(0);
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Accumulate(local, n, MPI_INT, 0, 0, n, MPI_INT, MPI_MAX, win));
    MPI(MPI_Win_fence(0, win));
    for (int i = 0; 0 == rank && i < n; ++i) {
        CHECK(window[i] == largest + i % 3);
    }
}

/* All ranks draw numbers from one counter, in three ways: each number is drawn once. */
static void test_atomics(void)
{
    enum { DRAWS = 30 };
    const int all = DRAWS * ranks;
    int *mine = malloc((size_t) all * sizeof(int)), *seen = malloc((size_t) all * sizeof(int)), one = 1, drawn = 0;

    memset(mine, 0, (size_t) all * sizeof(int));
    if (0 == rank) {
        MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        window[0] = 0;
        MPI(MPI_Win_unlock(0, win));
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_Win_lock_all(0, win));
    while (drawn < DRAWS) {
        int was = -1, is = -1, wanted;

        switch (drawn % 3) {
        case 0:
            MPI(MPI_Fetch_and_op(&one, &was, MPI_INT, 0, 0, MPI_SUM, win));
            MPI(MPI_Win_flush(0, win));
            break;
        case 1:
            MPI(MPI_Get_accumulate(&one, 1, MPI_INT, &was, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
            MPI(MPI_Win_flush(0, win));
            break;
        default:
            do { /* compare-and-swap until no other rank was quicker */
                MPI(MPI_Fetch_and_op(NULL, &was, MPI_INT, 0, 0, MPI_NO_OP, win));
                MPI(MPI_Win_flush(0, win));
                wanted = was + 1;
                MPI(MPI_Compare_and_swap(&wanted, &was, &is, MPI_INT, 0, 0, win));
                MPI(MPI_Win_flush(0, win));
            } while (is != was);
            break;
        }
        CHECK(was >= 0 && was < all);
        ++mine[was];
        ++drawn;
    }
    MPI(MPI_Win_unlock_all(win));
    MPI(MPI_Allreduce(mine, seen, all, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < all; ++i) {
        CHECK(1 == seen[i]);
    }
    free(seen);
    free(mine);
}

/* Loads and stores in the window of the next rank. */
static void test_shared(int round)
{
    MPI_Aint size;
    int unit, *theirs;

    MPI(MPI_Win_shared_query(win, next, &size, &unit, &theirs));
    CHECK(N * sizeof(int) == (size_t) size && sizeof(int) == (size_t) unit && (theirs == window) == (next == rank));
    window_clear(-5);
    MPI(MPI_Win_fence(0, win));
    for (int i = 0; i < N; ++i) {
        CHECK(-5 == theirs[i]);
        theirs[i] = value(rank, round, i);
    }
    MPI(MPI_Win_fence(0, win));
    for (int i = 0; i < N; ++i) {
        CHECK(value(before, round, i) == window[i]);
    }
    MPI(MPI_Win_fence(0, win));
}

static void all_tests(int round)
{
    test_fence(round);
    test_strided(round);
    test_pscw(round);
    test_lock(round);
    test_accumulate(round);
    test_atomics();
}

static void window_make(const char *kind)
{
    if (0 == strcmp("allocate", kind)) {
        MPI(MPI_Win_allocate(N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win));
    } else if (0 == strcmp("shared", kind)) {
        MPI(MPI_Win_allocate_shared(N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win));
    } else {
        CHECK(0 == strcmp("create", kind));
        window = malloc(N * sizeof(int));
        MPI(MPI_Win_create(window, N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
}

/* Prints the file that backs the window, which shows what made the window. */
static void say_file(void)
{
    char line[512], file[256] = "";
    FILE *maps = fopen("/proc/self/maps", "r");

    while (NULL != maps && NULL != fgets(line, sizeof(line), maps)) {
        unsigned long begin, end;

        if (2 <= sscanf(line, "%lx-%lx %*s %*s %*s %*s %255s", &begin, &end, file) && (unsigned long) window >= begin
            && (unsigned long) window < end) {
            break;
        }
        file[0] = '\0';
    }
    if (NULL != maps) {
        fclose(maps);
    }
    printf("rank %d: window in %s\n", rank, '\0' == file[0] ? "no file" : file);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *until = 1 < argc ? argv[1] : "/", *kind = 2 < argc ? argv[2] : "create";
    int go_on = 1;

    start(&argc, &argv);
    local = malloc(N * sizeof(int));
    next = (rank + 1) % ranks;
    before = (rank + ranks - 1) % ranks;
    window_make(kind);
    say_file();
    for (int round = 0; go_on; ++round) {
        all_tests(round);
        if (0 == strcmp("shared", kind)) {
            test_shared(round);
        }
        go_on = round < 2 || 0 != access(until, F_OK);
        MPI(MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD));
        if (0 == rank) {
            printf("round %d\n", round);
            fflush(stdout);
        }
    }
    MPI(MPI_Win_free(&win));
    if (0 == strcmp("create", kind)) {
        free(window);
    }
    free(local);
    return finish();
}
