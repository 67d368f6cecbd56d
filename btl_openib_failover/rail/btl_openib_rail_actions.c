/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The actions of a rail's machine: messages to the peer, queue pairs, counts and the loss check. Everything here runs on the
 * service thread of the rail's module; progress is notified by letters. See DESIGN.txt 10 and 15.
 */
#include "rail/btl_openib_rail_actions.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "tables/btl_openib_rail_fsm.h"
#include "formats/btl_openib_counts.h"
#include "types/btl_openib_ctl.h"
#include "rail/btl_openib_last_wqe.h"
#include "types/btl_openib_log.h"
#include "rail/btl_openib_lost.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_partner.h"
#include "qp/btl_openib_qpset.h"
#include "rail/btl_openib_spared.h"
#include "qp/btl_openib_stash.h"
#include "types/btl_openib_timers.h"

#include "bfo_assert.h"
#include "bfo_help.h"

#include <string.h>

enum { T_LOSS_MS = 300000 };

void ofo_rail_repeat_after(ofo_endpoint_t *ep, unsigned backoff_ms)
{
    ep->backoff_ms = backoff_ms;
    ep->retransmit_at = ofo_now_ms() + ofo_backoff_jitter(backoff_ms, ofo_random(ep->module) >> 4);
    ofo_timers_add(ep);
}

void ofo_rail_give_time(ofo_endpoint_t *ep)
{
    ep->give_up_at = ofo_now_ms() + 1000u * OFO.params.connect_timeout;
    ep->patience = OFO_CONNECT_PATIENCE;
    ofo_timers_add(ep);
}

/* Is the rail in the state of a row that has the action? Only service changes the state, before the action runs. */
static inline bool is_in(const ofo_endpoint_t *ep, ofo_fsm_state_t state)
{
    return state == ep->fsm.state;
}

static void start_retransmission(ofo_endpoint_t *ep)
{
    ofo_rail_repeat_after(ep, ofo_backoff_next(0));
}

/* ---- messages ----------------------------------------------------------------------------------- */

static ofo_ctl_t message(const ofo_endpoint_t *ep, ofo_ctl_type_t type, uint16_t gen)
{
    return (ofo_ctl_t){.type = (uint8_t) type, .rail = ep->rail, .gen = gen};
}

/* Each message goes over the rail itself, even if its port is down, and over another rail to the peer whose port is up, chosen at random
 * (DESIGN.txt 6, "path"). */
static void send_by_any_way(ofo_endpoint_t *ep, ofo_ctl_t *ctl)
{
    unsigned count = ep->peer->rail_count, start = (ofo_random(ep->module) >> 4) % count;

    for (unsigned i = 0; i < count; ++i) {
        ofo_endpoint_t *way = ep->peer->rail[(start + i) % count];
        if (NULL != way && way != ep && OFO_LOAD(way->module->port_up)) {
            ofo_tell_service(way, OFO_MAIL_SEND, ctl->gen, ctl, NULL);
            break;
        }
    }
    ofo_ctl_send(ep, ctl);
}

/* Adds the present address of the rail's own port. */
static void add_address(const ofo_endpoint_t *ep, ofo_ctl_t *ctl)
{
    ctl->lid = ep->module->port_attr.lid;
    memcpy(ctl->gid, OFO.record.port[ep->module->port_index].gid, sizeof(ctl->gid));
}

bool ofo_rail_has_told_address(const ofo_endpoint_t *ep)
{
    return ep->is_told && ep->told_lid == ep->module->port_attr.lid
           && 0 == memcmp(ep->told_gid, OFO.record.port[ep->module->port_index].gid, sizeof(ep->told_gid));
}

static void send_addresses(ofo_endpoint_t *ep, ofo_ctl_type_t type)
{
    ofo_module_t *module = ep->module;
    ofo_ctl_t ctl = message(ep, type, ep->fsm.gen);

    BFO_ASSERT(is_in(ep, OFO_CTL_REQ == type ? OFO_ST_REQUESTED : OFO_ST_READY));
    BFO_ASSERT(NULL != ep->building && ep->building->gen == ep->fsm.gen);
    BFO_ASSERT(0 < ep->building->nqp && ep->building->nqp <= OFO_MAX_QPS);
    add_address(ep, &ctl);
    ctl.mtu = ofo_mtu_own(module);
    ctl.reads = ofo_reads_answered(module);
    ctl.nqp = (uint8_t) ep->building->nqp;
    ctl.rail_hash = ep->peer->rail_hash;
    ctl.from = module->port_index;
    for (unsigned i = 0; i < ctl.nqp; ++i) {
        ctl.qp[i].qpn = ep->building->qp[i].qp->qp_num;
        ctl.qp[i].psn = ep->building->qp[i].psn;
    }
    ofo_partner_send(ep, &ctl);
}

/* ---- counts ------------------------------------------------------------------------------------- */

/* The counts of a generation, or NULL if they are unknown. A generation that was never up here has counts of 0. */
static const ofo_kept_t *kept_of(const ofo_endpoint_t *ep, uint16_t gen)
{
    static const ofo_kept_t nothing;

    for (int i = 0; i < 2; ++i) {
        if (ep->kept[i].gen == (int32_t) gen) {
            return &ep->kept[i];
        }
    }
    return ep->kept[1].gen < (int32_t) gen && (int32_t) gen <= ep->kept[0].gen ? &nothing : NULL;
}

ofo_kept_t *ofo_rail_keep(ofo_endpoint_t *ep, uint16_t gen)
{
    BFO_ASSERT(ep->kept[0].gen < (int32_t) gen); /* generations are counted once each, and in their order */
    BFO_ASSERT(ep->kept[1].gen <= ep->kept[0].gen);
    if (ep->kept[0].carried) {
        ep->kept[1] = ep->kept[0];
    }
    ep->kept[0] = (ofo_kept_t){.gen = gen};
    return &ep->kept[0];
}

uint64_t ofo_rail_stable_at(const ofo_endpoint_t *ep)
{
    const uint64_t since = OFO_LOAD(ep->module->up_since);

    return 0 == since || ofo_rail_is_last(ep) ? 0 : since + OFO.params.rejoin_after;
}

/* A port that came up a moment ago may fall again: until it is stable, the question whether the rail carries packets has no answer. */
static void send_dack(ofo_endpoint_t *ep, uint16_t gen, const ofo_ctl_t *down)
{
    ofo_ctl_t ctl = message(ep, OFO_CTL_DACK, gen);
    const ofo_kept_t *kept = kept_of(ep, gen);

    ctl.cause = gen == ep->fsm.gen ? ep->cause : OFO_CAUSE_UNKNOWN;
    if (NULL != kept) {
        ctl.counts = kept->sent;
        ctl.flags = OFO_DACK_VALID;
    }
    if (NULL != down && OFO_CTL_DOWN == down->type && ofo_now_ms() >= ofo_rail_stable_at(ep)) {
        ctl.flags |= down->flags & OFO_CTL_ASKS;
    }
    send_by_any_way(ep, &ctl);
}

/* The loss check is over, so the PML may go on. */
void ofo_rail_close_check(ofo_endpoint_t *ep)
{
    ep->unknown_until = 0;
    if (ep->check_open) {
        BFO_ASSERT(OFO_GEN_NONE != ep->lossy_gen && ep->lossy_gen <= (int32_t) ep->fsm.gen);
        ep->check_open = false;
        ofo_tell_progress(ep->module, OFO_MAIL_FENCED, ep, (uint16_t) ep->lossy_gen, NULL, NULL);
    }
}

/* CHECK of DESIGN.txt 10.4. False if the result is not known yet. */
static bool check(ofo_endpoint_t *ep, uint16_t gen, const ofo_counts_t *sent, bool known)
{
    const ofo_kept_t *kept = kept_of(ep, gen);
    bool lossy = ep->check_open && (int32_t) gen == ep->lossy_gen;

    switch (NULL == kept ? OFO_CHECK_NONE : ofo_counts_check(sent, known, &kept->received, lossy)) {
    case OFO_CHECK_LOSS:
        (void) ofo_peer_declare(ep->peer, "messages that were reported as delivered are lost with a device", true);
        return true;
    case OFO_CHECK_UNKNOWN:
        if (0 == ep->unknown_until) {
            ep->unknown_until = ofo_now_ms() + T_LOSS_MS;
        }
        start_retransmission(ep); /* DOWN asks for another DACK; the DACK that just came has stopped the timer */
        return false;
    default:
        if (lossy) {
            ofo_rail_close_check(ep);
        }
        return true;
    }
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

    BFO_ASSERT(is_in(ep, OFO_ST_UP));
    ofo_ctl_send(ep, &rtu);
    return 0;
}

bool ofo_rail_is_welcome(const ofo_endpoint_t *ep, uint16_t gen)
{
    return !OFO_LOAD(ep->peer->closing) && !OFO_LOAD(ep->peer->declared) && (gen <= ep->fsm.gen || NULL != ep->module->ext.rail_restored);
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
        rej.reason = ofo_rail_is_welcome(ep, ctl->gen) ? OFO_REJ_PORT_DOWN : OFO_REJ_DISABLED; /* the port may be up again by now */
    }
    ofo_ctl_send(ep, &rej);
    return 0;
}

void ofo_rail_send_down(ofo_endpoint_t *ep, uint16_t gen)
{
    ofo_ctl_t down = message(ep, OFO_CTL_DOWN, gen);

    BFO_ASSERT(gen <= ep->fsm.gen); /* nothing that was never begun is brought down */
    down.cause = gen == ep->fsm.gen ? ep->cause : OFO_CAUSE_UNKNOWN;
    down.flags = OFO_CTL_ADDRESS;
    add_address(ep, &down);
    ep->is_told = ofo_rail_has_told_address(ep);
    ep->told_lid = down.lid;
    memcpy(ep->told_gid, down.gid, sizeof(ep->told_gid));
    send_by_any_way(ep, &down);
}

static int ofo_do_send_down(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    BFO_ASSERT(is_in(ep, OFO_ST_DRAINING));
    ofo_rail_send_down(ep, ep->fsm.gen);
    return 0;
}

static int ofo_do_send_dack(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    if (NULL != ctl && ctl->gen == ep->fsm.gen && ep->kept[0].gen < (int32_t) ctl->gen) {
        (void) ofo_rail_keep(ep, ctl->gen); /* L11, L12: a generation that was never used here */
    }
    send_dack(ep, NULL != ctl ? ctl->gen : ep->fsm.gen, ctl);
    if (0 == ep->retransmit_at && ofo_fsm_state_retransmits(ep->fsm.state)) {
        start_retransmission(ep); /* L11: a rail that was down repeated nothing */
    }
    return 0;
}

/* The peer may not have the DACK that went when the fence was done, because the port was down. With this DACK the peer need not ask for it. */
static int ofo_do_down_and_dack(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    BFO_ASSERT(is_in(ep, OFO_ST_ASKING));
    BFO_ASSERT(NULL != kept_of(ep, ep->fsm.gen)); /* L25: the peer learns our counts */
    ofo_rail_send_down(ep, ep->fsm.gen);
    send_dack(ep, ep->fsm.gen, NULL);
    return 0;
}

static int open_set(ofo_endpoint_t *ep)
{
    BFO_ASSERT(NULL == ep->building); /* the set of the last generation is fenced */
    BFO_ASSERT(NULL == ep->fenced_set && 0 == ep->last_wqe_at);
    BFO_ASSERT(!ep->check_open); /* the loss check of the last generation is closed before the next one begins */
    ep->building = ofo_qpset_create(ep, ep->fsm.gen);
    if (NULL == ep->building) {
        return -1;
    }
    ++ep->module->count.connects;
    ofo_rail_give_time(ep);
    return 0;
}

static int ofo_do_open_active(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    if ((!OFO_LOAD(ep->module->port_up) && !ofo_rail_is_spared(ep)) || 0 != open_set(ep)) {
        return -1;
    }
    start_retransmission(ep);
    return ofo_do_send_req(ep, NULL);
}

static int join_passive(ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    if (ctl->nqp != ep->building->nqp || 0 != OFO.cpc->join(ep->building, ctl)) {
        return -1;
    }
    start_retransmission(ep);
    return ofo_do_send_rep(ep, NULL);
}

/* Spent queue pairs cannot accept a connection, so a new set is made. The connects of the old set are still answered while it is buried. */
static int ofo_do_become_passive(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    BFO_ASSERT(is_in(ep, OFO_ST_READY) && NULL != ep->building);
    if (ep->module->transport->moves_itself) {
        ofo_qpset_bury(ep->building);
        ep->building = ofo_qpset_create(ep, ep->fsm.gen);
    }
    return NULL != ep->building ? join_passive(ep, ctl) : -1;
}

static int ofo_do_open_passive(void *owner, const ofo_ctl_t *ctl)
{
    return 0 == open_set(owner) ? join_passive(owner, ctl) : -1;
}

static int ofo_do_prove_passive(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;
    int rc = ofo_qpset_prove(ep->building);

    BFO_ASSERT(is_in(ep, OFO_ST_PROVING) || is_in(ep, OFO_ST_CHECKING));
    ep->retransmit_at = 0;
    if (0 == rc) {
        (void) ofo_poll_and_keep(ep->module);
    }
    return rc;
}

static int ofo_do_prove_active(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    ep->retransmit_at = 0;
    if (ctl->nqp != ep->building->nqp || 0 != OFO.cpc->join(ep->building, ctl)) {
        return -1;
    }
    return ofo_do_prove_passive(ep, ctl);
}

static int ofo_do_map(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    BFO_ASSERT(is_in(ep, OFO_ST_UP));
    BFO_ASSERT(NULL != ep->building && ep->building->gen == ep->fsm.gen);
    BFO_ASSERT(0 == OFO_LOAD(ep->building->proving)); /* every queue pair has been proved */
    ep->retransmit_at = ep->give_up_at = 0;
    ofo_tell_progress(ep->module, OFO_MAIL_UP, ep, ep->fsm.gen, NULL, ep->building);
    return 0;
}

static int ofo_do_map_and_tell(void *owner, const ofo_ctl_t *ctl)
{
    ofo_do_map(owner, ctl);
    return ofo_do_send_rtu(owner, ctl);
}

/* Has the peer ended the generation? */
static bool is_end(const ofo_ctl_t *ctl)
{
    return OFO_CTL_DOWN == ctl->type || OFO_CTL_DACK == ctl->type;
}

/* Why this side ends the generation. `ctl`: a message of the peer, or one without a type that has the cause of a local error, or NULL. */
static uint8_t own_cause(const ofo_ctl_t *ctl)
{
    if (NULL == ctl || is_end(ctl)) {
        return OFO_CAUSE_UNKNOWN; /* the peer knows better */
    }
    return OFO_CTL_REJ == ctl->type || OFO_CTL_REP == ctl->type ? OFO_CAUSE_CONNECT : ctl->cause;
}

/* Stops the queue pairs. Progress drains the work that they leave and reports back. */
static int ofo_do_fence(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;
    const bool is_reported = NULL != ctl && is_end(ctl);

    BFO_ASSERT(is_in(ep, OFO_ST_DRAINING) || is_in(ep, OFO_ST_DRAINING_ACKED));
    BFO_ASSERT(NULL == ep->building || ep->building->gen == ep->fsm.gen);
    BFO_ASSERT(NULL == ep->fenced_set && 0 == ep->last_wqe_at); /* one fence of a rail runs at a time */
    ep->cause = own_cause(ctl);
    ep->give_up_at = 0;
    ep->dack_known = false;
    if (NULL != ep->building) {
        ofo_qpset_error(ep->building);
    }
    ep->error_at = ofo_now_ms();
    ep->fenced_set = ofo_qpset_is_shared(ep->building) ? ep->building : NULL;
    if (NULL != ep->fenced_set) {
        ofo_async_await_last_wqe(ep);
    }
    ofo_tell_progress(ep->module, OFO_MAIL_DRAIN, ep, ep->fsm.gen, is_reported ? ctl : NULL, ep->building);
    ep->building = NULL;
    start_retransmission(ep); /* repeats DOWN until DACK comes, whichever side began */
    return 0;
}

/* The ms to wait until the next DOWN may be sent, so that the death of a port with many peers causes no burst. */
static uint64_t wait_for_turn(ofo_module_t *module)
{
    uint64_t now = 1000 * ofo_now_ms(), turn = module->ctl_turn < now ? now : module->ctl_turn;

    module->ctl_turn = turn + UINT64_C(1000000) * OFO.module_count / OFO.params.ctl_rate;
    return (turn - now) / 1000;
}

static int ofo_do_fence_and_tell(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;
    uint64_t wait = wait_for_turn(ep->module);

    ofo_do_fence(owner, ctl);
    if (0 < wait) {
        ofo_log(2, "%s: bring-down of rail %u to %u waits %u ms for its turn", ep->module->name, ep->rail, ep->peer->name.vpid, (unsigned) wait);
        ep->retransmit_at = ofo_now_ms() + wait; /* the first copy goes out when its turn comes */
        ep->backoff_ms = 0;
        return 0;
    }
    return ofo_do_send_down(owner, ctl);
}

static int ofo_do_keep_counts(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    BFO_ASSERT(is_in(ep, OFO_ST_DRAINING_ACKED) || is_in(ep, OFO_ST_DOWN));
    BFO_ASSERT(OFO_CTL_DACK == ctl->type && ctl->gen == ep->fsm.gen);
    ep->dack = ctl->counts;
    ep->dack_known = 0 != (ctl->flags & OFO_DACK_VALID);
    if (OFO_GEN_NONE == ep->fsm.check_gen) {
        ep->retransmit_at = 0; /* otherwise DOWN still asks for the older counts */
    }
    return 0;
}

static int ofo_do_fence_and_keep(void *owner, const ofo_ctl_t *ctl)
{
    ofo_do_fence(owner, ctl);
    return ofo_do_keep_counts(owner, ctl);
}

static int ofo_do_keep_and_check(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    ofo_do_keep_counts(owner, ctl);
    (void) check(ep, ctl->gen, &ep->dack, ep->dack_known);
    return 0;
}

static int ofo_do_recheck(void *owner, const ofo_ctl_t *ctl)
{
    return 0 == ((ofo_endpoint_t *) owner)->unknown_until ? 0 : ofo_do_keep_and_check(owner, ctl);
}

static int ofo_do_dack_and_check(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    BFO_ASSERT(is_in(ep, OFO_ST_DOWN));
    BFO_ASSERT(NULL != kept_of(ep, ep->fsm.gen)); /* L6: the fence is done, so our counts are known */
    send_dack(ep, ep->fsm.gen, ctl);
    (void) check(ep, ep->fsm.gen, &ep->dack, ep->dack_known);
    return 0;
}

static int ofo_do_check_older(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    BFO_ASSERT(OFO_CTL_DACK == ctl->type && ctl->gen < ep->fsm.gen);
    BFO_ASSERT(ep->fsm.check_gen < (int32_t) ep->fsm.gen); /* the older generation whose counts are missing, or none */
    if (ep->fsm.check_gen == (int32_t) ctl->gen && check(ep, ctl->gen, &ctl->counts, 0 != (ctl->flags & OFO_DACK_VALID))) {
        ep->fsm.check_gen = OFO_GEN_NONE;
    }
    return 0;
}

#define ACTION(name) [OFO_DO_##name] = ofo_do_##name,
const ofo_fsm_action_fn_t ofo_rail_actions[OFO_DO_COUNT] = {
#include "tables/btl_openib_rail.def"
};
