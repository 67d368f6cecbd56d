/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Completion queues.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_CQ_H
#define SR_CQ_H

#include "sr_objects.h"

struct ibv_cq *sr_cq_create(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *channel, int vector);
int sr_cq_destroy(struct ibv_cq *cq);
int sr_cq_resize(struct ibv_cq *cq, int entries);
int sr_cq_arm(struct ibv_cq *cq, int solicited_only);
/* Add a receive completion to a CQ of `peer` and wake the process that armed it. False if the CQ is full. */
bool sr_cq_push(struct sr_peer *peer, uint64_t offset, const struct sr_cqe *cqe, bool solicited);
bool sr_cq_has_room(struct sr_peer *peer, uint64_t offset);
void sr_cq_wake(struct sr_peer *peer, struct sr_cq_shm *shm, bool solicited);

#endif /* SR_CQ_H */
