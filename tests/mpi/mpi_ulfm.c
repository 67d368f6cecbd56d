/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Processes die, and the others continue (ULFM): one check for each function and error class. mpi_ulfm DYING [FILE [AFTER]]: the last DYING
 * ranks kill themselves. With FILE the ranks first exchange messages until FILE exists, with AFTER the survivors do so until AFTER exists; a rail
 * may be cut meanwhile. DESIGN.txt section 14.11.
 */
#include "mpi_check.h"

#if defined(__has_include) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

enum { LONG = 3000000, SHORT = 100, TAG = 5, UNSENT = 6 };

static int n_dying, alive; /* alive: ranks 0 to alive - 1 survive */
static uint8_t *out, *in, *lost;

#define SAY(text) \
    do { \
        if (NULL != getenv("MPI_ULFM_VERBOSE")) { \
            fprintf(stderr, "rank %d: %s\n", rank, text); \
        } \
    } while (0)

static int class_of(int code)
{
    int class;

    MPI_Error_class(code, &class);
    return class;
}

static bool is_class(int code, int class, const char *call)
{
    if (class != class_of(code)) {
        fprintf(stderr, "rank %d: %s ends with class %d, not %d\n", rank, call, class_of(code), class);
    }
    return class == class_of(code);
}
#undef MPI
#define MPI(call) CHECK(is_class(call, MPI_SUCCESS, #call))
#define ENDS(class, call) \
    do { \
        SAY(#call); \
        CHECK(is_class(call, class, #call)); \
    } while (0)

/* ---- all are well ------------------------------------------------------------------------------------- */

/* Every byte of a ring of long messages. */
static void ring(MPI_Comm comm, uint32_t seed)
{
    int me, n;

    MPI(MPI_Comm_rank(comm, &me));
    MPI(MPI_Comm_size(comm, &n));
    fill(out, LONG, seed + (uint32_t) me);
    memset(in, 0xee, LONG);
    MPI(MPI_Sendrecv(out, LONG, MPI_BYTE, (me + 1) % n, TAG, in, LONG, MPI_BYTE, (me + n - 1) % n, TAG, comm, MPI_STATUS_IGNORE));
    CHECK(is_filled(in, LONG, seed + (uint32_t) ((me + n - 1) % n)));
}

static void sum(MPI_Comm comm)
{
    int me, n, mine, all = 0;

    SAY("sums up");
    MPI(MPI_Comm_rank(comm, &me));
    MPI(MPI_Comm_size(comm, &n));
    mine = me + 1;
    MPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm));
    CHECK(all == n * (n + 1) / 2);
}

static void exchange_until(const char *file, MPI_Comm comm, const char *when)
{
    int is_there = 0;

    for (uint32_t i = 0; !is_there; ++i) {
        ring(comm, i);
        is_there = 0 == access(file, F_OK);
        MPI(MPI_Bcast(&is_there, 1, MPI_INT, 0, comm));
        if (0 == i && 0 == rank) {
            fprintf(stderr, "mpi_ulfm: %s\n", when);
        }
    }
}

/* Calls that wait on a communicator end with MPI_ERR_REVOKED when any rank revokes it. So do sends whose rendezvous is unexpected, because
 * the receiver refuses a rendezvous of every kind. A message that was matched before arrives whole. */
static void check_revoke(void)
{
    MPI_Request requests[4], whole[2];
    MPI_Status status;
    MPI_Comm comm, shrunk;
    int n, flag, is_revoked = 0;

    SAY("revoke");
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    fill(out, LONG, 77u + (unsigned) rank);
    MPI(MPI_Irecv(in, LONG, MPI_BYTE, (rank + ranks - 1) % ranks, TAG, comm, &whole[0]));
    MPI(MPI_Isend(out, LONG, MPI_BYTE, (rank + 1) % ranks, TAG, comm, &whole[1]));
    MPI(MPI_Waitall(2, whole, MPI_STATUSES_IGNORE));
    CHECK(is_filled(in, LONG, 77u + (unsigned) ((rank + ranks - 1) % ranks)));
    MPI(MPI_Irecv(in, LONG, MPI_BYTE, (rank + ranks - 1) % ranks, UNSENT, comm, &requests[0]));
    MPI(MPI_Irecv(in + SHORT, SHORT, MPI_BYTE, MPI_ANY_SOURCE, UNSENT, comm, &requests[1]));
    MPI(MPI_Isend(out, LONG, MPI_BYTE, (rank + 1) % ranks, TAG, comm, &requests[2]));
    MPI(MPI_Issend(out, SHORT, MPI_BYTE, (rank + 1) % ranks, TAG, comm, &requests[3]));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (ranks / 2 == rank) {
        MPI(MPIX_Comm_revoke(comm));
    }
    SAY("waits for the end of what is revoked");
    for (int i = 0; i < 4; ++i) {
        ENDS(MPI_ERR_REVOKED, MPI_Wait(&requests[i], &status));
    }
    MPI(MPIX_Comm_is_revoked(comm, &is_revoked));
    CHECK(is_revoked);
    ENDS(MPI_ERR_REVOKED, MPI_Recv(in, SHORT, MPI_BYTE, MPI_ANY_SOURCE, TAG, comm, MPI_STATUS_IGNORE));
    ENDS(MPI_ERR_REVOKED, MPI_Send(out, SHORT, MPI_BYTE, (rank + 1) % ranks, TAG, comm));
    ENDS(MPI_ERR_REVOKED, MPI_Probe(MPI_ANY_SOURCE, TAG, comm, MPI_STATUS_IGNORE));
    ENDS(MPI_ERR_REVOKED, MPI_Barrier(comm));
    flag = ~(1 << rank);
    MPI(MPIX_Comm_agree(comm, &flag)); /* works on a revoked communicator */
    CHECK(0 == (flag & ((1 << ranks) - 1)));
    MPI(MPIX_Comm_shrink(comm, &shrunk));
    MPI(MPI_Comm_size(shrunk, &n));
    CHECK(ranks == n);
    sum(shrunk);
    ring(shrunk, 5);
    MPI(MPI_Comm_free(&shrunk));
    MPI(MPI_Comm_free(&comm));
    sum(MPI_COMM_WORLD); /* the revoke does not affect another communicator */
}

static void kill_myself(int signal)
{
    raise(SIGKILL);
}

/* ---- some ranks die ------------------------------------------------------------------------------------ */

/* Acknowledges failures until this rank knows all ranks that die. */
static void acknowledge_all(MPI_Comm comm)
{
    MPI_Group group, world;
    int n = 0, first, theirs;

    MPI(MPI_Comm_group(comm, &world));
    while (n < n_dying) {
        MPI(MPIX_Comm_failure_ack(comm));
        MPI(MPIX_Comm_failure_get_acked(comm, &group));
        MPI(MPI_Group_size(group, &n));
        for (first = 0; first < n; ++first) {
            MPI(MPI_Group_translate_ranks(group, 1, &first, world, &theirs));
            CHECK(alive <= theirs && theirs < ranks); /* no other rank counts as dead */
        }
        MPI(MPI_Group_free(&group));
        MPI(MPI_Iprobe(MPI_PROC_NULL, TAG, MPI_COMM_SELF, &first, MPI_STATUS_IGNORE));
        (void) MPI_Iprobe(0, UNSENT, MPI_COMM_SELF, &first, MPI_STATUS_IGNORE); /* progress */
    }
    CHECK(n_dying == n);
    MPI(MPI_Group_free(&world));
}

/* Kills itself while long messages from and to all survivors are in flight. */
static void die_at_work(void)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 30000}};
    uint8_t *into = malloc((size_t) LONG * (unsigned) alive);
    MPI_Request requests[60];

    CHECK(NULL != into);
    fprintf(stderr, "mpi_ulfm: dying\n");
    CHECK(SIG_ERR != signal(SIGALRM, kill_myself) && 0 == setitimer(ITIMER_REAL, &soon, NULL));
    for (;;) {
        for (int i = 0; i < alive; ++i) {
            MPI_Irecv(into + (size_t) i * LONG, LONG, MPI_BYTE, i, TAG, MPI_COMM_WORLD, &requests[2 * i]);
            MPI_Isend(out, LONG, MPI_BYTE, i, TAG, MPI_COMM_WORLD, &requests[2 * i + 1]);
        }
        MPI_Waitall(2 * alive, requests, MPI_STATUSES_IGNORE);
    }
}

/* Messages that came whole are right; the first error names a failed process, and both requests end. */
static void talk_until_it_is_dead(int dead)
{
    MPI_Request requests[2];
    MPI_Status status;
    int rc[2];

    do {
        memset(in, 0, LONG);
        MPI(MPI_Irecv(in, LONG, MPI_BYTE, dead, TAG, MPI_COMM_WORLD, &requests[0]));
        rc[1] = MPI_Isend(out, LONG, MPI_BYTE, dead, TAG, MPI_COMM_WORLD, &requests[1]);
        CHECK(MPI_SUCCESS == rc[1] || is_class(rc[1], MPI_ERR_PROC_FAILED, "MPI_Isend"));
        if (MPI_SUCCESS == rc[1]) {
            rc[1] = MPI_Wait(&requests[1], &status);
        }
        rc[0] = MPI_Wait(&requests[0], &status);
        CHECK(MPI_SUCCESS != rc[0] || is_only(in, LONG, 1));
    } while (MPI_SUCCESS == rc[0] && MPI_SUCCESS == rc[1]);
    CHECK(MPI_SUCCESS == rc[0] || is_class(rc[0], MPI_ERR_PROC_FAILED, "the receive"));
    CHECK(MPI_SUCCESS == rc[1] || is_class(rc[1], MPI_ERR_PROC_FAILED, "the send"));
}

static void die_or_survive(void)
{
    const int dead = ranks - 1;
    MPI_Request recv, any, send, synchronous;
    MPI_Status status;
    uint8_t word[2] = {0};
    int rc, flag;

    memset(out, 1, LONG);
    MPI(MPI_Irecv(lost, LONG, MPI_BYTE, dead, UNSENT, MPI_COMM_WORLD, &recv));
    MPI(MPI_Irecv(&word[0], 1, MPI_BYTE, MPI_ANY_SOURCE, UNSENT + 1, MPI_COMM_WORLD, &any));
    MPI(MPI_Isend(out, LONG, MPI_BYTE, dead, UNSENT + 2, MPI_COMM_WORLD, &send));
    MPI(MPI_Issend(out, SHORT, MPI_BYTE, dead, UNSENT + 2, MPI_COMM_WORLD, &synchronous));
    rc = MPI_Barrier(MPI_COMM_WORLD); /* a rank that is still in the barrier when the first rank dies may get the error */
    CHECK(MPI_SUCCESS == rc || is_class(rc, MPI_ERR_PROC_FAILED, "MPI_Barrier"));
    if (rank >= alive && rank < dead) {
        raise(SIGKILL);
    }
    if (rank == dead) {
        die_at_work();
    }
    SAY("talks with the dying");
    talk_until_it_is_dead(dead);
    SAY("waits for the dead");
    ENDS(MPI_ERR_PROC_FAILED, MPI_Wait(&recv, &status));
    ENDS(MPI_ERR_PROC_FAILED, MPI_Wait(&send, &status));
    ENDS(MPI_ERR_PROC_FAILED, MPI_Wait(&synchronous, &status));
    ENDS(MPI_ERR_PROC_FAILED, MPI_Recv(in, SHORT, MPI_BYTE, dead, TAG, MPI_COMM_WORLD, &status));
    ENDS(MPI_ERR_PROC_FAILED, MPI_Send(out, SHORT, MPI_BYTE, dead, TAG, MPI_COMM_WORLD));
    ENDS(MPI_ERR_PROC_FAILED, MPI_Probe(dead, TAG, MPI_COMM_WORLD, &status));
    ENDS(MPI_ERR_PROC_FAILED_PENDING, MPI_Wait(&any, &status));
    CHECK(MPI_REQUEST_NULL != any); /* the receive may still match */
    ENDS(MPI_ERR_PROC_FAILED, MPI_Recv(in, SHORT, MPI_BYTE, MPI_ANY_SOURCE, UNSENT, MPI_COMM_WORLD, &status));
    rc = MPI_Barrier(MPI_COMM_WORLD);
    CHECK(is_class(rc, MPI_ERR_PROC_FAILED, "MPI_Barrier"));
    flag = 0;
    ENDS(MPI_ERR_PROC_FAILED, MPIX_Comm_agree(MPI_COMM_WORLD, &flag)); /* no rank has acknowledged; and none continues before all are here */
    acknowledge_all(MPI_COMM_WORLD);
    word[1] = (uint8_t) (rank + 1);
    MPI(MPI_Send(&word[1], 1, MPI_BYTE, (rank + 1) % alive, UNSENT + 1, MPI_COMM_WORLD)); /* survivors still exchange messages */
    MPI(MPI_Wait(&any, &status));
    CHECK(word[0] == (rank + alive - 1) % alive + 1 && status.MPI_SOURCE == (rank + alive - 1) % alive);
    flag = ~(1 << rank);
    MPI(MPIX_Comm_agree(MPI_COMM_WORLD, &flag)); /* all survivors have acknowledged all failures */
    CHECK(0 == (flag & ((1 << alive) - 1)));
}

static void go_on(const char *after)
{
    MPI_Comm shrunk;
    int me, n, flag = 1;

    MPI(MPIX_Comm_agree(MPI_COMM_WORLD, &flag)); /* no rank is still in an operation that the revoke would end */
    if (0 == rank) {
        MPI(MPIX_Comm_revoke(MPI_COMM_WORLD));
    }
    SAY("shrinks");
    MPI(MPIX_Comm_shrink(MPI_COMM_WORLD, &shrunk));
    MPI(MPI_Comm_size(shrunk, &n));
    MPI(MPI_Comm_rank(shrunk, &me));
    CHECK(alive == n && me == rank);
    MPI(MPI_Comm_set_errhandler(shrunk, MPI_ERRORS_RETURN));
    for (uint32_t i = 0; i < 3; ++i) {
        sum(shrunk);
        ring(shrunk, 100 + i);
    }
    if (NULL != after) {
        exchange_until(after, shrunk, "survivors are exchanging");
    }
    nothing_is_left(shrunk);
    MPI(MPIX_Comm_agree(shrunk, &flag));
    CHECK(1 == flag);
    MPI(MPI_Reduce(0 == me ? MPI_IN_PLACE : &checks, &checks, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, shrunk));
    if (0 == me) {
        printf("PASSED %lu checks\n", checks);
        fflush(stdout);
    }
    MPI(MPI_Barrier(shrunk));
    MPI(MPI_Comm_free(&shrunk));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    n_dying = 1 < argc ? atoi(argv[1]) : 1;
    alive = ranks - n_dying;
    CHECK(2 <= alive && ranks <= 30);
    out = malloc(LONG);
    in = malloc(LONG);
    lost = malloc(LONG);
    CHECK(NULL != out && NULL != in && NULL != lost);
    if (2 < argc) {
        exchange_until(argv[2], MPI_COMM_WORLD, "exchanging");
    }
    check_revoke();
    if (0 < n_dying) {
        die_or_survive();
    }
    go_on(3 < argc ? argv[3] : NULL);
    free(out);
    free(in);
    free(lost);
    MPI_Finalize();
    return 0;
}
#else
int main(void)
{
    puts("this Open MPI has no ULFM");
    return 77;
}
#endif
