/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Queue pairs: creation, attributes and state, receives.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_QP_H
#define SR_QP_H

#include "sr_objects.h"

struct ibv_qp *sr_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int sr_qp_destroy(struct ibv_qp *qp);
int sr_qp_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int sr_qp_query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init);
int sr_qp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif /* SR_QP_H */
