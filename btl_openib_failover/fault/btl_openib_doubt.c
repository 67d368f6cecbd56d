/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A port that is down puts its rails in doubt. Such a rail goes on, and ends only after another rail to the same peer has answered:
 * a WRITE of one byte, posted after the port's event, completed with success. If the two sides lose different ports at the same
 * moment, both get no answer, and neither ends the rail that the other side relies on. Context: progress. See DESIGN.txt 10.2.
 */
#include "fault/btl_openib_doubt.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_endpoints.h"
#include "out/btl_openib_keepalive.h"
#include "types/btl_openib_mail.h"

/* Locks: ep->lock held, but not that of `other`. */
static bool may_answer(const ofo_endpoint_t *ep, const ofo_endpoint_t *other)
{
    return other != ep && OFO_LOAD(other->module->port_up) && OFO_GATE_UP == OFO_LOAD(other->gate) && ofo_keepalive_may_ask(other->peer);
}

bool ofo_doubt_begin(ofo_endpoint_t *ep)
{
    for (unsigned i = 0; i < ep->peer->rail_count && !ep->doubted; ++i) {
        if (may_answer(ep, ep->peer->rail[i])) {
            OFO_STORE(ep->doubted, true);
        }
    }
    return ep->doubted;
}

static bool is_needed(const ofo_endpoint_t *ep)
{
    for (unsigned i = 0; i < ep->peer->rail_count; ++i) {
        if (OFO_LOAD(ep->peer->rail[i]->doubted)) {
            return may_answer(NULL, ep);
        }
    }
    return false;
}

/* A WRITE that is in flight already may have been answered before the port's event. Then one more follows it. Locks: ep->lock held. */
void ofo_doubt_ask_over(ofo_endpoint_t *ep)
{
    ofo_qpset_t *qps = ep->qps;

    if (!is_needed(ep) || NULL == qps || !ofo_drain_is_live(&qps->drain)) {
        return;
    }
    for (unsigned i = 0; i < ep->peer->rail_count; ++i) {
        ep->asked_downs[i] = (uint16_t) OFO_LOAD(ep->peer->rail[i]->module->downs);
    }
    ep->answer = qps->is_asking ? OFO_ANSWER_WANTED : OFO_ANSWER_ASKED;
    if (!qps->is_asking) {
        ofo_keepalive_post(ep, qps);
    }
}

void ofo_doubt_ask(const ofo_module_t *module)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        __atomic_store_n(&OFO.module[i]->idle_polls, 0, __ATOMIC_RELAXED); /* the answer and its letter must not wait until an idle port is polled */
        if (module != OFO.module[i]) {
            ofo_for_each_endpoint(OFO.module[i], ofo_doubt_ask_over);
        }
    }
}

void ofo_doubt_answered(ofo_endpoint_t *ep)
{
    const ofo_answer_t answer = ep->answer;

    ep->answer = OFO_ANSWER_NONE;
    if (OFO_ANSWER_WANTED == answer) {
        ofo_doubt_ask_over(ep);
    }
    for (unsigned i = 0; i < ep->peer->rail_count && OFO_ANSWER_ASKED == answer; ++i) {
        ofo_endpoint_t *other = ep->peer->rail[i];
        if (OFO_LOAD(other->doubted)) {
            ofo_tell_progress(other->module, OFO_MAIL_ANSWERED, other, ep->asked_downs[i], NULL, NULL);
        }
    }
}
