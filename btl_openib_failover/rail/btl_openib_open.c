/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails that wait to be opened. It takes long to make queue pairs, so service makes those of one rail at a time and reads
 * datagrams in between. A rail that waits has no timer. Everything here runs on the service thread of the rail's module.
 * See DESIGN.txt 15.3.
 */
#include "rail/btl_openib_open.h"

#include "types/btl_openib_atomic.h"
#include "rail/btl_openib_rail.h"
#include "rail/btl_openib_turns.h"

/* The most first contacts of ours that wait for the peer's answer. Requests of peers have no such limit. Otherwise two
 * processes whose own first contacts reach the limit would wait for each other. */
enum { OPENING_MOST = 16 };

static void post(ofo_endpoint_t *ep)
{
    if (ep->rejoin.is_answered) {
        ofo_rail_rejoin(ep);
        return;
    }
    ofo_rail_event(ep, OFO_EV_POST, NULL);
    if (OFO_LOAD(ep->peer->declared)) {
        ofo_rail_event(ep, OFO_EV_PEERDEAD, NULL); /* DECLARE came before this letter: the posted messages are returned */
    }
}

void ofo_open_want(ofo_endpoint_t *ep)
{
    if (OFO_ST_CLOSED != ep->fsm.state) {
        post(ep);
    } else {
        ofo_turn_want(ep);
    }
}

bool ofo_open_due(ofo_module_t *module)
{
    return NULL != module->asked.first || (NULL != module->wanted.first && OPENING_MOST > module->opening);
}

/* Does the rail still wait? The peer's request may have opened it meanwhile. */
static bool waits(const ofo_endpoint_t *ep)
{
    return OFO_ST_CLOSED == ep->fsm.state || ep->rejoin.is_answered;
}

/* Requests of peers go first, because a peer waits for the answer. */
void ofo_open_next(ofo_module_t *module)
{
    ofo_endpoint_t *ep;

    while (NULL != module->wanted.first && !waits(module->wanted.first)) {
        post(ofo_turn_take_wanted(module));
    }
    ep = ofo_turn_take_asked(module);
    if (NULL != ep) {
        ofo_rail_asked(ep, &ep->request);
    } else if (ofo_open_due(module)) {
        post(ofo_turn_take_wanted(module));
    }
}
