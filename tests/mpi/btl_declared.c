/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Two ranks exchange messages until the peer is declared. From then on every call on either side ends at once with
 * MPI_ERR_OTHER. See DESIGN.txt 10.4 and 11.
 */
#include "mpi_check.h"

#include <unistd.h>

enum { ROUNDS = 20000, MOST = 3000, ATTEMPTS = 50 };

static int class_of(int code)
{
    int class;

    MPI_Error_class(code, &class);
    return class;
}

/* Sends one message each way; returns the code of the first call that failed. With `whole`, checks every byte of the message received.
 * After a loss a receive may get the message of an earlier receive that has failed, therefore its bytes are not checked. */
static int exchange(int peer, unsigned round, bool whole)
{
    static uint8_t out[MOST], in[MOST];
    int size = 1 + (int) (round * 37 % MOST), codes[2];
    MPI_Request requests[2];

    fill(out, (size_t) size, round * 2 + (unsigned) rank);
    if (MPI_SUCCESS != (codes[0] = MPI_Irecv(in, MOST, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[0]))) {
        return codes[0];
    }
    codes[1] = MPI_Isend(out, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[1]);
    if (MPI_SUCCESS == codes[1]) {
        codes[1] = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    codes[0] = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    if (MPI_SUCCESS == codes[0] && whole) {
        CHECK(is_filled(in, (size_t) size, round * 2 + (unsigned) peer));
    }
    return MPI_SUCCESS != codes[0] ? codes[0] : codes[1];
}

int main(int argc, char **argv)
{
    unsigned round = 0;
    int code = MPI_SUCCESS;

    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    while (MPI_SUCCESS == code && round < ROUNDS) {
        code = exchange(1 - rank, round++, true);
    }
    CHECK(round < ROUNDS);
    CHECK(MPI_ERR_OTHER == class_of(code));
    double begin = MPI_Wtime();
    for (int i = 0; i < ATTEMPTS; ++i) {
        CHECK(MPI_ERR_OTHER == class_of(exchange(1 - rank, round, false)));
    }
    CHECK(MPI_Wtime() - begin < 1);
    sleep(3); /* long enough for every timer of the bring-down */
    printf("rank %d: declared after %u rounds\n", rank, round);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
