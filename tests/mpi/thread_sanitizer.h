/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Included before each file of a build with ThreadSanitizer (thread_sanitized.sh), which sees neither into Open MPI's libraries nor into
 * verbs and the peer. This header tells it which events are ordered.
 *   - The atomics of Open MPI's headers ask for a weaker order than x86-64 gives them, and use fences that ThreadSanitizer does not know.
 *     Here they have the order that x86-64 gives them.
 *   - A thread that takes an element of a lock-free list comes after the thread that put it there; a thread that has waited in Open MPI's
 *     library comes after the event that it waited for.
 *   - A completion comes after everything that any thread posted before, because the peer answers only what was posted. */
#ifndef THREAD_SANITIZER_H
#define THREAD_SANITIZER_H

#if defined(__SANITIZE_THREAD__) && __has_include("opal/sys/atomic.h")
#pragma push_macro("__ATOMIC_RELAXED")
#pragma push_macro("__ATOMIC_ACQUIRE")
#undef __ATOMIC_RELAXED
#undef __ATOMIC_ACQUIRE
#define __ATOMIC_RELAXED __ATOMIC_SEQ_CST
#define __ATOMIC_ACQUIRE __ATOMIC_SEQ_CST
#include "opal_config.h"
#include "opal/class/opal_lifo.h"
#include "opal/sys/atomic.h"
#include "opal/threads/wait_sync.h"
#pragma pop_macro("__ATOMIC_RELAXED")
#pragma pop_macro("__ATOMIC_ACQUIRE")
#include <infiniband/verbs.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define THREAD_SANITIZER_AFTER(address, type, call) \
    ({ \
        type result_ = call; \
        __tsan_acquire(address); \
        result_; \
    })

#define opal_lifo_push_atomic(lifo, item) (__tsan_release(lifo), opal_lifo_push_atomic(lifo, item))
#define opal_lifo_pop_atomic(lifo) THREAD_SANITIZER_AFTER(lifo, opal_list_item_t *, opal_lifo_pop_atomic(lifo))
#undef SYNC_WAIT
#define SYNC_WAIT(sync) THREAD_SANITIZER_AFTER(sync, int, opal_using_threads() ? ompi_sync_wait_mt(sync) : sync_wait_st(sync))

__attribute__((weak)) char thread_sanitizer_posted;
#define ibv_post_send(...) (__tsan_release(&thread_sanitizer_posted), ibv_post_send(__VA_ARGS__))
#define ibv_post_recv(...) (__tsan_release(&thread_sanitizer_posted), ibv_post_recv(__VA_ARGS__))
#define ibv_post_srq_recv(...) (__tsan_release(&thread_sanitizer_posted), ibv_post_srq_recv(__VA_ARGS__))
#define ibv_poll_cq(...) THREAD_SANITIZER_AFTER(&thread_sanitizer_posted, int, ibv_poll_cq(__VA_ARGS__))
#endif

#endif /* THREAD_SANITIZER_H */
