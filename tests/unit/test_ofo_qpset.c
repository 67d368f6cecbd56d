/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The end of queue pairs, with verbs of this program: complete shared receives are kept before a stuck set's queue pairs are destroyed;
 * their numbers stay known; buffers that may be missing are replaced once; a queue pair that cannot be destroyed keeps its memory.
 * DESIGN.txt sections 10.3 and 15.5.
 */
#include "bfo_config.h"

#include "device/btl_openib_buffers.h"
#include "types/btl_openib_clock.h"
#include "types/btl_openib_ctl.h"
#include "device/btl_openib_device.h"
#include "types/btl_openib_log.h"
#include "formats/btl_openib_qpmap.h"
#include "qp/btl_openib_qpset.h"
#include "formats/btl_openib_queues.h"
#include "device/btl_openib_ring_memory.h"
#include "device/btl_openib_srq.h"
#include "qp/btl_openib_stash.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SHARED = 1 /* the second queue */, WINDOW = 12, LABEL = 0x54321 };

ofo_component_t mca_btl_openib_component;

/* ---- verbs -------------------------------------------------------------------------------------- */

static uint32_t next_number, pairs;
static struct ibv_qp *obstinate; /* cannot be destroyed, */
static int obstinate_with;       /* for this reason */
static unsigned registrations;
static bool is_kept; /* the completions were taken out of the queue and kept */

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
    static struct ibv_cq cq;

    return &cq;
}
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct ibv_qp *qp = calloc(1, sizeof(*qp));

    qp->qp_num = next_number++;
    ++pairs;
    return qp;
}
int ibv_destroy_qp(struct ibv_qp *qp)
{
    assert_true(is_kept);
    if (obstinate == qp) {
        return obstinate_with;
    }
    --pairs;
    free(qp);
    return 0;
}
static struct ibv_qp_attr ready, sending; /* the last attributes for each state */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    *(IBV_QPS_RTR == attr->qp_state ? &ready : &sending) = *attr;
    return 0;
}
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    return 1;
}
#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    ++registrations;
    return calloc(1, sizeof(struct ibv_mr));
}
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    return ibv_reg_mr(pd, addr, length, (int) access);
}
int ibv_dereg_mr(struct ibv_mr *mr)
{
    --registrations;
    free(mr);
    return 0;
}

/* ---- functions that the room calls -------------------------------------------------------------- */

static unsigned busy; /* how many more calls find progress at the completion queues */
static unsigned missing_told, missing;

bool ofo_poll_and_keep(ofo_module_t *module)
{
    is_kept = 0 == busy;
    busy -= 0 < busy;
    return is_kept;
}
bool ofo_poll_and_forget(const ofo_qpset_t *qps)
{
    return false;
}
void ofo_srq_buffers_missing(ofo_srq_t *srq, uint32_t count)
{
    ++missing_told;
    missing = count;
}
unsigned ofo_srqs_buffers_max(const ofo_module_t *module)
{
    return 0;
}
void *ofo_pages_alloc(size_t size)
{
    return malloc(size);
}
void ofo_device_say_locked_memory(const ofo_device_t *device) {}
void ofo_log(unsigned level, const char *format, ...) {}
uint64_t ofo_now_ms(void)
{
    return 1000;
}
uint32_t ofo_flow_label(ofo_endpoint_t *ep)
{
    return LABEL;
}
static unsigned renewed;
void ofo_flow_label_renew(ofo_endpoint_t *ep)
{
    ++renewed;
    ep->label_is_used = false;
}
void ofo_ring_destroy(ofo_qpset_t *qps) {}
void ofo_recv_init(ofo_recv_t *recv, ofo_qpset_t *qps, unsigned index, void *buffer, uint32_t size, uint32_t lkey)
{
    recv->work = (ofo_work_t){.kind = OFO_WORK_RECV, .qp = (uint8_t) index, .qps = qps};
    recv->wr.next = NULL;
}
uint32_t ofo_recv_post_chain(ofo_recv_chain_t *chain, struct ibv_qp *qp, struct ibv_srq *srq)
{
    const uint32_t count = chain->count;

    chain->count = 0;
    return count;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static ofo_module_t module;

static ofo_qpset_t *begin(void)
{
    static const ofo_cpc_t cpc;
    static ofo_device_t device;
    static ofo_srq_t srq;
    static ofo_peer_t peer;
    static ofo_endpoint_t ep;
    ofo_qpset_t *qps;

    OFO.cpc = &cpc;
    assert_null(ofo_queues_parse("P,256,12:S,4096,64,60,12", &OFO.queues));
    assert_int_equal(OFO.queues.queue[SHARED].window, WINDOW);
    device.attr.max_cqe = 100000;
    module = (ofo_module_t){.device = &device, .transport = &ofo_transport_infiniband, .srq = {[SHARED] = &srq}};
    peer.queues = &OFO.queues;
    ep = (ofo_endpoint_t){.module = &module, .peer = &peer};
    next_number = 0x100;
    busy = missing_told = missing = registrations = pairs = 0;
    is_kept = false;
    obstinate = NULL;
    obstinate_with = EBUSY;
    qps = ofo_qpset_create(&ep, 0);
    assert_non_null(qps);
    return qps;
}

static void end(ofo_qpset_t *qps)
{
    is_kept = true;
    assert_true(ofo_qpset_destroy(qps));
    assert_int_equal(pairs, 0);
    assert_int_equal(registrations, 0);
    ofo_qpmap_free(&module.qpmap);
}

static void shared_receives_are_kept_before_a_stuck_set_ends(void **state)
{
    ofo_qpset_t *qps = begin();
    const uint32_t number = qps->qp[SHARED].qp->qp_num;

    busy = 3; /* progress polls, therefore the caller waits */
    assert_true(ofo_qpset_stop_busy(qps));
    assert_int_equal(pairs, 0);
    assert_ptr_equal(ofo_qpmap_find(&module.qpmap, number), &qps->qp[SHARED]); /* for the completions that were kept */
    assert_int_equal(missing_told, 1);
    assert_int_equal(missing, WINDOW);
    end(qps);
}

static void buffers_are_replaced_once_if_it_takes_two_attempts(void **state)
{
    ofo_qpset_t *qps = begin();

    obstinate = qps->qp[SHARED].qp;
    assert_false(ofo_qpset_stop_busy(qps));
    assert_int_equal(missing_told, 0);
    obstinate = qps->qp[0].qp;
    assert_null(qps->qp[0].qp);
    assert_true(ofo_qpset_stop_busy(qps));
    assert_true(ofo_qpset_stop_busy(qps));
    assert_int_equal(missing_told, 1);
    end(qps);
}

static void set_that_cannot_be_destroyed_keeps_its_memory(void **state)
{
    ofo_qpset_t *qps = begin();
    const uint32_t number = qps->qp[SHARED].qp->qp_num;

    is_kept = true;
    obstinate = qps->qp[0].qp;
    assert_false(ofo_qpset_destroy(qps));
    assert_int_equal(registrations, 1);
    assert_non_null(ofo_qpmap_find(&module.qpmap, number));
    obstinate = NULL;
    end(qps);
}

/* A failed device may still write to memory. A removed device does not, and has no queue pairs to destroy. */
static void failed_device_keeps_queue_pairs_and_a_removed_one_has_none(void **state)
{
    ofo_qpset_t *qps = begin();
    struct ibv_qp *lost = qps->qp[0].qp;

    obstinate = lost;
    module.device->fatal = true;
    assert_false(ofo_qpset_stop_busy(qps));
    assert_ptr_equal(qps->qp[0].qp, lost);
    obstinate_with = EIO;
    module.device->fatal = false; /* the device works, something else failed */
    assert_false(ofo_qpset_stop_busy(qps));
    module.device->fatal = true;
    assert_true(ofo_qpset_stop_busy(qps));
    module.device->fatal = false;
    free(lost);
    --pairs;
    end(qps);
}

/* The device may use a number again whose completions are not all read yet. */
static void number_that_is_still_known_is_passed_over(void **state)
{
    ofo_qpset_t *qps = begin(), *next;
    const uint32_t number = qps->qp[SHARED].qp->qp_num;

    assert_true(ofo_qpset_stop_busy(qps));
    next_number = number - 1;
    next = ofo_qpset_create(qps->ep, 1);
    assert_non_null(next);
    assert_int_not_equal(next->qp[SHARED].qp->qp_num, number);
    assert_ptr_equal(ofo_qpmap_find(&module.qpmap, number), &qps->qp[SHARED]);
    assert_true(ofo_qpset_destroy(next));
    end(qps);
}

/* For the other device, one READ more than it answers is an invalid request and no fault of the rail. */
static void no_more_reads_are_asked_than_the_peer_answers(void **state)
{
    ofo_qpset_t *qps = begin();
    ofo_ctl_t remote = {.mtu = 3, .nqp = 2, .reads = 4};

    OFO.params.max_rd_atomic = 16;
    module.device->attr.max_qp_rd_atom = 8;
    module.device->attr.max_qp_init_rd_atom = 12;
    assert_int_equal(ofo_qpset_connect(qps, &remote), 0);
    assert_int_equal(ready.max_dest_rd_atomic, 8);
    assert_int_equal(sending.max_rd_atomic, 4);
    remote.reads = 0; /* the peer does not report its number */
    assert_int_equal(ofo_qpset_connect(qps, &remote), 0);
    assert_int_equal(sending.max_rd_atomic, 12);
    remote.reads = 128;
    assert_int_equal(ofo_qpset_connect(qps, &remote), 0);
    assert_int_equal(sending.max_rd_atomic, 12);
    is_kept = true;
    end(qps);
}

/* A network may choose the path by the label. InfiniBand without a GRH has none. */
static void packets_with_a_header_carry_the_flow_label_of_the_rail(void **state)
{
    ofo_qpset_t *qps = begin();
    const ofo_ctl_t remote = {.mtu = 3, .nqp = 2};

    assert_int_equal(ofo_qpset_connect(qps, &remote), 0);
    assert_int_equal(ready.ah_attr.is_global, 0);
    assert_int_equal(ready.ah_attr.grh.flow_label, 0);
    qps->ep->remote.wants_grh = true;
    assert_int_equal(ofo_qpset_connect(qps, &remote), 0);
    assert_int_equal(ready.ah_attr.is_global, 1);
    assert_int_equal(ready.ah_attr.grh.flow_label, LABEL);
    is_kept = true;
    end(qps);
}

/* Perhaps the path of the last generation has failed. A path that no generation has had may be the one that answered a question. */
static void generation_takes_no_label_that_another_had(void **state)
{
    ofo_qpset_t *qps = begin();
    const ofo_ctl_t remote = {.mtu = 3, .nqp = 2};

    renewed = 0;
    assert_int_equal(ofo_qpset_connect(qps, &remote), 0);
    assert_int_equal(renewed, 0);
    assert_int_equal(ofo_qpset_connect(qps, &remote), 0);
    assert_int_equal(renewed, 1);
    ofo_flow_label_renew(qps->ep); /* for a question */
    assert_int_equal(ofo_qpset_connect(qps, &remote), 0);
    assert_int_equal(renewed, 2);
    assert_int_equal(ofo_qpset_connect(qps, &remote), 0);
    assert_int_equal(renewed, 3);
    is_kept = true;
    end(qps);
}

static void adapter_is_patient_where_nobody_waits_for_a_last_rail(void **state)
{
    static ofo_module_t of;

    OFO.params.ib_timeout = 0;
    assert_int_equal(ofo_qpset_ack_timeout(&of), 20);
    of.ext.waits = true;
    assert_int_equal(ofo_qpset_ack_timeout(&of), 17);
    OFO.params.ib_timeout = 14; /* the user's word */
    assert_int_equal(ofo_qpset_ack_timeout(&of), 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_receives_are_kept_before_a_stuck_set_ends),
        cmocka_unit_test(buffers_are_replaced_once_if_it_takes_two_attempts),
        cmocka_unit_test(set_that_cannot_be_destroyed_keeps_its_memory),
        cmocka_unit_test(failed_device_keeps_queue_pairs_and_a_removed_one_has_none),
        cmocka_unit_test(no_more_reads_are_asked_than_the_peer_answers),
        cmocka_unit_test(number_that_is_still_known_is_passed_over),
        cmocka_unit_test(packets_with_a_header_carry_the_flow_label_of_the_rail),
        cmocka_unit_test(generation_takes_no_label_that_another_had),
        cmocka_unit_test(adapter_is_patient_where_nobody_waits_for_a_last_rail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
