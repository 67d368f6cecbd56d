/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Processes between calls and at the end: fork() and system() in the middle of transfers; MPI_Finalize while messages
 * of every protocol are still in flight to receivers that post late. Any even number of ranks.
 */
#include "mpi_check.h"

#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 2000000 };

/* Forks while transfers in both directions are open; the child writes to its copy of the buffers. */
static void test_fork(int peer)
{
    uint8_t *out = malloc(MOST), *in = receive_room(MOST);

    for (int round = 0; round < 12; ++round) {
        const int n = 0 == round % 3 ? 200 : 1 == round % 3 ? 30000 : MOST;
        MPI_Request r[2];
        int status = 0;

        fill(out, (size_t) n, (uint32_t) round);
        memset(in, 0, (size_t) n);
        MPI(MPI_Irecv(in, n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[0]));
        MPI(MPI_Isend(out, n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[1]));
        if (0 == round % 4) {
            status = system("true");
        } else {
            const pid_t child = fork();

            if (0 == child) {
                memset(out, 0xff, (size_t) n);
                memset(in, 0xff, (size_t) n);
                _exit(0);
            }
            CHECK(child > 0 && child == waitpid(child, &status, 0));
        }
        CHECK(0 == status);
        MPI(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        CHECK(is_filled(in, (size_t) n, (uint32_t) round));
    }
    free(out);
    give_back(in, MOST);
}

/* The last messages: when the receiver posts, the sender has freed its requests and is in MPI_Finalize. */
static void last_messages(int peer, bool first)
{
    static const int sizes[] = {0, 4, 3000, 40000, 700000, MOST};
    enum { N = sizeof(sizes) / sizeof(sizes[0]) };
    static uint8_t out[MOST], in[MOST];
    MPI_Request r;

    fill(out, MOST, 9);
    if (first) {
        for (int i = 0; i < N; ++i) {
            MPI(MPI_Isend(out, sizes[i], MPI_BYTE, peer, i, MPI_COMM_WORLD, &r));
            MPI(MPI_Request_free(&r));
        }
        MPI(MPI_Bsend(out, 50000, MPI_BYTE, peer, N, MPI_COMM_WORLD)); /* nobody detaches the buffer: MPI_Finalize must */
        return;
    }
    usleep(300000);
    for (int i = N - 1; i >= 0; --i) {
        memset(in, 0, (size_t) sizes[i]);
        MPI(MPI_Recv(in, sizes[i], MPI_BYTE, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(is_filled(in, (size_t) sizes[i], 9));
    }
    MPI(MPI_Recv(in, MOST, MPI_BYTE, peer, N, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, 50000, 9));
    MPI(MPI_Irecv(in, MOST, MPI_BYTE, peer, 77, MPI_COMM_WORLD, &r)); /* the message is never sent; the request is freed, and nobody waits for it */
    MPI(MPI_Cancel(&r));
    MPI(MPI_Request_free(&r));
}

int main(int argc, char **argv)
{
    const int room = 100000 + MPI_BSEND_OVERHEAD;

    start(&argc, &argv);
    CHECK(0 == ranks % 2);
    MPI(MPI_Buffer_attach(malloc((size_t) room), room));
    test_fork(rank ^ 1);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    last_messages(rank ^ 1, 0 == rank % 2);
    recheck();
    if (1 == rank) { /* the senders are in MPI_Finalize: no collective call is possible any more */
        printf("PASSED %lu checks on %d ranks\n", checks, ranks);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
