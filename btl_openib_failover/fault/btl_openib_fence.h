/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The time limit of a fence. See DESIGN.txt 10.3.
 */
#ifndef BTL_OPENIB_FENCE_H
#define BTL_OPENIB_FENCE_H

#include "types/btl_openib_types.h"

/* The time limit starts, starts again, ends. */
void ofo_fence_begin(ofo_qpset_t *qps);
void ofo_fence_extend(ofo_qpset_t *qps);
void ofo_fence_end(ofo_qpset_t *qps);
/* Counts this look at the module's fences: a process without a core, or outside of MPI, sees no completions, and such time is not counted.
 * Returns true if the time of a fence is over. Context: each progress call while a fence runs. */
bool ofo_fence_look(ofo_module_t *module);
/* Asks service to end the fences that are overdue. The caller has just polled all CQs and found nothing, or has emptied them. */
void ofo_fence_watch(ofo_module_t *module);
/* Takes service's answer. If service has destroyed the queue pairs, all work that is still out returns with an error; otherwise the set
 * goes on waiting. The caller has emptied the completion queues. */
void ofo_fence_answered(ofo_module_t *module, ofo_qpset_t *qps, bool is_destroyed);

#endif /* BTL_OPENIB_FENCE_H */
