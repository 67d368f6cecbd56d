/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * vm_traffic [MAX-BYTES]: ranks 2n and 2n+1 send each other windows of messages of mixed sizes; length, order and every
 * byte are verified. SIGUSR1 to an even rank starts the measurement of the longest stall again; SIGUSR2 ends its pair. At the
 * end each rank prints the verdict, the stall and bfo's counters. An MPI error ends the pair, and is printed. DESIGN.txt 17. */
#include "../payload.h"

#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW = 8, TAG = 7, HEAD = 16 };

struct traffic {
    int rank, peer, max;
    unsigned char *out[WINDOW], *in[WINDOW];
    uint64_t windows, messages, wrong;
    double said, last, stall; /* s */
};

static volatile sig_atomic_t mark, stop;

static void on_signal(int number)
{
    if (SIGUSR1 == number) {
        mark = 1;
    } else {
        stop = 1;
    }
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * UINT64_C(0x7fb5d329728ea185);
    x = (x ^ (x >> 27)) * UINT64_C(0x81dadef4bc2dd44d);
    return x ^ (x >> 33);
}

static uint64_t key_of(int sender, int receiver, uint64_t n)
{
    return mix(mix((uint64_t) sender * 1009 + (uint64_t) receiver) + n);
}

/* Most messages are short, a few have up to the largest size; the first message of a window is its head. */
static int size_of(uint64_t key, uint64_t n, int max)
{
    int top = 16 << (key % 20);
    if (0 == n % WINDOW) {
        return HEAD;
    }
    return (int) ((key >> 8) % (uint64_t) (top < max ? top : max));
}

/* The second half of the head carries the wish to end; only the even rank decides. */
static void make_window(struct traffic *t, MPI_Request *requests, uint64_t end)
{
    for (int i = 0; i < WINDOW; i++) {
        uint64_t n = t->windows * WINDOW + (uint64_t) i, key = key_of(t->rank, t->peer, n);
        int size = size_of(key, n, t->max);
        payload_fill(t->out[i], (size_t) size, (uint32_t) key);
        if (0 == i) {
            memcpy(t->out[i] + 8, &end, 8);
        }
        MPI_Irecv(t->in[i], t->max, MPI_BYTE, t->peer, TAG, MPI_COMM_WORLD, &requests[i]);
        MPI_Isend(t->out[i], size, MPI_BYTE, t->peer, TAG, MPI_COMM_WORLD, &requests[WINDOW + i]);
    }
}

static void verify(struct traffic *t, int i, MPI_Status *status)
{
    uint64_t n = t->windows * WINDOW + (uint64_t) i, key = key_of(t->peer, t->rank, n);
    int size = size_of(key, n, t->max), got = -1;
    const size_t length = 0 == i ? 8 : (size_t) size, at = payload_first_wrong(t->in[i], length, (uint32_t) key);
    const char *fault = payload_fault(t->in[i], (size_t) t->max, "outside its message");
    MPI_Get_count(status, MPI_BYTE, &got);
    if (got != size || at < length || NULL != fault) {
        fprintf(stderr, "vm_traffic: rank %d: message %llu of rank %d is WRONG (%d bytes, %d expected; the first %zu are right; %s)\n", t->rank,
                (unsigned long long) n, t->peer, got, size, at, NULL == fault ? "no byte beside the buffer was written" : fault);
        t->wrong++;
    }
    t->messages++;
}

static void tell(struct traffic *t)
{
    double now = MPI_Wtime();
    if (mark) {
        mark = 0;
        t->stall = 0;
    }
    t->stall = now - t->last > t->stall ? now - t->last : t->stall;
    t->last = now;
    if (0 == t->rank % 2 && now - t->said > 0.25) {
        t->said = now;
        printf("round %llu of rank %d, stall %.3f s\n", (unsigned long long) t->windows, t->rank, t->stall);
        fflush(stdout);
    }
}

/* Prints the error that ended a window; the error code is in the statuses. */
static void tell_error(const struct traffic *t, int error, const MPI_Status *statuses)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, class = error;
    for (int i = 0; MPI_ERR_IN_STATUS == error && i < 2 * WINDOW; i++) {
        if (MPI_SUCCESS != statuses[i].MPI_ERROR && MPI_ERR_PENDING != statuses[i].MPI_ERROR) {
            class = statuses[i].MPI_ERROR;
        }
    }
    MPI_Error_class(class, &class);
    MPI_Error_string(class, text, &length);
    printf("rank %d: peer %d: %s after %.3f s\n", t->rank, t->peer, text, MPI_Wtime() - t->last);
    fflush(stdout);
}

static int run(struct traffic *t)
{
    MPI_Request requests[2 * WINDOW];
    MPI_Status statuses[2 * WINDOW];
    uint64_t end = 0;
    t->last = MPI_Wtime();
    while (0 == end) {
        make_window(t, requests, (uint64_t) stop);
        int error = MPI_Waitall(2 * WINDOW, requests, statuses);
        if (MPI_SUCCESS != error) {
            tell_error(t, error, statuses);
            return error;
        }
        for (int i = 0; i < WINDOW; i++) {
            verify(t, i, &statuses[i]);
        }
        memcpy(&end, (0 == t->rank % 2 ? t->out[0] : t->in[0]) + 8, 8);
        t->windows++;
        tell(t);
    }
    uint64_t theirs[2] = {0, 0}, mine[2] = {t->messages, t->wrong};
    MPI_Sendrecv(mine, 2, MPI_UINT64_T, t->peer, TAG, theirs, 2, MPI_UINT64_T, t->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    t->messages += theirs[0];
    t->wrong += theirs[1];
    return MPI_SUCCESS;
}

/* bfo's counters: Open MPI counts from the moment at which the handle is made. */
static const char *counter_names[] = {"errors", "resends", "restarts", "duplicate", "stale", "rails_lost", "peers_lost"};
enum { COUNTERS = sizeof(counter_names) / sizeof(*counter_names) };
static MPI_T_pvar_session session;
static MPI_T_pvar_handle counters[COUNTERS];

static void open_counters(void)
{
    int level, index, count;
    char name[64];
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < COUNTERS; i++) {
        snprintf(name, sizeof(name), "pml_bfo_%s", counter_names[i]);
        counters[i] = MPI_T_PVAR_HANDLE_NULL;
        if (MPI_SUCCESS == MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index)) {
            MPI_T_pvar_handle_alloc(session, index, NULL, &counters[i], &count);
        }
    }
}

static void tell_counters(int rank)
{
    unsigned long long value;
    printf("counters of rank %d:", rank);
    for (int i = 0; i < COUNTERS; i++) {
        if (MPI_T_PVAR_HANDLE_NULL != counters[i] && MPI_SUCCESS == MPI_T_pvar_read(session, counters[i], &value)) {
            printf(" %s %llu", counter_names[i], value);
        }
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct traffic t = {.max = 2 == argc ? atoi(argv[1]) : 400000};
    int ranks, error;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    t.peer = t.rank ^ 1;
    if (0 != ranks % 2 || t.max < HEAD) {
        fprintf(stderr, "usage: mpirun -np 2 vm_traffic [MAX-BYTES]   (an even number of ranks, %d bytes or more)\n", HEAD);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    for (int i = 0; i < WINDOW; i++) {
        t.out[i] = malloc((size_t) t.max);
        t.in[i] = payload_room((size_t) t.max);
        if (NULL == t.out[i] || NULL == t.in[i]) {
            fprintf(stderr, "vm_traffic: no memory for messages of %d bytes\n", t.max);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    open_counters();
    error = run(&t);
    tell_counters(t.rank);
    if (0 == t.rank % 2 && MPI_SUCCESS == error) {
        printf("%s: rank %d: %llu messages, %llu wrong, stall %.3f s\n", 0 == t.wrong ? "ok" : "WRONG DATA", t.rank, (unsigned long long) t.messages,
               (unsigned long long) t.wrong, t.stall);
        fflush(stdout);
    }
    alarm(60); /* MPI_Finalize may wait for a peer that was killed */
    MPI_Finalize();
    return 0 == t.wrong && MPI_SUCCESS == error ? 0 : 1;
}
