/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Stand-in for a header that the installed headers of Open MPI 5.0 and 6.0 include but their installation lacks: the yield of
 * POSIX threads. DESIGN.txt section 18.2.
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
