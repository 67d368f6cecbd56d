/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Each window spawns a process, exchanges messages with it and disconnects. The process is this program with --child.
 */
#include "rf_post.h"

#include <string.h>

enum { LEAST = 40, MOST = 20000, CHILD_TAG = 9 };

static char child_word[] = "--child";
static int spawned;

static void talk(rf_post_t *out, rf_post_t *in, MPI_Comm comm)
{
    for (int i = 0; i < 4; ++i) {
        rf_post_exchange(out, 0, in, 0, CHILD_TAG, comm);
    }
}

static void spawn(void)
{
    static rf_post_t out, in;
    char *words[] = {child_word, NULL};
    MPI_Comm child;
    int code = MPI_SUCCESS, number = 0;

    RF_MPI(MPI_Comm_spawn, (rf_program, words, 1, MPI_INFO_NULL, 0, rf_world, &child, &code));
    RF_MPI(MPI_Comm_set_errhandler, (child, MPI_ERRORS_RETURN));
    if (0 == rf_rank) {
        number = spawned++;
        RF_MPI(MPI_Send, (&number, 1, MPI_INT, 0, CHILD_TAG, child));
        if (NULL == out.buffer[0]) {
            rf_post_begin(&out, 0, RF_CHILD, 0, LEAST, MOST);
            rf_post_begin(&in, RF_CHILD, 0, 0, LEAST, MOST);
        }
        /* Numbers of messages continue over all spawned processes: the child gets the first number. */
        out.flow.next = in.flow.next = (uint64_t) number * 4 * RF_WINDOW;
        talk(&out, &in, child);
    }
    RF_MPI(MPI_Comm_disconnect, (&child));
}

void rf_child(MPI_Comm parent)
{
    rf_post_t out, in;
    int number;

    RF_MPI(MPI_Recv, (&number, 1, MPI_INT, 0, CHILD_TAG, parent, MPI_STATUS_IGNORE));
    rf_post_begin(&out, RF_CHILD, 0, 0, LEAST, MOST);
    rf_post_begin(&in, 0, RF_CHILD, 0, LEAST, MOST);
    out.flow.next = in.flow.next = (uint64_t) number * 4 * RF_WINDOW;
    talk(&out, &in, parent);
    RF_MPI(MPI_Comm_disconnect, (&parent));
}

const rf_operation_t rf_spawn[] = {
    {"spawn", 2, NULL, spawn, NULL, "MPI_Comm_spawn, flood with the new process, MPI_Comm_disconnect"},
    {NULL, 0, NULL, NULL, NULL, NULL},
};
