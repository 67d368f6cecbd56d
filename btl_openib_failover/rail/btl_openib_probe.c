/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A path may swallow packets while its ports stay up: no event tells, and the adapter repeats for many seconds. Then the service threads
 * of both sides are asked whether datagrams pass: over the rail itself, and over all other rails to the peer. A peer that is
 * stopped answers over none of them, and nobody is judged. See DESIGN.txt 10.2, "Silence".
 */
#include "rail/btl_openib_probe.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "tables/btl_openib_rail_fsm.h"
#include "types/btl_openib_ctl.h"
#include "types/btl_openib_endpoints.h"
#include "formats/btl_openib_inquiry.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "types/btl_openib_paths.h"
#include "formats/btl_openib_rails.h"
#include "types/btl_openib_timers.h"
#include "formats/btl_openib_wire.h"

#include "bfo_assert.h"

enum {
    MOST_INQUIRIES = 16, /* of a module that ask at a time, because a pause of a whole fabric must not begin a storm of questions */
    LOOKS = 4,           /* of a rail that follows, in the time of one round */
    MOST_LETTERS = 64    /* that progress may leave unread when the peer's verdict is taken over */
};

/* The short round of a rail that carries data; the look before it took the first quarter. 0: none. */
static unsigned short_ms(const ofo_endpoint_t *ep)
{
    return OFO_ST_UP == ep->fsm.state ? 3 * OFO.params.soft_deadline / 4 : 0;
}

/* The inquiry begins after a quarter of the deadline; its rounds share the rest. */
static unsigned round_ms(void)
{
    return 3 * OFO.params.deadline / (4 * OFO_INQUIRY_ROUNDS);
}

static ofo_fsm_state_t published_state(const ofo_endpoint_t *ep)
{
    return (ofo_fsm_state_t) ((uint32_t) OFO_LOAD(ep->published) >> 16);
}

static bool is_witness(const ofo_endpoint_t *ep, const ofo_endpoint_t *other)
{
    return other != ep && OFO_ST_UP == published_state(other) && OFO_LOAD(other->module->port_up) && OFO_GATE_REFUSING != OFO_LOAD(other->gate)
           && !OFO_LOAD(other->is_soft) && !OFO_LOAD(other->stands_out);
}

static bool has_witness(const ofo_endpoint_t *ep)
{
    for (unsigned i = 0; i < ep->peer->rail_count; ++i) {
        if (is_witness(ep, ep->peer->rail[i])) {
            return true;
        }
    }
    return false;
}

/* May this rail's path be judged? The PML must have failover, the port at the other end must be known, and another rail must be able to
 * answer. */
static bool may_ask(const ofo_endpoint_t *ep)
{
    return 0 != OFO.params.deadline && NULL != ep->module->ext.failed_frag && !OFO_LOAD(OFO.closing) && !OFO_LOAD(ep->peer->closing)
           && !OFO_LOAD(ep->peer->declared) && OFO_LOAD(ep->module->port_up) && (0 == ep->choices || ep->is_settled) && has_witness(ep);
}

static bool may_judge(const ofo_endpoint_t *ep)
{
    return (OFO_ST_UP == ep->fsm.state || ofo_fsm_state_is_connecting(ep->fsm.state)) && may_ask(ep);
}

static ofo_ctl_t question(const ofo_endpoint_t *ep, uint8_t flags)
{
    return (ofo_ctl_t){.type = OFO_CTL_PROBE, .flags = flags, .rail = ep->rail, .gen = ep->fsm.gen, .about = ep->rail, .number = ep->inquiry.number};
}

static void ask_others(ofo_endpoint_t *ep, uint8_t flags)
{
    ofo_ctl_t probe = question(ep, flags);

    for (unsigned i = 0; i < ep->peer->rail_count; ++i) {
        ofo_endpoint_t *other = ep->peer->rail[i];
        if (is_witness(ep, other)) {
            probe.rail = OFO_LOAD(other->rail);
            ofo_tell_service(other, OFO_MAIL_SEND, 0, &probe, NULL);
            ++ep->module->count.questions;
        }
    }
}

/* Asks over the rail itself first: an answer over another rail must not belong to an earlier moment. */
static void ask(ofo_endpoint_t *ep)
{
    ofo_ctl_t probe = question(ep, 0);

    ofo_ctl_send(ep, &probe);
    ++ep->module->count.questions;
    ask_others(ep, 0);
    ofo_timers_add(ep);
}

/* ---- the path ------------------------------------------------------------------------------------------ */

static uint64_t add_port(uint64_t key, const ofo_port_t *port)
{
    key = ofo_fnv1a(key, port->gid, sizeof(port->gid));
    key = ofo_fnv1a(key, &port->lid, sizeof(port->lid));
    return ofo_fnv1a(key, port->subnet.key, sizeof(port->subnet.key));
}

/* Job, clock and the addresses of both ports; never 0. */
static uint64_t path_key(const ofo_endpoint_t *ep)
{
    uint64_t key = ofo_fnv1a(OFO_FNV_START, &OFO.self.jobid, sizeof(OFO.self.jobid));

    key = ofo_fnv1a(key, &OFO.paths.clock, sizeof(OFO.paths.clock));
    key = add_port(add_port(key, &OFO.record.port[ep->module->port_index]), &ep->remote);
    return 0 != key ? key : 1;
}

static uint64_t name_of(const opal_process_name_t *name)
{
    return (uint64_t) name->jobid << 32 | name->vpid;
}

static ofo_path_rail_t path_rail(const ofo_endpoint_t *ep)
{
    return (ofo_path_rail_t){.from = name_of(&OFO.self), .to = name_of(&ep->peer->name), .rail = ep->rail};
}

/* The longest time of an inquiry. */
static uint64_t longest_ms(void)
{
    return OFO_INQUIRY_VAIN * (uint64_t) round_ms();
}

/* Locks the path of the inquiry that runs. False: nothing is known of it. */
static bool lock_path(const ofo_endpoint_t *ep, uint64_t now, ofo_paths_found_t *found)
{
    const bool was_alone = OFO_LOAD(OFO.paths.is_alone);
    const bool is_known = 0 != ep->path && ofo_paths_lock(&OFO.paths, ep->path, now, now + longest_ms(), found);

    if (!was_alone && OFO_LOAD(OFO.paths.is_alone)) {
        ofo_log(1, "a lock of the file " OFO_PATHS_NAME " was not free for %d ms: its owner is stopped, or the file is damaged; not used from now on",
                OFO_PATHS_LOCK_MS);
    }
    return is_known;
}

static ofo_path_result_t path_tells(const ofo_endpoint_t *ep, uint64_t since, uint64_t now)
{
    ofo_path_result_t result = OFO_PATH_ASK;
    ofo_paths_found_t found;

    if (lock_path(ep, now, &found)) {
        result = ofo_path_tells(found.path, name_of(&OFO.self), since, now);
        ofo_paths_unlock(&found);
    }
    return result;
}

/* A leader that is late by a round leads no longer. */
static uint64_t path_until(const ofo_endpoint_t *ep)
{
    return ep->inquiry.until + round_ms();
}

static void path_lead(const ofo_endpoint_t *ep, uint64_t since, uint64_t now)
{
    const ofo_path_rail_t rail = path_rail(ep);
    ofo_paths_found_t found;

    if (lock_path(ep, now, &found)) {
        ofo_path_lead(found.path, &rail, since, now, path_until(ep));
        ofo_paths_unlock(&found);
    }
}

static void tell_path(const ofo_endpoint_t *ep, uint64_t now, ofo_path_news_t news, uint64_t at)
{
    const ofo_path_rail_t rail = path_rail(ep);
    ofo_paths_found_t found;

    if (lock_path(ep, now, &found)) {
        ofo_path_hear(found.path, &rail, news, at);
        ofo_paths_unlock(&found);
    }
}

/* ---- inquiries ----------------------------------------------------------------------------------------- */

static void begin_to_ask(ofo_endpoint_t *ep, uint64_t now, uint64_t since)
{
    ++ep->module->inquiries;
    BFO_ASSERT(ep->module->inquiries <= MOST_INQUIRIES);
    ofo_inquiry_begin(&ep->inquiry, now, short_ms(ep), round_ms());
    BFO_ASSERT(!ep->inquiry.follows && now <= ep->inquiry.until);
    path_lead(ep, since, now);
    ask(ep);
}

static unsigned pause_ms(const ofo_endpoint_t *ep)
{
    const unsigned round = 0 != short_ms(ep) ? short_ms(ep) : round_ms();

    return LOOKS < round ? round / LOOKS : 1;
}

/* A rail that connects asks itself, because its questions may still go to an old address. A rail for which there is no room among those that
 * ask follows, and asks when there is. */
static bool begin(ofo_endpoint_t *ep)
{
    const uint64_t now = ofo_now_ms();
    const bool has_room = MOST_INQUIRIES > ep->module->inquiries;

    BFO_ASSERT(0 == ep->inquiry.until);        /* a rail has one inquiry at a time */
    BFO_ASSERT(!ep->is_soft && 0 == ep->path); /* the end of the last inquiry has ended both */
    ep->path = OFO_ST_UP == ep->fsm.state ? path_key(ep) : 0;
    if (0 == ep->path && !has_room) {
        return false;
    }
    ++ep->module->count.inquiries;
    if (has_room && OFO_PATH_ASK == path_tells(ep, now, now)) {
        begin_to_ask(ep, now, now);
    } else {
        ofo_inquiry_follow(&ep->inquiry, now, pause_ms(ep));
        ofo_timers_add(ep);
    }
    return true;
}

void ofo_probe_begin(ofo_endpoint_t *ep, uint16_t gen)
{
    if (0 == ep->inquiry.until && gen == ep->fsm.gen && may_judge(ep)) {
        (void) begin(ep);
    }
}

/* Nothing, if the rail is soft already: this side and the peer find it so, or its path and its own round. */
static void becomes_soft(ofo_endpoint_t *ep, ofo_mail_kind_t letter)
{
    BFO_ASSERT(0 != ep->inquiry.until); /* otherwise nothing would end the state */
    if (!ep->is_soft) {
        OFO_STORE(ep->is_soft, true);
        ofo_tell_progress(ep->module, letter, ep, ep->fsm.gen, NULL, NULL);
    }
}

/* After the hard verdict progress ends the rail; otherwise the rail is as good as the others again. */
static void becomes_normal(ofo_endpoint_t *ep, bool is_silent)
{
    if (ep->is_soft) {
        OFO_STORE(ep->is_soft, false);
        if (!is_silent) {
            ofo_tell_progress(ep->module, OFO_MAIL_CALM, ep, ep->fsm.gen, NULL, NULL);
        }
    }
}

static void inquiry_over(ofo_endpoint_t *ep, bool is_silent)
{
    if (!ep->inquiry.follows) {
        BFO_ASSERT(0 < ep->module->inquiries);
        --ep->module->inquiries;
    }
    tell_path(ep, ofo_now_ms(), OFO_PATH_LEAVES, 0);
    ep->path = 0;
    ep->inquiry.until = 0;
    becomes_normal(ep, is_silent);
}

static void answered(ofo_endpoint_t *ep, const ofo_ctl_t *answer)
{
    const bool was_open = 0 != ep->inquiry.until;

    ofo_inquiry_answer(&ep->inquiry, ofo_now_ms(), answer->number, answer->rail == ep->rail);
    if (was_open && 0 == ep->inquiry.until) {
        tell_path(ep, ofo_now_ms(), OFO_PATH_ANSWERED, ofo_now_ms());
        inquiry_over(ep, false);
    }
}

/* The peer hears of this side's own verdicts only, so two sides do not keep each other soft. */
void ofo_probe_tell(ofo_endpoint_t *ep, uint16_t gen)
{
    if (ep->is_soft && gen == ep->fsm.gen && 0 != ep->inquiry.until) {
        ask_others(ep, OFO_CTL_SOFT);
    }
}

/* Is a rail that the peer has found soft soft here as well? A process that does not read its letters computes, so it has nothing to gain, and
 * the peer could make it collect letters without end. But the verdicts of many peers of a silent path come together. */
static bool may_adopt(const ofo_endpoint_t *ep, uint16_t gen)
{
    return 0 != OFO.params.soft_deadline && !ep->is_soft && gen == ep->fsm.gen && OFO_ST_UP == ep->fsm.state && may_ask(ep)
           && MOST_LETTERS > OFO_LOAD(ep->module->inbox.count);
}

/* The peer has been through the short round. */
void ofo_probe_told(ofo_endpoint_t *ep, uint16_t gen)
{
    if (may_adopt(ep, gen) && (0 != ep->inquiry.until || begin(ep))) {
        becomes_soft(ep, OFO_MAIL_SOFT_TOO);
    }
}

static void take_probe(ofo_endpoint_t *ep, const ofo_ctl_t *probe, ofo_endpoint_t *about)
{
    ofo_ctl_t answer = *probe;

    answer.type = OFO_CTL_ANSWER;
    ofo_ctl_send(ep, &answer);
    if (0 != (probe->flags & OFO_CTL_SOFT) && NULL != about && about != ep) {
        ofo_tell_service(about, OFO_MAIL_TOLD, probe->gen, NULL, NULL);
    }
}

void ofo_probe_message(ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *about = ofo_peer_rail(ep->peer, ctl->about);

    if (OFO_CTL_PROBE == ctl->type) {
        take_probe(ep, ctl, about);
    } else if (NULL == about) {
        ++ep->module->count.ctl_dropped;
    } else if (about->module == ep->module) {
        answered(about, ctl);
    } else {
        ofo_tell_service(about, OFO_MAIL_CTL, ctl->gen, ctl, NULL);
    }
}

/* Is it too late for evidence, or does the evidence speak of a path that the rail does not take any more? */
static bool stops_following(const ofo_endpoint_t *ep, uint64_t now)
{
    return OFO_ST_UP != ep->fsm.state || !may_ask(ep) || path_key(ep) != ep->path || now >= ep->inquiry.began + longest_ms();
}

/* Both leaders seem silent. Asks whether this rail's process lives, and is reached over another rail; again if there is no answer. */
static void follow_against(ofo_endpoint_t *ep, uint64_t now)
{
    if (0 != OFO.params.soft_deadline) {
        becomes_soft(ep, OFO_MAIL_SOFT);
    }
    if (!ep->inquiry.witness_answered && now >= ep->inquiry.asked + round_ms()) {
        ofo_inquiry_ask_witness(&ep->inquiry, now);
        ask_others(ep, 0);
    }
}

/* Both leaders were found silent. So is this rail if its process answers over another one, but not before its own work has waited for so long
 * that progress ends it (_deadline.c): progress does not ask again soon. */
static bool is_silent_too(const ofo_endpoint_t *ep, uint64_t now)
{
    return ep->inquiry.witness_answered && now >= ep->inquiry.began + OFO.params.deadline / 2;
}

/* Returns true if the rail is silent. */
static bool follow(ofo_endpoint_t *ep, uint64_t now)
{
    const ofo_path_result_t result = path_tells(ep, ep->inquiry.began, now);

    BFO_ASSERT(ep->inquiry.follows && 0 != ep->path); /* it follows others of its path, and is not counted among those that ask */
    if (stops_following(ep, now)) {
        inquiry_over(ep, false);
        return false;
    }
    if (OFO_PATH_SILENT == result && is_silent_too(ep, now)) {
        ++ep->module->count.followed;
        inquiry_over(ep, true);
        ofo_log(1, "%s: rail %u to %u is silent: two others to the same port are", ep->module->name, ep->rail, ep->peer->name.vpid);
        return true;
    }
    if (OFO_PATH_ASK == result && MOST_INQUIRIES > ep->module->inquiries) {
        begin_to_ask(ep, now, ep->inquiry.began);
        return false;
    }
    if (OFO_PATH_AGAINST <= result) {
        follow_against(ep, now);
    }
    ep->inquiry.until = now + pause_ms(ep);
    return false;
}

/* A round has ended, and the inquiry goes on. A rail whose process answered over no rail leads no others. A round that ended late says nothing. */
static void next_round(ofo_endpoint_t *ep, ofo_inquiry_result_t result, uint64_t now)
{
    if (OFO_INQUIRY_SOFT == result) {
        becomes_soft(ep, OFO_MAIL_SOFT);
    }
    tell_path(ep, now, OFO_PATH_GOES_ON, path_until(ep));
    if (0 != ep->inquiry.vain) {
        tell_path(ep, now, OFO_PATH_LEAVES, 0);
    } else if (OFO_INQUIRY_SOFT == result || 0 != ep->inquiry.missed) {
        tell_path(ep, now, OFO_PATH_COUNTS, 0);
    }
    ask(ep);
}

/* The path has swallowed the questions, also if the peer has ended the rail while the last round ran. */
static ofo_inquiry_result_t end_round(ofo_endpoint_t *ep, uint64_t now)
{
    const ofo_inquiry_result_t result = may_ask(ep) ? ofo_inquiry_turn(&ep->inquiry, now, round_ms()) : OFO_INQUIRY_ENDS;

    if (OFO_INQUIRY_SILENT == result) {
        tell_path(ep, now, OFO_PATH_SWALLOWED, ep->inquiry.asked);
    }
    return may_judge(ep) ? result : OFO_INQUIRY_ENDS;
}

bool ofo_probe_timer(ofo_endpoint_t *ep, uint64_t now)
{
    ofo_inquiry_result_t result;

    if (0 == ep->inquiry.until || now < ep->inquiry.until) {
        return false;
    }
    if (ep->inquiry.follows) {
        return follow(ep, now);
    }
    result = end_round(ep, now);
    if (OFO_INQUIRY_GOES_ON == result || OFO_INQUIRY_SOFT == result) {
        next_round(ep, result, now);
        return false;
    }
    inquiry_over(ep, OFO_INQUIRY_SILENT == result);
    if (OFO_INQUIRY_SILENT == result) {
        ofo_log(1, "%s: rail %u to %u is silent: %u questions were not answered, those over other rails were", ep->module->name, ep->rail,
                ep->peer->name.vpid, OFO_INQUIRY_ROUNDS);
    }
    return OFO_INQUIRY_SILENT == result;
}
