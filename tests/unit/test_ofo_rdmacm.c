/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Queue pairs that librdmacm joins get the path attributes that the user gave; the connection manager finds the others. This program
 * stands in for librdmacm and verbs. DESIGN.txt section 15.3.
 */
#include "bfo_config.h"

#include "connect/btl_openib_async.h"
#include "types/btl_openib_clock.h"
#include "connect/btl_openib_connect.h"
#include "connect/btl_openib_connect_parked.h"
#include "connect/btl_openib_connect_rdmacm.h"
#include "types/btl_openib_log.h"
#include "qp/btl_openib_qpset.h"
#include "rail/btl_openib_rail.h"

#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { QPS = 2, FOUND_SL = 1, THEIR_READS = 16, OWN_READS = 8, FOUND_CLASS = 8, THEIR_MTU = IBV_MTU_2048 };

ofo_component_t mca_btl_openib_component;

/* ---- verbs and librdmacm ------------------------------------------------------------------------ */

static struct ibv_qp_attr ready, sending; /* the last attributes of each kind */
static unsigned moves, established;

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    *mask = IBV_QP_STATE;
    if (IBV_QPS_RTR == attr->qp_state) {
        *attr = (struct ibv_qp_attr){
            .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .max_dest_rd_atomic = THEIR_READS, .ah_attr = {.is_global = 1, .sl = FOUND_SL}};
        attr->ah_attr.grh.traffic_class = FOUND_CLASS;
    } else {
        attr->max_rd_atomic = THEIR_READS;
    }
    return 0;
}
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    *(IBV_QPS_RTR == attr->qp_state ? &ready : &sending) = *attr;
    ++moves;
    return 0;
}
int rdma_establish(struct rdma_cm_id *id)
{
    ++established;
    return 0;
}
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    return 0;
}
int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    return 0;
}
int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
    return 0;
}
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    return 0;
}
struct rdma_event_channel *rdma_create_event_channel(void)
{
    return NULL;
}
static unsigned begun;
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
    ++begun;
    return -1;
}
void rdma_destroy_event_channel(struct rdma_event_channel *channel) {}
int rdma_destroy_id(struct rdma_cm_id *id)
{
    return 0;
}
const char *rdma_event_str(enum rdma_cm_event_type event)
{
    return "";
}
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    return -1;
}
__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return 0;
}
int rdma_listen(struct rdma_cm_id *id, int backlog)
{
    return 0;
}
int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t length)
{
    return 0;
}
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int ms)
{
    return 0;
}
int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
    return 0;
}

/* ---- functions that the room calls -------------------------------------------------------------- */

static unsigned logged;

uint8_t ofo_mtu_with(const ofo_module_t *module, uint8_t theirs)
{
    const uint8_t own = 0 < OFO.params.ib_mtu ? (uint8_t) OFO.params.ib_mtu : IBV_MTU_4096;

    return theirs < own ? theirs : own;
}
uint8_t ofo_reads_answered(const ofo_module_t *module)
{
    return OWN_READS;
}
uint8_t ofo_reads_asked(const ofo_module_t *module, uint8_t answered)
{
    return answered < OWN_READS ? answered : OWN_READS;
}
uint8_t ofo_qpset_ack_timeout(const ofo_module_t *of)
{
    return (uint8_t) OFO.params.ib_timeout;
}
void ofo_qpset_log(const ofo_module_t *module, const ofo_qp_t *qp)
{
    ++logged;
}
void ofo_log(unsigned level, const char *format, ...) {}
uint64_t ofo_now_ms(void)
{
    return 0;
}
void ofo_async_device_gone(const ofo_device_t *device) {}
void ofo_ctl_dispatch(ofo_module_t *module, const ofo_ctl_t *ctl) {}
void ofo_rail_event(ofo_endpoint_t *ep, ofo_fsm_event_t event, const ofo_ctl_t *ctl) {}
void ofo_rail_message(ofo_endpoint_t *ep, const ofo_ctl_t *ctl) {}
bool ofo_parked_add(ofo_module_t *module, struct rdma_cm_id *id, const ofo_ctl_t *ctl, uint64_t now)
{
    return false;
}
struct rdma_cm_id *ofo_parked_take(ofo_endpoint_t *ep, uint16_t gen, unsigned *index)
{
    return NULL;
}
void ofo_parked_drop(ofo_module_t *module, const struct rdma_cm_id *id) {}
void ofo_parked_reject(ofo_endpoint_t *ep, uint16_t gen, const uint8_t *data, size_t length) {}
uint64_t ofo_parked_expire(ofo_module_t *module, uint64_t now)
{
    return 0;
}
void ofo_parked_free(ofo_module_t *module) {}

/* ---- tests -------------------------------------------------------------------------------------- */

/* The peer's reply joins all queue pairs of a set. */
static void join(unsigned mtu, unsigned level, int class, const ofo_transport_t *transport)
{
    static ofo_module_t module;
    static ofo_endpoint_t ep = {.module = &module};
    static struct rdma_cm_id id[QPS];
    const ofo_ctl_t reply = {.type = OFO_CTL_REP, .nqp = QPS, .mtu = THEIR_MTU};
    ofo_qpset_t *qps = calloc(1, sizeof(*qps) + QPS * sizeof(qps->qp[0]));

    assert_non_null(qps);
    OFO.params = (ofo_params_t){.ib_mtu = mtu,
                                .ib_service_level = level,
                                .ib_traffic_class = class,
                                .ib_min_rnr_timer = 11,
                                .ib_timeout = 12,
                                .ib_retry_count = 3,
                                .ib_rnr_retry = 2};
    qps->module = &module;
    qps->ep = &ep;
    qps->nqp = QPS;
    qps->qp[0].cm_id = &id[0];
    qps->qp[1].cm_id = &id[1];
    qps->qp[1].shared = true;
    moves = established = logged = 0;
    module.transport = transport;
    assert_int_equal(ofo_cpc_rdmacm.join(qps, &reply), 0);
    assert_int_equal(moves, transport->moves_itself ? 0 : 2 * QPS);
    assert_int_equal(established, transport->moves_itself ? 0 : QPS);
    assert_int_equal(logged, QPS);
    free(qps);
}

static void join_takes_the_path_as_it_is_found(void **state)
{
    join(0, 0, -1, &ofo_transport_infiniband);
    assert_int_equal(ready.path_mtu, THEIR_MTU); /* less than the path allows */
    assert_int_equal(ready.ah_attr.sl, FOUND_SL);
    assert_int_equal(ready.ah_attr.grh.traffic_class, FOUND_CLASS);
}

static void join_takes_what_the_user_gave(void **state)
{
    join(IBV_MTU_512, 4, 32, &ofo_transport_infiniband);
    assert_int_equal(ready.path_mtu, IBV_MTU_512);
    assert_int_equal(ready.ah_attr.sl, 4);
    assert_int_equal(ready.ah_attr.grh.traffic_class, 32);
    join(IBV_MTU_512, 4, 0, &ofo_transport_infiniband);
    assert_int_equal(ready.ah_attr.grh.traffic_class, 0);
    assert_int_equal(ready.min_rnr_timer, 11);
    assert_int_equal(ready.max_dest_rd_atomic, OWN_READS); /* librdmacm tells what the peer's device can do */
    assert_int_equal(sending.max_rd_atomic, OWN_READS);
    assert_int_equal(sending.timeout, 12);
    assert_int_equal(sending.retry_cnt, 3);
    assert_int_equal(sending.rnr_retry, 7); /* the last queue is a shared queue */
}

static void join_leaves_iwarp_to_its_device(void **state)
{
    join(0, 0, 0, &ofo_transport_iwarp);
}

/* On iWARP there is no connect without a queue pair. */
static void iwarp_sends_no_messages(void **state)
{
    static ofo_module_t module = {.transport = &ofo_transport_iwarp};
    static ofo_endpoint_t ep = {.module = &module};
    ofo_ctl_t down = {.type = OFO_CTL_DOWN};

    OFO.record.port[0].gid[0] = ep.remote.gid[0] = 0x20;
    begun = 0;
    ofo_cpc_rdmacm.send(&ep, &down);
    assert_int_equal(begun, 0);
    assert_int_equal(module.count.ctl_dropped, 1);
    module.transport = &ofo_transport_infiniband;
    ofo_cpc_rdmacm.send(&ep, &down);
    assert_int_equal(begun, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_takes_the_path_as_it_is_found),
        cmocka_unit_test(join_takes_what_the_user_gave),
        cmocka_unit_test(join_leaves_iwarp_to_its_device),
        cmocka_unit_test(iwarp_sends_no_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
