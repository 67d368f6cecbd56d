/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The end of a set of queue pairs, from the first error to the last letter: which letters and reports go out, when, and how often; which
 * work is given back, and when. This program stands in for verbs and the rest of the BTL; the actions of the table are the product's.
 * DESIGN.txt section 10.3.
 */
#include "bfo_config.h"

#include "connect/btl_openib_async.h"
#include "types/btl_openib_clock.h"
#include "out/btl_openib_complete.h"
#include "fault/btl_openib_doubt.h"
#include "qp/btl_openib_drain.h"
#include "types/btl_openib_endpoints.h"
#include "fault/btl_openib_failed_work.h"
#include "fault/btl_openib_failover.h"
#include "fault/btl_openib_fence.h"
#include "out/btl_openib_keepalive.h"
#include "types/btl_openib_log.h"
#include "rail/btl_openib_lost.h"
#include "types/btl_openib_mail.h"
#include "qp/btl_openib_marker.h"
#include "rail/btl_openib_peer.h"
#include "out/btl_openib_rdma.h"
#include "in/btl_openib_ring_in.h"
#include "out/btl_openib_send.h"
#include "out/btl_openib_silent.h"
#include "rail/btl_openib_spared.h"
#include "types/btl_openib_transport.h"
#include "formats/btl_openib_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TIMEOUT_MS = 10000, GEN = 3 };

ofo_component_t mca_btl_openib_component;

static ofo_device_t device;
static ofo_module_t module;
static ofo_peer_t peer;
static ofo_endpoint_t ep;
static ofo_qpset_t *qps;

/* ---- verbs, and functions that the rooms call ---------------------------------------------------- */

static unsigned markers, letters[OFO_MAIL_PORT_UP + 1];
static uint8_t cause; /* according to the last letter to service */
static uint64_t now;

static bool takes_no_marker;
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **wrong)
{
    ++markers;
    return takes_no_marker ? -1 : 0;
}
#undef ibv_query_qp
static bool in_error; /* the queue pair; false: a query of it fails */
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    attr->qp_state = IBV_QPS_ERR;
    return in_error ? 0 : -1;
}
uint64_t ofo_now_ms(void)
{
    return now;
}
void ofo_tell_service(ofo_endpoint_t *of, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *set)
{
    assert_int_equal(gen, GEN);
    ++letters[kind];
    cause = OFO_MAIL_ERROR == kind ? ctl->cause : OFO_CAUSE_UNKNOWN;
}
void ofo_tell_progress(ofo_module_t *to, ofo_mail_kind_t kind, ofo_endpoint_t *of, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *set) {}
/* Work in flight comes back to the set on which it was posted. */
void ofo_work_failed(ofo_qpset_t *set, ofo_work_t *work, int status)
{
    assert_ptr_equal(set, work->qps);
    assert_int_equal(status, OPAL_ERROR);
    work->qps = NULL;
}
void ofo_silent_lost(ofo_qpset_t *set, unsigned index, uint32_t place) {}
bool ofo_keepalive_may_ask(const ofo_peer_t *of)
{
    return true;
}
bool ofo_port_has_moved(const ofo_module_t *of)
{
    return false;
}
bool ofo_port_came_back(const ofo_module_t *of)
{
    return false;
}
static bool is_gone;
bool ofo_port_is_gone(const ofo_module_t *of)
{
    return is_gone;
}
bool ofo_rail_is_spared(const ofo_endpoint_t *of)
{
    return false;
}
uint32_t ofo_async_downs(const ofo_module_t *of, bool *is_up)
{
    return of->downs;
}
bool ofo_async_port_is_up(ofo_module_t *of, bool unanswered)
{
    return true;
}
ofo_peer_t *ofo_peer_find(uint32_t jobid, uint32_t vpid)
{
    return &peer;
}
bool ofo_peer_declare(ofo_peer_t *of, const char *why, bool by_peer)
{
    return true;
}
ofo_endpoint_t *ofo_peer_endpoint(ofo_peer_t *of, const ofo_module_t *to)
{
    return &ep;
}
void ofo_for_each_endpoint(ofo_module_t *of, void (*visit)(ofo_endpoint_t *))
{
    OPAL_THREAD_LOCK(&ep.lock);
    visit(&ep);
    OPAL_THREAD_UNLOCK(&ep.lock);
}
bool ofo_doubt_begin(ofo_endpoint_t *of)
{
    return false;
}
void ofo_doubt_ask(const ofo_module_t *of) {}
void ofo_doubt_ask_over(ofo_endpoint_t *of) {}
void ofo_credits_post(ofo_endpoint_t *of, ofo_qpset_t *set) {}
void ofo_log(unsigned level, const char *format, ...) {}
/* The queue pair refuses a post that waited. */
static bool refuses;
void ofo_pending_post(ofo_endpoint_t *of, ofo_qpset_t *set)
{
    if (refuses) {
        assert_true(ofo_drain_raise(set, OFO_DEV_POST_REFUSED, NULL));
    }
}
void ofo_port_text(const ofo_port_t *port, char *text, size_t size) {}
void ofo_rdma_abandon(ofo_rdma_t *rdma) {}
void ofo_ring_drain(ofo_qpset_t *set) {}
void ofo_send_complete(ofo_frag_t *frag, int status) {}
void ofo_silent_ask(ofo_endpoint_t *of) {}

/* ---- the PML ------------------------------------------------------------------------------------- */

static unsigned told, fences_done;
static char told_why[96];

static void error_cb(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *text)
{
    assert_int_equal(ep.gate, OFO_GATE_REFUSING); /* the PML sends over another rail from now on */
    assert_int_equal(opal_mutex_trylock(&ep.lock), 0);
    opal_mutex_unlock(&ep.lock);
    ++told;
    snprintf(told_why, sizeof(told_why), "%s", text);
}

static void fence_done(mca_btl_base_module_t *btl, opal_proc_t *proc, uint8_t rail, uint16_t gen, bool lossy)
{
    assert_int_equal(gen, GEN);
    ++fences_done;
}

/* ---- tests --------------------------------------------------------------------------------------- */

static int begin(void **state)
{
    static struct ibv_context context = {.ops = {.post_send = post_send}};
    static struct ibv_qp qp = {.context = &context};

    OFO.params.fence_timeout = TIMEOUT_MS / 1000;
    OFO.queues.count = 1;
    device = (ofo_device_t){.fatal = false};
    memset(&module, 0, sizeof(module));
    module.device = &device;
    module.port_up = true;
    module.down_why = "";
    module.error_cb = error_cb;
    module.ext.fence_done = fence_done;
    peer = (ofo_peer_t){.rail_count = 1, .rail = {&ep}};
    memset(&ep, 0, sizeof(ep));
    OBJ_CONSTRUCT(&ep.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&ep.pending[0], opal_list_t);
    OBJ_CONSTRUCT(&ep.pending_rdma, opal_list_t);
    pthread_mutex_init(&ep.gate_lock, NULL);
    ep.module = &module;
    ep.peer = &peer;
    ep.gate = OFO_GATE_WAITING;
    ep.lossy_gen = ep.refused_gen = OFO_GEN_NONE;
    qps = calloc(1, sizeof(*qps) + sizeof(qps->qp[0]));
    qps->module = &module;
    qps->ep = &ep;
    qps->gen = GEN;
    qps->nqp = 1;
    qps->qp[0].qp = &qp;
    qps->qp[0].sq_free = qps->qp[0].sq_slots = 4;
    qps->qp[0].marker = (ofo_work_t){.kind = OFO_WORK_MARKER, .qps = qps};
    now = 1000;
    markers = told = fences_done = 0;
    memset(letters, 0, sizeof(letters));
    refuses = false;
    is_gone = true;
    opal_uses_threads = true; /* so that the product takes its locks */
    return 0;
}

static int end(void **state)
{
    opal_uses_threads = false;
    free(qps);
    return 0;
}

static void is_in(ofo_drain_state_t state)
{
    assert_string_equal(ofo_drain_state_name(ofo_drain_state(&qps->drain)), ofo_drain_state_name(state));
    assert_int_equal(module.count.drain_refused, 0);
}

/* All posted work comes back, the marker last. */
static void all_returns(void)
{
    qps->qp[0].sq_free = qps->qp[0].sq_slots;
    ofo_drain_check(qps);
    is_in(OFO_DRAIN_DRAINING);
    ofo_marker_returned(&qps->qp[0]);
    ofo_drain_check(qps);
}

/* A marker goes from NONE to OUT or REFUSED, then to BACK, and stays there. */
static void marker_goes_one_way(void **state)
{
    ofo_qp_t *qp = &qps->qp[0];

    (void) ofo_drain_step(&qps->drain, OFO_DEV_DRAIN);
    qp->shared = true; /* the marker may not be posted yet */
    ofo_markers_post(qps);
    assert_int_equal(qp->marker_state, OFO_MARKER_NONE);
    assert_false(ofo_marker_take_refused(qp));
    assert_int_equal(qp->marker_state, OFO_MARKER_NONE);
    qp->last_wqe_seen = true;
    ofo_markers_post(qps);
    assert_int_equal(qp->marker_state, OFO_MARKER_OUT);
    assert_false(ofo_marker_take_refused(qp));
    assert_false(ofo_set_is_drained(qps));
    ofo_markers_post(qps); /* does not post it again */
    assert_int_equal(markers, 1);
    ofo_marker_returned(qp);
    assert_int_equal(qp->marker_state, OFO_MARKER_BACK);
    assert_true(ofo_set_is_drained(qps));
    ofo_markers_post(qps);
    assert_int_equal(markers, 1);

    qp->marker_state = OFO_MARKER_NONE;
    takes_no_marker = true;
    ofo_markers_post(qps); /* refused for an unknown reason */
    assert_int_equal(qp->marker_state, OFO_MARKER_OUT);
    ofo_marker_give_up(qp);
    assert_int_equal(qp->marker_state, OFO_MARKER_BACK);

    qp->marker_state = OFO_MARKER_NONE;
    in_error = true;
    ofo_markers_post(qps);
    in_error = takes_no_marker = false;
    assert_int_equal(qp->marker_state, OFO_MARKER_REFUSED);
    assert_false(ofo_set_is_drained(qps));
    assert_true(ofo_marker_take_refused(qp));
    assert_false(ofo_marker_take_refused(qp));
    assert_int_equal(qp->marker_state, OFO_MARKER_BACK);

    qp->marker_state = OFO_MARKER_NONE;
    ofo_marker_give_up(qp); /* the time limit came before LAST_WQE_REACHED */
    assert_true(ofo_set_is_drained(qps));
}

static void gets_stuck(void)
{
    now += TIMEOUT_MS;
    ofo_fence_watch(&module);
    is_in(OFO_DRAIN_STUCK);
    assert_int_equal(letters[OFO_MAIL_STUCK], 1);
    ofo_fence_watch(&module);
    assert_int_equal(letters[OFO_MAIL_STUCK], 1);
}

static void set_that_fails_is_told_once_and_fenced_once(void **state)
{
    ofo_rail_up(&ep, qps);
    is_in(OFO_DRAIN_LIVE);
    assert_int_equal(ep.gate, OFO_GATE_UP);
    qps->qp[0].sq_free = 1;
    for (int i = 0; i < 3; ++i) {
        ofo_rail_failed(qps, "");
    }
    is_in(OFO_DRAIN_FAILED);
    assert_int_equal(told, 1);
    assert_int_equal(letters[OFO_MAIL_ERROR], 1);
    ofo_port_down(&module);
    assert_int_equal(letters[OFO_MAIL_ERROR], 1);
    told = 0;
    ofo_drain_start(&ep, qps, GEN, NULL);
    is_in(OFO_DRAIN_DRAINING);
    assert_int_equal(told, 0);
    assert_int_equal(markers, 1);
    all_returns();
    is_in(OFO_DRAIN_FENCED);
    assert_int_equal(fences_done, 0); /* service first asks whether the adapter lives */
    assert_int_equal(qps->ended_at, now);
    assert_int_equal(letters[OFO_MAIL_FENCE_DONE], 1);
    assert_null(ep.qps);
    assert_null(module.fencing);
    ofo_drain_check(qps);
    ofo_rail_failed(qps, "");               /* a buffer of a shared queue comes back */
    ofo_fence_answered(&module, qps, true); /* the answer of service comes late */
    is_in(OFO_DRAIN_FENCED);
    assert_int_equal(fences_done, 0);
    assert_int_equal(letters[OFO_MAIL_FENCE_DONE], 1);
}

/* If the peer brought the rail down, or a post was refused, DRAIN tells the PML. */
static void pml_is_told_by_drain_if_nobody_did(void **state)
{
    refuses = true;
    ofo_rail_up(&ep, qps);
    is_in(OFO_DRAIN_BROKEN);
    assert_int_equal(letters[OFO_MAIL_ERROR], 1);
    assert_int_equal(told, 0);
    ofo_drain_start(&ep, qps, GEN, NULL);
    assert_int_equal(told, 1);
    all_returns();
    is_in(OFO_DRAIN_FENCED);
    assert_int_equal(told, 1);
}

/* Service tells the peer the cause, and the PML hears the peer's. */
static void both_sides_hear_the_cause(void **state)
{
    ofo_rail_up(&ep, qps);
    ofo_rail_failed(qps, "");
    assert_int_equal(cause, OFO_CAUSE_DEVICE);
    end(state);
    begin(state);
    is_gone = false;
    ofo_rail_up(&ep, qps);
    ofo_rail_failed(qps, "");
    assert_int_equal(cause, OFO_CAUSE_ERROR);
    end(state);
    begin(state);
    is_gone = false;
    ofo_rail_up(&ep, qps);
    qps->is_silent = true;
    ofo_rail_failed(qps, "");
    assert_int_equal(cause, OFO_CAUSE_SILENT);
    end(state);
    begin(state);
    is_gone = false;
    ofo_rail_up(&ep, qps);
    module.port_up = false; /* its event comes later */
    ofo_rail_failed(qps, "");
    assert_int_equal(cause, OFO_CAUSE_PORT);
    end(state);
    begin(state);
    ofo_rail_up(&ep, qps);
    ofo_drain_start(&ep, qps, GEN, "the peer reports: the port is down");
    assert_int_equal(told, 1);
    assert_non_null(strstr(told_why, "the peer reports: the port is down"));
}

/* The port died, or the set broke, while the letter was under way: the gate stays shut, and service gets a letter. */
static void set_that_comes_too_late_opens_no_gate(void **state)
{
    ep.gate = OFO_GATE_REFUSING;
    ep.refused_gen = GEN;
    ofo_rail_up(&ep, qps);
    is_in(OFO_DRAIN_BROKEN);
    assert_int_equal(ep.gate, OFO_GATE_REFUSING);
    assert_int_equal(letters[OFO_MAIL_ERROR], 1);
    end(NULL);
    begin(NULL);
    ofo_rail_closed(qps); /* as on iWARP */
    is_in(OFO_DRAIN_BROKEN);
    assert_int_equal(letters[OFO_MAIL_ERROR], 0);
    ofo_rail_up(&ep, qps);
    assert_int_equal(ep.gate, OFO_GATE_WAITING);
    assert_int_equal(letters[OFO_MAIL_ERROR], 1);
    end(NULL);
    begin(NULL);
    ofo_rail_failed(qps, "");
    ofo_rail_up(&ep, qps);
    is_in(OFO_DRAIN_FAILED);
    assert_int_equal(letters[OFO_MAIL_ERROR], 1);
    assert_int_equal(told, 1);
}

static void closed_connection_is_a_loss_only_if_somebody_waits(void **state)
{
    ofo_rail_up(&ep, qps);
    ofo_rail_closed(qps);
    is_in(OFO_DRAIN_CLOSED);
    assert_int_equal(ep.gate, OFO_GATE_REFUSING);
    assert_int_equal(told + letters[OFO_MAIL_ERROR], 0);
    end(NULL);
    begin(NULL);
    ofo_rail_up(&ep, qps);
    ep.sends_out = 1;
    ofo_rail_closed(qps);
    is_in(OFO_DRAIN_FAILED);
    assert_int_equal(told, 1);
    assert_int_equal(letters[OFO_MAIL_ERROR], 1);
}

/* Work in flight is given back when no queue pair is left: all of it, once. The PML then waits for the loss check. */
static void what_is_out_comes_back_when_no_queue_pair_is_left(void **state)
{
    ofo_frag_t out = {.work = {.kind = OFO_WORK_SEND, .qps = qps}}, other = {.next_of_all = &out};
    ofo_rdma_t reads = {.work = {.kind = OFO_WORK_RDMA, .qps = qps}, .inflight = 1};

    module.all_frags = &other;
    module.all_rdmas = &reads;
    ofo_rail_up(&ep, qps);
    qps->qp[0].sq_free = 2;
    ofo_drain_start(&ep, qps, GEN, NULL);
    gets_stuck();
    ofo_fence_answered(&module, qps, false);
    is_in(OFO_DRAIN_OBSTINATE);
    assert_ptr_equal(out.work.qps, qps);
    assert_int_equal(letters[OFO_MAIL_FENCE_DONE], 0);
    letters[OFO_MAIL_STUCK] = 0;
    device.fatal = true;
    ofo_fence_watch(&module);
    is_in(OFO_DRAIN_OBSTINATE); /* service is not asked again and again */
    gets_stuck();
    ofo_fence_answered(&module, qps, true);
    is_in(OFO_DRAIN_LOSSY);
    assert_null(out.work.qps);
    assert_null(reads.work.qps);
    assert_int_equal(qps->qp[0].sq_free, 4);
    assert_int_equal(module.count.lossy_fences, 1);
    assert_int_equal(fences_done, 0);
    assert_int_equal(letters[OFO_MAIL_FENCE_DONE], 1);
}

/* The process has no core, or is outside of MPI. One look counts for 100 ms. */
static void time_in_which_nobody_looks_does_not_end_a_fence(void **state)
{
    module.transport = &ofo_transport_infiniband;
    ofo_rail_up(&ep, qps);
    qps->qp[0].sq_free = 2;
    ofo_drain_start(&ep, qps, GEN, NULL);
    assert_false(ofo_fence_look(&module));
    for (unsigned ms = 100; ms < TIMEOUT_MS; ms += 100) {
        now += 100 == ms % 200 ? 100 : 5000;
        assert_false(ofo_fence_look(&module));
        ofo_fence_watch(&module);
        is_in(OFO_DRAIN_DRAINING);
    }
    now += 100;
    assert_true(ofo_fence_look(&module));
    ofo_fence_watch(&module);
    is_in(OFO_DRAIN_STUCK);
}

/* The event of the last receive comes while service has the queue pairs. */
static void marker_that_waited_is_posted_when_service_gives_back_the_set(void **state)
{
    qps->qp[0].shared = true;
    ofo_rail_up(&ep, qps);
    ofo_drain_start(&ep, qps, GEN, NULL);
    assert_int_equal(markers, 0);
    gets_stuck();
    qps->qp[0].last_wqe_seen = true;
    ofo_drain_last_wqe(&ep, GEN);
    assert_int_equal(markers, 0);
    ofo_fence_answered(&module, qps, false);
    is_in(OFO_DRAIN_OBSTINATE);
    assert_int_equal(markers, 1);
    ofo_marker_returned(&qps->qp[0]);
    ofo_drain_check(qps);
    is_in(OFO_DRAIN_FENCED);
    assert_int_equal(letters[OFO_MAIL_FENCE_DONE], 1);
}

static void iwarp_set_does_not_wait_for_its_marker(void **state)
{
    module.transport = &ofo_transport_iwarp;
    ofo_rail_up(&ep, qps);
    ofo_drain_start(&ep, qps, GEN, NULL);
    ofo_fence_watch(&module);
    is_in(OFO_DRAIN_STUCK);
    assert_int_equal(letters[OFO_MAIL_STUCK], 1);
    ofo_fence_answered(&module, qps, true);
    is_in(OFO_DRAIN_LOSSY);
}

static void last_receive_of_another_generation_posts_no_marker(void **state)
{
    qps->qp[0].shared = true;
    ofo_rail_up(&ep, qps);
    ofo_drain_start(&ep, qps, GEN, NULL);
    qps->qp[0].last_wqe_seen = true;
    ofo_drain_last_wqe(&ep, GEN - 1);
    assert_int_equal(markers, 0);
    ofo_drain_last_wqe(&ep, GEN);
    assert_int_equal(markers, 1);
}

static void refused_marker_does_not_stand_for_work_that_is_out(void **state)
{
    ofo_qp_t *qp = &qps->qp[0];

    qp->marker_state = OFO_MARKER_REFUSED;
    assert_true(ofo_marker_take_refused(qp));
    qp->is_returning = true;
    assert_false(ofo_set_is_drained(qps));
    qp->is_returning = false;
    qp->sq_free = 3;
    assert_false(ofo_set_is_drained(qps));
    qp->sq_free = 4;
    assert_true(ofo_set_is_drained(qps));
}

/* Service has destroyed one queue pair, and failed with another. */
static void queue_pair_that_is_destroyed_gets_no_marker(void **state)
{
    (void) ofo_drain_step(&qps->drain, OFO_DEV_DRAIN);
    qps->qp[0].qp = NULL;
    ofo_markers_post(qps);
    assert_int_equal(markers, 0);
    assert_int_equal(qps->qp[0].marker_state, OFO_MARKER_NONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(marker_goes_one_way),
        TEST(set_that_fails_is_told_once_and_fenced_once),
        TEST(pml_is_told_by_drain_if_nobody_did),
        TEST(both_sides_hear_the_cause),
        TEST(set_that_comes_too_late_opens_no_gate),
        TEST(closed_connection_is_a_loss_only_if_somebody_waits),
        TEST(what_is_out_comes_back_when_no_queue_pair_is_left),
        TEST(time_in_which_nobody_looks_does_not_end_a_fence),
        TEST(marker_that_waited_is_posted_when_service_gives_back_the_set),
        TEST(iwarp_set_does_not_wait_for_its_marker),
        TEST(last_receive_of_another_generation_posts_no_marker),
        TEST(refused_marker_does_not_stand_for_work_that_is_out),
        TEST(queue_pair_that_is_destroyed_gets_no_marker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
