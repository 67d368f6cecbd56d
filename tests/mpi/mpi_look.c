/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Looks into Open MPI's own structures, as a debugger and user-level fault tolerance do: the fields of every kind of
 * request before, during and after its life, and what pml_dump prints about requests that are stuck. Two ranks; the
 * script finds the dump of rank 0 between two marks. DESIGN.txt section 14.9.
 */
#include "ompi_config.h"

#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"

#include "mpi_check.h"

#include <unistd.h>

enum { MOST = 3000000 };
static uint8_t *out, *in;

/* ---- fields of requests ------------------------------------------------------------------------------ */

static void check_fields(MPI_Request r, mca_pml_base_request_type_t type, MPI_Comm comm, int peer, int tag)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) r;

    if (&ompi_request_empty == r) {
        return; /* sent within the call: there is no request */
    }
    CHECK(OMPI_REQUEST_PML == r->req_type && type == base->req_type);
    CHECK(comm == r->req_mpi_object.comm && comm == base->req_comm);
    CHECK(peer == base->req_peer && tag == base->req_tag);
    CHECK(MPI_SUCCESS == r->req_status.MPI_ERROR && 0 == r->req_status._cancelled);
    CHECK(!base->req_free_called);
}

static void check_life(MPI_Request r, MPI_Comm comm, mca_pml_base_request_type_t type, int peer, int tag)
{
    const bool persistent = r->req_persistent;

    if (&ompi_request_empty == r) {
        MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
        return;
    }
    for (int round = 0; round < (persistent ? 3 : 1); ++round) {
        check_fields(r, type, comm, peer, tag);
        if (persistent) {
            CHECK(OMPI_REQUEST_INACTIVE == r->req_state);
            MPI(MPI_Start(&r));
            check_fields(r, type, comm, peer, tag);
        }
        CHECK(OMPI_REQUEST_ACTIVE == r->req_state || REQUEST_COMPLETED == r->req_complete);
        MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    }
    if (persistent) {
        check_fields(r, type, comm, peer, tag);
        MPI(MPI_Request_free(&r));
    }
}

/* Rank 1 answers each call of rank 0 by a blocking call. */
static void test_sends(MPI_Comm comm)
{
    static const int sizes[] = {8, 20000, MOST};
    typedef int (*starter_t)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    static const starter_t starters[] = {MPI_Isend,     MPI_Issend,     MPI_Ibsend,     MPI_Irsend,
                                         MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};

    for (int s = 0; s < 3; ++s) {
        for (int k = 0; k < 8; ++k) {
            const int rounds = k < 4 ? 1 : 3;
            MPI_Request r;

            if (0 == rank) {
                for (int i = 0; k % 4 == 3 && i < rounds; ++i) { /* ready mode: the receives are posted */
                    MPI(MPI_Recv(in, 0, MPI_BYTE, 1, 99, comm, MPI_STATUS_IGNORE));
                }
                MPI(starters[k](out, sizes[s], MPI_BYTE, 1, 100 + k, comm, &r));
                check_life(r, comm, MCA_PML_REQUEST_SEND, 1, 100 + k);
            } else {
                MPI_Request posted[3];

                for (int i = 0; i < rounds; ++i) {
                    MPI(MPI_Irecv(in, sizes[s], MPI_BYTE, 0, 100 + k, comm, &posted[i]));
                }
                for (int i = 0; k % 4 == 3 && i < rounds; ++i) {
                    MPI(MPI_Send(in, 0, MPI_BYTE, 0, 99, comm));
                }
                MPI(MPI_Waitall(rounds, posted, MPI_STATUSES_IGNORE));
            }
        }
    }
}

static void test_receives(MPI_Comm comm)
{
    MPI_Message m;
    MPI_Request r;

    if (1 == rank) {
        for (int i = 0; i < 9; ++i) {
            MPI(MPI_Send(out, i % 2 ? 300 : 100000, MPI_BYTE, 0, 7, comm));
        }
        return;
    }
    MPI(MPI_Irecv(in, MOST, MPI_BYTE, 1, 7, comm, &r));
    check_life(r, comm, MCA_PML_REQUEST_RECV, 1, 7);
    MPI(MPI_Irecv(in, MOST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &r));
    check_life(r, comm, MCA_PML_REQUEST_RECV, MPI_ANY_SOURCE, MPI_ANY_TAG);
    MPI(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &m, MPI_STATUS_IGNORE));
    MPI(MPI_Imrecv(in, MOST, MPI_BYTE, &m, &r));
    check_life(r, comm, MCA_PML_REQUEST_RECV, 1, 7);
    MPI(MPI_Recv_init(in, MOST, MPI_BYTE, 1, 7, comm, &r));
    check_life(r, comm, MCA_PML_REQUEST_RECV, 1, 7);
    MPI(MPI_Recv_init(in, MOST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &r));
    check_life(r, comm, MCA_PML_REQUEST_RECV, MPI_ANY_SOURCE, MPI_ANY_TAG);
}

/* A buffered send is complete, with its status, before its message is received. */
static void test_buffered_status(MPI_Comm comm)
{
    static const int sizes[] = {MOST, 20000, 100000};

    for (int i = 0; i < 3; ++i) {
        MPI_Request r;
        MPI_Status st;
        int count;

        if (0 == rank) {
            MPI(MPI_Ibsend(out, sizes[i], MPI_BYTE, 1, 40 + i, comm, &r));
            CHECK(&ompi_request_empty == r || REQUEST_COMPLETED == r->req_complete);
            CHECK(i > 0 || &ompi_request_empty != r); /* too long to be sent within the call */
            if (&ompi_request_empty != r) {
                MPI(MPI_Wait(&r, &st));
                MPI(MPI_Get_count(&st, MPI_BYTE, &count));
                CHECK(0 == st.MPI_SOURCE && 40 + i == st.MPI_TAG && sizes[i] == count);
            }
            MPI(MPI_Send(out, 0, MPI_BYTE, 1, 98, comm));
        } else {
            MPI(MPI_Recv(in, 0, MPI_BYTE, 0, 98, comm, MPI_STATUS_IGNORE));
            MPI(MPI_Recv(in, sizes[i], MPI_BYTE, 0, 40 + i, comm, MPI_STATUS_IGNORE));
        }
    }
}

/* The next receive reuses the request that was cancelled: no trace of the cancel is left in it. */
static void test_cancelled(MPI_Comm comm)
{
    MPI_Request r;
    MPI_Status st;
    const void *cancelled;
    int is_cancelled;

    MPI(MPI_Irecv(in, 8, MPI_BYTE, 1 - rank, 50, comm, &r));
    cancelled = r;
    MPI(MPI_Cancel(&r));
    MPI(MPI_Wait(&r, &st));
    MPI(MPI_Test_cancelled(&st, &is_cancelled));
    CHECK(is_cancelled);
    MPI(MPI_Recv_init(in, 8, MPI_BYTE, 1 - rank, 51, comm, &r));
    CHECK(cancelled == (const void *) r);
    check_fields(r, MCA_PML_REQUEST_RECV, comm, 1 - rank, 51);
    MPI(MPI_Request_free(&r));
}

/* ---- stuck requests in the dump ---------------------------------------------------------------------- */

static void progress(void)
{
    for (int i = 0; i < 300; ++i) {
        int flag;

        MPI(MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
        usleep(1000);
    }
}

static void test_dump(MPI_Comm comm)
{
    MPI_Request r[4];

    if (0 == rank) {
        MPI(MPI_Irecv(in, 4321, MPI_BYTE, 1, 11, comm, &r[0]));
        MPI(MPI_Irecv(in, 8765, MPI_BYTE, MPI_ANY_SOURCE, 14, comm, &r[1]));
        MPI(MPI_Issend(out, 777, MPI_BYTE, 1, 12, comm, &r[2]));
        MPI(MPI_Isend(out, MOST, MPI_BYTE, 1, 13, comm, &r[3]));
    } else {
        MPI(MPI_Send(out, 500, MPI_BYTE, 0, 20, comm));
        MPI(MPI_Isend(out, 200000, MPI_BYTE, 0, 21, comm, &r[0]));
    }
    progress();
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == rank) {
        fprintf(stderr, "dump begins\n");
        CHECK(OMPI_SUCCESS == mca_pml.pml_dump(comm, 1));
        fprintf(stderr, "dump ends\n");
        MPI(MPI_Send(out, 1, MPI_BYTE, 1, 30, comm));
        MPI(MPI_Recv(in, MOST, MPI_BYTE, 1, 20, comm, MPI_STATUS_IGNORE));
        MPI(MPI_Recv(in, MOST, MPI_BYTE, 1, 21, comm, MPI_STATUS_IGNORE));
        MPI(MPI_Waitall(4, r, MPI_STATUSES_IGNORE));
    } else {
        MPI(MPI_Recv(in, 1, MPI_BYTE, 0, 30, comm, MPI_STATUS_IGNORE));
        MPI(MPI_Recv(in, MOST, MPI_BYTE, 0, 13, comm, MPI_STATUS_IGNORE));
        MPI(MPI_Recv(in, MOST, MPI_BYTE, 0, 12, comm, MPI_STATUS_IGNORE));
        MPI(MPI_Send(out, 10, MPI_BYTE, 0, 14, comm));
        MPI(MPI_Send(out, 10, MPI_BYTE, 0, 11, comm));
        MPI(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
    }
}

int main(int argc, char **argv)
{
    MPI_Comm comm;

    start(&argc, &argv);
    CHECK(2 == ranks);
    out = calloc(1, MOST);
    in = malloc(MOST);
    MPI(MPI_Buffer_attach(malloc(4 * MOST), 4 * MOST));
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    test_sends(comm);
    test_receives(comm);
    test_buffered_status(comm);
    test_cancelled(comm);
    test_dump(comm);
    MPI(MPI_Comm_free(&comm));
    return finish();
}
