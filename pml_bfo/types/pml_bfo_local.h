/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What each thread keeps for itself, so that two threads do not bounce a cache line between them with every
 * message: cached requests and fragments, and counters. And the rule who recycles a request. DESIGN.txt section 14.7.
 */
#ifndef PML_BFO_LOCAL_H
#define PML_BFO_LOCAL_H

#include "formats/pml_bfo_stats.h"
#include "formats/pml_bfo_sync.h"

#include "opal/class/opal_free_list.h"
#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/request/request.h"

#include <time.h>

enum { BFO_CACHE_SEND, BFO_CACHE_RECV, BFO_CACHE_FRAG, BFO_CACHE_UNEXPECTED, BFO_CACHE_KINDS };

typedef struct bfo_local_t {
    struct {
        opal_free_list_item_t *first; /* chained by opal_list_next */
        unsigned n;
    } cached[BFO_CACHE_KINDS];
    uint64_t stats[BFO_STAT_COUNT]; /* written by this thread, read by any */
    uint32_t turn;                  /* odd while the thread is between bfo_enter() and bfo_leave(); read by any */
    uint32_t depth;                 /* nesting of bfo_enter(). In bfo_local_first: number of threads inside that have no bfo_local_t; atomic */
    struct bfo_local_t *next;       /* Lock: that of pml_bfo_local.c */
} bfo_local_t;

/* Used by a process without MPI_THREAD_MULTIPLE. It also takes over the counts of threads that have ended. */
extern BFO_OURS bfo_local_t bfo_local_first;
/* One word: small enough for the static TLS that the loader reserves for plugins. */
extern BFO_OURS __thread bfo_local_t *bfo_local_mine __attribute__((tls_model("initial-exec")));
/* Most items of each kind that a thread keeps. If the user has set a limit it is 1, because other threads may need the rest. */
extern BFO_OURS unsigned bfo_cache_most;

/* ---- pml_bfo_local.c ------------------------------------------------------------------------------ */
void bfo_local_init(void);
/* Returns all items to the free lists. No other thread is in the PML any more. */
void bfo_local_finalize(void);
/* Makes the bfo_local_t of a thread at its first call; NULL without memory. */
bfo_local_t *bfo_local_make(void) BFO_COLD;
/* The sum of a counter over all threads. */
uint64_t bfo_local_stat(bfo_stat_t s);
/* Waits until every thread that is inside now has left once. False if the caller itself is inside, or if a thread stays too long. */
bool bfo_local_all_left(void) BFO_COLD;
/* Zeroed memory that shares no cache line with other memory. The caller frees it with free(). NULL without memory. */
void *bfo_calloc_line(size_t size);
void *bfo_cache_get(unsigned kind) __attribute__((noinline));
/* Makes one item more than the user's limit allows; the free list keeps it from then on. NULL without memory. */
void *bfo_cache_beyond_limit(unsigned kind) BFO_COLD;
void bfo_cache_return(unsigned kind, opal_free_list_item_t *item) __attribute__((noinline));

static inline bfo_local_t *bfo_local(void)
{
    if (bfo_likely(!bfo_threads)) {
        return &bfo_local_first;
    }
    return bfo_likely(NULL != bfo_local_mine) ? bfo_local_mine : bfo_local_make();
}

/* An element of the free list of that kind, or NULL. */
static inline void *bfo_cache_take(unsigned kind)
{
    bfo_local_t *me = bfo_local();
    opal_free_list_item_t *item = NULL == me ? NULL : me->cached[kind].first;

    if (bfo_unlikely(NULL == item)) {
        return bfo_cache_get(kind);
    }
    BFO_ASSERT(0 != me->cached[kind].n);
    me->cached[kind].first = (opal_free_list_item_t *) item->super.opal_list_next;
    --me->cached[kind].n;
    BFO_ASSERT((NULL == me->cached[kind].first) == (0 == me->cached[kind].n));
    return item;
}
static inline void bfo_cache_give(unsigned kind, opal_free_list_item_t *item)
{
    bfo_local_t *me = bfo_local();

    if (bfo_unlikely(NULL == me || me->cached[kind].n >= bfo_cache_most)) {
        bfo_cache_return(kind, item);
        return;
    }
    BFO_ASSERT(item != me->cached[kind].first); /* otherwise it was given back twice */
    item->super.opal_list_next = (opal_list_item_t *) me->cached[kind].first;
    me->cached[kind].first = item;
    ++me->cached[kind].n;
    BFO_ASSERT(me->cached[kind].n <= bfo_cache_most);
}

static inline void bfo_stat_add(bfo_stat_t s, uint64_t n)
{
    bfo_local_t *me = bfo_local();

    if (bfo_likely(NULL != me)) {
        __atomic_store_n(&me->stats[s], me->stats[s] + n, __ATOMIC_RELAXED);
    }
}
/* Take the time: a rail is lost; an interrupted message goes on (only the first one after a loss counts). */
void bfo_stat_mark_error(void) __attribute__((noinline, cold));
void bfo_stat_mark_resumed(void) __attribute__((noinline, cold));

/* With threads: a thread that looks up a communicator by its context id, without a reference to it, is inside until it is done with the
 * communicator. The memory of a communicator that MPI frees meanwhile stays until bfo_local_all_left(). */
static inline bfo_local_t *bfo_enter(void)
{
    bfo_local_t *me = bfo_local();

    if (bfo_unlikely(NULL == me)) {
        (void) __atomic_add_fetch(&bfo_local_first.depth, 1, __ATOMIC_SEQ_CST);
    } else if (0 == me->depth++) {
        BFO_ASSERT(0 == (me->turn & 1));
        __atomic_store_n(&me->turn, me->turn + 1, __ATOMIC_SEQ_CST); /* before any look at the table of communicators */
    }
    return me;
}
static inline void bfo_leave(bfo_local_t *me)
{
    if (bfo_unlikely(NULL == me)) {
        (void) __atomic_sub_fetch(&bfo_local_first.depth, 1, __ATOMIC_SEQ_CST);
    } else if (0 == --me->depth) {
        BFO_ASSERT(1 == (me->turn & 1));
        __atomic_store_n(&me->turn, me->turn + 1, __ATOMIC_RELEASE);
    }
}

/* Counts a dropped message, and reports it at pml_bfo_verbose 3. */
void bfo_stat_drop(bfo_stat_t why) __attribute__((noinline, cold)); /* pml_bfo_tell.c */

/* ---- the end of a request ------------------------------------------------------------------------- */
/* req_complete, the word MPI waits on, also decides who recycles. The PML publishes the completion as its last
 * step. A caller that frees a complete request recycles it at once; a caller that frees an incomplete one leaves a mark for the PML. */
extern BFO_OURS char bfo_freed_mark;
#define BFO_REQUEST_FREED ((void *) &bfo_freed_mark)

/* `life` of a request: bits for what req_complete cannot say, after a callback and for buffered sends */
#define BFO_LIFE_PML_DONE 1u  /* the PML does not touch it any more */
#define BFO_LIFE_FREED 2u     /* buffered sends: the user has freed it. Whoever sets the second of these two bits recycles */
#define BFO_LIFE_ABANDONED 8u /* a BTL may still refer to it: it is never used again */
#define BFO_LIFE_WATCHED 4u   /* a send with a callback: bfo_callback_was_made() is owed */

/* The callback of a send on `comm` has returned: MPI_Comm_free does not wait for it any more (pml_bfo_hooks.c). */
static inline void bfo_callback_was_made(const ompi_communicator_t *comm)
{
    const int32_t left = __atomic_sub_fetch(&bfo_comm_of(comm)->n_watched, 1, __ATOMIC_SEQ_CST);

    BFO_ASSERT(0 <= left);
}

/* Is the request one of osc/pt2pt? No call of MPI sets a callback. Collectives (coll/adapt) set callbacks, too; their tags are negative, and
 * not MPI_ANY_TAG. */
static inline bool bfo_is_onesided(const ompi_request_t *request)
{
    return NULL != request->req_complete_cb && MPI_ANY_TAG <= ((const mca_pml_base_request_t *) request)->req_tag;
}

/* As bfo_request_finish(), for a request with a callback. The owner of the callback must not free the request in another thread while
 * a callback that returns 0 runs (ob1 has the same rule). */
bool bfo_request_finish_callback(ompi_request_t *request, uint8_t *life) BFO_COLD;
/* As bfo_request_free(), for an incomplete request. */
bool bfo_request_free_early(ompi_request_t *request, const uint8_t *life) BFO_COLD;
/* As bfo_request_finish(), with threads or if a thread waits for the request. */
bool bfo_request_publish(ompi_request_t *request) __attribute__((noinline));

/* Reports the request to MPI as complete. True: the user has freed it, and the caller recycles it. False: the PML must not touch it. */
static inline bool bfo_request_finish(ompi_request_t *request, uint8_t *life)
{
    BFO_ASSERT(REQUEST_COMPLETED != __atomic_load_n(&request->req_complete, __ATOMIC_RELAXED));
    if (bfo_unlikely(NULL != request->req_complete_cb)) {
        return bfo_request_finish_callback(request, life);
    }
    if (!bfo_threads && bfo_likely(REQUEST_PENDING == request->req_complete)) {
        request->req_complete = REQUEST_COMPLETED;
        return false;
    }
    return bfo_request_publish(request);
}

/* MPI_Start failed: makes the request inactive again, as MPI_Request_free and the next MPI_Start expect it. */
static inline void bfo_request_undo_start(ompi_request_t *request, uint8_t *life)
{
    request->req_state = OMPI_REQUEST_INACTIVE;
    request->req_complete = REQUEST_COMPLETED;
    *life = BFO_LIFE_PML_DONE;
}

/* The user frees the request. True: the caller recycles it now. False: the PML will recycle it. */
static inline bool bfo_request_free(ompi_request_t *request, const uint8_t *life)
{
    return bfo_likely(REQUEST_COMPLETED == __atomic_load_n(&request->req_complete, __ATOMIC_ACQUIRE)) || bfo_request_free_early(request, life);
}

/* Time of that clock, in ns. */
static inline uint64_t bfo_clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t) t.tv_sec * UINT64_C(1000000000) + (uint64_t) t.tv_nsec;
}

#endif /* PML_BFO_LOCAL_H */
