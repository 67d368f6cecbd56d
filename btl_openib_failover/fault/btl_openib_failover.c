/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What happens to a rail's work when the rail dies: posts are refused, the PML is notified once, the queue pairs are
 * drained, the pending lists are returned with an error, and only then the fence is done. Also the extension for the
 * PML bfo. Context: progress, inside the poll lock. See DESIGN.txt 4 (B3, B4) and 10.
 */
#include "fault/btl_openib_failover.h"

#include "connect/btl_openib_async.h"
#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "out/btl_openib_complete.h"
#include "tables/btl_openib_rail_fsm.h"
#include "fault/btl_openib_doubt.h"
#include "qp/btl_openib_drain.h"
#include "types/btl_openib_endpoints.h"
#include "fault/btl_openib_fence.h"
#include "qp/btl_openib_gate.h"
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
#include "formats/btl_openib_wire.h"

#include "bfo_assert.h"
#include "bfo_help.h"

#include <string.h>

/* The BTL has declared a peer and ends its rails; the PML ends its requests. */
void ofo_peer_lost(ofo_peer_t *peer)
{
    ofo_module_t *module = peer->rail[0]->module;

    if (!OFO_LOAD(OFO.closing) && !OFO_LOAD(peer->closing) && NULL != module->ext.peer_dead) {
        module->ext.peer_dead(&module->super, peer->proc, peer->why);
    }
}

static void tell_pml(ofo_module_t *module, ofo_peer_t *peer, const char *why)
{
    opal_proc_t *proc = NULL != peer ? peer->proc : NULL;
    char text[96];

    if (OFO_LOAD(OFO.closing) || NULL == module->error_cb || (NULL != peer && OFO_LOAD(peer->closing))) {
        return;
    }
    if (NULL != peer && OFO_LOAD(peer->declared)) {
        ofo_peer_lost(peer); /* the cause first; the loss of its rails is a consequence */
    }
    snprintf(text, sizeof(text), "%s: %s", module->name, why);
    module->error_cb(&module->super, MCA_BTL_ERROR_FLAGS_NONFATAL, proc, text);
}

/* A port that is down is the better answer, although the first symptom may have been a bad completion. */
static void tell_service_why(ofo_endpoint_t *ep, uint16_t gen, bool is_silent)
{
    const ofo_module_t *module = ep->module;
    ofo_ctl_t ctl = {.cause = OFO_CAUSE_ERROR};

    if (ofo_port_is_gone(module)) {
        ctl.cause = OFO_CAUSE_DEVICE;
    } else if (!OFO_LOAD(module->port_up) || ofo_port_has_moved(module)) {
        ctl.cause = OFO_CAUSE_PORT;
    } else if (is_silent) {
        ctl.cause = OFO_CAUSE_SILENT;
    }
    ofo_tell_service(ep, OFO_MAIL_ERROR, gen, &ctl, NULL);
}

void ofo_drain_act_tell_service(ofo_qpset_t *qps, const char *why)
{
    tell_service_why(qps->ep, qps->gen, qps->is_silent);
}

void ofo_drain_act_tell_all(ofo_qpset_t *qps, const char *why)
{
    tell_pml(qps->ep->module, qps->ep->peer, why);
    ofo_drain_act_tell_service(qps, NULL);
}

/* Has the port died, or was this generation refused, while the letter that opens the gate was in flight? A port that has come back
 * does not matter, because a rail that waited for it starts again. A generation later than the refused one was made after the loss.
 * Locks: ep->lock held. */
static bool was_refused(const ofo_endpoint_t *ep, const ofo_qpset_t *qps)
{
    return OFO_GATE_REFUSING == ep->gate && (ep->dead_port ? !OFO_LOAD(ep->module->port_up) : (int32_t) qps->gen <= ep->refused_gen);
}

/* Looks at the rails of dead ports again. They were spared or are in doubt, and may not be the last ones to their peers any more. */
static void look_at_dead_ports(void)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        if (!OFO_LOAD(OFO.module[i]->port_up)) {
            ofo_tell_progress(OFO.module[i], OFO_MAIL_PORT_DOWN, NULL, 0, NULL, NULL);
        }
    }
}

/* Waiting messages and owed credits are posted before the gate opens, so that no other post can overtake them. If service opens the
 * gate, it touches the queue pairs only while posts still take gate_lock. */
void ofo_drain_act_open_gate(ofo_qpset_t *qps, const char *why)
{
    ofo_endpoint_t *ep = qps->ep;

    BFO_ASSERT(qps == ep->qps && ofo_drain_is_live(&qps->drain));
    ofo_pending_post(ep, qps);
    ofo_credits_post(ep, qps);
    ofo_gate_open(ep);
    ofo_doubt_ask_over(ep); /* the rail that was asked before may have died */
}

void ofo_rail_up(ofo_endpoint_t *ep, ofo_qpset_t *qps)
{
    bool is_open;

    pthread_mutex_lock(&ep->gate_lock);
    OPAL_THREAD_LOCK(&ep->lock);
    BFO_ASSERT(NULL == ep->draining && (NULL == ep->qps || qps == ep->qps)); /* the fence of the last generation is done */
    BFO_ASSERT(qps->gen >= ep->up_gen);                                      /* generations only grow */
    ep->answer = OFO_ANSWER_NONE;
    ep->qps = qps;
    ep->up_gen = qps->gen;
    (void) ofo_drain_raise(qps, was_refused(ep, qps) ? OFO_DEV_UP_LATE : OFO_DEV_UP, NULL);
    is_open = OFO_GATE_UP == ep->gate;
    OPAL_THREAD_UNLOCK(&ep->lock);
    pthread_mutex_unlock(&ep->gate_lock);
    if (is_open && 0 < qps->gen && NULL != ep->module->ext.rail_restored) {
        ep->module->ext.rail_restored(&ep->module->super, ep->peer->proc, ep->rail, qps->gen);
        look_at_dead_ports();
    }
}

void ofo_rail_trusted(ofo_endpoint_t *ep, uint16_t gen)
{
    if (NULL != ep->module->ext.rail_trusted && !OFO_LOAD(ep->peer->closing)) {
        ep->module->ext.rail_trusted(&ep->module->super, ep->peer->proc, ep->rail, gen);
    }
}

/* ---- draining ----------------------------------------------------------------------------------- */

/* Takes all lists under the lock, then runs the callbacks without it. */
static void return_pending(ofo_endpoint_t *ep)
{
    opal_list_t messages, rdma;
    opal_list_item_t *item;

    OBJ_CONSTRUCT(&messages, opal_list_t);
    OBJ_CONSTRUCT(&rdma, opal_list_t);
    OPAL_THREAD_LOCK(&ep->lock);
    for (unsigned i = 0; i < OFO.queues.count; ++i) {
        opal_list_join(&messages, opal_list_get_end(&messages), &ep->pending[i]);
    }
    opal_list_join(&rdma, opal_list_get_end(&rdma), &ep->pending_rdma);
    OFO_STORE(ep->pending_count, 0);
    OPAL_THREAD_UNLOCK(&ep->lock);
    while (NULL != (item = opal_list_remove_first(&messages))) {
        ofo_send_complete((ofo_frag_t *) item, OPAL_ERROR);
    }
    while (NULL != (item = opal_list_remove_first(&rdma))) {
        ofo_rdma_abandon((ofo_rdma_t *) item);
    }
    OBJ_DESTRUCT(&messages);
    OBJ_DESTRUCT(&rdma);
}

/* A dead adapter may have acknowledged a WRITE whose data never reached memory, even if it has returned all work since. */
static bool may_miss_data(const ofo_endpoint_t *ep, uint16_t gen)
{
    return (int32_t) gen == OFO_LOAD(ep->lossy_gen) || OFO_LOAD(ep->module->device->fatal);
}

void ofo_fence_done_again(ofo_endpoint_t *ep, uint16_t gen)
{
    if (NULL != ep->module->ext.fence_done) {
        ep->module->ext.fence_done(&ep->module->super, ep->peer->proc, ep->rail, gen, may_miss_data(ep, gen));
    }
}

/* `qps` is NULL if there are no queue pairs. Otherwise service asks whether the adapter lives, and after a fence that was given up waits
 * for the loss check; then it sends a letter. */
static void drain_end(ofo_endpoint_t *ep, ofo_qpset_t *qps, uint16_t gen)
{
    return_pending(ep);
    OPAL_THREAD_LOCK(&ep->lock);
    BFO_ASSERT(0 == ep->pending_count);
    BFO_ASSERT(NULL == qps || ofo_drain_is_over(&qps->drain));
    BFO_ASSERT(OFO_GATE_UP != ep->gate); /* no post finds the rail without queue pairs */
    ep->qps = ep->draining = NULL;
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (NULL == qps) {
        ofo_fence_done_again(ep, gen);
    } else {
        qps->ended_at = ofo_now_ms();
    }
    ofo_tell_service(ep, OFO_MAIL_FENCE_DONE, gen, NULL, qps);
}

void ofo_drain_act_end_fence(ofo_qpset_t *qps, const char *why)
{
    BFO_ASSERT(qps == qps->ep->draining && ofo_set_is_drained(qps));
    ofo_ring_drain(qps); /* nothing more comes in (A4) */
    ofo_fence_end(qps);
    drain_end(qps->ep, qps, qps->gen);
}

void ofo_drain_act_drain(ofo_qpset_t *qps, const char *why)
{
    BFO_ASSERT(NULL == qps->ep->draining);
    BFO_ASSERT(OFO_DRAIN_DRAINING == ofo_drain_state(&qps->drain));
    BFO_ASSERT(NULL == qps->ep->qps || qps == qps->ep->qps); /* UP may have come too late for it */
    qps->ep->draining = qps;
    ofo_markers_post(qps);
    ofo_fence_begin(qps);
}

void ofo_drain_act_tell_pml_drain(ofo_qpset_t *qps, const char *why)
{
    tell_pml(qps->ep->module, qps->ep->peer, why);
    ofo_drain_act_drain(qps, NULL);
}

/* The letter may have waited while the process computed. Therefore the time limit for the markers starts here. */
void ofo_drain_act_post_markers(ofo_qpset_t *qps, const char *why)
{
    BFO_ASSERT(qps == qps->ep->draining);
    ofo_markers_post(qps);
    ofo_fence_extend(qps);
}

void ofo_drain_start(ofo_endpoint_t *ep, ofo_qpset_t *qps, uint16_t gen, const char *reported)
{
    OPAL_THREAD_LOCK(&ep->lock);
    ofo_gate_refuse(ep, gen);
    ep->dead_port = false; /* the port may return, the rail does not */
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (NULL != qps) {
        (void) ofo_drain_raise(qps, OFO_DEV_DRAIN, NULL != reported ? reported : "the rail was brought down");
    } else {
        tell_pml(ep->module, ep->peer, NULL != reported ? reported : "the rail does not connect");
        drain_end(ep, NULL, gen);
    }
}

void ofo_drain_last_wqe(ofo_endpoint_t *ep, uint16_t gen)
{
    if (NULL != ep->draining && gen == ep->draining->gen) {
        (void) ofo_drain_raise(ep->draining, OFO_DEV_LAST_WQE, NULL);
    }
}

/* ---- ports -------------------------------------------------------------------------------------- */

/* Locks: ep->lock held. */
static void end_endpoint(ofo_endpoint_t *ep)
{
    uint32_t published = (uint32_t) OFO_LOAD(ep->published);
    ofo_fsm_state_t state = (ofo_fsm_state_t) (published >> 16);

    OFO_STORE(ep->doubted, false);
    ep->module->port_ends_rails = true;
    if (NULL != ep->qps) {
        (void) ofo_drain_raise(ep->qps, OFO_DEV_PORT_LOST, NULL); /* one message about the port covers all its rails */
    } else if (OFO_GATE_CLOSED == ep->gate && OFO_ST_CLOSED == state) {
        ofo_gate_refuse_for_port(ep); /* no queue pairs here; a PML that knows the peer asks for the fence */
    } else if (OFO_GATE_REFUSING != ep->gate || OFO_ST_UP == state || ofo_fsm_state_is_connecting(state)) { /* one side connects */
        tell_service_why(ep, (uint16_t) published, false);
        ofo_gate_refuse(ep, (uint16_t) published);
    }
}

/* Ends the rail of a port that is down, unless the rail is spared or another one has to answer first. The reason decides, not only the
 * port's state: a port whose address has changed is down for a moment only, but its rails cannot go on; a port that is back already
 * ends no rail. Locks: ep->lock held. */
static void fail_endpoint(ofo_endpoint_t *ep)
{
    if (ofo_rail_is_spared(ep)) {
        ofo_log(1, "%s: rail %u to %u is spared", ep->module->name, ep->rail, ep->peer->name.vpid);
    } else if (ofo_port_is_gone(ep->module) || ofo_port_has_moved(ep->module)) {
        end_endpoint(ep);
    } else if (!OFO_LOAD(ep->module->port_up) && !ofo_doubt_begin(ep)) {
        end_endpoint(ep);
    }
}

/* After the message about the port the PML asks for the state of each rail, because spared rails go on. A port that is back already ends
 * no rail, because the hardware repeats lost packets. */
void ofo_port_down(ofo_module_t *module)
{
    ofo_log(1, "%s: %s", module->name, module->down_why);
    module->port_ends_rails = ofo_port_is_gone(module);
    if (module->port_ends_rails || !ofo_port_came_back(module)) {
        ofo_for_each_endpoint(module, fail_endpoint);
    }
    if (module->port_ends_rails) {
        tell_pml(module, NULL, module->down_why);
    }
    ofo_doubt_ask(module);
}

/* The first message about the port covers all its rails; later ones name the peer. For rails without queue pairs the PML has to ask for a
 * fence. It looks at each peer then, so ofo_port_tell() reports them all at once. */
void ofo_port_ends(ofo_endpoint_t *ep, uint16_t downs)
{
    ofo_module_t *module = ep->module;
    bool ends, has_set = false;
    const bool is_told = module->port_ends_rails;

    OPAL_THREAD_LOCK(&ep->lock);
    ends = OFO_LOAD(ep->doubted) && (uint16_t) OFO_LOAD(module->downs) == downs && !OFO_LOAD(module->port_up);
    if (ends) {
        OFO_STORE(ep->doubted, false);
        has_set = NULL != ep->qps;
        ends = !ofo_rail_is_spared(ep);
        if (ends) {
            end_endpoint(ep);
        }
    }
    OPAL_THREAD_UNLOCK(&ep->lock);
    module->owes_news = module->owes_news || (ends && !has_set);
    if (ends && has_set) {
        tell_pml(module, is_told ? ep->peer : NULL, module->down_why);
    }
}

void ofo_port_tell(ofo_module_t *module)
{
    if (module->owes_news) {
        module->owes_news = false;
        tell_pml(module, NULL, module->down_why);
    }
}

static void revive_endpoint(ofo_endpoint_t *ep)
{
    OFO_STORE(ep->doubted, false);
    ofo_gate_port_is_back(ep);
}

void ofo_port_returned(ofo_module_t *module)
{
    ofo_log(1, "%s: the port is back", module->name);
    ofo_for_each_endpoint(module, revive_endpoint);
    look_at_dead_ports();
}

/* ---- the extension ------------------------------------------------------------------------------ */

#if BFO_BTL_FAILOVER
static ofo_endpoint_t *endpoint_of(mca_btl_base_module_t *btl, const opal_proc_t *proc)
{
    ofo_peer_t *peer = ofo_peer_find(proc->proc_name.jobid, proc->proc_name.vpid);

    return NULL != peer ? ofo_peer_endpoint(peer, (ofo_module_t *) btl) : NULL;
}

static bool ext_flush(mca_btl_base_module_t *btl, opal_proc_t *proc)
{
    ofo_endpoint_t *ep = endpoint_of(btl, proc);

    if (NULL != ep && 0 != ep->sends_out) {
        ofo_silent_ask(ep);
    }
    return NULL == ep || (0 == ep->sends_out && 0 == ep->rdma_out && 0 == ep->pending_count);
}

static int ext_fence(mca_btl_base_module_t *btl, opal_proc_t *proc, uint8_t rail, uint16_t generation)
{
    ofo_endpoint_t *ep = endpoint_of(btl, proc);
    ofo_ctl_t ctl = {.type = OFO_CTL_DOWN, .rail = rail, .gen = generation};

    if (NULL == ep || (OFO_RAIL_NONE != OFO_LOAD(ep->rail) && OFO_LOAD(ep->rail) != rail)) {
        return OPAL_ERR_BAD_PARAM;
    }
    ofo_tell_service(ep, OFO_MAIL_FENCE, generation, &ctl, NULL);
    return OPAL_SUCCESS;
}

static void ext_declare(mca_btl_base_module_t *btl, opal_proc_t *proc)
{
    ofo_peer_t *peer = ofo_peer_find(proc->proc_name.jobid, proc->proc_name.vpid);

    if (NULL != peer) {
        (void) ofo_peer_declare(peer, "the PML declared it", false);
    }
}

static opal_proc_t *ext_des_peer(mca_btl_base_module_t *btl, const bfo_arrival_t *des)
{
    return ((const ofo_got_t *) des)->from->peer->proc;
}

static bool ext_port_is_up(mca_btl_base_module_t *btl)
{
    return ofo_async_port_is_up((ofo_module_t *) btl, true);
}

static bfo_rail_state_t rail_state_of(ofo_fsm_state_t state, uint16_t gen)
{
    switch (state) {
    case OFO_ST_CLOSED:
        return BFO_RAIL_CLOSED;
    case OFO_ST_REQUESTED:
    case OFO_ST_PROVING:
        return 0 == gen ? BFO_RAIL_CONNECTING : BFO_RAIL_REQUESTING;
    case OFO_ST_READY:
    case OFO_ST_CHECKING:
        return 0 == gen ? BFO_RAIL_CONNECTING : BFO_RAIL_READY;
    case OFO_ST_UP:
        return BFO_RAIL_UP;
    case OFO_ST_DOWN:
        return BFO_RAIL_DOWN_BOTH;
    default:
        return BFO_RAIL_DOWN_LOCAL;
    }
}

/* The gate decides first: a rail that refuses posts is down, whatever state service has published at this moment. The port may have gone
 * down before the PML took the extension, or before it met the peer. */
static int ext_rail_state(mca_btl_base_module_t *btl, opal_proc_t *proc, bfo_rail_info_t *info)
{
    ofo_endpoint_t *ep = endpoint_of(btl, proc);
    ofo_gate_t gate;
    uint32_t published;

    if (NULL == ep) {
        return OPAL_ERR_NOT_FOUND;
    }
    if (!OFO_LOAD(ep->module->port_up)) {
        OPAL_THREAD_LOCK(&ep->lock);
        fail_endpoint(ep);
        OPAL_THREAD_UNLOCK(&ep->lock);
    }
    published = (uint32_t) OFO_LOAD(ep->published);
    gate = OFO_LOAD(ep->gate);
    info->name = OFO_LOAD(ep->rail);
    info->generation = (uint16_t) published;
    info->state = rail_state_of((ofo_fsm_state_t) (published >> 16), info->generation);
    info->is_asking = OFO_ST_ASKING == (ofo_fsm_state_t) (published >> 16);
    info->returns = OFO_GATE_REFUSING == gate && info->generation > ep->up_gen
                    && (BFO_RAIL_REQUESTING == info->state || BFO_RAIL_READY == info->state || BFO_RAIL_UP == info->state);
    if (OFO_GATE_REFUSING == gate && BFO_RAIL_DOWN_BOTH != info->state) {
        info->state = BFO_RAIL_DOWN_LOCAL;
    } else if (OFO_GATE_UP == gate) {
        info->state = BFO_RAIL_UP;
        info->generation = ep->up_gen;
    } else if (BFO_RAIL_UP == info->state) {
        info->state = BFO_RAIL_CONNECTING; /* progress has not read the letter yet */
    }
    return OPAL_SUCCESS;
}

static void ext_name_ports(mca_btl_base_module_t *btl, opal_proc_t *proc, bfo_btl_ports_t *ports)
{
    const ofo_endpoint_t *ep = NULL == proc ? NULL : endpoint_of(btl, proc);
    const ofo_module_t *module = (ofo_module_t *) btl;

    ofo_port_text(&OFO.record.port[module->port_index], ports->here, sizeof(ports->here));
    ports->downs = ofo_async_downs(module, &ports->is_up);
    ports->there[0] = '\0';
    if (NULL != ep) {
        ofo_port_text(&ep->remote, ports->there, sizeof(ports->there));
    }
}

/* Service may write at the same time. Then an older figure is shown. */
static uint32_t ext_penalty(mca_btl_base_module_t *btl, opal_proc_t *proc, bool *is_held)
{
    const ofo_endpoint_t *ep = endpoint_of(btl, proc);
    const uint64_t half_life = UINT64_C(1000) * OFO.params.rejoin_half_life;

    if (NULL == ep) {
        *is_held = false;
        return 0;
    }
    *is_held = __atomic_load_n(&ep->rejoin.is_held, __ATOMIC_RELAXED);
    return ofo_rejoin_penalty(&ep->rejoin, ofo_now_ms(), half_life);
}

static void ext_stand_out(mca_btl_base_module_t *btl, opal_proc_t *proc, bool stands_out)
{
    ofo_endpoint_t *ep = endpoint_of(btl, proc);

    if (NULL != ep) {
        OFO_STORE(ep->stands_out, stands_out);
    }
}

static void ext_share(mca_btl_base_module_t *btl, int directory)
{
    const int rc = 0 != OFO.params.deadline && 0 <= directory ? ofo_paths_share(&OFO.paths, directory) : 0;

    if (0 != rc) {
        ofo_log(1, "this process asks about silent rails alone: the file " OFO_PATHS_NAME ": %s", strerror(rc));
    }
}
#endif

void ofo_ext_fill(ofo_module_t *module)
{
    memset(&module->ext, 0, sizeof(module->ext));
    module->ext.traffic = &module->traffic;
#if BFO_BTL_FAILOVER
    if (!module->transport->delivers) {
        return;
    }
    module->ext = (bfo_btl_ext_t){.magic = BFO_BTL_EXT_MAGIC,
                                  .version = BFO_BTL_EXT_VERSION,
                                  .size = sizeof(bfo_btl_ext_t),
                                  .flush = ext_flush,
                                  .fence = ext_fence,
                                  .declare = ext_declare,
                                  .des_peer = ext_des_peer,
                                  .rail_state = ext_rail_state,
                                  .port_is_up = ext_port_is_up,
                                  .name_ports = ext_name_ports,
                                  .penalty = ext_penalty,
                                  .stand_out = ext_stand_out,
                                  .share = ext_share,
                                  .port = module->name,
                                  .traffic = &module->traffic};
    module->super.btl_flags |= MCA_BTL_FLAGS_FAILOVER_SUPPORT;
#endif
}
