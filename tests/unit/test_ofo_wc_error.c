/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What causes a "local operation error"? The request, but only if the port, its address and the queue pair are known to be in order after
 * the device's events were read. This program stands in for verbs and the rest of the BTL. DESIGN.txt section 15.5.
 */
#include "bfo_config.h"

#include "device/btl_openib_address.h"
#include "connect/btl_openib_async.h"
#include "out/btl_openib_complete.h"
#include "qp/btl_openib_drain.h"
#include "fault/btl_openib_failed_work.h"
#include "types/btl_openib_log.h"
#include "qp/btl_openib_marker.h"
#include "out/btl_openib_rdma.h"
#include "out/btl_openib_silent.h"
#include "device/btl_openib_srq.h"
#include "fault/btl_openib_wc_error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

ofo_component_t mca_btl_openib_component;

/* ---- verbs -------------------------------------------------------------------------------------- */

static enum ibv_port_state port_state;
static int query_fails; /* errno of a query; EIO if the device is gone */

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return "";
}

/* ---- functions that the room calls -------------------------------------------------------------- */

static ofo_module_t module;
static bool is_settled, is_interface_lost, event_waits, port_follows;
static unsigned completions, rails_failed;
static int completed_with;

bool ofo_async_port_is_up(ofo_module_t *module, bool unanswered)
{
    return module->port_up && 0 == query_fails && IBV_PORT_ACTIVE == port_state;
}
bool ofo_async_settled(ofo_device_t *device)
{
    if (event_waits) {
        module.port_up = false; /* according to the event */
    }
    return is_settled;
}
bool ofo_port_lost_interface(const ofo_module_t *module)
{
    if (port_follows) {
        port_state = IBV_PORT_DOWN; /* the kernel answers after it has handled the link */
    }
    return is_interface_lost;
}
void ofo_send_complete(ofo_frag_t *frag, int status)
{
    ++completions;
    completed_with = status;
}
void ofo_rail_failed(ofo_qpset_t *qps, const char *why)
{
    ++rails_failed;
    (void) ofo_drain_step(&qps->drain, OFO_DEV_ERROR);
}
static unsigned rails_closed;
void ofo_rail_closed(ofo_qpset_t *qps)
{
    ++rails_closed;
    (void) ofo_drain_step(&qps->drain, OFO_DEV_CLOSE);
}
void ofo_rdma_part_done(ofo_rdma_t *rdma, int status) {}
void ofo_drain_check(ofo_qpset_t *qps) {}
void ofo_silent_forget(ofo_qpset_t *qps, unsigned index, ofo_frag_t *frag) {}
static unsigned returned;
void ofo_srq_return(ofo_srq_t *srq, ofo_recv_t *recv)
{
    ++returned;
}
void ofo_log(unsigned level, const char *format, ...) {}

/* ---- tests -------------------------------------------------------------------------------------- */

static ofo_qpset_t *qps;

static int begin(void **state)
{
    static struct ibv_context context;
    static ofo_device_t device = {.context = &context};
    static ofo_peer_t peer;
    static ofo_endpoint_t ep = {.module = &module, .peer = &peer};

    module = (ofo_module_t){.device = &device, .transport = &ofo_transport_infiniband, .port_num = 1, .port_up = true};
    qps = calloc(1, sizeof(*qps) + sizeof(qps->qp[0]));
    if (NULL == qps) {
        return -1;
    }
    qps->module = &module;
    qps->ep = &ep;
    qps->nqp = 1;
    qps->qp[0].returns.qps = qps;
    qps->qp[0].sq_slots = 64; /* no slot is free, because all work was posted */
    port_state = IBV_PORT_ACTIVE;
    query_fails = 0;
    is_settled = true;
    is_interface_lost = event_waits = port_follows = false;
    return 0;
}

static int end(void **state)
{
    free(qps);
    return 0;
}

/* A send comes back with that status; returns the status that its owner gets. */
static int told(enum ibv_wc_status status)
{
    ofo_frag_t frag = {.work = {.kind = OFO_WORK_SEND, .qp = 0, .qps = qps}};
    const struct ibv_wc wc = {.wr_id = (uintptr_t) &frag.work, .status = status};

    completions = rails_failed = 0;
    ofo_wc_error(&module, &wc);
    assert_int_equal(completions, 1);
    assert_int_equal(rails_failed, 1);
    return completed_with;
}

static void request_is_at_fault_where_all_is_well(void **state)
{
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERR_FATAL);
}

static void only_the_first_request_is_at_fault(void **state)
{
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERR_FATAL);
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERROR);
}

static void port_that_is_down_is_at_fault(void **state)
{
    module.port_up = false;
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERROR);
}

static void port_whose_event_is_still_to_come_is_at_fault(void **state)
{
    port_state = IBV_PORT_DOWN;
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERROR);
}

static void event_that_waits_is_heard_first(void **state)
{
    event_waits = true;
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERROR);
}

static void device_whose_events_are_not_read_is_at_fault(void **state)
{
    is_settled = false;
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERROR);
}

static void device_that_is_gone_is_at_fault(void **state)
{
    query_fails = EIO;
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERROR);
}

static void port_that_lost_its_interface_is_at_fault(void **state)
{
    is_interface_lost = true;
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERROR);
}

static void port_that_is_up_again_is_at_fault(void **state)
{
    ++module.downs;
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERROR);
    qps->downs = module.downs; /* as if the queue pairs were made after the port event */
    qps->drain = (ofo_drain_t){0};
    qps->qp[0].is_failed = false;
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERR_FATAL);
}

static void port_that_goes_down_meanwhile_is_at_fault(void **state)
{
    port_follows = true;
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERROR);
}

static void queue_pair_that_failed_is_at_fault(void **state)
{
    qps->qp[0].is_fatal = true;
    assert_int_equal(told(IBV_WC_LOC_QP_OP_ERR), OPAL_ERROR);
}

static void protection_error_is_the_requests_own_on_a_dead_port_too(void **state)
{
    module.port_up = false;
    assert_int_equal(told(IBV_WC_LOC_PROT_ERR), OPAL_ERR_FATAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* A process that leaves closes its connections. No rail has failed, unless somebody waits for work that comes back. */
static void iwarp_connection_that_is_closed_is_no_failure(void **state)
{
    ofo_recv_t recv[2] = {{.work = {.kind = OFO_WORK_RECV, .qp = 0, .qps = qps}}, {.work = {.kind = OFO_WORK_RECV, .qp = 0, .qps = qps}}};
    struct ibv_wc wc = {.wr_id = (uintptr_t) &recv[0].work, .status = IBV_WC_WR_FLUSH_ERR};

    module.transport = &ofo_transport_iwarp;
    qps->qp[0].recv_posted = 3;
    rails_failed = rails_closed = 0;
    ofo_wc_error(&module, &wc);
    wc.wr_id = (uintptr_t) &recv[1].work;
    ofo_wc_error(&module, &wc);
    assert_int_equal(rails_closed, 1);
    assert_int_equal(rails_failed, 0);
    assert_int_equal(qps->qp[0].recv_posted, 1);
    assert_int_equal(told(IBV_WC_WR_FLUSH_ERR), OPAL_ERROR);
    qps->drain = (ofo_drain_t){0};
    wc.status = IBV_WC_LOC_PROT_ERR;
    ofo_wc_error(&module, &wc);
    assert_int_equal(rails_failed, 2);
    assert_int_equal(rails_closed, 1);
}

static void iwarp_credit_message_that_comes_back_is_no_failure(void **state)
{
    struct ibv_wc wc = {.wr_id = (uintptr_t) &qps->qp[0].returns, .status = IBV_WC_WR_FLUSH_ERR};

    module.transport = &ofo_transport_iwarp;
    qps->qp[0].returns.kind = OFO_WORK_RETURN;
    qps->qp[0].is_returning = true;
    rails_failed = rails_closed = 0;
    ofo_wc_error(&module, &wc);
    assert_int_equal(rails_closed, 1);
    assert_int_equal(rails_failed, 0);
    assert_false(qps->qp[0].is_returning);
}

static void shared_receive_of_an_unknown_queue_pair_goes_back(void **state)
{
    ofo_recv_t recv = {.work = {.kind = OFO_WORK_RECV, .qp = 0, .qps = NULL}};
    struct ibv_wc wc = {.wr_id = (uintptr_t) &recv.work, .status = IBV_WC_WR_FLUSH_ERR, .qp_num = 9};

    returned = rails_failed = 0;
    ofo_wc_error(&module, &wc);
    assert_int_equal(returned, 1);
    assert_int_equal(rails_failed, 0);
    assert_int_equal(module.count.bad_messages, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(request_is_at_fault_where_all_is_well),
        TEST(only_the_first_request_is_at_fault),
        TEST(port_that_is_down_is_at_fault),
        TEST(port_whose_event_is_still_to_come_is_at_fault),
        TEST(event_that_waits_is_heard_first),
        TEST(device_whose_events_are_not_read_is_at_fault),
        TEST(device_that_is_gone_is_at_fault),
        TEST(port_that_lost_its_interface_is_at_fault),
        TEST(port_that_is_up_again_is_at_fault),
        TEST(port_that_goes_down_meanwhile_is_at_fault),
        TEST(queue_pair_that_failed_is_at_fault),
        TEST(protection_error_is_the_requests_own_on_a_dead_port_too),
        TEST(iwarp_connection_that_is_closed_is_no_failure),
        TEST(iwarp_credit_message_that_comes_back_is_no_failure),
        TEST(shared_receive_of_an_unknown_queue_pair_goes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
