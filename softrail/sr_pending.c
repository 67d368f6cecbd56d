/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Queue pairs whose send queue has to wait. Polling tries them again. A thread tries them too, while the program does
 * something else. The thread is started when a request waits for the first time. It sleeps if none waits, and looks
 * only now and then while the program polls. DESIGN.txt 16.
 */
#include "sr_pending.h"

#include <signal.h>
#include <time.h>

#define SR_RETRY_NS UINT64_C(1000000) /* how often the thread tries requests that wait for the peer */
#define SR_SHORTEST_NS UINT64_C(50000)

/* How often the thread looks while the program polls. The time is longer than a time slice of the kernel: if a thread of a busy process woke up
 * in each slice, Linux 6.18 with a scheduling group for each session would give processes of other sessions no time on that core for many seconds. */
#define SR_POLLED_NS UINT64_C(5000000)
#define SR_POLLS 16 /* after this many polls the program is one that polls */

_Atomic uint32_t sr_pending_count;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    struct sr_qp *first;
    _Atomic uint32_t polls; /* that found requests waiting; mutex to write; 0 after an arming, and after a look that had no poll before it */
    uint32_t polls_seen;    /* mutex; their number at the last look */
    bool is_polled;         /* mutex; the program polls in a loop, and the thread sleeps for SR_POLLED_NS */
    pid_t thread_of;        /* process that has the thread; a forked child has none */
} pending = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Locks: pending.mutex */
static void unlink_qp(struct sr_qp *qp)
{
    if (NULL != qp->pending_prev) {
        qp->pending_prev->pending_next = qp->pending_next;
    } else {
        pending.first = qp->pending_next;
    }
    if (NULL != qp->pending_next) {
        qp->pending_next->pending_prev = qp->pending_prev;
    }
    qp->pending_next = qp->pending_prev = NULL;
    qp->on_pending_list = false;
    atomic_fetch_sub(&sr_pending_count, 1);
}

/* Tries all. Returns when to try again, ns; 0 = none waits. Locks: pending.mutex held. */
static uint64_t try_all(void)
{
    uint64_t soonest = 0, now = sr_now();
    struct sr_qp *next;

    for (struct sr_qp *qp = pending.first; NULL != qp; qp = next) {
        uint64_t when = now + SR_RETRY_NS;
        next = qp->pending_next;
        if (0 != pthread_mutex_trylock(&qp->sq_lock)) {
            soonest = 0 == soonest || when < soonest ? when : soonest;
            continue;
        }
        qp->run(qp);
        if (NULL == qp->wait_first && NULL == qp->ghosts) {
            unlink_qp(qp);
        } else {
            if (NULL != qp->wait_first && qp->wait_first->ready > now) {
                when = qp->wait_first->ready;
            }
            soonest = 0 == soonest || when < soonest ? when : soonest;
        }
        pthread_mutex_unlock(&qp->sq_lock);
    }
    return soonest;
}

/* Does the program poll in a loop? Then its polls try the requests in time. Locks: pending.mutex */
static bool look_at_polls(void)
{
    if (pending.polls_seen == atomic_load(&pending.polls)) {
        atomic_store(&pending.polls, 0);
    }
    pending.polls_seen = atomic_load(&pending.polls);
    pending.is_polled = SR_POLLS <= pending.polls_seen;
    return pending.is_polled;
}

static void *pending_thread(void *arg)
{
    (void) arg;
    pthread_mutex_lock(&pending.mutex);
    for (;;) {
        uint64_t when = try_all(), now = sr_now();
        struct timespec until;
        if (look_at_polls()) {
            when = now + SR_POLLED_NS;
        }
        if (0 == when) {
            pthread_cond_wait(&pending.cond, &pending.mutex);
            continue;
        }
        when = when < now + SR_SHORTEST_NS ? now + SR_SHORTEST_NS : when;
        until.tv_sec = (time_t) (when / UINT64_C(1000000000));
        until.tv_nsec = (long) (when % UINT64_C(1000000000));
        pthread_cond_timedwait(&pending.cond, &pending.mutex, &until);
    }
    return NULL;
}

/* Locks: pending.mutex */
static void start_thread(void)
{
    pthread_condattr_t cond_attr;
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_t thread;

    pthread_condattr_init(&cond_attr);
    pthread_condattr_setclock(&cond_attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pending.cond, &cond_attr);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (0 == pthread_create(&thread, &attr, pending_thread, NULL)) {
        pending.thread_of = sr.pid;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

/* The caller holds sq_lock. try_all only tries to take that lock, so the two lock orders cannot deadlock. */
void sr_pending_add(struct sr_qp *qp)
{
    if (__atomic_load_n(&qp->on_pending_list, __ATOMIC_ACQUIRE)) {
        return;
    }
    pthread_mutex_lock(&pending.mutex);
    if (!qp->on_pending_list) {
        qp->pending_prev = NULL;
        qp->pending_next = pending.first;
        if (NULL != pending.first) {
            pending.first->pending_prev = qp;
        }
        pending.first = qp;
        qp->on_pending_list = true;
        atomic_fetch_add(&sr_pending_count, 1);
    }
    if (sr.pid != pending.thread_of) {
        start_thread();
    }
    if (!pending.is_polled) {
        pthread_cond_signal(&pending.cond);
    }
    pthread_mutex_unlock(&pending.mutex);
}

void sr_pending_remove(struct sr_qp *qp)
{
    pthread_mutex_lock(&pending.mutex);
    if (qp->on_pending_list) {
        unlink_qp(qp);
    }
    pthread_mutex_unlock(&pending.mutex);
}

void sr_pending_progress(void)
{
    if (0 == pthread_mutex_trylock(&pending.mutex)) {
        atomic_store_explicit(&pending.polls, atomic_load_explicit(&pending.polls, memory_order_relaxed) + 1, memory_order_relaxed);
        try_all();
        pthread_mutex_unlock(&pending.mutex);
    }
}

void sr_pending_hand_over(void)
{
    if (0 == atomic_load(&sr_pending_count) && 0 == atomic_load(&pending.polls)) {
        return;
    }
    pthread_mutex_lock(&pending.mutex);
    try_all();
    atomic_store(&pending.polls, 0);
    if (pending.is_polled) {
        pending.is_polled = false;
        pthread_cond_signal(&pending.cond);
    }
    pthread_mutex_unlock(&pending.mutex);
}

void sr_pending_reset(void)
{
    pthread_mutex_init(&pending.mutex, NULL);
    pending.first = NULL;
    atomic_store(&pending.polls, 0);
    pending.polls_seen = 0;
    pending.is_polled = false;
    pending.thread_of = 0;
    atomic_store(&sr_pending_count, 0);
}
