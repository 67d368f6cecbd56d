/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One of four processes dies: mpi_killed WHOM FILE. Before that, all ranks have exchanged messages with each other (WHOM = all), or only
 * with the last rank (WHOM = it). The last rank kills itself when FILE exists. Calls of the others that concern it end with MPI_ERR_OTHER,
 * and the others continue among themselves. Each prints PASSED after MPI_Finalize has returned. DESIGN.txt section 11.
 */
#include "mpi_check.h"

#include <signal.h>
#include <unistd.h>

enum { LONG = 300000 };

static uint8_t *out, *in;

static void exchange(int peer, uint32_t seed)
{
    fill(out, LONG, seed);
    memset(in, 0, LONG);
    MPI(MPI_Sendrecv(out, LONG, MPI_BYTE, peer, 1, in, LONG, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, LONG, seed));
}

/* Every rank exchanges with every rank: in each round a rank has one partner, which may be the rank itself. */
static void all_exchange(int n, uint32_t seed)
{
    for (int round = 0; round < n; ++round) {
        exchange((round + n - rank) % n, seed + (uint32_t) round);
    }
}

static void ask_the_dead(int dead)
{
    MPI_Request request[2];

    MPI(MPI_Irecv(in, LONG, MPI_BYTE, dead, 2, MPI_COMM_WORLD, &request[0]));
    MPI(MPI_Isend(out, LONG, MPI_BYTE, dead, 2, MPI_COMM_WORLD, &request[1]));
    for (int i = 0; i < 2; ++i) {
        const int rc = MPI_Wait(&request[i], MPI_STATUS_IGNORE);
        int class;

        MPI(MPI_Error_class(rc, &class));
        CHECK(MPI_ERR_OTHER == class);
    }
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    CHECK(3 == argc && 4 == ranks);
    CHECK(NULL != (out = malloc(LONG)) && NULL != (in = malloc(LONG)));
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (0 == strcmp(argv[1], "all")) {
        all_exchange(ranks, 5);
        MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    for (int other = 0; other < ranks - 1; ++other) {
        if (ranks - 1 == rank || other == rank) {
            exchange(ranks - 1 == rank ? other : ranks - 1, (uint32_t) other);
        }
    }
    if (ranks - 1 == rank) {
        printf("ready\n");
        fflush(stdout);
        while (0 != access(argv[2], F_OK)) {
            usleep(1000);
        }
        kill(getpid(), SIGKILL);
    }
    ask_the_dead(ranks - 1);
    all_exchange(ranks - 1, 50);
    MPI_Finalize();
    printf("PASSED %lu checks on rank %d\n", checks, rank);
    return 0;
}
