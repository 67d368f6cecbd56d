/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the fault plan does to a request or a call.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_INJECTOR_H
#define SR_INJECTOR_H

#include "sr_objects.h"

/* Is a fault plan in force? */
static inline bool sr_faults_planned(void)
{
    return 0 != atomic_load_explicit(&sr.fabric.shm->plan.count, memory_order_relaxed);
}
/* Decide what the plan does to this request; local memory is resolved. Returns 0, or ENOMEM for the post. */
int sr_faults_decide(struct sr_qp *qp, struct sr_wqe *wqe);
/* Does the plan refuse this call (SR_CALL_*)? If the plan makes the call slow, this function sleeps. Locks: none may be held. */
bool sr_faults_refuse(unsigned rail, uint32_t call);

#endif /* SR_INJECTOR_H */
