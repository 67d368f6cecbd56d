/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The completer: a send work request that has ended becomes a completion in a ring of this process. DESIGN.txt 16.
 */
#include "sr_completer.h"
#include "sr_cq.h"
#include "sr_device.h"
#include "sr_opcode.h"

#include <stdlib.h>

/* Doubles the ring of send completions. Locks: cq->lock held. */
static bool local_grow(struct sr_cq *cq)
{
    uint32_t room = 0 == cq->local_room ? 64 : 2 * cq->local_room;
    struct sr_local_wc *grown = malloc(room * sizeof(*grown));
    uint32_t tail = atomic_load(&cq->local_tail), n = tail - cq->local_head;

    if (NULL == grown) {
        return false;
    }
    for (uint32_t i = 0; i < n; ++i) {
        grown[i] = cq->local[(cq->local_head + i) & (cq->local_room - 1)];
    }
    free(cq->local);
    cq->local = grown;
    cq->local_room = room;
    cq->local_head = 0;
    atomic_store(&cq->local_tail, n);
    return true;
}

void sr_complete_send(struct sr_qp *qp, const struct sr_wqe *wqe, enum ibv_wc_status status)
{
    struct sr_cq *cq = qp->send_cq;
    uint32_t tail;

    if (IBV_WC_SUCCESS == status && !qp->init.sq_sig_all && 0 == (wqe->flags & IBV_SEND_SIGNALED)) {
        return;
    }
    if (sr_unlikely(IBV_WC_WR_FLUSH_ERR == status) && sr_habit(SR_FABRIC_FLUSH_HEAD) && !qp->init.sq_sig_all
        && 0 == (wqe->flags & IBV_SEND_SIGNALED)) {
        return;
    }
    pthread_mutex_lock(&cq->lock);
    tail = atomic_load_explicit(&cq->local_tail, memory_order_relaxed);
    if (sr_unlikely(tail - cq->local_head == cq->local_room) && !local_grow(cq)) {
        static _Atomic bool said;
        sr_say_once(&said, "out of memory for completions; one was lost");
        pthread_mutex_unlock(&cq->lock);
        return;
    }
    tail = atomic_load_explicit(&cq->local_tail, memory_order_relaxed);
    cq->local[tail & (cq->local_room - 1)] = (struct sr_local_wc){
        .wr_id = wqe->wr_id,
        .qpn = qp->ibv.qp_num,
        .byte_len = wqe->length,
        .sq_position = wqe->position,
        .behind = IBV_WC_SUCCESS == status ? 0 : __atomic_load_n(&cq->shm->produced, __ATOMIC_RELAXED),
        .epoch = qp->shm->epoch,
        .status = (uint8_t) status,
        .opcode = sr_opcode(wqe->opcode)->wc};
    atomic_store_explicit(&cq->local_tail, tail + 1, memory_order_release);
    pthread_mutex_unlock(&cq->lock);
    if (NULL != cq->ibv.channel) {
        sr_cq_wake(sr.self, cq->shm, IBV_WC_SUCCESS != status);
    }
}
