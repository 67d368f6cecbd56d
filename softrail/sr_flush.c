/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The error state of a queue pair, and its flush. The queue pair is put into the error state under its lock. This is the fence:
 * afterwards no peer changes memory through it. DESIGN.txt 16.
 */
#include "sr_completer.h"
#include "sr_cq.h"
#include "sr_event.h"
#include "sr_flush.h"

#include <stdlib.h>

void sr_qp_flush_receives_locked(struct sr_qp *qp)
{
    struct sr_rq_shm *shm = qp->own_rq.shm;
    uint32_t tail = atomic_load(&shm->tail);

    qp->flush_receives = false;
    while (tail != atomic_load(&shm->head)) {
        struct sr_cqe cqe = {.qpn = qp->ibv.qp_num, .wqe = tail, .epoch = qp->shm->epoch, .status = IBV_WC_WR_FLUSH_ERR, .where = SR_CQE_EMPTY};
        if (!sr_cq_push(sr.self, qp->recv_cq->offset, &cqe, true)) {
            qp->flush_receives = true; /* goes on when the CQ is polled */
            return;
        }
        atomic_store(&shm->tail, ++tail);
    }
}

void sr_qp_flush_receives(struct sr_qp *qp)
{
    pthread_mutex_lock(&qp->own_rq.lock);
    sr_qp_flush_receives_locked(qp);
    pthread_mutex_unlock(&qp->own_rq.lock);
}

static void flush_sends(struct sr_qp *qp)
{
    struct sr_wqe *wqe = qp->wait_first;

    qp->wait_first = qp->wait_last = NULL;
    while (NULL != wqe) {
        struct sr_wqe *next = wqe->next;
        sr_complete_send(qp, wqe, IBV_WC_WR_FLUSH_ERR);
        free(wqe->inline_copy);
        free(wqe);
        wqe = next;
    }
}

/* Must the event be raised? Some drivers never raise it, and it may get lost; SR_ENV_LAST_WQE imitates that. */
static bool raises_last_wqe(void)
{
    static atomic_uint raised;
    const char *most = getenv(SR_ENV_LAST_WQE);

    return NULL == most || atomic_fetch_add(&raised, 1) < strtoul(most, NULL, 10);
}

void sr_qp_fail(struct sr_qp *qp)
{
    if (qp->in_error) {
        return;
    }
    __atomic_store_n(&qp->in_error, true, __ATOMIC_SEQ_CST);
    sr_lock(&qp->shm->lock);
    atomic_store(&qp->shm->state, IBV_QPS_ERR);
    sr_unlock(&qp->shm->lock);
    qp->ibv.state = IBV_QPS_ERR;
    flush_sends(qp);
    if (NULL == qp->srq) {
        sr_qp_flush_receives(qp);
    } else if (!qp->last_wqe_sent) {
        qp->last_wqe_sent = true;
        if (raises_last_wqe()) {
            sr_event_send(sr.self, qp->shm->event_fifo, IBV_EVENT_QP_LAST_WQE_REACHED, qp->id);
        }
    }
}
