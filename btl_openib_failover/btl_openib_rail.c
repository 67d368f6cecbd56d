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

enum { T_LOSS_MS = 2000, PATIENCE = 11 /* a connection gets 12 times connect_timeout where its end is that of the job */ };

static void start_retransmission(ofo_endpoint_t *ep)
{
    ep->backoff_ms = ofo_backoff_next(0);
    ep->retransmit_at = ofo_now_ms() + ofo_backoff_jitter(ep->backoff_ms, next_random(ep->module));
    ofo_timers_add(ep);
}

static void start_giving_up(ofo_endpoint_t *ep)
{
    ep->give_up_at = ofo_now_ms() + 1000u * OFO.params.connect_timeout;
    ep->patience = PATIENCE;
    ofo_timers_add(ep);
}

/* A PML that fails over has other rails, unless this rail is spared although its port is down. Any other PML ends the job,
 * and the peer may just not have been scheduled. */
static bool has_patience(ofo_endpoint_t *ep, uint64_t now)
{
    if ((NULL != ep->module->ext.failed_frag && OFO_LOAD(ep->module->port_up)) || 0 == ep->patience) {
        return false;
    }
    --ep->patience;
    ep->give_up_at = now + 1000u * OFO.params.connect_timeout;
    return true;
}

/* ---- messages ----------------------------------------------------------------------------------- */

static ofo_ctl_t message(const ofo_endpoint_t *ep, ofo_ctl_type_t type, uint16_t gen)
{
    return (ofo_ctl_t){.type = (uint8_t) type, .rail = ep->rail, .gen = gen};
}

/* Each copy goes the rail's own way, even if its port is down, and that of another port that is up, chosen at random (DESIGN.txt 6,
 * "path"). */
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
    ofo_ctl_send(ep, ctl);
}

static void send_addresses(ofo_endpoint_t *ep, ofo_ctl_type_t type)
{
    ofo_module_t *module = ep->module;
    ofo_ctl_t ctl = message(ep, type, ep->fsm.gen);

    ctl.lid = module->port_attr.lid;
    ctl.mtu = ofo_mtu_own(module);
    ctl.reads = ofo_reads_answered(module);
    ctl.nqp = (uint8_t) ep->building->nqp;
    ctl.rail_hash = ep->peer->rail_hash;
    memcpy(ctl.gid, OFO.record.port[module->port_index].gid, sizeof(ctl.gid));
    for (unsigned i = 0; i < ctl.nqp; ++i) {
        ctl.qp[i].qpn = ep->building->qp[i].qp->qp_num;
        ctl.qp[i].psn = ep->building->qp[i].psn;
    }
    ofo_ctl_send(ep, &ctl);
}

/* ---- counts ------------------------------------------------------------------------------------- */

/* What is known of a generation; one that never came to life here carried nothing, which is known too. */
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

static ofo_kept_t *keep(ofo_endpoint_t *ep, uint16_t gen)
{
    if (ep->kept[0].carried) {
        ep->kept[1] = ep->kept[0];
    }
    ep->kept[0] = (ofo_kept_t){.gen = gen};
    return &ep->kept[0];
}

static void send_dack(ofo_endpoint_t *ep, uint16_t gen)
{
    ofo_ctl_t ctl = message(ep, OFO_CTL_DACK, gen);
    const ofo_kept_t *kept = kept_of(ep, gen);

    if (NULL != kept) {
        ctl.counts = kept->sent;
        ctl.flags = OFO_DACK_VALID;
    }
    send_by_any_way(ep, &ctl);
}

/* The fence was given up, and nothing is missing, or nothing matters any more: now the PML may go on. */
static void close_check(ofo_endpoint_t *ep)
{
    ep->unknown_until = 0;
    if (ep->check_open) {
        ep->check_open = false;
        ofo_tell_progress(ep->module, OFO_MAIL_FENCED, ep, (uint16_t) ep->lossy_gen, NULL, NULL);
    }
}

/* CHECK of DESIGN.txt 10.4. */
static void check(ofo_endpoint_t *ep, uint16_t gen, const ofo_counts_t *sent, bool known)
{
    const ofo_kept_t *kept = kept_of(ep, gen);
    bool lossy = ep->check_open && (int32_t) gen == ep->lossy_gen;

    switch (NULL == kept ? OFO_CHECK_NONE : ofo_counts_check(sent, known, &kept->received, lossy)) {
    case OFO_CHECK_LOSS:
        (void) ofo_peer_declare(ep->peer, "messages that were reported as delivered are lost with a device", true);
        break;
    case OFO_CHECK_UNKNOWN:
        if (0 == ep->unknown_until) {
            ep->unknown_until = ofo_now_ms() + T_LOSS_MS;
        }
        start_retransmission(ep); /* a DOWN asks for another DACK; the one that just came has ended the timer */
        break;
    default:
        if (lossy) {
            close_check(ep);
        }
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

    ofo_ctl_send(ep, &rtu);
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
    ofo_ctl_send(ep, &rej);
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

    if (NULL != ctl && ctl->gen == ep->fsm.gen && ep->kept[0].gen < (int32_t) ctl->gen) {
        (void) keep(ep, ctl->gen); /* L11, L12: an attempt that never was one here */
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

/* iWARP: a queue pair that began to connect can accept nothing. What it began is answered while the old set is buried. */
static int ofo_do_become_passive(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    if (ep->module->is_iwarp) {
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
    ofo_tell_progress(ep->module, OFO_MAIL_DRAIN, ep, ep->fsm.gen, NULL, ep->building);
    ep->building = NULL;
    start_retransmission(ep); /* DOWN, as long as there is no DACK, whoever began */
    return 0;
}

/* ms until the next bring-down may go out: the death of a port with many peers is no burst. */
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
        ofo_log(2, "%s: bring-down of rail %u to %u waits %u ms for its turn", ep->module->name, ep->rail,
                ep->peer->name.vpid, (unsigned) wait);
        ep->retransmit_at = ofo_now_ms() + wait; /* the first copy, when its turn comes */
        ep->backoff_ms = 0;
        return 0;
    }
    return ofo_do_send_down(owner, ctl);
}

static int ofo_do_keep_counts(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    ep->dack = ctl->counts;
    ep->dack_known = 0 != (ctl->flags & OFO_DACK_VALID);
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
    ofo_endpoint_t *ep = owner;

    ofo_do_keep_counts(owner, ctl);
    check(ep, ctl->gen, &ep->dack, ep->dack_known);
    return 0;
}

static int ofo_do_recheck(void *owner, const ofo_ctl_t *ctl)
{
    return 0 == ((ofo_endpoint_t *) owner)->unknown_until ? 0 : ofo_do_keep_and_check(owner, ctl);
}

static int ofo_do_dack_and_check(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    send_dack(ep, ep->fsm.gen);
    check(ep, ep->fsm.gen, &ep->dack, ep->dack_known);
    return 0;
}

static int ofo_do_check_older(void *owner, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *ep = owner;

    if (ep->fsm.check_gen == (int32_t) ctl->gen) {
        ep->fsm.check_gen = OFO_GEN_NONE;
        check(ep, ctl->gen, &ctl->counts, 0 != (ctl->flags & OFO_DACK_VALID));
    }
    return 0;
}

#define ACTION(name) [OFO_DO_##name] = ofo_do_##name,
static const ofo_fsm_action_fn_t actions[OFO_DO_COUNT] = {
#include "btl_openib_connect.def"
};

/* ---- owner -------------------------------------------------------------------------------------- */

static bool is_opening(ofo_fsm_state_t state)
{
    return OFO_ST_REQUESTED == state || OFO_ST_PROVING == state;
}

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
    ep->module->opening += (unsigned) is_opening(next) - (unsigned) is_opening(state);
    if (next != state) {
        ofo_log(1, "bfo: %u->%u rail %u (%s) gen %u: %s -> %s on %s", OFO.self.vpid, ep->peer->name.vpid, ep->rail,
                ep->module->name, ep->fsm.gen, ofo_fsm_state_name(state), ofo_fsm_state_name(next),
                ofo_fsm_event_name(event));
    }
}

void ofo_rail_init(ofo_endpoint_t *ep)
{
    ofo_fsm_init(&ep->fsm, actions, trace, ep);
    ep->kept[0].gen = ep->kept[1].gen = ep->lossy_gen = ep->refused_gen = OFO_GEN_NONE;
}

void ofo_rail_event(ofo_endpoint_t *ep, ofo_fsm_event_t event, const ofo_ctl_t *ctl)
{
    if (OFO_EV_POST == event && OFO_ST_CLOSED != ep->fsm.state) {
        return; /* the peer was faster, or the rail is gone: progress learns it by mail */
    }
    (void) ofo_fsm_step(&ep->fsm, event, ctl);
}

/* Only these two carry addresses and the hash of the rails. */
static bool tells_addresses(const ofo_ctl_t *ctl)
{
    return OFO_CTL_REQ == ctl->type || OFO_CTL_REP == ctl->type;
}

/* The peer's port may have another address than its record says: that of its last request or reply is the one. */
static void learn_address(ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    if (tells_addresses(ctl) && &ofo_cpc_ud == OFO.cpc
        && (ctl->lid != ep->remote.lid || 0 != memcmp(ctl->gid, ep->remote.gid, sizeof(ctl->gid)))) {
        ep->remote.lid = ctl->lid;
        memcpy(ep->remote.gid, ctl->gid, sizeof(ctl->gid));
        ofo_ud_forget(ep);
    }
}

static ofo_fsm_event_t classify(const ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    const ofo_fsm_facts_t facts = {
        .own_is_higher = ep->peer->own_is_higher,
        .hash_ok = ctl->rail_hash == ep->peer->rail_hash,
        .usable = OFO_LOAD(ep->module->port_up) && !OFO_LOAD(ep->peer->closing) && !OFO_LOAD(ep->peer->declared),
    };

    return ofo_fsm_classify(&ep->fsm, ctl, &facts);
}

/* Will this request make queue pairs? */
static bool opens(const ofo_endpoint_t *ep, ofo_fsm_event_t event)
{
    return (OFO_ST_CLOSED == ep->fsm.state && (OFO_EV_REQ_YIELD == event || OFO_EV_REQ_HOLD == event))
           || (OFO_ST_DOWN == ep->fsm.state && OFO_EV_REQ_NEXT == event);
}

/* A refusal would end the peer's rail, and ours goes on when the port is back: the peer asks again. */
static bool comes_too_early(const ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    return OFO_CTL_REQ == ctl->type && !OFO_LOAD(ep->module->port_up) && ofo_rail_is_spared(ep);
}

void ofo_rail_asked(ofo_endpoint_t *ep, const ofo_ctl_t *req)
{
    ofo_fsm_event_t event = classify(ep, req);

    if (!comes_too_early(ep, req) && OFO_EV_NONE != event && ofo_fsm_has_row(ep->fsm.state, event)) { /* else the rail has come to life, or to its end */
        ofo_rail_event(ep, event, req);
    }
}

/* The peer is alive and has our request: its backlog is no silence. */
static void heard(ofo_endpoint_t *ep, const ofo_ctl_t *busy)
{
    if (OFO_ST_REQUESTED == ep->fsm.state && busy->gen == ep->fsm.gen) {
        start_giving_up(ep);
    }
}

void ofo_rail_message(ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    ofo_fsm_event_t event = classify(ep, ctl);

    if (comes_too_early(ep, ctl)) {
        ++ep->module->count.ctl_dropped;
        return;
    }
    if (OFO_CTL_REJ == ctl->type && OFO_REJ_BUSY == ctl->reason) {
        heard(ep, ctl);
        return;
    }
    if (OFO_EV_NONE != event && ofo_fsm_has_row(ep->fsm.state, event)) {
        learn_address(ep, ctl); /* an old copy may tell an old one */
    }
    if (OFO_CTL_REJ == ctl->type) {
        ofo_log(1, "%s: rail %u to %u: gen %u was rejected, reason %u", ep->module->name, ep->rail, ep->peer->name.vpid, ctl->gen,
                ctl->reason); /* ofo_rej_reason_t */
    }
    if (tells_addresses(ctl) && ctl->rail_hash != ep->peer->rail_hash) {
        ep->patience = 0; /* waiting makes no list of rails right */
    }
    if (OFO_EV_NONE == event) {
        ++ep->module->count.ctl_dropped;
    } else if (NULL == OFO.cpc->refuse && opens(ep, event)) { /* rdmacm does not let requests wait */
        ofo_open_ask(ep, ctl);
    } else {
        ofo_rail_event(ep, event, ctl);
    }
    if (OFO_CTL_REQ == ctl->type && NULL != OFO.cpc->refuse) {
        OFO.cpc->refuse(ep, ctl->gen);
    }
}

/* DOWN is owed beyond what the state asks for: an older check is due, or the peer's counts are not known. */
static bool asks_for_counts(const ofo_endpoint_t *ep)
{
    return OFO_GEN_NONE != ep->fsm.check_gen || 0 != ep->unknown_until;
}

static void retransmit(ofo_endpoint_t *ep, uint64_t now)
{
    bool by_state = ofo_fsm_state_retransmits(ep->fsm.state);

    ep->retransmit_at = 0;
    if (!by_state && !asks_for_counts(ep)) {
        return;
    }
    ep->backoff_ms = ofo_backoff_next(ep->backoff_ms);
    if (0 != ep->give_up_at && 250 * OFO.params.connect_timeout < ep->backoff_ms) {
        ep->backoff_ms = 250 * OFO.params.connect_timeout; /* several tries in the time of one silence */
    }
    ep->retransmit_at = now + ofo_backoff_jitter(ep->backoff_ms, next_random(ep->module));
    if (asks_for_counts(ep)) {
        bool older = OFO_GEN_NONE != ep->fsm.check_gen;
        ofo_ctl_t down = message(ep, OFO_CTL_DOWN, older ? (uint16_t) ep->fsm.check_gen : ep->fsm.gen);
        send_by_any_way(ep, &down);
    }
    if (by_state) {
        ofo_rail_event(ep, OFO_EV_RETRANSMIT, NULL);
    }
}

void ofo_rail_timers(ofo_endpoint_t *ep, uint64_t now)
{
    if (0 != ep->last_wqe_at && now >= ep->last_wqe_at) {
        ofo_async_last_wqe_late(ep, now);
    }
    if (OFO_LOAD(ep->peer->declared)) {
        ep->retransmit_at = ep->give_up_at = ep->unknown_until = 0;
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
            ofo_log(1, "%s: rail %u to %u did not connect in %u s", ep->module->name, ep->rail, ep->peer->name.vpid,
                    OFO.params.connect_timeout);
            ofo_peer_doubt_pair(ep);
            ofo_rail_event(ep, OFO_EV_LOCAL_ERROR, NULL);
        }
    }
    if (0 != ep->retransmit_at && now >= ep->retransmit_at) {
        retransmit(ep, now);
    }
}

static bool is_fenced(const ofo_endpoint_t *ep, uint16_t gen)
{
    return gen < ep->fsm.gen || OFO_ST_ASKING == ep->fsm.state || OFO_ST_DOWN == ep->fsm.state;
}

void ofo_rail_fence(ofo_endpoint_t *ep, const ofo_mail_t *mail)
{
    ofo_rail_message(ep, &mail->ctl);
    if (is_fenced(ep, mail->gen) && !ep->check_open) {
        ofo_tell_progress(ep->module, OFO_MAIL_FENCED, ep, mail->gen, NULL, NULL);
    }
}

void ofo_rail_send_peerdead(ofo_endpoint_t *ep)
{
    ofo_ctl_t dead = {.type = OFO_CTL_PEERDEAD, .rail = OFO_RAIL_NONE};

    ofo_ctl_send(ep, &dead);
}

/* Each rail says so once; whoever did not hear it is told again when it speaks (L23). */
void ofo_rail_declared(ofo_endpoint_t *ep)
{
    if (OFO_LOAD(ep->module->port_up)) {
        ofo_rail_send_peerdead(ep);
    }
    ofo_rail_event(ep, OFO_EV_PEERDEAD, NULL);
    close_check(ep);
}

static void count_fence(ofo_endpoint_t *ep, uint16_t gen, uint64_t ms)
{
    ofo_counters_t *count = &ep->module->count;

    ++count->fences;
    count->fence_ms = ms > count->fence_ms ? ms : count->fence_ms;
    ofo_log(1, "%s: rail %u to %u gen %u: fence done after %u ms", ep->module->name, ep->rail, ep->peer->name.vpid, gen, (unsigned) ms);
}

void ofo_rail_fence_done(ofo_endpoint_t *ep, uint16_t gen, ofo_qpset_t *qps)
{
    ofo_kept_t *kept = keep(ep, gen);

    if (NULL != qps) {
        ep->fenced_set = NULL;
        ep->last_wqe_at = 0;
        count_fence(ep, gen, ofo_now_ms() - ep->error_at);
        ofo_qpset_counts(qps, &kept->sent, &kept->received);
        kept->carried = 0 < kept->sent.n_ok || 0 < kept->received.n_ok;
        if (qps->lossy) {
            OFO_STORE(ep->lossy_gen, (int32_t) gen);
            ep->check_open = true;
        }
        ofo_qpset_bury(qps);
    }
    if (gen == ep->fsm.gen) {
        ofo_rail_event(ep, OFO_EV_FENCE_DONE, NULL);
    }
    if (OFO_LOAD(ep->peer->declared)) {
        close_check(ep);
    }
}
