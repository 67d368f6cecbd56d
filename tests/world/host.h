/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The host's own parts: the plan of a run, its processes, its faults.
 */
#ifndef WORLD_HOST_H
#define WORLD_HOST_H

#include "schedule.h"
#include "trace.h"

typedef enum {
#define PLAN(name, simplest, drawn, meaning) PLAN_##name,
#include "plan.def"
#undef PLAN
    PLAN_COUNT
} plan_index_t;

typedef struct {
    unsigned value[PLAN_COUNT];
} plan_t;

extern plan_t plan;
#define PLAN_OF(name) (plan.value[PLAN_##name])
#define PER_NODE (PLAN_OF(per_node) + PLAN_OF(crowd))

extern const char *const plan_names[PLAN_COUNT];
extern const char *const plan_meanings[PLAN_COUNT];
extern const unsigned plan_simplest[PLAN_COUNT];
/* The plan of a seed. */
plan_t plan_draw(uint64_t seed);

extern world_process_t world_processes[WORLD_MAX_PROCESSES];
extern uint64_t world_seed;
extern const world_image_t *const *world_images;

/* Runs the world of the plan to its end; does not return if a promise is broken. */
void world_run(uint64_t seed, const world_image_t *const images[WORLD_MAX_PROCESSES]);
/* Are all processes through MPI_Init? */
bool world_has_begun(void);
/* Asks for the steps at which the plan's faults begin and end. */
void faults_plan(void);
/* Does each process keep its peers, whatever faults happen? */
bool faults_are_harmless(void);

/* ---- day.c, day_figures.c -------------------------------------------------------------------------------------- */

/* Asks for the steps of a day, and returns the time at which its job must have ended. */
uint64_t day_plan(void);
/* world_parameter() of a day. */
const char *day_parameter(const char *name);
/* Prints the figures. Ends the run as failed if a bound is not kept. */
void day_end(void);

/* ---- scale.c, scale_figures.c --------------------------------------------------------------------------------- */

/* Asks for the steps of a large job, and returns the time at which it must have ended. */
uint64_t scale_plan(void);
/* Prints the figures. */
void scale_end(void);

/* ---- memory.c ------------------------------------------------------------------------------------------------- */

/* From now on the memory of processes is counted. */
void memory_count_begin(void);
int64_t memory_of(unsigned rank);
/* The host has taken memory for the process that runs, or gives it back. */
void memory_counts(const void *memory, bool is_taken);

/* ---- failures.c ---------------------------------------------------------------------------------------------- */

extern const char *const failures_names[CALLS];
/* How often processes made each call. */
const uint64_t *failures_counts(void);
/* Has a call of the process failed? */
bool failures_met(unsigned rank);
/* May the failure have taken the rail from the process? */
bool failures_cost(unsigned rank, unsigned rail);
/* Does each process keep its peers, although a call has failed? */
bool failures_are_harmless(void);

#endif /* WORLD_HOST_H */
