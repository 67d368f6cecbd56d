/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What mpi_sizes and mpi_match leave out: ready mode, MPI_PROC_NULL in every call, truncation as every completing call
 * reports it and into a buffer before a guard page, buffered sends without a buffer, persistent requests that are cancelled, probes
 * that wait for their message, Waitsome and Testany. Any number of ranks.
 */
#include "mpi_check.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 600000, N_SIZES = 7 };
static const int sizes[N_SIZES] = {1, 100, 1500, 5000, 66000, 300001, MOST};
static uint8_t *out;

/* ---- a buffer whose last byte lies right before a page that nobody may touch ------------------------ */

static uint8_t *guarded_begin, *guarded_end;

static void guarded_make(void)
{
    const size_t page = (size_t) sysconf(_SC_PAGESIZE), room = (MOST + page - 1) / page * page;

    guarded_begin = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(MAP_FAILED != guarded_begin);
    guarded_end = guarded_begin + room;
    CHECK(0 == mprotect(guarded_end, page, PROT_NONE));
}

static uint8_t *guarded(size_t n)
{
    memset(guarded_begin, 0xc3, (size_t) (guarded_end - guarded_begin));
    return guarded_end - n;
}

static int class_of(int rc)
{
    int class;

    MPI(MPI_Error_class(rc, &class));
    return class;
}

/* ---- truncation ------------------------------------------------------------------------------------- */

enum { BY_RECV, BY_WAIT, BY_TEST, BY_WAITALL, BY_WAITSOME, BY_SENDRECV, BY_PERSISTENT, BY_MRECV, BY_IMRECV, BY_ANY, WAYS };

/* Receives a message of tag 5 that does not fit into n bytes at `in`; returns the error that the call reports. */
static int receive_by(int way, uint8_t *in, int n, int peer)
{
    MPI_Status st[2];
    MPI_Message m;
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int rc = MPI_SUCCESS, flag = 0, index;

    switch (way) {
    case BY_RECV:
        return MPI_Recv(in, n, MPI_BYTE, peer, 5, MPI_COMM_WORLD, st);
    case BY_ANY:
        return MPI_Recv(in, n, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, st);
    case BY_SENDRECV:
        return MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, in, n, MPI_BYTE, peer, 5, MPI_COMM_WORLD, st);
    case BY_MRECV:
        MPI(MPI_Mprobe(peer, 5, MPI_COMM_WORLD, &m, st));
        return MPI_Mrecv(in, n, MPI_BYTE, &m, st);
    case BY_IMRECV:
        MPI(MPI_Mprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &m, st));
        MPI(MPI_Imrecv(in, n, MPI_BYTE, &m, r));
        return MPI_Wait(r, st);
    case BY_PERSISTENT:
        MPI(MPI_Recv_init(in, n, MPI_BYTE, peer, 5, MPI_COMM_WORLD, r));
        MPI(MPI_Start(r));
        rc = MPI_Wait(r, st);
        if (MPI_REQUEST_NULL != *r) { /* Open MPI frees a request that ended with an error */
            MPI(MPI_Request_free(r));
        }
        return rc;
    default:
        break;
    }
    MPI(MPI_Irecv(in, n, MPI_BYTE, peer, 5, MPI_COMM_WORLD, r));
    switch (way) {
    case BY_WAIT:
        return MPI_Wait(r, st);
    case BY_TEST:
        while (!flag && MPI_SUCCESS == rc) {
            rc = MPI_Test(r, &flag, st);
        }
        return rc;
    case BY_WAITALL:
        rc = MPI_Waitall(2, r, st);
        CHECK(MPI_ERR_IN_STATUS == class_of(rc));
        return st[0].MPI_ERROR;
    default:
        rc = MPI_Waitsome(2, r, &flag, &index, st);
        CHECK(MPI_ERR_IN_STATUS == class_of(rc) && 1 == flag && 0 == index);
        return st[0].MPI_ERROR;
    }
}

/* Both neighbours send to each other; the receives are posted before (even rounds) or after the message arrives. */
static void test_truncated(int peer)
{
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int way = 0; way < WAYS; ++way) {
        for (int s = 0; s < N_SIZES; ++s) {
            const int n = sizes[s], room = 0 == s ? 0 : n / 3;
            uint8_t *in = guarded((size_t) room);
            MPI_Request r;

            fill(out, (size_t) n, (uint32_t) (way * 10 + s));
            MPI(MPI_Isend(out, n, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &r));
            CHECK(MPI_ERR_TRUNCATE == class_of(receive_by(way, in, room, peer)));
            CHECK(is_filled(in, (size_t) room, (uint32_t) (way * 10 + s)));
            CHECK(is_only(guarded_begin, (size_t) (in - guarded_begin), 0xc3));
            MPI(MPI_Wait(&r, MPI_STATUS_IGNORE)); /* the sender does not learn of the truncation */
            MPI(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

/* An error goes to the handler of the call's communicator, once. */
static int handled, handled_class;
static MPI_Comm handled_by;
static void note_error(MPI_Comm *comm, int *code, ...)
{
    ++handled;
    handled_by = *comm;
    MPI_Error_class(*code, &handled_class);
}

static void test_handler(int peer)
{
    MPI_Errhandler handler;
    MPI_Request r;
    MPI_Comm comm;

    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI(MPI_Comm_create_errhandler(note_error, &handler));
    MPI(MPI_Comm_set_errhandler(comm, handler));
    MPI(MPI_Isend(out, 2000, MPI_BYTE, peer, 1, comm, &r));
    CHECK(MPI_ERR_TRUNCATE == class_of(MPI_Recv(guarded(10), 10, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE)));
    CHECK(1 == handled && MPI_ERR_TRUNCATE == handled_class);
    MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(MPI_ERR_RANK == class_of(MPI_Send(out, 1, MPI_BYTE, ranks, 1, comm)));
    CHECK(MPI_ERR_TAG == class_of(MPI_Send(out, 1, MPI_BYTE, peer, -5, comm)));
    CHECK(MPI_ERR_COUNT == class_of(MPI_Recv(guarded(10), -1, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE)));
    CHECK(4 == handled);
    MPI(MPI_Errhandler_free(&handler));
    MPI(MPI_Comm_free(&comm));
}

/* From 5.0 on MPI_Start calls the handler of MPI_COMM_WORLD, whatever the communicator of the request. */
#if 5 <= OMPI_MAJOR_VERSION
#define HANDLER_OF_START(comm) MPI_COMM_WORLD
#else
#define HANDLER_OF_START(comm) (comm)
#endif

/* The call found no room in the buffer, and was the `count`th for which the handler was called. */
static void is_refused(int error, int count)
{
    CHECK(MPI_ERR_BUFFER == class_of(error) && count == handled && MPI_ERR_BUFFER == handled_class);
}

/* Buffered sends without an attached buffer, or with a full buffer: the handler gets MPI_ERR_BUFFER once for each. Nothing else
 * changes: later messages arrive, and a request that was not started can be started or freed. */
static void test_no_buffer(int peer)
{
    enum { N = 100000 };
    uint8_t *in = receive_room(N), *room = malloc(N + MPI_BSEND_OVERHEAD);
    MPI_Errhandler handler;
    MPI_Request r, receive;
    MPI_Comm comm;
    void *was;
    int size;

    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI(MPI_Comm_create_errhandler(note_error, &handler));
    MPI(MPI_Comm_set_errhandler(comm, handler));
    MPI(MPI_Comm_set_errhandler(HANDLER_OF_START(comm), handler));
    fill(out, N, 7);
    MPI(MPI_Bsend_init(out, N, MPI_BYTE, peer, 1, comm, &r));
    for (int attached = 0; attached < 2; ++attached) {
        MPI_Request ibsend, both[2];

        if (attached) {
            MPI(MPI_Buffer_attach(room, 100)); /* too small for any of these messages */
        }
        handled = 0;
        is_refused(MPI_Bsend(out, N, MPI_BYTE, peer, 1, comm), 1);
        is_refused(MPI_Ibsend(out, N, MPI_BYTE, peer, 1, comm, &ibsend), 2);
        is_refused(MPI_Start(&r), 3);
        CHECK(HANDLER_OF_START(comm) == handled_by);
        fill(out, N, 10);
        both[0] = r;
        MPI(MPI_Recv_init(in, N, MPI_BYTE, peer, 2, comm, &both[1]));
        (void) MPI_Startall(2, both); /* Open MPI returns success whatever the PML says; the second request must start all the same */
        CHECK(4 == handled && MPI_ERR_BUFFER == handled_class && comm == handled_by);
        MPI(MPI_Send(out, N, MPI_BYTE, peer, 2, comm));
        MPI(MPI_Wait(&both[1], MPI_STATUS_IGNORE));
        CHECK(is_filled(in, N, 10));
        MPI(MPI_Request_free(&both[1]));
        if (attached) {
            MPI(MPI_Buffer_detach(&was, &size));
        }
        MPI(MPI_Irecv(in, N, MPI_BYTE, peer, 1, comm, &receive));
        fill(out, N, 8);
        MPI(MPI_Send(out, N, MPI_BYTE, peer, 1, comm));
        MPI(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        CHECK(is_filled(in, N, 8));
    }
    MPI(MPI_Buffer_attach(room, N + MPI_BSEND_OVERHEAD));
    MPI(MPI_Irecv(in, N, MPI_BYTE, peer, 1, comm, &receive));
    fill(out, N, 9);
    MPI(MPI_Start(&r));
    MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    MPI(MPI_Buffer_detach(&was, &size));
    MPI(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, N, 9) && 4 == handled);
    MPI(MPI_Request_free(&r));
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    MPI(MPI_Errhandler_free(&handler));
    MPI(MPI_Comm_free(&comm));
    free(room);
    give_back(in, N);
}

/* ---- ready mode ------------------------------------------------------------------------------------- */

static void test_ready(int peer)
{
    for (int s = 0; s < N_SIZES; ++s) {
        const size_t n = (size_t) sizes[s];
        uint8_t *in[3] = {receive_room(n), receive_room(n), receive_room(n)};
        MPI_Request r[3], send, persistent;

        for (int i = 0; i < 3; ++i) {
            MPI(MPI_Irecv(in[i], (int) n, MPI_BYTE, peer, i, MPI_COMM_WORLD, &r[i]));
        }
        MPI(MPI_Barrier(MPI_COMM_WORLD));
        fill(out, n, (uint32_t) s);
        MPI(MPI_Rsend(out, (int) n, MPI_BYTE, peer, 0, MPI_COMM_WORLD));
        MPI(MPI_Irsend(out, (int) n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &send));
        MPI(MPI_Rsend_init(out, (int) n, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &persistent));
        MPI(MPI_Start(&persistent));
        MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
        MPI(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
        MPI(MPI_Request_free(&persistent));
        MPI(MPI_Waitall(3, r, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 3; ++i) {
            CHECK(is_filled(in[i], n, (uint32_t) s));
            give_back(in[i], n);
        }
        MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
}

/* ---- MPI_PROC_NULL ---------------------------------------------------------------------------------- */

static bool is_null_status(const MPI_Status *st)
{
    int count = -1;

    MPI(MPI_Get_count(st, MPI_INT, &count));
    return MPI_PROC_NULL == st->MPI_SOURCE && MPI_ANY_TAG == st->MPI_TAG && 0 == count;
}

static void test_proc_null(void)
{
    enum { N = 9 };
    int x = 7, flag = 0;
    MPI_Request r[N];
    MPI_Message m;
    MPI_Status st;

    MPI(MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    MPI(MPI_Ssend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    MPI(MPI_Rsend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    MPI(MPI_Bsend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    MPI(MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st));
    CHECK(is_null_status(&st));
    MPI(MPI_Probe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st));
    CHECK(is_null_status(&st));
    MPI(MPI_Iprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &st));
    CHECK(flag && is_null_status(&st));
    MPI(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &m, &st));
    CHECK(MPI_MESSAGE_NO_PROC == m && is_null_status(&st));
    MPI(MPI_Mrecv(&x, 1, MPI_INT, &m, &st));
    CHECK(MPI_MESSAGE_NULL == m && is_null_status(&st));
    flag = 0;
    MPI(MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &m, &st));
    CHECK(flag && MPI_MESSAGE_NO_PROC == m);
    MPI(MPI_Imrecv(&x, 1, MPI_INT, &m, &r[0]));
    MPI(MPI_Isend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[1]));
    MPI(MPI_Issend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[2]));
    MPI(MPI_Irsend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[3]));
    MPI(MPI_Ibsend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[4]));
    MPI(MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[5]));
    MPI(MPI_Waitall(6, r, MPI_STATUSES_IGNORE));
    MPI(MPI_Send_init(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[6]));
    MPI(MPI_Ssend_init(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[7]));
    MPI(MPI_Recv_init(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r[8]));
    for (int round = 0; round < 3; ++round) {
        MPI_Status all[3];

        MPI(MPI_Startall(3, &r[6]));
        MPI(MPI_Waitall(3, &r[6], all));
        CHECK(is_null_status(&all[2]));
    }
    for (int i = 6; i < N; ++i) {
        MPI(MPI_Request_free(&r[i]));
    }
    CHECK(7 == x);
}

/* ---- persistent receives: cancelled, used again ----------------------------------------------------- */

static void test_persistent_cancel(int peer)
{
    int x = rank, y = -1, cancelled;
    MPI_Request r, idle;
    MPI_Status st;

    MPI(MPI_Recv_init(&y, 1, MPI_INT, peer, 60, MPI_COMM_WORLD, &r));
    MPI(MPI_Recv_init(&y, 1, MPI_INT, MPI_ANY_SOURCE, 61, MPI_COMM_WORLD, &idle)); /* never started */
    for (int round = 0; round < 50; ++round) {
        MPI(MPI_Start(&r));
        MPI(MPI_Cancel(&r));
        MPI(MPI_Wait(&r, &st));
        MPI(MPI_Test_cancelled(&st, &cancelled));
        CHECK(cancelled && -1 == y);
        MPI(MPI_Barrier(MPI_COMM_WORLD));
        MPI(MPI_Start(&r));
        MPI(MPI_Send(&x, 1, MPI_INT, peer, 60, MPI_COMM_WORLD));
        MPI(MPI_Wait(&r, &st));
        MPI(MPI_Test_cancelled(&st, &cancelled));
        CHECK(!cancelled && peer == y && peer == st.MPI_SOURCE && 60 == st.MPI_TAG);
        y = -1;
        MPI(MPI_Wait(&idle, &st));                                           /* inactive: complete at once, with an empty status */
        CHECK(MPI_ANY_SOURCE == st.MPI_SOURCE && MPI_ANY_TAG == st.MPI_TAG); /* MPI_Wait leaves MPI_ERROR alone */
        MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    MPI(MPI_Request_free(&idle));
    MPI(MPI_Request_free(&r));
}

/* ---- many to one by Waitsome and Testany ------------------------------------------------------------ */

static void test_some(void)
{
    enum { EACH = 40 };
    const int n = EACH * (ranks - 1);
    int *in = malloc((size_t) n * sizeof(int)), *index = malloc((size_t) n * sizeof(int)), done = 0, count, flag, i;
    MPI_Request *r = malloc((size_t) n * sizeof(*r));
    MPI_Status *st = malloc((size_t) n * sizeof(*st));

    if (0 == rank) {
        for (i = 0; i < n; ++i) {
            in[i] = -1;
            MPI(MPI_Irecv(&in[i], 1, MPI_INT, 1 + i % (ranks - 1), i / (ranks - 1), MPI_COMM_WORLD, &r[i]));
        }
        while (done < n) {
            if (done % 2) {
                MPI(MPI_Waitsome(n, r, &count, index, st));
                for (i = 0; i < count; ++i) {
                    CHECK(in[index[i]] == 1000 * st[i].MPI_SOURCE + st[i].MPI_TAG);
                }
                done += count;
            } else {
                MPI(MPI_Testany(n, r, &i, &flag, st));
                CHECK(!flag || in[i] == 1000 * st->MPI_SOURCE + st->MPI_TAG);
                done += flag;
            }
        }
        CHECK(done == n);
    } else {
        for (i = EACH - 1; i >= 0; --i) {
            const int x = 1000 * rank + i;

            MPI(MPI_Send(&x, 1, MPI_INT, 0, i, MPI_COMM_WORLD));
        }
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    free(st);
    free(r);
    free(index);
    free(in);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    out = malloc(MOST);
    guarded_make();
    test_truncated(neighbour());
    test_handler(neighbour());
    test_no_buffer(neighbour());
    test_ready(neighbour());
    test_proc_null();
    test_persistent_cancel(neighbour());
    test_some();
    free(out);
    return finish();
}
