/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The markers of a fence: the last work request on each queue pair. See DESIGN.txt 10.3.
 */
#include "qp/btl_openib_marker.h"

#include "types/btl_openib_atomic.h"
#include "qp/btl_openib_drain.h"

static bool is_in_error(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    return 0 == ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) && IBV_QPS_ERR == attr.qp_state;
}

/* Posts one more work request after all others. When it comes back, all work before it has come back. Some adapters refuse posts in the
 * error state; ofo_fence_watch() takes the marker's place then. If a marker is refused for another reason nothing is known, and the
 * fence waits until its time limit. */
static void post_marker(ofo_qp_t *qp)
{
    struct ibv_send_wr wr = {.wr_id = (uintptr_t) &qp->marker, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *wrong;

    BFO_ASSERT(OFO_WORK_MARKER == qp->marker.kind && NULL != qp->marker.qps);
    qp->marker_state = 0 != ibv_post_send(qp->qp, &wr, &wrong) && is_in_error(qp->qp) ? OFO_MARKER_REFUSED : OFO_MARKER_OUT;
}

/* A queue pair with a shared queue may take buffers until LAST_WQE_REACHED, so its marker waits for that event. */
void ofo_markers_post(ofo_qpset_t *qps)
{
    BFO_ASSERT(ofo_drain_is_running(&qps->drain)); /* no work is posted after a marker */
    for (unsigned i = 0; i < qps->nqp; ++i) {
        ofo_qp_t *qp = &qps->qp[i];
        if (OFO_MARKER_NONE == qp->marker_state && NULL != qp->qp && (!qp->shared || OFO_LOAD(qp->last_wqe_seen))) {
            post_marker(qp);
        }
    }
}

bool ofo_set_is_drained(const ofo_qpset_t *qps)
{
    for (unsigned i = 0; i < qps->nqp; ++i) {
        const ofo_qp_t *qp = &qps->qp[i];
        BFO_ASSERT(0 <= qp->recv_posted);
        BFO_ASSERT(0 <= qp->sq_free && qp->sq_free <= qp->sq_slots);
        if (OFO_MARKER_BACK != qp->marker_state || 0 < qp->recv_posted || qp->is_returning || qp->sq_free < qp->sq_slots) {
            return false;
        }
    }
    return !qps->is_asking;
}

void ofo_drain_check(ofo_qpset_t *qps)
{
    if (ofo_drain_is_running(&qps->drain) && ofo_set_is_drained(qps)) {
        (void) ofo_drain_raise(qps, OFO_DEV_DRAINED, NULL);
    }
}
