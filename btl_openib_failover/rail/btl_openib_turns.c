/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails that wait for their turn. A rail is in each queue at most once. See DESIGN.txt 15.3.
 */
#include "rail/btl_openib_turns.h"

#include "types/btl_openib_ctl.h"

#include "bfo_assert.h"

static void append(ofo_open_queue_t *queue, ofo_endpoint_t *ep, bool asked)
{
    ofo_endpoint_t **next = asked ? &ep->next_asked : &ep->next_wanted;

    BFO_ASSERT(NULL == queue->first || ep != queue->last); /* a rail is in the queue once */
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

void ofo_turn_ask(ofo_endpoint_t *ep, const ofo_ctl_t *req)
{
    bool others = NULL != ep->module->asked.first;

    ep->request = *req;
    if (!ep->is_asked) {
        ep->is_asked = true;
        append(&ep->module->asked, ep, true);
    }
    if (others) { /* so that the peer does not take our backlog for silence */
        ofo_ctl_t busy = {.type = OFO_CTL_REJ, .rail = ep->rail, .gen = req->gen, .reason = OFO_REJ_BUSY};
        ofo_ctl_send(ep, &busy);
    }
}

void ofo_turn_want(ofo_endpoint_t *ep)
{
    if (!ep->is_wanted) {
        ep->is_wanted = true;
        append(&ep->module->wanted, ep, false);
    }
}

ofo_endpoint_t *ofo_turn_take_asked(ofo_module_t *module)
{
    ofo_endpoint_t *ep = module->asked.first;

    if (NULL != ep) {
        BFO_ASSERT(ep->is_asked && module == ep->module);
        BFO_ASSERT((NULL == ep->next_asked) == (ep == module->asked.last));
        module->asked.first = ep->next_asked;
        ep->is_asked = false;
    }
    return ep;
}

ofo_endpoint_t *ofo_turn_take_wanted(ofo_module_t *module)
{
    ofo_endpoint_t *ep = module->wanted.first;

    if (NULL != ep) {
        BFO_ASSERT(ep->is_wanted && module == ep->module);
        BFO_ASSERT((NULL == ep->next_wanted) == (ep == module->wanted.last));
        module->wanted.first = ep->next_wanted;
        ep->is_wanted = false;
    }
    return ep;
}
