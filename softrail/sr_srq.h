/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Receive queues, own and shared.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_SRQ_H
#define SR_SRQ_H

#include "sr_objects.h"

int sr_rq_init(struct sr_rq *rq, uint32_t max_wr, uint32_t max_sge, uint32_t pd, bool shared);
void sr_rq_fini(struct sr_rq *rq);
int sr_rq_post(struct sr_rq *rq, struct ibv_recv_wr *wr);
static inline struct sr_wqe_shm *sr_rq_wqe(const struct sr_rq *rq, uint32_t index)
{
    return (struct sr_wqe_shm *) (rq->wqes + (size_t) (index & rq->mask) * rq->stride);
}
/* The completion of this entry was polled, so the entry may be used for another post. */
void sr_rq_release(struct sr_rq *rq, uint32_t index);
struct ibv_srq *sr_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int sr_srq_destroy(struct ibv_srq *srq);
int sr_srq_modify(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int sr_srq_query(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int sr_srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif /* SR_SRQ_H */
