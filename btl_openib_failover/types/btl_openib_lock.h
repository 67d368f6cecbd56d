/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The locks of the data path: for a post, and for the poll of a module. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_LOCK_H
#define BTL_OPENIB_LOCK_H

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_types.h"

/* Locks an endpoint for a post: ep->lock, which MPI threads take, and gate_lock first unless the gate is open. Returns whether
 * gate_lock was taken, for ofo_post_unlock(). */
static inline bool ofo_post_lock(ofo_endpoint_t *ep)
{
    bool gate = OFO_GATE_UP != OFO_LOAD(ep->gate);

    if (OPAL_UNLIKELY(gate)) {
        pthread_mutex_lock(&ep->gate_lock);
    }
    OPAL_THREAD_LOCK(&ep->lock);
    return gate;
}

static inline void ofo_post_unlock(ofo_endpoint_t *ep, bool gate)
{
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (OPAL_UNLIKELY(gate)) {
        pthread_mutex_unlock(&ep->gate_lock);
    }
}

static inline bool ofo_poll_try_lock(ofo_module_t *module)
{
    return 0 == __atomic_load_n(&module->poll_lock, __ATOMIC_RELAXED) && 0 == __atomic_exchange_n(&module->poll_lock, 1, __ATOMIC_ACQUIRE);
}

static inline void ofo_poll_unlock(ofo_module_t *module)
{
    __atomic_store_n(&module->poll_lock, 0, __ATOMIC_RELEASE);
}

#endif /* BTL_OPENIB_LOCK_H */
