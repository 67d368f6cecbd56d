/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Put and get of any size. Both are posted on the rail's first queue pair, which also carries small messages. Therefore
 * a FIN that follows a put arrives after its data (DESIGN.txt 4, A1). An operation larger than the port's largest
 * message goes in parts and has one callback. See DESIGN.txt 15.
 */
#include "out/btl_openib_rdma.h"

#include "bfo_assert.h"
#include "qp/btl_openib_drain.h"
#include "qp/btl_openib_gate.h"
#include "types/btl_openib_lock.h"
#include "types/btl_openib_mail.h"

enum { RDMA_QP = 0 };

static int post_part(ofo_rdma_t *rdma, ofo_qp_t *qp, uint32_t length)
{
    struct ibv_sge sge = {.addr = (uintptr_t) rdma->local + rdma->posted, .length = length, .lkey = rdma->lkey};
    struct ibv_send_wr wr = {.wr_id = (uintptr_t) &rdma->work,
                             .sg_list = &sge,
                             .num_sge = 0 < length ? 1 : 0,
                             .opcode = rdma->opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = rdma->remote + rdma->posted, .rkey = rdma->rkey}},
                       *wrong;

    return ibv_post_send(qp->qp, &wr, &wrong);
}

bool ofo_rdma_post(ofo_rdma_t *rdma, ofo_qpset_t *qps)
{
    ofo_qp_t *qp = &qps->qp[RDMA_QP];
    uint32_t part_max = rdma->ep->module->max_message;
    bfo_traffic_t *traffic = bfo_traffic_of(&rdma->ep->module->ext);

    rdma->work.qp = RDMA_QP;
    rdma->work.qps = qps;
    while (!rdma->started || rdma->posted < rdma->size) {
        size_t left = rdma->size - rdma->posted;
        uint32_t length = left < part_max ? (uint32_t) left : part_max;
        if (0 >= qp->sq_free) {
            return false;
        }
        if (OPAL_UNLIKELY(0 != post_part(rdma, qp, length))) {
            (void) ofo_drain_raise(qps, OFO_DEV_POST_REFUSED, NULL);
            return false;
        }
        BFO_ASSERT(length <= rdma->size - rdma->posted && (0 < length || 0 == rdma->size));
        bfo_traffic_add(IBV_WR_RDMA_WRITE == rdma->opcode ? &traffic->written_bytes : &traffic->read_bytes, length, opal_using_threads());
        --qp->sq_free;
        ++rdma->inflight;
        rdma->posted += length;
        rdma->started = true;
    }
    return true;
}

static void finish(ofo_rdma_t *rdma)
{
    ofo_endpoint_t *ep = rdma->ep;
    ofo_module_t *module = ep->module;

    OPAL_THREAD_LOCK(&ep->lock);
    BFO_ASSERT(0 < ep->rdma_out && 0 == rdma->inflight);
    --ep->rdma_out;
    if (IBV_WR_RDMA_WRITE == rdma->opcode && NULL != ep->qps) {
        ep->qps->ring_out.behind_put = true;
        ep->qps->ring_out.proof = NULL;
    }
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (NULL != rdma->cbfunc) {
        rdma->cbfunc(&module->super, ep, rdma->local, rdma->local_handle, rdma->cbcontext, rdma->cbdata, rdma->status);
    }
    opal_free_list_return(&module->rdmas, &rdma->super);
}

/* An operation with parts that are not posted yet is on the pending list. It ends after its last part or in ofo_rdma_abandon(). */
void ofo_rdma_part_done(ofo_rdma_t *rdma, int status)
{
    ofo_endpoint_t *ep = rdma->ep;
    bool last;

    OPAL_THREAD_LOCK(&ep->lock);
    BFO_ASSERT(0 < rdma->inflight && rdma->started);
    BFO_ASSERT(rdma->posted <= rdma->size);
    --rdma->inflight;
    if (OPAL_SUCCESS != status && OPAL_SUCCESS == rdma->status) {
        rdma->status = status;
    }
    last = 0 == rdma->inflight && rdma->posted == rdma->size;
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (last) {
        finish(rdma);
    }
}

void ofo_rdma_abandon(ofo_rdma_t *rdma)
{
    if (OPAL_SUCCESS == rdma->status) {
        rdma->status = OPAL_ERROR;
    }
    finish(rdma);
}

static int submit(ofo_endpoint_t *ep, ofo_rdma_t *rdma)
{
    bool start, admitted, gate = ofo_post_lock(ep);
    int rc;

    admitted = ofo_gate_admits(ep, &start, &rc) && opal_list_is_empty(&ep->pending_rdma);
    if (OPAL_SUCCESS == rc) {
        ++ep->rdma_out;
        if (!admitted || !ofo_rdma_post(rdma, ep->qps)) {
            opal_list_append(&ep->pending_rdma, &rdma->super.super);
            OFO_ADD(ep->pending_count, 1);
            ++ep->module->count.queued_rdma;
        }
    }
    ofo_post_unlock(ep, gate);
    if (start) {
        ofo_tell_service(ep, OFO_MAIL_POST, 0, NULL, NULL);
    }
    return rc;
}

static int start(ofo_endpoint_t *ep, enum ibv_wr_opcode opcode, void *local, uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
                 mca_btl_base_registration_handle_t *remote_handle, size_t size, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
                 void *cbdata)
{
    ofo_module_t *module = ep->module;
    ofo_rdma_t *rdma = (ofo_rdma_t *) opal_free_list_get(&module->rdmas);
    int rc;

    if (OPAL_UNLIKELY(NULL == rdma)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rdma->ep = ep;
    rdma->opcode = opcode;
    rdma->local = local;
    rdma->remote = remote;
    rdma->lkey = NULL != local_handle ? local_handle->lkey : 0;
    rdma->rkey = remote_handle->rkey;
    rdma->size = size;
    rdma->posted = 0;
    rdma->inflight = 0;
    rdma->started = false;
    rdma->status = OPAL_SUCCESS;
    rdma->local_handle = local_handle;
    rdma->cbfunc = cbfunc;
    rdma->cbcontext = cbcontext;
    rdma->cbdata = cbdata;
    rc = submit(ep, rdma);
    if (OPAL_UNLIKELY(OPAL_SUCCESS != rc)) {
        opal_free_list_return(&module->rdmas, &rdma->super);
    }
    return rc;
}

int ofo_put(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, void *local_address, uint64_t remote_address,
            mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
            mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    ++ep->module->count.puts;
    ep->module->count.put_bytes += size;
    return start(ep, IBV_WR_RDMA_WRITE, local_address, remote_address, local_handle, remote_handle, size, cbfunc, cbcontext, cbdata);
}

int ofo_get(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, void *local_address, uint64_t remote_address,
            mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
            mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    ++ep->module->count.gets;
    ep->module->count.get_bytes += size;
    return start(ep, IBV_WR_RDMA_READ, local_address, remote_address, local_handle, remote_handle, size, cbfunc, cbcontext, cbdata);
}
