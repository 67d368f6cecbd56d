/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The queue pairs of this process.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_QP_TABLE_H
#define SR_QP_TABLE_H

#include "sr_objects.h"

void sr_qp_table_add(struct sr_qp *qp);
/* Removes the queue pair. Afterwards no thread that polls uses it any more. */
void sr_qp_table_remove(struct sr_qp *qp);
/* The queue pair of this number, or NULL. */
struct sr_qp *sr_qp_find(uint32_t qpn);
/* Call fn for each queue pair of this process. */
void sr_qp_each(void (*fn)(struct sr_qp *qp, void *arg), void *arg);
/* Wait until no peer is in the middle of a transfer whose keys it checked before this call. */
void sr_qp_wait_transfers(void);
/* After fork: the child forgets the objects of its parent. */
void sr_qp_table_reset(void);

#endif /* SR_QP_TABLE_H */
