/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The sending side of a queue pair, from the post to the answer.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_REQUESTER_H
#define SR_REQUESTER_H

#include "sr_objects.h"

int sr_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* Try the waiting requests of a queue pair. Locks: sq_lock is held. */
void sr_requester_run(struct sr_qp *qp);
/* Drop the connection's cached remote end. Locks: sq_lock is held. */
void sr_requester_forget(struct sr_qp *qp);

#endif /* SR_REQUESTER_H */
