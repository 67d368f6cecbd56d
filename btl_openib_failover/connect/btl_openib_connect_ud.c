/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Control messages over an unreliable datagram queue pair for each module. The modex has its address. Datagrams may come
 * from any sender; only valid control messages go to the machine of the rail that they name. The machine copes with lost
 * messages and copies. See DESIGN.txt 15.
 */
#include "connect/btl_openib_connect_ud.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "connect/btl_openib_connect.h"
#include "types/btl_openib_ctl.h"
#include "device/btl_openib_device.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "qp/btl_openib_qpset.h"
#include "formats/btl_openib_wire.h"

#include "bfo_assert.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <stdlib.h>

enum { RECVS = OFO_UD_RECVS, SENDS = 64, GRH = 40, SLOT = 192, BATCH = 16, MEND_MS = 100, MEND_FAILED_MS = 2000, SLOW_MS = 50, FULL_MS = 100 };

_Static_assert(OFO_CTL_MAX_SIZE + GRH <= SLOT, "a slot holds the largest message");

static uint8_t *recv_slot(ofo_ud_t *ud, unsigned i)
{
    return ud->memory + (size_t) SLOT * i;
}

static uint8_t *send_slot(ofo_ud_t *ud, unsigned i)
{
    return ud->memory + (size_t) SLOT * (RECVS + i % SENDS);
}

static bool post_recv(ofo_ud_t *ud, unsigned i)
{
    struct ibv_sge sge = {.addr = (uintptr_t) recv_slot(ud, i), .length = SLOT, .lkey = ud->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *wrong;

    BFO_ASSERT(i < RECVS && !ud->posted[i]); /* a slot is posted once: two datagrams would share its memory */
    ud->posted[i] = 0 == ibv_post_recv(ud->qp, &wr, &wrong);
    return ud->posted[i];
}

/* Posts the receives that are not posted. */
static bool post_recvs(ofo_ud_t *ud)
{
    bool all = true;

    for (unsigned i = 0; i < RECVS; ++i) {
        all = (ud->posted[i] || post_recv(ud, i)) && all;
    }
    return all;
}

static int move_to_rts(ofo_module_t *module, struct ibv_qp *qp, uint32_t qkey)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .pkey_index = module->pkey_index, .port_num = module->port_num, .qkey = qkey};

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
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_UD, .cap = {.max_send_wr = SENDS, .max_recv_wr = RECVS, .max_send_sge = 1, .max_recv_sge = 1}, .sq_sig_all = 1};

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

    /* One key for all ports of the process. Keys of the upper half are for privileged users. */
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
    if (!post_recvs(ud)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
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
    struct ibv_ah_attr attr = {.dlid = ep->remote.lid, .sl = (uint8_t) OFO.params.ib_service_level, .port_num = module->port_num};

    if (module->use_grh || ep->remote.wants_grh) {
        attr.is_global = 1;
        attr.grh.sgid_index = module->gid_index;
        attr.grh.hop_limit = 64;
        attr.grh.traffic_class = module->traffic_class;
        attr.grh.flow_label = ofo_flow_label(ep);
        memcpy(&attr.grh.dgid, ep->remote.gid, sizeof(attr.grh.dgid));
    }
    return ibv_create_ah(module->device->pd, &attr); /* may wait for address resolution */
}

static void reap_sends(ofo_ud_t *ud)
{
    struct ibv_wc wc[BATCH];
    int n = ibv_poll_cq(ud->send_cq, BATCH, wc);

    for (; 0 < n; n = ibv_poll_cq(ud->send_cq, BATCH, wc)) {
        BFO_ASSERT((unsigned) n <= ud->sent - ud->reaped); /* each message completes once */
        ud->reaped += (unsigned) n;
        for (int i = 0; i < n; ++i) {
            if (IBV_WC_SUCCESS != wc[i].status) {
                OFO_STORE(ud->is_doubtful, true);
            }
        }
    }
}

/* ---- a queue pair that failed ------------------------------------------------------------------- */

/* False if the queue cannot be polled. */
static bool discard(struct ibv_cq *cq)
{
    struct ibv_wc wc[BATCH];
    int n;

    do {
        n = ibv_poll_cq(cq, BATCH, wc);
    } while (0 < n);
    return 0 == n;
}

static bool move_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};

    return 0 == ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/* Takes the queue pair through RESET. Completions that are still in the queues are of no use then, so datagrams may get lost. Receives are
 * not posted again before the queues are empty, because the completions of both would overrun the queue. */
static bool begin_anew(ofo_module_t *module)
{
    ofo_ud_t *ud = &module->ud;

    if (!move_to(ud->qp, IBV_QPS_RESET) || !discard(ud->send_cq) || !discard(ud->recv_cq)) {
        return false;
    }
    ud->reaped = ud->sent;
    memset(ud->posted, 0, sizeof(ud->posted));
    return 0 == move_to_rts(module, ud->qp, ud->qkey);
}

/* A failed send puts only the send queue into the error state (SQE). Some drivers, and any other failure, put the whole queue pair into
 * it. */
static bool bring_back(ofo_module_t *module)
{
    ofo_ud_t *ud = &module->ud;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    if (0 != ibv_query_qp(ud->qp, &attr, IBV_QP_STATE, &init)) {
        return false;
    }
    if (IBV_QPS_RTS != attr.qp_state) {
        ofo_log(0 == module->count.ctl_mended ? 1 : 2, "%s: the queue pair of control messages was in state %d", module->name, (int) attr.qp_state);
        ++module->count.ctl_mended;
        if ((IBV_QPS_SQE != attr.qp_state || !move_to(ud->qp, IBV_QPS_RTS)) && !begin_anew(module)) {
            return false;
        }
    }
    return post_recvs(ud);
}

/* Repairs the queue pair if needed. Returns when to try again in ms, or 0. There is a pause between repairs, because on a port that cannot
 * send each message fails. */
static uint64_t mend(ofo_module_t *module, uint64_t now)
{
    ofo_ud_t *ud = &module->ud;

    reap_sends(ud);
    if (OPAL_LIKELY(!OFO_LOAD(ud->is_doubtful)) || ud->is_reading || OFO_LOAD(module->device->fatal)) {
        return 0;
    }
    if (now >= ud->mend_at) {
        OFO_STORE(ud->is_doubtful, false);
        if (bring_back(module)) {
            ud->mend_at = now + MEND_MS;
            return 0;
        }
        OFO_STORE(ud->is_doubtful, true);
        ud->mend_at = now + MEND_FAILED_MS;
    }
    return ud->mend_at;
}

void ofo_ud_doubt(const ofo_device_t *device, const struct ibv_qp *qp)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_module_t *module = OFO.module[i];
        if (module->device == device && module->ud.qp == qp) {
            OFO_STORE(module->ud.is_doubtful, true);
            ofo_service_wake(module);
        }
    }
}

/* ---- sending ------------------------------------------------------------------------------------ */

/* Makes the address handle. A neighbour that does not answer may cost seconds each time. Therefore such neighbours get a tenth of
 * service's time, and after one slow address no other is resolved in the same round of service. Otherwise a partition of the network
 * would keep service from its datagrams once for each neighbour. A message that is not sent now will be repeated. */
static void resolve(ofo_endpoint_t *ep)
{
    ofo_module_t *module = ep->module;
    uint64_t begin = ofo_now_ms(), end;

    if (module->ud.is_slow || (ep->ah_failed && begin < module->resolve_at)) {
        return;
    }
    ep->ah_gid_index = module->gid_index;
    ep->ah = address_handle(ep);
    ep->ah_failed = NULL == ep->ah;
    end = ofo_now_ms();
    module->ud.is_slow = end - begin >= SLOW_MS;
    if (ep->ah_failed) {
        module->resolve_at = end + 9 * (end - begin);
    }
}

static void ud_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl)
{
    ofo_module_t *module = ep->module;
    ofo_ud_t *ud = &module->ud;
    uint8_t *slot = send_slot(ud, ud->sent);
    struct ibv_sge sge = {.addr = (uintptr_t) slot, .lkey = ud->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *wrong;

    (void) mend(module, ofo_now_ms());
    if (NULL != ep->ah && ep->ah_gid_index != module->gid_index) {
        ofo_ud_forget(ep); /* our own address has another index in the GID table now */
    }
    if (NULL == ep->ah) {
        resolve(ep);
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
        OFO_STORE(ud->is_doubtful, true);
        return;
    }
    ++ud->sent;
    BFO_ASSERT(ud->sent - ud->reaped <= SENDS); /* the slot of a message is used again after its completion */
    ++module->count.ctl_out;
}

/* A queue pair that needs repair, or whose messages stay (its port may be down), keeps nobody waiting: what it does not send is lost, but a
 * message may have another way. */
static bool ud_has_room(ofo_module_t *module)
{
    ofo_ud_t *ud = &module->ud;

    if (SENDS == ud->sent - ud->reaped) {
        reap_sends(ud);
    }
    if (SENDS > ud->sent - ud->reaped) {
        ud->full_since = 0;
        return true;
    }
    ud->full_since = 0 == ud->full_since ? ofo_now_ms() : ud->full_since;
    return OFO_LOAD(ud->is_doubtful) || OFO_LOAD(module->device->fatal) || FULL_MS <= ofo_now_ms() - ud->full_since;
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

/* Receives that come back with an error are posted again when the queue pair is repaired. */
static int poll_datagrams(ofo_module_t *module)
{
    ofo_ud_t *ud = &module->ud;
    struct ibv_wc wc[BATCH];
    int n = ibv_poll_cq(ud->recv_cq, BATCH, wc);

    for (int i = 0; i < n; ++i) {
        unsigned slot = (unsigned) wc[i].wr_id;
        BFO_ASSERT(slot < RECVS && ud->posted[slot]); /* each receive completes once */
        ud->posted[slot] = false;
        if (IBV_WC_SUCCESS != wc[i].status) {
            OFO_STORE(ud->is_doubtful, true);
            continue;
        }
        if (GRH < wc[i].byte_len && SLOT >= wc[i].byte_len) {
            read_datagram(module, recv_slot(ud, slot) + GRH, wc[i].byte_len - GRH);
        } else {
            ++module->count.ctl_dropped;
        }
        if (!post_recv(ud, slot)) {
            OFO_STORE(ud->is_doubtful, true);
        }
    }
    return n;
}

static void ud_receive(ofo_module_t *module)
{
    ofo_ud_t *ud = &module->ud;
    struct ibv_cq *cq;
    void *context;

    BFO_ASSERT(!ud->is_reading); /* no message that is handled reads the next one */
    if (0 == ibv_get_cq_event(ud->channel, &cq, &context)) {
        ibv_ack_cq_events(cq, 1);
        (void) ibv_req_notify_cq(ud->recv_cq, 0);
    }
    ud->is_reading = true;
    for (int n = 1, left = RECVS; 0 < n && 0 < left; left -= n) {
        n = poll_datagrams(module);
        ud->is_behind = 0 < n; /* the next round of service goes on */
    }
    ud->is_reading = false;
}

static uint64_t ud_expire(ofo_module_t *module, uint64_t now)
{
    uint64_t at = mend(module, now);

    module->ud.is_slow = false; /* the next round */
    return module->ud.is_behind ? now : at;
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
    .has_room = ud_has_room,
    .join = ofo_qpset_connect,
    .expire = ud_expire,
};
