/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The queue pairs of this process, found by number. DESIGN.txt 16.
 */
#include "sr_qp_table.h"

static struct {
    pthread_mutex_t mutex;
    struct sr_qp *first;
    _Atomic(struct sr_qp *) by_index[SR_MAX_QPS];
} qps = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct sr_qp *sr_qp_find(uint32_t qpn)
{
    struct sr_qp *qp = atomic_load_explicit(&qps.by_index[SR_QPN_INDEX(qpn)], memory_order_acquire);

    return NULL != qp && qpn == qp->ibv.qp_num ? qp : NULL;
}

void sr_qp_each(void (*fn)(struct sr_qp *qp, void *arg), void *arg)
{
    pthread_mutex_lock(&qps.mutex);
    for (struct sr_qp *qp = qps.first; NULL != qp; qp = qp->next) {
        fn(qp, arg);
    }
    pthread_mutex_unlock(&qps.mutex);
}

static void wait_transfer(struct sr_qp *qp, void *arg)
{
    (void) arg;
    sr_lock_wait(&qp->shm->lock);
}

void sr_qp_wait_transfers(void)
{
    sr_qp_each(wait_transfer, NULL);
}

void sr_qp_table_add(struct sr_qp *qp)
{
    pthread_mutex_lock(&qps.mutex);
    qp->next = qps.first;
    qps.first = qp;
    pthread_mutex_unlock(&qps.mutex);
    atomic_store_explicit(&qps.by_index[SR_QPN_INDEX(qp->ibv.qp_num)], qp, memory_order_release);
}

void sr_qp_table_remove(struct sr_qp *qp)
{
    pthread_mutex_lock(&qps.mutex);
    for (struct sr_qp **at = &qps.first; NULL != *at; at = &(*at)->next) {
        if (qp == *at) {
            *at = qp->next;
            break;
        }
    }
    pthread_mutex_unlock(&qps.mutex);
    atomic_store(&qps.by_index[SR_QPN_INDEX(qp->ibv.qp_num)], NULL);
    /* threads that poll look the queue pair up under these locks */
    pthread_mutex_lock(&qp->send_cq->lock);
    pthread_mutex_unlock(&qp->send_cq->lock);
    pthread_mutex_lock(&qp->recv_cq->lock);
    pthread_mutex_unlock(&qp->recv_cq->lock);
}

void sr_qp_table_reset(void)
{
    pthread_mutex_init(&qps.mutex, NULL);
    qps.first = NULL;
    for (unsigned i = 0; i < SR_MAX_QPS; ++i) {
        if (NULL != atomic_load_explicit(&qps.by_index[i], memory_order_relaxed)) {
            atomic_store(&qps.by_index[i], NULL);
        }
    }
}
