/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Is a process of this machine alive? Input: its process id and start time. Output: an answer from /proc. Plain C without Open MPI,
 * because the command bfo links it too. DESIGN.txt section 11.
 */
#ifndef PML_BFO_LIFE_H
#define PML_BFO_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* How processes of the same machine find a process. Travels in the modex and in the message LIFE. */
typedef struct {
    uint64_t node;    /* equal for processes that see each other in /proc under these ids; 0: not known, so nobody can find the process */
    uint64_t started; /* in ticks of /proc/PID/stat; a process that gets the same id later has a later start time */
    uint32_t pid;
    uint32_t pad;
} bfo_life_t;

/* Values on the wire; there 0 is a question. */
typedef enum {
    BFO_PROCESS_ASKED = 0,
    BFO_PROCESS_UNKNOWN = 1, /* it runs elsewhere, or /proc does not say */
    BFO_PROCESS_ALIVE = 2,   /* also if it is stopped */
    BFO_PROCESS_DEAD = 3,    /* a zombie is dead, too */
    BFO_PROCESS_ANSWERS
} bfo_life_answer_t;

/* This process. `number`: its node according to the runtime; two nodes of the runtime may be one machine. */
bfo_life_t bfo_life_own(uint32_t number);

/* Is the process `its` alive, as seen by the caller, whose own record is `own`? */
bfo_life_answer_t bfo_life_of(const bfo_life_t *own, const bfo_life_t *its);

/* Start time of a living process, in ticks of /proc/PID/stat; 0: there is none, it is a zombie, or it cannot be seen. */
uint64_t bfo_life_started(uint32_t pid);

#endif /* PML_BFO_LIFE_H */
