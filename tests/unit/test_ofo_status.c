/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Every completion status, first or later, with the port up and down: is it the rail's fault, or poison?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "formats/btl_openib_status.h"

enum { STATUSES = IBV_WC_GENERAL_ERR + 1 };

static bool is_rail_fault(enum ibv_wc_status status)
{
    static const enum ibv_wc_status rail[] = {IBV_WC_RETRY_EXC_ERR,    IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR,
                                              IBV_WC_RESP_TIMEOUT_ERR, IBV_WC_FATAL_ERR,         IBV_WC_GENERAL_ERR};

    for (size_t i = 0; i < sizeof(rail) / sizeof(rail[0]); ++i) {
        if (status == rail[i]) {
            return true;
        }
    }
    return false;
}

static void status_first_with_living_port(void **state)
{
    for (int s = 1; s < STATUSES; ++s) {
        ofo_wc_class_t expected = is_rail_fault((enum ibv_wc_status) s) ? OFO_WC_RAIL : OFO_WC_POISON;
        assert_int_equal(ofo_status_class((enum ibv_wc_status) s, true, false, true), expected);
    }
}

static void status_behind_the_first_is_never_poison(void **state)
{
    for (int s = 1; s < STATUSES; ++s) {
        assert_int_equal(ofo_status_class((enum ibv_wc_status) s, false, s & 1, true), OFO_WC_RAIL);
        assert_int_equal(ofo_status_class((enum ibv_wc_status) s, false, s & 1, false), OFO_WC_RAIL);
    }
}

static void status_of_a_dead_port(void **state)
{
    for (int s = 1; s < STATUSES; ++s) {
        bool rail = is_rail_fault((enum ibv_wc_status) s) || IBV_WC_LOC_QP_OP_ERR == s;
        assert_int_equal(ofo_status_class((enum ibv_wc_status) s, true, false, false), rail ? OFO_WC_RAIL : OFO_WC_POISON);
    }
    assert_int_equal(ofo_status_class(IBV_WC_LOC_PROT_ERR, true, false, false), OFO_WC_POISON);
}

static void status_of_a_fenced_queue_pair_is_poison_only_if_local(void **state)
{
    for (int s = 1; s < STATUSES; ++s) {
        bool local = IBV_WC_LOC_LEN_ERR == s || IBV_WC_LOC_PROT_ERR == s || IBV_WC_LOC_QP_OP_ERR == s;
        assert_int_equal(ofo_status_class((enum ibv_wc_status) s, true, true, true), local ? OFO_WC_POISON : OFO_WC_RAIL);
    }
}

static void status_success_is_good(void **state)
{
    assert_int_equal(ofo_status_class(IBV_WC_SUCCESS, true, false, true), OFO_WC_GOOD);
    assert_int_equal(ofo_status_class(IBV_WC_SUCCESS, false, true, false), OFO_WC_GOOD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_first_with_living_port), cmocka_unit_test(status_behind_the_first_is_never_poison),
        cmocka_unit_test(status_of_a_dead_port),         cmocka_unit_test(status_of_a_fenced_queue_pair_is_poison_only_if_local),
        cmocka_unit_test(status_success_is_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
