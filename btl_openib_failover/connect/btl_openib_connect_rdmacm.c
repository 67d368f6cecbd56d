/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The connection manager rdmacm. librdmacm connects the queue pairs, with one connect for each. Every other control message
 * is the private data of a connect that the peer rejects. The kernel repeats lost packets. Events of the channel become the
 * same control messages for the rails' machines that udcm gets as datagrams. Context: service. See DESIGN.txt 6.2, 15.3.
 */
#include "connect/btl_openib_connect_rdmacm.h"

#include "connect/btl_openib_async.h"
#include "types/btl_openib_clock.h"
#include "connect/btl_openib_connect.h"
#include "connect/btl_openib_connect_parked.h"
#include "types/btl_openib_log.h"
#include "qp/btl_openib_qpset.h"
#include "rail/btl_openib_rail.h"
#include "formats/btl_openib_wire.h"

#include "bfo_assert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

enum {
    RESOLVE_MS = 2000,
    PRIVATE_MAX = 56,  /* bytes of private data in a connect */
    ADDRESS_PART = 40, /* bytes sent of REQ and REP; librdmacm itself exchanges the addresses and numbers of the queue pairs */
    MESSAGES_MAX = 256 /* messages of one port in flight */
};

/* One outgoing connect: for a queue pair of `qps`, or only with a message. It is the context of its identifier. */
typedef struct ofo_cm_call {
    struct ofo_cm_call *next;
    struct rdma_cm_id *id;
    ofo_endpoint_t *ep;
    ofo_qpset_t *qps; /* NULL: a message */
    uint8_t index;    /* of the queue pair */
    uint8_t length;
    uint8_t data[PRIVATE_MAX];
} call_t;

/* ---- addresses ---------------------------------------------------------------------------------- */

static bool address_of(const uint8_t *gid, uint16_t port, struct sockaddr_storage *out)
{
    static const uint8_t v4_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct sockaddr_in *v4 = (struct sockaddr_in *) out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) out;

    memset(out, 0, sizeof(*out));
    if (0 == memcmp(gid, v4_mapped, sizeof(v4_mapped))) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        memcpy(&v4->sin_addr, gid + 12, 4);
        return true;
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    memcpy(&v6->sin6_addr, gid, 16);
    return 0xfe != gid[0]; /* a link-local address needs its interface */
}

static int create(ofo_module_t *module)
{
    ofo_cm_t *cm = &module->cm;
    struct sockaddr_storage own;

    if (IBV_LINK_LAYER_ETHERNET != module->port_attr.link_layer || !address_of(OFO.record.port[module->port_index].gid, 0, &own)) {
        snprintf(module->no_calls, sizeof(module->no_calls), "it needs an IP address as GID, and a port of Ethernet");
        return OPAL_ERR_NOT_SUPPORTED;
    }
    cm->channel = rdma_create_event_channel();
    if (NULL == cm->channel || 0 != rdma_create_id(cm->channel, &cm->listener, NULL, RDMA_PS_TCP)
        || 0 != rdma_bind_addr(cm->listener, (struct sockaddr *) &own) || 0 != rdma_listen(cm->listener, 128)) {
        snprintf(module->no_calls, sizeof(module->no_calls), "%s%s", strerror(errno),
                 NULL == cm->channel ? " (is /dev/infiniband/rdma_cm there?)" : "");
        return OPAL_ERR_NOT_AVAILABLE;
    }
    fcntl(cm->channel->fd, F_SETFL, fcntl(cm->channel->fd, F_GETFL) | O_NONBLOCK);
    module->contact = ntohs(rdma_get_src_port(cm->listener));
    return OPAL_SUCCESS;
}

static int wait_fd(const ofo_module_t *module)
{
    return module->cm.channel->fd;
}

/* ---- outgoing ----------------------------------------------------------------------------------- */

static void call_end(ofo_module_t *module, call_t *call)
{
    call_t **at = &module->cm.calls;

    while (NULL != *at && *at != call) {
        at = &(*at)->next;
    }
    BFO_ASSERT(call == *at); /* a connect ends once */
    BFO_ASSERT(NULL != call->qps || 0 < module->cm.messages);
    if (NULL != *at) {
        *at = call->next;
        module->cm.messages -= NULL == call->qps;
    }
    if (NULL != call->id) {
        rdma_destroy_id(call->id);
    }
    free(call);
}

/* Begins a connect; step() continues it with each event. NULL on failure. */
static call_t *call_begin(ofo_endpoint_t *ep, ofo_qpset_t *qps, unsigned index, const uint8_t *data, size_t length)
{
    ofo_module_t *module = ep->module;
    struct sockaddr_storage own, peer;
    call_t *call;

    if ((NULL == qps && MESSAGES_MAX <= module->cm.messages) || PRIVATE_MAX < length || !address_of(OFO.record.port[module->port_index].gid, 0, &own)
        || !address_of(ep->remote.gid, (uint16_t) ep->remote_contact, &peer)) {
        return NULL;
    }
    call = calloc(1, sizeof(*call));
    if (NULL == call || 0 != rdma_create_id(module->cm.channel, &call->id, call, RDMA_PS_TCP)) {
        free(call);
        return NULL;
    }
    call->ep = ep;
    call->qps = qps;
    call->index = (uint8_t) index;
    call->length = (uint8_t) length;
    memcpy(call->data, data, length);
    call->next = module->cm.calls;
    module->cm.calls = call;
    module->cm.messages += NULL == qps;
    BFO_ASSERT(module->cm.messages <= MESSAGES_MAX);
    if (0 != rdma_resolve_addr(call->id, (struct sockaddr *) &own, (struct sockaddr *) &peer, RESOLVE_MS)) {
        call_end(module, call);
        return NULL;
    }
    return call;
}

static struct rdma_conn_param parameters(const ofo_module_t *module, const ofo_qpset_t *qps, unsigned index)
{
    return (struct rdma_conn_param){
        .responder_resources = ofo_reads_answered(module),
        .initiator_depth = ofo_reads_asked(module, 0),
        .flow_control = 1,
        .retry_count = (uint8_t) OFO.params.ib_retry_count,
        .rnr_retry_count = (uint8_t) (NULL != qps && qps->qp[index].shared ? 7 : OFO.params.ib_rnr_retry),
        .srq = NULL != qps && qps->qp[index].shared,
        .qp_num = NULL != qps ? qps->qp[index].qp->qp_num : 0,
    };
}

static int call_connect(call_t *call)
{
    struct rdma_conn_param param = parameters(call->ep->module, call->qps, call->index);

    param.private_data = call->data;
    param.private_data_len = call->length;
    return rdma_connect(call->id, &param);
}

/* Begins a connect for each queue pair that has none. */
static void send_request(ofo_endpoint_t *ep, ofo_ctl_t *ctl)
{
    ofo_qpset_t *qps = ep->building;
    uint8_t bytes[OFO_CTL_MAX_SIZE];

    BFO_ASSERT(qps->gen == ctl->gen && qps->nqp == ctl->nqp); /* the request is that of the set whose queue pairs connect */
    for (unsigned i = 0; i < qps->nqp; ++i) {
        ctl->qp_index = (uint8_t) i;
        if (NULL == qps->qp[i].cm_id && 0 < ofo_ctl_pack(ctl, bytes, sizeof(bytes))) {
            call_t *call = call_begin(ep, qps, i, bytes, ADDRESS_PART);
            qps->qp[i].cm_id = NULL != call ? call->id : NULL;
        }
    }
}

/* The queue pairs are in RTS already. Each connect is accepted once. */
static void send_reply(ofo_endpoint_t *ep, ofo_ctl_t *ctl)
{
    ofo_qpset_t *qps = ep->building;
    uint8_t bytes[OFO_CTL_MAX_SIZE];

    for (unsigned i = 0; i < qps->nqp; ++i) {
        struct rdma_conn_param param = parameters(ep->module, qps, i);
        ctl->qp_index = (uint8_t) i;
        if (NULL == qps->qp[i].cm_id || qps->qp[i].cm_answered || 0 == ofo_ctl_pack(ctl, bytes, sizeof(bytes))) {
            continue;
        }
        param.private_data = bytes;
        param.private_data_len = ADDRESS_PART;
        qps->qp[i].cm_answered = true;
        if (0 != rdma_accept(qps->qp[i].cm_id, &param)) {
            ofo_log(1, "%s: rdma_accept: %s", ep->module->name, strerror(errno));
        }
    }
}

static void cm_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl)
{
    uint8_t bytes[OFO_CTL_MAX_SIZE];
    size_t length;

    switch (ctl->type) {
    case OFO_CTL_REQ:
        send_request(ep, ctl);
        break;
    case OFO_CTL_REP:
        send_reply(ep, ctl);
        break;
    case OFO_CTL_RTU:
        break; /* librdmacm sends its own */
    case OFO_CTL_REJ:
        length = ofo_ctl_pack(ctl, bytes, sizeof(bytes));
        ofo_parked_reject(ep, ctl->gen, bytes, length);
        break;
    default:
        length = ep->module->transport->moves_itself ? 0 /* no connect is possible without a queue pair; the peer sees the connections end */
                                                     : ofo_ctl_pack(ctl, bytes, sizeof(bytes));
        if (0 == length || NULL == call_begin(ep, NULL, 0, bytes, length)) {
            ++ep->module->count.ctl_dropped;
            return;
        }
    }
    ++ep->module->count.ctl_out;
}

/* ---- joining ------------------------------------------------------------------------------------ */

/* The user's parameters override what librdmacm took from the path. Both sides of a rail know both limits of the MTU. */
static void set_path(const ofo_module_t *module, uint8_t their_mtu, struct ibv_qp_attr *attr)
{
    const uint8_t mtu = ofo_mtu_with(module, their_mtu);

    if (mtu < (uint8_t) attr->path_mtu) {
        attr->path_mtu = (enum ibv_mtu) mtu;
    }
    if (0 < OFO.params.ib_service_level) {
        attr->ah_attr.sl = (uint8_t) OFO.params.ib_service_level;
    }
    if (0 <= OFO.params.ib_traffic_class) {
        attr->ah_attr.grh.traffic_class = (uint8_t) OFO.params.ib_traffic_class;
    }
}

static int join_one(const ofo_module_t *module, ofo_qp_t *qp, uint8_t their_mtu, bool active)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    int mask = 0;

    if (module->transport->moves_itself) {
        ofo_qpset_log(module, qp);
        return 0;
    }
    if (0 != rdma_init_qp_attr(qp->cm_id, &attr, &mask)) {
        return -1;
    }
    attr.min_rnr_timer = (uint8_t) OFO.params.ib_min_rnr_timer;
    set_path(module, their_mtu, &attr);
    if (ofo_reads_answered(module) < attr.max_dest_rd_atomic) { /* the peer's device asks more than ours answers */
        attr.max_dest_rd_atomic = ofo_reads_answered(module);
    }
    if (0 != ibv_modify_qp(qp->qp, &attr, mask)) {
        return -1;
    }
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_RTS;
    if (0 != rdma_init_qp_attr(qp->cm_id, &attr, &mask)) {
        return -1;
    }
    attr.max_rd_atomic = ofo_reads_asked(module, attr.max_rd_atomic);
    attr.timeout = ofo_qpset_ack_timeout(module);
    attr.retry_cnt = (uint8_t) OFO.params.ib_retry_count;
    attr.rnr_retry = (uint8_t) (qp->shared ? 7 : OFO.params.ib_rnr_retry);
    if (0 != ibv_modify_qp(qp->qp, &attr, mask)) {
        return -1;
    }
    ofo_qpset_log(module, qp);
    return active ? rdma_establish(qp->cm_id) : 0;
}

/* Must not use qps->ep, because it also runs after ofo_peers_free(). */
static void cm_leave(ofo_qpset_t *qps)
{
    ofo_module_t *module = qps->module;

    for (unsigned i = 0; i < qps->nqp; ++i) {
        ofo_qp_t *qp = &qps->qp[i];
        if (NULL != qp->cm_id && qp->cm_passive) {
            rdma_destroy_id(qp->cm_id);
        } else if (NULL != qp->cm_id) {
            call_end(module, qp->cm_id->context);
        }
        qp->cm_id = NULL;
        qp->cm_passive = qp->cm_answered = qp->cm_done = false;
    }
}

/* Takes over the parked connects of this rail, in the place of our own ones. False if some are missing. */
static bool adopt_parked(ofo_qpset_t *qps)
{
    struct rdma_cm_id *id;
    unsigned found = 0, i;

    cm_leave(qps);
    while (NULL != (id = ofo_parked_take(qps->ep, qps->gen, &i))) {
        if (i >= qps->nqp || NULL != qps->qp[i].cm_id) {
            rdma_reject(id, NULL, 0);
            rdma_destroy_id(id);
            continue;
        }
        qps->qp[i].cm_id = id;
        qps->qp[i].cm_answered = false;
        qps->qp[i].cm_passive = true;
        id->context = qps;
        ++found;
    }
    return found == qps->nqp;
}

static int cm_join(ofo_qpset_t *qps, const ofo_ctl_t *remote)
{
    bool active = OFO_CTL_REP == remote->type;

    if (!active && !adopt_parked(qps)) {
        return -1;
    }
    for (unsigned i = 0; i < qps->nqp; ++i) {
        ofo_qp_t *qp = &qps->qp[i];
        if (NULL == qp->cm_id || 0 != join_one(qps->module, qp, remote->mtu, active)) {
            ofo_log(1, "%s: rail %u to %u does not connect by rdmacm: %s", qps->ep->module->name, qps->ep->rail, qps->ep->peer->name.vpid,
                    strerror(errno));
            return -1;
        }
    }
    return 0;
}

/* ---- incoming ----------------------------------------------------------------------------------- */

/* Reads the private data of a connect. REQ and REP come without their list of queue pairs. */
static bool read_message(ofo_module_t *module, const struct rdma_conn_param *param, ofo_ctl_t *ctl)
{
    uint8_t bytes[OFO_CTL_MAX_SIZE] = {0};
    size_t length = param->private_data_len; /* as long as the transport allows: zeros follow the message */

    if (NULL == param->private_data) {
        return false;
    }
    length = sizeof(bytes) < length ? sizeof(bytes) : length;
    memcpy(bytes, param->private_data, length);
    if (ADDRESS_PART <= length && (OFO_CTL_REQ == bytes[0] || OFO_CTL_REP == bytes[0])) {
        memset(bytes + ADDRESS_PART, 0, sizeof(bytes) - ADDRESS_PART);
        length = sizeof(bytes);
    }
    if (OFO_WIRE_OK != ofo_ctl_unpack(bytes, length, ctl) || ctl->dst_inc != OFO.record.incarnation) {
        ++module->count.ctl_dropped;
        return false;
    }
    ++module->count.ctl_in;
    ofo_log(2, "%s: %s(%u) of rail %u from %u by rdmacm", module->name, ofo_ctl_name(ctl->type), ctl->gen, ctl->rail, ctl->vpid);
    return true;
}

/* Rejects the connects that the machine did not take: copies, and requests of a peer that yields to our own request. */
static void cm_refuse(ofo_endpoint_t *ep, uint16_t gen)
{
    ofo_parked_reject(ep, gen, NULL, 0);
}

static void connect_request(ofo_module_t *module, struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
    ofo_ctl_t ctl;
    bool valid = read_message(module, param, &ctl);

    if (valid && OFO_CTL_REQ == ctl.type) {
        if (ofo_parked_add(module, id, &ctl, ofo_now_ms())) {
            ofo_ctl_dispatch(module, &ctl); /* cm_refuse() rejects the connects that the machine does not take */
        }
        return;
    }
    rdma_reject(id, NULL, 0); /* this connect only carried a message, which has arrived */
    rdma_destroy_id(id);
    if (valid) {
        ofo_ctl_dispatch(module, &ctl);
    }
}

static bool all_done(ofo_qpset_t *qps, const struct rdma_cm_id *id)
{
    bool all = true;

    for (unsigned i = 0; i < qps->nqp; ++i) {
        qps->qp[i].cm_done |= id == qps->qp[i].cm_id;
        all = all && qps->qp[i].cm_done;
    }
    return all;
}

/* The peer accepted one queue pair. With the last one its reply is complete. */
static void connect_response(ofo_module_t *module, call_t *call, const struct rdma_conn_param *param)
{
    ofo_ctl_t ctl;

    BFO_ASSERT(NULL == call->qps || call->qps->qp[call->index].cm_id == call->id); /* the queue pair has no other connect */
    if (NULL != call->qps && read_message(module, param, &ctl) && OFO_CTL_REP == ctl.type && all_done(call->qps, call->id)) {
        ofo_rail_message(call->ep, &ctl);
    }
}

static void established(ofo_qpset_t *qps, const struct rdma_cm_id *id)
{
    if (all_done(qps, id)) {
        ofo_ctl_t rtu = {.type = OFO_CTL_RTU, .rail = qps->ep->rail, .gen = qps->gen};
        ofo_rail_message(qps->ep, &rtu);
    }
}

/* A rejection without a message means that the peer's own request is in flight, or that this connect waited too long for the others of
 * its set. The next REQ makes a new connect; T_conn limits the total time. */
static void rejected(ofo_module_t *module, call_t *call, const struct rdma_conn_param *param)
{
    ofo_ctl_t ctl;

    if (NULL == call->qps) {
        call_end(module, call); /* the message has arrived */
    } else if (0 < param->private_data_len && OFO_CTL_REJ == *(const uint8_t *) param->private_data && read_message(module, param, &ctl)) {
        ofo_rail_message(call->ep, &ctl);
    } else if (call->qps == call->ep->building && OFO_ST_REQUESTED == call->ep->fsm.state && !module->transport->moves_itself) {
        /* a queue pair that is spent cannot connect again: the peer's request gets a new one */
        call->qps->qp[call->index].cm_id = NULL;
        call->qps->qp[call->index].cm_done = false;
        call_end(module, call);
    }
}

static void failed(ofo_module_t *module, call_t *call, const struct rdma_cm_event *event)
{
    ofo_log(1, "%s: rdmacm to %u: %s (%d)", module->name, call->ep->peer->name.vpid, rdma_event_str(event->event), event->status);
    if (NULL == call->qps) {
        call_end(module, call);
    } else if (call->qps == call->ep->building) {
        ofo_rail_event(call->ep, OFO_EV_LOCAL_ERROR, NULL);
    }
}

/* Continues an outgoing connect. */
static void step(ofo_module_t *module, call_t *call, const struct rdma_cm_event *event)
{
    int rc = 0;

    switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        rc = rdma_resolve_route(call->id, RESOLVE_MS);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        rc = call_connect(call);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_ESTABLISHED: /* comes without CONNECT_RESPONSE if the device moves the queue pair itself */
        connect_response(module, call, &event->param.conn);
        break;
    case RDMA_CM_EVENT_REJECTED:
        rejected(module, call, &event->param.conn);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
        failed(module, call, event);
        break;
    default:
        break; /* the end of a connection shows on its queue pair */
    }
    if (0 != rc) {
        failed(module, call, event);
    }
}

static call_t *find_call(const ofo_module_t *module, const struct rdma_cm_id *id)
{
    call_t *call = module->cm.calls;

    while (NULL != call && call->id != id) {
        call = call->next;
    }
    return call;
}

/* Handles an event of a connect that came from the peer. Its context is the set that has taken it over, or NULL. */
static void step_passive(ofo_module_t *module, const struct rdma_cm_event *event)
{
    ofo_qpset_t *qps = event->id->context;

    switch (event->event) {
    case RDMA_CM_EVENT_ESTABLISHED:
        if (NULL != qps && !module->transport->acceptor_listens) { /* otherwise the first messages do this: ofo_recv_tell_first() */
            established(qps, event->id);
        }
        break;
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
        if (NULL == qps) {
            ofo_parked_drop(module, event->id); /* the peer gave up a connect that was not answered yet */
        } else if (qps == qps->ep->building) {
            ofo_log(1, "%s: rdmacm from %u: %s", module->name, qps->ep->peer->name.vpid, rdma_event_str(event->event));
            ofo_rail_event(qps->ep, OFO_EV_LOCAL_ERROR, NULL);
        }
        break;
    default:
        break;
    }
}

/* The event was acknowledged before, because identifiers with unacknowledged events cannot be destroyed. */
static void handle(ofo_module_t *module, const struct rdma_cm_event *event)
{
    call_t *call = find_call(module, event->id);

    ofo_log(3, "%s: %s (%d)", module->name, rdma_event_str(event->event), event->status);
    if (RDMA_CM_EVENT_DEVICE_REMOVAL == event->event) { /* comes for each identifier; only the first one has an effect */
        ofo_async_device_gone(module->device);
        return;
    }
    if (RDMA_CM_EVENT_CONNECT_REQUEST == event->event) {
        connect_request(module, event->id, &event->param.conn);
    } else if (NULL != call) {
        step(module, call, event);
    } else if (event->id != module->cm.listener) {
        step_passive(module, event);
    }
}

static void cm_receive(ofo_module_t *module)
{
    struct rdma_cm_event *event;

    while (NULL != module->cm.channel && 0 == rdma_get_cm_event(module->cm.channel, &event)) {
        struct rdma_cm_event copy = *event;
        uint8_t data[256];
        if (NULL != copy.param.conn.private_data) {
            memcpy(data, copy.param.conn.private_data, copy.param.conn.private_data_len);
            copy.param.conn.private_data = data;
        }
        rdma_ack_cm_event(event);
        handle(module, &copy);
    }
}

static void destroy(ofo_module_t *module)
{
    ofo_cm_t *cm = &module->cm;

    while (NULL != cm->calls) {
        call_end(module, cm->calls);
    }
    ofo_parked_free(module);
    if (NULL != cm->listener) {
        rdma_destroy_id(cm->listener);
    }
    if (NULL != cm->channel) {
        rdma_destroy_event_channel(cm->channel);
    }
    memset(cm, 0, sizeof(*cm));
}

const ofo_cpc_t ofo_cpc_rdmacm = {
    .name = "rdmacm",
    .type = OFO_CPC_RDMACM,
    .create = create,
    .destroy = destroy,
    .fd = wait_fd,
    .receive = cm_receive,
    .send = cm_send,
    .join = cm_join,
    .leave = cm_leave,
    .refuse = cm_refuse,
    .expire = ofo_parked_expire,
};
