/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Registrations are refused in the middle of the job: messages are then copied, and use RDMA again when memory may be locked
 * again. The process lowers its own RLIMIT_MEMLOCK; the rails must obey it. MEMLOCK_COUNTS in the environment says
 * which RDMA is counted, "put" or "get"; without it (under another PML) nothing is counted. DESIGN.txt section 14.3.
 */
#include "mpi_check.h"

#include <sys/resource.h>

enum { SIZE = 1 << 20, ROUNDS = 8 };

/* Counters of the PML, through MPI_T; they count from the moment at which the handle is made. */
static MPI_T_pvar_session session;

static MPI_T_pvar_handle counter(const char *name)
{
    MPI_T_pvar_handle handle;
    int index, n;

    if (NULL == getenv("MEMLOCK_COUNTS")) {
        return NULL;
    }
    CHECK(MPI_SUCCESS == MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
    CHECK(MPI_SUCCESS == MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &n));
    return handle;
}

static unsigned long long value(MPI_T_pvar_handle handle)
{
    unsigned long long v = 0;

    CHECK(NULL == handle || MPI_SUCCESS == MPI_T_pvar_read(session, handle, &v));
    return v;
}

/* Sends both ways at once, each message from and to memory that was never registered before. */
static void exchange(uint32_t seed)
{
    for (uint32_t i = 0; i < ROUNDS; ++i) {
        uint8_t *out = malloc(SIZE), *in = malloc(SIZE);
        MPI_Request r[2];

        CHECK(NULL != out && NULL != in);
        fill(out, SIZE, seed + i + 100 * (uint32_t) rank);
        memset(in, 0, SIZE);
        MPI(MPI_Irecv(in, SIZE, MPI_BYTE, 1 - rank, (int) i, MPI_COMM_WORLD, &r[0]));
        MPI(MPI_Isend(out, SIZE, MPI_BYTE, 1 - rank, (int) i, MPI_COMM_WORLD, &r[1]));
        MPI(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        CHECK(is_filled(in, SIZE, seed + i + 100 * (uint32_t) (1 - rank)));
        free(out);
        free(in);
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    const char *rdma = NULL != getenv("MEMLOCK_COUNTS") && 0 == strcmp("get", getenv("MEMLOCK_COUNTS")) ? "pml_bfo_get_bytes" : "pml_bfo_put_bytes";
    const unsigned long long all = NULL == getenv("MEMLOCK_COUNTS") ? 0 : (unsigned long long) ROUNDS * SIZE;
    unsigned long long moved, copied;
    MPI_T_pvar_handle by_rdma, by_copy;
    struct rlimit limit, none;
    int provided;

    start(&argc, &argv);
    CHECK(2 == ranks);
    CHECK(MPI_SUCCESS == MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    CHECK(MPI_SUCCESS == MPI_T_pvar_session_create(&session));
    CHECK(0 == getrlimit(RLIMIT_MEMLOCK, &limit));

    by_rdma = counter(rdma);
    by_copy = counter("pml_bfo_frag_bytes");
    exchange(1);
    moved = value(by_rdma);
    copied = value(by_copy);
    if (moved < all) {
        fprintf(stderr, "rank %d: %s %llu, pml_bfo_frag_bytes %llu\n", rank, rdma, moved, copied);
    }
    CHECK(moved >= all);

    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    for (int who = 0; who < 3; ++who) { /* nothing can be registered: on rank 0, on rank 1, on both */
        const bool here = 2 == who || who == rank;

        CHECK(!here || 0 == setrlimit(RLIMIT_MEMLOCK, &none));
        exchange(1000 * (uint32_t) (who + 2));
        CHECK(0 == setrlimit(RLIMIT_MEMLOCK, &limit));
        MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK(value(by_copy) >= copied + all);

    moved = value(by_rdma);
    exchange(9000);
    CHECK(value(by_rdma) >= moved + all);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return finish();
}
