/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The letters of a connection: request, reply, ready; reject, goodbye. What a letter does to the identifier, its queue
 * pair and its events. A letter that comes over a rail that is down is lost. DESIGN.txt 16.
 */
#include "sr_cm.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SR_PUBLIC __attribute__((visibility("default")))

enum { SR_CM_BY_CONSUMER = 28, SR_CM_NO_SERVICE = 8 }; /* why a request is rejected, as InfiniBand numbers it */
enum { SR_CM_KNOCKS = 300, SR_CM_KNOCK_NS = 10000000 }; /* so often, so far apart, before nobody listens */

struct sr_cm_id *sr_cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps)
{
    struct sr_cm_id *id = calloc(1, sizeof(*id));

    if (NULL != id) {
        id->rdma.channel = channel;
        id->rdma.context = context;
        id->rdma.ps = ps;
        id->rdma.qp_type = RDMA_PS_UDP == ps || RDMA_PS_IPOIB == ps ? IBV_QPT_UD : IBV_QPT_RC;
        id->rail = id->fd = -1;
        sr_acks_init(&id->acks);
    }
    return id;
}

void sr_cm_id_free(struct sr_cm_id *id)
{
    char path[SR_PATH_MAX + 40];

    if ('\0' != id->name[0]) {
        snprintf(path, sizeof(path), "%s/%s", sr.fabric.path, id->name);
        unlink(path);
    }
    if (0 <= id->fd) {
        close(id->fd);
    }
    free(id);
}

void sr_cm_incoming_remove(struct sr_cm_id *id)
{
    struct sr_cm_id **next = &id->listener->incoming;

    while (id != *next) {
        next = &(*next)->incoming;
    }
    *next = id->incoming;
    id->incoming = id->listener = NULL;
}

/* Private data that fits into a letter of InfiniBand; of a request, librdmacm's own head takes its part. */
static unsigned data_limit(enum sr_cm_kind kind, enum rdma_port_space ps)
{
    return SR_CM_REPLY == kind ? SR_CM_DATA : SR_CM_REJECT == kind ? 148 : RDMA_PS_IB == ps ? 92 : 56;
}

int sr_cm_send(struct sr_cm_id *id, enum sr_cm_kind kind, const struct rdma_conn_param *param)
{
    struct sr_cm_letter letter = { .kind = kind, .slot = sr.slot, .rail = (uint32_t) id->rail,
                                   .from = id->rdma.route.addr.src_storage, .to = id->rdma.route.addr.dst_storage };

    if (NULL != param) {
        letter.qpn = NULL != id->rdma.qp ? id->rdma.qp->qp_num : param->qp_num;
        letter.responder_resources = param->responder_resources;
        letter.initiator_depth = param->initiator_depth;
        letter.flow_control = param->flow_control;
        letter.retry_count = param->retry_count;
        letter.rnr_retry_count = param->rnr_retry_count;
        letter.srq = NULL != id->rdma.qp ? NULL != id->rdma.qp->srq : param->srq;
        letter.length = NULL == param->private_data ? 0 : param->private_data_len;
        if (data_limit(kind, id->rdma.ps) < letter.length) {
            return EINVAL;
        }
        if (0 < letter.length) {
            memcpy(letter.data, param->private_data, letter.length);
        }
    }
    return (ssize_t) sizeof(letter) == send(id->fd, &letter, sizeof(letter), MSG_NOSIGNAL) ? 0 : errno;
}

/* ---- queue pair --------------------------------------------------------------------------------- */

static void address_peer(const struct sr_cm_id *id, struct ibv_ah_attr *attr)
{
    unsigned rail = (unsigned) id->rail;

    attr->port_num = 1;
    if (IBV_LINK_LAYER_ETHERNET == sr.fabric.shm->link_layer) {
        attr->is_global = 1;
        attr->grh.hop_limit = 64;
        sr_gid(rail, id->peer.slot, &attr->grh.dgid);
    } else {
        attr->dlid = (uint16_t) (sr_lid(id->peer.slot) + sr_lid_shift(rail));
    }
}

SR_PUBLIC int rdma_init_qp_attr(struct rdma_cm_id *rdma, struct ibv_qp_attr *attr, int *mask)
{
    struct sr_cm_id *id = sr_cm_id(rdma);
    enum ibv_qp_state state = attr->qp_state;

    if (0 > id->rail || IBV_QPS_INIT > state || IBV_QPS_RTS < state) {
        errno = EINVAL;
        return -1;
    }
    memset(attr, 0, sizeof(*attr));
    attr->qp_state = state;
    attr->port_num = 1;
    attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    attr->path_mtu = IBV_MTU_4096;
    attr->dest_qp_num = id->peer.qpn;
    attr->max_dest_rd_atomic = id->mine.responder_resources;
    attr->max_rd_atomic = id->mine.initiator_depth;
    attr->timeout = 14;
    attr->retry_cnt = id->mine.retry_count & 7;
    attr->rnr_retry = id->mine.rnr_retry_count & 7;
    address_peer(id, &attr->ah_attr);
    if (IBV_QPS_INIT == state) {
        *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    } else if (IBV_QPS_RTR == state) {
        *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    } else {
        *mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN
                | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    return 0;
}

int sr_cm_qp_to(struct sr_cm_id *id, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };
    int mask = IBV_QP_STATE;

    if (NULL == id->rdma.qp) {
        return 0;
    }
    if (IBV_QPS_ERR != state && 0 != rdma_init_qp_attr(&id->rdma, &attr, &mask)) {
        return errno;
    }
    return sr_qp_modify(id->rdma.qp, &attr, mask);
}

/* ---- letters that come -------------------------------------------------------------------------- */

static void end(struct sr_cm_id *id, enum rdma_cm_event_type type, int status)
{
    id->state = SR_CM_ENDED;
    if (0 <= id->fd) {
        sr_cm_unwatch(id);
        close(id->fd);
        id->fd = -1;
    }
    sr_cm_event_add(id, type, status, NULL);
}

static void accept_socket(struct sr_cm_id *listener)
{
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct sr_cm_id *id;

    if (0 > fd) {
        return;
    }
    id = sr_cm_id_new(listener->rdma.channel, listener->rdma.context, listener->rdma.ps);
    if (NULL == id) {
        close(fd);
        return;
    }
    id->fd = fd;
    id->state = SR_CM_INCOMING;
    id->passive = true;
    id->listener = listener;
    id->incoming = listener->incoming;
    listener->incoming = id;
    sr_cm_watch(id);
}

static void on_request(struct sr_cm_id *id)
{
    const struct sr_cm_letter *letter = &id->peer;
    struct sr_cm_id *listener = id->listener;

    sr_cm_incoming_remove(id);
    if (!sr_cm_rail_is_up(letter->rail, letter->slot) || 0 != sr_cm_take_rail(id, (int) letter->rail)
        || !sr_cm_rail_is_up(letter->rail, sr.slot)) {
        sr_cm_send(id, SR_CM_LOST, NULL);
        sr_cm_unwatch(id);
        sr_cm_id_free(id);
        return;
    }
    id->rdma.route.addr.src_storage = letter->to;
    id->rdma.route.addr.dst_storage = letter->from;
    id->state = SR_CM_ASKED;
    sr_cm_event_add(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, listener);
}

static void on_reply(struct sr_cm_id *id)
{
    int rc;

    if (NULL == id->rdma.qp) {
        id->state = SR_CM_ANSWERED;
        sr_cm_event_add(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, NULL);
        return;
    }
    rc = sr_cm_qp_to(id, IBV_QPS_RTR);
    rc = 0 == rc ? sr_cm_qp_to(id, IBV_QPS_RTS) : rc;
    rc = 0 == rc ? sr_cm_send(id, SR_CM_READY, NULL) : rc;
    if (0 != rc) {
        end(id, RDMA_CM_EVENT_CONNECT_ERROR, -rc);
        return;
    }
    id->state = SR_CM_CONNECTED;
    sr_cm_event_add(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
}

static void on_end_of_socket(struct sr_cm_id *id)
{
    if (SR_CM_INCOMING == id->state) {
        sr_cm_incoming_remove(id);
        sr_cm_unwatch(id);
        sr_cm_id_free(id);
    } else if (SR_CM_CONNECTING == id->state) {
        end(id, RDMA_CM_EVENT_REJECTED, SR_CM_BY_CONSUMER);
    } else if (SR_CM_ACCEPTED == id->state || SR_CM_ANSWERED == id->state) {
        end(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    } else if (SR_CM_CONNECTED == id->state) {
        end(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    } else {
        sr_cm_unwatch(id); /* asked, not answered yet: the answer will fail */
    }
}

/* Each kind is heard in one state only; anything else is not from a peer of ours. */
static void on_letter(struct sr_cm_id *id, const struct sr_cm_letter *letter)
{
    if (SR_CM_INCOMING == id->state && SR_CM_REQUEST == letter->kind) {
        id->peer = *letter;
        on_request(id);
        return;
    }
    if (0 <= id->rail && (!sr_cm_rail_is_up((unsigned) id->rail, letter->slot)
                          || !sr_cm_rail_is_up((unsigned) id->rail, sr.slot))) {
        if (SR_CM_CONNECTING == id->state || SR_CM_ACCEPTED == id->state) {
            end(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
        }
        return;
    }
    if (SR_CM_CONNECTING == id->state && SR_CM_REPLY == letter->kind) {
        id->peer = *letter;
        on_reply(id);
    } else if (SR_CM_CONNECTING == id->state && SR_CM_REJECT == letter->kind) {
        id->peer = *letter;
        end(id, RDMA_CM_EVENT_REJECTED, SR_CM_BY_CONSUMER);
    } else if (SR_CM_CONNECTING == id->state && SR_CM_LOST == letter->kind) {
        end(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    } else if (SR_CM_ACCEPTED == id->state && SR_CM_READY == letter->kind) {
        id->state = SR_CM_CONNECTED;
        sr_cm_event_add(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
    } else if (SR_CM_GOODBYE == letter->kind) {
        on_end_of_socket(id);
    }
}

/* ---- knocking ----------------------------------------------------------------------------------- */

/* Where nobody listens yet, a timer takes the socket's place. Programs that agree over another path to connect now
 * count on the time that a network takes: the other one may be on its way to rdma_listen. */
static int wait_to_knock(struct sr_cm_id *id)
{
    const struct itimerspec pause = { .it_value.tv_nsec = SR_CM_KNOCK_NS, .it_interval.tv_nsec = SR_CM_KNOCK_NS };

    id->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (0 > id->fd) {
        return errno;
    }
    timerfd_settime(id->fd, 0, &pause, NULL);
    id->state = SR_CM_KNOCKING;
    id->knocks = 0;
    sr_cm_watch(id);
    return 0;
}

static int knock(struct sr_cm_id *id)
{
    int fd = sr_cm_call(id->rdma.ps, *sr_cm_port(&id->rdma.route.addr.dst_addr), (unsigned) id->rail), rc;
    bool nobody = 0 > fd && (ENOENT == errno || ECONNREFUSED == errno || EAGAIN == errno);

    if (nobody && SR_CM_KNOCKING != id->state) {
        return wait_to_knock(id);
    }
    if (nobody && SR_CM_KNOCKS > ++id->knocks) {
        return 0;
    }
    if (SR_CM_KNOCKING == id->state) {
        sr_cm_unwatch(id);
        close(id->fd);
    }
    id->fd = fd;
    id->state = SR_CM_CONNECTING;
    if (0 <= fd) {
        sr_cm_watch(id);
    }
    rc = 0 > fd ? ENOTCONN : sr_cm_send(id, SR_CM_REQUEST, &id->mine);
    id->mine.private_data = NULL;
    memset(&id->peer, 0, sizeof(id->peer));
    if (0 != rc) {
        end(id, nobody ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_UNREACHABLE, nobody ? SR_CM_NO_SERVICE : -ETIMEDOUT);
    }
    return 0;
}

void sr_cm_readable(struct sr_cm_id *id)
{
    struct sr_cm_letter letter;
    ssize_t n;

    if (SR_CM_LISTENING == id->state) {
        accept_socket(id);
        return;
    }
    if (SR_CM_KNOCKING == id->state) {
        uint64_t times;
        if (0 < read(id->fd, &times, sizeof(times))) {
            knock(id);
        }
        return;
    }
    n = recv(id->fd, &letter, sizeof(letter), MSG_DONTWAIT);
    if ((ssize_t) sizeof(letter) == n && SR_CM_DATA >= letter.length && SR_MAX_PROCS > letter.slot) {
        on_letter(id, &letter);
    } else if (0 <= n || (EAGAIN != errno && EINTR != errno)) {
        on_end_of_socket(id);
    }
}

/* ---- connecting --------------------------------------------------------------------------------- */

static int result(int rc)
{
    errno = 0 == rc ? errno : rc;
    return 0 == rc ? 0 : -1;
}

static int connect_locked(struct sr_cm_id *id, const struct rdma_conn_param *param)
{
    if (SR_CM_BOUND != id->state || 0 > id->rail || IBV_QPT_UD == id->rdma.qp_type
        || data_limit(SR_CM_REQUEST, id->rdma.ps) < (NULL == param->private_data ? 0 : param->private_data_len)) {
        return EINVAL;
    }
    id->mine = *param;
    id->mine.private_data = NULL == param->private_data ? NULL : id->peer.data; /* no letter has come yet */
    if (NULL != param->private_data) {
        memcpy(id->peer.data, param->private_data, param->private_data_len);
    }
    if (!sr_cm_rail_is_up((unsigned) id->rail, sr.slot)) {
        sr_cm_event_add(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
        return 0;
    }
    return knock(id);
}

SR_PUBLIC int rdma_connect(struct rdma_cm_id *rdma, struct rdma_conn_param *param)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct rdma_conn_param none = { .retry_count = 7, .rnr_retry_count = 7, .responder_resources = 16,
                                    .initiator_depth = 16 };
    int rc;

    pthread_mutex_lock(&channel->mutex);
    rc = connect_locked(sr_cm_id(rdma), NULL == param ? &none : param);
    pthread_mutex_unlock(&channel->mutex);
    return result(rc);
}

static int accept_locked(struct sr_cm_id *id, const struct rdma_conn_param *param)
{
    int rc;

    if (SR_CM_ASKED != id->state) {
        return EINVAL;
    }
    id->mine = *param;
    id->mine.retry_count = id->peer.retry_count;
    rc = sr_cm_qp_to(id, IBV_QPS_RTR);
    rc = 0 == rc ? sr_cm_qp_to(id, IBV_QPS_RTS) : rc;
    rc = 0 == rc ? sr_cm_send(id, SR_CM_REPLY, &id->mine) : rc;
    if (0 == rc) {
        id->state = SR_CM_ACCEPTED;
    }
    return rc;
}

SR_PUBLIC int rdma_accept(struct rdma_cm_id *rdma, struct rdma_conn_param *param)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);
    struct rdma_conn_param none = { .responder_resources = id->peer.initiator_depth,
                                    .initiator_depth = id->peer.responder_resources, .rnr_retry_count = 7 };
    int rc;

    pthread_mutex_lock(&channel->mutex);
    rc = accept_locked(id, NULL == param ? &none : param);
    pthread_mutex_unlock(&channel->mutex);
    return result(rc);
}

SR_PUBLIC int rdma_establish(struct rdma_cm_id *rdma)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);
    int rc = EINVAL;

    pthread_mutex_lock(&channel->mutex);
    if (SR_CM_ANSWERED == id->state) {
        rc = sr_cm_send(id, SR_CM_READY, NULL);
        id->state = 0 == rc ? SR_CM_CONNECTED : id->state;
    }
    pthread_mutex_unlock(&channel->mutex);
    return result(rc);
}

SR_PUBLIC int rdma_reject(struct rdma_cm_id *rdma, const void *data, uint8_t length)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct rdma_conn_param param = { .private_data = data, .private_data_len = length };
    struct sr_cm_id *id = sr_cm_id(rdma);
    int rc = EINVAL;

    pthread_mutex_lock(&channel->mutex);
    if (SR_CM_ASKED == id->state || SR_CM_ANSWERED == id->state) {
        rc = sr_cm_send(id, SR_CM_REJECT, &param);
        id->state = EINVAL == rc ? id->state : SR_CM_ENDED;
    }
    pthread_mutex_unlock(&channel->mutex);
    return result(rc);
}

SR_PUBLIC int rdma_disconnect(struct rdma_cm_id *rdma)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);
    int rc = 0;

    pthread_mutex_lock(&channel->mutex);
    if (SR_CM_CONNECTED == id->state || SR_CM_ACCEPTED == id->state) {
        sr_cm_qp_to(id, IBV_QPS_ERR);
        sr_cm_send(id, SR_CM_GOODBYE, NULL);
        end(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    } else if (SR_CM_ENDED == id->state) {
        sr_cm_qp_to(id, IBV_QPS_ERR);
    } else {
        rc = EINVAL;
    }
    pthread_mutex_unlock(&channel->mutex);
    return result(rc);
}
