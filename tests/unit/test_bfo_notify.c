/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which events the PML sends to other processes, how many of them in a minute, and that no event leaves the node or reaches default
 * handlers. This program stands in for PMIx. DESIGN.txt section 19.13.
 */
#include "bfo_config.h"

#include "types/pml_bfo.h"

#include "show/pml_bfo_notify.h"
#include "types/pml_bfo_params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

bfo_params_t bfo_params;

static const uint64_t second = UINT64_C(1000000000);
static uint64_t now = UINT64_C(77000000000); /* each test begins a new minute */

static void happens(uint32_t what, uint32_t generation)
{
    bfo_notify_add(&(bfo_figures_event_t){.mono = now, .what = what, .generation = generation});
}

static void next_minute(void)
{
    bfo_figures_event_t event;

    now += 60 * second;
    while (bfo_notify_next(&event)) {
    }
    (void) bfo_notify_held_back(now + 60 * second);
}

static void event_of_a_fault_is_told_once_in_order(void **state)
{
    bfo_figures_event_t event;

    next_minute();
    happens(BFO_FIGURES_RAIL_LOST, 1);
    happens(BFO_FIGURES_RAIL_BACK, 2);
    assert_true(bfo_notify_next(&event));
    assert_int_equal(event.what, BFO_FIGURES_RAIL_LOST);
    assert_int_equal(event.generation, 1);
    assert_true(bfo_notify_next(&event));
    assert_int_equal(event.what, BFO_FIGURES_RAIL_BACK);
    assert_int_equal(event.generation, 2);
    assert_false(bfo_notify_next(&event));
}

static void event_that_is_no_fault_is_not_told(void **state)
{
    bfo_figures_event_t event;

    next_minute();
    happens(BFO_FIGURES_BEGUN, 0);
    happens(BFO_FIGURES_PARAMETER, 0);
    assert_false(bfo_notify_next(&event));
    for (uint32_t what = BFO_FIGURES_PORT_DOWN; what < BFO_FIGURES_PARAMETER; ++what) {
        happens(what, 0);
        assert_true(bfo_notify_next(&event));
    }
}

static void flood_of_a_minute_is_counted(void **state)
{
    bfo_figures_event_t event;

    next_minute();
    for (uint32_t i = 0; i < BFO_NOTIFY_MOST + 5; ++i) {
        happens(BFO_FIGURES_RAIL_LOST, i);
    }
    for (uint32_t i = 0; i < BFO_NOTIFY_MOST; ++i) {
        assert_true(bfo_notify_next(&event));
        assert_int_equal(event.generation, i);
    }
    assert_false(bfo_notify_next(&event));
    happens(BFO_FIGURES_RAIL_LOST, 0); /* events that were fetched still count in their minute */
    assert_false(bfo_notify_next(&event));
    assert_int_equal(bfo_notify_held_back(now + 60 * second - 1), 0);
    assert_int_equal(bfo_notify_held_back(now + 60 * second), 6);
    assert_int_equal(bfo_notify_held_back(now + 60 * second), 0);
    now += 60 * second;
    happens(BFO_FIGURES_RAIL_LOST, 99);
    assert_true(bfo_notify_next(&event));
    assert_int_equal(event.generation, 99);
}

/* The application does not call MPI for an hour. */
static void events_that_nobody_fetches_are_counted_beyond_the_room(void **state)
{
    bfo_figures_event_t event;
    uint32_t n = 0;

    next_minute();
    for (uint32_t i = 0; i < 60; ++i) {
        now += 60 * second;
        happens(BFO_FIGURES_RAIL_LOST, 2 * i);
        happens(BFO_FIGURES_RAIL_BACK, 2 * i + 1);
    }
    while (bfo_notify_next(&event)) {
        assert_int_equal(event.generation, n);
        ++n;
    }
    assert_int_equal(n, 4 * BFO_NOTIFY_MOST);
    assert_int_equal(bfo_notify_held_back(now + 60 * second), 120 - n);
}

#if BFO_OMPI_HAS_PMIX_EVENTS
/* ---- PMIx ---------------------------------------------------------------------------------------------- */

static int answer;
static unsigned asked, freed;
static opal_list_t *taken; /* PMIx calls back for this list later */

static int take_event(int status, const opal_process_name_t *source, opal_pmix_data_range_t range, opal_list_t *info, opal_pmix_op_cbfunc_t done,
                      void *cbdata)
{
    opal_value_t *entry;
    bool is_for_default = true;

    ++asked;
    assert_int_equal(status, BFO_NOTIFY_CODE);
    assert_int_equal(range, OPAL_PMIX_RANGE_LOCAL);
    assert_non_null(done);
    OPAL_LIST_FOREACH(entry, info, opal_value_t)
    {
        is_for_default = is_for_default && !(0 == strcmp("pmix.evnondef", entry->key) && OPAL_BOOL == entry->type && entry->data.flag);
    }
    assert_false(is_for_default);
    taken = OPAL_SUCCESS == answer ? cbdata : NULL;
    return answer;
}

static int last_status;

static void is_sent(int status, void *note)
{
    ++freed;
    last_status = status;
    bfo_ompi_note_free(note);
}

static void event_stays_on_the_node_and_is_freed_once(void **state)
{
    static const int answers[] = {OPAL_SUCCESS, OPAL_OPERATION_SUCCEEDED, OPAL_ERR_NOT_SUPPORTED};

    opal_pmix.notify_event = take_event;
    for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); ++i) {
        opal_list_t *note = OBJ_NEW(opal_list_t);

        answer = answers[i];
        bfo_ompi_note_text(note, "bfo.event", "rail-lost");
        bfo_ompi_notify(BFO_NOTIFY_CODE, note, is_sent);
        assert_int_equal(asked, i + 1);
        if (NULL != taken) {
            assert_int_equal(freed, i);
            is_sent(OPAL_SUCCESS, taken);
        }
        assert_int_equal(freed, i + 1);
        assert_int_equal(last_status, OPAL_ERR_NOT_SUPPORTED == answers[i] ? OPAL_ERR_NOT_SUPPORTED : OPAL_SUCCESS);
    }
    opal_pmix.notify_event = NULL;
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_of_a_fault_is_told_once_in_order),
        cmocka_unit_test(event_that_is_no_fault_is_not_told),
        cmocka_unit_test(flood_of_a_minute_is_counted),
        cmocka_unit_test(events_that_nobody_fetches_are_counted_beyond_the_room),
#if BFO_OMPI_HAS_PMIX_EVENTS
        cmocka_unit_test(event_stays_on_the_node_and_is_freed_once),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
