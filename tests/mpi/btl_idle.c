/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What waiting costs and how fast it ends. btl_idle wait SECONDS [multiple]: rank 0 waits in MPI_Recv while rank 1 is outside
 * MPI; the processor time of rank 0 meanwhile, and how late the message came. btl_idle quiet SECONDS: small messages
 * after a long one that went by every rail. DESIGN.txt 15.1.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { ROUNDS = 3, LONG = 4 << 20 };

static int rank;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t); /* one clock for both ranks */
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static double processor_time(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double) (used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1e-6 * (double) (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double ping(void)
{
    double sent = now(), theirs;

    MPI_Sendrecv(&sent, 1, MPI_DOUBLE, 1 - rank, 1, &theirs, 1, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return now() - sent;
}

static void wait_long(double seconds)
{
    const struct timespec nap = {.tv_sec = (time_t) seconds, .tv_nsec = (long) (1e9 * (seconds - (double) (time_t) seconds))};
    double used = 0, sent, late = 0;

    (void) ping();
    for (int i = 0; i < ROUNDS; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (0 == rank) {
            double before = processor_time();
            MPI_Recv(&sent, 1, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            late = now() - sent > late ? now() - sent : late;
            used += processor_time() - before;
        } else {
            nanosleep(&nap, NULL);
            sent = now();
            MPI_Send(&sent, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
        }
    }
    if (0 == rank) {
        printf("processor_ms %.1f of %.0f late_us %.0f\n", 1e3 * used, 1e3 * seconds * ROUNDS, 1e6 * late);
    }
}

static void quiet(double seconds)
{
    char *out = calloc(1, LONG), *in = calloc(1, LONG);
    double end;
    int more = 1;

    MPI_Sendrecv(out, LONG, MPI_CHAR, 1 - rank, 3, in, LONG, MPI_CHAR, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    end = now() + seconds;
    while (more) {
        for (int i = 0; i < 100; ++i) {
            (void) ping();
        }
        more = now() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    int level, size;

    MPI_Init_thread(&argc, &argv, 4 == argc ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (3 > argc || 2 != size) {
        fprintf(stderr, "usage: mpirun -np 2 btl_idle wait|quiet SECONDS [multiple]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (0 == strcmp(argv[1], "wait")) {
        wait_long(atof(argv[2]));
    } else {
        quiet(atof(argv[2]));
    }
    MPI_Finalize();
    return 0;
}
