/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Work requests that come back with an error. See DESIGN.txt 4 (B5, B10).
 */
#ifndef BTL_OPENIB_FAILED_WORK_H
#define BTL_OPENIB_FAILED_WORK_H

#include "types/btl_openib_types.h"

/* Returns one work request to its owner with an error. Context: progress. */
void ofo_work_failed(ofo_qpset_t *qps, ofo_work_t *work, int status);
/* Returns the silent messages that were posted before `place` with an error; they are lost or delivered. The set has failed, so no
 * thread posts on it. */
void ofo_silent_lost(ofo_qpset_t *qps, unsigned index, uint32_t place);

#endif /* BTL_OPENIB_FAILED_WORK_H */
