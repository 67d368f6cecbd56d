/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MPI_THREAD_MULTIPLE: threads that send and receive at the same time on common and separate communicators,
 * with wildcards, probes and long messages, while each thread makes and frees communicators of its own. Every byte is checked.
 */
#include "mpi_check.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 150 };
static MPI_Comm comms[THREADS];
static pthread_mutex_t check_lock = PTHREAD_MUTEX_INITIALIZER;

static int size_of(int round)
{
    static const int sizes[] = {0, 8, 100, 4000, 5000, 70000, 200000};

    return sizes[round % 7];
}

/* Makes a communicator for the threads with this number on all ranks, uses it at once, and frees it while other threads get messages:
 * another communicator soon has its context id. */
static void use_own_communicator(int t, int i)
{
    const int peer = rank ^ 1, n = size_of(i + t);
    uint8_t *out = malloc((size_t) n + 1), *in = receive_room((size_t) n);
    MPI_Request r[2];
    MPI_Comm own;

    MPI(MPI_Comm_dup(comms[t], &own));
    fill(out, (size_t) n, (uint32_t) (7777 * t + i));
    MPI(MPI_Isend(out, n, MPI_BYTE, peer, i, own, &r[0]));
    MPI(MPI_Irecv(in, n, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : peer, i, own, &r[1]));
    MPI(MPI_Comm_free(&own)); /* Open MPI frees it when its requests are complete */
    MPI(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    pthread_mutex_lock(&check_lock);
    CHECK(is_filled(in, (size_t) n, (uint32_t) (7777 * t + i)));
    pthread_mutex_unlock(&check_lock);
    free(out);
    give_back(in, (size_t) n);
}

/* Thread t of this rank exchanges with thread t of the neighbour: by tag on a common communicator, and on a communicator of their own. */
static void *pair(void *arg)
{
    const int t = (int) (intptr_t) arg, peer = rank ^ 1;
    uint8_t *out = malloc(200000), *in = receive_room(200000);

    for (int i = 0; i < ROUNDS; ++i) {
        MPI_Comm comm = i % 2 ? comms[t] : MPI_COMM_WORLD;
        const int n = size_of(i + t);
        MPI_Request r[2];
        MPI_Status st;

        if (3 == i % 10) {
            use_own_communicator(t, i);
        }
        fill(out, (size_t) n, (uint32_t) (1000 * t + i));
        memset(in, 0, (size_t) n);
        if (0 == i % 5) {
            MPI_Message m;

            MPI(MPI_Isend(out, n, MPI_BYTE, peer, t, comm, &r[0]));
            MPI(MPI_Mprobe(peer, t, comm, &m, &st));
            MPI(MPI_Mrecv(in, n, MPI_BYTE, &m, &st));
            MPI(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
        } else if (0 == i % 3) {
            MPI(MPI_Irecv(in, n, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : peer, t, comm, &r[1]));
            MPI(MPI_Ssend(out, n, MPI_BYTE, peer, t, comm));
            MPI(MPI_Wait(&r[1], &st));
        } else {
            MPI(MPI_Sendrecv(out, n, MPI_BYTE, peer, t, in, n, MPI_BYTE, peer, t, comm, &st));
        }
        pthread_mutex_lock(&check_lock);
        CHECK(is_filled(in, (size_t) n, (uint32_t) (1000 * t + i)));
        pthread_mutex_unlock(&check_lock);
    }
    free(out);
    give_back(in, 200000);
    return NULL;
}

/* All threads of a rank flood one receiver that takes messages of any tag: the order per thread must hold. */
static void *flood(void *arg)
{
    const int t = (int) (intptr_t) arg;

    for (int i = 0; i < 500; ++i) {
        int x[2] = {t, i};

        MPI(MPI_Send(x, 2, MPI_INT, rank ^ 1, 100 + t, MPI_COMM_WORLD));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(MPI_THREAD_MULTIPLE == provided && 0 == ranks % 2);
    for (int t = 0; t < THREADS; ++t) {
        MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
    }
    for (intptr_t t = 0; t < THREADS; ++t) {
        pthread_create(&threads[t], NULL, pair, (void *) t);
    }
    for (int t = 0; t < THREADS; ++t) {
        pthread_join(threads[t], NULL);
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (intptr_t t = 0; t < THREADS; ++t) {
        pthread_create(&threads[t], NULL, flood, (void *) t);
    }
    int next[THREADS] = {0};
    for (int k = 0; k < 500 * THREADS; ++k) {
        int x[2];
        MPI_Status st;

        MPI(MPI_Recv(x, 2, MPI_INT, rank ^ 1, MPI_ANY_TAG, MPI_COMM_WORLD, &st));
        CHECK(st.MPI_TAG == 100 + x[0] && x[1] == next[x[0]]);
        ++next[x[0]];
    }
    for (int t = 0; t < THREADS; ++t) {
        pthread_join(threads[t], NULL);
        MPI(MPI_Comm_free(&comms[t]));
    }
    return finish();
}
