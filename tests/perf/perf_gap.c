/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * perf_gap SECONDS: ranks 0 and 1 send each other 8 bytes in turn for this time. Rank 0 prints "go" when this has begun, and at the
 * end the median exchange (us), each exchange of at least 1 ms, and the longest one: "pause FROM TO", "longest FROM TO", in seconds since
 * 1970, so that a script knows what it did meanwhile.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WARM = 1000, KEPT = 20000000, PAUSES = 10000 };

typedef struct {
    double from, to;
} pause_t;

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *) a, y = *(const float *) b;

    return (x > y) - (x < y);
}

/* A message there and a message back; number 0 is the last. Returns the number that came. */
static int64_t exchange(int rank, int64_t number)
{
    int64_t got = -1;

    if (0 == rank) {
        MPI_Send(&number, 1, MPI_INT64_T, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(&got, 1, MPI_INT64_T, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&got, 1, MPI_INT64_T, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&got, 1, MPI_INT64_T, 0, 1, MPI_COMM_WORLD);
    }
    return got;
}

static void lead(double seconds)
{
    float *took = malloc(KEPT * sizeof(*took));
    static pause_t pauses[PAUSES];
    int n_pauses = 0, longest = -1;
    double begin, end = 0;
    int64_t n = 0;

    if (NULL == took) {
        fprintf(stderr, "perf_gap: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (begin = now(CLOCK_MONOTONIC); n < KEPT && (n < WARM || end < seconds + begin); ++n) {
        const double from = now(CLOCK_MONOTONIC);

        if (n + 1 != exchange(0, n + 1)) {
            fprintf(stderr, "perf_gap: wrong data\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        end = now(CLOCK_MONOTONIC);
        took[n] = (float) (end - from);
        if (n >= WARM && end - from >= 1e-3 && n_pauses < PAUSES) {
            const double to = now(CLOCK_REALTIME);

            pauses[n_pauses] = (pause_t){.from = to - (end - from), .to = to};
            if (0 > longest || end - from > pauses[longest].to - pauses[longest].from) {
                longest = n_pauses;
            }
            ++n_pauses;
        }
        if (WARM == n) {
            begin = end;
            printf("go\n");
            fflush(stdout);
        }
    }
    exchange(0, 0);
    qsort(took, (size_t) n, sizeof(*took), by_value);
    printf("median %.2f\n", 1e6 * (double) took[n / 2]);
    for (int i = 0; i < n_pauses; ++i) {
        printf("pause %.6f %.6f\n", pauses[i].from, pauses[i].to);
    }
    printf("longest %.6f %.6f\n", 0 > longest ? 0 : pauses[longest].from, 0 > longest ? 0 : pauses[longest].to);
    free(took);
}

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (2 != argc || 0 >= atof(argv[1]) || 2 != size) {
        fprintf(stderr, "usage: mpirun -np 2 perf_gap SECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (0 == rank) {
        lead(atof(argv[1]));
    } else {
        while (0 != exchange(1, 0)) {
        }
    }
    MPI_Finalize();
    return 0;
}
