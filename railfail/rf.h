/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the files of the program railfail_job share. The program needs only the MPI standard (3.0) and POSIX, so that any mpicc builds
 * it: mpicc -o railfail_job railfail_job.c rf_*.c -lpthread
 */
#ifndef RF_H
#define RF_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Messages of a window: a flow sends so many before the receiver checks that all have come. */
enum { RF_WINDOW = 8, RF_GUARD = 16 };

/* The first bytes of a message. They determine the bytes after them. */
typedef struct {
    uint32_t magic;
    uint32_t from, to; /* ranks in the world of the first job; a spawned process counts as RF_CHILD */
    uint32_t flow;     /* the number of the flow between the two ranks */
    uint64_t number;   /* from 0 in each flow */
    uint64_t bytes;    /* length of the message, head included */
} rf_head_t;

enum { RF_CHILD = 1000 };

/* A sequence of messages from one process to another. Each side has a copy. */
typedef struct {
    uint32_t from, to, flow;
    size_t least, most; /* of the sizes in bytes */
    uint64_t next;      /* number of the first message of the next window */
    uint64_t seen;      /* receiver: bit i: message next + i is here */
    uint64_t missing;   /* receiver: the first message that another overtook, or RF_NONE */
} rf_flow_t;

#define RF_NONE UINT64_MAX

/* Mistakes that the program makes on purpose, to show that the receivers notice. */
typedef enum { RF_RIGHT, RF_FLIP, RF_LOSE, RF_DOUBLE, RF_SWAP, RF_DROP } rf_wrong_t;

typedef struct {
    const char *name;
    int ranks;            /* fewest ranks */
    void (*begin)(void);  /* may be NULL */
    void (*window)(void); /* one window of messages, of all ranks */
    void (*end)(void);    /* may be NULL */
    const char *about;
} rf_operation_t;

extern const rf_operation_t rf_p2p[], rf_coll[], rf_rma[], rf_threads[], rf_spawn[]; /* the last entry has no name */

/* rf_spawn.c: everything that a spawned process does */
void rf_child(MPI_Comm parent);

/* railfail_job.c: this process */
extern int rf_rank, rf_ranks, rf_threads_provided;
extern MPI_Comm rf_world; /* a copy of MPI_COMM_WORLD that returns errors; control messages go over another copy */
extern char *rf_program;
extern rf_wrong_t rf_wrong;
extern uint64_t rf_wrong_at;
extern double rf_patience; /* seconds that a message may be missing although a later one is here */

/* rf_say.c: lines that railfail reads, each by one write(). Functions that end the process wait first, so that the other ranks can print theirs. */
void rf_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void rf_say_wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void rf_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void rf_error(const char *call, int code) __attribute__((noreturn));
#define RF_MPI(name, arguments) \
    do { \
        int rf_code = name arguments; \
        if (MPI_SUCCESS != rf_code) { \
            rf_error(#name, rf_code); \
        } \
    } while (0)
void rf_waitall(int n, MPI_Request *requests);
void *rf_memory(size_t bytes);
bool rf_is_due(rf_wrong_t wrong, uint64_t number); /* shall this process make the mistake with the message of this number? */

/* rf_judge.c: makes and judges messages */
size_t rf_size(const rf_flow_t *flow, uint64_t number);
uint64_t rf_number(uint64_t place); /* the number of the message for this place: the place itself, except for a mistake on purpose */
size_t rf_fill(const rf_flow_t *flow, uint64_t number, void *buffer);                         /* returns its size */
void rf_clear(void *buffer, size_t most);                                                     /* before a receive; also RF_GUARD bytes after `most` */
void rf_judge(rf_flow_t *flow, uint64_t place, const void *buffer, size_t bytes);             /* messages in the order of MPI */
void rf_judge_end(rf_flow_t *flow);                                                           /* a window has come */
void rf_judge_slot(const rf_flow_t *flow, uint64_t number, const void *buffer, size_t bytes); /* memory that must hold this message */
void rf_watch(void); /* starts the thread that reports a message that does not come although later messages do */
void rf_count(void); /* counts a message, or a sum, that was judged */
uint64_t rf_judged(void);

#endif /* RF_H */
