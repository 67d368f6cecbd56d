/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Shared by the parts of the soak. The sequence of operations is drawn from the seed alone, therefore all ranks draw the same
 * sequence. Every payload is a function of (seed, sender, receiver, sequence). DESIGN.txt section 13.
 */
#ifndef SOAK_H
#define SOAK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOAK_MAX_RANKS = 16, SOAK_MAX_BYTES = 400000 };

/* The communicator of an operation, and the common random numbers, which are equal at all its ranks. */
typedef struct {
    MPI_Comm comm;
    int rank, size;
    uint64_t random; /* state of the common draws */
    uint64_t step;   /* number of the operation; part of every key */
} soak_t;

extern uint64_t soak_seed, soak_checked;

/* The next common draw, below n. */
uint64_t soak_draw(soak_t *s, uint64_t n);
/* Draws a length: empty, short, around the eager limits, or long. */
size_t soak_draw_length(soak_t *s);

/* Key of a payload; sender and receiver are ranks of s->comm. */
uint64_t soak_key(const soak_t *s, int sender, int receiver, uint64_t sequence);
void soak_fill(void *to, size_t length, uint64_t key);
/* Ends the job if a byte is wrong. */
void soak_check(const soak_t *s, const void *from, size_t length, uint64_t key, const char *what);
void soak_check_equal(const soak_t *s, uint64_t is, uint64_t expected, const char *what);
void *soak_room(size_t bytes);
/* A receive buffer between guards, blank. soak_check_blank: no write has reached its bytes [from, to). */
void *soak_receive_room(size_t bytes);
void soak_check_blank(const soak_t *s, const void *room, size_t from, size_t to, const char *what);
/* Frees a receive buffer later. No write may have reached the bytes around its first `used` ones, and until it is freed none may reach it. */
void soak_give_back(const soak_t *s, void *room, size_t used);

/* Ends the job if the MPI call fails. */
#define SOAK_MPI(s, call) soak_check_equal(s, (uint64_t) (call), MPI_SUCCESS, #call)

/* An operation, and how often this rank took part in it. */
typedef struct {
    const char *name;
    void (*run)(soak_t *s, int variant);
    int variant;
    unsigned long times;
} soak_row_t;

typedef struct {
    soak_row_t *rows;
    size_t count;
} soak_table_t;

extern const soak_table_t soak_point_to_point, soak_collective, soak_one_sided;

/* Drains: between begin and end each rank takes ports out and gives them back. A step returns whether this rank has changed anything. */
void soak_drain_begin(const soak_t *s);
bool soak_drain_step(const soak_t *s);
void soak_drain_end(const soak_t *s);

/* A second thread of each rank, with messages of its own, runs between begin and end. MPI needs MPI_THREAD_MULTIPLE. Returns its exchanges. */
void soak_thread_begin(const soak_t *s);
uint64_t soak_thread_end(const soak_t *s);

/* Runs one operation of a table, chosen by a common draw. */
void soak_operate(soak_t *s, const soak_table_t *table);

#endif /* SOAK_H */
