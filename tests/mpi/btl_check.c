/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MPI programs, by name, for what the stream does not show: "late" (one rank computes while the others connect), "leaves FILE" (the sender
 * computes after its first message, until the receiver has made FILE), "threads" (MPI_THREAD_MULTIPLE), "everybody" (all pairs have their
 * first contact at once), "crowd" ("everybody", repeated), "onesided" (windows), "fork" (a child is born during traffic), "single" (one long
 * message; the counters show its parts), "steady" (the same memory again and again), "cache" (memory is unmapped and mapped again at the same
 * address). Every byte is checked; the exit code is 0 only if all is right.
 */
#include "../payload.h"

#include <fcntl.h>
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 60, LARGEST = 300000, COMPUTE_SECONDS = 4, CACHE_ROUNDS = 24, CACHED = 512 * 1024 };

static int rank, size;
static int wrong;
static const char *file = "/"; /* a file that always exists */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void fill(uint8_t *bytes, size_t length, unsigned seed)
{
    payload_fill(bytes, length, seed);
}

static void check(const uint8_t *bytes, size_t length, unsigned seed)
{
    const size_t at = payload_first_wrong(bytes, length, seed);

    if (at < length) {
        fprintf(stderr, "rank %d: byte %zu of %zu (seed %u) is wrong\n", rank, at, length, seed);
        __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
    }
}

/* One exchange with a peer, both directions at once. */
static void exchange(int peer, int tag, size_t length, unsigned seed, uint8_t *out, uint8_t *in)
{
    fill(out, length, seed + (unsigned) rank);
    memset(in, 0, length);
    MPI_Sendrecv(out, (int) length, MPI_BYTE, peer, tag, in, (int) length, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(in, length, seed + (unsigned) peer);
}

/* Waits outside MPI, and leaves the core to the other rank. */
static void compute(double seconds)
{
    double end = now() + seconds;

    while (now() < end) {
        struct timespec nap = {.tv_nsec = 1000000};
        nanosleep(&nap, NULL);
    }
}

/* The message that opened the connection arrives although its sender no longer calls MPI: the sender calls MPI again only after the
 * receiver has the message. */
static void leaves(void)
{
    uint8_t byte = 42;

    if (0 == rank) {
        MPI_Send(&byte, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        while (0 != access(file, F_OK)) {
            compute(0.01);
        }
    } else if (1 == rank) {
        byte = 0;
        MPI_Recv(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong = 42 != byte;
        close(creat(file, 0644));
    }
}

static void late(void)
{
    static uint8_t out[LARGEST], in[LARGEST];

    if (1 == rank) {
        compute(COMPUTE_SECONDS);
    }
    if (2 > rank) {
        exchange(1 - rank, 0, 8, 1, out, in);
        exchange(1 - rank, 0, LARGEST, 2, out, in);
    }
}

static void *thread_main(void *argument)
{
    int id = (int) (intptr_t) argument, peer = rank ^ 1;
    uint8_t *out = malloc(LARGEST), *in = malloc(LARGEST);

    for (int round = 0; round < ROUNDS; ++round) {
        static const size_t lengths[] = {1, 100, 3000, 13000, 70000, LARGEST};
        exchange(peer, id, lengths[(round + id) % 6], (unsigned) (round * THREADS + id), out, in);
    }
    free(out);
    free(in);
    return NULL;
}

static void threads(void)
{
    pthread_t thread[THREADS];

    for (intptr_t i = 0; i < THREADS; ++i) {
        pthread_create(&thread[i], NULL, thread_main, (void *) i);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(thread[i], NULL);
    }
}

/* All pairs at once: both sides of every connection start it. */
static void everybody(void)
{
    enum { LENGTH = 20000 };
    uint8_t *buffers = malloc((size_t) 2 * LENGTH * (size_t) size);
    MPI_Request *requests = malloc(sizeof(*requests) * 2 * (size_t) size);

    for (int p = 0; p < size; ++p) {
        uint8_t *in = buffers + (size_t) 2 * LENGTH * (size_t) p, *out = in + LENGTH;
        memset(in, 0, LENGTH);
        fill(out, LENGTH, (unsigned) (rank * 1000 + p));
        MPI_Irecv(in, LENGTH, MPI_BYTE, p, 0, MPI_COMM_WORLD, &requests[2 * p]);
        MPI_Isend(out, LENGTH, MPI_BYTE, p, 0, MPI_COMM_WORLD, &requests[2 * p + 1]);
    }
    MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
    for (int p = 0; p < size; ++p) {
        check(buffers + (size_t) 2 * LENGTH * (size_t) p, LENGTH, (unsigned) (p * 1000 + rank));
    }
    free(requests);
    free(buffers);
}

static void crowd(void)
{
    for (int round = 0; round < ROUNDS; ++round) {
        everybody();
    }
}

static void single(void)
{
    enum { LENGTH = 3000000 };
    uint8_t *bytes = malloc(LENGTH);

    if (0 == rank) {
        fill(bytes, LENGTH, 7);
        MPI_Send(bytes, LENGTH, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else if (1 == rank) {
        memset(bytes, 0, LENGTH);
        MPI_Recv(bytes, LENGTH, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(bytes, LENGTH, 7);
    }
    free(bytes);
}

static void onesided(void)
{
    static uint8_t window[LARGEST], out[LARGEST], in[LARGEST];
    MPI_Win win;
    int peer = rank ^ 1;

    fill(out, LARGEST, (unsigned) rank);
    MPI_Win_create(window, LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(out, LARGEST, MPI_BYTE, peer, 0, LARGEST, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    check(window, LARGEST, (unsigned) peer);
    MPI_Get(in, LARGEST, MPI_BYTE, peer, 0, LARGEST, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    check(in, LARGEST, (unsigned) rank);
    MPI_Win_free(&win);
}

static void fork_in_traffic(void)
{
    static uint8_t out[LARGEST], in[LARGEST];

    for (int round = 0; round < 20; ++round) {
        pid_t child;
        exchange(rank ^ 1, 0, LARGEST, (unsigned) round, out, in);
        child = fork();
        if (0 == child) {
            memset(in, 0xff, LARGEST); /* changes the child's copy, never the parent's */
            _exit(0);
        }
        exchange(rank ^ 1, 1, LARGEST, (unsigned) (100 + round), out, in);
        waitpid(child, NULL, 0);
    }
}

/* Maps pages at `where`; NULL: anywhere. */
static uint8_t *map(void *where)
{
    void *at = mmap(where, CACHED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (NULL == where ? 0 : MAP_FIXED), -1, 0);

    if (MAP_FAILED == at) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return at;
}

static void steady(void)
{
    uint8_t *out = map(NULL), *in = map(NULL);

    for (unsigned round = 0; round < CACHE_ROUNDS; ++round) {
        exchange(rank ^ 1, 0, CACHED, round, out, in);
    }
}

/* Puts other pages at the same address: for the whole buffer, for a part in its middle, or after moving the old pages away (which stay
 * usable at their new address). */
static void renew(uint8_t *at, unsigned how)
{
    enum { PART = CACHED / 4 };

    if (0 == how % 3) {
        munmap(at, CACHED);
        map(at);
    } else if (1 == how % 3) {
        munmap(at + PART, PART);
        if (at + PART != mmap(at + PART, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)) {
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    } else {
        uint8_t *away = map(NULL), *old = malloc(CACHED);
        memcpy(old, at, CACHED);
        if (away != mremap(at, CACHED, CACHED, MREMAP_MAYMOVE | MREMAP_FIXED, away)) {
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        map(at);
        exchange(rank ^ 1, 1, CACHED, 1000 + how, away, at);
        memset(at, 0, CACHED);
        fill(old, CACHED, 1000 + how + (unsigned) rank);
        wrong += 0 != memcmp(old, away, CACHED);
        munmap(away, CACHED);
        free(old);
    }
}

static void cache(void)
{
    uint8_t *out = map(NULL), *in = map(NULL);

    mallopt(M_MMAP_THRESHOLD, CACHED / 2); /* free() returns buffers of this size to the system */
    for (unsigned round = 0; round < CACHE_ROUNDS; ++round) {
        uint8_t *heap_out = malloc(CACHED), *heap_in = malloc(CACHED);
        exchange(rank ^ 1, 0, CACHED, round, out, in);
        renew(out, round);
        renew(in, round + 1);
        exchange(rank ^ 1, 0, CACHED, 100 + round, out, in);
        exchange(rank ^ 1, 0, CACHED, 200 + round, heap_out, heap_in);
        free(heap_out);
        free(heap_in);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {{"late", late},         {"leaves", leaves},        {"threads", threads}, {"everybody", everybody}, {"crowd", crowd},
                    {"onesided", onesided}, {"fork", fork_in_traffic}, {"single", single},   {"steady", steady},       {"cache", cache}};
    const char *wanted = 1 < argc ? argv[1] : "";
    int level, all = 0, found = 0;
    double begin;

    file = 2 < argc ? argv[2] : file;
    MPI_Init_thread(&argc, &argv, 0 == strcmp(wanted, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    begin = now();
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); ++i) {
        if (0 == strcmp(programs[i].name, wanted)) {
            found = 1;
            programs[i].run();
        }
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%s: %s on %d ranks in %.2f s\n", wanted, found && 0 == all ? "all right" : "WRONG", size, now() - begin);
    }
    MPI_Finalize();
    return found && 0 == all ? 0 : 1;
}
