/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The bound of a fence. See DESIGN.txt 10.3.
 */
#ifndef BTL_OPENIB_FENCE_H
#define BTL_OPENIB_FENCE_H

#include "btl_openib_types.h"

void ofo_fence_begin(ofo_qpset_t *qps);
void ofo_fence_extend(ofo_qpset_t *qps);
void ofo_fence_end(ofo_qpset_t *qps);
/* Is the time of a fence over? */
bool ofo_fence_is_due(const ofo_module_t *module);
/* Asks service to end the fences that are overdue. Call it when a poll of all CQs found nothing, or has emptied them. */
void ofo_fence_watch(ofo_module_t *module);
/* Service has destroyed the queue pairs: whatever is still out comes back with an error. Or it could not: the set waits on. The caller
 * has emptied the completion queues. */
void ofo_fence_answered(ofo_module_t *module, ofo_qpset_t *qps, bool is_destroyed);

#endif /* BTL_OPENIB_FENCE_H */
