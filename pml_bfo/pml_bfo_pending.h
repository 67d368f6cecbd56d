/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Work that waits for resources of a BTL, in a queue for each peer. Nothing aborts for lack of resources: it waits here.
 * DESIGN.txt sections 9 and 14.4.
 */
#ifndef PML_BFO_PENDING_H
#define PML_BFO_PENDING_H

#include "pml_bfo.h"

/* Work that waits for the peer's rails: progress tries it again with `retry`. The caller has counted it in the events of its
 * request. False: it waits already, nothing was changed; the caller takes its event back. */
bool bfo_work_queue(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work));

/* The same for what is sent again after an error: it also waits until bfo_resend_may_go(peer). */
bool bfo_work_queue_resend(bfo_peer_t *peer, bfo_work_t *work, int (*retry)(bfo_work_t *work));
/* Counts one more resend to the peer; false: enough for this call of progress (pml_bfo_resend_burst). */
bool bfo_resend_may_go(bfo_peer_t *peer) BFO_COLD;
/* The peer goes: nothing of its queue is tried any more. */
void bfo_work_forget(bfo_peer_t *peer);

/* Progress function: visits each peer with work that waits once, and ends a visit after a bounded number of refusals. Returns
 * how many pieces of work got done. */
int bfo_progress(void);

#endif /* PML_BFO_PENDING_H */
