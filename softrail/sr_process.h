/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * This process as a member of the fabric: joining at the first open device, leaving at exit, its arena, its
 * peers, and the locks that processes share. DESIGN.txt 16.
 */
#ifndef SR_PROCESS_H
#define SR_PROCESS_H

#include <pthread.h>
#include <stddef.h>

#include "sr_fabric.h"

#define sr_unlikely(x) __builtin_expect(!!(x), 0)

/* Another member (or this one), as mapped here. */
struct sr_peer {
    uint32_t word; /* lock word: slot and incarnation */
    pid_t pid;
    char *base; /* its arena */
    size_t size;
    int refs;                    /* sr.peer_mutex */
    _Atomic uint64_t seen_alive; /* ns, coarse clock: when its byte was last found held */
    _Atomic bool dead;
};

struct sr_state {
    struct sr_fabric fabric;
    bool attached; /* fabric mapped */
    bool joined;   /* has a slot; false again in a forked child */
    pid_t pid;
    uint32_t word;
    unsigned slot;
    struct sr_peer *self;
    struct sr_arena_head *arena;
    struct sr_proc *proc;
    pthread_mutex_t peer_mutex;
    struct sr_peer *peers[SR_MAX_PROCS];
    uint32_t next_fifo;    /* mutex */
    pthread_mutex_t mutex; /* join, arena, handles */
};
extern struct sr_state sr;

/* Map the fabric that the environment names. Returns 0, or errno; the first failure prints what to do. */
int sr_attach(void);

/* Become a member. Returns 0 or errno. */
int sr_join(void);

/* ---- peers -------------------------------------------------------------------------------------- */

/* The member that a lock word names, with a reference that sr_peer_put returns; NULL if it is not alive. */
struct sr_peer *sr_peer_get(uint32_t word);
void sr_peer_put(struct sr_peer *peer);

/* Is the peer a live member? Asks the kernel only if the peer was last seen alive more than 10 ms ago. */
bool sr_peer_is_alive(struct sr_peer *peer);

/* Object of `size` bytes at `offset` of a peer's arena, or NULL if that is outside of it. */
static inline void *sr_peer_at(const struct sr_peer *peer, uint64_t offset, size_t size)
{
    return 0 == offset || offset > peer->size || peer->size - offset < size ? NULL : peer->base + offset;
}

/* ---- arena of this process ---------------------------------------------------------------------- */

/* Allocates zeroed memory in this process's arena. Returns the offset, or 0 (errno set; one message if /dev/shm is full). */
uint64_t sr_arena_alloc(size_t size);
void sr_arena_free(uint64_t offset, size_t size);

/* Memory that is used again only for the same kind of object. Therefore a late peer that still holds a pointer finds a
 * valid lock and a number that does not match. It is not zeroed when it is used again. */
enum sr_stable_kind { SR_STABLE_QP, SR_STABLE_CQ, SR_STABLE_RQ, SR_STABLE_KINDS };
/* A forked child starts with an arena of its own. */
void sr_arena_reset(void);

/* 0: no memory. Given back, 0 is nothing. */
uint64_t sr_stable_alloc(enum sr_stable_kind kind);
void sr_stable_free(enum sr_stable_kind kind, uint64_t offset);

static inline void *sr_at(uint64_t offset)
{
    return sr.self->base + offset;
}

/* ---- time --------------------------------------------------------------------------------------- */

uint64_t sr_now(void);        /* ns, CLOCK_MONOTONIC */
uint64_t sr_now_coarse(void); /* the same with the resolution of the kernel's tick, but cheap */

/* ---- locks between processes -------------------------------------------------------------------- */

void sr_lock_slow(struct sr_lock *lock);

static inline void sr_lock(struct sr_lock *lock)
{
    uint32_t expected = 0;

    if (sr_unlikely(!atomic_compare_exchange_strong(&lock->word, &expected, sr.word))) {
        sr_lock_slow(lock);
    }
}

/* Full barrier: later reads (of `armed`) come after the writes under the lock. */
static inline void sr_unlock(struct sr_lock *lock)
{
    atomic_exchange(&lock->word, 0);
}

/* Wait until the current holder of the lock has released it or is found dead. */
void sr_lock_wait(struct sr_lock *lock);

/* One line on stderr, at most once per `flag`. */
__attribute__((format(printf, 2, 3))) void sr_say_once(_Atomic bool *flag, const char *format, ...);

#endif /* SR_PROCESS_H */
