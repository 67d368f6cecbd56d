/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Receive buffers. Each has a work request of its own that all its posts use. See DESIGN.txt 15.4.
 */
#include "device/btl_openib_buffers.h"

void ofo_recv_init(ofo_recv_t *recv, ofo_qpset_t *qps, unsigned index, void *buffer, uint32_t size, uint32_t lkey)
{
    recv->work = (ofo_work_t){.kind = OFO_WORK_RECV, .qp = (uint8_t) index, .qps = qps};
    recv->sge = (struct ibv_sge){.addr = (uintptr_t) buffer, .length = size, .lkey = lkey};
    recv->wr = (struct ibv_recv_wr){.wr_id = (uintptr_t) &recv->work, .sg_list = &recv->sge, .num_sge = 1};
}

uint32_t ofo_recv_post_chain(ofo_recv_chain_t *chain, struct ibv_qp *qp, struct ibv_srq *srq)
{
    struct ibv_recv_wr *wr = &chain->first->wr, *wrong = NULL;
    uint32_t taken = chain->count;
    int rc = NULL != srq ? ibv_post_srq_recv(srq, wr, &wrong) : ibv_post_recv(qp, wr, &wrong);

    BFO_ASSERT(0 < taken && (NULL == qp) != (NULL == srq));
    chain->count = 0;
    if (OPAL_UNLIKELY(0 != rc)) {
        chain->first = (ofo_recv_t *) ((uint8_t *) (NULL != wrong ? wrong : wr) - offsetof(ofo_recv_t, wr));
        for (wr = &chain->first->wr; NULL != wr; wr = wr->next) {
            ++chain->count;
        }
    }
    BFO_ASSERT(chain->count <= taken);
    return taken - chain->count;
}
