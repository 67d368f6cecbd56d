/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Silent messages: small ones that ask for no completion, because nobody waits for them. A queue pair completes in order, so
 * all messages posted before one that completes with success were successes too. Not every adapter reports each flushed
 * request. Therefore a bad completion says nothing about the silent messages before it: they were lost or delivered. Each
 * message stays in its queue pair's list until something posted after it completes. Context: progress, except for the posts.
 * See DESIGN.txt 4 (B5) and 15.4.
 */
#include "out/btl_openib_silent.h"

#include "types/btl_openib_atomic.h"
#include "out/btl_openib_complete.h"
#include "types/btl_openib_endpoints.h"
#include "out/btl_openib_keepalive.h"

/* Frees messages that arrived. They were posted by sendi, so they need no callback. The caller took the list under the lock. */
static void report(ofo_qpset_t *qps, ofo_frag_t *frag)
{
    while (NULL != frag) {
        ofo_frag_t *next = frag->next_silent;
        ofo_send_count(qps, frag);
        BFO_ASSERT(frag->is_silent && qps == frag->work.qps);
        frag->work.qps = NULL;
        opal_free_list_return(frag->list, &frag->base.super);
        frag = next;
    }
}

/* Takes the first `count` messages off the list. Locks: ep->lock held. */
static ofo_frag_t *take(ofo_qpset_t *qps, ofo_qp_t *qp, uint32_t count)
{
    ofo_frag_t *first = qp->silent, *last = NULL, *rest = first;
    uint32_t messages = 0;

    for (uint32_t i = 0; i < count; ++i) {
        BFO_ASSERT(NULL != rest);
        last = rest;
        messages += ofo_send_messages(last);
        rest = rest->next_silent;
    }
    if (NULL == last) {
        return NULL;
    }
    last->next_silent = NULL;
    qp->silent = rest;
    BFO_ASSERT(qp->sq_free + (int32_t) count <= qp->sq_slots);
    BFO_ASSERT(messages <= qps->ep->sends_out);
    BFO_ASSERT(NULL == rest || 0 > (int32_t) (last->place - rest->place));
    qp->sq_free += (int32_t) count;
    qps->ep->sends_out -= messages;
    return first;
}

void ofo_silent_arrived(ofo_qpset_t *qps, unsigned index, uint32_t place)
{
    ofo_qp_t *qp = &qps->qp[index];
    ofo_endpoint_t *ep = qps->ep;
    ofo_frag_t *arrived;
    uint32_t count = 0;

    OPAL_THREAD_LOCK(&ep->lock);
    for (ofo_frag_t *frag = qp->silent; NULL != frag && 0 > (int32_t) (frag->place - place); frag = frag->next_silent) {
        ++count;
    }
    arrived = take(qps, qp, count);
    OPAL_THREAD_UNLOCK(&ep->lock);
    report(qps, arrived);
}

void ofo_silent_all_arrived(ofo_qpset_t *qps, unsigned index)
{
    ofo_silent_arrived(qps, index, qps->qp[index].place + 1);
}

void ofo_silent_forget(ofo_qpset_t *qps, unsigned index, ofo_frag_t *frag)
{
    ofo_qp_t *qp = &qps->qp[index];
    ofo_frag_t **at = &qp->silent;

    OPAL_THREAD_LOCK(&qps->ep->lock);
    while (NULL != *at && frag != *at) {
        at = &(*at)->next_silent;
    }
    if (NULL != *at) {
        *at = frag->next_silent;
        BFO_ASSERT(frag->is_silent);
        if (frag == qp->silent_last) {
            qp->silent_last = NULL; /* no message is posted on a failed set any more */
        }
    }
    OPAL_THREAD_UNLOCK(&qps->ep->lock);
}

/* Posts a WRITE after all silent messages. */
void ofo_silent_ask_locked(ofo_endpoint_t *ep)
{
    ofo_qpset_t *qps = ep->qps;

    if (OFO_GATE_UP == ep->gate && NULL != qps && ofo_drain_is_live(&qps->drain) && NULL != qps->qp[0].silent && !qps->is_asking) {
        ofo_keepalive_post(ep, qps);
    }
}

void ofo_silent_ask(ofo_endpoint_t *ep)
{
    OPAL_THREAD_LOCK(&ep->lock);
    ofo_silent_ask_locked(ep);
    OPAL_THREAD_UNLOCK(&ep->lock);
}

void ofo_silent_ask_all(ofo_module_t *module)
{
    ofo_for_each_endpoint(module, ofo_silent_ask_locked);
}
