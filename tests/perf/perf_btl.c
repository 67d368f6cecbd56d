/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One measurement for the scripts btl, pml and queues; rank 0 prints the figure. perf_btl KIND [BYTES [ROUNDS]]:
 *   latency (median half round trip, us), fastest (the fastest block), rate (messages/s), bandwidth (MB/s, windows of 16 one way),
 *   strided (the same, blocks of 256 bytes with gaps as long), incast (messages/s that rank 0 receives from all others at once),
 *   flood (rank 1 sends 1,000 short messages and then BYTES while rank 0 sleeps; median time, us, until rank 0 has received BYTES, before the
 *   others), ping (messages out and in for callgrind), first (median time of the first round trip to a new peer, us), contact (the first
 *   exchange of all pairs, ms), memory (KiB of proportional memory per rank: before the exchange of all pairs, and its growth).
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 8 << 20, WINDOW = 64, LARGE_WINDOW = 16, WARM = 10, FLOOD = 1000, FLOOD_BYTES = 64 };

static char *out, *in;
static int rank, size;

static void round_trip(int bytes)
{
    if (0 == rank) {
        MPI_Send(out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *) a > *(const double *) b) - (*(const double *) a < *(const double *) b);
}

/* Half a round trip in us: sorts blocks of 100 round trips, without the first blocks, and returns the block at `share`. */
static double latency(int bytes, int rounds, double share)
{
    enum { BLOCK = 100 };
    int blocks = rounds / BLOCK, skip = blocks / WARM;
    double *times = calloc((size_t) blocks, sizeof(*times)), found;

    for (int b = 0; b < blocks; ++b) {
        double begin = MPI_Wtime();
        for (int i = 0; i < BLOCK; ++i) {
            round_trip(bytes);
        }
        times[b] = (MPI_Wtime() - begin) / BLOCK / 2 * 1e6;
    }
    qsort(times + skip, (size_t) (blocks - skip), sizeof(*times), ascending);
    found = times[skip + (int) (share * (blocks - skip - 1))];
    free(times);
    return found;
}

/* Seconds for `rounds` windows of `count` elements in one direction, with an answer to each. */
static double windows_of(int count, MPI_Datatype type, int rounds, int window)
{
    MPI_Request request[WINDOW];
    double begin = 0;

    for (int i = -rounds / WARM; i < rounds; ++i) {
        if (0 == i) {
            begin = MPI_Wtime();
        }
        for (int w = 0; w < window; ++w) {
            if (0 == rank) {
                MPI_Isend(out, count, type, 1, 2, MPI_COMM_WORLD, &request[w]);
            } else {
                MPI_Irecv(in, count, type, 0, 2, MPI_COMM_WORLD, &request[w]);
            }
        }
        MPI_Waitall(window, request, MPI_STATUSES_IGNORE);
        if (0 == rank) {
            MPI_Recv(in, 0, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(out, 0, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - begin;
}

static double windows(int bytes, int rounds, int window)
{
    return windows_of(bytes, MPI_CHAR, rounds, window);
}

static double strided(int bytes, int rounds)
{
    enum { BLOCK = 256 };
    MPI_Datatype blocks;
    double seconds;

    MPI_Type_vector(bytes / BLOCK, BLOCK, 2 * BLOCK, MPI_CHAR, &blocks);
    MPI_Type_commit(&blocks);
    seconds = windows_of(1, blocks, rounds, LARGE_WINDOW);
    MPI_Type_free(&blocks);
    return seconds;
}

/* Seconds for `rounds` windows from each other rank to rank 0, which answers each. */
static double incast(int bytes, int rounds)
{
    const int n = 0 == rank ? (size - 1) * WINDOW : WINDOW;
    MPI_Request *request = malloc((size_t) n * sizeof(*request));
    double begin = 0;

    for (int i = -1 - rounds / WARM; i < rounds; ++i) {
        if (0 == i) {
            begin = MPI_Wtime();
        }
        for (int w = 0; w < n; ++w) {
            if (0 == rank) {
                MPI_Irecv(in, bytes, MPI_CHAR, 1 + w / WINDOW, 7, MPI_COMM_WORLD, &request[w]);
            } else {
                MPI_Isend(out, bytes, MPI_CHAR, 0, 7, MPI_COMM_WORLD, &request[w]);
            }
        }
        MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
        for (int p = 1; 0 == rank && p < size; ++p) {
            MPI_Send(out, 0, MPI_CHAR, p, 8, MPI_COMM_WORLD);
        }
        if (0 != rank) {
            MPI_Recv(in, 0, MPI_CHAR, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    free(request);
    return MPI_Wtime() - begin;
}

/* Seconds for a message of `bytes` after the flood; then rank 0 receives the flood. */
static double after_flood(int bytes)
{
    const struct timespec flood = {.tv_nsec = 10000000};
    MPI_Request request[FLOOD + 1];
    double took = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        nanosleep(&flood, NULL);
        took = -MPI_Wtime();
        MPI_Recv(in, bytes, MPI_CHAR, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        took += MPI_Wtime();
        for (int i = 0; i < FLOOD; ++i) {
            MPI_Recv(in, FLOOD_BYTES, MPI_CHAR, 1, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    } else {
        for (int i = 0; i < FLOOD; ++i) {
            MPI_Isend(out, FLOOD_BYTES, MPI_CHAR, 0, 10, MPI_COMM_WORLD, &request[i]);
        }
        MPI_Isend(out, bytes, MPI_CHAR, 0, 9, MPI_COMM_WORLD, &request[FLOOD]);
        MPI_Waitall(FLOOD + 1, request, MPI_STATUSES_IGNORE);
    }
    return took;
}

static double flood(int bytes, int rounds)
{
    double *times = calloc((size_t) rounds, sizeof(*times)), median;

    (void) after_flood(bytes);
    for (int i = 0; i < rounds; ++i) {
        times[i] = after_flood(bytes);
    }
    qsort(times, (size_t) rounds, sizeof(*times), ascending);
    median = times[rounds / 2];
    free(times);
    return median;
}

/* callgrind counts these functions: a message out, and a message in that has already arrived. Never inlined. */
__attribute__((noinline)) static void perf_btl_out(int bytes)
{
    MPI_Send(out, bytes, MPI_CHAR, 1 - rank, 4, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void perf_btl_in(int bytes)
{
    MPI_Recv(in, bytes, MPI_CHAR, 1 - rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ping(int bytes, int rounds)
{
    const struct timespec answer = {.tv_nsec = 1000000};

    for (int i = 0; i < 20; ++i) { /* until the connection is made */
        MPI_Sendrecv(out, bytes, MPI_CHAR, 1 - rank, 4, in, bytes, MPI_CHAR, 1 - rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < rounds; ++i) {
        if (0 == rank) {
            perf_btl_out(bytes);
            nanosleep(&answer, NULL);
            perf_btl_in(bytes);
        } else if (1 == rank) {
            perf_btl_in(bytes);
            perf_btl_out(bytes);
        }
    }
}

static double first(void)
{
    double *times = calloc((size_t) size, sizeof(*times));
    double median;

    for (int p = 1; p < size; ++p) {
        if (0 == rank) {
            double begin = MPI_Wtime();
            MPI_Send(out, 8, MPI_CHAR, p, 5, MPI_COMM_WORLD);
            MPI_Recv(in, 8, MPI_CHAR, p, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            times[p - 1] = (MPI_Wtime() - begin) * 1e6;
        } else if (p == rank) {
            MPI_Recv(in, 8, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, 8, MPI_CHAR, 0, 5, MPI_COMM_WORLD);
        }
    }
    qsort(times, (size_t) size - 1, sizeof(*times), ascending);
    median = times[(size - 1) / 2];
    free(times);
    return median;
}

/* Every pair exchanges `bytes`, all at once; returns the seconds until the last rank has everything. */
static double contact(int bytes)
{
    char *from = calloc((size_t) size, (size_t) bytes);
    MPI_Request *request = malloc(2 * (size_t) size * sizeof(*request));
    double begin = MPI_Wtime(), own, all = 0;

    for (int p = 0; p < size; ++p) {
        MPI_Irecv(from + (size_t) p * (size_t) bytes, bytes, MPI_CHAR, p, 6, MPI_COMM_WORLD, &request[2 * p]);
        MPI_Isend(out, bytes, MPI_CHAR, p, 6, MPI_COMM_WORLD, &request[2 * p + 1]);
    }
    MPI_Waitall(2 * size, request, MPI_STATUSES_IGNORE);
    own = MPI_Wtime() - begin;
    MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    free(request);
    free(from);
    return all;
}

/* In KiB; a shared page counts in part for each process. */
static double memory_now(void)
{
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    double kib = 0;

    while (NULL != file && NULL != fgets(line, sizeof(line), file)) {
        if (1 == sscanf(line, "Pss: %lf", &kib)) {
            break;
        }
    }
    if (NULL != file) {
        fclose(file);
    }
    return kib;
}

/* Exchanges messages of up to `most` bytes. */
static void memory(int most)
{
    double before, grown, mean[2] = {0}, own[2];

    before = memory_now();
    MPI_Barrier(MPI_COMM_WORLD); /* no rank connects before all have measured, except for the few connections that the barrier needs */
    for (int round = 0; round < 20; ++round) {
        contact(64);
    }
    for (int bytes = 4000; bytes <= most; bytes *= 10) {
        contact(bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    grown = memory_now() - before;
    MPI_Barrier(MPI_COMM_WORLD); /* no rank leaves before all have measured */
    own[0] = before;
    own[1] = grown;
    MPI_Reduce(own, mean, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%.0f %.0f\n", mean[0] / size, mean[1] / size);
    }
}

int main(int argc, char **argv)
{
    const char *kind = 1 < argc ? argv[1] : "";
    int bytes = 2 < argc ? atoi(argv[2]) : 8, rounds = 3 < argc ? atoi(argv[3]) : 1000;
    double value = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = malloc(MOST);
    in = malloc(MOST);
    if (MOST < bytes || NULL == out || NULL == in) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(out, 1, MOST);
    memset(in, 2, MOST);
    if (0 == strcmp(kind, "latency")) {
        value = latency(bytes, rounds, 0.5);
    } else if (0 == strcmp(kind, "fastest")) {
        value = latency(bytes, rounds, 0.02);
    } else if (0 == strcmp(kind, "rate")) {
        value = rounds * WINDOW / windows(bytes, rounds, WINDOW);
    } else if (0 == strcmp(kind, "bandwidth")) {
        value = 1e-6 * bytes * rounds * LARGE_WINDOW / windows(bytes, rounds, LARGE_WINDOW);
    } else if (0 == strcmp(kind, "strided") && MOST / 2 >= bytes) {
        value = 1e-6 * bytes * rounds * LARGE_WINDOW / strided(bytes, rounds);
    } else if (0 == strcmp(kind, "incast")) {
        value = (size - 1) * rounds * WINDOW / incast(bytes, rounds);
    } else if (0 == strcmp(kind, "flood")) {
        value = flood(bytes, rounds) * 1e6;
    } else if (0 == strcmp(kind, "ping")) {
        ping(bytes, rounds);
    } else if (0 == strcmp(kind, "first")) {
        value = first();
    } else if (0 == strcmp(kind, "contact")) {
        value = contact(bytes) * 1e3;
    } else if (0 == strcmp(kind, "memory")) {
        memory(bytes);
    } else {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (0 == rank && 0 != strcmp(kind, "memory")) {
        printf("%.4f\n", value);
    }
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
