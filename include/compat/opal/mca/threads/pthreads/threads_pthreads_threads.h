/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Stand-in for a header that Open MPI 5.0's installed headers include but its installation lacks: the yield of POSIX threads.
 * DESIGN.txt section 18.2.
 */
#ifndef BFO_COMPAT_THREADS_PTHREADS_THREADS_H
#define BFO_COMPAT_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>

static inline void opal_thread_yield(void)
{
    (void) sched_yield();
}

#endif /* BFO_COMPAT_THREADS_PTHREADS_THREADS_H */
