/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The scheduler of the world: one list of steps in the order of virtual time. A step is a call of the host, or a thread of a process that
 * goes on. Whatever waits says until when; whatever is ready waits for a drawn moment. DESIGN.txt section 18.
 */
#ifndef SCHED_H
#define SCHED_H

#include "world.h"
#include "world_calls.h"

/* Everything that is drawn comes from this seed from now on. `preempt`: mean number of points (world_point()) between two switches of
 * threads, 0: threads run until they wait. */
void sched_begin(uint64_t seed, unsigned preempt);
/* Makes the first thread of a process. */
void sched_add(world_process_t *process, const world_image_t *image);
/* From now on a thread that wakes up in poll() is late in one of 50 cases, by at most so many ns. */
void sched_late(uint64_t most);
/* Runs steps until every process has ended or is dead: true. Breaks the run when the world is older than `most` (ns). */
bool sched_run(uint64_t most);
/* sched_run() returns false after this step. */
void sched_end(void);
/* A process is dead or stopped, or goes on. */
void sched_kill(world_process_t *process);
void sched_stop(world_process_t *process, bool is_stopped);
/* Number of first threads that have not ended and are not dead. */
unsigned sched_alive(void);
/* Threads of the process that have not ended. */
unsigned sched_threads_of(const world_process_t *process);
/* Steps so far. */
uint64_t sched_steps(void);
/* Bytes that the list of steps takes. */
size_t sched_memory(void);

#endif /* SCHED_H */
