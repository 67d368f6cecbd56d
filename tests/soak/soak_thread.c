/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A second thread of each rank, which exchanges verified messages with the second thread of another rank for the whole job. Rank 2n decides when
 * both end. Without a partner (an odd number of ranks) the last rank has no such thread.
 */
#include "soak.h"

#include <pthread.h>
#include <stdlib.h>

enum { TAG = 1, LAST = 2 };

static pthread_t thread;
static soak_t own; /* a communicator, and draws that only the two threads know */
static int partner;
static bool ends; /* atomic */

static void send_to_partner(int length, int tag)
{
    void *room = soak_room((size_t) length);

    soak_fill(room, (size_t) length, soak_key(&own, own.rank, partner, 0));
    SOAK_MPI(&own, MPI_Send(room, length, MPI_BYTE, partner, tag, own.comm));
    free(room);
}

/* Returns the tag. */
static int receive_from_partner(int length)
{
    void *room = soak_receive_room((size_t) length);
    MPI_Status status;
    int count;

    SOAK_MPI(&own, MPI_Recv(room, length, MPI_BYTE, partner, MPI_ANY_TAG, own.comm, &status));
    SOAK_MPI(&own, MPI_Get_count(&status, MPI_BYTE, &count));
    soak_check_equal(&own, (uint64_t) count, (uint64_t) length, "bytes for a thread");
    soak_check(&own, room, (size_t) length, soak_key(&own, partner, own.rank, 0), "bytes that are right for a thread");
    soak_give_back(&own, room, (size_t) length);
    return status.MPI_TAG;
}

static void *exchange(void *unused)
{
    const bool leads = 0 == own.rank % 2;
    int tag = TAG;

    (void) unused;
    for (own.step = 0; LAST != tag; ++own.step) {
        const int there = (int) soak_draw_length(&own), back = (int) soak_draw_length(&own);

        if (leads) {
            tag = __atomic_load_n(&ends, __ATOMIC_RELAXED) ? LAST : TAG;
            send_to_partner(there, tag);
            (void) receive_from_partner(back);
        } else {
            tag = receive_from_partner(there);
            send_to_partner(back, tag);
        }
    }
    return NULL;
}

static bool has_partner(void)
{
    return partner < own.size;
}

void soak_thread_begin(const soak_t *s)
{
    SOAK_MPI(s, MPI_Comm_dup(s->comm, &own.comm));
    MPI_Comm_set_errhandler(own.comm, MPI_ERRORS_RETURN);
    own.rank = s->rank;
    own.size = s->size;
    partner = s->rank ^ 1;
    own.random = soak_seed + (uint64_t) (s->rank / 2);
    if (has_partner()) {
        soak_check_equal(s, (uint64_t) pthread_create(&thread, NULL, exchange, NULL), 0, "error of pthread_create");
    }
}

uint64_t soak_thread_end(const soak_t *s)
{
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    if (has_partner()) {
        soak_check_equal(s, (uint64_t) pthread_join(thread, NULL), 0, "error of pthread_join");
    }
    SOAK_MPI(s, MPI_Comm_free(&own.comm));
    return own.step;
}
