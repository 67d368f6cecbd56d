/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Stand-in for a header that the installed headers of Open MPI 5.0 and 6.0 include but their installation lacks: thread-specific
 * storage of POSIX threads. DESIGN.txt section 18.2.
 */
#ifndef BFO_COMPAT_THREADS_PTHREADS_TSD_H
#define BFO_COMPAT_THREADS_PTHREADS_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

static inline int opal_tsd_get(opal_tsd_key_t key, void **value)
{
    *value = pthread_getspecific(key);
    return 0; /* OPAL_SUCCESS */
}

#endif /* BFO_COMPAT_THREADS_PTHREADS_TSD_H */
