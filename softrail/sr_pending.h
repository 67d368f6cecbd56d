/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Queue pairs whose requests wait.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_PENDING_H
#define SR_PENDING_H

#include "sr_objects.h"

extern _Atomic uint32_t sr_pending_count;
/* The queue pair has waiting requests. Locks: sq_lock is held. */
void sr_pending_add(struct sr_qp *qp);
void sr_pending_remove(struct sr_qp *qp);
/* Try everything that waits. Locks: none may be held. */
void sr_pending_progress(void);
/* The same before the program sleeps until a completion comes: from now on the thread tries in time what waits. Locks: none may be held. */
void sr_pending_hand_over(void);

/* After fork: the child forgets the objects of its parent. */
void sr_pending_reset(void);

#endif /* SR_PENDING_H */
