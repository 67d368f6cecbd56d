/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A path may swallow packets while its ports stay up: no event tells, and the adapter repeats for many seconds. Then the service threads
 * of both sides are asked whether datagrams pass: over the rail itself, and over all other rails to the peer. A peer that is
 * stopped answers over none of them, and nobody is judged. See DESIGN.txt 10.2, "Silence".
 */
#include "btl_openib_probe.h"

#include "btl_openib_atomic.h"
#include "btl_openib_clock.h"
#include "btl_openib_rail_fsm.h"
#include "btl_openib_ctl.h"
#include "btl_openib_endpoints.h"
#include "btl_openib_inquiry.h"
#include "btl_openib_log.h"
#include "btl_openib_mail.h"
#include "btl_openib_timers.h"
#include "btl_openib_wire.h"

#include "bfo_assert.h"

enum { MOST_INQUIRIES = 16 }; /* of a module at a time, because a pause of a whole fabric must not begin a storm of questions */

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
           && !OFO_LOAD(other->is_soft);
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

/* May this rail be judged? The PML must have failover, the port at the other end must be known, and another rail must be able to answer. */
static bool may_judge(const ofo_endpoint_t *ep)
{
    return 0 != OFO.params.deadline && NULL != ep->module->ext.failed_frag && !OFO.closing && !OFO_LOAD(ep->peer->closing)
           && !OFO_LOAD(ep->peer->declared) && OFO_LOAD(ep->module->port_up) && (0 == ep->choices || ep->is_settled)
           && (OFO_ST_UP == ep->fsm.state || ofo_fsm_state_is_connecting(ep->fsm.state)) && has_witness(ep);
}

/* Asks over the rail itself first: an answer over another rail must not belong to an earlier moment. */
static void ask(ofo_endpoint_t *ep, uint8_t flags)
{
    ofo_ctl_t probe = {.type = OFO_CTL_PROBE, .flags = flags, .rail = ep->rail, .gen = ep->fsm.gen, .about = ep->rail, .number = ep->inquiry.number};

    ofo_ctl_send(ep, &probe);
    for (unsigned i = 0; i < ep->peer->rail_count; ++i) {
        ofo_endpoint_t *other = ep->peer->rail[i];
        if (is_witness(ep, other)) {
            probe.rail = OFO_LOAD(other->rail);
            ofo_tell_service(other, OFO_MAIL_SEND, 0, &probe, NULL);
        }
    }
    ofo_timers_add(ep);
}

static bool begin(ofo_endpoint_t *ep, unsigned first_ms)
{
    if (0 != ep->inquiry.until || MOST_INQUIRIES <= ep->module->inquiries) {
        return false;
    }
    ++ep->module->inquiries;
    ++ep->module->count.inquiries;
    ofo_inquiry_begin(&ep->inquiry, ofo_now_ms(), first_ms, round_ms());
    ask(ep, 0);
    return true;
}

void ofo_probe_begin(ofo_endpoint_t *ep, uint16_t gen)
{
    if (gen == ep->fsm.gen && may_judge(ep)) {
        (void) begin(ep, short_ms(ep));
    }
}

static void count_end(ofo_endpoint_t *ep)
{
    BFO_ASSERT(0 < ep->module->inquiries);
    --ep->module->inquiries;
}

static void becomes_soft(ofo_endpoint_t *ep, ofo_mail_kind_t letter)
{
    OFO_STORE(ep->is_soft, true);
    ofo_tell_progress(ep->module, letter, ep, ep->fsm.gen, NULL, NULL);
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

static void answered(ofo_endpoint_t *ep, const ofo_ctl_t *answer)
{
    const bool was_open = 0 != ep->inquiry.until;

    ofo_inquiry_answer(&ep->inquiry, ofo_now_ms(), answer->number, answer->rail == ep->rail);
    if (was_open && 0 == ep->inquiry.until) {
        count_end(ep);
        becomes_normal(ep, false);
    }
}

/* The peer hears of this side's own verdicts only, so two sides do not keep each other soft. */
void ofo_probe_tell(ofo_endpoint_t *ep, uint16_t gen)
{
    if (ep->is_soft && gen == ep->fsm.gen && 0 != ep->inquiry.until) {
        ask(ep, OFO_CTL_SOFT);
    }
}

/* Is a rail that the peer has found soft soft here as well? A process that does not read its letters computes, so it has nothing to gain, and
 * the peer could make it collect letters without end. */
static bool may_adopt(const ofo_endpoint_t *ep, uint16_t gen)
{
    return 0 != OFO.params.soft_deadline && !ep->is_soft && gen == ep->fsm.gen && OFO_ST_UP == ep->fsm.state && may_judge(ep)
           && 0 == OFO_LOAD(ep->module->inbox.count);
}

/* The peer has been through the short round. */
void ofo_probe_told(ofo_endpoint_t *ep, uint16_t gen)
{
    if (may_adopt(ep, gen) && (0 != ep->inquiry.until || begin(ep, 0))) {
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

bool ofo_probe_timer(ofo_endpoint_t *ep, uint64_t now)
{
    ofo_inquiry_result_t result;

    if (0 == ep->inquiry.until || now < ep->inquiry.until) {
        return false;
    }
    result = may_judge(ep) ? ofo_inquiry_turn(&ep->inquiry, now, round_ms()) : OFO_INQUIRY_ENDS;
    if (OFO_INQUIRY_SOFT == result && !ep->is_soft) {
        becomes_soft(ep, OFO_MAIL_SOFT);
    }
    if (OFO_INQUIRY_GOES_ON == result || OFO_INQUIRY_SOFT == result) {
        ask(ep, 0);
        return false;
    }
    ep->inquiry.until = 0;
    count_end(ep);
    becomes_normal(ep, OFO_INQUIRY_SILENT == result);
    if (OFO_INQUIRY_SILENT == result) {
        ofo_log(1, "%s: rail %u to %u is silent: %u questions were not answered, those over other rails were", ep->module->name, ep->rail,
                ep->peer->name.vpid, OFO_INQUIRY_ROUNDS);
    }
    return OFO_INQUIRY_SILENT == result;
}
