/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A process can no longer be reached: every call that completes a request with it must end with MPI_ERR_OTHER, and calls
 * the user's error handler. mpi_lost HOW FILE: two ranks get ready; when FILE exists, either all rails have been cut
 * (HOW = cut: both ranks check) or rank 1 dies (HOW = kill: rank 0 checks). With HOW = wait all rails have been cut, both ranks wait for them
 * when FILE-waits exists, and the rails come back when both are in MPI_Comm_disconnect: no call ends with an error. DESIGN.txt sections 11
 * and 18.
 */
#include "mpi_check.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum { LONG = 3000000, SHORT = 100, PENDING = 16, TAG = 5, UNSENT = 6 };

static uint8_t *out, *in[PENDING + 4], *attached;
static int peer;
static unsigned handled; /* calls of our error handler */
static MPI_Comm comm;    /* for collectives */

static void on_error(MPI_Comm *where, int *code, ...)
{
    ++handled;
}

static int class_of(int code)
{
    int class;

    MPI_Error_class(code, &class);
    return class;
}

#define SAY(text) \
    do { \
        if (NULL != getenv("MPI_LOST_VERBOSE")) { \
            fprintf(stderr, "rank %d: %s\n", rank, text); \
        } \
    } while (0)
#define SAY_CLASS(c) \
    do { \
        if (MPI_ERR_OTHER != (c)) { \
            fprintf(stderr, "rank %d: ends with class %d\n", rank, c); \
        } \
    } while (0)
/* The call ends with MPI_ERR_OTHER, and the handler was called. */
#define LOST(call) \
    do { \
        const unsigned before = handled; \
        SAY(#call); \
        const int ended = class_of(call); \
        SAY_CLASS(ended); \
        CHECK(MPI_ERR_OTHER == ended); \
        CHECK(before < handled); \
    } while (0)
/* MPI_Waitall of Open MPI 6.0.0rc2 returns MPI_SUCCESS if it gets no statuses and a request has ended with an error before the call. The root
 * of MPI_Bcast waits so, and the error is hidden. */
#define LOST_OR_HIDDEN(call) \
    do { \
        const unsigned before = handled; \
        SAY(#call); \
        const int ended = class_of(call); \
        if (6 != OMPI_MAJOR_VERSION || MPI_SUCCESS != ended) { \
            SAY_CLASS(ended); \
            CHECK(MPI_ERR_OTHER == ended); \
            CHECK(before < handled); \
        } \
    } while (0)
/* The call ends with errors in its statuses. */
#define LOST_INSIDE(call) \
    do { \
        const unsigned before = handled; \
        SAY(#call); \
        CHECK(MPI_ERR_IN_STATUS == class_of(call)); \
        CHECK(before < handled); \
    } while (0)
#define ENDS(call) \
    do { \
        SAY(#call); \
        (void) (call); \
    } while (0)

/* ---- requests that were pending when the peer was lost ---------------------------------------------- */

typedef struct {
    MPI_Request recv[PENDING], any, send, synchronous, freed, persistent_send, persistent_recv;
} pending_t;

static void pend(pending_t *p)
{
    for (int i = 0; i < PENDING; ++i) {
        MPI(MPI_Irecv(in[i], LONG, MPI_BYTE, peer, UNSENT, MPI_COMM_WORLD, &p->recv[i]));
    }
    MPI(MPI_Irecv(in[PENDING + 1], LONG, MPI_BYTE, MPI_ANY_SOURCE, UNSENT, comm, &p->any));
    MPI(MPI_Isend(out, LONG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &p->send));
    MPI(MPI_Issend(out, SHORT, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &p->synchronous));
    MPI(MPI_Isend(out, LONG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &p->freed));
    MPI(MPI_Request_free(&p->freed));
    MPI(MPI_Send_init(out, LONG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &p->persistent_send));
    MPI(MPI_Start(&p->persistent_send));
    MPI(MPI_Recv_init(in[PENDING], LONG, MPI_BYTE, peer, UNSENT, MPI_COMM_WORLD, &p->persistent_recv));
    MPI(MPI_Start(&p->persistent_recv));
}

static void all_errors(const MPI_Status *statuses, int n)
{
    for (int i = 0; i < n; ++i) {
        CHECK(MPI_ERR_OTHER == class_of(statuses[i].MPI_ERROR));
    }
}

/* MPI_Test and its relatives report nothing until the loss is known; therefore they are called until they do. */
static void check_tests(pending_t *p)
{
    MPI_Status statuses[PENDING];
    int flag = 0, index, n = 0, rc = MPI_SUCCESS;

    while (!flag && MPI_SUCCESS == rc) {
        rc = MPI_Test(&p->recv[5], &flag, &statuses[0]);
    }
    CHECK(MPI_ERR_OTHER == class_of(rc));
    for (flag = 0, rc = MPI_SUCCESS; !flag && MPI_SUCCESS == rc;) {
        rc = MPI_Testany(2, &p->recv[6], &index, &flag, &statuses[0]);
    }
    CHECK(MPI_ERR_OTHER == class_of(rc) && (0 == index || 1 == index));
    for (rc = MPI_SUCCESS; MPI_SUCCESS == rc && 0 == n;) {
        rc = MPI_Testsome(2, &p->recv[8], &n, (int[2]){0}, statuses);
    }
    CHECK(MPI_ERR_IN_STATUS == class_of(rc) && 0 < n);
    all_errors(statuses, n);
    for (flag = 0, rc = MPI_SUCCESS; !flag && MPI_SUCCESS == rc;) {
        rc = MPI_Testall(2, &p->recv[10], &flag, statuses);
    }
    CHECK(MPI_ERR_IN_STATUS == class_of(rc));
    all_errors(statuses, 2);
}

static void check_pending(pending_t *p)
{
    MPI_Status statuses[PENDING] = {{0}}; /* a call that completes one request does not set MPI_ERROR */
    int index, n, indices[2];

    LOST(MPI_Probe(peer, UNSENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    LOST(MPI_Wait(&p->recv[0], &statuses[0]));
    CHECK(MPI_ERR_OTHER == class_of(statuses[0].MPI_ERROR) || MPI_SUCCESS == statuses[0].MPI_ERROR);
    LOST(MPI_Waitany(2, &p->recv[1], &index, &statuses[0]));
    CHECK(0 == index || 1 == index);
    LOST_INSIDE(MPI_Waitsome(2, &p->recv[3], &n, indices, statuses));
    CHECK(0 < n);
    all_errors(statuses, n);
    check_tests(p);
    LOST_INSIDE(MPI_Waitall(2, &p->recv[12], statuses));
    all_errors(statuses, 2);
    LOST(MPI_Wait(&p->any, MPI_STATUS_IGNORE)); /* nobody else is left who could send to it */
    LOST(MPI_Wait(&p->send, MPI_STATUS_IGNORE));
    LOST(MPI_Wait(&p->synchronous, MPI_STATUS_IGNORE));
    LOST(MPI_Wait(&p->persistent_send, MPI_STATUS_IGNORE));
    LOST(MPI_Wait(&p->persistent_recv, MPI_STATUS_IGNORE));
    ENDS(MPI_Cancel(&p->recv[14])); /* the request is complete: no effect */
    LOST(MPI_Wait(&p->recv[14], MPI_STATUS_IGNORE));
    ENDS(MPI_Request_free(&p->recv[15]));
}

/* ---- calls after the loss ---------------------------------------------------------------------------- */

/* Open MPI frees a request that ends with an error, and before 6.0 even a persistent request. */
#define PERSISTENT_STAYS (6 <= OMPI_MAJOR_VERSION)

static void check_sends(pending_t *p)
{
    MPI_Request r;
    void *buffer;
    int size;

    LOST(MPI_Send(out, SHORT, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
    LOST(MPI_Send(out, 0, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
    LOST(MPI_Send(out, LONG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
    LOST(MPI_Ssend(out, SHORT, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
    LOST(MPI_Rsend(out, SHORT, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
    ENDS(MPI_Bsend(out, SHORT, MPI_BYTE, peer, TAG, MPI_COMM_WORLD)); /* complete at once; MPI_Buffer_detach gets the buffer back */
    ENDS(MPI_Bsend(out, LONG / 2, MPI_BYTE, peer, TAG, MPI_COMM_WORLD));
    MPI(MPI_Buffer_detach(&buffer, &size));
    LOST(MPI_Isend(out, SHORT, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r) ?: MPI_Wait(&r, MPI_STATUS_IGNORE));
    LOST(MPI_Issend(out, LONG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r) ?: MPI_Wait(&r, MPI_STATUS_IGNORE));
    if (!PERSISTENT_STAYS) {
        CHECK(MPI_REQUEST_NULL == p->persistent_send);
        MPI(MPI_Send_init(out, LONG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &p->persistent_send));
    }
    LOST(MPI_Start(&p->persistent_send) ?: MPI_Wait(&p->persistent_send, MPI_STATUS_IGNORE));
    MPI(MPI_Isend(out, LONG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &r));
    ENDS(MPI_Request_free(&r));
}

static void check_recvs(pending_t *p)
{
    MPI_Message message;
    MPI_Request r;
    int flag = 0, rc = MPI_SUCCESS;

    LOST(MPI_Recv(in[0], LONG, MPI_BYTE, peer, UNSENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    LOST(MPI_Irecv(in[0], LONG, MPI_BYTE, peer, UNSENT, MPI_COMM_WORLD, &r) ?: MPI_Wait(&r, MPI_STATUS_IGNORE));
    LOST(MPI_Sendrecv(out, LONG, MPI_BYTE, peer, TAG, in[0], LONG, MPI_BYTE, peer, UNSENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    LOST(MPI_Sendrecv_replace(in[0], SHORT, MPI_BYTE, peer, TAG, peer, UNSENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    LOST(MPI_Probe(peer, UNSENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    LOST(MPI_Iprobe(peer, UNSENT, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    LOST(MPI_Mprobe(peer, UNSENT, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    LOST(MPI_Improbe(peer, UNSENT, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
    if (!PERSISTENT_STAYS) {
        MPI(MPI_Recv_init(in[0], LONG, MPI_BYTE, peer, UNSENT, MPI_COMM_WORLD, &p->persistent_recv));
    }
    LOST(MPI_Start(&p->persistent_recv) ?: MPI_Wait(&p->persistent_recv, MPI_STATUS_IGNORE));
    /* nobody is left who could send to them */
    LOST(MPI_Recv(in[0], LONG, MPI_BYTE, MPI_ANY_SOURCE, UNSENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    LOST(MPI_Irecv(in[0], LONG, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &r) ?: MPI_Wait(&r, MPI_STATUS_IGNORE));
    LOST(MPI_Probe(MPI_ANY_SOURCE, UNSENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    LOST(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &message, MPI_STATUS_IGNORE));
    /* a rank still reaches itself */
    rc = MPI_Sendrecv(out, SHORT, MPI_BYTE, rank, TAG, in[0], SHORT, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(MPI_SUCCESS == rc && 0 == memcmp(out, in[0], SHORT));
}

/* The first part of a long message came before the loss; its receive is posted after the loss. */
static void check_unexpected(MPI_Message message)
{
    LOST(MPI_Recv(in[0], LONG, MPI_BYTE, peer, TAG + 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    LOST(MPI_Mrecv(in[0], LONG, MPI_BYTE, &message, MPI_STATUS_IGNORE));
    MPI(MPI_Recv(in[0], LONG, MPI_BYTE, peer, TAG + 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); /* this short message came whole */
    CHECK(is_filled(in[0], SHORT, 3));
}

static void check_collectives(void)
{
    double a[1000] = {0}, b[2000];
    MPI_Request r;

    LOST(MPI_Barrier(comm));
    LOST(MPI_Allreduce(a, b, 1000, MPI_DOUBLE, MPI_SUM, comm));
    LOST(MPI_Alltoall(a, 500, MPI_DOUBLE, b, 500, MPI_DOUBLE, comm));
    LOST(MPI_Allgather(a, 1000, MPI_DOUBLE, b, 1000, MPI_DOUBLE, comm));
    LOST(MPI_Reduce_scatter_block(a, b, 500, MPI_DOUBLE, MPI_SUM, comm));
    LOST_OR_HIDDEN(MPI_Bcast(out, LONG, MPI_BYTE, 0, comm));
    LOST(MPI_Scatter(out, LONG / 2, MPI_BYTE, in[0], LONG / 2, MPI_BYTE, 0, comm));
    LOST(MPI_Gather(out, LONG / 2, MPI_BYTE, in[0], LONG / 2, MPI_BYTE, 0, comm));
    LOST(MPI_Reduce(out, in[0], LONG, MPI_BYTE, MPI_BOR, 0, comm));
    LOST(MPI_Scan(a, b, 1000, MPI_DOUBLE, MPI_SUM, comm) ?: MPI_Exscan(a, b, 1000, MPI_DOUBLE, MPI_SUM, comm)
             ?: MPI_Barrier(comm)); /* the first rank of a scan only sends, and a short send may complete at once */
    LOST(MPI_Ibarrier(comm, &r) ?: MPI_Wait(&r, MPI_STATUS_IGNORE));
    LOST(MPI_Iallreduce(a, b, 1000, MPI_DOUBLE, MPI_SUM, comm, &r) ?: MPI_Wait(&r, MPI_STATUS_IGNORE));
}

static void check_loss(MPI_Message message)
{
    pending_t p;

    pend(&p);
    check_pending(&p);
    check_unexpected(message);
    check_sends(&p);
    check_recvs(&p);
    check_collectives();
}

/* ---- while a rail is waited for --------------------------------------------------------------------- */

static void wait_for(const char *file)
{
    while (0 != access(file, F_OK)) {
        int found;

        (void) MPI_Iprobe(MPI_ANY_SOURCE, UNSENT, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
        usleep(1000);
    }
}

static void round_trip(MPI_Request *p)
{
    MPI(MPI_Waitall(2, p, MPI_STATUSES_IGNORE));
    CHECK(is_filled(in[PENDING], LONG, 3));
    memset(in[PENDING], 0, LONG);
}

/* A receive without a message can be cancelled, a probe finds nothing, and persistent requests and MPI_Comm_disconnect go on with the rails. */
static void check_wait(const char *file)
{
    MPI_Request persistent[2], cancelled;
    MPI_Status status;
    char waits[4096];
    int flag = 0;

    snprintf(waits, sizeof(waits), "%s-waits", file);
    MPI(MPI_Recv_init(in[PENDING], LONG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &persistent[0]));
    MPI(MPI_Send_init(out, LONG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &persistent[1]));
    MPI(MPI_Startall(2, persistent));
    MPI(MPI_Irecv(in[0], SHORT, MPI_BYTE, peer, UNSENT, MPI_COMM_WORLD, &cancelled));
    wait_for(waits);
    MPI(MPI_Iprobe(peer, UNSENT, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    MPI(MPI_Testany(2, persistent, &(int){0}, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    MPI(MPI_Cancel(&cancelled));
    MPI(MPI_Wait(&cancelled, &status));
    MPI(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    printf("disconnects\n");
    fflush(stdout);
    MPI(MPI_Comm_disconnect(&comm));
    round_trip(persistent);
    MPI(MPI_Startall(2, persistent));
    round_trip(persistent);
    MPI(MPI_Request_free(&persistent[0]));
    MPI(MPI_Request_free(&persistent[1]));
    CHECK(0 == handled);
}

/* ---- before the loss ---------------------------------------------------------------------------------- */

static MPI_Message before(void)
{
    static MPI_Request stays[2];
    MPI_Message message;

    MPI(MPI_Sendrecv(out, LONG, MPI_BYTE, peer, TAG, in[0], LONG, MPI_BYTE, peer, TAG, comm, MPI_STATUS_IGNORE));
    CHECK(is_filled(in[0], LONG, 3));
    MPI(MPI_Isend(out, LONG, MPI_BYTE, peer, TAG + 10, MPI_COMM_WORLD, &stays[0]));
    MPI(MPI_Isend(out, LONG, MPI_BYTE, peer, TAG + 11, MPI_COMM_WORLD, &stays[1]));
    MPI(MPI_Send(out, SHORT, MPI_BYTE, peer, TAG + 12, MPI_COMM_WORLD));
    MPI(MPI_Request_free(&stays[0]));
    MPI(MPI_Request_free(&stays[1]));
    MPI(MPI_Mprobe(peer, TAG + 11, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    MPI(MPI_Probe(peer, TAG + 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI(MPI_Barrier(comm));
    return message;
}

static void prepare(void)
{
    MPI_Errhandler handler;

    out = malloc(LONG);
    attached = malloc(LONG + 10 * MPI_BSEND_OVERHEAD);
    CHECK(NULL != out && NULL != attached);
    fill(out, LONG, 3);
    for (unsigned i = 0; i < sizeof(in) / sizeof(in[0]); ++i) {
        CHECK(NULL != (in[i] = malloc(LONG)));
    }
    MPI(MPI_Buffer_attach(attached, LONG + 10 * MPI_BSEND_OVERHEAD));
    MPI(MPI_Comm_create_errhandler(on_error, &handler));
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI(MPI_Comm_set_errhandler(comm, handler));
    MPI(MPI_Errhandler_free(&handler));
}

int main(int argc, char **argv)
{
    char mark[4096];
    MPI_Message message;
    bool kills;

    start(&argc, &argv);
    CHECK(3 == argc && 2 == ranks);
    kills = 0 == strcmp(argv[1], "kill");
    peer = 1 - rank;
    prepare();
    message = before();
    printf("ready\n");
    fflush(stdout);
    wait_for(argv[2]);
    if (kills && 1 == rank) {
        kill(getpid(), SIGKILL);
    }
    for (int i = 0; kills && i < 300; ++i) { /* waits until rank 1 is dead, because a dying process may still answer */
        int found;

        (void) MPI_Iprobe(MPI_ANY_SOURCE, UNSENT, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
        usleep(1000);
    }
    if (0 == strcmp(argv[1], "wait")) {
        check_wait(argv[2]);
    } else {
        check_loss(message);
    }
    printf("PASSED %lu checks on rank %d\n", checks, rank);
    fflush(stdout);
    MPI_Finalize();
    snprintf(mark, sizeof(mark), "%s.%d", argv[2], rank); /* mpirun may lose what is printed this late */
    close(creat(mark, 0644));
    return 0;
}
