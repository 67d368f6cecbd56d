/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Expected to fail: a letter for which there is no memory is lost, and with it the report that a fence has ended. The memory of such a
 * letter belongs in the object that the letter is about. DESIGN.txt section 15.1.
 */
#include "bfo_config.h"

#include "btl_openib_mail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

ofo_component_t mca_btl_openib_component;

static bool is_short; /* there is no memory */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return is_short ? NULL : __real_calloc(count, size);
}

/* ---- tests -------------------------------------------------------------------------------------- */

static void end_of_a_fence_is_told_without_memory(void **state)
{
    static ofo_module_t module = {.wake_fd = -1};
    ofo_endpoint_t ep = {.module = &module};
    ofo_qpset_t qps = {.module = &module, .ep = &ep};

    ofo_mailbox_init(&module.inbox);
    ofo_mailbox_init(&module.service_inbox);
    is_short = true;
    ofo_tell_progress(&module, OFO_MAIL_DRAIN, &ep, 0, NULL, &qps);
    ofo_tell_service(&ep, OFO_MAIL_FENCE_DONE, 0, NULL, &qps);
    is_short = false;
    assert_int_equal(module.inbox.count, 1);
    assert_int_equal(module.service_inbox.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(end_of_a_fence_is_told_without_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
