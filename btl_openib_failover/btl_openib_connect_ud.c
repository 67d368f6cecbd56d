/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Control messages over an unreliable datagram queue pair per module. Its address is all the modex carries.
 * In: datagrams of anybody; out: validated control messages to the machine of the rail they name. Loss and
 * duplication are the machine's business. See DESIGN.txt 15.
 */
#include "btl_openib.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <stdlib.h>

enum { RECVS = 256, SENDS = 64, GRH = 40, SLOT = 192, BATCH = 16 };

_Static_assert(OFO_CTL_MAX_SIZE + GRH <= SLOT, "a slot holds the largest message");

static uint8_t *recv_slot(ofo_ud_t *ud, unsigned i)
{
    return ud->memory + (size_t) SLOT * i;
}

static uint8_t *send_slot(ofo_ud_t *ud, unsigned i)
{
    return ud->memory + (size_t) SLOT * (RECVS + i % SENDS);
}

static int post_recv(ofo_ud_t *ud, unsigned i)
{
    struct ibv_sge sge = {.addr = (uintptr_t) recv_slot(ud, i), .length = SLOT, .lkey = ud->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *wrong;

    return ibv_post_recv(ud->qp, &wr, &wrong);
}

static int move_to_rts(ofo_module_t *module, struct ibv_qp *qp, uint32_t qkey)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = module->pkey_index,
                               .port_num = module->port_num,
                               .qkey = qkey};

    if (0 != ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)) {
        return -1;
    }
    attr.qp_state = IBV_QPS_RTR;
    if (0 != ibv_modify_qp(qp, &attr, IBV_QP_STATE)) {
        return -1;
    }
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int create_queues(ofo_module_t *module)
{
    ofo_ud_t *ud = &module->ud;
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD,
                                    .cap = {.max_send_wr = SENDS,
                                            .max_recv_wr = RECVS,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1},
                                    .sq_sig_all = 1};

    ud->channel = ibv_create_comp_channel(module->device->context);
    if (NULL == ud->channel) {
        return -1;
    }
    fcntl(ud->channel->fd, F_SETFL, fcntl(ud->channel->fd, F_GETFL) | O_NONBLOCK);
    ud->recv_cq = ibv_create_cq(module->device->context, RECVS, NULL, ud->channel, 0);
    ud->send_cq = ibv_create_cq(module->device->context, SENDS, NULL, NULL, 0);
    if (NULL == ud->recv_cq || NULL == ud->send_cq) {
        return -1;
    }
    init.recv_cq = ud->recv_cq;
    init.send_cq = ud->send_cq;
    ud->qp = ibv_create_qp(module->device->pd, &init);
    if (NULL == ud->qp || 0 != move_to_rts(module, ud->qp, ud->qkey)) {
        return -1;
    }
    return 0;
}

static int ud_create(ofo_module_t *module)
{
    ofo_ud_t *ud = &module->ud;
    size_t size = (size_t) SLOT * (RECVS + SENDS);

    /* One key for all ports of the process; the upper half of keys is for privileged users. */
    ud->qkey = OFO.record.incarnation & 0x7fffffff;
    ud->memory = ofo_pages_alloc(size);
    if (NULL == ud->memory) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    memset(ud->memory, 0, size);
    ud->mr = ibv_reg_mr(module->device->pd, ud->memory, size, IBV_ACCESS_LOCAL_WRITE);
    if (NULL == ud->mr || 0 != create_queues(module)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (unsigned i = 0; i < RECVS; ++i) {
        if (0 != post_recv(ud, i)) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    module->contact = ud->qp->qp_num;
    return 0 == ibv_req_notify_cq(ud->recv_cq, 0) ? OPAL_SUCCESS : OPAL_ERROR;
}

/* Also after a creation that stopped half way. */
static void ud_destroy(ofo_module_t *module)
{
    ofo_ud_t *ud = &module->ud;

    if (NULL != ud->qp) {
        ibv_destroy_qp(ud->qp);
    }
    if (NULL != ud->send_cq) {
        ibv_destroy_cq(ud->send_cq);
    }
    if (NULL != ud->recv_cq) {
        ibv_destroy_cq(ud->recv_cq);
    }
    if (NULL != ud->channel) {
        ibv_destroy_comp_channel(ud->channel);
    }
    if (NULL != ud->mr) {
        ibv_dereg_mr(ud->mr);
    }
    free(ud->memory);
    memset(ud, 0, sizeof(*ud));
}

/* ---- out ---------------------------------------------------------------------------------------- */

static struct ibv_ah *address_handle(ofo_endpoint_t *ep)
{
    ofo_module_t *module = ep->module;
    struct ibv_ah_attr attr = {.dlid = ep->remote.lid,
                               .sl = (uint8_t) OFO.params.ib_service_level,
                               .port_num = module->port_num};

    if (module->use_grh) {
        attr.is_global = 1;
        attr.grh.sgid_index = module->gid_index;
        attr.grh.hop_limit = 64;
        attr.grh.traffic_class = (uint8_t) OFO.params.ib_traffic_class;
        memcpy(&attr.grh.dgid, ep->remote.gid, sizeof(attr.grh.dgid));
    }
    return ibv_create_ah(module->device->pd, &attr); /* may wait for address resolution */
}

void ofo_ud_forget(ofo_endpoint_t *ep)
{
    if (NULL != ep->ah) {
        ibv_destroy_ah(ep->ah);
        ep->ah = NULL;
    }
}

static void reap_sends(ofo_ud_t *ud)
{
    struct ibv_wc wc[BATCH];
    int n = ibv_poll_cq(ud->send_cq, BATCH, wc);

    for (; 0 < n; n = ibv_poll_cq(ud->send_cq, BATCH, wc)) {
        ud->reaped += (unsigned) n;
    }
}

static void ud_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl)
{
    ofo_module_t *module = ep->module;
    ofo_ud_t *ud = &module->ud;
    uint8_t *slot = send_slot(ud, ud->sent);
    struct ibv_sge sge = {.addr = (uintptr_t) slot, .lkey = ud->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *wrong;

    reap_sends(ud);
    if (NULL != ep->ah && ep->ah_gid_index != module->gid_index) {
        ofo_ud_forget(ep); /* the own address has moved in its table */
    }
    if (NULL == ep->ah) {
        ep->ah_gid_index = module->gid_index;
        ep->ah = address_handle(ep);
    }
    if (NULL == ep->ah || SENDS == ud->sent - ud->reaped) {
        ++module->count.ctl_dropped;
        return;
    }
    sge.length = (uint32_t) ofo_ctl_pack(ctl, slot, SLOT);
    wr.wr.ud.ah = ep->ah;
    wr.wr.ud.remote_qpn = ep->remote_contact;
    wr.wr.ud.remote_qkey = ep->remote.qkey;
    if (0 == sge.length || 0 != ibv_post_send(ud->qp, &wr, &wrong)) {
        ++module->count.ctl_dropped;
        return;
    }
    ++ud->sent;
    ++module->count.ctl_out;
}

/* ---- in ----------------------------------------------------------------------------------------- */

static void read_datagram(ofo_module_t *module, const uint8_t *bytes, size_t length)
{
    ofo_ctl_t ctl;
    ofo_wire_result_t result = ofo_ctl_unpack(bytes, length, &ctl);

    if (OFO_WIRE_OK != result || ctl.dst_inc != OFO.record.incarnation) {
        ++module->count.ctl_dropped;
        return;
    }
    ++module->count.ctl_in;
    ofo_log(2, "%s: %s(%u) of rail %u from %u", module->name, ofo_ctl_name(ctl.type), ctl.gen, ctl.rail, ctl.vpid);
    ofo_ctl_dispatch(module, &ctl);
}

static int poll_datagrams(ofo_module_t *module)
{
    ofo_ud_t *ud = &module->ud;
    struct ibv_wc wc[BATCH];
    int n = ibv_poll_cq(ud->recv_cq, BATCH, wc);

    for (int i = 0; i < n; ++i) {
        unsigned slot = (unsigned) wc[i].wr_id;
        if (IBV_WC_SUCCESS == wc[i].status && GRH < wc[i].byte_len && SLOT >= wc[i].byte_len) {
            read_datagram(module, recv_slot(ud, slot) + GRH, wc[i].byte_len - GRH);
        } else {
            ++module->count.ctl_dropped;
        }
        (void) post_recv(ud, slot); /* fails only with the queue pair, which ends the module's connects */
    }
    return n;
}

static void ud_receive(ofo_module_t *module)
{
    ofo_ud_t *ud = &module->ud;
    struct ibv_cq *cq;
    void *context;

    if (0 == ibv_get_cq_event(ud->channel, &cq, &context)) {
        ibv_ack_cq_events(cq, 1);
        (void) ibv_req_notify_cq(ud->recv_cq, 0);
    }
    while (0 < poll_datagrams(module)) {
    }
}

static int ud_fd(const ofo_module_t *module)
{
    return module->ud.channel->fd;
}

const ofo_cpc_t ofo_cpc_ud = {
    .name = "udcm",
    .type = OFO_CPC_UD,
    .create = ud_create,
    .destroy = ud_destroy,
    .fd = ud_fd,
    .receive = ud_receive,
    .send = ud_send,
    .join = ofo_qpset_connect,
};
