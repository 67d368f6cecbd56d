/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A rail that came back is asked, spread over one more stable time, whether datagrams still pass. When enough questions in a row were
 * answered, the PML hears that short messages may use the rail. Each side asks for itself, because each side chooses the rails of its own
 * messages. See DESIGN.txt 10.2, "Return".
 */
#include "rail/btl_openib_probation.h"

#include "bfo_assert.h"
#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "types/btl_openib_ctl.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "types/btl_openib_timers.h"
#include "formats/btl_openib_wire.h"

enum {
    QUESTIONS = 8, /* so many in a row must be answered */
    DEAF = 4,      /* a peer that answered none of the first so many does not know the question; with the doubled waits: two stable times */
    MISSES = 10    /* so many questions may go without an answer, then service stops asking, and only long messages end the probation */
};

/* The time between two questions. */
static uint32_t pause_ms(void)
{
    const uint32_t part = OFO.params.rejoin_after / QUESTIONS;

    return 0 == part ? 1 : part;
}

static void next_at(ofo_endpoint_t *ep, uint64_t at)
{
    ep->probation.at = at;
    ofo_timers_add(ep);
}

/* The number goes on, because an answer from the last probation may still arrive. */
void ofo_probation_follow(ofo_endpoint_t *ep)
{
    ep->probation = (ofo_probation_t){.number = ep->probation.number};
    if (OFO_ST_UP == ep->fsm.state && 0 < ep->fsm.gen && NULL != ep->module->ext.rail_trusted) {
        ep->probation.wait = pause_ms();
        next_at(ep, ofo_now_ms() + ep->probation.wait);
    }
}

static void trust(ofo_endpoint_t *ep, const char *why)
{
    BFO_ASSERT(OFO_ST_UP == ep->fsm.state && 0 < ep->fsm.gen); /* the first generation has no probation */
    ep->probation.at = 0;
    ofo_log(1, "%s: rail %u to %u gen %u: its probation ends, because %s", ep->module->name, ep->rail, ep->peer->name.vpid, ep->fsm.gen, why);
    ofo_tell_progress(ep->module, OFO_MAIL_TRUSTED, ep, ep->fsm.gen, NULL, NULL);
}

/* The waits double, so that a peer that is stopped for a while does not use up the questions. True: service goes on asking. */
static bool may_miss(ofo_endpoint_t *ep)
{
    ofo_probation_t *p = &ep->probation;

    BFO_ASSERT(p->is_out && p->missed < MISSES);
    p->answered = 0;
    p->wait *= 2;
    ++p->missed;
    if (DEAF <= p->missed && !p->was_answered) {
        trust(ep, "the peer does not know the questions");
        return false;
    }
    if (MISSES <= p->missed) {
        p->at = 0;
        ofo_log(1, "%s: rail %u to %u gen %u: too many questions of its probation were not answered", ep->module->name, ep->rail, ep->peer->name.vpid,
                ep->fsm.gen);
        return false;
    }
    return true;
}

static void ask(ofo_endpoint_t *ep, uint64_t now)
{
    ofo_ctl_t probe = {.type = OFO_CTL_PROBE, .flags = OFO_CTL_PROBATION, .rail = ep->rail, .gen = ep->fsm.gen, .about = ep->rail};

    probe.number = ++ep->probation.number;
    ep->probation.is_out = true;
    next_at(ep, now + ep->probation.wait);
    ofo_ctl_send(ep, &probe);
}

void ofo_probation_timer(ofo_endpoint_t *ep, uint64_t now)
{
    ofo_probation_t *p = &ep->probation;

    if (0 == p->at || now < p->at) {
        return;
    }
    BFO_ASSERT(OFO_ST_UP == ep->fsm.state);
    if (OFO_LOAD(OFO.closing) || OFO_LOAD(ep->peer->closing) || OFO_LOAD(ep->peer->declared)) {
        p->at = 0;
    } else if (!ofo_ctl_has_room(ep->module)) {
        p->at = now + 1;
    } else if (!p->is_out || may_miss(ep)) {
        ask(ep, now);
    }
}

void ofo_probation_answer(ofo_endpoint_t *ep, const ofo_ctl_t *answer)
{
    ofo_probation_t *p = &ep->probation;

    if (0 == p->at || !p->is_out || answer->number != p->number || answer->gen != ep->fsm.gen) {
        return;
    }
    BFO_ASSERT(p->answered < QUESTIONS); /* the last one ended the probation */
    p->is_out = false;
    p->was_answered = true;
    p->wait = pause_ms();
    if (QUESTIONS <= ++p->answered) {
        trust(ep, "its questions were answered");
    } else {
        next_at(ep, ofo_now_ms() + p->wait);
    }
}
