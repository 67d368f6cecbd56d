/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What waiting costs and what ends it. btl_idle wait SECONDS [multiple]: rank 0 waits in MPI_Recv while rank 1 is outside MPI; prints
 * the processor time that rank 0 used, and the delay of the message. btl_idle sleep SECONDS FILE [multiple]: the same, but rank 1 sends
 * after rank 0 has fallen asleep, and only an event ends a sleep of rank 0 in MPI_Recv, therefore the job ends only if messages wake
 * rank 0. btl_idle quiet PINGS: PINGS small messages after a long message that used every rail. btl_idle outside FILE: long messages until
 * FILE exists, then both ranks stay outside MPI until FILE.2 exists. DESIGN.txt 15.1.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 3, LONG = 4 << 20 };

static int rank;
static unsigned *sleeps; /* how often rank 0 slept in MPI_Recv, in a file that both ranks have mapped; NULL: not counted */
static __thread int only_events;

/* The BTL sleeps in poll() with a timeout. This function replaces the library's, because the program is linked with -export-dynamic. */
__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    static int (*real)(struct pollfd *, nfds_t, int);

    if (NULL == real) {
        real = (int (*)(struct pollfd *, nfds_t, int)) dlsym(RTLD_NEXT, "poll");
    }
    if (only_events && 0 < timeout) {
        __atomic_add_fetch(sleeps, 1, __ATOMIC_SEQ_CST);
        timeout = -1;
    }
    return real(fds, count, timeout);
}

static void map_sleeps(const char *name)
{
    const int file = open(name, O_RDWR | O_CREAT, 0644);

    if (0 > file || 0 != ftruncate(file, sizeof(*sleeps))) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    sleeps = mmap(NULL, sizeof(*sleeps), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (MAP_FAILED == sleeps) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    close(file);
}

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
    const struct timespec moment = {.tv_nsec = 1000000};
    unsigned before_sleep = 0;
    double used = 0, sent, late = 0;

    (void) ping();
    for (int i = 0; i < ROUNDS; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (0 == rank) {
            double before = processor_time();
            only_events = NULL != sleeps;
            MPI_Recv(&sent, 1, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            only_events = 0;
            late = now() - sent > late ? now() - sent : late;
            used += processor_time() - before;
        } else {
            nanosleep(&nap, NULL);
            while (NULL != sleeps && before_sleep == __atomic_load_n(sleeps, __ATOMIC_SEQ_CST)) {
                nanosleep(&moment, NULL);
            }
            sent = now();
            MPI_Send(&sent, 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        before_sleep = NULL == sleeps ? 0 : *sleeps;
    }
    if (0 == rank) {
        printf("processor_ms %.1f of %.0f late_us %.0f\n", 1e3 * used, 1e3 * seconds * ROUNDS, 1e6 * late);
    }
}

static void use_every_rail(void)
{
    char *out = calloc(1, LONG), *in = calloc(1, LONG);

    MPI_Sendrecv(out, LONG, MPI_CHAR, 1 - rank, 3, in, LONG, MPI_CHAR, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(out);
    free(in);
}

static void quiet(int pings)
{
    use_every_rail();
    for (int i = 0; i < pings; ++i) {
        (void) ping();
    }
}

static void outside(const char *file)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    char second[512];
    int is_there;

    snprintf(second, sizeof(second), "%s.2", file);
    do {
        use_every_rail();
        is_there = 0 == access(file, F_OK);
        MPI_Bcast(&is_there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } while (!is_there);
    printf("rank %d is outside MPI\n", rank);
    fflush(stdout);
    while (0 != access(second, F_OK)) {
        nanosleep(&moment, NULL);
    }
    use_every_rail();
    printf("rank %d is back\n", rank);
}

int main(int argc, char **argv)
{
    int level, size;

    MPI_Init_thread(&argc, &argv, 0 == strcmp(argv[argc - 1], "multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (3 > argc || 2 != size) {
        fprintf(stderr, "usage: mpirun -np 2 btl_idle wait SECONDS [multiple] | sleep SECONDS FILE [multiple] | quiet PINGS | outside FILE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (0 == strcmp(argv[1], "sleep") && 3 < argc) {
        map_sleeps(argv[3]);
    }
    if (0 == strcmp(argv[1], "quiet")) {
        quiet(atoi(argv[2]));
    } else if (0 == strcmp(argv[1], "outside")) {
        outside(argv[2]);
    } else {
        wait_long(atof(argv[2]));
    }
    MPI_Finalize();
    return 0;
}
