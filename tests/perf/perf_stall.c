/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * How long a message between two connected ranks waits while control verbs are slow. Ranks 0 and 1 exchange 8 bytes
 * all the time; the others are outside MPI. Three phases: nothing else happens; rank 0 has its first contact with the other
 * ranks; a rail is lost (the script cuts it when it reads "phase failover"). Each phase prints the median and the longest
 * exchange, the longest call into MPI (the largest gap between two progress calls), and how long rank 0 slept in all, which
 * means that it neither ran nor waited for a core. Rank 0 polls all the time, therefore only a verb or a lock can make it
 * sleep. perf_stall SECONDS (of each phase). DESIGN.txt 15.1.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { KEPT = 4000000, DONE = 1 << 30 };

static int rank, size;
static double longest_call;
static double *took;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

/* Time in seconds in which this thread ran or waited for a core; in the rest of the time it slept. */
static double awake(void)
{
    unsigned long long ran = 0, waited = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");

    if (NULL == file || 2 != fscanf(file, "%llu %llu", &ran, &waited)) {
        fprintf(stderr, "no /proc/thread-self/schedstat\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    fclose(file);
    return 1e-9 * (double) (ran + waited);
}

static void note_call(double begin)
{
    double call = now() - begin;

    longest_call = call > longest_call ? call : longest_call;
}

/* Each step is a call that never waits, therefore it takes as long as one poll of the rails. */
static int exchange(int number)
{
    int theirs = -1, done = 0;
    MPI_Request request[2];
    double begin = now();

    MPI_Irecv(&theirs, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &request[0]);
    note_call(begin);
    begin = now();
    MPI_Isend(&number, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &request[1]);
    note_call(begin);
    while (!done) {
        begin = now();
        MPI_Testall(2, request, &done, MPI_STATUSES_IGNORE);
        note_call(begin);
    }
    return theirs;
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *) a > *(const double *) b) - (*(const double *) a < *(const double *) b);
}

/* Rank 0 decides when the phase is over. */
static void phase(const char *name, double seconds)
{
    double begun = now(), end = begun + seconds, before = awake(), slept;
    int count = 0, number = 0;

    longest_call = 0;
    while (number < DONE) {
        double begin = now();
        int theirs;
        number = 0 == rank && begin > end ? DONE : count;
        theirs = exchange(number);
        if (theirs != (1 == rank && DONE == theirs ? DONE : count)) {
            fprintf(stderr, "rank %d: %d came instead of %d\n", rank, theirs, count);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        number = 0 == rank ? number : theirs;
        took[count++ % KEPT] = now() - begin;
    }
    slept = now() - begun - (awake() - before);
    count = count < KEPT ? count : KEPT;
    qsort(took, (size_t) count, sizeof(*took), ascending);
    if (0 == rank) {
        printf("phase %s exchanges %d median_us %.1f longest_us %.0f call_us %.0f slept_us %.0f\n", name, count, took[count / 2] * 1e6,
               took[count - 1] * 1e6, longest_call * 1e6, slept * 1e6);
        fflush(stdout);
    }
}

static void meet_others(double seconds)
{
    MPI_Request *request = malloc((size_t) size * sizeof(*request));
    int hello = 42;

    for (int p = 2; p < size; ++p) {
        MPI_Isend(&hello, 1, MPI_INT, p, 2, MPI_COMM_WORLD, &request[p - 2]);
    }
    phase("connects", seconds);
    MPI_Waitall(size - 2, request, MPI_STATUSES_IGNORE);
    free(request);
}

int main(int argc, char **argv)
{
    double seconds = 1 < argc ? atof(argv[1]) : 2;
    const struct timespec away = {.tv_sec = (time_t) (3.5 * seconds) + 1};
    int hello = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    took = calloc(KEPT, sizeof(*took));
    if (3 > size || NULL == took) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (1 < rank) {
        nanosleep(&away, NULL); /* the BTL connects a process outside MPI all the same */
        MPI_Recv(&hello, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        phase("warm", seconds / 2); /* every rail is connected before the first phase that counts */
        phase("quiet", seconds);
        if (0 == rank) {
            meet_others(seconds);
        } else {
            phase("connects", seconds);
        }
        phase("failover", seconds);
    }
    hello = 1 < rank && 42 != hello;
    MPI_Allreduce(MPI_IN_PLACE, &hello, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("stalls: %s\n", 0 == hello ? "all right" : "WRONG");
    }
    MPI_Finalize();
    return hello;
}
