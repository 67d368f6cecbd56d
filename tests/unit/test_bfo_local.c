/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * How the PML synchronises its threads: its lock, which threads are inside while a communicator is freed, which thread
 * recycles a request, the counters of threads. The protected data is plain memory, so that ThreadSanitizer
 * (thread_sanitizer.sh) sees whether accesses to it are ordered. DESIGN.txt sections 14.3 and 14.7.
 */
#include "bfo_config.h"

#include "types/pml_bfo.h"

#include "types/pml_bfo_local.h"
#include "types/pml_bfo_params.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS = 4, ROUNDS = 5000, OBJECTS = 3000 };

bfo_t bfo; /* this program takes nothing from its free lists */
bfo_params_t bfo_params;

static void run_threads(int n, void *(*work)(void *) )
{
    pthread_t threads[THREADS];

    for (intptr_t t = 0; t < n; ++t) {
        assert_int_equal(0, pthread_create(&threads[t], NULL, work, (void *) t));
    }
    for (int t = 0; t < n; ++t) {
        pthread_join(threads[t], NULL);
    }
}

/* ---- the lock -------------------------------------------------------------------------------------- */

static bfo_lock_t lock;
static unsigned guarded;

static void *count_locked(void *arg)
{
    for (int i = 0; i < ROUNDS; ++i) {
        bfo_lock(&lock);
        ++guarded;
        bfo_unlock(&lock);
    }
    return NULL;
}

static void lock_admits_one_at_a_time(void **state)
{
    run_threads(THREADS, count_locked);
    assert_int_equal(THREADS * ROUNDS, guarded);
}

/* ---- threads inside the PML -------------------------------------------------------------------------- */

typedef struct {
    unsigned alive;
} object_t;
static object_t *shared; /* stands in for a communicator in the table */
static bool over;
static unsigned dead_seen, looks;

/* Thread 0 replaces the object again and again, and frees the old one when all threads have left. The other threads look at it. */
static void *look_or_replace(void *arg)
{
    if (0 != (intptr_t) arg) {
        for (unsigned i = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); ++i) {
            bfo_local_t *me = bfo_enter(), *again = bfo_enter(); /* as when a BTL calls the PML from within a call of the PML */
            const object_t *o = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);

            __atomic_fetch_add(&dead_seen, 1 != o->alive, __ATOMIC_RELAXED);
            __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
            bfo_leave(again);
            if (0 == i % 4) {
                sched_yield(); /* let others run while this thread is inside */
            }
            __atomic_fetch_add(&dead_seen, 1 != o->alive, __ATOMIC_RELAXED);
            bfo_leave(me);
            if (1 == i % 4) {
                sched_yield(); /* and while it is outside */
            }
        }
        return NULL;
    }
    for (int i = 0; i < OBJECTS; ++i) {
        object_t *fresh = malloc(sizeof(*fresh)), *old = shared;
        const unsigned before = __atomic_load_n(&looks, __ATOMIC_RELAXED);

        while (__atomic_load_n(&looks, __ATOMIC_RELAXED) - before < 5) {
            sched_yield(); /* until others have looked at the old object */
        }
        fresh->alive = 1;
        __atomic_store_n(&shared, fresh, __ATOMIC_RELEASE);
        while (!bfo_local_all_left()) {
            sched_yield();
        }
        old->alive = 0;
        free(old);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    return NULL;
}

static void object_stays_until_all_have_left(void **state)
{
    shared = calloc(1, sizeof(*shared));
    shared->alive = 1;
    run_threads(3, look_or_replace);
    assert_int_equal(0, dead_seen);
    free(shared);
}

static void who_is_inside_has_not_left(void **state)
{
    bfo_local_t *me = bfo_enter();

    assert_false(bfo_local_all_left());
    bfo_leave(me);
    assert_true(bfo_local_all_left());
}

/* ---- which thread recycles a request -------------------------------------------------------------------- */

static struct {
    ompi_request_t request;
    uint8_t life;
    unsigned data; /* the PML writes it before it completes the request; the thread that recycles the request writes it afterwards */
    unsigned recycled;
} uses[ROUNDS];
static pthread_barrier_t begin;
static unsigned wrong;

static void recycle(int i, unsigned data)
{
    __atomic_fetch_add(&wrong, data != uses[i].data, __ATOMIC_RELAXED);
    uses[i].data = 0;
    ++uses[i].recycled;
}

/* Thread 0 completes the requests. Thread 1 frees them, some at once, others after it has seen that they are complete. */
static void *complete_or_free(void *arg)
{
    for (int i = 0; i < ROUNDS; ++i) {
        ompi_request_t *r = &uses[i].request;

        if (0 == i % 64) {
            pthread_barrier_wait(&begin); /* both threads start together */
        }
        if (0 == (intptr_t) arg) {
            uses[i].data = 7;
            if (bfo_request_finish(r, &uses[i].life)) {
                recycle(i, 7);
            }
            continue;
        }
        while (0 == i % 3 && REQUEST_COMPLETED != __atomic_load_n(&r->req_complete, __ATOMIC_ACQUIRE)) {
            sched_yield();
        }
        if (bfo_request_free(r, &uses[i].life)) {
            recycle(i, 7);
        }
    }
    return NULL;
}

static void request_is_recycled_by_one_of_two(void **state)
{
    for (int i = 0; i < ROUNDS; ++i) {
        uses[i].request.req_complete = REQUEST_PENDING;
    }
    assert_int_equal(0, pthread_barrier_init(&begin, NULL, 2));
    run_threads(2, complete_or_free);
    assert_int_equal(0, wrong);
    for (int i = 0; i < ROUNDS; ++i) {
        assert_int_equal(1, uses[i].recycled);
    }
    pthread_barrier_destroy(&begin);
}

/* A buffered send: the user frees it and the PML ends it, in any order. */
static void *set_one_of_two(void *arg)
{
    const uint8_t mine = 0 == (intptr_t) arg ? BFO_LIFE_PML_DONE : BFO_LIFE_FREED;

    for (int i = 0; i < ROUNDS; ++i) {
        if (0 == i % 64) {
            pthread_barrier_wait(&begin);
        }
        if (0 == (intptr_t) arg) {
            uses[i].data = 9;
        }
        if (0 != (bfo_set_bits(&uses[i].life, mine) & ~mine)) {
            recycle(i, 9);
        }
    }
    return NULL;
}

static void buffered_send_is_recycled_by_the_second(void **state)
{
    for (int i = 0; i < ROUNDS; ++i) {
        uses[i].life = 0;
        uses[i].recycled = 0;
    }
    assert_int_equal(0, pthread_barrier_init(&begin, NULL, 2));
    run_threads(2, set_one_of_two);
    assert_int_equal(0, wrong);
    for (int i = 0; i < ROUNDS; ++i) {
        assert_int_equal(1, uses[i].recycled);
    }
    pthread_barrier_destroy(&begin);
}

/* ---- counters ------------------------------------------------------------------------------------------ */

static void *count(void *arg)
{
    uint64_t last = 0;

    for (int i = 0; i < ROUNDS; ++i) {
        bfo_stat_add(BFO_STAT_EAGER, 1);
        if (0 == i % 100) {
            const uint64_t now = bfo_local_stat(BFO_STAT_EAGER);

            __atomic_fetch_add(&wrong, now < last + 1, __ATOMIC_RELAXED);
            last = now;
        }
    }
    return NULL;
}

static void counts_outlive_their_threads(void **state)
{
    run_threads(THREADS, count);
    assert_int_equal(0, wrong);
    assert_int_equal(THREADS * ROUNDS, bfo_local_stat(BFO_STAT_EAGER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_admits_one_at_a_time),
        cmocka_unit_test(object_stays_until_all_have_left),
        cmocka_unit_test(who_is_inside_has_not_left),
        cmocka_unit_test(request_is_recycled_by_one_of_two),
        cmocka_unit_test(buffered_send_is_recycled_by_the_second),
        cmocka_unit_test(counts_outlive_their_threads),
    };

    opal_uses_threads = true;
    bfo_params.free_list_max = -1;
    bfo_local_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
