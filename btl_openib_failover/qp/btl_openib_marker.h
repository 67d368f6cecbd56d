/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Has all work of a set come back? See DESIGN.txt 10.3.
 */
#ifndef BTL_OPENIB_MARKER_H
#define BTL_OPENIB_MARKER_H

#include "bfo_assert.h"
#include "types/btl_openib_types.h"

/* Posts the marker of each queue pair that is ready for it. Context: progress. */
void ofo_markers_post(ofo_qpset_t *qps);
/* The marker's completion came, with an error as always. */
static inline void ofo_marker_returned(ofo_qp_t *qp)
{
    BFO_ASSERT(OFO_MARKER_OUT == qp->marker_state); /* it was posted, and comes back once */
    qp->marker_state = OFO_MARKER_BACK;
}
/* The completion queues are empty. True if the adapter refused the queue pair's marker; the empty queues take its place then. */
static inline bool ofo_marker_take_refused(ofo_qp_t *qp)
{
    const bool is_refused = OFO_MARKER_REFUSED == qp->marker_state;

    if (is_refused) {
        qp->marker_state = OFO_MARKER_BACK;
    }
    return is_refused;
}
/* The queue pair was destroyed, so no completion comes any more, whether the marker was posted or not. */
static inline void ofo_marker_give_up(ofo_qp_t *qp)
{
    qp->marker_state = OFO_MARKER_BACK;
}
/* Has all work of the set come back? */
bool ofo_set_is_drained(const ofo_qpset_t *qps);
/* Work of the set came back: raises DRAINED if no more is out. Service may own the set after that. Context: progress. */
void ofo_drain_check(ofo_qpset_t *qps);

#endif /* BTL_OPENIB_MARKER_H */
