/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which endpoints service looks at: those on the list, and those of the heap that are due. Compared with a search of all endpoints. DESIGN.txt 15.1.
 */
#include "bfo_config.h"

#include "types/btl_openib_timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 1000 };

static ofo_module_t module;
static ofo_endpoint_t ep[MANY];
static uint64_t expected[MANY]; /* when the endpoint is due; 0: it is not in the heap */
static bool is_memory_out;

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    return is_memory_out ? NULL : __real_realloc(old, size);
}

static int nothing(void **state)
{
    (void) state;
    ofo_timers_free(&module);
    memset(&module, 0, sizeof(module));
    memset(ep, 0, sizeof(ep));
    memset(expected, 0, sizeof(expected));
    for (unsigned i = 0; i < MANY; ++i) {
        ep[i].module = &module;
    }
    is_memory_out = false;
    return 0;
}

static void sleeps(unsigned i, uint64_t due)
{
    ofo_timers_sleep(&ep[i], due);
    expected[i] = due;
}

static uint64_t first_due(void)
{
    uint64_t first = UINT64_MAX;

    for (unsigned i = 0; i < MANY; ++i) {
        first = 0 != expected[i] && expected[i] < first ? expected[i] : first;
    }
    return first;
}

/* Takes what is due, and compares. Returns the number of endpoints. */
static unsigned take(uint64_t now, bool all)
{
    unsigned n = 0;

    for (ofo_endpoint_t *next, *at = ofo_timers_take(&module, now, all); NULL != at; at = next) {
        const unsigned i = (unsigned) (at - ep);

        next = at->next_active;
        assert_true(at->is_active);
        assert_true(0 != expected[i] && (all || expected[i] <= now));
        at->is_active = false;
        expected[i] = 0;
        ++n;
    }
    for (unsigned i = 0; i < MANY; ++i) {
        assert_true(0 == expected[i] || (!all && expected[i] > now));
    }
    assert_int_equal(ofo_timers_due(&module), first_due());
    return n;
}

static void endpoints_are_taken_when_they_are_due(void **state)
{
    unsigned taken = 0;

    (void) state;
    srand(7);
    for (uint64_t now = 1; now < 3000; ++now) {
        for (unsigned k = 0; k < 5; ++k) {
            sleeps((unsigned) rand() % MANY, now + 1 + (uint64_t) rand() % 500); /* also one that sleeps: earlier or later than before */
        }
        assert_int_equal(ofo_timers_due(&module), first_due());
        taken += take(now, false);
    }
    assert_in_range(taken, 3000, 15000);
    assert_true(take(3000, true) > 100);
    assert_int_equal(module.timers.count, 0);
}

static void endpoint_on_the_list_is_taken_at_once_and_only_once(void **state)
{
    ofo_endpoint_t *list;

    (void) state;
    sleeps(3, 500);
    sleeps(4, 10);
    ofo_timers_add(&ep[3]);
    ofo_timers_add(&ep[3]);
    ofo_timers_add(&ep[4]);
    list = ofo_timers_take(&module, 10, false); /* 4 is due as well */
    assert_true((&ep[3] == list && &ep[4] == list->next_active) || (&ep[4] == list && &ep[3] == list->next_active));
    assert_null(list->next_active->next_active);
    assert_null(module.active);
    assert_int_equal(ofo_timers_due(&module), 500); /* it may wake service once more */
    ep[3].is_active = ep[4].is_active = false;
    ofo_timers_sleep(&ep[3], 20);
    assert_int_equal(ofo_timers_due(&module), 20);
    assert_int_equal(module.timers.count, 1);
}

static void endpoint_that_waits_for_an_event_is_taken_with_all(void **state)
{
    (void) state;
    sleeps(0, UINT64_MAX);
    assert_int_equal(take(UINT64_MAX - 1, false), 0);
    assert_int_equal(take(1, true), 1);
}

static void without_memory_endpoints_stay_on_the_list(void **state)
{
    (void) state;
    is_memory_out = true;
    sleeps(0, 100);
    assert_ptr_equal(module.active, &ep[0]);
    assert_int_equal(take(100, false), 1);
    is_memory_out = false;
    sleeps(0, 100);
    assert_null(module.active);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(endpoints_are_taken_when_they_are_due, nothing),
        cmocka_unit_test_setup(endpoint_on_the_list_is_taken_at_once_and_only_once, nothing),
        cmocka_unit_test_setup(endpoint_that_waits_for_an_event_is_taken_with_all, nothing),
        cmocka_unit_test_setup(without_memory_endpoints_stay_on_the_list, nothing),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);

    ofo_timers_free(&module);
    return failed;
}
