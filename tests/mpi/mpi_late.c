/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Processes whose first contact comes after a rail was lost: they make progress until the file in the first argument
 * exists, then rank 0 sends verified messages. With a second argument they have exchanged one small message before, over the
 * first rail, and have never used the others. With a third argument, the name of a second file, only rank 1 sends the small
 * message, when the first file exists, and both continue when the second file exists. DESIGN.txt section 18.
 */
#include "mpi_check.h"

#include <unistd.h>

enum { MESSAGES = 6 };

/* Makes progress without sending anything to another rank. */
static void progress(unsigned milliseconds)
{
    for (unsigned i = 0; i < milliseconds; ++i) {
        int found;

        MPI(MPI_Iprobe(0, 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE));
        usleep(1000);
    }
}

static void wait_for(const char *file)
{
    while (0 != access(file, F_OK)) {
        progress(1);
    }
    progress(200);
}

/* When this returns, rank 1 knows its rails to rank 0. */
static void meet(char **argv)
{
    MPI_Request req;
    int word = 9;

    if (1 == rank) {
        wait_for(argv[1]);
        MPI(MPI_Isend(&word, 1, MPI_INT, 0, MESSAGES, MPI_COMM_WORLD, &req));
        progress(200);
        printf("met\n");
        fflush(stdout);
    }
    wait_for(argv[3]);
    if (1 == rank) {
        MPI(MPI_Wait(&req, MPI_STATUS_IGNORE));
    } else {
        MPI(MPI_Recv(&word, 1, MPI_INT, 1, MESSAGES, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(9 == word);
    }
}

int main(int argc, char **argv)
{
    static const size_t sizes[MESSAGES] = {4000000, 0, 100, 200000, 20000, 4000001};
    uint8_t *buf = malloc(4000001);

    MPI(MPI_Init(&argc, &argv));
    MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    CHECK(2 <= argc && argc <= 4 && NULL != buf);
    if (3 == argc) {
        int to = 7 + rank, from = 0;

        MPI(MPI_Sendrecv(&to, 1, MPI_INT, 1 - rank, MESSAGES, &from, 1, MPI_INT, 1 - rank, MESSAGES, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(8 - rank == from);
    }
    printf(0 == rank ? "ready\n" : "receiver %d\n", (int) getpid());
    fflush(stdout);
    if (4 == argc) {
        meet(argv);
    } else {
        wait_for(argv[1]);
    }
    for (unsigned i = 0; i < MESSAGES; ++i) {
        if (0 == rank) {
            fill(buf, sizes[i], i);
            MPI(MPI_Send(buf, (int) sizes[i], MPI_BYTE, 1, (int) i, MPI_COMM_WORLD));
        } else {
            memset(buf, 0, sizes[i]);
            MPI(MPI_Recv(buf, (int) sizes[i], MPI_BYTE, 0, (int) i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(is_filled(buf, sizes[i], i));
        }
    }
    if (1 == rank) {
        printf("all right\n");
    }
    MPI(MPI_Finalize());
    free(buf);
    return 0;
}
