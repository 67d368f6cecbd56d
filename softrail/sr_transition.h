/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which change of state a queue pair allows, and with which attributes.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_TRANSITION_H
#define SR_TRANSITION_H

#include "sr_objects.h"

/* Is (from -> to) legal for this type with exactly these attributes? Returns 0 or EINVAL. */
int sr_transition_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

#endif /* SR_TRANSITION_H */
