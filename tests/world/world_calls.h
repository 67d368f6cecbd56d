/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the host gives to the images, in the place of the C library, of threads and of the runtime. image.h replaces the names.
 */
#ifndef WORLD_CALLS_H
#define WORLD_CALLS_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* A job whose plan is drawn has at most WORLD_JOB_PROCESSES. */
enum { WORLD_MAX_PROCESSES = 16384, WORLD_JOB_PROCESSES = 16, WORLD_MAX_RAILS = 8 };

/* ---- calls that fail: failures.c ---------------------------------------------------------------------------- */

typedef enum {
    CALL_none,
#define CALL(name, meaning) CALL_##name,
#include "calls.def"
#undef CALL
    CALLS
} world_call_t;

/* Does this call fail? `rail`: 0 if the call belongs to the whole process. */
bool world_call_fails(world_call_t call, unsigned rail);
/* Does an allocation in this source file fail? Never in Open MPI's headers, whose macros use objects without a look at the
 * result. */
bool world_memory_ends(const char *file);
/* Has a call of this process failed? */
bool world_has_failed(void);

/* ---- time and threads: schedule.c ----------------------------------------------------------------------- */

int world_clock_gettime(clockid_t clock, struct timespec *now);
time_t world_time(time_t *now);
int world_usleep(unsigned us);
int world_nanosleep(const struct timespec *pause, struct timespec *left);
int world_sched_yield(void);
/* The caller does nothing for so many nanoseconds. */
void world_sleep(uint64_t ns);
/* Another thread may run here, if the seed says so. image.h puts it at every atomic operation. */
void world_point(void);

int world_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *argument);
int world_thread_join(pthread_t thread, void **result);
int world_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int world_mutex_destroy(pthread_mutex_t *mutex);
int world_mutex_lock(pthread_mutex_t *mutex);
int world_mutex_trylock(pthread_mutex_t *mutex);
int world_mutex_unlock(pthread_mutex_t *mutex);

int world_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int world_eventfd(unsigned value, int flags);
ssize_t world_read(int fd, void *buffer, size_t size);
ssize_t world_write(int fd, const void *buffer, size_t size);
int world_close(int fd);
int world_fcntl(int fd, int command, ...);

/* ---- the runtime: world.c ---------------------------------------------------------------------------- */

/* Of the process that calls. */
unsigned world_rank(void);
unsigned world_node(void);
unsigned world_ranks(void);
unsigned world_node_of(unsigned rank);
bool world_process_is_dead(unsigned rank);
/* Memory that the processes of this machine share, of this size; zero at first. */
void *world_node_memory(size_t size);

/* The modex: what a process publishes under a key. NULL: nothing. */
void world_put(const char *key, const void *bytes, size_t size);
const void *world_get(unsigned rank, const char *key, size_t *size);
/* A barrier of all living processes: joins it, and asks whether all are there. */
unsigned world_barrier_join(void);
bool world_barrier_is_over(unsigned mine);

/* Bit i: port i of this machine stands out of the job, as by MPI_T's variable pml_bfo_drain; bit 8 + i: it does by force. */
unsigned world_drained(void);

/* The value of an MCA parameter that this world sets; NULL: none. */
const char *world_parameter(const char *name);
/* A line that the process writes for people. */
void world_says(const char *format, ...) __attribute__((format(printf, 1, 2)));

ssize_t world_getrandom(void *buffer, size_t size, unsigned flags);

/* ---- the application's part: world.c ------------------------------------------------------------------ */

/* What this run asks of the processes (plan.def). */
unsigned world_plan_of(const char *name);
unsigned world_turn_least(void);
/* A number below n that depends on the run's seed and the four numbers alone. */
unsigned world_hash(unsigned n, unsigned a, unsigned b, unsigned c, unsigned d);
/* See world.h. */
unsigned world_draw(unsigned n);
bool world_chance(unsigned n);
void world_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
void world_broken(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Has the runtime reported the death of the process to this one? */
bool world_is_reported(unsigned rank);
/* An MPI call of this process ended with an error about the process `peer`; no rank: about nobody. */
void world_saw_error(unsigned peer, int error);

/* ---- the application of a day: day.c ------------------------------------------------------------------ */

enum { WORLD_DAY_BULK_BYTES = 1024 * 1024 };
/* What comes after a burst. */
enum { WORLD_DAY_BURST, WORLD_DAY_PING, WORLD_DAY_BULK, WORLD_DAY_ENDS };
/* Rank 0 asks: what comes after the burst that begins now? */
unsigned world_day_next(void);
/* In a series of exchanges rank 0 says that one has ended, and asks whether another one follows. */
void world_day_exchanged(void);
bool world_day_goes_on(void);
/* What a process has counted at its end: numbers of 64 bits only, which are summed up. */
typedef struct {
    uint64_t messages, bursts;
    uint64_t rails; /* in use, over all peers */
    uint64_t rails_lost, rails_back, peers_lost;
    uint64_t inquiries, soft, hard, copies;
} world_day_counts_t;
void world_day_counts(const world_day_counts_t *counts);
/* The lists of a process from which requests and fragments come. A list grows with the most of them that are out at a time. */
typedef struct {
    uint64_t bytes;
    uint64_t registered; /* registrations of lists */
    uint64_t out;        /* fragments of the BTL that are out */
} world_day_lists_t;

/* ---- the application of a large job: scale.c ------------------------------------------------------------ */

/* What comes after a round. */
enum { WORLD_SCALE_GOES_ON, WORLD_SCALE_IDLES, WORLD_SCALE_ENDS, WORLD_SCALE_IDLE_MS = 25000 };
/* Rank 0 asks: what comes after the round that begins now? */
unsigned world_scale_next(void);
/* This process is through MPI_Init; it has ended a round, in which it has sent so many messages, short and long. */
void world_scale_ready(void);
void world_scale_ended(unsigned shorts, unsigned longs);
/* A process whose peers have no image ends the run. Does not return. */
void world_scale_leaves(void) __attribute__((noreturn));
/* What a process has counted: numbers of 64 bits only. */
typedef struct {
    uint64_t rails; /* in use, over all peers */
    uint64_t rails_lost, rails_back, peers_lost, resends, restarts;
    uint64_t credits; /* messages for the sake of credits */
    uint64_t saved;   /* messages that travelled in another one */
    uint64_t inquiries, questions, keepalives, soft, hard, copies;
} world_scale_counts_t;
/* What this process has so far is not counted as its memory: memory.c. Nor is what the application takes here. */
void world_memory_begin(void);
void *world_room(size_t size);
void world_room_ends(void *room);

/* ---- the end of a process ------------------------------------------------------------------------------- */

/* This process cannot go on: only after a call has failed. Does not return. */
void world_gives_up(const char *what) __attribute__((noreturn));
/* The BTL of this process has no module. Does not return. */
void world_has_no_rail(void) __attribute__((noreturn));

/* ---- the invariants: image_checks*.c --------------------------------------------------------------------- */

/* What an image sees of a request of another one, by the identifier that it knows. */
typedef struct {
    bool is_open;   /* the message is not complete; otherwise only is_unborn is valid */
    bool is_unborn; /* the identifier was never given out */
    unsigned state; /* enum bfo_send_state or bfo_recv_state */
    uint16_t epoch;
    uint32_t seq;
    unsigned rank;  /* of the process at the other end */
    uint64_t other; /* identifier of the request there; 0: not known */
} world_request_t;
/* The same of a rail. */
typedef struct {
    unsigned state; /* ofo_fsm_state_t */
    unsigned generation;
    bool lives, is_fencing; /* do queue pairs of the generation that was asked for live, does its fence run? */
} world_rail_t;
/* The thread that runs. */
unsigned world_thread(void);
/* Has a call of that process failed? */
bool world_call_failed_in(unsigned rank);

/* Functions of an image that other images call. They return false if the image has no such thing now. */
typedef struct {
    bool (*at_send)(uint64_t id, world_request_t *seen);
    bool (*at_recv)(uint64_t id, world_request_t *seen);
    bool (*at_rail)(unsigned rank, unsigned name, unsigned generation, world_rail_t *seen);
    bool (*has_declared)(unsigned rank);
} world_looks_t;
/* Those of the process; NULL: it is dead, or has no image. */
const world_looks_t *world_looks_of(unsigned rank);

/* Every image has one variable of this type, named world_image. */
typedef struct {
    void (*main)(void);
    void (*report)(void);                      /* what the process waits for goes to the trace; what never comes is an error that it saw */
    void (*lists)(world_day_lists_t *sum);     /* adds those of the process */
    void (*counts)(world_scale_counts_t *sum); /* adds those of the process */
    void (*covered)(void);                     /* adds the branches that this run has taken to those of other runs; NULL: nobody counts them */
    void **local;                              /* the PML's variable that each thread has for itself */
    const world_looks_t *looks;
} world_image_t;

#endif /* WORLD_CALLS_H */
