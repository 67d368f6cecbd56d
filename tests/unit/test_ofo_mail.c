/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Letters when memory is short: a lost letter would be, for example, a fence whose end nobody hears of. DESIGN.txt section 15.1.
 */
#include "bfo_config.h"

#include "types/btl_openib_mail.h"

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

static void spares_are_made_again_when_memory_is_back(void **state)
{
    static ofo_module_t module = {.wake_fd = -1};
    ofo_endpoint_t ep = {.module = &module};
    unsigned many;

    ofo_mailbox_init(&module.inbox);
    many = module.inbox.spares;
    is_short = true;
    for (unsigned i = 0; i < many + 1; ++i) {
        ofo_tell_progress(&module, OFO_MAIL_FENCED, &ep, 0, NULL, NULL);
    }
    is_short = false;
    assert_int_equal(module.inbox.count, many);
    assert_int_equal(module.inbox.spares, 0);
    ofo_tell_progress(&module, OFO_MAIL_FENCED, &ep, 0, NULL, NULL);
    assert_int_equal(module.inbox.count, many + 1);
    assert_int_equal(module.inbox.spares, many);
    ofo_mailbox_forget_spares(&module.inbox);
    assert_null(module.inbox.spare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end_of_a_fence_is_told_without_memory),
        cmocka_unit_test(spares_are_made_again_when_memory_is_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
