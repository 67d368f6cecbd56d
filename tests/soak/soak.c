/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The soak: a random mix of operations, verified. soak SEED STEPS [drains] [threads] [windowless] [until=FILE]. With "drains" the ranks take ports out of
 * service meanwhile. With "threads" a second thread of each rank exchanges messages, and there are no windows. The job ends before the last step if rank 0 finds the
 * FILE. Prints "VERIFIED n checks" and "DONE name n, ...", which counts each operation of rank 0, or one line that begins with WRONG, and then
 * ends with status 3. DESIGN.txt section 13.
 */
#include "soak.h"

#include "../payload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t soak_seed, soak_checked;

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t soak_draw(soak_t *s, uint64_t n)
{
    s->random += UINT64_C(0x9e3779b97f4a7c15);
    return mix(s->random) % n;
}

size_t soak_draw_length(soak_t *s)
{
    switch (soak_draw(s, 8)) {
    case 0:
        return (size_t) soak_draw(s, 2) * 8;
    case 1:
    case 2:
        return (size_t) soak_draw(s, 256);
    case 3:
        return 1900 + (size_t) soak_draw(s, 300);
    case 4:
        return 12000 + (size_t) soak_draw(s, 800);
    case 5:
        return (size_t) soak_draw(s, 65000);
    case 6:
        return 65000 + (size_t) soak_draw(s, 1000);
    default:
        return (size_t) soak_draw(s, SOAK_MAX_BYTES);
    }
}

uint64_t soak_key(const soak_t *s, int sender, int receiver, uint64_t sequence)
{
    return mix(mix(mix(soak_seed ^ s->step << 20) ^ (uint64_t) (unsigned) sender << 32 ^ (unsigned) receiver) + sequence);
}

void soak_fill(void *to, size_t length, uint64_t key)
{
    payload_fill(to, length, (uint32_t) key);
}

static void wrong(const soak_t *s, const char *text)
{
    int world;

    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    fprintf(stderr, "WRONG rank %d, operation %" PRIu64 ": %s\n", world, s->step, text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 3);
    abort();
}

void soak_check_equal(const soak_t *s, uint64_t is, uint64_t expected, const char *what)
{
    char text[256];

    __atomic_add_fetch(&soak_checked, 1, __ATOMIC_RELAXED);
    if (is != expected) {
        snprintf(text, sizeof(text), "%s is %" PRIu64 ", not %" PRIu64, what, is, expected);
        wrong(s, text);
    }
}

void soak_check(const soak_t *s, const void *from, size_t length, uint64_t key, const char *what)
{
    soak_check_equal(s, payload_first_wrong(from, length, (uint32_t) key), length, what);
}

void *soak_room(size_t bytes)
{
    void *room = malloc(0 == bytes ? 1 : bytes);

    if (NULL == room) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return room;
}

void *soak_receive_room(size_t bytes)
{
    void *room = payload_room(bytes);

    if (NULL == room) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return room;
}

void soak_check_blank(const soak_t *s, const void *room, size_t from, size_t to, const char *what)
{
    const size_t at = (size_t) payload_first_written(room, (ptrdiff_t) from, (ptrdiff_t) to);

    if (at != to) {
        soak_check_equal(s, at, to, what);
    }
}

static void check_whole(const soak_t *s, const char *fault)
{
    __atomic_add_fetch(&soak_checked, 1, __ATOMIC_RELAXED);
    if (NULL != fault) {
        wrong(s, fault);
    }
}

void soak_give_back(const soak_t *s, void *room, size_t used)
{
    check_whole(s, payload_give_back(room, used));
}

void soak_operate(soak_t *s, const soak_table_t *table)
{
    soak_row_t *row = &table->rows[soak_draw(s, table->count)];

    ++row->times;
    row->run(s, row->variant);
}

/* After a rank has received all messages that it asked for, no message is left for it, that is, no second copy. */
static void nothing_is_left(const soak_t *s)
{
    int is_left = 0;

    for (int i = 0; i < 20; ++i) {
        SOAK_MPI(s, MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, s->comm, &is_left, MPI_STATUS_IGNORE));
        soak_check_equal(s, (uint64_t) is_left, 0, "number of messages left over");
    }
}

static struct {
    uint64_t steps;
    bool drain, thread, windowless;
    const char *until; /* NULL: the steps alone end the job */
} asked;

/* Open MPI 4.1 has no windows over a PML for MPI_THREAD_MULTIPLE, and later releases have none at all ("windowless"). */
static void one_of_all(soak_t *s)
{
    uint64_t what = soak_draw(s, asked.thread || asked.windowless ? 8 : 10);

    soak_operate(s, what < 4 ? &soak_point_to_point : what < 8 ? &soak_collective : &soak_one_sided);
}

/* Runs an operation, sometimes on a new communicator: a copy of the world, or one of two parts of the ranks. */
static void operate(soak_t *world)
{
    uint64_t how = soak_draw(world, 12);
    soak_t s = *world;

    if (how > 1) {
        one_of_all(world);
        return;
    }
    if (0 == how) {
        SOAK_MPI(world, MPI_Comm_dup(world->comm, &s.comm));
    } else {
        int colour = (world->rank * 7 + (int) soak_draw(world, 5)) % 2;
        SOAK_MPI(world, MPI_Comm_split(world->comm, colour, -world->rank, &s.comm));
    }
    MPI_Comm_set_errhandler(s.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(s.comm, &s.rank);
    MPI_Comm_size(s.comm, &s.size);
    s.random = mix(world->random ^ (uint64_t) s.size);
    one_of_all(&s);
    nothing_is_left(&s);
    SOAK_MPI(world, MPI_Comm_free(&s.comm));
}

static void tell(const soak_table_t *table, const char *separator)
{
    for (size_t i = 0; i < table->count; ++i) {
        printf("%s%s %lu", 0 == i ? separator : ", ", table->rows[i].name, table->rows[i].times);
    }
}

static bool read_arguments(int argc, char **argv)
{
    if (3 > argc) {
        return false;
    }
    soak_seed = strtoull(argv[1], NULL, 0);
    asked.steps = strtoull(argv[2], NULL, 0);
    for (int i = 3; i < argc; ++i) {
        if (0 == strcmp("drains", argv[i])) {
            asked.drain = true;
        } else if (0 == strcmp("threads", argv[i])) {
            asked.thread = true;
        } else if (0 == strcmp("windowless", argv[i])) {
            asked.windowless = true;
        } else if (0 == strncmp("until=", argv[i], 6)) {
            asked.until = argv[i] + 6;
        } else {
            return false;
        }
    }
    return true;
}

/* Rank 0 decides. */
static bool is_over(const soak_t *world)
{
    int over = NULL != asked.until && 0 == world->rank && 0 == access(asked.until, F_OK);

    if (NULL != asked.until) {
        SOAK_MPI(world, MPI_Bcast(&over, 1, MPI_INT, 0, world->comm));
    }
    return 0 != over || world->step == asked.steps;
}

static void begin_mpi(int *argc, char ***argv)
{
    int provided;

    MPI_Init_thread(argc, argv, asked.thread ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    if (asked.thread && MPI_THREAD_MULTIPLE != provided) {
        fprintf(stderr, "soak: this MPI has no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

int main(int argc, char **argv)
{
    soak_t world = {.comm = MPI_COMM_WORLD};
    uint64_t all = 0, exchanges = 0;
    unsigned long drains = 0;

    if (!read_arguments(argc, argv)) {
        fprintf(stderr, "usage: soak SEED STEPS [drains] [threads] [until=FILE]\n");
        return 2;
    }
    begin_mpi(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    world.random = mix(soak_seed + 1);
    if (asked.drain) {
        soak_drain_begin(&world);
    }
    if (asked.thread) {
        soak_thread_begin(&world);
    }
    for (world.step = 0; !is_over(&world); ++world.step) {
        drains += asked.drain && soak_drain_step(&world);
        operate(&world);
    }
    if (asked.thread) {
        exchanges = soak_thread_end(&world);
    }
    if (asked.drain) {
        soak_drain_end(&world);
    }
    SOAK_MPI(&world, MPI_Allreduce(&soak_checked, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    nothing_is_left(&world);
    check_whole(&world, payload_recheck());
    if (0 == world.rank) {
        printf("VERIFIED %" PRIu64 " checks\n", all);
        tell(&soak_point_to_point, "DONE ");
        tell(&soak_collective, ", ");
        tell(&soak_one_sided, ", ");
        printf(", drain %lu\n", drains);
        if (asked.thread) {
            printf("THREADS %" PRIu64 " exchanges of rank 0\n", exchanges);
        }
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
