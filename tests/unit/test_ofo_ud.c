/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Control messages to neighbours that are gone: the search for each address fails only after seconds. How much time does one round of
 * service spend on them? When is a queue pair that failed repaired? Which flow label do control messages carry? This program stands in for
 * verbs and the clock. DESIGN.txt sections 10.2, 15.3 and 15.5.
 */
#include "bfo_config.h"

#include "types/btl_openib_clock.h"
#include "types/btl_openib_ctl.h"
#include "connect/btl_openib_connect.h"
#include "connect/btl_openib_connect_ud.h"
#include "device/btl_openib_device.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "qp/btl_openib_qpset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DEAD = 20, RESOLVE_MS = 3000, ALIVE_LID = 1 };

ofo_component_t mca_btl_openib_component;

/* ---- verbs -------------------------------------------------------------------------------------- */

static uint64_t now;
static unsigned failures;
static struct ibv_ah_attr made; /* of the last address handle */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    static struct ibv_ah ah;

    made = *attr;
    if (ALIVE_LID == attr->dlid) {
        return &ah;
    }
    now += RESOLVE_MS;
    ++failures;
    return NULL;
}
int ibv_destroy_ah(struct ibv_ah *ah)
{
    return 0;
}
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **wrong)
{
    return 0;
}
static unsigned receives; /* that were posted */
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **wrong)
{
    ++receives;
    return 0;
}
static int completions; /* that the queue has */
static struct ibv_cq *unpolled;
static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    if (cq == unpolled) {
        return -1;
    }
    if (0 == completions) {
        return 0;
    }
    --completions;
    *wc = (struct ibv_wc){.status = IBV_WC_SUCCESS};
    return 1;
}
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    return NULL;
}
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    return 0;
}
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
    return NULL;
}
int ibv_destroy_cq(struct ibv_cq *cq)
{
    return 0;
}
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
    return -1;
}
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned events) {}
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    return NULL;
}
int ibv_destroy_qp(struct ibv_qp *qp)
{
    return 0;
}
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    return 0;
}
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    attr->qp_state = IBV_QPS_ERR;
    return 0;
}
#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return NULL;
}
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    return NULL;
}
int ibv_dereg_mr(struct ibv_mr *mr)
{
    return 0;
}

/* ---- functions that the room calls -------------------------------------------------------------- */

uint64_t ofo_now_ms(void)
{
    return now;
}
void ofo_log(unsigned level, const char *format, ...) {}
void ofo_service_wake(ofo_module_t *module) {}
void *ofo_pages_alloc(size_t size)
{
    return NULL;
}
int ofo_qpset_connect(ofo_qpset_t *qps, const ofo_ctl_t *remote)
{
    return 0;
}
void ofo_ctl_dispatch(ofo_module_t *module, const ofo_ctl_t *ctl) {}

/* ---- tests -------------------------------------------------------------------------------------- */

static ofo_module_t module;
static ofo_endpoint_t alive, dead[DEAD];

static int begin(void **state)
{
    static struct ibv_context context = {.ops = {.post_send = post_send, .post_recv = post_recv, .poll_cq = poll_cq}};
    static struct ibv_cq send_cq = {.context = &context}, recv_cq = {.context = &context};
    static struct ibv_qp qp = {.context = &context};
    static struct ibv_mr mr;
    static uint8_t memory[192 * (OFO_UD_RECVS + 64)];
    static ofo_device_t device;

    module = (ofo_module_t){.device = &device, .ud = {.qp = &qp, .send_cq = &send_cq, .recv_cq = &recv_cq, .mr = &mr, .memory = memory}};
    alive = (ofo_endpoint_t){.module = &module, .remote = {.lid = ALIVE_LID}};
    for (int i = 0; i < DEAD; ++i) {
        dead[i] = (ofo_endpoint_t){.module = &module};
    }
    now = 1000;
    failures = 0;
    completions = 0;
    receives = 0;
    unpolled = NULL;
    return 0;
}

static void tell(ofo_endpoint_t *ep)
{
    ofo_ctl_t down = {.type = OFO_CTL_DOWN};

    ofo_cpc_ud.send(ep, &down);
}

static void round_ends(void)
{
    (void) ofo_cpc_ud.expire(&module, now);
}

static void neighbours_that_are_gone_cost_a_round_one_of_them(void **state)
{
    tell(&alive);
    for (int i = 0; i < DEAD; ++i) {
        tell(&dead[i]);
    }
    tell(&alive);
    assert_int_equal(failures, 1);
    assert_int_equal(module.count.ctl_out, 2);
    round_ends();
    for (int i = 0; i < DEAD; ++i) {
        tell(&dead[i]);
    }
    assert_int_equal(failures, 2); /* a second neighbour, because the first used a tenth of its time */
    assert_true(dead[0].ah_failed && dead[1].ah_failed);
}

static void neighbour_of_later_is_found_in_the_next_round(void **state)
{
    tell(&dead[0]);
    tell(&alive); /* its search may take as long */
    assert_int_equal(module.count.ctl_out, 0);
    round_ends();
    tell(&alive);
    assert_int_equal(module.count.ctl_out, 1);
}

/* Its port may be down, and another port may reach the peer. */
static void queue_that_stays_full_keeps_nobody_waiting(void **state)
{
    for (int i = 0; i < 64; ++i) {
        assert_true(ofo_cpc_ud.has_room(&module));
        tell(&alive);
    }
    assert_false(ofo_cpc_ud.has_room(&module));
    now += 99;
    assert_false(ofo_cpc_ud.has_room(&module));
    completions = 1;
    assert_true(ofo_cpc_ud.has_room(&module));
    tell(&alive);
    assert_false(ofo_cpc_ud.has_room(&module)); /* full again, not still */
    now += 99;
    assert_false(ofo_cpc_ud.has_room(&module));
    now += 1;
    assert_true(ofo_cpc_ud.has_room(&module));
    tell(&alive);
    assert_int_equal(module.count.ctl_out, 65);
    assert_int_equal(module.count.ctl_dropped, 1);
}

/* Completions of before the repair may still be in the queue, and those of the new receives would overrun it. */
static void queue_that_cannot_be_polled_gets_no_new_receives(void **state)
{
    struct ibv_cq *const queues[] = {module.ud.send_cq, module.ud.recv_cq};

    for (int i = 0; i < 2; ++i) {
        unpolled = queues[i];
        module.ud.is_doubtful = true;
        assert_int_equal(ofo_cpc_ud.expire(&module, now), now + 2000);
        assert_int_equal(receives, 0);
        now += 2000;
    }
    unpolled = NULL;
    assert_int_equal(ofo_cpc_ud.expire(&module, now), 0);
    assert_int_equal(receives, OFO_UD_RECVS);
}

/* Datagrams take the path of the queue pairs, whose label is the same. A rail that comes back takes another path. */
static void flow_label_stays_until_the_rail_takes_another_path(void **state)
{
    uint32_t label;

    tell(&alive);
    assert_int_equal(made.grh.flow_label, 0); /* there is no GRH */
    ofo_ud_forget(&alive);
    module.use_grh = true;
    tell(&alive);
    label = made.grh.flow_label;
    assert_in_range(label, 1, 0xfffff);
    assert_int_equal(label, ofo_flow_label(&alive));
    ofo_ud_forget(&alive); /* the neighbour has another address */
    tell(&alive);
    assert_int_equal(made.grh.flow_label, label);
    for (int i = 0; i < 1000; ++i) {
        alive.label_is_used = true;
        ofo_flow_label_renew(&alive);
        tell(&alive);
        assert_false(alive.label_is_used);
        assert_in_range(made.grh.flow_label, 1, 0xfffff);
        assert_int_not_equal(made.grh.flow_label, label);
        label = made.grh.flow_label;
    }
    assert_int_equal(label, ofo_flow_label(&alive));
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(neighbours_that_are_gone_cost_a_round_one_of_them),  TEST(neighbour_of_later_is_found_in_the_next_round),
        TEST(queue_that_stays_full_keeps_nobody_waiting),         TEST(queue_that_cannot_be_polled_gets_no_new_receives),
        TEST(flow_label_stays_until_the_rail_takes_another_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
