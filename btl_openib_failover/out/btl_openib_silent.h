/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Messages that ask for no completion. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_SILENT_H
#define BTL_OPENIB_SILENT_H

#include "bfo_assert.h"
#include "types/btl_openib_types.h"

/* May the message be posted without asking for a completion? Only if nobody waits for it and an earlier message has not been reported
 * yet. So many in a row are never silent that a full send queue could hold silent ones alone. Locks: ep->lock held. */
static inline bool ofo_silent_may(const ofo_qp_t *qp, unsigned index, const ofo_frag_t *frag)
{
    return frag->is_sendi && 0 == index && qp->sq_free < qp->sq_slots && qp->silent_run + 1 < (int32_t) OFO.params.completion_interval
           && 2 * (qp->silent_run + 1) < qp->sq_slots;
}
/* Notes the message as posted. Locks: ep->lock, held since ofo_silent_may(). */
static inline void ofo_silent_posted(ofo_qp_t *qp, ofo_frag_t *frag)
{
    BFO_ASSERT(qp->place + 1 == frag->place);
    qp->place = frag->place;
    if (OPAL_LIKELY(!frag->is_silent)) {
        qp->silent_run = 0;
        return;
    }
    ++qp->silent_run;
    BFO_ASSERT(frag->is_sendi && 0 < qp->silent_run);
    frag->next_silent = NULL;
    if (NULL == qp->silent) {
        __atomic_store_n(&qp->silent, frag, __ATOMIC_RELAXED);
    } else {
        BFO_ASSERT(NULL != qp->silent_last && 0 > (int32_t) (qp->silent_last->place - frag->place));
        qp->silent_last->next_silent = frag;
    }
    qp->silent_last = frag;
}
/* The silent messages posted before `place`, or all of the queue pair, have arrived: reports them. Context: progress. */
void ofo_silent_arrived(ofo_qpset_t *qps, unsigned index, uint32_t place);
void ofo_silent_all_arrived(ofo_qpset_t *qps, unsigned index);
/* Takes a silent message off the list, because its own completion came. Locks: takes ep->lock. */
void ofo_silent_forget(ofo_qpset_t *qps, unsigned index, ofo_frag_t *frag);
/* Posts a WRITE whose completion reports the silent messages that have arrived. Locks: takes ep->lock. */
void ofo_silent_ask(ofo_endpoint_t *ep);
/* As ofo_silent_ask(), for a caller that holds ep->lock. */
void ofo_silent_ask_locked(ofo_endpoint_t *ep);
/* ofo_silent_ask() for each endpoint of a module. */
void ofo_silent_ask_all(ofo_module_t *module);

#endif /* BTL_OPENIB_SILENT_H */
