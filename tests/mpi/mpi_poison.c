/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A message that no rail carries: mpi_poison HOW, for two ranks. The fault plan refuses what rank 0 sends with tag TAG (HOW = match: a
 * short message; the PML declares the peer) or with bytes of 0xee (HOW = write: a long message, which fails alone).
 * DESIGN.txt 7.5.
 */
#include "mpi_check.h"

enum { TAG = 0x7eaf, LONG = 40000, SHORT = 100, ROUNDS = 200 };

static int class_of(int code)
{
    int class;

    MPI_Error_class(code, &class);
    return class;
}

static void exchange(unsigned round)
{
    uint8_t out[SHORT], in[SHORT];

    fill(out, SHORT, round * 2 + (unsigned) rank);
    MPI(MPI_Sendrecv(out, SHORT, MPI_BYTE, 1 - rank, 1, in, SHORT, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, SHORT, round * 2 + (unsigned) (1 - rank)));
}

/* Rank 0 sends the message that is refused; both sides get an error. A short send may have returned before that. */
static void send_poison(uint8_t *buffer, int size)
{
    int code;

    memset(buffer, 0xee, (size_t) size);
    if (0 == rank) {
        code = MPI_Send(buffer, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        CHECK(SHORT == size || MPI_ERR_OTHER == class_of(code));
    }
    if (1 == rank || SHORT == size) {
        CHECK(MPI_ERR_OTHER == class_of(MPI_Recv(buffer, size, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
    }
}

int main(int argc, char **argv)
{
    static uint8_t buffer[LONG];
    bool is_short;

    start(&argc, &argv);
    CHECK(2 == argc && 2 == ranks);
    is_short = 0 == strcmp(argv[1], "match");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (unsigned i = 0; i < ROUNDS; ++i) {
        exchange(i);
    }
    if (0 == rank) { /* rank 1 has received everything before this */
        MPI(MPI_Recv(buffer, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
        MPI(MPI_Send(buffer, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD));
    }
    send_poison(buffer, is_short ? SHORT : LONG);
    for (unsigned i = 0; i < ROUNDS && !is_short; ++i) {
        exchange(i);
    }
    printf("PASSED %lu checks on rank %d\n", checks, rank);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
