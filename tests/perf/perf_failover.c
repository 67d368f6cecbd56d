/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * perf_failover BYTES SECONDS: two ranks exchange messages of one size, both ways at once, for this time; every message is
 * checked. Each rank prints the duration of the exchange that the loss of the rail interrupted, the median duration, and
 * the times of the failover itself according to the PML.
 * perf_failover BYTES 0 ROUNDS [BATCHES]: only messages back and forth, for callgrind; with BATCHES rank 0 prints the
 * time of one message, the median of BATCHES times ROUNDS. DESIGN.txt section 14.10.
 */
#include "perf_counter.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WINDOW = 4, KEPT = 1000000 };

static int rank, bytes;
static char *out[WINDOW], *in[WINDOW];
static double *took;
static uint64_t *began; /* monotonic clock, ns */

void perf_failover_loop(int rounds);

static void die(const char *what)
{
    fprintf(stderr, "perf_failover: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void exchange(int round)
{
    MPI_Request r[2 * WINDOW];

    for (int i = 0; i < WINDOW; ++i) {
        MPI_Irecv(in[i], bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, &r[i]);
    }
    for (int i = 0; i < WINDOW; ++i) {
        out[i][0] = out[i][bytes - 1] = (char) (round + i);
        MPI_Isend(out[i], bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, &r[WINDOW + i]);
    }
    MPI_Waitall(2 * WINDOW, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WINDOW; ++i) {
        if (in[i][0] != (char) (round + i) || in[i][bytes - 1] != in[i][0]) {
            die("wrong data");
        }
    }
}

static void expect(MPI_Request *r)
{
    MPI_Irecv(in[0], bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, r);
}

/* A message there and a message back. The receive of each is posted before the message can be sent, therefore the PML takes the same
 * path for every message. */
__attribute__((noinline)) void perf_failover_loop(int rounds)
{
    MPI_Request r;

    if (1 == rank) {
        expect(&r);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < rounds; ++i) {
        if (0 == rank) {
            expect(&r);
            MPI_Send(out[0], bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Wait(&r, MPI_STATUS_IGNORE);
        } else {
            MPI_Wait(&r, MPI_STATUS_IGNORE);
            if (i < rounds - 1) {
                expect(&r);
            }
            MPI_Send(out[0], bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

/* Duration in seconds of the exchange that was in progress at `ns`. */
static double took_at(int rounds, uint64_t ns)
{
    for (int i = 0; 0 != ns && i < rounds; ++i) {
        if (began[i] + (uint64_t) (took[i] * 1e9) >= ns) {
            return took[i];
        }
    }
    return 0;
}

static void time_loop(int rounds, int batches)
{
    double t[101];

    for (int i = 0; i < batches; ++i) {
        const double begin = MPI_Wtime();

        perf_failover_loop(rounds);
        t[i] = (MPI_Wtime() - begin) / (2.0 * rounds);
    }
    qsort(t, (size_t) batches, sizeof(*t), by_value);
    if (0 == rank) {
        printf("ns_per_message %.2f\n", t[batches / 2] * 1e9);
    }
}

/* Exchanges messages for this time; returns the number of exchanges. */
static int run(double seconds)
{
    const double begin = MPI_Wtime();
    int round = 0, more = 1;

    while (more) {
        began[round] = now_ns();
        exchange(round);
        took[round] = (double) (now_ns() - began[round]) / 1e9;
        ++round;
        more = MPI_Wtime() - begin < seconds && round < KEPT;
        if (0 == round % 16) {
            MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        } else {
            more = 1;
        }
    }
    return round;
}

static void prepare(char **argv)
{
    bytes = atoi(argv[1]);
    took = calloc(KEPT + 16, sizeof(*took));
    began = calloc(KEPT + 16, sizeof(*began));
    for (int i = 0; i < WINDOW; ++i) {
        out[i] = calloc(1, (size_t) bytes + 1);
        in[i] = calloc(1, (size_t) bytes + 1);
        if (NULL == out[i] || NULL == in[i] || NULL == took || NULL == began) {
            die("no memory");
        }
    }
}

static MPI_T_pvar_session session;
static MPI_T_pvar_handle error_at, resumed_at;

static void find_variables(void)
{
    int provided;

    if (MPI_SUCCESS != MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) || MPI_SUCCESS != MPI_T_pvar_session_create(&session)) {
        die("no MPI_T");
    }
    error_at = perf_counter(session, "pml_bfo_error_at");
    resumed_at = perf_counter(session, "pml_bfo_resumed_at");
}

int main(int argc, char **argv)
{
    unsigned long long error = 0, resumed = 0;
    double felt;
    int rounds;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (3 > argc || 1 > atoi(argv[1])) {
        die("usage: perf_failover BYTES SECONDS [ROUNDS [BATCHES]]");
    }
    prepare(argv);
    if (4 <= argc) {
        const int batches = 5 == argc ? atoi(argv[4]) : 0;

        exchange(0);
        if (0 < batches && batches < 102) {
            time_loop(atoi(argv[3]), batches);
        } else {
            perf_failover_loop(atoi(argv[3]));
        }
        MPI_Finalize();
        return 0;
    }
    find_variables();
    rounds = run(atof(argv[2]));
    MPI_T_pvar_read(session, error_at, &error);
    MPI_T_pvar_read(session, resumed_at, &resumed);
    felt = took_at(rounds, error);
    qsort(took, (size_t) rounds, sizeof(*took), by_value);
    printf("rank %d rounds %d median_us %.1f felt_ms %.3f error_at %llu resumed_at %llu\n", rank, rounds, took[rounds / 2] * 1e6, felt * 1e3, error,
           resumed);
    MPI_Finalize();
    return 0;
}
