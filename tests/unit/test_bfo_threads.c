/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Identifier tables and matching under threads: some threads add objects while others find and retire them; each message
 * meets its receive once, under the communicator's lock. Runs under ThreadSanitizer too (thread_sanitizer.sh).
 */
#include "bfo_config.h"

#include "formats/pml_bfo_ids.h"
#include "formats/pml_bfo_recv_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS = 4, OBJECTS = 3000, MESSAGES = 2000 };

/* ---- identifiers ------------------------------------------------------------------------------------- */

static bfo_ids_t ids = BFO_IDS_INITIALIZER;
static bfo_name_t names[THREADS][OBJECTS];
static unsigned wrong;

static void *add_find_retire(void *arg)
{
    bfo_name_t *mine = names[(intptr_t) arg];

    for (unsigned i = 0; i < OBJECTS; ++i) {
        bfo_id_t id;

        if (0 != bfo_ids_add(&ids, &mine[i])) {
            __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
            continue;
        }
        id = bfo_name_id(&mine[i]);
        __atomic_fetch_add(&wrong, bfo_ids_find(&ids, id) != &mine[i], __ATOMIC_RELAXED);
        bfo_name_retire(&mine[i]);
        __atomic_fetch_add(&wrong, NULL != bfo_ids_find(&ids, id), __ATOMIC_RELAXED);
        /* another thread may retire its objects at any moment; the search must be safe, whatever it finds */
        (void) bfo_ids_find(&ids, (bfo_id_t) 1 << 32 | (i * 7 % (__atomic_load_n(&ids.size, __ATOMIC_ACQUIRE))));
    }
    return NULL;
}

static void run_threads(void *(*work)(void *) )
{
    pthread_t threads[THREADS];

    for (intptr_t t = 0; t < THREADS; ++t) {
        assert_int_equal(0, pthread_create(&threads[t], NULL, work, (void *) t));
    }
    for (int t = 0; t < THREADS; ++t) {
        pthread_join(threads[t], NULL);
    }
}

static void names_are_found_while_others_are_added(void **state)
{
    run_threads(add_find_retire);
    assert_int_equal(0, wrong);
    assert_int_equal(THREADS * OBJECTS, ids.size);
    bfo_ids_free(&ids);
}

static bfo_name_t shared = {.gen = 1};
static unsigned first[OBJECTS];

/* All threads find every use of the one object; one thread claims each use. */
static void *claim(void *arg)
{
    for (uint32_t gen = 1; gen <= OBJECTS; ++gen) {
        if (bfo_name_claim(&shared, (bfo_id_t) gen << 32, true)) {
            __atomic_fetch_add(&first[gen - 1], 1, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

static void name_is_claimed_by_one_of_many(void **state)
{
    run_threads(claim);
    for (unsigned i = 0; i < OBJECTS; ++i) {
        assert_int_equal(1, first[i]);
    }
    assert_false(bfo_name_claim(&shared, (bfo_id_t) OBJECTS << 32, false));
    assert_true(bfo_name_claim(&shared, (bfo_id_t) (OBJECTS + 1) << 32, false));
    shared.gen = UINT32_MAX;
    assert_true(bfo_name_claim(&shared, (bfo_id_t) UINT32_MAX << 32, true));
    assert_int_equal(1, shared.gen);
}

/* ---- matching ---------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bfo_match_t match;
static bfo_lane_match_t lanes[2];
static bfo_posted_t wants[2][MESSAGES];
static bfo_unexpected_t unexpected[2][MESSAGES];
static unsigned matched;

/* Threads 0 and 1 post receives from ranks 0 and 1. Threads 2 and 3 deliver the messages of these ranks, out of order. */
static void *meet(void *arg)
{
    const int side = (int) (intptr_t) arg % 2;

    for (unsigned i = 0; i < MESSAGES; ++i) {
        pthread_mutex_lock(&lock);
        if ((intptr_t) arg < 2) {
            bfo_posted_t *w = &wants[side][i];
            bfo_unexpected_t *got;

            *w = (bfo_posted_t){.key = {.src = side, .tag = 0 == i % 5 ? BFO_ANY_TAG : 1}};
            got = bfo_match_peek(&match, &lanes[side], w->key.src, w->key.tag);
            if (NULL != got) {
                bfo_match_take(&match, got);
                ++matched;
            } else {
                bfo_match_post(&match, &lanes[side], w);
            }
        } else {
            const unsigned seq = i ^ 1; /* each pair of messages changes places */
            bfo_unexpected_t *got = &unexpected[side][seq];

            *got = (bfo_unexpected_t){.by_key = {.src = side, .tag = 1}, .seq = seq};
            if (BFO_SEQ_NEXT != bfo_lane_admit(&lanes[side], seq)) {
                bfo_lane_hold(&lanes[side], got);
                got = NULL;
            }
            for (; NULL != got; got = bfo_lane_next_held(&lanes[side])) {
                if (NULL != bfo_match_arrive(&match, &lanes[side], side, 1)) {
                    ++matched;
                } else {
                    bfo_match_store(&match, &lanes[side], got);
                }
            }
        }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void each_receive_meets_one_message(void **state)
{
    assert_int_equal(0, bfo_match_init(&match));
    bfo_lane_match_init(&lanes[0], 0);
    bfo_lane_match_init(&lanes[1], 0);
    run_threads(meet);
    assert_int_equal(2 * MESSAGES, matched);
    assert_int_equal(0, match.n_unexpected);
    assert_int_equal(MESSAGES, lanes[0].next_recv);
    bfo_match_free(&match);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_while_others_are_added),
        cmocka_unit_test(name_is_claimed_by_one_of_many),
        cmocka_unit_test(each_receive_meets_one_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
