/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Does a process of this machine live? In comes its number and when it began, out goes an answer from /proc. Plain C without Open MPI:
 * the command bfo is linked with it too. DESIGN.txt section 11.
 */
#ifndef PML_BFO_LIFE_H
#define PML_BFO_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* A process, as those of its machine can find it. Travels in the modex and in the message LIFE. */
typedef struct {
    uint64_t node;    /* alike for processes that see each other in /proc under these numbers; 0: not known, so nobody can tell */
    uint64_t started; /* in ticks of /proc/PID/stat; another process that has the number later began later */
    uint32_t pid;
    uint32_t pad;
} bfo_life_t;

/* Values of the wire; 0 there is a question. */
typedef enum {
    BFO_PROCESS_ASKED = 0,
    BFO_PROCESS_UNKNOWN = 1, /* it runs elsewhere, or /proc does not say */
    BFO_PROCESS_ALIVE = 2,   /* also if it is stopped */
    BFO_PROCESS_DEAD = 3,    /* a zombie is dead, too */
    BFO_PROCESS_ANSWERS
} bfo_life_answer_t;

/* This process; `number`: of its node, as the runtime counts: two nodes of the runtime may be one machine. */
bfo_life_t bfo_life_own(uint32_t number);

/* Does `its` process live, as seen by the process `own`, which is the caller? */
bfo_life_answer_t bfo_life_of(const bfo_life_t *own, const bfo_life_t *its);

/* When a process began that lives, in ticks of /proc/PID/stat; 0: there is none, or it is a zombie, or cannot be seen. */
uint64_t bfo_life_started(uint32_t pid);

#endif /* PML_BFO_LIFE_H */
