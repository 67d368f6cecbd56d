/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Values that two threads share without a lock. A thread whose OFO_LOAD() reads the value of an OFO_STORE() sees all stores before that store.
 * See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_ATOMIC_H
#define BTL_OPENIB_ATOMIC_H

#include <stdint.h>

#define OFO_LOAD(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define OFO_STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)
/* For the only writer of a value, which holds a lock, while others read the value without it. */
#define OFO_ADD(x, n) __atomic_store_n(&(x), (x) + (n), __ATOMIC_RELAXED)

/* Raises a counter of the module. Several threads may do so at once, and a count may get lost then. Only figures for people depend on
 * these counters, and an atomic operation for each message would cost more than a lost count. */
static inline void ofo_count(uint64_t *counter)
{
    ++*counter;
}

#endif /* BTL_OPENIB_ATOMIC_H */
