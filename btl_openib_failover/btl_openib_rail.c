/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The owner of a rail's machine: its actions, timers and counts. Everything here runs on the service thread of
 * the rail's module; progress learns of it by mail. See DESIGN.txt 10 and 15.
 */
#include "btl_openib.h"

#include "bfo_help.h"


#include <string.h>

static uint32_t next_random(ofo_module_t *module)
{
    module->random = module->random * 1664525u + 1013904223u;
    return module->random >> 4;
}

static void start_retransmission(ofo_endpoint_t *ep)
{
    ep->backoff_ms = ofo_backoff_next(0);
    ep->retransmit_at = ofo_now_ms() + ofo_backoff_jitter(ep->backoff_ms, next_random(ep->module));
    ofo_timers_add(ep);
}

static void start_giving_up(ofo_endpoint_t *ep)
{
    ep->give_up_at = ofo_now_ms() + 1000u * OFO.params.connect_timeout;
    ofo_timers_add(ep);
}

/* ---- messages ----------------------------------------------------------------------------------- */

static ofo_ctl_t message(const ofo_endpoint_t *ep, ofo_ctl_type_t type, uint16_t gen)
{
    return (ofo_ctl_t){.type = (uint8_t) type, .rail = ep->rail, .gen = gen};
}

/* The first copy goes the rail's own way; repetitions go round all ports that are up (DESIGN.txt 6, "path"). */
static void send_by_any_way(ofo_endpoint_t *ep, ofo_ctl_t *ctl)
{
    unsigned count = ep->peer->rail_count, start = next_random(ep->module) % count;

    for (unsigned i = 0; i < count; ++i) {
        ofo_endpoint_t *way = ep->peer->rail[(start + i) % count];
        if (NULL != way && way != ep && OFO_LOAD(way->module->port_up)) {
            ofo_tell_service(way, OFO_MAIL_SEND, ctl->gen, ctl, NULL);
            break;
        }
    }
    ofo_ud_send(ep, ctl);
}

static void send_addresses(ofo_endpoint_t *ep, ofo_ctl_type_t type)
{
    ofo_module_t *module = ep->module;
    ofo_ctl_t ctl = message(ep, type, ep->fsm.gen);

    ctl.lid = module->port_attr.lid;
    ctl.mtu = (uint8_t) module->port_attr.active_mtu;
    ctl.nqp = (uint8_t) ep->building->nqp;
    ctl.rail_hash = ep->peer->rail_hash;
    memcpy(ctl.gid, OFO.record.port[module->port_index].gid, sizeof(ctl.gid));
    for (unsigned i = 0; i < ctl.nqp; ++i) {
        ctl.qp[i].qpn = ep->building->qp[i].qp->qp_num;
        ctl.qp[i].psn = ep->building->qp[i].psn;
    }
    ofo_ud_send(ep, &ctl);
}

static ofo_counts_t *kept_counts(ofo_endpoint_t *ep, uint16_t gen)
{
    for (int i = 0; i < 2; ++i) {
        if (ep->own_counts_gen[i] == (int32_t) gen) {
            return &ep->own_counts[i];
        }
    }
    return NULL;
}

static void send_dack(ofo_endpoint_t *ep, uint16_t gen)
{
    ofo_ctl_t ctl = message(ep, OFO_CTL_DACK, gen);
    const ofo_counts_t *counts = kept_counts(ep, gen);

    if (NULL != counts) {
        ctl.counts = *counts;
        ctl.flags = OFO_DACK_VALID;
    }
    send_by_any_way(ep, &ctl);
}

/* ---- actions ------------------------------------------------------------------------------------ */

static int ofo_do_nothing(void *owner, const ofo_ctl_t *ctl)
{
    return 0;
}

static int ofo_do_send_req(void *owner, const ofo_ctl_t *ctl)
{
    send_addresses(owner, OFO_CTL_REQ);
    return 0;
}

static int ofo_do_send_rep(void *owner, const ofo_ctl_t *ctl)
{
    send_addresses(owner, OFO_CTL_REP);
    return 0;
}

static int ofo_do_send_rtu(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;
    ofo_ctl_t rtu = message(ep, OFO_CTL_RTU, ep->fsm.gen);

    ofo_ud_send(ep, &rtu);
    return 0;
}

static int ofo_do_send_rej(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;
    ofo_ctl_t rej = message(ep, OFO_CTL_REJ, ctl->gen);

    if (ctl->rail_hash != ep->peer->rail_hash) {
        static bool said;
        rej.reason = OFO_REJ_RAIL_HASH;
        if (!said) {
            said = true;
            bfo_help_say(OFO_HELP_FILE, "rails differ", OFO.self.vpid, ep->peer->name.vpid);
        }
    } else {
        rej.reason = OFO_LOAD(ep->module->port_up) ? OFO_REJ_DISABLED : OFO_REJ_PORT_DOWN;
    }
    ofo_ud_send(ep, &rej);
    return 0;
}

static int ofo_do_send_down(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;
    ofo_ctl_t down = message(ep, OFO_CTL_DOWN, ep->fsm.gen);

    send_by_any_way(ep, &down);
    return 0;
}

static int ofo_do_send_dack(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    if (NULL != ctl && ctl->gen == ep->fsm.gen && NULL == kept_counts(ep, ctl->gen)) {
        /* L11, L12: an attempt that never was one here: nothing was sent in it. */
        ep->own_counts[ctl->gen & 1] = (ofo_counts_t){.n_ok = 0};
        ep->own_counts_gen[ctl->gen & 1] = ctl->gen;
    }
    send_dack(ep, NULL != ctl ? ctl->gen : ep->fsm.gen);
    return 0;
}

static int open_set(ofo_endpoint_t *ep)
{
    ep->building = ofo_qpset_create(ep, ep->fsm.gen);
    if (NULL == ep->building) {
        return -1;
    }
    ++ep->module->count.connects;
    start_giving_up(ep);
    return 0;
}

static int ofo_do_open_active(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    if (!OFO_LOAD(ep->module->port_up) || 0 != open_set(ep)) {
        return -1;
    }
    start_retransmission(ep);
    return ofo_do_send_req(ep, NULL);
}

static int ofo_do_become_passive(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    if (ctl->nqp != ep->building->nqp || 0 != ofo_qpset_connect(ep->building, ctl)) {
        return -1;
    }
    ep->remote_ctl = *ctl;
    start_retransmission(ep);
    return ofo_do_send_rep(ep, NULL);
}

static int ofo_do_open_passive(void *owner, const ofo_ctl_t *ctl)
{
    return 0 == open_set(owner) ? ofo_do_become_passive(owner, ctl) : -1;
}

static int ofo_do_prove_passive(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;
    int rc = ofo_qpset_prove(ep->building);

    ep->retransmit_at = 0;
    if (0 == rc) {
        ofo_poll_for_proof(ep->module);
    }
    return rc;
}

static int ofo_do_prove_active(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    ep->retransmit_at = 0;
    if (ctl->nqp != ep->building->nqp || 0 != ofo_qpset_connect(ep->building, ctl)) {
        return -1;
    }
    ep->remote_ctl = *ctl;
    return ofo_do_prove_passive(ep, ctl);
}

static int ofo_do_map(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    ep->retransmit_at = ep->give_up_at = 0;
    ofo_tell_progress(ep->module, OFO_MAIL_UP, ep, ep->fsm.gen, NULL, ep->building);
    return 0;
}

static int ofo_do_map_and_tell(void *owner, const ofo_ctl_t *ctl)
{
    ofo_do_map(owner, ctl);
    return ofo_do_send_rtu(owner, ctl);
}

/* The queue pairs stop here and now; progress drains what they leave and reports back. */
static int ofo_do_fence(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    ep->retransmit_at = ep->give_up_at = 0;
    if (NULL != ep->building) {
        ofo_qpset_error(ep->building);
    }
    ep->fenced_set = ofo_qpset_is_shared(ep->building) ? ep->building : NULL;
    if (NULL != ep->fenced_set) {
        ep->last_wqe_at = ofo_now_ms() + OFO_LAST_WQE_MS;
        ofo_timers_add(ep);
    }
    ofo_tell_progress(ep->module, OFO_MAIL_DRAIN, ep, ep->fsm.gen, NULL, ep->building);
    ep->building = NULL;
    return 0;
}

static int ofo_do_fence_and_tell(void *owner, const ofo_ctl_t *ctl)
{
    ofo_do_fence(owner, ctl);
    start_retransmission(owner);
    return ofo_do_send_down(owner, ctl);
}

static int ofo_do_keep_counts(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    ep->remote_ctl = *ctl;
    ep->retransmit_at = 0;
    return 0;
}

static int ofo_do_fence_and_keep(void *owner, const ofo_ctl_t *ctl)
{
    ofo_do_fence(owner, ctl);
    return ofo_do_keep_counts(owner, ctl);
}

static int ofo_do_keep_and_check(void *owner, const ofo_ctl_t *ctl)
{
    return ofo_do_keep_counts(owner, ctl);
}

static int ofo_do_dack_and_check(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    send_dack(ep, ep->fsm.gen);
    return 0;
}

static int ofo_do_check_older(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    if (ep->fsm.check_gen == (int32_t) ctl->gen) {
        ep->fsm.check_gen = OFO_GEN_NONE;
    }
    return 0;
}

#define ACTION(name) [OFO_DO_##name] = ofo_do_##name,
static const ofo_fsm_action_fn_t actions[OFO_DO_COUNT] = {
#include "btl_openib_connect.def"
};

/* ---- owner -------------------------------------------------------------------------------------- */

static void trace(void *owner, ofo_fsm_state_t state, ofo_fsm_event_t event, ofo_fsm_state_t next,
                  ofo_fsm_action_t action)
{
    ofo_endpoint_t *ep = owner;

    if (OFO_DO_COUNT == action) {
        ++ep->module->count.ctl_refused;
        ofo_log(1, "bfo: %u->%u rail %u gen %u: %s refused in %s", OFO.self.vpid, ep->peer->name.vpid, ep->rail,
                ep->fsm.gen, ofo_fsm_event_name(event), ofo_fsm_state_name(state));
        return;
    }
    OFO_STORE(ep->published, (int32_t) ((unsigned) next << 16 | ep->fsm.gen));
    if (next != state) {
        ofo_log(1, "bfo: %u->%u rail %u (%s) gen %u: %s -> %s on %s", OFO.self.vpid, ep->peer->name.vpid, ep->rail,
                ep->module->name, ep->fsm.gen, ofo_fsm_state_name(state), ofo_fsm_state_name(next),
                ofo_fsm_event_name(event));
    }
}

void ofo_rail_init(ofo_endpoint_t *ep)
{
    ofo_fsm_init(&ep->fsm, actions, trace, ep);
    ep->own_counts_gen[0] = ep->own_counts_gen[1] = OFO_GEN_NONE;
}

void ofo_rail_event(ofo_endpoint_t *ep, ofo_fsm_event_t event, const ofo_ctl_t *ctl)
{
    if (OFO_EV_POST == event && OFO_ST_CLOSED != ep->fsm.state) {
        return; /* the peer was faster, or the rail is gone: progress learns it by mail */
    }
    (void) ofo_fsm_step(&ep->fsm, event, ctl);
}

void ofo_rail_message(ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    const ofo_fsm_facts_t facts = {
        .own_is_higher = ep->peer->own_is_higher,
        .hash_ok = ctl->rail_hash == ep->peer->rail_hash,
        .usable = OFO_LOAD(ep->module->port_up) && !OFO_LOAD(ep->peer->closing),
    };
    ofo_fsm_event_t event = ofo_fsm_classify(&ep->fsm, ctl, &facts);

    if (OFO_EV_NONE == event) {
        ++ep->module->count.ctl_dropped;
        return;
    }
    ofo_rail_event(ep, event, ctl);
}

/* The driver does not raise LAST_WQE_REACHED, or it was lost: what was received is in the completion queue by now, and
 * the counts of both sides are compared. */
static void last_wqe_late(ofo_endpoint_t *ep)
{
    ep->last_wqe_at = 0;
    for (unsigned i = 0; NULL != ep->fenced_set && i < ep->fenced_set->nqp; ++i) {
        OFO_STORE(ep->fenced_set->qp[i].last_wqe_seen, true);
    }
    ofo_tell_progress(ep->module, OFO_MAIL_LAST_WQE, ep, ep->fsm.gen, NULL, NULL);
}

void ofo_rail_timers(ofo_endpoint_t *ep, uint64_t now)
{
    if (0 != ep->last_wqe_at && now >= ep->last_wqe_at) {
        last_wqe_late(ep);
    }
    if (0 != ep->give_up_at && now >= ep->give_up_at) {
        ep->give_up_at = 0;
        if (ofo_fsm_state_is_connecting(ep->fsm.state)) {
            ofo_log(1, "%s: rail %u to %u did not connect in %u s", ep->module->name, ep->rail, ep->peer->name.vpid,
                    OFO.params.connect_timeout);
            ofo_rail_event(ep, OFO_EV_LOCAL_ERROR, NULL);
        }
    }
    if (0 != ep->retransmit_at && now >= ep->retransmit_at) {
        if (!ofo_fsm_state_retransmits(ep->fsm.state)) {
            ep->retransmit_at = 0;
            return;
        }
        ep->backoff_ms = ofo_backoff_next(ep->backoff_ms);
        ep->retransmit_at = now + ofo_backoff_jitter(ep->backoff_ms, next_random(ep->module));
        ofo_rail_event(ep, OFO_EV_RETRANSMIT, NULL);
    }
}

void ofo_rail_fence_done(ofo_endpoint_t *ep, uint16_t gen, ofo_qpset_t *qps, const ofo_counts_t *counts)
{
    if (NULL != qps) {
        ep->fenced_set = NULL;
        ep->last_wqe_at = 0;
        qps->destroy_at = ofo_now_ms() + 1000u * OFO.params.time_wait;
        qps->next = ep->module->graveyard;
        ep->module->graveyard = qps;
    }
    ep->own_counts[gen & 1] = *counts;
    ep->own_counts_gen[gen & 1] = gen;
    if (gen == ep->fsm.gen) {
        ofo_rail_event(ep, OFO_EV_FENCE_DONE, NULL);
    }
}
