/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The time limit of a fence while completions never stop, and with a failed device whose queue pairs cannot be destroyed; the memory of
 * the map of queue pair numbers. This program stands in for verbs and the rest of the BTL. DESIGN.txt sections 10.3 and 15.4.
 */
#include "bfo_config.h"

#include "types/btl_openib_clock.h"
#include "out/btl_openib_complete.h"
#include "fault/btl_openib_deadline.h"
#include "fault/btl_openib_doubt.h"
#include "qp/btl_openib_drain.h"
#include "types/btl_openib_endpoints.h"
#include "fault/btl_openib_failed_work.h"
#include "fault/btl_openib_failover.h"
#include "fault/btl_openib_fence.h"
#include "qp/btl_openib_heard.h"
#include "out/btl_openib_keepalive.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "qp/btl_openib_marker.h"
#include "rail/btl_openib_peer.h"
#include "threads/btl_openib_poll.h"
#include "formats/btl_openib_qpmap.h"
#include "out/btl_openib_rdma.h"
#include "in/btl_openib_recv.h"
#include "in/btl_openib_ring_in.h"
#include "out/btl_openib_send.h"
#include "out/btl_openib_silent.h"
#include "device/btl_openib_srq.h"
#include "threads/btl_openib_sleep.h"
#include "fault/btl_openib_soft.h"
#include "qp/btl_openib_stash.h"
#include "fault/btl_openib_wc_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 100 /* entries of the completion queue */, TIMEOUT_MS = 10000 };

ofo_component_t mca_btl_openib_component;

/* ---- verbs -------------------------------------------------------------------------------------- */

static ofo_qpset_t *other; /* another set: each poll finds as many proofs of it as the caller asks for */
static bool is_saturated;
static unsigned found;
static ofo_work_t *came_back; /* the only completion of the next poll */

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    if (NULL != came_back) {
        wc[0] = (struct ibv_wc){.wr_id = (uintptr_t) came_back, .status = IBV_WC_SUCCESS};
        came_back = NULL;
        return 1;
    }
    for (int i = 0; is_saturated && i < most; ++i) {
        wc[i] = (struct ibv_wc){.wr_id = (uintptr_t) &other->qp[0].prove, .status = IBV_WC_SUCCESS};
    }
    found += is_saturated ? (unsigned) most : 0;
    return is_saturated ? most : 0;
}

/* ---- functions that the room calls -------------------------------------------------------------- */

static uint64_t now;
static unsigned stuck, drain_checks;
static uint32_t silent_lost_to; /* place */

uint64_t ofo_now_ms(void)
{
    return now;
}
void ofo_tell_service(ofo_endpoint_t *ep, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    stuck += OFO_MAIL_STUCK == kind;
}
void ofo_credits_return(ofo_endpoint_t *ep, ofo_qpset_t *qps, unsigned index) {}
void ofo_drain_check(ofo_qpset_t *qps)
{
    ++drain_checks;
}
void ofo_drain_act_drain(ofo_qpset_t *qps, const char *why)
{
    ofo_fence_begin(qps);
}
void ofo_drain_act_end_fence(ofo_qpset_t *qps, const char *why)
{
    ofo_fence_end(qps);
}
void ofo_drain_act_open_gate(ofo_qpset_t *qps, const char *why) {}
void ofo_drain_act_post_markers(ofo_qpset_t *qps, const char *why)
{
    ofo_fence_extend(qps);
}
void ofo_drain_act_tell_all(ofo_qpset_t *qps, const char *why) {}
void ofo_drain_act_tell_pml_drain(ofo_qpset_t *qps, const char *why)
{
    ofo_drain_act_drain(qps, NULL);
}
void ofo_drain_act_tell_service(ofo_qpset_t *qps, const char *why) {}
void ofo_drain_last_wqe(ofo_endpoint_t *ep, uint16_t gen) {}
void ofo_drain_start(ofo_endpoint_t *ep, ofo_qpset_t *qps, uint16_t gen, const char *reported) {}
void ofo_fence_done_again(ofo_endpoint_t *ep, uint16_t gen) {}
void ofo_keepalive(ofo_module_t *module) {}
void ofo_log(unsigned level, const char *format, ...) {}
static ofo_mail_t *letter;
ofo_mail_t *ofo_mailbox_take(ofo_mailbox_t *box)
{
    ofo_mail_t *mail = letter;

    letter = NULL;
    return mail;
}
ofo_endpoint_t *ofo_peer_endpoint(ofo_peer_t *peer, const ofo_module_t *module)
{
    return NULL;
}
ofo_peer_t *ofo_peer_get(const opal_process_name_t *name, opal_proc_t *proc)
{
    return NULL;
}
void ofo_peer_lost(ofo_peer_t *peer) {}
void ofo_rail_trusted(ofo_endpoint_t *ep, uint16_t gen) {}
void ofo_pending_flush(ofo_endpoint_t *ep) {}
void ofo_port_down(ofo_module_t *module) {}
void ofo_port_returned(ofo_module_t *module) {}
static unsigned over, soft, adopted, normal; /* what progress did, with `found` completions */
void ofo_deadline_over(ofo_endpoint_t *ep, uint16_t gen)
{
    over += 0 < found;
}
void ofo_soft_begin(ofo_endpoint_t *ep, uint16_t gen)
{
    soft += 0 < found;
}
void ofo_soft_adopt(ofo_endpoint_t *ep, uint16_t gen)
{
    adopted += 0 < found;
}
void ofo_soft_end(ofo_endpoint_t *ep, uint16_t gen)
{
    ++normal;
}
void ofo_soft_overdue(ofo_endpoint_t *ep, uint16_t gen) {}
void ofo_deadline_tick(void) {}
void ofo_deadline_look(ofo_module_t *module) {}
void ofo_srqs_post_refused(ofo_module_t *module) {}
void ofo_port_ends(ofo_endpoint_t *ep, uint16_t downs) {}
void ofo_port_tell(ofo_module_t *module) {}
static unsigned answered;
void ofo_doubt_answered(ofo_endpoint_t *ep)
{
    assert_int_not_equal(opal_mutex_trylock(&ep->lock), 0); /* the caller holds the lock */
    ep->answer = OFO_ANSWER_NONE;
    ++answered;
}
void ofo_rail_up(ofo_endpoint_t *ep, ofo_qpset_t *qps) {}
void ofo_rdma_part_done(ofo_rdma_t *rdma, int status) {}
void ofo_recv_handle(ofo_module_t *module, ofo_recv_t *recv, uint32_t length, uint32_t qpn) {}
void ofo_recv_kept(ofo_module_t *module, const ofo_recv_t *recv, uint32_t qpn) {}
void ofo_ring_open(ofo_module_t *module, ofo_endpoint_t *ep, uint16_t gen) {}
int ofo_rings_poll(ofo_module_t *module)
{
    return 0;
}
void ofo_send_complete(ofo_frag_t *frag, int status) {}
void ofo_silent_all_arrived(ofo_qpset_t *qps, unsigned index) {}
/* Meanwhile another thread reads a port's event, and posts the next WRITE. */
void ofo_silent_arrived(ofo_qpset_t *qps, unsigned index, uint32_t place)
{
    assert_false(qps->is_asking);
    qps->is_asking = true;
    qps->ep->answer = OFO_ANSWER_ASKED;
}
void ofo_silent_lost(ofo_qpset_t *qps, unsigned index, uint32_t place)
{
    silent_lost_to = place;
}
void ofo_silent_ask_all(ofo_module_t *module) {}
void ofo_sleep_if_idle(bool found, bool (*arm)(ofo_module_t *module)) {}
void ofo_wc_error(ofo_module_t *module, const struct ibv_wc *wc) {}
void ofo_work_failed(ofo_qpset_t *qps, ofo_work_t *work, int status) {}

/* ---- tests -------------------------------------------------------------------------------------- */

static ofo_module_t module;
static ofo_device_t device;
static ofo_qpset_t *qps;

static ofo_qpset_t *make_set(ofo_endpoint_t *ep)
{
    ofo_qpset_t *set = calloc(1, sizeof(*set) + sizeof(set->qp[0]));

    set->module = &module;
    set->ep = ep;
    set->nqp = 1;
    set->qp[0].prove = (ofo_work_t){.kind = OFO_WORK_PROVE, .qps = set};
    set->proving = INT32_MAX;
    return set;
}

static int begin(void **state)
{
    static struct ibv_context context = {.ops = {.poll_cq = poll_cq}};
    static struct ibv_cq cq = {.context = &context, .cqe = ROOM};
    static ofo_peer_t peer;
    static ofo_endpoint_t ep = {.module = &module, .peer = &peer};

    OFO.params.fence_timeout = TIMEOUT_MS / 1000;
    device = (ofo_device_t){.fatal = false};
    OBJ_CONSTRUCT(&ep.lock, opal_mutex_t);
    module = (ofo_module_t){.device = &device, .transport = &ofo_transport_infiniband, .cq = {&cq}, .cq_count = 1};
    qps = make_set(&ep);
    other = make_set(&ep);
    now = 1000;
    is_saturated = true;
    found = stuck = 0;
    assert_true(ofo_drain_raise(qps, OFO_DEV_DRAIN, NULL));
    return 0;
}

static int end(void **state)
{
    free(qps);
    free(other);
    free(module.stash);
    return 0;
}

/* With calls of progress, because a fence does not count time without them. */
static void time_passes(unsigned ms)
{
    enum { STEP_MS = 50 };

    for (unsigned gone = 0; gone < ms; gone += STEP_MS) {
        now += ms - gone < STEP_MS ? ms - gone : STEP_MS;
        (void) ofo_module_progress(&module);
    }
}

static void fence_of_a_busy_process_has_a_bound(void **state)
{
    (void) ofo_module_progress(&module);
    assert_int_equal(stuck, 0);
    time_passes(TIMEOUT_MS - 1);
    found = 0;
    (void) ofo_module_progress(&module);
    assert_int_equal(stuck, 0);
    assert_true(found < ROOM);
    ++now;
    (void) ofo_module_progress(&module);
    assert_int_equal(stuck, 1);
    assert_true(ROOM <= found); /* first progress read all that was in the queue */
    (void) ofo_module_progress(&module);
    assert_int_equal(stuck, 1);
}

static void service_that_cannot_end_a_fence_is_not_asked_without_end(void **state)
{
    is_saturated = false;
    device.fatal = true; /* progress need not wait */
    (void) ofo_module_progress(&module);
    assert_int_equal(stuck, 1);
    ofo_fence_answered(&module, qps, false);
    for (int i = 0; i < 10; ++i) {
        (void) ofo_module_progress(&module);
    }
    assert_int_equal(stuck, 1);
    time_passes(TIMEOUT_MS);
    assert_int_equal(stuck, 2);
}

/* An adapter takes no posts in the error state. Empty completion queues then stand for the flush of the marker, and of all messages that
 * asked for no completion; but not at once, because the adapter may flush late. */
static void refused_marker_ends_the_wait(void **state)
{
    qps->qp[0].marker_state = OFO_MARKER_REFUSED;
    qps->qp[0].place = 41;
    silent_lost_to = drain_checks = 0;
    (void) ofo_module_progress(&module);
    assert_int_equal(qps->qp[0].marker_state, OFO_MARKER_REFUSED); /* the queues were not empty */
    is_saturated = false;
    now += OFO_LAST_WQE_UNSEEN_MS - 1;
    (void) ofo_module_progress(&module);
    assert_int_equal(qps->qp[0].marker_state, OFO_MARKER_REFUSED);
    assert_int_equal(silent_lost_to, 0);
    ofo_fence_extend(qps); /* its marker was posted and refused just now */
    now += OFO_LAST_WQE_UNSEEN_MS - 1;
    (void) ofo_module_progress(&module);
    assert_int_equal(qps->qp[0].marker_state, OFO_MARKER_REFUSED);
    ++now;
    is_saturated = true;
    (void) ofo_module_progress(&module);
    assert_int_equal(qps->qp[0].marker_state, OFO_MARKER_REFUSED);
    is_saturated = false;
    (void) ofo_module_progress(&module);
    assert_int_equal(qps->qp[0].marker_state, OFO_MARKER_BACK);
    assert_int_equal(silent_lost_to, 42);
    assert_int_equal(drain_checks, 1);
    (void) ofo_module_progress(&module);
    assert_int_equal(drain_checks, 1);
}

/* A WRITE that was posted before the question does not answer it. */
static void write_answers_what_was_asked_before_it(void **state)
{
    ofo_endpoint_t *ep = qps->ep;

    opal_uses_threads = true;
    qps->alive = (ofo_work_t){.kind = OFO_WORK_ALIVE, .qps = qps};
    qps->is_asking = true;
    ep->answer = OFO_ANSWER_NONE;
    is_saturated = false;
    answered = 0;
    came_back = &qps->alive;
    (void) ofo_module_progress(&module);
    assert_int_equal(answered, 0);
    assert_int_equal(ep->answer, OFO_ANSWER_ASKED);
    came_back = &qps->alive;
    (void) ofo_module_progress(&module);
    assert_int_equal(answered, 1);
    opal_uses_threads = false;
}

static void read_letter(ofo_mail_kind_t kind)
{
    found = over = soft = adopted = normal = 0;
    letter = calloc(1, sizeof(*letter));
    letter->kind = kind;
    letter->ep = qps->ep;
    module.inbox.count = 1;
    (void) ofo_module_progress(&module);
}

/* The work of a rail may end before the last verdict, or none was out: the verdict was the peer's. */
static void every_end_of_an_inquiry_makes_the_rail_normal(void **state)
{
    read_letter(OFO_MAIL_SOFT);
    assert_int_equal(soft, 1);
    read_letter(OFO_MAIL_SOFT_TOO);
    assert_int_equal(adopted, 1);
    assert_int_equal(normal, 0);
    read_letter(OFO_MAIL_CALM);
    assert_int_equal(normal, 1);
    read_letter(OFO_MAIL_SILENT);
    assert_int_equal(over, 1);
    assert_int_equal(normal, 1);
}

/* Rails that fail and come back again and again create ever more queue pairs with shared queues, each with a new number. */
static void map_of_numbers_stays_small(void **state)
{
    uint32_t number = 1;

    is_saturated = false;
    assert_true(ofo_qpmap_add(&module.qpmap, number, qps));
    for (int i = 0; i < 100000; ++i) {
        ++number;
        assert_true(ofo_qpmap_add(&module.qpmap, number, other));
        ofo_qpmap_remove(&module.qpmap, number);
        if (0 == i % 100) { /* a rail proves itself */
            assert_true(ofo_poll_and_keep(&module));
            assert_null(module.qpmap.table->older);
        }
    }
    assert_true(module.qpmap.table->mask < 256);
    assert_ptr_equal(ofo_qpmap_find(&module.qpmap, 1), qps);
    assert_null(ofo_qpmap_find(&module.qpmap, number));
    ofo_qpmap_free(&module.qpmap);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fence_of_a_busy_process_has_a_bound),
        TEST(every_end_of_an_inquiry_makes_the_rail_normal),
        TEST(map_of_numbers_stays_small),
        TEST(refused_marker_ends_the_wait),
        TEST(write_answers_what_was_asked_before_it),
        TEST(service_that_cannot_end_a_fence_is_not_asked_without_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
