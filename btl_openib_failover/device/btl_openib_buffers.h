/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Receive buffers of queue pairs and shared queues. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_BUFFERS_H
#define BTL_OPENIB_BUFFERS_H

#include "bfo_assert.h"
#include "formats/btl_openib_qpmap.h"
#include "types/btl_openib_types.h"

/* Fills in a buffer's work request and scatter entry. From then on each post of the buffer uses its `wr` as it is. `qps` is NULL for a
 * buffer of a shared queue. */
void ofo_recv_init(ofo_recv_t *recv, ofo_qpset_t *qps, unsigned index, void *buffer, uint32_t size, uint32_t lkey);
static inline void ofo_recv_collect(ofo_recv_chain_t *chain, ofo_recv_t *recv)
{
    BFO_ASSERT(OFO_WORK_RECV == recv->work.kind);
    BFO_ASSERT(0 == chain->count || (recv != chain->last && NULL == chain->last->wr.next));
    recv->wr.next = NULL;
    if (0 == chain->count) {
        chain->first = recv;
    } else {
        chain->last->wr.next = &recv->wr;
    }
    chain->last = recv;
    ++chain->count;
}
/* Posts the chain to one of the two queues. Returns how many buffers verbs took; those that verbs refused stay in the chain. */
uint32_t ofo_recv_post_chain(ofo_recv_chain_t *chain, struct ibv_qp *qp, struct ibv_srq *srq);
/* The queue pair that a receive came by; NULL if we do not know it. */
static inline ofo_qp_t *ofo_recv_qp(ofo_module_t *module, const ofo_recv_t *recv, uint32_t qpn)
{
    return NULL != recv->work.qps ? &recv->work.qps->qp[recv->work.qp] : ofo_qpmap_find(&module->qpmap, qpn);
}

#endif /* BTL_OPENIB_BUFFERS_H */
