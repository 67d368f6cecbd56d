/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A world in one process: several MPI processes (images of the whole PML and BTL), their threads as coroutines, one clock, one fabric.
 * A seed draws everything: the layout, the parameters, the traffic, the faults, and who runs next. The same seed gives the same run,
 * bit for bit. This header is what the parts of the host share; images call the functions of world_calls.h. DESIGN.txt section 18.
 */
#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "world_calls.h"

#define WORLD_US UINT64_C(1000)
#define WORLD_MS UINT64_C(1000000)
#define WORLD_S UINT64_C(1000000000)

typedef struct {
    unsigned rank, node;
    bool is_dead;      /* its coroutines never run again */
    uint64_t died;     /* when */
    uint64_t reported; /* when the runtime tells the others */
    bool is_stopped;   /* as after SIGSTOP: its coroutines do not run, its adapters work on */
} world_process_t;

/* The process whose coroutine runs; NULL while the host runs (timed steps of the fabric, faults). */
extern world_process_t *world_me;
/* Nanoseconds since the start of the world. Time passes only between steps. */
extern uint64_t world_now;

/* A random number below n (n > 0), from the seed. */
unsigned world_draw(unsigned n);
/* True in n of 1000 cases. */
bool world_chance(unsigned n);

/* Calls does(argument) from the host at the time `when` (not before the current step has ended). Steps of the same time run in the order
 * in which they were asked for. */
void world_at(uint64_t when, void (*does)(void *argument), void *argument);

/* Descriptors for poll(): the host's own numbers, no files. */
int world_fd_make(void);
void world_fd_free(int fd);
/* Does poll() find something to read? */
void world_fd_ready(int fd, bool is_ready);

/* One line of the run's trace: printed with -v; its text always becomes part of the run's fingerprint. */
void world_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A promise is broken: prints the text and the seed, and ends the run as failed. */
void world_broken(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif /* WORLD_H */
