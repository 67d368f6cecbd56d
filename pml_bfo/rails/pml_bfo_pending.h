/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Work that waits for resources of a BTL, in a queue per peer. A lack of resources never aborts anything; the work waits here.
 * DESIGN.txt sections 9 and 14.4.
 */
#ifndef PML_BFO_PENDING_H
#define PML_BFO_PENDING_H

#include "types/pml_bfo.h"

/* Queues work for the peer's rails: progress tries it again with `retry`. The caller has counted the work in the events of its
 * request. False: the work is queued already, and nothing was changed; the caller takes its event back. */
bool bfo_work_queue(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work));

/* As bfo_work_queue(), for work that ends on its rail what has begun there. Progress tries the work while that rail is UP, even if new
 * work waits because all rails stand out by force. */
bool bfo_work_queue_bound(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work));

/* As bfo_work_queue(), for a message that is sent again after an error: the message also waits for bfo_resend_may_go(peer). */
bool bfo_work_queue_resend(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work));
/* Counts one more resend to the peer; false: no more in this call of progress (pml_bfo_resend_burst). */
bool bfo_resend_may_go(bfo_peer_t *peer) BFO_COLD;
/* Empties the queue of a peer that goes: nothing of it is tried again. */
void bfo_work_forget(bfo_peer_t *peer);

/* Progress function: visits each peer with waiting work once, and ends a visit after a bounded number of refusals. Returns
 * the number of pieces of work done. */
int bfo_progress(void);

#endif /* PML_BFO_PENDING_H */
