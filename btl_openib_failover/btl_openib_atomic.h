/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Values that two threads share without a lock: what was stored before OFO_STORE() is seen after the OFO_LOAD() that reads it.
 */
#ifndef BTL_OPENIB_ATOMIC_H
#define BTL_OPENIB_ATOMIC_H

#include <stdint.h>

#define OFO_LOAD(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define OFO_STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)
/* For who writes alone, under a lock, what others read without it. */
#define OFO_ADD(x, n) __atomic_store_n(&(x), (x) + (n), __ATOMIC_RELAXED)

/* A counter of the module, which several threads may raise at once: nothing but figures for people depends on it, so one that is lost
 * now and then is better than an atomic operation for each message. */
static inline void ofo_count(uint64_t *counter)
{
    ++*counter;
}

#endif /* BTL_OPENIB_ATOMIC_H */
