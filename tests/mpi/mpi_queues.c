/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What MPI_T says of a communicator's queues: how many receives are posted for each rank, and how many messages of each
 * rank no receive has taken. The program reads the variables of the PML in use, therefore it also runs under ob1. DESIGN.txt section 14.9.
 */
#include "mpi_check.h"

enum { TAG = 5, OTHER_TAG = 6 };

static MPI_T_pvar_session session;

/* MPI_T_pvar_handle_alloc() takes the address of a communicator's handle. Open MPI 6.0.0rc2 takes the bytes at this address for the
 * communicator itself and looks whether it is valid. With zeros after the handle it is. */
static struct {
    MPI_Comm comm;
    char zeros[2048];
} bound;

/* The variable whose name ends with `end`, bound to `comm`: one value per rank. */
static MPI_T_pvar_handle bind_to(const char *end, MPI_Comm comm)
{
    int n;

    MPI(MPI_T_pvar_get_num(&n));
    for (int i = 0; i < n; ++i) {
        char name[128], text[512];
        int name_size = sizeof(name), text_size = sizeof(text), verbosity, class, bound_to, readonly, continuous, atomic, count;
        const char *at;
        MPI_Datatype type;
        MPI_T_enum names;
        MPI_T_pvar_handle handle;

        MPI(MPI_T_pvar_get_info(i, name, &name_size, &verbosity, &class, &type, &names, text, &text_size, &bound_to, &readonly, &continuous,
                                &atomic));
        at = strstr(name, end);
        if (0 != strncmp(name, "pml_", 4) || NULL == at || '\0' != at[strlen(end)]) {
            continue;
        }
        CHECK(MPI_T_PVAR_CLASS_SIZE == class && MPI_UNSIGNED == type && MPI_T_BIND_MPI_COMM == bound_to);
        CHECK(readonly && continuous && '\0' != text[0]);
        bound.comm = comm;
        MPI(MPI_T_pvar_handle_alloc(session, i, &bound.comm, &handle, &count));
        CHECK(ranks == count);
        return handle;
    }
    CHECK(!"the variable exists");
    return NULL;
}

/* The queue has `want` entries for each other rank, and `mine` entries for this rank itself. */
static void expect(MPI_T_pvar_handle queue, unsigned want, unsigned mine)
{
    unsigned length[64];

    CHECK(ranks <= 64);
    MPI(MPI_T_pvar_read(session, queue, length));
    for (int r = 0; r < ranks; ++r) {
        CHECK((r == rank ? mine : want) == length[r]);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm comm, other;
    MPI_T_pvar_handle posted, unexpected, elsewhere;
    MPI_Request r[4 * 64];
    int provided, n = 0, in[4 * 64], out = 7;

    start(&argc, &argv);
    MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MPI(MPI_T_pvar_session_create(&session));
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    posted = bind_to("_posted_recvq_length", comm);
    unexpected = bind_to("_unexpected_msgq_length", comm);
    elsewhere = bind_to("_unexpected_msgq_length", other);
    expect(posted, 0, 0);

    for (int from = 0; from < ranks; ++from) { /* two receives for each rank, a third for this rank itself, then one from any rank */
        for (int i = 0; i < (from == rank ? 3 : 2); ++i) {
            MPI(MPI_Irecv(&in[n], 1, MPI_INT, from, TAG, comm, &r[n]));
            ++n;
        }
    }
    MPI(MPI_Irecv(&in[n], 1, MPI_INT, MPI_ANY_SOURCE, OTHER_TAG, comm, &r[n]));
    expect(posted, 2, 3);
    expect(unexpected, 0, 0);
    MPI(MPI_Cancel(&r[n]));
    MPI(MPI_Wait(&r[n], MPI_STATUS_IGNORE));

    MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int to = 0; to < ranks; ++to) { /* one more message than receives, so that one of each rank stays; the message with OTHER_TAG comes last */
        for (int i = 0; i < (to == rank ? 4 : 3); ++i) {
            MPI(MPI_Send(&out, 1, MPI_INT, to, TAG, comm));
        }
        MPI(MPI_Send(&out, 1, MPI_INT, to, OTHER_TAG, comm));
    }
    MPI(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
    expect(posted, 0, 0);
    for (int from = 0; from < ranks; ++from) { /* when the last message is here, all messages before it are here */
        MPI(MPI_Probe(from, OTHER_TAG, comm, MPI_STATUS_IGNORE));
    }
    expect(unexpected, 2, 2);
    expect(elsewhere, 0, 0);
    for (int from = 0; from < ranks; ++from) {
        MPI(MPI_Recv(in, 1, MPI_INT, from, TAG, comm, MPI_STATUS_IGNORE));
        CHECK(7 == in[0]);
        MPI(MPI_Recv(in, 1, MPI_INT, from, OTHER_TAG, comm, MPI_STATUS_IGNORE));
    }
    expect(unexpected, 0, 0);

    MPI(MPI_T_pvar_handle_free(session, &posted));
    MPI(MPI_T_pvar_handle_free(session, &unexpected));
    MPI(MPI_T_pvar_handle_free(session, &elsewhere));
    MPI(MPI_T_pvar_session_free(&session));
    MPI(MPI_T_finalize());
    MPI(MPI_Comm_free(&comm));
    MPI(MPI_Comm_free(&other));
    return finish();
}
