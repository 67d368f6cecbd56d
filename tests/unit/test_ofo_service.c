/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The service threads: their work while the process computes, the fences that they report as over, and their end. This program stands in
 * for the rest of the BTL. DESIGN.txt sections 10.3 and 15.1.
 */
#include "bfo_config.h"

#include "connect/btl_openib_async.h"
#include "types/btl_openib_atomic.h"
#include "connect/btl_openib_connect.h"
#include "types/btl_openib_ctl.h"
#include "fault/btl_openib_failover.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_open.h"
#include "rail/btl_openib_peer.h"
#include "rail/btl_openib_probe.h"
#include "qp/btl_openib_qpset.h"
#include "rail/btl_openib_rail.h"
#include "device/btl_openib_ring_memory.h"
#include "threads/btl_openib_service.h"
#include "qp/btl_openib_stash.h"
#include "types/btl_openib_timers.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

enum { MODULES = 2, PATIENCE_MS = 30000 };

ofo_component_t mca_btl_openib_component;

static ofo_module_t module[MODULES];
static ofo_device_t device;

/* ---- functions that the room calls -------------------------------------------------------------- */

static int32_t adopted, dispatched; /* atomic; adopted: number of modules with a letter in their inbox when the peer was made */
static bool has_proc;
static ofo_peer_t peer;

ofo_peer_t *ofo_peer_get(const opal_process_name_t *name, opal_proc_t *proc)
{
    has_proc |= NULL != proc;
    for (unsigned i = 0; i < MODULES; ++i) {
        adopted += 1 == OFO_LOAD(module[i].inbox.count);
    }
    return &peer;
}
void ofo_ctl_dispatch(ofo_module_t *module, const ofo_ctl_t *ctl)
{
    OFO_STORE(dispatched, 1);
}
static bool is_destroyed;
bool ofo_qpset_stop_busy(ofo_qpset_t *qps)
{
    return is_destroyed;
}
void ofo_async_look_again(ofo_device_t *device, uint64_t now) {}
void ofo_async_read(ofo_module_t *module) {}
void ofo_async_answer(ofo_module_t *module) {}
void ofo_ctl_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl) {}
void ofo_log(unsigned level, const char *format, ...) {}
bool ofo_open_due(ofo_module_t *module)
{
    return false;
}
void ofo_open_next(ofo_module_t *module) {}
void ofo_open_want(ofo_endpoint_t *ep) {}
bool ofo_poll_and_keep(ofo_module_t *module)
{
    return true;
}
bool ofo_qpset_destroy(ofo_qpset_t *qps)
{
    return true;
}
void ofo_rail_declared(ofo_endpoint_t *ep) {}
static int32_t events; /* atomic */
void ofo_rail_event(ofo_endpoint_t *ep, ofo_fsm_event_t event, const ofo_ctl_t *ctl)
{
    OFO_STORE(events, OFO_LOAD(events) + 1);
}
void ofo_probe_begin(ofo_endpoint_t *ep, uint16_t gen) {}
void ofo_probe_tell(ofo_endpoint_t *ep, uint16_t gen) {}
void ofo_probe_told(ofo_endpoint_t *ep, uint16_t gen) {}
void ofo_rail_fence(ofo_endpoint_t *ep, const ofo_mail_t *mail) {}
void ofo_rail_fence_done(ofo_endpoint_t *ep, uint16_t gen, ofo_qpset_t *qps) {}
void ofo_rail_message(ofo_endpoint_t *ep, const ofo_ctl_t *ctl) {}
static int32_t looks; /* at endpoints; atomic */
void ofo_rail_timers(ofo_endpoint_t *ep, uint64_t now)
{
    OFO_STORE(looks, OFO_LOAD(looks) + 1);
}
void ofo_rail_up(ofo_endpoint_t *ep, ofo_qpset_t *qps) {}
int ofo_ring_create(ofo_qpset_t *qps)
{
    return 0;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static int fd(const ofo_module_t *module)
{
    return -1;
}
static int32_t rounds[MODULES]; /* of each service thread; atomic */
static void receive(ofo_module_t *of)
{
    OFO_STORE(rounds[of - module], OFO_LOAD(rounds[of - module]) + 1);
}

static int begin(void **state)
{
    static const ofo_cpc_t cpc = {.fd = fd, .receive = receive};

    OFO.cpc = &cpc;
    OFO.module_count = MODULES;
    memset(module, 0, sizeof(module));
    memset(rounds, 0, sizeof(rounds));
    for (unsigned i = 0; i < MODULES; ++i) {
        OFO.module[i] = &module[i];
        module[i].device = &device;
        ofo_mailbox_init(&module[i].inbox);
        ofo_mailbox_init(&module[i].service_inbox);
        assert_int_equal(ofo_service_start(&module[i]), OPAL_SUCCESS);
    }
    adopted = dispatched = events = 0;
    has_proc = false;
    device.fatal = false;
    return 0;
}

static int end(void **state)
{
    for (unsigned i = 0; i < MODULES; ++i) {
        ofo_service_stop(&module[i]);
    }
    for (unsigned i = 0; i < MODULES; ++i) {
        ofo_service_free(&module[i]);
        ofo_mailbox_free(&module[i].inbox);
        ofo_mailbox_free(&module[i].service_inbox);
    }
    return 0;
}

/* Waits for the first letter of that kind to progress. */
static ofo_mail_t *await_letter(ofo_module_t *of, ofo_mail_kind_t kind)
{
    for (int ms = 0; ms < PATIENCE_MS; ++ms) {
        ofo_mail_t *mail = ofo_mailbox_take(&of->inbox);
        if (NULL != mail) {
            assert_int_equal(mail->kind, kind);
            assert_null(mail->next);
            return mail;
        }
        (void) poll(NULL, 0, 1);
    }
    fail_msg("no letter");
    return NULL;
}

/* Service asks nothing of Open MPI, and whichever module progress looks at first, it finds the process before its messages. */
static void stranger_is_answered_while_the_process_computes(void **state)
{
    const ofo_ctl_t ctl = {.type = OFO_CTL_REQ, .jobid = 3, .vpid = 4};

    ofo_tell_progress(&module[0], OFO_MAIL_UNKNOWN, NULL, 0, &ctl, NULL);
    ofo_service_wake(&module[0]);
    for (int ms = 0; ms < PATIENCE_MS && !OFO_LOAD(dispatched); ++ms) {
        (void) poll(NULL, 0, 1);
    }
    assert_int_equal(dispatched, 1);
    assert_false(has_proc);
    assert_int_equal(adopted, MODULES);
    for (unsigned i = 0; i < MODULES; ++i) {
        ofo_mail_t *mail = await_letter(&module[i], OFO_MAIL_MET);
        assert_int_equal(mail->ctl.vpid, 4);
        free(mail);
    }
}

/* A failed device may still write to memory. */
static void fence_is_not_over_before_its_queue_pairs_are_gone(void **state)
{
    ofo_qpset_t qps = {.module = &module[0]};
    ofo_endpoint_t ep = {.module = &module[0]};

    device.fatal = true;
    is_destroyed = false;
    ofo_tell_service(&ep, OFO_MAIL_STUCK, 0, NULL, &qps);
    free(await_letter(&module[0], OFO_MAIL_OBSTINATE));
    is_destroyed = true;
    ofo_tell_service(&ep, OFO_MAIL_STUCK, 0, NULL, &qps);
    free(await_letter(&module[0], OFO_MAIL_ABANDON));
}

/* The letters were under way while the rail was lost and came back. */
static void letter_of_a_generation_before_is_no_event(void **state)
{
    const ofo_mail_kind_t kinds[] = {OFO_MAIL_ERROR, OFO_MAIL_PROVED, OFO_MAIL_FIRST_RECV};
    ofo_endpoint_t ep = {.module = &module[0], .fsm = {.state = OFO_ST_UP, .gen = 1}};

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        ofo_tell_service(&ep, kinds[i], 0, NULL, NULL);
    }
    ofo_tell_service(&ep, OFO_MAIL_ERROR, 1, NULL, NULL); /* read after the others */
    for (int ms = 0; ms < PATIENCE_MS && 0 == OFO_LOAD(events); ++ms) {
        (void) poll(NULL, 0, 1);
    }
    ofo_service_stop(&module[0]);
    assert_int_equal(OFO_LOAD(events), 1);
}

/* Only progress takes a rail into use that came back. Service cannot help, and therefore does not look again and again. */
static void letter_that_only_progress_can_read_keeps_no_service_awake(void **state)
{
    ofo_tell_progress(&module[0], OFO_MAIL_UP, NULL, 1, NULL, NULL);
    ofo_service_wake(&module[0]);
    for (int ms = 0; ms < PATIENCE_MS && 0 == OFO_LOAD(rounds[0]); ++ms) {
        (void) poll(NULL, 0, 1);
    }
    (void) poll(NULL, 0, 100); /* nothing wakes service, however long this takes */
    assert_int_equal(OFO_LOAD(rounds[0]), 1);
    free(await_letter(&module[0], OFO_MAIL_UP));
}

/* The descriptor of a thread that ends first stays open until no thread runs, because the others still write to it. */
static void descriptor_stays_until_all_services_have_ended(void **state)
{
    uint64_t counter = 0;

    ofo_service_stop(&module[0]);
    assert_true(0 <= module[0].wake_fd);
    (void) read(module[0].wake_fd, &counter, sizeof(counter));
    ofo_service_wake(&module[0]);
    assert_int_equal(read(module[0].wake_fd, &counter, sizeof(counter)), sizeof(counter));
    assert_int_equal(counter, 1);
    ofo_service_stop(&module[1]);
    ofo_service_free(&module[0]);
    assert_int_equal(module[0].wake_fd, -1);
}

/* The rail waits for its port and has no time of its own. */
static void rail_that_waits_for_its_port_is_looked_at_when_the_port_is_back(void **state)
{
    static ofo_endpoint_t ep = {.module = &module[0], .rejoin = {.at = OFO_REJOIN_WITH_PORT}};

    ofo_service_stop(&module[0]);
    ofo_service_free(&module[0]);
    module[0].stop = false;
    OFO_STORE(looks, 0);
    ofo_timers_sleep(&ep, UINT64_MAX);
    assert_int_equal(ofo_service_start(&module[0]), OPAL_SUCCESS);
    OFO_STORE(module[0].port_up, true);
    ofo_service_wake(&module[0]);
    for (int ms = 0; ms < PATIENCE_MS && 0 == OFO_LOAD(looks); ++ms) {
        (void) poll(NULL, 0, 1);
    }
    assert_int_not_equal(OFO_LOAD(looks), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(stranger_is_answered_while_the_process_computes), TEST(fence_is_not_over_before_its_queue_pairs_are_gone),
        TEST(letter_of_a_generation_before_is_no_event),       TEST(letter_that_only_progress_can_read_keeps_no_service_awake),
        TEST(descriptor_stays_until_all_services_have_ended),  TEST(rail_that_waits_for_its_port_is_looked_at_when_the_port_is_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
