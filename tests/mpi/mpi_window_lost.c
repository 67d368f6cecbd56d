/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A process can no longer be reached, and a window needs it. mpi_window_lost FILE [returns]: each of two ranks adds to the other's window.
 * All rails are cut before FILE exists. With "returns" the communicator's error handler returns: the handler must be called,
 * and the window must hold what came before the loss, once. Without "returns" the default error handler must end the job, although
 * MPI_Win_unlock waits. DESIGN.txt section 11.
 */
#include "mpi_check.h"

#include <unistd.h>

enum { ROUNDS = 20, TAG = 5, LOOKS = 2000 };

static volatile int64_t here; /* the window */
static unsigned handled;

static void on_error(MPI_Comm *where, int *code, ...)
{
    ++handled;
}

static void add(MPI_Win window, int to)
{
    const int64_t one = 1;

    MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window));
    MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, MPI_SUM, window));
    MPI(MPI_Win_unlock(to, window));
}

static void look(void)
{
    int found;

    (void) MPI_Iprobe(MPI_ANY_SOURCE, TAG + 1, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    usleep(1000);
}

int main(int argc, char **argv)
{
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Win window;
    bool returns;
    char byte;
    int rc;

    start(&argc, &argv);
    CHECK(2 <= argc && 2 == ranks);
    returns = 2 < argc && 0 == strcmp("returns", argv[2]);
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    if (returns) {
        MPI(MPI_Comm_create_errhandler(on_error, &handler));
        MPI(MPI_Comm_set_errhandler(comm, handler));
    }
    MPI(MPI_Win_create((void *) &here, sizeof(here), 1, MPI_INFO_NULL, comm, &window));
    for (int i = 0; i < ROUNDS; ++i) {
        add(window, 1 - rank);
    }
    MPI(MPI_Barrier(comm));
    CHECK(ROUNDS == here);
    printf("ready\n");
    fflush(stdout);
    while (0 != access(argv[1], F_OK)) {
        look();
    }
    if (!returns) {
        add(window, 1 - rank);
        printf("MPI_Win_unlock returned\n");
        return 1;
    }
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    rc = MPI_Sendrecv(&byte, 1, MPI_BYTE, 1 - rank, TAG, &byte, 1, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(MPI_SUCCESS != rc);
    CHECK(0 < handled);
    for (int i = 0; i < LOOKS; ++i) { /* what is left of osc/pt2pt goes on in the background */
        look();
    }
    CHECK(ROUNDS == here);
    printf("PASSED %lu checks on rank %d\n", checks, rank);
    fflush(stdout);
    MPI_Finalize(); /* without MPI_Win_free, which would call the lost process */
    return 0;
}
