/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Two nodes of two ranks each; their last rail is cut. Calls that concern the other node end with MPI_ERR_OTHER, and the
 * two ranks of a node continue to exchange messages. Each rank prints PASSED after MPI_Finalize has returned. DESIGN.txt section 11.
 */
#include "mpi_check.h"

enum { LONG = 300000, ROUNDS = 200 };

static uint8_t *out, *in;

/* Returns the class of the error that ended the exchange; without an error, every byte was checked. */
static int exchange(int peer, unsigned round)
{
    static const int sizes[] = {8, 3000, LONG, 100, 40000};
    const int n = sizes[round % 5];
    MPI_Request r[2];
    bool lost = false;

    fill(out, (size_t) n, round);
    MPI(MPI_Irecv(in, LONG, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[0]));
    MPI(MPI_Isend(out, n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[1]));
    for (int i = 0; i < 2; ++i) { /* MPI_Waitall would leave the second request pending when the first fails */
        const int rc = MPI_Wait(&r[i], MPI_STATUS_IGNORE);
        int class;

        MPI(MPI_Error_class(rc, &class));
        if (MPI_SUCCESS != class && MPI_ERR_OTHER != class) {
            fprintf(stderr, "rank %d: %s ends with class %d\n", rank, 0 == i ? "a receive" : "a send", class);
        }
        CHECK(MPI_SUCCESS == class || MPI_ERR_OTHER == class);
        lost = lost || MPI_SUCCESS != class;
    }
    CHECK(lost || is_filled(in, (size_t) n, round));
    return lost ? MPI_ERR_OTHER : MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int near, far;

    start(&argc, &argv);
    CHECK(4 == ranks);
    near = rank ^ 1;
    far = (rank + 2) % 4;
    CHECK(NULL != (out = malloc(LONG)) && NULL != (in = malloc(LONG)));
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (unsigned round = 0; round < 5; ++round) {
        MPI(exchange(near, round));
        MPI(exchange(far, round));
        MPI(exchange(3 - rank, round)); /* the other rank of the other node */
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == rank) {
        printf("ready\n");
        fflush(stdout);
    }
    for (unsigned round = 0; MPI_SUCCESS == exchange(far, round); ++round) {
    }
    for (unsigned round = 0; round < ROUNDS; ++round) {
        MPI(exchange(near, round));
    }
    CHECK(MPI_ERR_OTHER == exchange(far, 0));
    CHECK(MPI_ERR_OTHER == exchange(3 - rank, 0));
    MPI(exchange(near, 1));
    MPI_Finalize();
    printf("PASSED %lu checks on rank %d\n", checks, rank);
    return 0;
}
