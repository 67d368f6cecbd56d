/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The queue pairs of one generation of one rail are made, connected, proved, put into the error state, and destroyed
 * here. A set is never used twice: a rejoin makes a new one. Context: service. See DESIGN.txt 15.
 */
#include "qp/btl_openib_qpset.h"

#include "types/btl_openib_atomic.h"
#include "device/btl_openib_buffers.h"
#include "types/btl_openib_clock.h"
#include "types/btl_openib_ctl.h"
#include "formats/btl_openib_credits.h"
#include "device/btl_openib_device.h"
#include "types/btl_openib_log.h"
#include "formats/btl_openib_qpmap.h"
#include "device/btl_openib_ring_memory.h"
#include "device/btl_openib_srq.h"
#include "qp/btl_openib_stash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OWN_WORK = 3 /* slots for returns, proof or keepalive, and marker */, RETURN_SLOT = 64 };

static uint32_t send_slots(const ofo_queues_t *queues, unsigned index)
{
    const ofo_queue_t *queue = &queues->queue[index];

    return ('P' == queue->type ? queue->count : queue->window) + (0 == index ? OFO.params.send_queue_depth : 0);
}

static uint32_t recv_slots(const ofo_queues_t *queues, unsigned index)
{
    const ofo_queue_t *queue = &queues->queue[index];

    return 'P' == queue->type ? queue->count : 0;
}

/* The number of work requests of a set. Each has a place in the CQ. */
static int count_work(const ofo_queues_t *queues)
{
    int count = 0;

    for (unsigned i = 0; i < queues->count; ++i) {
        count += (int) (send_slots(queues, i) + recv_slots(queues, i) + OWN_WORK);
    }
    return count;
}

/* Returns a CQ with room for all work requests of the set, and of the shared queues. When all CQs are full it makes another one, twice
 * as large. */
static struct ibv_cq *reserve_cq(ofo_module_t *module, int need)
{
    int shared = (int) ofo_srqs_buffers_max(module); /* all buffers of shared queues may complete on one CQ */
    int count = module->cq_count, size = 0 == count ? (int) OFO.params.cq_size : 2 * module->cq_size;
    struct ibv_cq *cq;

    for (int i = 0; i < count; ++i) {
        if (need <= module->cq_room[i]) {
            module->cq_room[i] -= need;
            return module->cq[i];
        }
    }
    if (OFO_MAX_CQS == count) {
        return NULL;
    }
    need += shared;
    if (size < need) {
        size = need;
    }
    if (size > module->device->attr.max_cqe) {
        size = module->device->attr.max_cqe;
    }
    cq = need <= size ? ibv_create_cq(module->device->context, size, NULL, module->channel, 0) : NULL;
    if (NULL != cq) {
        module->cq[count] = cq;
        module->cq_size = size;
        module->cq_room[count] = size - need;
        ofo_log(2, "%s: completion queue of %d entries", module->name, size);
        OFO_STORE(module->cq_count, count + 1);
    }
    return cq;
}

/* Gives back the places of a destroyed set, which has no completions left. */
static void release_cq(ofo_module_t *module, const struct ibv_cq *cq, int need)
{
    for (int i = 0; i < module->cq_count; ++i) {
        module->cq_room[i] += cq == module->cq[i] ? need : 0;
    }
}

static int allocate_buffers(ofo_qpset_t *qps, const ofo_device_t *device)
{
    size_t size = (size_t) RETURN_SLOT * qps->nqp, recvs = 0, at;

    for (unsigned i = 0; i < qps->nqp; ++i) {
        size += (size_t) recv_slots(qps->queues, i) * qps->queues->queue[i].size;
        recvs += recv_slots(qps->queues, i);
    }
    at = (size + RETURN_SLOT - 1) / RETURN_SLOT * RETURN_SLOT;
    size = at + recvs * sizeof(*qps->recvs); /* on the same pages, because most sets need few of them */
    qps->memory = ofo_pages_alloc(size);
    if (NULL == qps->memory) {
        return -1;
    }
    memset(qps->memory, 0, RETURN_SLOT * qps->nqp);
    qps->recvs = (ofo_recv_t *) (qps->memory + at);
    qps->mr = ibv_reg_mr(device->pd, qps->memory, size, IBV_ACCESS_LOCAL_WRITE);
    if (NULL == qps->mr && (ENOMEM == errno || EAGAIN == errno)) {
        ofo_device_say_locked_memory(device);
    }
    return NULL != qps->mr ? 0 : -1;
}

static struct ibv_qp *create_qp(ofo_module_t *module, ofo_qpset_t *qps, unsigned index)
{
    struct ibv_qp_init_attr init = {
        .qp_context = &qps->qp[index],
        .qp_type = IBV_QPT_RC,
        .srq = qps->qp[index].shared ? module->srq[index]->srq : NULL,
        .send_cq = qps->cq,
        .recv_cq = qps->cq,
        .cap = {.max_send_wr = send_slots(qps->queues, index) + OWN_WORK,
                .max_recv_wr = qps->qp[index].shared ? 0 : recv_slots(qps->queues, index),
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = module->device->inline_max},
    };
    struct ibv_qp *qp = ibv_create_qp(module->device->pd, &init);

    if (NULL != qp) {
        uint32_t inline_max = init.cap.max_inline_data;
        qps->qp[index].inline_max = inline_max < module->device->inline_max ? inline_max : module->device->inline_max;
    }
    return qp;
}

/* The number of a queue pair that was destroyed before its fence ended stays in the map, because completions may still name it. If
 * the device gives this number to a new queue pair, another queue pair is made instead. */
static struct ibv_qp *create_numbered(ofo_module_t *module, ofo_qpset_t *qps, unsigned index)
{
    struct ibv_qp *qp = create_qp(module, qps, index), *other;

    if (NULL == qp || !qps->qp[index].shared || NULL == ofo_qpmap_find(&module->qpmap, qp->qp_num)) {
        return qp;
    }
    other = create_qp(module, qps, index);
    ibv_destroy_qp(qp);
    if (NULL != other && NULL != ofo_qpmap_find(&module->qpmap, other->qp_num)) {
        ibv_destroy_qp(other);
        other = NULL;
    }
    return other;
}

static int move_to_init(ofo_module_t *module, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = module->pkey_index,
                               .port_num = module->port_num,
                               .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int create_one(ofo_module_t *module, ofo_qpset_t *qps, unsigned index)
{
    const ofo_queue_t *queue = &qps->queues->queue[index];
    ofo_qp_t *qp = &qps->qp[index];

    qp->returns = (ofo_work_t){.kind = OFO_WORK_RETURN, .qp = (uint8_t) index, .qps = qps};
    qp->prove = (ofo_work_t){.kind = OFO_WORK_PROVE, .qp = (uint8_t) index, .qps = qps};
    qp->marker = (ofo_work_t){.kind = OFO_WORK_MARKER, .qp = (uint8_t) index, .qps = qps};
    qp->shared = 'S' == queue->type;
    qps->nqp_owing = qp->shared ? qps->nqp_owing : index + 1;
    qp->qp = create_numbered(module, qps, index);
    if (NULL == qp->qp || 0 != move_to_init(module, qp->qp)) {
        return -1;
    }
    qp->psn = ofo_random(module) >> 8;
    qp->sq_free = qp->sq_slots = (int32_t) send_slots(qps->queues, index);
    ofo_credits_init(&qp->credits, (int32_t) queue->count, (int32_t) queue->window);
    if (qp->shared && !ofo_qpmap_add(&module->qpmap, qp->qp->qp_num, qp)) {
        return -1;
    }
    qp->number = qp->shared ? qp->qp->qp_num : 0;
    qp->returns_hdr = (ofo_data_hdr_t *) (qps->memory + RETURN_SLOT * index);
    return 0;
}

static int post_all_recvs(ofo_qpset_t *qps)
{
    uint8_t *at = qps->memory + RETURN_SLOT * qps->nqp;
    ofo_recv_t *recv = qps->recvs;
    ofo_recv_chain_t chain = {.count = 0};

    for (unsigned i = 0; i < qps->nqp; ++i) {
        const uint32_t size = qps->queues->queue[i].size;
        for (uint32_t k = 0; k < recv_slots(qps->queues, i); ++k, ++recv, at += size) {
            ofo_recv_init(recv, qps, i, at, size, qps->mr->lkey);
            ofo_recv_collect(&chain, recv);
        }
        if (0 < chain.count) {
            qps->qp[i].recv_posted = (int32_t) chain.count; /* set before the post, because each receive that completes lowers it */
            ofo_recv_post_chain(&chain, qps->qp[i].qp, NULL);
        }
        if (0 < chain.count) {
            qps->qp[i].recv_posted -= (int32_t) chain.count;
            return -1;
        }
    }
    return 0;
}

ofo_qpset_t *ofo_qpset_create(ofo_endpoint_t *ep, uint16_t gen)
{
    const ofo_queues_t *queues = ep->peer->queues;
    ofo_qpset_t *qps = calloc(1, sizeof(*qps) + queues->count * sizeof(qps->qp[0]));

    if (NULL == qps) {
        return NULL;
    }
    qps->module = ep->module;
    qps->downs = OFO_LOAD(ep->module->downs);
    qps->ep = ep;
    qps->gen = gen;
    qps->queues = queues;
    qps->nqp = queues->count;
    qps->alive = (ofo_work_t){.kind = OFO_WORK_ALIVE, .qp = 0, .qps = qps};
    qps->cq = reserve_cq(ep->module, count_work(qps->queues));
    if (NULL == qps->cq || 0 != allocate_buffers(qps, ep->module->device)) {
        goto err_destroy;
    }
    for (unsigned i = 0; i < qps->nqp; ++i) {
        if (0 != create_one(ep->module, qps, i)) {
            goto err_destroy;
        }
    }
    if (0 != post_all_recvs(qps)) {
        goto err_destroy;
    }
    return qps;

err_destroy:
    ofo_log(1, "%s: no queue pairs for rail %u to %u: %s", ep->module->name, ep->rail, ep->peer->name.vpid, strerror(errno));
    if (!ofo_qpset_destroy(qps)) {
        ofo_qpset_bury(qps);
    }
    return NULL;
}

uint8_t ofo_mtu_own(const ofo_module_t *module)
{
    const uint8_t mtu = (uint8_t) module->port_attr.active_mtu;

    return 0 < OFO.params.ib_mtu && OFO.params.ib_mtu < mtu ? (uint8_t) OFO.params.ib_mtu : mtu;
}

uint8_t ofo_mtu_with(const ofo_module_t *module, uint8_t theirs)
{
    const uint8_t mtu = ofo_mtu_own(module);

    return theirs < mtu ? theirs : mtu;
}

static uint8_t bounded_reads(int device)
{
    return (uint8_t) ((unsigned) device < OFO.params.max_rd_atomic ? (unsigned) device : OFO.params.max_rd_atomic);
}

uint8_t ofo_reads_answered(const ofo_module_t *module)
{
    return bounded_reads(module->device->attr.max_qp_rd_atom);
}

/* If we ask for more than the peer answers, it treats the READ as an invalid request. */
uint8_t ofo_reads_asked(const ofo_module_t *module, uint8_t answered)
{
    const uint8_t own = bounded_reads(module->device->attr.max_qp_init_rd_atom);

    return 0 < answered && answered < own ? answered : own;
}

static int move_to_rtr(ofo_module_t *module, ofo_qp_t *qp, const ofo_ctl_t *remote, unsigned index)
{
    ofo_endpoint_t *ep = qp->returns.qps->ep;
    const bool use_grh = module->use_grh || ep->remote.wants_grh;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = (enum ibv_mtu) ofo_mtu_with(module, remote->mtu),
        .dest_qp_num = remote->qp[index].qpn,
        .rq_psn = remote->qp[index].psn,
        .max_dest_rd_atomic = ofo_reads_answered(module),
        .min_rnr_timer = (uint8_t) OFO.params.ib_min_rnr_timer,
        .ah_attr = {.dlid = remote->lid, .sl = (uint8_t) OFO.params.ib_service_level, .port_num = module->port_num},
    };

    if (use_grh) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.sgid_index = module->gid_index;
        attr.ah_attr.grh.hop_limit = 64;
        attr.ah_attr.grh.traffic_class = module->traffic_class;
        attr.ah_attr.grh.flow_label = ofo_flow_label(ep);
        memcpy(&attr.ah_attr.grh.dgid, remote->gid, sizeof(attr.ah_attr.grh.dgid));
    }
    return ibv_modify_qp(qp->qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC
                             | IBV_QP_MIN_RNR_TIMER);
}

/* If nobody waits for the return of a last rail, only the adapter's patience carries a job over an outage of all rails. */
uint8_t ofo_qpset_ack_timeout(const ofo_module_t *module)
{
    enum { PATIENT = 20, SHORT = 17 };

    return (uint8_t) (0 != OFO.params.ib_timeout ? OFO.params.ib_timeout : module->ext.waits ? SHORT : PATIENT);
}

static int move_to_rts(ofo_module_t *module, ofo_qp_t *qp, const ofo_ctl_t *remote)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = ofo_qpset_ack_timeout(module),
        .retry_cnt = (uint8_t) OFO.params.ib_retry_count,
        .rnr_retry = (uint8_t) (qp->shared ? 7 : OFO.params.ib_rnr_retry),
        .sq_psn = qp->psn,
        .max_rd_atomic = ofo_reads_asked(module, remote->reads),
    };

    return ibv_modify_qp(qp->qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void ofo_qpset_log(const ofo_module_t *module, const ofo_qp_t *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    const int mask = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_PKEY_INDEX
                     | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_CAP;

    if (2 > OFO.params.verbose || 0 != ibv_query_qp(qp->qp, &attr, mask, &init)) {
        return;
    }
    ofo_log(2,
            "%s: queue pair 0x%x: timeout %u, retries %u, rnr retries %u, rnr timer %u, sl %u, class %u, mtu %u, pkey %u, "
            "reads %u, inline %u, sends %u, receives %u",
            module->name, qp->qp->qp_num, attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer, attr.ah_attr.sl,
            attr.ah_attr.grh.traffic_class, attr.path_mtu, attr.pkey_index, attr.max_rd_atomic, qp->inline_max, init.cap.max_send_wr,
            init.cap.max_recv_wr);
}

int ofo_qpset_connect(ofo_qpset_t *qps, const ofo_ctl_t *remote)
{
    ofo_module_t *module = qps->ep->module;

    if (qps->ep->label_is_used) {
        ofo_flow_label_renew(qps->ep); /* the path of the last generation may have failed */
    }
    qps->ep->label_is_used = true;
    for (unsigned i = 0; i < qps->nqp; ++i) {
        if (0 != move_to_rtr(module, &qps->qp[i], remote, i) || 0 != move_to_rts(module, &qps->qp[i], remote)) {
            ofo_log(1, "%s: rail %u to %u does not connect: %s", module->name, qps->ep->rail, qps->ep->peer->name.vpid, strerror(errno));
            return -1;
        }
        ofo_qpset_log(module, &qps->qp[i]);
    }
    return 0;
}

void ofo_qpset_ask(const ofo_qpset_t *qps, struct ibv_send_wr *wr, struct ibv_sge *sge, uint32_t length)
{
    const ofo_device_t *device = qps->module->device;

    *sge = (struct ibv_sge){.addr = (uintptr_t) device->proof, .length = length, .lkey = device->proof_mr->lkey};
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->send_flags = IBV_SEND_SIGNALED;
    wr->sg_list = sge;
    wr->num_sge = 1;
    wr->wr.rdma.remote_addr = qps->ep->remote.proof_at;
    wr->wr.rdma.rkey = qps->ep->remote.proof_key;
}

/* Posts a WRITE of one full packet, so that a path that drops large packets is not used. Where the side that accepted listens first,
 * the side that connected sends an empty message instead. */
static int prove_one(ofo_qpset_t *qps, ofo_qp_t *qp)
{
    struct ibv_send_wr wr = {.wr_id = (uintptr_t) &qp->prove}, *wrong;
    struct ibv_sge sge;

    ofo_qpset_ask(qps, &wr, &sge, 128u << ofo_mtu_with(qps->module, qps->ep->remote.mtu));
    if (qps->module->transport->acceptor_listens && !qp->cm_passive) {
        *qp->returns_hdr = (ofo_data_hdr_t){.tag = OFO_TAG_RETURN};
        sge = (struct ibv_sge){.addr = (uintptr_t) qp->returns_hdr, .length = sizeof(ofo_data_hdr_t), .lkey = qps->mr->lkey};
        wr.opcode = IBV_WR_SEND;
        if (!qp->shared) {
            ofo_credits_use(&qp->credits);
        }
    }
    return ibv_post_send(qp->qp, &wr, &wrong);
}

int ofo_qpset_prove(ofo_qpset_t *qps)
{
    __atomic_store_n(&qps->proving, (int32_t) qps->nqp, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < qps->nqp; ++i) {
        if (0 != prove_one(qps, &qps->qp[i])) {
            return -1;
        }
    }
    return 0;
}

void ofo_qpset_error(ofo_qpset_t *qps)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    for (unsigned i = 0; i < qps->nqp; ++i) {
        if (NULL != qps->qp[i].qp) {
            (void) ibv_modify_qp(qps->qp[i].qp, &attr, IBV_QP_STATE); /* on failure the fence's time limit helps */
        }
    }
}

bool ofo_qpset_is_shared(const ofo_qpset_t *qps)
{
    bool shared = false;

    for (unsigned i = 0; NULL != qps && i < qps->nqp; ++i) {
        shared |= qps->qp[i].shared;
    }
    return shared;
}

bool ofo_qpset_assume_last_wqe(ofo_qpset_t *qps)
{
    bool missed = false;

    for (unsigned i = 0; NULL != qps && i < qps->nqp; ++i) {
        missed |= qps->qp[i].shared && !OFO_LOAD(qps->qp[i].last_wqe_seen);
        OFO_STORE(qps->qp[i].last_wqe_seen, true);
    }
    return missed;
}

/* Was the queue pair removed together with its device? Then the kernel has nothing left to destroy. The failure of a device alone does
 * not mean that. */
static bool is_removed(const ofo_device_t *device, int error)
{
    return EIO == error && OFO_LOAD(device->fatal);
}

bool ofo_qpset_stop(ofo_qpset_t *qps)
{
    bool all = true;

    if (NULL != OFO.cpc->leave) {
        OFO.cpc->leave(qps);
    }
    for (unsigned i = 0; i < qps->nqp; ++i) {
        struct ibv_qp *qp = qps->qp[i].qp;
        int error = NULL != qp ? ibv_destroy_qp(qp) : 0;
        if (0 == error || is_removed(qps->module->device, error)) {
            qps->qp[i].qp = NULL;
        }
        all = all && NULL == qps->qp[i].qp;
    }
    return all;
}

/* Completions may be lost with a queue pair, and the buffers that they name. Therefore completions that came until now are kept, or
 * progress reads them. At most as many may still come before the end as the peer may have in flight. */
bool ofo_qpset_stop_busy(ofo_qpset_t *qps)
{
    enum { TRIES = 50 };
    bool all, alive[OFO_MAX_QPS];

    for (int i = 0; i < TRIES && !ofo_poll_and_keep(qps->module); ++i) {
        usleep(1000);
    }
    for (unsigned i = 0; i < qps->nqp; ++i) {
        alive[i] = NULL != qps->qp[i].qp;
    }
    all = ofo_qpset_stop(qps);
    for (unsigned i = 0; i < qps->nqp; ++i) {
        if (alive[i] && qps->qp[i].shared && NULL == qps->qp[i].qp) { /* not those that an earlier attempt destroyed and counted */
            ofo_srq_buffers_missing(qps->module->srq[i], qps->queues->queue[i].window);
        }
    }
    return all;
}

void ofo_qpset_counts(const ofo_qpset_t *qps, ofo_counts_t *sent, ofo_counts_t *received)
{
    *sent = (ofo_counts_t){.n_ok = qps->n_ok, .n_eager = qps->n_eager};
    *received = (ofo_counts_t){.n_ok = qps->n_received, .n_eager = qps->n_eager_recv};
    for (unsigned i = 0; i < qps->nqp; ++i) {
        sent->n_send[i] = qps->qp[i].n_send;
        received->n_send[i] = qps->qp[i].n_recv;
    }
}

void ofo_qpset_bury(ofo_qpset_t *qps)
{
    qps->destroy_at = ofo_now_ms() + 1000u * OFO.params.time_wait;
    qps->next = qps->module->graveyard;
    qps->module->graveyard = qps;
}

/* Also for a set whose creation failed half way. */
bool ofo_qpset_destroy(ofo_qpset_t *qps)
{
    if (!ofo_qpset_stop(qps)) {
        return false; /* receives, completions and the device still use this memory */
    }
    if (qps->module->transport->keeps_dead && NULL != qps->cq && !ofo_poll_and_forget(qps)) {
        return false;
    }
    for (unsigned i = 0; i < qps->nqp; ++i) {
        if (0 != qps->qp[i].number) {
            ofo_qpmap_remove(&qps->module->qpmap, qps->qp[i].number);
        }
    }
    if (NULL != qps->cq) {
        release_cq(qps->module, qps->cq, count_work(qps->queues));
    }
    ofo_ring_destroy(qps);
    if (NULL != qps->mr) {
        ibv_dereg_mr(qps->mr);
    }
    free(qps->memory);
    free(qps);
    return true;
}
