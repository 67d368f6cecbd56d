/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Drives a rail's machine. All that happens to the rail, also timers and the peer's messages, becomes an event of the
 * machine. Everything here runs on the service thread of the rail's module. See DESIGN.txt 10 and 15.
 */
#include "rail/btl_openib_rail.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "tables/btl_openib_rail_fsm.h"
#include "types/btl_openib_ctl.h"
#include "device/btl_openib_device.h"
#include "rail/btl_openib_last_wqe.h"
#include "types/btl_openib_log.h"
#include "rail/btl_openib_lost.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_partner.h"
#include "rail/btl_openib_probation.h"
#include "rail/btl_openib_probe.h"
#include "qp/btl_openib_qpset.h"
#include "rail/btl_openib_rail_actions.h"
#include "rail/btl_openib_spared.h"
#include "types/btl_openib_timers.h"
#include "rail/btl_openib_turns.h"
#include "formats/btl_openib_wire.h"

#include "bfo_assert.h"

#include <string.h>

static bool is_opening(ofo_fsm_state_t state)
{
    return OFO_ST_REQUESTED == state || OFO_ST_PROVING == state;
}

static void trace(void *owner, ofo_fsm_state_t state, ofo_fsm_event_t event, ofo_fsm_state_t next, ofo_fsm_action_t action)
{
    ofo_endpoint_t *ep = owner;

    if (OFO_DO_COUNT == action) {
        ++ep->module->count.ctl_refused;
        ofo_log(1, "bfo: %u->%u rail %u gen %u: %s refused in %s", OFO.self.vpid, ep->peer->name.vpid, ep->rail, ep->fsm.gen,
                ofo_fsm_event_name(event), ofo_fsm_state_name(state));
        return;
    }
    BFO_ASSERT((uint16_t) ep->published <= ep->fsm.gen);       /* generations only grow */
    BFO_ASSERT(!is_opening(state) || 0 < ep->module->opening); /* it was counted when it began to open */
    OFO_STORE(ep->published, (int32_t) ((unsigned) next << 16 | ep->fsm.gen));
    ep->module->opening += (unsigned) is_opening(next) - (unsigned) is_opening(state);
    if (next != state) {
        ofo_log(1, "bfo: %u->%u rail %u (%s) gen %u: %s -> %s on %s", OFO.self.vpid, ep->peer->name.vpid, ep->rail, ep->module->name, ep->fsm.gen,
                ofo_fsm_state_name(state), ofo_fsm_state_name(next), ofo_fsm_event_name(event));
    }
}

void ofo_rail_init(ofo_endpoint_t *ep)
{
    ofo_fsm_init(&ep->fsm, ofo_rail_actions, trace, ep);
    ep->kept[0].gen = ep->kept[1].gen = ep->lossy_gen = ep->refused_gen = OFO_GEN_NONE;
}

/* ---- rails that come back --------------------------------------------------------------------------- */

/* Does the PML take rails back, and may this one still come back? */
static bool rejoins(const ofo_endpoint_t *ep)
{
    return NULL != ep->module->ext.rail_restored && UINT16_MAX > ep->fsm.gen && !ep->rejoin.is_refused && !OFO_LOAD(OFO.closing)
           && !OFO_LOAD(ep->peer->closing) && !OFO_LOAD(ep->peer->declared) && !ofo_port_is_gone(ep->module);
}

/* L13: no check of an earlier generation may be open. */
static bool may_rejoin(const ofo_endpoint_t *ep)
{
    return OFO_ST_DOWN == ep->fsm.state && rejoins(ep) && OFO_GEN_NONE == ep->fsm.check_gen && !ep->check_open && 0 == ep->unknown_until;
}

static uint64_t half_life(void)
{
    return UINT64_C(1000) * OFO.params.rejoin_half_life;
}

/* A peer without any other rail waits for this one. Then there is no damping, and questions and DOWN are repeated after at most so many ms. */
enum { CUT_OFF_MS = 50 };

static uint32_t rejoin_wait(ofo_endpoint_t *ep)
{
    const uint32_t first = OFO.params.rejoin_after;

    if (ofo_rail_is_last(ep)) {
        return first < CUT_OFF_MS ? first : CUT_OFF_MS;
    }
    return ofo_rejoin_back_off(&ep->rejoin, first);
}

static void rejoin_later(ofo_endpoint_t *ep, uint32_t ms)
{
    ep->rejoin.at = OFO_LOAD(ep->module->port_up) ? ofo_now_ms() + ms : OFO_REJOIN_WITH_PORT;
    ep->rejoin.asked_at = 0;
    ofo_timers_add(ep);
}

/* Follows a change of the machine's state. */
static void rejoin_follow(ofo_endpoint_t *ep, ofo_fsm_state_t before)
{
    if (OFO_ST_UP == before) {
        ofo_rejoin_fall(&ep->rejoin, ofo_now_ms(), half_life());
    }
    if (OFO_ST_UP == ep->fsm.state) {
        ofo_rejoin_end(&ep->rejoin);
    } else if (OFO_ST_DOWN != ep->fsm.state) {
        ep->rejoin.at = ep->rejoin.asked_at = 0;
        ep->rejoin.is_answered = false;
    } else if (rejoins(ep)) {
        rejoin_later(ep, OFO_LOAD(ep->module->port_up) ? rejoin_wait(ep) : 0);
    }
}

/* The question is a DOWN of the generation that is down, sent over this rail only. The peer's DACK shows that the rail carries packets
 * again. Only then a new generation is used up for it. */
static void rejoin_ask(ofo_endpoint_t *ep, uint64_t now)
{
    ofo_ctl_t down = {.type = OFO_CTL_DOWN, .flags = OFO_CTL_ASKS, .rail = ep->rail, .gen = ep->fsm.gen};

    if (0 != ep->rejoin.asked_at) { /* one of the two ports, or both, may have another address now */
        ofo_flow_label_renew(ep);
        if (!ofo_rail_has_told_address(ep)) {
            ofo_rail_send_down(ep, ep->fsm.gen);
        }
    }
    rejoin_later(ep, rejoin_wait(ep));
    ep->rejoin.asked_at = now;
    ofo_ctl_send(ep, &down);
}

static void rejoin_timer(ofo_endpoint_t *ep, uint64_t now)
{
    enum { LOOK_AGAIN_MS = 1000, ROOM_MS = 1 };

    if (OFO_REJOIN_WITH_PORT == ep->rejoin.at) {
        if (OFO_LOAD(ep->module->port_up)) {
            ep->rejoin.wait = 0; /* the port is back, so earlier silence means nothing */
            rejoin_later(ep, ofo_rail_is_last(ep) ? 0 : rejoin_wait(ep));
        }
    } else if (now >= ep->rejoin.at) {
        ep->rejoin.at = 0;
        if (OFO_ST_DOWN != ep->fsm.state || !rejoins(ep)) {
            return;
        }
        if (!OFO_LOAD(ep->module->port_up) || !may_rejoin(ep) || (ofo_rejoin_is_held(&ep->rejoin, now, half_life()) && !ofo_rail_is_last(ep))) {
            rejoin_later(ep, ofo_rail_is_last(ep) ? CUT_OFF_MS : LOOK_AGAIN_MS);
        } else if (now < ofo_rail_stable_at(ep)) {
            ep->rejoin.at = ofo_rail_stable_at(ep); /* the port has flapped since the wait began */
        } else if (!ofo_ctl_has_room(ep->module)) {
            ep->rejoin.at = now + ROOM_MS;
        } else {
            rejoin_ask(ep, now);
        }
    }
}

/* The peer answered a question about a rail that is down. */
static void rejoin_answered(ofo_endpoint_t *ep)
{
    if (0 != ep->rejoin.asked_at && may_rejoin(ep)) {
        ep->rejoin.at = ep->rejoin.asked_at = 0;
        ep->rejoin.is_answered = true;
        ofo_turn_want(ep);
    }
}

/* Does the proof of a rail in this state end by a completion, for which service must poll? */
static bool needs_poll(const ofo_module_t *module, ofo_fsm_state_t state)
{
    return OFO_ST_PROVING == state || OFO_ST_CHECKING == state || (OFO_ST_READY == state && module->transport->acceptor_listens);
}

static void count_proof(ofo_endpoint_t *ep)
{
    const bool proves = needs_poll(ep->module, ep->fsm.state);

    BFO_ASSERT(!ep->proves || 0 < ep->module->proving);
    ep->module->proving += (unsigned) proves - (unsigned) ep->proves;
    ep->proves = proves;
}

/* The rail has queue pairs from the request or reply on until the fence, and only those timers run that its state knows; service ends the
 * timers of a declared peer, whatever the state. */
static inline void keeps_to_its_state(const ofo_endpoint_t *ep)
{
    BFO_ASSERT((NULL != ep->building) == (OFO_ST_UP == ep->fsm.state || ofo_fsm_state_is_connecting(ep->fsm.state)));
    BFO_ASSERT(NULL == ep->building || ep->building->gen == ep->fsm.gen);
    BFO_ASSERT(0 == ep->give_up_at || ofo_fsm_state_is_connecting(ep->fsm.state));
    BFO_ASSERT(0 != ep->give_up_at || !ofo_fsm_state_is_connecting(ep->fsm.state) || OFO_LOAD(ep->peer->declared));
    BFO_ASSERT(0 == ep->rejoin.at || OFO_ST_DOWN == ep->fsm.state);
    BFO_ASSERT(0 == ep->rejoin.asked_at || OFO_ST_DOWN == ep->fsm.state);
    BFO_ASSERT(!ep->rejoin.is_answered || OFO_ST_DOWN == ep->fsm.state); /* an answer brings the rail back once */
    BFO_ASSERT(!ep->check_open || NULL == ep->building);                 /* the loss check of a generation ends before the next generation begins */
    BFO_ASSERT(ep->fsm.check_gen < (int32_t) ep->fsm.gen);
    BFO_ASSERT(ep->lossy_gen <= (int32_t) ep->fsm.gen);
    BFO_ASSERT(0 == ep->probation.at || OFO_ST_UP == ep->fsm.state);
    BFO_ASSERT(0 == ep->last_wqe_at || NULL != ep->fenced_set);
}

void ofo_rail_event(ofo_endpoint_t *ep, ofo_fsm_event_t event, const ofo_ctl_t *ctl)
{
    const ofo_fsm_state_t before = ep->fsm.state;

    if (OFO_EV_POST == event && OFO_ST_CLOSED != before) {
        return; /* the peer was faster, or the rail is gone; progress gets a letter */
    }
    (void) ofo_fsm_step(&ep->fsm, event, ctl);
    if (before != ep->fsm.state) {
        count_proof(ep);
        rejoin_follow(ep, before);
        ofo_probation_follow(ep);
        keeps_to_its_state(ep);
    }
}

void ofo_rail_rejoin(ofo_endpoint_t *ep)
{
    ep->rejoin.is_answered = false;
    if (may_rejoin(ep) && OFO_LOAD(ep->module->port_up)) {
        ofo_rail_event(ep, OFO_EV_RESTORED, NULL);
    } else if (OFO_ST_DOWN == ep->fsm.state) {
        rejoin_later(ep, rejoin_wait(ep));
    }
}

/* ---- messages ------------------------------------------------------------------------------------------ */

/* Only these two carry addresses and the hash of the rails. */
static bool tells_addresses(const ofo_ctl_t *ctl)
{
    return OFO_CTL_REQ == ctl->type || OFO_CTL_REP == ctl->type;
}

static bool has_address(const ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    return tells_addresses(ctl) || (OFO_CTL_DOWN == ctl->type && 0 != (ctl->flags & OFO_CTL_ADDRESS) && ctl->gen == ep->fsm.gen);
}

/* The peer's port may have a newer address than its record. The address of the last request, reply or DOWN is used. A question that went to
 * the old address says nothing. */
static void learn_address(ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    if (has_address(ep, ctl) && OFO_CPC_UD == OFO.cpc->type
        && (ctl->lid != ep->remote.lid || 0 != memcmp(ctl->gid, ep->remote.gid, sizeof(ctl->gid)))) {
        ep->remote.lid = ctl->lid;
        memcpy(ep->remote.gid, ctl->gid, sizeof(ctl->gid));
        ofo_ud_forget(ep);
        if (0 != ep->rejoin.asked_at) {
            ep->rejoin.wait = 0;
            rejoin_later(ep, rejoin_wait(ep));
        }
    }
}

static ofo_fsm_event_t classify(const ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    const ofo_fsm_facts_t facts = {
        .own_is_higher = ep->peer->own_is_higher,
        .hash_ok = ctl->rail_hash == ep->peer->rail_hash,
        .usable = OFO_LOAD(ep->module->port_up) && ofo_rail_is_welcome(ep, ctl->gen),
    };

    return ofo_fsm_classify(&ep->fsm, ctl, &facts);
}

/* Will the machine make queue pairs for this request? */
static bool opens(const ofo_endpoint_t *ep, ofo_fsm_event_t event)
{
    return (OFO_ST_CLOSED == ep->fsm.state && (OFO_EV_REQ_YIELD == event || OFO_EV_REQ_HOLD == event))
           || (OFO_ST_DOWN == ep->fsm.state && OFO_EV_REQ_NEXT == event);
}

/* Is the request dropped because it comes too early? A refusal would end the peer's rail, although ours can go on when the port is back
 * and stable, or the loss check is passed. The peer asks again. */
static bool comes_too_early(const ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    const bool is_up = OFO_LOAD(ep->module->port_up);

    return OFO_CTL_REQ == ctl->type
           && ((!is_up && ofo_rail_is_spared(ep))
               || (ctl->gen > ep->fsm.gen && (ep->check_open || (is_up && ofo_now_ms() < ofo_rail_stable_at(ep)))));
}

void ofo_rail_asked(ofo_endpoint_t *ep, const ofo_ctl_t *req)
{
    ofo_fsm_event_t event = classify(ep, req);

    if (OFO_CTL_ASK == req->type && !OFO_LOAD(ep->peer->closing)) {
        ofo_rail_event(ep, OFO_EV_POST, NULL);
    }
    if (!comes_too_early(ep, req) && OFO_EV_NONE != event && ofo_fsm_has_row(ep->fsm.state, event)) { /* otherwise the rail is up or ended by now */
        ofo_rail_event(ep, event, req);
    }
}

/* The peer is busy: it lives and has our request, so its time starts again. */
static void heard(ofo_endpoint_t *ep, const ofo_ctl_t *busy)
{
    if (OFO_ST_REQUESTED == ep->fsm.state && busy->gen == ep->fsm.gen) {
        ofo_rail_give_time(ep);
        ep->tries = 0;
    }
}

void ofo_rail_message(ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    ofo_fsm_event_t event = classify(ep, ctl);

    if (OFO_CTL_ANSWER == ctl->type && 0 != (ctl->flags & OFO_CTL_PROBATION)) {
        ofo_probation_answer(ep, ctl);
        return;
    }
    if (OFO_CTL_PROBE == ctl->type || OFO_CTL_ANSWER == ctl->type) {
        ofo_probe_message(ep, ctl);
        return;
    }
    if (comes_too_early(ep, ctl) || !ofo_partner_fits(ep, ctl)) {
        ++ep->module->count.ctl_dropped;
        return;
    }
    if (OFO_CTL_REJ == ctl->type && OFO_REJ_BUSY == ctl->reason) {
        heard(ep, ctl);
        return;
    }
    if (OFO_CTL_ASK == ctl->type) {
        if (OFO_ST_CLOSED == ep->fsm.state) {
            ofo_turn_ask(ep, ctl);
        }
        return;
    }
    if (OFO_EV_NONE != event && ofo_fsm_has_row(ep->fsm.state, event)) {
        ofo_partner_learn(ep, ctl);
        learn_address(ep, ctl); /* only then, because an old copy may have an old address */
    }
    ep->is_told = ep->is_told || (OFO_CTL_DACK == ctl->type && ctl->gen == ep->fsm.gen);
    if (OFO_CTL_REJ == ctl->type) {
        ofo_log(1, "%s: rail %u to %u: gen %u was rejected, reason %u", ep->module->name, ep->rail, ep->peer->name.vpid, ctl->gen,
                ctl->reason); /* ofo_rej_reason_t */
        ep->rejoin.is_refused = ep->rejoin.is_refused
                                || (OFO_REJ_DISABLED == ctl->reason && OFO_ST_REQUESTED == ep->fsm.state && ctl->gen == ep->fsm.gen);
    }
    if (tells_addresses(ctl) && ctl->rail_hash != ep->peer->rail_hash) {
        ep->patience = 0; /* waiting does not make the lists of rails equal */
    }
    if (OFO_EV_NONE == event) {
        ++ep->module->count.ctl_dropped;
    } else if (NULL == OFO.cpc->refuse && opens(ep, event)) { /* rdmacm does not let requests wait */
        ofo_turn_ask(ep, ctl);
    } else {
        ofo_rail_event(ep, event, ctl);
    }
    if (OFO_EV_DACK_SAME == event && 0 != (ctl->flags & OFO_CTL_ASKS)) {
        rejoin_answered(ep);
    }
    if (OFO_CTL_REQ == ctl->type && NULL != OFO.cpc->refuse) {
        OFO.cpc->refuse(ep, ctl->gen);
    }
}

/* ---- timers ------------------------------------------------------------------------------------- */

/* May the rail have more time? Not under a PML with failover, which has other rails, unless this rail is spared although its port is
 * down. Any other PML ends the job if the rail fails, although perhaps the peer only was not scheduled. */
static bool has_patience(ofo_endpoint_t *ep, uint64_t now)
{
    if ((NULL != ep->module->ext.failed_frag && OFO_LOAD(ep->module->port_up)) || 0 == ep->patience) {
        return false;
    }
    --ep->patience;
    ep->give_up_at = now + 1000u * OFO.params.connect_timeout;
    return true;
}

/* Must DOWN be sent although the state does not ask for it? Yes if an older check is due, or if the peer's counts are not known. */
static bool asks_for_counts(const ofo_endpoint_t *ep)
{
    return OFO_GEN_NONE != ep->fsm.check_gen || 0 != ep->unknown_until;
}

static void retransmit(ofo_endpoint_t *ep)
{
    bool by_state = ofo_fsm_state_retransmits(ep->fsm.state);
    unsigned backoff;

    ep->retransmit_at = 0;
    if (!by_state && !asks_for_counts(ep)) {
        return;
    }
    if (!ofo_ctl_has_room(ep->module)) {
        ep->retransmit_at = ofo_now_ms() + 1;
        return;
    }
    backoff = ofo_backoff_next(ep->backoff_ms);
    if (0 != ep->give_up_at && 250 * OFO.params.connect_timeout < backoff) {
        backoff = 250 * OFO.params.connect_timeout; /* so that there are several tries within connect_timeout */
    }
    if (CUT_OFF_MS < backoff && rejoins(ep) && ofo_rail_is_last(ep)) {
        backoff = CUT_OFF_MS;
    }
    ofo_rail_repeat_after(ep, backoff);
    if (asks_for_counts(ep)) {
        ofo_rail_send_down(ep, OFO_GEN_NONE != ep->fsm.check_gen ? (uint16_t) ep->fsm.check_gen : ep->fsm.gen);
    }
    if (by_state) {
        ofo_rail_event(ep, OFO_EV_RETRANSMIT, NULL);
    }
    if (ofo_fsm_state_is_connecting(ep->fsm.state)) {
        ofo_probe_begin(ep, ep->fsm.gen);
    }
}

/* Progress decides for a rail that is up, because completions may have come in the meantime. */
static void end_silent(ofo_endpoint_t *ep)
{
    if (OFO_ST_UP == ep->fsm.state) {
        ofo_tell_progress(ep->module, OFO_MAIL_SILENT, ep, ep->fsm.gen, NULL, NULL);
    } else {
        ofo_rail_event(ep, OFO_EV_LOCAL_ERROR, &(ofo_ctl_t){.cause = OFO_CAUSE_SILENT});
    }
}

void ofo_rail_timers(ofo_endpoint_t *ep, uint64_t now)
{
    if (0 != ep->last_wqe_at && now >= ep->last_wqe_at) {
        ofo_async_last_wqe_late(ep, now);
    }
    if (OFO_LOAD(ep->peer->declared)) {
        ep->retransmit_at = ep->give_up_at = ep->unknown_until = ep->rejoin.at = ep->probation.at = 0;
        (void) ofo_probe_timer(ep, UINT64_MAX); /* ends an inquiry */
        return;
    }
    if (0 != ep->unknown_until && now >= ep->unknown_until) {
        ep->unknown_until = 0;
        (void) ofo_peer_declare(ep->peer, "it does not say whether messages were lost with a device", true);
        return;
    }
    if (0 != ep->give_up_at && now >= ep->give_up_at) {
        ep->give_up_at = 0;
        if (ofo_fsm_state_is_connecting(ep->fsm.state) && !has_patience(ep, now)) {
            ofo_log(1, "%s: rail %u to %u did not connect in %u s", ep->module->name, ep->rail, ep->peer->name.vpid, OFO.params.connect_timeout);
            if (0 == ep->fsm.gen) {
                ofo_peer_doubt_pair(ep);
            }
            ofo_rail_event(ep, OFO_EV_LOCAL_ERROR, &(ofo_ctl_t){.cause = OFO_CAUSE_CONNECT});
        }
    }
    if (0 != ep->retransmit_at && now >= ep->retransmit_at) {
        retransmit(ep);
    }
    if (0 != ep->rejoin.at) {
        rejoin_timer(ep, now);
    }
    ofo_probation_timer(ep, now);
    if (ofo_probe_timer(ep, now)) {
        end_silent(ep);
    }
}

/* ---- fences and declared peers ------------------------------------------------------------------- */

static bool is_fenced(const ofo_endpoint_t *ep, uint16_t gen)
{
    return gen < ep->fsm.gen || OFO_ST_ASKING == ep->fsm.state || OFO_ST_DOWN == ep->fsm.state;
}

/* The PML asks for it like a DOWN of the peer, but the port here may be the cause, which DACK then tells the peer. */
void ofo_rail_fence(ofo_endpoint_t *ep, const ofo_mail_t *mail)
{
    const ofo_fsm_state_t before = ep->fsm.state;

    ofo_rail_message(ep, &mail->ctl);
    if (before != ep->fsm.state && !OFO_LOAD(ep->module->port_up)) {
        ep->cause = OFO_CAUSE_PORT;
    }
    if (is_fenced(ep, mail->gen) && !ep->check_open) {
        ofo_tell_progress(ep->module, OFO_MAIL_FENCED, ep, mail->gen, NULL, NULL);
    }
}

void ofo_rail_send_peerdead(ofo_endpoint_t *ep)
{
    ofo_ctl_t dead = {.type = OFO_CTL_PEERDEAD, .rail = OFO_RAIL_NONE};

    ofo_ctl_send(ep, &dead);
}

/* Each rail sends PEERDEAD once. A peer that did not get it gets it again when it sends a message (L23). */
void ofo_rail_declared(ofo_endpoint_t *ep)
{
    if (OFO_LOAD(ep->module->port_up)) {
        ofo_rail_send_peerdead(ep);
    }
    ofo_rail_event(ep, OFO_EV_PEERDEAD, NULL);
    ofo_rail_close_check(ep);
}

static void count_fence(ofo_endpoint_t *ep, uint16_t gen, uint64_t ms)
{
    ofo_counters_t *count = &ep->module->count;

    ++count->fences;
    count->fence_ms = ms > count->fence_ms ? ms : count->fence_ms;
    ofo_log(1, "%s: rail %u to %u gen %u: fence done after %u ms", ep->module->name, ep->rail, ep->peer->name.vpid, gen, (unsigned) ms);
}

/* All work has come back. The PML may trust what was written unless the adapter is dead; the event of its death may come later. */
static void fence_is_over(ofo_endpoint_t *ep, uint16_t gen, uint64_t ended_at)
{
    BFO_ASSERT(!ep->check_open);
    if (!ofo_device_lived_after(ep->module, ended_at)) {
        OFO_STORE(ep->lossy_gen, (int32_t) gen);
    }
    ofo_tell_progress(ep->module, OFO_MAIL_FENCED, ep, gen, NULL, NULL);
}

void ofo_rail_fence_done(ofo_endpoint_t *ep, uint16_t gen, ofo_qpset_t *qps)
{
    ofo_kept_t *kept = ofo_rail_keep(ep, gen);

    BFO_ASSERT(gen <= ep->fsm.gen);
    if (NULL != qps) {
        BFO_ASSERT(gen == qps->gen && ofo_drain_is_over(&qps->drain));
        BFO_ASSERT(NULL == ep->fenced_set || qps == ep->fenced_set);
        BFO_ASSERT(qps != ep->building); /* the fence took it */
        ep->fenced_set = NULL;
        ep->last_wqe_at = 0;
        count_fence(ep, gen, ofo_now_ms() - ep->error_at);
        ofo_qpset_counts(qps, &kept->sent, &kept->received);
        kept->carried = 0 < kept->sent.n_ok || 0 < kept->received.n_ok;
        if (OFO_DRAIN_LOSSY == ofo_drain_state(&qps->drain)) {
            OFO_STORE(ep->lossy_gen, (int32_t) gen);
            ep->check_open = true;
        } else {
            fence_is_over(ep, gen, qps->ended_at);
        }
        ofo_qpset_bury(qps);
    }
    if (gen == ep->fsm.gen) {
        ofo_rail_event(ep, OFO_EV_FENCE_DONE, NULL);
    }
    if (OFO_LOAD(ep->peer->declared)) {
        ofo_rail_close_check(ep);
    }
}
