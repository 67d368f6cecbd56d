/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Per-thread caches and counters, and who recycles a request. DESIGN.txt sections 14.3 and 14.7.
 */
#include "types/pml_bfo.h"

#include "types/pml_bfo_local.h"
#include "types/pml_bfo_params.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CACHED 64u

bool bfo_threads;
bfo_local_t bfo_local_first;
__thread bfo_local_t *bfo_local_mine __attribute__((tls_model("initial-exec")));
unsigned bfo_cache_most;
char bfo_freed_mark;

static pthread_key_t key;                                /* its destructor, thread_ended(), runs when a thread ends */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list, and the caches and counts of ended threads */

static opal_free_list_t *list_of(unsigned kind)
{
    switch (kind) {
    case BFO_CACHE_SEND:
        return &mca_pml_base_send_requests;
    case BFO_CACHE_RECV:
        return &mca_pml_base_recv_requests;
    case BFO_CACHE_FRAG:
        return &bfo.frag_list;
    default:
        BFO_ASSERT(BFO_CACHE_UNEXPECTED == kind);
        return &bfo.got_list;
    }
}

/* An object that the peer may name has an identifier, unless there was no memory for one when its list grew. Then this tries again; without
 * an identifier the object cannot be used. */
static bool is_named(unsigned kind, opal_free_list_item_t *item)
{
    bfo_name_t *name;
    bfo_ids_t *ids;

    switch (kind) {
    case BFO_CACHE_SEND:
        name = &((bfo_send_t *) item)->name;
        ids = &bfo.sends;
        break;
    case BFO_CACHE_RECV:
        name = &((bfo_recv_t *) item)->name;
        ids = &bfo.recvs;
        break;
    case BFO_CACHE_FRAG:
        name = &((bfo_frag_t *) item)->name;
        ids = &bfo.frags;
        break;
    default:
        return true;
    }
    return 0 != name->gen || 0 == bfo_ids_add(ids, name);
}

static void *named(unsigned kind, opal_free_list_item_t *item)
{
    if (NULL != item && !is_named(kind, item)) {
        opal_free_list_return(list_of(kind), item);
        item = NULL;
    }
    return item;
}

void *bfo_cache_get(unsigned kind)
{
    return named(kind, opal_free_list_get(list_of(kind)));
}

void *bfo_cache_beyond_limit(unsigned kind)
{
    opal_free_list_t *list = list_of(kind);
    opal_free_list_item_t *item = NULL;

    opal_mutex_lock(&list->fl_lock);
    if (0 != list->fl_max_to_alloc && list->fl_num_allocated >= list->fl_max_to_alloc) { /* 0: no limit; then memory was short a moment ago */
        list->fl_max_to_alloc = list->fl_num_allocated + 1;
    }
    (void) opal_free_list_grow_st(list, 1, &item);
    opal_mutex_unlock(&list->fl_lock);
    return named(kind, item);
}

void bfo_cache_return(unsigned kind, opal_free_list_item_t *item)
{
    opal_free_list_return(list_of(kind), item);
}

void *bfo_calloc_line(size_t size)
{
    void *room = NULL;

    size = (size + 63) / 64 * 64;
    return 0 == posix_memalign(&room, 64, size) ? memset(room, 0, size) : NULL;
}

void bfo_lock_wait(bfo_lock_t *lock)
{
    const struct timespec a_while = {.tv_nsec = 50000};

    BFO_ASSERT(bfo_threads);
    for (unsigned n = 1; __atomic_exchange_n(&lock->held, true, __ATOMIC_ACQUIRE); ++n) {
        for (unsigned look = 0; look < 100 && __atomic_load_n(&lock->held, __ATOMIC_RELAXED); ++look) {
            __builtin_ia32_pause();
        }
        if (__atomic_load_n(&lock->held, __ATOMIC_RELAXED)) {
            if (n % 16) { /* the holder may have lost the core */
                sched_yield();
            } else {
                (void) nanosleep(&a_while, NULL);
            }
        }
    }
}

static void give_back_cached(bfo_local_t *me)
{
    for (unsigned kind = 0; kind < BFO_CACHE_KINDS; ++kind) {
        BFO_ASSERT((NULL == me->cached[kind].first) == (0 == me->cached[kind].n));
        while (NULL != me->cached[kind].first) {
            opal_free_list_item_t *item = me->cached[kind].first;

            me->cached[kind].first = (opal_free_list_item_t *) item->super.opal_list_next;
            bfo_cache_return(kind, item);
        }
        me->cached[kind].n = 0;
    }
}

static void thread_ended(void *arg)
{
    bfo_local_t *me = arg;

    BFO_ASSERT(&bfo_local_first != me && 0 == me->depth);
    pthread_mutex_lock(&lock);
    for (bfo_local_t **p = &bfo_local_first.next; NULL != *p; p = &(*p)->next) {
        if (me == *p) {
            *p = me->next;
            break;
        }
    }
    for (int s = 0; s < BFO_STAT_COUNT; ++s) {
        bfo_local_first.stats[s] += me->stats[s];
    }
    pthread_mutex_unlock(&lock);
    give_back_cached(me);
    bfo_local_mine = NULL;
    free(me);
}

bfo_local_t *bfo_local_make(void)
{
    bfo_local_t *me = bfo_calloc_line(sizeof(*me));

    BFO_ASSERT(bfo_threads && NULL == bfo_local_mine);
    if (NULL == me) {
        return NULL;
    }
    if (0 != pthread_setspecific(key, me)) {
        free(me);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    me->next = bfo_local_first.next;
    bfo_local_first.next = me;
    pthread_mutex_unlock(&lock);
    bfo_local_mine = me;
    return me;
}

void bfo_local_init(void)
{
    bfo_threads = opal_uses_threads;
    bfo_cache_most = bfo_params.free_list_max < 0 ? CACHED : 1;
    (void) pthread_key_create(&key, thread_ended);
}

void bfo_local_finalize(void)
{
    (void) pthread_key_delete(key);
    give_back_cached(&bfo_local_first);
    while (NULL != bfo_local_first.next) {
        bfo_local_t *me = bfo_local_first.next;

        bfo_local_first.next = me->next;
        give_back_cached(me);
        free(me);
    }
    bfo_local_mine = NULL;
}

void bfo_stat_mark_error(void)
{
    bfo_local_first.stats[BFO_STAT_ERROR_AT] = bfo_clock_ns(CLOCK_MONOTONIC);
    bfo_local_first.stats[BFO_STAT_RESUMED_AT] = 0;
}

void bfo_stat_mark_resumed(void)
{
    if (0 == bfo_local_first.stats[BFO_STAT_RESUMED_AT]) {
        bfo_local_first.stats[BFO_STAT_RESUMED_AT] = bfo_clock_ns(CLOCK_MONOTONIC);
    }
}

uint64_t bfo_local_stat(bfo_stat_t s)
{
    uint64_t sum;

    pthread_mutex_lock(&lock);
    sum = __atomic_load_n(&bfo_local_first.stats[s], __ATOMIC_RELAXED);
    for (const bfo_local_t *l = bfo_local_first.next; NULL != l; l = l->next) {
        sum += __atomic_load_n(&l->stats[s], __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
    return sum;
}

/* Yields the core to a thread that is inside, for a bounded time. */
static bool has_left(const bfo_local_t *l)
{
    const uint32_t turn = __atomic_load_n(&l->turn, __ATOMIC_ACQUIRE);

    for (unsigned n = 0; l != bfo_local_mine && (turn & 1) && n < 100; ++n) {
        if (turn != __atomic_load_n(&l->turn, __ATOMIC_ACQUIRE)) {
            return true;
        }
        sched_yield();
    }
    return 0 == (turn & 1);
}

bool bfo_local_all_left(void)
{
    bool left;

    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* a thread that enters from now on does not find what was taken out of the table */
    pthread_mutex_lock(&lock);
    left = 0 == __atomic_load_n(&bfo_local_first.depth, __ATOMIC_SEQ_CST);
    for (const bfo_local_t *l = bfo_local_first.next; NULL != l && left; l = l->next) {
        left = has_left(l);
    }
    pthread_mutex_unlock(&lock);
    return left;
}

/* ---- the end of a request ------------------------------------------------------------------------- */

bool bfo_request_publish(ompi_request_t *request)
{
    const int error = request->req_status.MPI_ERROR;
    volatile void *was = REQUEST_PENDING;

    if (__atomic_compare_exchange_n(&request->req_complete, &was, REQUEST_COMPLETED, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        return false;
    }
    if (BFO_REQUEST_FREED != was) { /* a thread waits, or is just ending its wait */
        was = __atomic_exchange_n(&request->req_complete, REQUEST_COMPLETED, __ATOMIC_SEQ_CST);
    }
    BFO_ASSERT(REQUEST_COMPLETED != was); /* a request completes once */
    if (BFO_REQUEST_FREED == was) {
        return true;
    }
    if (REQUEST_PENDING != was) {
        wait_sync_update((ompi_wait_sync_t *) was, 1, error);
    }
    return false;
}

/* osc/pt2pt does not look at the error. It would take the bytes of an earlier message in the buffer for a new message, and count a failed
 * MPI_Get as complete. Therefore it does not hear of a receive that failed; the error handler of its communicator does
 * (bfo_failover_declare()). */
static bool takes_error_for_data(const ompi_request_t *request)
{
    const mca_pml_base_request_t *base = (const mca_pml_base_request_t *) request;

    return MPI_SUCCESS != request->req_status.MPI_ERROR && MCA_PML_REQUEST_RECV == base->req_type && bfo_is_onesided(request);
}

/* The callback may free the request, or start it again if it is persistent; it then returns a value other than 0, and the PML does not
 * touch the request again. A later free recycles it, because `life` says that the PML is done. */
bool bfo_request_finish_callback(ompi_request_t *request, uint8_t *life)
{
    const ompi_request_complete_fn_t callback = request->req_complete_cb;
    const bool is_silent = takes_error_for_data(request);

    BFO_ASSERT(NULL != callback);
    request->req_complete_cb = NULL;
    (void) bfo_set_bits(life, BFO_LIFE_PML_DONE);
    return (is_silent || 0 == callback(request)) && bfo_request_publish(request);
}

bool bfo_request_free_early(ompi_request_t *request, const uint8_t *life)
{
    while (0 == (__atomic_load_n(life, __ATOMIC_SEQ_CST) & BFO_LIFE_PML_DONE)) {
        volatile void *was = REQUEST_PENDING;

        if (__atomic_compare_exchange_n(&request->req_complete, &was, BFO_REQUEST_FREED, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            return false;
        }
        if (REQUEST_COMPLETED == was) {
            break;
        }
        sched_yield(); /* another thread is just ending its wait for it */
    }
    return true;
}
