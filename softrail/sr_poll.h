/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Polling of a completion queue.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_POLL_H
#define SR_POLL_H

#include "sr_objects.h"

/* Returns how many completions were written to `wc`. */
int sr_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);

#endif /* SR_POLL_H */
