/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A large job: what scale.c does, scale_figures.c prints.
 */
#ifndef WORLD_SCALE_H
#define WORLD_SCALE_H

#include "host.h"

#include "fabric.h"

typedef enum {
    SCALE_INIT,
    SCALE_CONTACT,
    SCALE_HEALTHY,
    SCALE_LEAF,
    SCALE_SPINE,
    SCALE_SILENT,
    SCALE_PORT,
    SCALE_IDLE,
    SCALE_PHASES
} scale_phase_kind_t;

/* What all processes have counted up to a moment. */
typedef struct {
    fabric_posts_t posts;
    world_scale_counts_t counts;
    uint64_t shorts, longs; /* messages of the application */
} scale_sums_t;

typedef struct {
    uint64_t began, ended, event; /* times */
    uint64_t flows;               /* from the event to the end of the round in which it came; of a phase without an event: its longest round */
    uint64_t back;                /* from the event to the moment when each process has the rails that it can have; 0: it did not come */
    uint64_t least_rails;         /* in use, over all processes */
    uint64_t peak, peak_of_one;   /* control messages of all, and of a process, in a second */
    unsigned rounds;
    scale_sums_t first, last;
} scale_phase_t;
extern scale_phase_t scale_phases[SCALE_PHASES];

typedef struct {
    uint64_t qps;                  /* queue pairs of all processes before the last round */
    int64_t init, contact, at_end; /* bytes of all processes after MPI_Init, after the first contact, before the last round */
} scale_sizes_t;
extern scale_sizes_t scale_sizes;

/* Rails of all processes, if no port is dead. */
uint64_t scale_all_rails(void);

#endif /* WORLD_SCALE_H */
