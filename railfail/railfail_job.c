/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * railfail_job: the MPI program that railfail(1) starts for each cell. It repeats one operation, window by window, verifies
 * every byte, and reports its progress on rank 0's standard output:
 *   RF begin          MPI_Init is over; with --hold contact rank 0 waits for "go" on its standard input before the first message
 *   RF windows N      N windows are done; at most ten times a second
 *   RF closing        with --hold finalize: rank 0 waits for "go" before the last barrier and MPI_Finalize
 *   RF end R ...      rank R has verified all; MPI_Finalize follows
 * The line "end" on standard input, or the end of standard input, ends the job.
 */
#include "rf.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int rf_rank, rf_ranks, rf_threads_provided;
MPI_Comm rf_world;
char *rf_program;
rf_wrong_t rf_wrong = RF_RIGHT;
uint64_t rf_wrong_at = 11;
double rf_patience = 10;

static const rf_operation_t *const all_operations[] = {rf_p2p, rf_coll, rf_rma, rf_threads, rf_spawn};
static MPI_Comm control;
static const char *hold = "";
static char heard[256]; /* lines of standard input that were read and not yet used */
static bool is_input_over;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

/* Has railfail sent this word? With `wait` waits until it has. The end of the input counts as every word. */
static bool has_said(const char *word, bool wait)
{
    while (!is_input_over && NULL == strstr(heard, word)) {
        struct pollfd in = {STDIN_FILENO, POLLIN, 0};
        size_t used = strlen(heard);
        ssize_t n;

        if (0 >= poll(&in, 1, wait ? -1 : 0)) {
            if (!wait) {
                return false;
            }
            continue;
        }
        n = used + 1 < sizeof heard ? read(STDIN_FILENO, heard + used, sizeof heard - 1 - used) : 0;
        is_input_over = 0 >= n;
        heard[used + (size_t) (0 < n ? n : 0)] = '\0';
    }
    return true;
}

/* Rank 0 tells all other ranks whether another window follows. */
static bool goes_on(bool decision)
{
    int word = decision;

    if (0 != rf_rank) {
        RF_MPI(MPI_Recv, (&word, 1, MPI_INT, 0, 1, control, MPI_STATUS_IGNORE));
        if (0 != word && 1 != word) {
            rf_say_wrong("flipped: a control message says %d", word);
        }
        return 1 == word;
    }
    for (int r = 1; r < rf_ranks; ++r) {
        RF_MPI(MPI_Send, (&word, 1, MPI_INT, r, 1, control));
    }
    return decision;
}

static void nothing_is_left(MPI_Comm comm)
{
    for (int i = 0; i < 20; ++i) {
        MPI_Status status;
        int is_left = 0;

        RF_MPI(MPI_Iprobe, (MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &is_left, &status));
        if (is_left) {
            rf_say_wrong("doubled: a message of rank %d is left at the end", status.MPI_SOURCE);
        }
    }
}

static void run(const rf_operation_t *operation)
{
    double from, last, said = 0, longest = 0;
    uint64_t windows = 0;

    if (0 == rf_rank) {
        rf_say("begin %d ranks", rf_ranks);
        if (0 == strcmp(hold, "contact")) {
            has_said("go", true);
        }
    }
    if (NULL != operation->begin) {
        operation->begin();
    }
    from = last = now();
    do {
        operation->window();
        ++windows;
        longest = now() - last > longest ? now() - last : longest;
        last = now();
        if (0 == rf_rank && last > said + 0.1) {
            rf_say("windows %" PRIu64, windows);
            said = last;
        }
    } while (goes_on(0 == rf_rank && !has_said("end", false)));
    if (0 == rf_rank && 0 == strcmp(hold, "finalize")) {
        rf_say("closing");
        has_said("go", true);
    }
    if (NULL != operation->end) {
        operation->end();
    }
    RF_MPI(MPI_Barrier, (rf_world));
    nothing_is_left(rf_world);
    rf_say("end %d windows %" PRIu64 " messages %" PRIu64 " longest %.3f seconds %.3f", rf_rank, windows, rf_judged(), longest, last - from);
}

static const rf_operation_t *operation_of(const char *name)
{
    for (size_t i = 0; i < sizeof all_operations / sizeof *all_operations; ++i) {
        for (const rf_operation_t *o = all_operations[i]; NULL != o->name; ++o) {
            if (NULL == name) {
                printf("%s %d %s\n", o->name, o->ranks, o->about);
            } else if (0 == strcmp(o->name, name)) {
                return o;
            }
        }
    }
    return NULL;
}

static void give_up(const char *what, const char *word)
{
    fprintf(stderr,
            "railfail_job: %s%s; usage: railfail_job OPERATION [--hold contact|finalize] [--wrong flip|lose|double|swap|drop] [--limit SECONDS]"
            " [--patience SECONDS], or railfail_job --list\n",
            what, word);
    exit(2);
}

static rf_wrong_t wrong_of(const char *name)
{
    static const char *const names[] = {"", "flip", "lose", "double", "swap", "drop"};

    for (int i = RF_FLIP; i <= RF_DROP; ++i) {
        if (0 == strcmp(names[i], name)) {
            return (rf_wrong_t) i;
        }
    }
    give_up("no such mistake: ", name);
    return RF_RIGHT;
}

/* Returns the operation; NULL for a child. */
static const rf_operation_t *read_arguments(int argc, char **argv)
{
    const rf_operation_t *operation = NULL;

    rf_program = argv[0];
    if (1 < argc && 0 == strcmp(argv[1], "--list")) {
        operation_of(NULL);
        exit(0);
    }
    if (2 > argc) {
        give_up("no operation", "");
    }
    if (0 == strcmp(argv[1], "--child")) {
        alarm(600);
        return NULL;
    }
    operation = operation_of(argv[1]);
    if (NULL == operation) {
        give_up("no such operation: ", argv[1]);
    }
    for (int i = 2; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (NULL == value) {
            give_up("no value of ", argv[i]);
        } else if (0 == strcmp(argv[i], "--hold") && (0 == strcmp(value, "contact") || 0 == strcmp(value, "finalize"))) {
            hold = value;
        } else if (0 == strcmp(argv[i], "--wrong")) {
            rf_wrong = wrong_of(value);
        } else if (0 == strcmp(argv[i], "--limit") && 0 < atoi(value)) {
            alarm((unsigned) atoi(value)); /* no process stays, whatever happens */
        } else if (0 == strcmp(argv[i], "--patience") && 0 < atof(value)) {
            rf_patience = atof(value);
        } else {
            give_up("not understood: ", argv[i]);
        }
    }
    return operation;
}

int main(int argc, char **argv)
{
    const rf_operation_t *operation = read_arguments(argc, argv);
    MPI_Comm parent;

    RF_MPI(MPI_Init_thread, (&argc, &argv, NULL != operation && 0 == strcmp(operation->name, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED,
                             &rf_threads_provided));
    RF_MPI(MPI_Comm_set_errhandler, (MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    RF_MPI(MPI_Comm_set_errhandler, (MPI_COMM_SELF, MPI_ERRORS_RETURN));
    RF_MPI(MPI_Comm_rank, (MPI_COMM_WORLD, &rf_rank));
    RF_MPI(MPI_Comm_size, (MPI_COMM_WORLD, &rf_ranks));
    RF_MPI(MPI_Comm_get_parent, (&parent));
    rf_watch();
    if (NULL == operation) {
        if (MPI_COMM_NULL == parent) {
            give_up("--child is for processes that railfail_job spawns", "");
        }
        rf_rank = RF_CHILD;
        RF_MPI(MPI_Comm_set_errhandler, (parent, MPI_ERRORS_RETURN));
        rf_child(parent);
    } else {
        if (rf_ranks < operation->ranks) {
            rf_skip("%s needs %d ranks", operation->name, operation->ranks);
        }
        RF_MPI(MPI_Comm_dup, (MPI_COMM_WORLD, &rf_world));
        RF_MPI(MPI_Comm_dup, (MPI_COMM_WORLD, &control));
        run(operation);
        RF_MPI(MPI_Comm_free, (&control));
        RF_MPI(MPI_Comm_free, (&rf_world));
    }
    RF_MPI(MPI_Finalize, ());
    return 0;
}
