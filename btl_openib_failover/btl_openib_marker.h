/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Has all work of a set come back? See DESIGN.txt 10.3.
 */
#ifndef BTL_OPENIB_MARKER_H
#define BTL_OPENIB_MARKER_H

#include "btl_openib_types.h"

/* Posts the marker of each queue pair that may have its marker now. Context: progress. */
void ofo_markers_post(ofo_qpset_t *qps);
/* Nothing of the set is still to come. */
bool ofo_set_is_drained(const ofo_qpset_t *qps);
/* Something of the set came back: raises DRAINED if it was the last. The set may be service's then. Context: progress. */
void ofo_drain_check(ofo_qpset_t *qps);

#endif /* BTL_OPENIB_MARKER_H */
