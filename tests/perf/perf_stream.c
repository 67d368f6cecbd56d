/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * perf_stream BYTES SECONDS: rank 0 streams messages of one size to rank 1 for this time; rank 1 checks every page of each message and samples
 * the number of bytes that have arrived every 10 ms. Between two messages the curve is a straight line. Rank 1 prints the time of the first
 * message (seconds since 1970) and the samples; it also prints when the PML saw an error and when it continued, in ms since the first message.
 * DESIGN.txt section 14.10.
 */
#include "perf_counter.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WINDOW = 8, PAGE = 4096, SAMPLE_MS = 10, KEPT = 2000000 };

static int rank, bytes;
static char *room[WINDOW];
static double *arrived; /* rank 1: when message i was complete, ms */

static void die(const char *what)
{
    fprintf(stderr, "perf_stream: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static double clock_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

/* The time of the monotonic clock, which both ranks share because they run on one machine. */
static double now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

/* Writes a word into each page that names the message and the page; in the last message of the stream all words are 0. */
static void mark(char *buffer, int64_t message)
{
    for (int at = 0; at + (int) sizeof(message) <= bytes; at += PAGE) {
        const int64_t word = 0 == message ? 0 : message * 65536 + at / PAGE;

        memcpy(buffer + at, &word, sizeof(word));
    }
}

static void check(const char *buffer, int64_t message)
{
    for (int at = 0; at + (int) sizeof(message) <= bytes; at += PAGE) {
        int64_t word;

        memcpy(&word, buffer + at, sizeof(word));
        if (word != message * 65536 + at / PAGE) {
            die("wrong data");
        }
    }
}

static void send_all(double seconds)
{
    MPI_Request r[WINDOW];
    const double end = now_ms() + seconds * 1e3;
    int64_t n = 0;

    for (int i = 0; i < WINDOW; ++i) {
        r[i] = MPI_REQUEST_NULL;
    }
    for (int more = 1; more;) {
        const int slot = (int) (n % WINDOW);

        MPI_Wait(&r[slot], MPI_STATUS_IGNORE);
        more = now_ms() < end && n + 1 < KEPT;
        ++n;
        mark(room[slot], more ? n : 0);
        MPI_Isend(room[slot], bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &r[slot]);
    }
    MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
}

/* Returns the number of messages that came; cancels the WINDOW - 1 receives after the last message. */
static int64_t receive_all(void)
{
    MPI_Request r[WINDOW];
    int64_t n = 0;

    for (int i = 0; i < WINDOW; ++i) {
        MPI_Irecv(room[i], bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &r[i]);
    }
    for (;;) {
        const int slot = (int) (n % WINDOW);
        int64_t word;

        MPI_Wait(&r[slot], MPI_STATUS_IGNORE);
        memcpy(&word, room[slot], sizeof(word));
        if (0 == word) {
            break;
        }
        arrived[n] = now_ms();
        check(room[slot], n + 1);
        ++n;
        MPI_Irecv(room[slot], bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &r[slot]);
    }
    for (int i = 0; i < WINDOW; ++i) {
        if (MPI_REQUEST_NULL != r[i]) {
            MPI_Cancel(&r[i]);
            MPI_Wait(&r[i], MPI_STATUS_IGNORE);
        }
    }
    return n;
}

/* Bytes that had arrived `ms` after the first message, by linear interpolation between two messages. */
static double curve(int64_t n, double ms, int64_t *from)
{
    while (*from + 1 < n && arrived[*from + 1] - arrived[0] <= ms) {
        ++*from;
    }
    if (*from + 1 >= n) {
        return (double) (n - 1) * bytes;
    }
    return ((double) *from + (ms + arrived[0] - arrived[*from]) / (arrived[*from + 1] - arrived[*from])) * bytes;
}

static void print_samples(int64_t n)
{
    const double end = arrived[n - 1] - arrived[0];
    double before = 0;
    int64_t from = 0;

    for (double ms = SAMPLE_MS; ms <= end; ms += SAMPLE_MS) {
        const double now = curve(n, ms, &from);

        printf("sample %.0f %.0f\n", ms, now - before);
        before = now;
    }
}

static MPI_T_pvar_session session;

int main(int argc, char **argv)
{
    unsigned long long mine[2] = {0}, all[4];
    MPI_T_pvar_handle error_at, resumed_at;
    int64_t n = 0;
    int provided;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (3 != argc || PAGE > atoi(argv[1])) {
        die("usage: perf_stream BYTES SECONDS, at least a page");
    }
    bytes = atoi(argv[1]);
    if (MPI_SUCCESS != MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) || MPI_SUCCESS != MPI_T_pvar_session_create(&session)) {
        die("no MPI_T");
    }
    error_at = perf_counter(session, "pml_bfo_error_at");
    resumed_at = perf_counter(session, "pml_bfo_resumed_at");
    arrived = calloc(KEPT, sizeof(*arrived));
    for (int i = 0; i < WINDOW; ++i) {
        room[i] = calloc(1, (size_t) bytes);
        if (NULL == room[i] || NULL == arrived) {
            die("no memory");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        printf("go\n");
        fflush(stdout);
        send_all(atof(argv[2]));
    } else {
        n = receive_all();
    }
    MPI_T_pvar_read(session, error_at, &mine[0]);
    MPI_T_pvar_read(session, resumed_at, &mine[1]);
    MPI_Gather(mine, 2, MPI_UNSIGNED_LONG_LONG, all, 2, MPI_UNSIGNED_LONG_LONG, 1, MPI_COMM_WORLD);
    if (1 == rank && n > 1) {
        printf("first %.6f\n", (clock_ms(CLOCK_REALTIME) - now_ms() + arrived[0]) / 1e3);
        print_samples(n);
        for (int i = 0; i < 4; ++i) {
            if (0 != all[i]) {
                printf("%s %.3f\n", 0 == i % 2 ? "error" : "resumed", (double) all[i] / 1e6 - arrived[0]);
            }
        }
    }
    MPI_Finalize();
    return 0;
}
