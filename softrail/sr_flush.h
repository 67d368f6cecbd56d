/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The error state of a queue pair.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_FLUSH_H
#define SR_FLUSH_H

#include "sr_objects.h"

/* Put the queue pair in error and flush it. Locks: sq_lock is held. */
void sr_qp_fail(struct sr_qp *qp);
/* Flush the posted receives. Those that find no room in the CQ are flushed when the CQ is polled. Locks: sr_qp_flush_receives takes the
 * lock of the receive queue; for _locked it is held. */
void sr_qp_flush_receives(struct sr_qp *qp);
void sr_qp_flush_receives_locked(struct sr_qp *qp);

#endif /* SR_FLUSH_H */
