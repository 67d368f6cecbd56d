/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Waiting for a silent process: mpi_alive HOW FILE. Rank 0 waits for a message, for the match of a delivered synchronous
 * message and for the answer to a delivered rendezvous; rank 1 stays outside MPI until FILE exists. With HOW = kill rank 1
 * then dies, and all calls of rank 0 end with MPI_ERR_OTHER. With HOW = stop, where the script stopped rank 1 meanwhile,
 * rank 1 receives and answers, and everything arrives. DESIGN.txt sections 11, 15.5 and 18.
 */
#include "mpi_check.h"

#include <signal.h>
#include <unistd.h>

enum { LONG = 3000000, SHORT = 100, ANSWER = 1, MATCH = 2, RENDEZVOUS = 3 };

static uint8_t *out, *in;

static int class_of(int code)
{
    int class;

    MPI_Error_class(code, &class);
    return class;
}

static void wait_outside(const char *file)
{
    printf("ready %d\n", (int) getpid());
    fflush(stdout);
    while (0 != access(file, F_OK)) {
        usleep(1000);
    }
}

static void ask(int expected)
{
    MPI_Request request[3];

    MPI(MPI_Irecv(in, SHORT, MPI_BYTE, 1, ANSWER, MPI_COMM_WORLD, &request[0]));
    MPI(MPI_Issend(out, SHORT, MPI_BYTE, 1, MATCH, MPI_COMM_WORLD, &request[1]));
    MPI(MPI_Isend(out, LONG, MPI_BYTE, 1, RENDEZVOUS, MPI_COMM_WORLD, &request[2]));
    for (int i = 0; i < 3; ++i) {
        int rc = MPI_Wait(&request[i], MPI_STATUS_IGNORE);
        CHECK(expected == (MPI_SUCCESS == rc ? MPI_SUCCESS : class_of(rc)));
    }
    CHECK(MPI_SUCCESS != expected || is_filled(in, SHORT, 5));
}

static void answer(const char *file, bool dies)
{
    MPI(MPI_Probe(0, MATCH, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI(MPI_Probe(0, RENDEZVOUS, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    wait_outside(file);
    if (dies) {
        kill(getpid(), SIGKILL);
    }
    MPI(MPI_Recv(in, LONG, MPI_BYTE, 0, RENDEZVOUS, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, LONG, 5));
    MPI(MPI_Recv(in, SHORT, MPI_BYTE, 0, MATCH, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, SHORT, 5));
    MPI(MPI_Send(out, SHORT, MPI_BYTE, 0, ANSWER, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    bool dies;

    start(&argc, &argv);
    CHECK(3 == argc && 2 == ranks);
    dies = 0 == strcmp(argv[1], "kill");
    out = malloc(LONG);
    in = malloc(LONG);
    CHECK(NULL != out && NULL != in);
    fill(out, LONG, 5);
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    /* every rail carries a part of this message */
    MPI(MPI_Sendrecv(out, LONG, MPI_BYTE, 1 - rank, 0, in, LONG, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, LONG, 5));
    if (0 == rank) {
        ask(dies ? MPI_ERR_OTHER : MPI_SUCCESS);
    } else {
        answer(argv[2], dies);
    }
    printf("PASSED %lu checks on rank %d\n", checks, rank);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
