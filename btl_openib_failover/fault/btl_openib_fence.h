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
/* Is the time of one of the module's fences over? */
bool ofo_fence_is_due(const ofo_module_t *module);
/* Asks service to end the fences that are overdue. The caller has just polled all CQs and found nothing, or has emptied them. */
void ofo_fence_watch(ofo_module_t *module);
/* Takes service's answer. If service has destroyed the queue pairs, all work that is still out returns with an error; otherwise the set
 * goes on waiting. The caller has emptied the completion queues. */
void ofo_fence_answered(ofo_module_t *module, ofo_qpset_t *qps, bool is_destroyed);

#endif /* BTL_OPENIB_FENCE_H */
