/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Values that two threads share without a lock: what was stored before OFO_STORE() is seen after the OFO_LOAD() that reads it.
 */
#ifndef BTL_OPENIB_ATOMIC_H
#define BTL_OPENIB_ATOMIC_H

#define OFO_LOAD(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define OFO_STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

#endif /* BTL_OPENIB_ATOMIC_H */
