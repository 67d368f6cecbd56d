/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Message rate of one and of two threads of a rank, each thread on a communicator of its own, all messages to
 * the rank itself: this measures locks and shared memory of the PML, and nothing polls. Prints lines "KIND BYTES
 * VALUE", messages per second of all threads together. perf_threads [-n PERCENT]
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW = 64, MAX_THREADS = 2, BATCHES = 7 };

typedef struct {
    MPI_Comm comm;
    int rounds, blocking;
    char room[128]; /* each thread has cache lines of its own */
} thread_t;

static pthread_barrier_t barrier;

static void window(MPI_Comm comm)
{
    MPI_Request r[2 * WINDOW];
    char in[8], out[8] = "message";

    for (int w = 0; w < WINDOW; ++w) {
        MPI_Irecv(in, sizeof(in), MPI_CHAR, 0, 1, comm, &r[w]);
    }
    for (int w = 0; w < WINDOW; ++w) {
        MPI_Isend(out, sizeof(out), MPI_CHAR, 0, 1, comm, &r[WINDOW + w]);
    }
    MPI_Waitall(2 * WINDOW, r, MPI_STATUSES_IGNORE);
}

static void blocking(MPI_Comm comm)
{
    char in[8], out[8] = "message";

    for (int w = 0; w < WINDOW; ++w) {
        MPI_Send(out, sizeof(out), MPI_CHAR, 0, 1, comm);
        MPI_Recv(in, sizeof(in), MPI_CHAR, 0, 1, comm, MPI_STATUS_IGNORE);
    }
}

static void *work(void *arg)
{
    thread_t *me = arg;

    pthread_barrier_wait(&barrier);
    for (int i = 0; i < me->rounds; ++i) {
        (me->blocking ? blocking : window)(me->comm);
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}

static double seconds(thread_t *t, int n)
{
    pthread_t id[MAX_THREADS];
    double start;

    pthread_barrier_init(&barrier, NULL, (unsigned) n + 1);
    for (int i = 0; i < n; ++i) {
        pthread_create(&id[i], NULL, work, &t[i]);
    }
    pthread_barrier_wait(&barrier);
    start = MPI_Wtime();
    pthread_barrier_wait(&barrier);
    start = MPI_Wtime() - start;
    for (int i = 0; i < n; ++i) {
        pthread_join(id[i], NULL);
    }
    pthread_barrier_destroy(&barrier);
    return start;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

static void measure(thread_t *t, int n, int rounds, int is_blocking)
{
    double s[BATCHES];

    for (int i = 0; i < n; ++i) {
        t[i].rounds = rounds;
        t[i].blocking = is_blocking;
    }
    for (int i = 0; i < BATCHES; ++i) {
        s[i] = seconds(t, n);
    }
    qsort(s, BATCHES, sizeof(s[0]), by_value);
    printf("%s-%s 8 %.0f\n", 1 == n ? "one-thread" : "two-threads", is_blocking ? "blocking" : "rate", (double) n * rounds * WINDOW / s[BATCHES / 2]);
}

int main(int argc, char **argv)
{
    static thread_t t[MAX_THREADS];
    int provided, rounds = 3000;

    if (argc > 2 && 0 == strcmp("-n", argv[1])) {
        rounds = 1 + rounds * atoi(argv[2]) / 100;
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (MPI_THREAD_MULTIPLE != provided) {
        fprintf(stderr, "perf_threads: no MPI_THREAD_MULTIPLE\n");
        return 1;
    }
    for (int i = 0; i < MAX_THREADS; ++i) {
        MPI_Comm_dup(MPI_COMM_SELF, &t[i].comm);
    }
    for (int n = 1; n <= MAX_THREADS; ++n) {
        measure(t, n, rounds, 0);
        measure(t, n, rounds, 1);
    }
    for (int i = 0; i < MAX_THREADS; ++i) {
        MPI_Comm_free(&t[i].comm);
    }
    MPI_Finalize();
    return 0;
}
