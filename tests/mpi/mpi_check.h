/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What our MPI test programs share: payloads (payload.h) of which every byte is checked, and a failure that ends
 * the job and prints its place in the source. DESIGN.txt section 18.
 */
#ifndef MPI_CHECK_H
#define MPI_CHECK_H

#include "../payload.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static unsigned long checks;

#define CHECK(what) \
    do { \
        __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED); /* threads check as well */ \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: rank %d: %s is false\n", __FILE__, __LINE__, rank, #what); \
            MPI_Abort(MPI_COMM_WORLD, 3); \
            abort(); \
        } \
    } while (0)
#define MPI(call) CHECK(MPI_SUCCESS == (call))

/* Bytes of the message that `seed` names. */
static inline void fill(void *buf, size_t n, uint32_t seed)
{
    payload_fill(buf, n, seed);
}
static inline bool is_filled(const void *buf, size_t n, uint32_t seed)
{
    const size_t i = payload_first_wrong(buf, n, seed);

    if (i < n) {
        fprintf(stderr, "rank %d: byte %zu of %zu is 0x%02x, not 0x%02x\n", rank, i, n, ((const uint8_t *) buf)[i], payload_byte(seed, i));
    }
    return i == n;
}
static inline bool is_only(const void *buf, size_t n, uint8_t value)
{
    for (size_t i = 0; i < n; ++i) {
        if (((const uint8_t *) buf)[i] != value) {
            return false;
        }
    }
    return true;
}

static inline bool is_whole(const char *fault)
{
    if (NULL != fault) {
        fprintf(stderr, "rank %d: %s\n", rank, fault);
    }
    return NULL == fault;
}
/* A receive buffer of `n` bytes, between guards. */
static inline void *receive_room(size_t n)
{
    void *room = payload_room(n);

    CHECK(NULL != room);
    return room;
}
/* Takes the buffer after the check of its first `n` bytes. The bytes around them may not have been written, and from now on no byte of the
 * buffer may be; recheck(), which finish() calls, looks at the last buffers once more. */
static inline void give_back(void *room, size_t n)
{
    CHECK(is_whole(payload_give_back(room, n)));
}
static inline void recheck(void)
{
    CHECK(is_whole(payload_recheck()));
}

/* No message is left that nobody received, such as a second copy. */
static inline void nothing_is_left(MPI_Comm comm)
{
    int is_left = 0;

    for (int i = 0; i < 20; ++i) {
        MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &is_left, MPI_STATUS_IGNORE));
        CHECK(!is_left);
    }
}

/* Ends the program; rank 0 prints the number of checks, so that a run without checks is noticed. */
static inline int finish(void)
{
    unsigned long all = 0;

    MPI_Reduce(&checks, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    nothing_is_left(MPI_COMM_WORLD);
    recheck();
    if (0 == rank) {
        printf("PASSED %lu checks on %d ranks\n", all, ranks);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
/* The other rank of this rank's pair; the rank itself if the number of ranks is odd and no other rank is left. */
static inline int neighbour(void)
{
    return (rank ^ 1) < ranks ? rank ^ 1 : rank;
}
static inline void start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

#endif /* MPI_CHECK_H */
