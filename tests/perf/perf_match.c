/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What a match costs while D other receives, or messages, wait. Rank 0 sends to itself, so that nothing polls; rank 1
 * sleeps. Prints lines "KIND DEPTH VALUE", nanoseconds per message sent and received. KIND: posted- or unexpected-, then
 * the kind of the D others: same (source), other (source), wildcard (posted: receives from any source; unexpected: the
 * messages come from another source, and our message is received from any source).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 10000, TAG = 1, STOP = 2, FIRST = 1000, BATCHES = 5 };

static MPI_Request others[MOST];
static char in[8], out[8], junk[8];

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

static double message(int late, int source, int rounds)
{
    double s[BATCHES];
    MPI_Request r;

    for (int b = 0; b < BATCHES; ++b) {
        const double t = MPI_Wtime();

        for (int i = 0; i < rounds; ++i) {
            if (late) {
                MPI_Send(out, sizeof(out), MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
                MPI_Recv(in, sizeof(in), MPI_CHAR, source, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Irecv(in, sizeof(in), MPI_CHAR, source, TAG, MPI_COMM_WORLD, &r);
                MPI_Send(out, sizeof(out), MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
                MPI_Wait(&r, MPI_STATUS_IGNORE);
            }
        }
        s[b] = (MPI_Wtime() - t) / rounds * 1e9;
    }
    qsort(s, BATCHES, sizeof(s[0]), by_value);
    return s[BATCHES / 2];
}

static int rounds_for(int depth)
{
    return depth <= 100 ? 2000 : depth <= 1000 ? 400 : 60;
}

static void posted(const char *kind, int source, int depth)
{
    for (int i = 0; i < depth; ++i) {
        MPI_Irecv(junk, sizeof(junk), MPI_CHAR, source, FIRST + i, MPI_COMM_WORLD, &others[i]);
    }
    printf("posted-%s %d %.1f\n", kind, depth, message(0, 0, rounds_for(depth)));
    for (int i = 0; i < depth; ++i) {
        MPI_Cancel(&others[i]);
        MPI_Wait(&others[i], MPI_STATUS_IGNORE);
    }
}

static void unexpected(const char *kind, int source, int mine, int depth)
{
    for (int i = 0; i < depth; ++i) {
        if (0 == source) {
            MPI_Send(out, sizeof(out), MPI_CHAR, 0, FIRST + i, MPI_COMM_WORLD);
        }
    }
    if (0 != source) {
        MPI_Send(&depth, 1, MPI_INT, source, TAG, MPI_COMM_WORLD);
        MPI_Probe(source, STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* all messages have arrived */
        MPI_Recv(junk, 0, MPI_CHAR, source, STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    printf("unexpected-%s %d %.1f\n", kind, depth, message(1, mine, rounds_for(depth)));
    for (int i = 0; i < depth; ++i) {
        MPI_Recv(junk, sizeof(junk), MPI_CHAR, source, FIRST + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Sends the messages that rank 0 asks for, and sleeps otherwise. */
static void helper(void)
{
    int depth = 0, here;

    while (depth >= 0) {
        for (here = 0; !here;) {
            MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE);
            if (!here) {
                usleep(2000);
            }
        }
        MPI_Recv(&depth, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < depth; ++i) {
            MPI_Send(out, sizeof(out), MPI_CHAR, 0, FIRST + i, MPI_COMM_WORLD);
        }
        if (depth >= 0) {
            MPI_Send(out, 0, MPI_CHAR, 0, STOP, MPI_COMM_WORLD);
        }
    }
}

int main(int argc, char **argv)
{
    static const int depths[] = {0, 1, 10, 100, 1000, MOST};
    int rank, stop = -1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (1 == rank) {
        helper();
    } else {
        (void) message(0, 0, 2000);
        for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); ++i) {
            posted("same", 0, depths[i]);
            posted("other", 1, depths[i]);
            posted("wildcard", MPI_ANY_SOURCE, depths[i]);
            unexpected("same", 0, 0, depths[i]);
            unexpected("other", 1, 0, depths[i]);
            unexpected("wildcard", 1, MPI_ANY_SOURCE, depths[i]);
        }
        MPI_Send(&stop, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
