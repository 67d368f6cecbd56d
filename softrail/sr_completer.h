/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Completions of sends.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_COMPLETER_H
#define SR_COMPLETER_H

#include "sr_objects.h"

/* Adds the completion of a send work request that has ended, if it gets one. Locks: sq_lock is held. */
void sr_complete_send(struct sr_qp *qp, const struct sr_wqe *wqe, enum ibv_wc_status status);

#endif /* SR_COMPLETER_H */
