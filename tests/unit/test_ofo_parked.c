/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Incoming connects of rdmacm that wait for their set: complete sets, copies, other rails, and the clock. This program stands in for
 * librdmacm, and notes which connects are rejected and destroyed.
 */
#include "connect/btl_openib_connect_parked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { IDS = 4 };
static struct rdma_cm_id id[IDS];
static unsigned rejected[IDS], destroyed[IDS];
static size_t reject_length;

static ofo_module_t module;
static ofo_peer_t peer = {.name = {.jobid = 7, .vpid = 3}};
static ofo_endpoint_t ep = {.module = &module, .peer = &peer, .rail = 1};

int rdma_reject(struct rdma_cm_id *which, const void *data, uint8_t length)
{
    ++rejected[which - id];
    reject_length = length;
    return 0;
}

int rdma_destroy_id(struct rdma_cm_id *which)
{
    ++destroyed[which - id];
    return 0;
}

static int fresh(void **state)
{
    ofo_parked_free(&module);
    memset(rejected, 0, sizeof(rejected));
    memset(destroyed, 0, sizeof(destroyed));
    reject_length = 0;
    return 0;
}

/* Adds a connect of a set of two queue pairs. */
static bool add(unsigned which, uint8_t rail, uint8_t index, uint64_t now)
{
    const ofo_ctl_t ctl = {.type = OFO_CTL_REQ, .jobid = 7, .vpid = 3, .src_inc = 99, .rail = rail, .nqp = 2, .qp_index = index};

    return ofo_parked_add(&module, &id[which], &ctl, now);
}

static void assert_ended(unsigned which, unsigned times)
{
    assert_int_equal(times, rejected[which]);
    assert_int_equal(times, destroyed[which]);
}

static void set_is_complete_with_its_last_connect(void **state)
{
    unsigned index;

    assert_false(add(0, 1, 1, 10));
    assert_false(add(1, 2, 0, 11)); /* of another rail */
    assert_true(add(2, 1, 0, 12));
    assert_ptr_equal(&id[2], ofo_parked_take(&ep, 0, &index));
    assert_int_equal(0, index);
    assert_ptr_equal(&id[0], ofo_parked_take(&ep, 0, &index));
    assert_int_equal(1, index);
    assert_null(ofo_parked_take(&ep, 0, &index));
    assert_ended(0, 0); /* the caller owns the connects now */
    ofo_parked_free(&module);
    assert_ended(1, 1);
}

static void newer_connect_takes_the_place_of_an_older_one(void **state)
{
    assert_false(add(0, 1, 1, 10));
    assert_false(add(1, 1, 1, 11)); /* the same queue pair again, therefore the other one is still missing */
    assert_ended(0, 1);
    assert_ended(1, 0);
    assert_true(add(2, 1, 0, 12));
}

static void connect_that_waits_too_long_is_rejected_without_another_one(void **state)
{
    assert_int_equal(0, ofo_parked_expire(&module, 5));
    add(0, 1, 0, 1000);
    add(1, 2, 0, 3000);
    assert_int_equal(1000 + OFO_PARKED_MS, ofo_parked_expire(&module, 1000 + OFO_PARKED_MS - 1));
    assert_ended(0, 0);
    assert_int_equal(3000 + OFO_PARKED_MS, ofo_parked_expire(&module, 1000 + OFO_PARKED_MS));
    assert_ended(0, 1);
    assert_ended(1, 0);
    assert_int_equal(0, ofo_parked_expire(&module, 9000 + OFO_PARKED_MS));
    assert_ended(1, 1);
}

static void rejection_is_for_one_rail_and_generation(void **state)
{
    add(0, 1, 0, 1);
    add(1, 2, 0, 1);
    ofo_parked_reject(&ep, 1, NULL, 0);
    assert_ended(0, 0);
    ofo_parked_reject(&ep, 0, (const uint8_t *) "why", 3);
    assert_ended(0, 1);
    assert_int_equal(3, reject_length);
    assert_ended(1, 0);
}

static void connect_that_the_peer_gave_up_is_destroyed_and_not_answered(void **state)
{
    add(0, 1, 0, 1);
    ofo_parked_drop(&module, &id[1]);
    ofo_parked_drop(&module, &id[0]);
    assert_int_equal(0, rejected[0]);
    assert_int_equal(1, destroyed[0]);
    assert_null(module.cm.parked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(set_is_complete_with_its_last_connect, fresh),
        cmocka_unit_test_setup(newer_connect_takes_the_place_of_an_older_one, fresh),
        cmocka_unit_test_setup(connect_that_waits_too_long_is_rejected_without_another_one, fresh),
        cmocka_unit_test_setup(rejection_is_for_one_rail_and_generation, fresh),
        cmocka_unit_test_setup(connect_that_the_peer_gave_up_is_destroyed_and_not_answered, fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
