/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails that wait to be opened. Making queue pairs takes long, so service makes the queue pairs of one rail at a time and
 * reads datagrams in between. A rail that waits has no timer. Everything here runs on the service thread of the rail's
 * module. See DESIGN.txt 15.3.
 */
#include "btl_openib_open.h"

#include "btl_openib_atomic.h"
#include "btl_openib_ctl.h"
#include "btl_openib_rail.h"

/* First contacts of ours that wait for the peer's answer. Requests of peers have no such bound: two processes whose
 * first contacts fill the bound would wait for each other. */
enum { OPENING_MOST = 16 };

static void append(ofo_open_queue_t *queue, ofo_endpoint_t *ep, bool asked)
{
    ofo_endpoint_t **next = asked ? &ep->next_asked : &ep->next_wanted;

    *next = NULL;
    if (NULL == queue->first) {
        queue->first = ep;
    } else if (asked) {
        queue->last->next_asked = ep;
    } else {
        queue->last->next_wanted = ep;
    }
    queue->last = ep;
}

/* A post wants the rail. */
static void post(ofo_endpoint_t *ep)
{
    ofo_rail_event(ep, OFO_EV_POST, NULL);
    if (OFO_LOAD(ep->peer->declared)) {
        ofo_rail_event(ep, OFO_EV_PEERDEAD, NULL); /* its letter was faster: what was posted comes back */
    }
}

void ofo_open_want(ofo_endpoint_t *ep)
{
    if (OFO_ST_CLOSED != ep->fsm.state) {
        post(ep);
    } else if (!ep->is_wanted) {
        ep->is_wanted = true;
        append(&ep->module->wanted, ep, false);
    }
}

void ofo_open_ask(ofo_endpoint_t *ep, const ofo_ctl_t *req)
{
    bool others = NULL != ep->module->asked.first;

    ep->request = *req;
    if (!ep->is_asked) {
        ep->is_asked = true;
        append(&ep->module->asked, ep, true);
    }
    if (others) { /* the peer must not take our backlog for silence */
        ofo_ctl_t busy = {.type = OFO_CTL_REJ, .rail = ep->rail, .gen = req->gen, .reason = OFO_REJ_BUSY};
        ofo_ctl_send(ep, &busy);
    }
}

/* Some were opened by the peer's request in the meantime. */
static void skip_opened(ofo_open_queue_t *wanted)
{
    while (NULL != wanted->first && OFO_ST_CLOSED != wanted->first->fsm.state) {
        ofo_endpoint_t *ep = wanted->first;
        wanted->first = ep->next_wanted;
        ep->is_wanted = false;
        post(ep);
    }
}

bool ofo_open_due(ofo_module_t *module)
{
    return NULL != module->asked.first || (NULL != module->wanted.first && OPENING_MOST > module->opening);
}

/* Requests go first: a peer waits for the answer. */
void ofo_open_next(ofo_module_t *module)
{
    ofo_endpoint_t *ep = module->asked.first;

    skip_opened(&module->wanted);
    if (NULL != ep) {
        module->asked.first = ep->next_asked;
        ep->is_asked = false;
        ofo_rail_asked(ep, &ep->request);
    } else if (ofo_open_due(module)) {
        ep = module->wanted.first;
        module->wanted.first = ep->next_wanted;
        ep->is_wanted = false;
        post(ep);
    }
}
