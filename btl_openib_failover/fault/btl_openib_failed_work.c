/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Work requests that come back with an error: the set gets its slots, buffers and marks back, and every descriptor goes to its owner.
 * Context: progress. See DESIGN.txt 4 (B5, B10).
 */
#include "fault/btl_openib_failed_work.h"

#include "bfo_assert.h"
#include "out/btl_openib_complete.h"
#include "qp/btl_openib_marker.h"
#include "out/btl_openib_rdma.h"
#include "out/btl_openib_silent.h"
#include "device/btl_openib_srq.h"

static void send_failed(ofo_work_t *work, int status)
{
    ofo_frag_t *frag = (ofo_frag_t *) ((uint8_t *) work - offsetof(ofo_frag_t, work));

    if (frag->is_silent) {
        ofo_silent_forget(work->qps, work->qp, frag);
    }
    BFO_ASSERT(work->qps->qp[work->qp].sq_free < work->qps->qp[work->qp].sq_slots);
    ++work->qps->qp[work->qp].sq_free; /* no lock: no thread posts on a failed set */
    ofo_send_complete(frag, status);
}

void ofo_work_failed(ofo_qpset_t *qps, ofo_work_t *work, int status)
{
    BFO_ASSERT(NULL == work->qps || qps == work->qps); /* the set that it was posted on */
    BFO_ASSERT(work->qp < (NULL == work->qps ? OFO_MAX_QPS : qps->nqp));
    switch (work->kind) {
    case OFO_WORK_SEND:
        send_failed(work, status);
        break;
    case OFO_WORK_RDMA:
        BFO_ASSERT(qps->qp[work->qp].sq_free < qps->qp[work->qp].sq_slots);
        ++qps->qp[work->qp].sq_free;
        ofo_rdma_part_done((ofo_rdma_t *) ((uint8_t *) work - offsetof(ofo_rdma_t, work)), status);
        break;
    case OFO_WORK_RECV:
        if (NULL != work->qps) {
            BFO_ASSERT(0 < qps->qp[work->qp].recv_posted || ofo_drain_is_over(&qps->drain));
            --qps->qp[work->qp].recv_posted;
        } else { /* the buffer belongs to the module */
            ofo_srq_return(qps->ep->module->srq[work->qp], (ofo_recv_t *) ((uint8_t *) work - offsetof(ofo_recv_t, work)));
        }
        break;
    case OFO_WORK_RETURN:
        BFO_ASSERT(qps->qp[work->qp].is_returning || ofo_drain_is_over(&qps->drain));
        qps->qp[work->qp].is_returning = false;
        break;
    case OFO_WORK_ALIVE:
        BFO_ASSERT(qps->is_asking || ofo_drain_is_over(&qps->drain));
        qps->is_asking = false;
        break;
    case OFO_WORK_MARKER:
        ofo_marker_returned(&qps->qp[work->qp]);
        break;
    default:
        break;
    }
}

void ofo_silent_lost(ofo_qpset_t *qps, unsigned index, uint32_t place)
{
    ofo_frag_t *frag;

    while (NULL != (frag = qps->qp[index].silent) && 0 > (int32_t) (frag->place - place)) {
        BFO_ASSERT(frag->is_silent && qps == frag->work.qps && index == frag->work.qp);
        ofo_work_failed(qps, &frag->work, OPAL_ERROR); /* takes it off the list */
    }
}
