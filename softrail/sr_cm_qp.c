/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The verbs objects of librdmacm's identifiers: devices, queue pairs and their connection, and the completion queues and
 * shared receive queues that the library makes for the caller. DESIGN.txt 16.
 */
#include "sr_cm.h"
#include "sr_context.h"
#include "sr_cq.h"
#include "sr_device.h"
#include "sr_event.h"
#include "sr_pd.h"
#include "sr_qp.h"
#include "sr_srq.h"

#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SR_PUBLIC __attribute__((visibility("default")))

/* ---- devices ------------------------------------------------------------------------------------ */

/* Opens the device that is on this rail. With --crossed-wires that may be a device of another number. */
static struct ibv_context *open_device(unsigned rail)
{
    struct ibv_device **list = sr_device_list(NULL);
    struct ibv_context *context = NULL == list ? NULL : sr_device_open(list[rail]);

    if (NULL != context && rail != sr_context(context)->rail) {
        sr_device_close(context);
        context = sr_device_open(list[sr.fabric.shm->rails - 1 - rail]);
    }
    sr_device_list_free(list);
    return context;
}

struct ibv_context *sr_cm_device(int rail, struct ibv_pd **pd)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        struct ibv_context *context;
        struct ibv_pd *pd;
    } open[SR_MAX_RAILS];
    static pid_t owner;
    struct ibv_context *context;

    pthread_mutex_lock(&mutex);
    if (getpid() != owner) { /* a forked child opens its own */
        memset(open, 0, sizeof(open));
        owner = getpid();
    }
    if (NULL == open[rail].context) {
        open[rail].context = open_device((unsigned) rail);
    }
    context = open[rail].context;
    if (NULL != context && NULL == open[rail].pd) {
        open[rail].pd = sr_pd_alloc(context);
    }
    if (NULL != pd) {
        *pd = open[rail].pd;
    }
    pthread_mutex_unlock(&mutex);
    return context;
}

/* The devices stay open, as in librdmacm. */
SR_PUBLIC struct ibv_context **rdma_get_devices(int *count)
{
    unsigned rails = 0 == sr_attach() ? sr.fabric.shm->rails : 0;
    struct ibv_context **list = 0 == rails ? NULL : calloc(rails + 1, sizeof(*list));
    int found = 0;

    for (unsigned rail = 0; NULL != list && rail < rails; ++rail) {
        struct ibv_context *context = sr_cm_device((int) rail, NULL);
        if (NULL != context && !atomic_load(&sr.fabric.shm->rail[rail].gone)) {
            list[found++] = context;
        }
    }
    if (NULL != count) {
        *count = found;
    }
    errno = NULL != list ? errno : ENODEV;
    return list;
}

SR_PUBLIC void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}

/* ---- joining queue pairs ------------------------------------------------------------------------ */

void sr_cm_address_peer(const struct sr_cm_id *id, struct ibv_ah_attr *attr)
{
    bool ethernet = IBV_LINK_LAYER_ETHERNET == sr.fabric.shm->link_layer;
    unsigned rail = (unsigned) id->rail;

    attr->port_num = 1;
    if (ethernet || sr_habit(SR_FABRIC_GRH)) {
        attr->is_global = 1;
        attr->grh.hop_limit = 64;
        attr->grh.sgid_index = (uint8_t) (sr_gid_count() - 1);
        sr_gid(rail, id->peer.slot, &attr->grh.dgid);
    }
    if (!ethernet) {
        attr->dlid = (uint16_t) (sr_lid(id->peer.slot) + sr_lid_shift(rail));
    }
}

static int mask_of(enum ibv_qp_type type, enum ibv_qp_state state)
{
    bool ud = IBV_QPT_UD == type;

    if (IBV_QPS_INIT == state) {
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    }
    if (IBV_QPS_RTR == state) {
        return ud ? IBV_QP_STATE
                  : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    return ud ? IBV_QP_STATE | IBV_QP_SQ_PSN
              : IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
}

/* RDMA_MAX_RESP_RES and RDMA_MAX_INIT_DEPTH mean the limit of the device. */
static uint8_t depth(uint8_t asked)
{
    return 128 < asked ? 128 : asked;
}

SR_PUBLIC int rdma_init_qp_attr(struct rdma_cm_id *rdma, struct ibv_qp_attr *attr, int *mask)
{
    struct sr_cm_id *id = sr_cm_id(rdma);
    enum ibv_qp_state state = attr->qp_state;

    if (0 > id->rail || IBV_QPS_INIT > state || IBV_QPS_RTS < state) {
        return sr_cm_result(EINVAL);
    }
    memset(attr, 0, sizeof(*attr));
    attr->qp_state = state;
    attr->port_num = 1;
    attr->qkey = RDMA_UDP_QKEY;
    attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    attr->path_mtu = IBV_MTU_4096;
    attr->dest_qp_num = id->peer.qpn;
    attr->max_dest_rd_atomic = depth(id->mine.responder_resources);
    attr->max_rd_atomic = depth(id->mine.initiator_depth);
    attr->timeout = 14;
    attr->retry_cnt = id->mine.retry_count & 7;
    attr->rnr_retry = id->mine.rnr_retry_count & 7;
    sr_cm_address_peer(id, &attr->ah_attr);
    *mask = mask_of(rdma->qp_type, state);
    return 0;
}

int sr_cm_qp_to(struct sr_cm_id *id, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask = IBV_QP_STATE;

    if (NULL == id->rdma.qp) {
        return 0;
    }
    if (IBV_QPS_ERR != state && 0 != rdma_init_qp_attr(&id->rdma, &attr, &mask)) {
        return errno;
    }
    return sr_qp_modify(id->rdma.qp, &attr, mask);
}

/* ---- completion queues that the library makes --------------------------------------------------- */

static void free_queue(struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
    if (NULL != *cq) {
        sr_cq_destroy(*cq);
    }
    if (NULL != *channel) {
        sr_channel_destroy(*channel);
    }
    *cq = NULL;
    *channel = NULL;
}

static void free_queues(struct rdma_cm_id *rdma)
{
    free_queue(&rdma->send_cq, &rdma->send_cq_channel);
    free_queue(&rdma->recv_cq, &rdma->recv_cq_channel);
}

/* The queue that the caller gave, or that of the identifier, which is made if needed. NULL with errno. */
static struct ibv_cq *queue(struct rdma_cm_id *rdma, struct ibv_cq *given, uint32_t entries, struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
    if (NULL != given || NULL != *cq) {
        return NULL != given ? given : *cq;
    }
    *channel = sr_channel_create(rdma->verbs);
    *cq = NULL == *channel ? NULL : sr_cq_create(rdma->verbs, 0 < entries ? (int) entries : 1, rdma, *channel, 0);
    return *cq;
}

/* ---- queue pairs -------------------------------------------------------------------------------- */

static int make_ready(struct sr_cm_id *id)
{
    int rc = sr_cm_qp_to(id, IBV_QPS_INIT);

    if (IBV_QPT_UD == id->rdma.qp_type) {
        rc = 0 == rc ? sr_cm_qp_to(id, IBV_QPS_RTR) : rc;
        rc = 0 == rc ? sr_cm_qp_to(id, IBV_QPS_RTS) : rc;
    }
    return rc;
}

SR_PUBLIC int rdma_create_qp(struct rdma_cm_id *rdma, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct ibv_qp_init_attr with = *init;
    int rc;

    pd = NULL == pd ? rdma->pd : pd;
    if (NULL != rdma->qp || NULL == rdma->verbs || NULL == pd || pd->context->device != rdma->verbs->device
        || (enum ibv_qp_type) init->qp_type != rdma->qp_type) {
        return sr_cm_result(EINVAL);
    }
    with.send_cq = queue(rdma, init->send_cq, init->cap.max_send_wr, &rdma->send_cq, &rdma->send_cq_channel);
    with.recv_cq = queue(rdma, init->recv_cq, init->cap.max_recv_wr, &rdma->recv_cq, &rdma->recv_cq_channel);
    with.srq = NULL == init->srq ? rdma->srq : init->srq;
    rdma->qp = NULL == with.send_cq || NULL == with.recv_cq ? NULL : sr_qp_create(pd, &with);
    if (NULL == rdma->qp) {
        rc = errno;
        free_queues(rdma);
        return sr_cm_result(rc);
    }
    rc = make_ready(sr_cm_id(rdma));
    if (0 != rc) {
        rdma_destroy_qp(rdma);
        return sr_cm_result(rc);
    }
    *init = with;
    rdma->pd = pd;
    return 0;
}

SR_PUBLIC int rdma_create_qp_ex(struct rdma_cm_id *rdma, struct ibv_qp_init_attr_ex *ex)
{
    struct ibv_qp_init_attr init = {.qp_context = ex->qp_context,
                                    .send_cq = ex->send_cq,
                                    .recv_cq = ex->recv_cq,
                                    .srq = ex->srq,
                                    .cap = ex->cap,
                                    .qp_type = ex->qp_type,
                                    .sq_sig_all = ex->sq_sig_all};
    int rc;

    if (0 != (ex->comp_mask & ~(uint32_t) IBV_QP_INIT_ATTR_PD)) {
        return sr_cm_result(EOPNOTSUPP);
    }
    rc = rdma_create_qp(rdma, 0 != (ex->comp_mask & IBV_QP_INIT_ATTR_PD) ? ex->pd : NULL, &init);
    ex->cap = init.cap;
    ex->send_cq = init.send_cq;
    ex->recv_cq = init.recv_cq;
    return rc;
}

SR_PUBLIC void rdma_destroy_qp(struct rdma_cm_id *rdma)
{
    sr_qp_destroy(rdma->qp);
    rdma->qp = NULL;
    free_queues(rdma);
}

/* ---- shared receive queues ---------------------------------------------------------------------- */

SR_PUBLIC int rdma_create_srq(struct rdma_cm_id *rdma, struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    pd = NULL == pd ? rdma->pd : pd;
    if (NULL != rdma->srq || NULL == rdma->verbs || NULL == pd || pd->context->device != rdma->verbs->device) {
        return sr_cm_result(EINVAL);
    }
    rdma->srq = sr_srq_create(pd, init);
    if (NULL == rdma->srq) {
        return -1;
    }
    rdma->pd = NULL == rdma->pd ? pd : rdma->pd;
    return 0;
}

SR_PUBLIC int rdma_create_srq_ex(struct rdma_cm_id *rdma, struct ibv_srq_init_attr_ex *ex)
{
    const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    struct ibv_srq_init_attr init = {.srq_context = ex->srq_context, .attr = ex->attr};
    int rc;

    if (0 != (ex->comp_mask & ~known) || 0 == (ex->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || IBV_SRQT_BASIC != ex->srq_type) {
        return sr_cm_result(EOPNOTSUPP);
    }
    rc = rdma_create_srq(rdma, 0 != (ex->comp_mask & IBV_SRQ_INIT_ATTR_PD) ? ex->pd : NULL, &init);
    ex->attr = init.attr;
    return rc;
}

SR_PUBLIC void rdma_destroy_srq(struct rdma_cm_id *rdma)
{
    sr_srq_destroy(rdma->srq);
    rdma->srq = NULL;
}
