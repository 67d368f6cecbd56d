/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What a port event does to the port's rails: some end at once, others are in doubt until another rail to the peer has answered; and what
 * the BTL reports to the PML. This program stands in for verbs and the rest of the BTL. DESIGN.txt section 10.2.
 */
#include "bfo_config.h"

#include "connect/btl_openib_async.h"
#include "types/btl_openib_atomic.h"
#include "out/btl_openib_complete.h"
#include "fault/btl_openib_doubt.h"
#include "qp/btl_openib_drain.h"
#include "fault/btl_openib_failover.h"
#include "fault/btl_openib_fence.h"
#include "out/btl_openib_keepalive.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_lost.h"
#include "rail/btl_openib_peer.h"
#include "rail/btl_openib_spared.h"
#include "out/btl_openib_rdma.h"
#include "in/btl_openib_ring_in.h"
#include "out/btl_openib_send.h"
#include "out/btl_openib_silent.h"
#include "formats/btl_openib_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PEERS = 3, RAILS = 2 };

ofo_component_t mca_btl_openib_component;

static ofo_device_t device;
static ofo_module_t module[RAILS];
static ofo_peer_t peer[PEERS];
static ofo_endpoint_t ep[PEERS][RAILS];
static bool has_moved;

/* ---- functions that the rooms call -------------------------------------------------------------- */

#undef ibv_query_qp
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    return -1;
}

static unsigned errors; /* letters that tell service to end a rail */
static uint8_t cause;   /* in the last of them */
static unsigned fences; /* letters that ask service for a fence */
static unsigned probes;
static unsigned answers, answered_downs;
static bool has_left[PEERS];
static bool returns_then; /* the port returns as soon as its first rail has ended */

void ofo_tell_service(ofo_endpoint_t *of, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    errors += OFO_MAIL_ERROR == kind;
    cause = OFO_MAIL_ERROR == kind ? ctl->cause : cause;
    fences += OFO_MAIL_FENCE == kind;
    if (returns_then) {
        OFO_STORE(of->module->port_up, true);
    }
}
void ofo_tell_progress(ofo_module_t *to, ofo_mail_kind_t kind, ofo_endpoint_t *of, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    answers += OFO_MAIL_ANSWERED == kind;
    answered_downs = gen;
}
bool ofo_keepalive_may_ask(const ofo_peer_t *of)
{
    return !has_left[of->name.vpid];
}
void ofo_keepalive_post(ofo_endpoint_t *of, ofo_qpset_t *qps)
{
    ++probes;
    qps->is_asking = true;
}
bool ofo_port_has_moved(const ofo_module_t *of)
{
    return has_moved;
}
bool ofo_port_came_back(const ofo_module_t *of)
{
    return OFO_LOAD(of->port_up) && !has_moved;
}
uint32_t ofo_async_downs(const ofo_module_t *of, bool *is_up)
{
    return of->downs;
}
bool ofo_async_port_is_up(ofo_module_t *of, bool unanswered)
{
    return OFO_LOAD(of->port_up);
}
ofo_peer_t *ofo_peer_find(uint32_t jobid, uint32_t vpid)
{
    return vpid < PEERS ? &peer[vpid] : NULL;
}
static unsigned declared;
bool ofo_peer_declare(ofo_peer_t *of, const char *why, bool by_peer)
{
    ++declared;
    return true;
}
void ofo_credits_post(ofo_endpoint_t *of, ofo_qpset_t *qps) {}
void ofo_drain_act_ask_service(ofo_qpset_t *qps, const char *why) {}
void ofo_drain_act_give_up(ofo_qpset_t *qps, const char *why) {}
void ofo_fence_begin(ofo_qpset_t *qps) {}
void ofo_fence_end(ofo_qpset_t *qps) {}
void ofo_fence_extend(ofo_qpset_t *qps) {}
void ofo_log(unsigned level, const char *format, ...) {}
void ofo_pending_post(ofo_endpoint_t *of, ofo_qpset_t *qps) {}
void ofo_port_text(const ofo_port_t *port, char *text, size_t size) {}
void ofo_rdma_abandon(ofo_rdma_t *rdma) {}
void ofo_ring_drain(ofo_qpset_t *qps) {}
void ofo_send_complete(ofo_frag_t *frag, int status) {}
static unsigned silent_asks;
void ofo_silent_ask(ofo_endpoint_t *of)
{
    ++silent_asks;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static void failed_frag(mca_btl_base_module_t *btl, ofo_endpoint_t *of, mca_btl_base_tag_t tag, const void *data, size_t length, int status) {}

static unsigned news; /* reports of the port to the PML */

static void error_cb(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *text)
{
    news += NULL == proc;
}

static int begin(void **state)
{
    device = (ofo_device_t){.fatal = false};
    memset(module, 0, sizeof(module));
    memset(ep, 0, sizeof(ep));
    OBJ_CONSTRUCT(&OFO.peers, opal_hash_table_t);
    (void) opal_hash_table_init(&OFO.peers, PEERS);
    pthread_mutex_init(&OFO.peers_lock, NULL);
    OFO.module_count = RAILS;
    for (int r = 0; r < RAILS; ++r) {
        OFO.module[r] = &module[r];
        module[r].device = &device;
        module[r].transport = &ofo_transport_infiniband;
        module[r].port_up = true;
        module[r].down_why = "";
        module[r].ext.failed_frag = failed_frag;
        module[r].error_cb = error_cb;
    }
    for (int p = 0; p < PEERS; ++p) {
        peer[p] = (ofo_peer_t){.name = {.vpid = (uint32_t) p}, .rail_count = RAILS};
        (void) opal_hash_table_set_value_uint64(&OFO.peers, (uint64_t) p, &peer[p]);
        for (int r = 0; r < RAILS; ++r) {
            ofo_endpoint_t *of = peer[p].rail[r] = &ep[p][r];
            OBJ_CONSTRUCT(&of->lock, opal_mutex_t);
            pthread_mutex_init(&of->gate_lock, NULL);
            of->module = &module[r];
            of->peer = &peer[p];
            of->gate = OFO_GATE_UP;
            of->qps = calloc(1, sizeof(*of->qps));
            of->qps->ep = of;
            of->qps->module = of->module;
        }
    }
    OFO.closing = has_moved = returns_then = false;
    errors = probes = answers = news = silent_asks = declared = fences = 0;
    memset(has_left, false, sizeof(has_left));
    return 0;
}

static int end(void **state)
{
    for (int p = 0; p < PEERS; ++p) {
        for (int r = 0; r < RAILS; ++r) {
            free(ep[p][r].qps);
        }
    }
    OBJ_DESTRUCT(&OFO.peers);
    return 0;
}

static void port_goes_down(void)
{
    ++module[0].downs;
    OFO_STORE(module[0].port_up, false);
    ofo_port_down(&module[0]);
}

static void rails_are_in_doubt_until_another_answers(void **state)
{
    port_goes_down();
    assert_int_equal(errors, 0);
    assert_int_equal(probes, PEERS);
    for (int p = 0; p < PEERS; ++p) {
        assert_true(ep[p][0].doubted);
        ofo_port_ends(&ep[p][0], 1);
        assert_int_equal(ep[p][0].gate, OFO_GATE_REFUSING);
    }
    assert_int_equal(errors, PEERS);
}

/* The port returned and went down again; its letters are still unread. */
static void answer_is_about_the_loss_that_was_asked_about(void **state)
{
    port_goes_down();
    ++module[0].downs;
    ofo_doubt_answered(&ep[0][1]);
    assert_int_equal(answers, 1);
    ofo_port_ends(&ep[0][0], (uint16_t) answered_downs);
    assert_int_equal(errors, 0);
    ep[0][1].qps->is_asking = false;
    ofo_doubt_ask(&module[0]);
    ofo_doubt_answered(&ep[0][1]);
    assert_int_equal(answers, 2);
    ofo_port_ends(&ep[0][0], (uint16_t) answered_downs);
    assert_int_equal(errors, 1);
}

/* The PML itself looks at every peer when it gets a report of the port. */
static void pml_is_told_once_of_rails_that_do_not_connect(void **state)
{
    port_goes_down();
    for (int p = 0; p < PEERS; ++p) {
        free(ep[p][0].qps);
        ep[p][0].qps = NULL;
        ofo_port_ends(&ep[p][0], 1);
    }
    assert_int_equal(news, 0);
    ofo_port_tell(&module[0]);
    ofo_port_tell(&module[0]);
    assert_int_equal(news, 1);
}

/* The rail that was to answer has died, and another rail comes up. */
static void rail_that_comes_up_is_asked(void **state)
{
    ofo_qpset_t *fresh = ep[0][1].qps;

    ofo_rail_up(&ep[0][1], fresh);
    assert_int_equal(probes, 0);
    port_goes_down();
    assert_int_equal(probes, PEERS);
    ep[0][1].gate = OFO_GATE_CLOSED;
    fresh->is_asking = false;
    ofo_rail_up(&ep[0][1], fresh);
    assert_int_equal(probes, PEERS + 1);
    ofo_doubt_answered(&ep[0][1]);
    assert_int_equal(answers, 1);
}

/* A probe to a peer that has left gets no answer, and would therefore end a rail that works. */
static void who_may_have_left_is_not_asked(void **state)
{
    has_left[1] = true;
    port_goes_down();
    assert_int_equal(errors, 1);
    assert_false(ep[1][0].doubted);
    assert_int_equal(ep[1][0].gate, OFO_GATE_REFUSING);
    assert_int_equal(ep[1][1].answer, OFO_ANSWER_NONE);
    assert_int_equal(probes, PEERS - 1);
    ep[2][1].qps->is_asking = false;
    ep[2][1].answer = OFO_ANSWER_NONE;
    has_left[2] = true; /* the peer leaves while its rail is in doubt */
    ofo_doubt_ask(&module[0]);
    assert_int_equal(ep[0][1].answer, OFO_ANSWER_WANTED);
    assert_int_equal(ep[2][1].answer, OFO_ANSWER_NONE);
    assert_int_equal(probes, PEERS - 1);
}

/* The port is down for a moment, or up again, when its letter is read. */
static void rails_of_a_moved_port_end_without_an_answer(void **state)
{
    has_moved = true;
    port_goes_down();
    assert_int_equal(errors, PEERS);
    module[0].port_up = true;
    ofo_port_returned(&module[0]);
    for (int p = 0; p < PEERS; ++p) {
        assert_int_equal(ep[p][0].gate, OFO_GATE_REFUSING);
    }
}

/* There is no other rail that could answer. */
static void port_that_returns_meanwhile_ends_no_more_rails(void **state)
{
    for (int p = 0; p < PEERS; ++p) {
        ep[p][1].gate = OFO_GATE_CLOSED;
    }
    returns_then = true;
    port_goes_down();
    assert_int_equal(errors, 1);
}

/* The PML waits for a returning rail when it loses its last rail. */
static void rail_returns_from_its_request_until_the_pml_is_told(void **state)
{
    static const struct {
        ofo_fsm_state_t is;
        uint16_t gen;
        bool returns, is_asking;
    } table[] = {{OFO_ST_UP, 0, false},       {OFO_ST_DRAINING, 0, false},     {OFO_ST_DOWN, 0, false},           {OFO_ST_REQUESTED, 1, true},
                 {OFO_ST_PROVING, 1, true},   {OFO_ST_READY, 1, true},         {OFO_ST_CHECKING, 1, true},        {OFO_ST_UP, 1, true},
                 {OFO_ST_DRAINING, 1, false}, {OFO_ST_ASKING, 1, false, true}, {OFO_ST_DRAINING_ACKED, 1, false}, {OFO_ST_DOWN, 1, false}};
    ofo_endpoint_t *of = &ep[0][0];
    opal_proc_t proc = {.proc_name = peer[0].name};
    bfo_rail_info_t info;

    ofo_ext_fill(&module[0]);
    of->gate = OFO_GATE_REFUSING;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
        OFO_STORE(of->published, (int32_t) ((uint32_t) table[i].is << 16 | table[i].gen));
        assert_int_equal(module[0].ext.rail_state(&module[0].super, &proc, &info), OPAL_SUCCESS);
        assert_int_equal(info.returns, table[i].returns);
        assert_int_equal(info.is_asking, table[i].is_asking);
        assert_true(table[i].gen == info.generation && BFO_RAIL_UP != info.state);
    }
    OFO_STORE(of->published, (int32_t) ((uint32_t) OFO_ST_UP << 16 | 1u));
    of->qps->gen = 1;
    ofo_rail_up(of, of->qps);
    assert_int_equal(module[0].ext.rail_state(&module[0].super, &proc, &info), OPAL_SUCCESS);
    assert_true(BFO_RAIL_UP == info.state && 1 == info.generation && !info.returns);
}

/* The PML may ask about a process that the BTL does not know. */
static void extension_knows_nothing_of_a_stranger(void **state)
{
    opal_proc_t stranger = {.proc_name = {.vpid = PEERS}};
    bfo_btl_ext_t *ext = &module[0].ext;
    bfo_btl_ports_t ports;
    bfo_rail_info_t info;
    bool is_held = true;

    ofo_ext_fill(&module[0]);
    assert_true(ext->flush(&module[0].super, &stranger));
    assert_int_equal(ext->fence(&module[0].super, &stranger, 0, 0), OPAL_ERR_BAD_PARAM);
    ext->declare(&module[0].super, &stranger);
    assert_int_equal(declared, 0);
    assert_int_equal(ext->rail_state(&module[0].super, &stranger, &info), OPAL_ERR_NOT_FOUND);
    assert_int_equal(ext->penalty(&module[0].super, &stranger, &is_held), 0);
    assert_false(is_held);
    ext->name_ports(&module[0].super, &stranger, &ports);
    assert_string_equal(ports.there, "");
    ext->name_ports(&module[0].super, NULL, &ports);
    assert_string_equal(ports.there, "");
}

static void extension_acts_on_the_rail_of_the_peer(void **state)
{
    opal_proc_t proc = {.proc_name = peer[1].name};
    bfo_btl_ext_t *ext = &module[0].ext;
    ofo_endpoint_t *of = &ep[1][0];
    bool is_held;

    ofo_ext_fill(&module[0]);
    assert_true(ext->flush(&module[0].super, &proc));
    assert_int_equal(silent_asks, 0);
    of->sends_out = 1;
    assert_false(ext->flush(&module[0].super, &proc));
    assert_int_equal(silent_asks, 1);
    of->sends_out = 0;
    of->rdma_out = 1;
    assert_false(ext->flush(&module[0].super, &proc));
    of->rdma_out = 0;
    of->pending_count = 1;
    assert_false(ext->flush(&module[0].super, &proc));
    of->pending_count = 0;
    of->rail = 3;
    assert_int_equal(ext->fence(&module[0].super, &proc, 2, 0), OPAL_ERR_BAD_PARAM);
    assert_int_equal(fences, 0);
    assert_int_equal(ext->fence(&module[0].super, &proc, 3, 0), OPAL_SUCCESS);
    of->rail = OFO_RAIL_NONE; /* it has no name yet */
    assert_int_equal(ext->fence(&module[0].super, &proc, 2, 0), OPAL_SUCCESS);
    assert_int_equal(fences, 2);
    ext->declare(&module[0].super, &proc);
    assert_int_equal(declared, 1);
    of->rejoin.is_held = true;
    of->rejoin.penalty = 500;
    of->rejoin.fell_at = UINT64_MAX;
    OFO.params.rejoin_half_life = 1;
    assert_int_equal(ext->penalty(&module[0].super, &proc, &is_held), 500);
    assert_true(is_held);
    ext->share(&module[0].super, -1); /* without a directory each process is alone */
}

/* A rail beside a rail that stands out by force returns as the last does. A port event ends it all the same, because it may return soon. */
static void rail_that_stands_out_replaces_no_other(void **state)
{
    opal_proc_t proc = {.proc_name = peer[0].name};
    bfo_btl_ext_t *ext = &module[1].ext;

    ofo_ext_fill(&module[0]);
    ofo_ext_fill(&module[1]);
    module[0].ext.failed_frag = failed_frag;
    assert_false(ofo_rail_is_last(&ep[0][0]));
    ext->stand_out(&module[1].super, &proc, true);
    assert_true(ofo_rail_is_last(&ep[0][0]));
    assert_false(ofo_rail_is_spared(&ep[0][0]));
    assert_false(ofo_rail_is_last(&ep[0][1]));
    ext->stand_out(&module[1].super, &proc, false);
    assert_false(ofo_rail_is_last(&ep[0][0]));
    ext->stand_out(&module[1].super, &(opal_proc_t){.proc_name = {.vpid = PEERS}}, true); /* a stranger */
    assert_false(ofo_rail_is_last(&ep[0][0]));
}

/* On iWARP a completion does not mean that a message was delivered. */
static void iwarp_has_no_extension(void **state)
{
    module[0].transport = &ofo_transport_iwarp;
    ofo_ext_fill(&module[0]);
    assert_true(BFO_BTL_EXT_MAGIC != module[0].ext.magic);
    assert_null(module[0].ext.fence);
}

static unsigned deaths, trusts, ends, lossy_ends;

static void peer_dead(mca_btl_base_module_t *btl, opal_proc_t *proc, const char *why)
{
    ++deaths;
}

static void rail_trusted(mca_btl_base_module_t *btl, opal_proc_t *proc, uint8_t rail, uint16_t gen)
{
    ++trusts;
}

static void fence_done(mca_btl_base_module_t *btl, opal_proc_t *proc, uint8_t rail, uint16_t gen, bool lossy)
{
    ++ends;
    lossy_ends += lossy;
}

static void pml_hears_nothing_of_a_peer_that_leaves(void **state)
{
    deaths = trusts = ends = lossy_ends = 0;
    ofo_peer_lost(&peer[0]); /* a PML without failover */
    ofo_rail_trusted(&ep[0][0], 1);
    ofo_fence_done_again(&ep[0][0], 1);
    module[0].ext.peer_dead = peer_dead;
    module[0].ext.rail_trusted = rail_trusted;
    module[0].ext.fence_done = fence_done;
    ep[0][0].lossy_gen = OFO_GEN_NONE;
    ofo_peer_lost(&peer[0]);
    ofo_rail_trusted(&ep[0][0], 1);
    ofo_fence_done_again(&ep[0][0], 1);
    assert_true(1 == deaths && 1 == trusts && 1 == ends && 0 == lossy_ends);
    ep[0][0].lossy_gen = 1;
    ofo_fence_done_again(&ep[0][0], 1);
    ep[0][0].lossy_gen = OFO_GEN_NONE;
    device.fatal = true;
    ofo_fence_done_again(&ep[0][0], 1);
    assert_true(3 == ends && 2 == lossy_ends);
    peer[0].closing = true;
    ofo_peer_lost(&peer[0]);
    ofo_rail_trusted(&ep[0][0], 2);
    peer[0].closing = false;
    OFO.closing = true;
    ofo_peer_lost(&peer[0]);
    assert_true(1 == deaths && 1 == trusts);
}

/* The peer's loss comes before that of its rails, and both only once the PML listens. */
static void loss_of_a_rail_is_told_with_its_cause(void **state)
{
    ofo_qpset_t *qps = ep[0][0].qps;

    deaths = 0;
    module[0].ext.peer_dead = peer_dead;
    peer[0].declared = true;
    ofo_drain_act_tell_all(qps, "test");
    assert_int_equal(deaths, 1);
    assert_int_equal(cause, OFO_CAUSE_ERROR);
    qps->is_silent = true;
    module[0].error_cb = NULL;
    ofo_drain_act_tell_all(qps, "test");
    assert_int_equal(cause, OFO_CAUSE_SILENT);
    module[0].error_cb = error_cb;
    peer[0].closing = true;
    has_moved = true;
    ofo_drain_act_tell_all(qps, "test");
    assert_int_equal(cause, OFO_CAUSE_PORT);
    peer[0].closing = false;
    OFO.closing = true;
    device.fatal = true;
    ofo_drain_act_tell_all(qps, "test");
    assert_int_equal(cause, OFO_CAUSE_DEVICE);
    assert_int_equal(deaths, 1);
    assert_int_equal(errors, 4);
}

/* A post was refused there, and service does not know of this yet. */
static void rail_that_takes_no_posts_is_not_asked(void **state)
{
    ep[0][1].qps->drain.own = OFO_DRAIN_BROKEN;
    port_goes_down();
    assert_int_equal(probes, PEERS - 1);
    assert_int_equal(ep[0][1].answer, OFO_ANSWER_NONE);
    assert_int_equal(errors, 0);
}

/* The rail had no queue pairs when its port went down; the peer has connected it since. */
static void peer_opens_a_rail_that_was_left_out(void **state)
{
    ofo_endpoint_t *of = &ep[0][0];

    of->gate = OFO_GATE_REFUSING;
    of->dead_port = true;
    ofo_rail_up(of, of->qps);
    assert_int_equal(of->gate, OFO_GATE_UP);
    ofo_port_returned(&module[0]); /* the letter comes late */
    assert_false(of->dead_port);
    assert_int_equal(of->gate, OFO_GATE_UP);
    of = &ep[1][0];
    of->gate = OFO_GATE_REFUSING;
    of->dead_port = true;
    module[0].port_up = false;
    ofo_rail_up(of, of->qps);
    assert_int_equal(of->gate, OFO_GATE_REFUSING);
    assert_int_equal(errors, 1);
    assert_int_equal(cause, OFO_CAUSE_PORT);
}

static void rails_of_a_failed_completion_queue_end_without_an_answer(void **state)
{
    module[0].cq_failed = true;
    port_goes_down();
    assert_int_equal(errors, PEERS);
    assert_int_equal(cause, OFO_CAUSE_DEVICE);
    assert_int_equal(probes, 0);
    assert_int_equal(news, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rails_are_in_doubt_until_another_answers),
        TEST(who_may_have_left_is_not_asked),
        TEST(answer_is_about_the_loss_that_was_asked_about),
        TEST(pml_is_told_once_of_rails_that_do_not_connect),
        TEST(rail_that_comes_up_is_asked),
        TEST(rails_of_a_moved_port_end_without_an_answer),
        TEST(port_that_returns_meanwhile_ends_no_more_rails),
        TEST(rail_returns_from_its_request_until_the_pml_is_told),
        TEST(extension_knows_nothing_of_a_stranger),
        TEST(extension_acts_on_the_rail_of_the_peer),
        TEST(rail_that_stands_out_replaces_no_other),
        TEST(iwarp_has_no_extension),
        TEST(pml_hears_nothing_of_a_peer_that_leaves),
        TEST(loss_of_a_rail_is_told_with_its_cause),
        TEST(rail_that_takes_no_posts_is_not_asked),
        TEST(peer_opens_a_rail_that_was_left_out),
        TEST(rails_of_a_failed_completion_queue_end_without_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
