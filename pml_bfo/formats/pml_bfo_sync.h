/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Counters and one-word states that cost plain instructions in a process without MPI_THREAD_MULTIPLE and are
 * sequentially consistent with it. DESIGN.txt section 14.7.
 */
#ifndef PML_BFO_SYNC_H
#define PML_BFO_SYNC_H

#include "bfo_assert.h"
#include "bfo_ompi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal_config.h"

#define bfo_likely(x) __builtin_expect(!!(x), 1)
#define bfo_unlikely(x) __builtin_expect(!!(x), 0)
#define BFO_COLD __attribute__((noinline, cold))
/* For the declaration of a variable of ours: access to it does not go through the global offset table. -fvisibility=hidden alone
 * has this effect only in the file that defines the variable. */
#define BFO_OURS __attribute__((visibility("hidden")))

/* A copy of opal_uses_threads, taken in pml_enable and again in pml_add_procs, because a BTL may have started a thread. */
extern BFO_OURS bool bfo_threads; /* pml_bfo_local.c */

#define BFO_LOCK(m) \
    do { \
        if (bfo_unlikely(bfo_threads)) { \
            opal_mutex_lock(m); \
        } \
    } while (0)
#define BFO_UNLOCK(m) \
    do { \
        if (bfo_unlikely(bfo_threads)) { \
            opal_mutex_unlock(m); \
        } \
    } while (0)

/* A lock that is held for a short time, at most for the copy of one fragment, and never across a call of a BTL or of MPI. It takes one
 * atomic operation where a mutex takes two. A thread that waits yields the core. */
typedef struct {
    bool held;
} bfo_lock_t;
void bfo_lock_wait(bfo_lock_t *lock) BFO_COLD; /* pml_bfo_local.c */

static inline void bfo_lock(bfo_lock_t *lock)
{
    if (bfo_unlikely(bfo_threads) && bfo_unlikely(__atomic_exchange_n(&lock->held, true, __ATOMIC_ACQUIRE))) {
        bfo_lock_wait(lock);
    }
}
static inline void bfo_unlock(bfo_lock_t *lock)
{
    if (bfo_unlikely(bfo_threads)) {
        BFO_ASSERT(__atomic_load_n(&lock->held, __ATOMIC_RELAXED));
        __atomic_store_n(&lock->held, false, __ATOMIC_RELEASE);
    }
}

/* Each returns the new value. */
static inline int32_t bfo_add32(int32_t *p, int32_t by)
{
    return bfo_unlikely(bfo_threads) ? __atomic_add_fetch(p, by, __ATOMIC_SEQ_CST) : (*p += by);
}
static inline size_t bfo_add_size(size_t *p, size_t by)
{
    return bfo_unlikely(bfo_threads) ? __atomic_add_fetch(p, by, __ATOMIC_SEQ_CST) : (*p += by);
}
/* Returns the old value. */
static inline uint32_t bfo_fetch_next(uint32_t *p)
{
    return bfo_unlikely(bfo_threads) ? __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST) : (*p)++;
}
/* Sets bits; returns the old value. */
static inline uint8_t bfo_set_bits(uint8_t *p, uint8_t bits)
{
    uint8_t old;

    if (bfo_unlikely(bfo_threads)) {
        return __atomic_fetch_or(p, bits, __ATOMIC_SEQ_CST);
    }
    old = *p;
    *p = old | bits;
    return old;
}
static inline uint32_t bfo_load(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}
/* With threads: has another thread raised the event counter meanwhile? (DESIGN.txt section 7.3 rule 3) */
static inline bool bfo_is_held(const int32_t *events, bool threads)
{
    return bfo_unlikely(threads) && 0 != __atomic_load_n(events, __ATOMIC_SEQ_CST);
}
#endif /* PML_BFO_SYNC_H */
