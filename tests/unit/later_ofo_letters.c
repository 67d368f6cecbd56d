/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Expected to fail: a letter for which there is no memory is lost, and with it the end of a fence. Each letter that says so belongs
 * in what it is about. DESIGN.txt section 15.1.
 */
#include "bfo_config.h"

#include "btl_openib.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

ofo_component_t mca_btl_openib_component;

static bool is_short; /* of memory */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return is_short ? NULL : __real_calloc(count, size);
}

/* ---- what the room calls ------------------------------------------------------------------------ */

#define NOTHING(name, ...) \
    void name(__VA_ARGS__) \
    { \
    }
NOTHING(ofo_async_answer, ofo_module_t *module)
NOTHING(ofo_async_look_again, ofo_device_t *device, uint64_t now)
NOTHING(ofo_async_read, ofo_module_t *module)
NOTHING(ofo_ctl_dispatch, ofo_module_t *module, const ofo_ctl_t *ctl)
NOTHING(ofo_ctl_send, ofo_endpoint_t *ep, ofo_ctl_t *ctl)
NOTHING(ofo_log, unsigned level, const char *format, ...)
NOTHING(ofo_open_next, ofo_module_t *module)
NOTHING(ofo_open_want, ofo_endpoint_t *ep)
NOTHING(ofo_rail_declared, ofo_endpoint_t *ep)
NOTHING(ofo_rail_event, ofo_endpoint_t *ep, ofo_fsm_event_t event, const ofo_ctl_t *ctl)
NOTHING(ofo_rail_fence, ofo_endpoint_t *ep, const ofo_mail_t *mail)
NOTHING(ofo_rail_fence_done, ofo_endpoint_t *ep, uint16_t gen, ofo_qpset_t *qps)
NOTHING(ofo_rail_message, ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
NOTHING(ofo_rail_timers, ofo_endpoint_t *ep, uint64_t now)
NOTHING(ofo_rail_up, ofo_endpoint_t *ep, ofo_qpset_t *qps)
NOTHING(ofo_sleep_end, void)
bool ofo_open_due(ofo_module_t *module)
{
    return false;
}
ofo_peer_t *ofo_peer_get(const opal_process_name_t *name, opal_proc_t *proc)
{
    return NULL;
}
bool ofo_poll_and_keep(ofo_module_t *module)
{
    return true;
}
bool ofo_qpset_destroy(ofo_qpset_t *qps)
{
    return true;
}
bool ofo_qpset_stop_busy(ofo_qpset_t *qps)
{
    return true;
}
int ofo_ring_create(ofo_qpset_t *qps)
{
    return 0;
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
