/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The letters of a connection (request, reply, ready; reject, goodbye), and what each does to the identifier, its queue
 * pair and its events. A letter waits while the rail is down or silent, as if the sender repeated it. An identifier that
 * waits too long for an answer gives up. DESIGN.txt 16.
 */
#include "sr_cm.h"
#include "sr_event.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SR_PUBLIC __attribute__((visibility("default")))

enum { SR_CM_BY_CONSUMER = 28, SR_CM_NO_SERVICE = 8 };     /* why a request is rejected, in the numbers of InfiniBand */
enum { SR_CM_NO_DATAGRAMS = 1, SR_CM_NO_DATAGRAM_QP = 2 }; /* the same for RDMA_PS_UDP: no listener, rejected */
enum { SR_CM_KNOCKS = 300 };                               /* attempts, one each tick, before the connect fails */
#define SR_CM_PATIENCE_NS UINT64_C(60000000000)            /* to wait for an answer; --retry-time is for a rail that carries nothing */

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
    sr_cm_list_remove(id);
    free(id->accept_with);
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

/* The private data that fits into a letter of InfiniBand. In a request librdmacm's own header takes a part of it. */
static unsigned data_limit(enum sr_cm_kind kind, enum rdma_port_space ps)
{
    if (RDMA_PS_UDP == ps || RDMA_PS_IPOIB == ps) {
        return SR_CM_REQUEST == kind ? 180 : 136;
    }
    return SR_CM_REPLY == kind ? SR_CM_DATA : SR_CM_REJECT == kind ? 148 : RDMA_PS_IB == ps ? 92 : 56;
}

int sr_cm_send(struct sr_cm_id *id, enum sr_cm_kind kind, const struct rdma_conn_param *param)
{
    struct sr_cm_letter letter = {
        .kind = kind, .slot = sr.slot, .rail = (uint32_t) id->rail, .from = id->rdma.route.addr.src_storage, .to = id->rdma.route.addr.dst_storage};

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

/* ---- time --------------------------------------------------------------------------------------- */

static bool is_datagram(const struct sr_cm_id *id)
{
    return IBV_QPT_UD == id->rdma.qp_type;
}

/* Starts to wait for an answer. */
static void await(struct sr_cm_id *id, uint64_t ns)
{
    id->deadline = sr_now() + ns;
    sr_cm_tick(sr_cm_channel(id->rdma.channel), true);
}

static void await_answer(struct sr_cm_id *id)
{
    id->lost_since = 0;
    await(id, SR_CM_PATIENCE_NS);
}

/* Is the time over? A slow peer has the whole time; a peer that cannot be reached has that of --retry-time. */
static bool is_over(struct sr_cm_id *id)
{
    uint64_t now = sr_now(), retry = sr.fabric.shm->retry_ns;

    if (SR_CM_RESOLVING == id->state || sr_cm_rail_carries((unsigned) id->rail, id->peer.slot)) {
        id->lost_since = 0;
    } else if (0 == id->lost_since) {
        id->lost_since = now;
    }
    return now >= id->deadline || (0 != retry && 0 != id->lost_since && now - id->lost_since >= retry);
}

/* Closes the socket: no more letters are sent or received. */
static void hang_up(struct sr_cm_id *id)
{
    id->state = SR_CM_ENDED;
    id->deadline = 0;
    id->held = false;
    if (0 <= id->fd) {
        sr_cm_unwatch(id);
        close(id->fd);
        id->fd = -1;
    }
}

void sr_cm_end(struct sr_cm_id *id, enum rdma_cm_event_type type, int status)
{
    hang_up(id);
    sr_cm_event_add(id, type, status, NULL);
}

static void end_rejected(struct sr_cm_id *id, int reason)
{
    if (is_datagram(id)) {
        sr_cm_end(id, RDMA_CM_EVENT_UNREACHABLE, SR_CM_NO_SERVICE == reason ? SR_CM_NO_DATAGRAMS : SR_CM_NO_DATAGRAM_QP);
    } else {
        sr_cm_end(id, RDMA_CM_EVENT_REJECTED, reason);
    }
}

static void drop_incoming(struct sr_cm_id *id)
{
    sr_cm_incoming_remove(id);
    sr_cm_unwatch(id);
    sr_cm_id_free(id);
}

/* ---- letters that come -------------------------------------------------------------------------- */

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
    sr_cm_list_add(id);
    sr_cm_watch(id);
}

/* The peer's letter says how many reads at a time each side may ask of the other. */
static void agree(struct sr_cm_id *id)
{
    id->mine.responder_resources = id->peer.initiator_depth;
    id->mine.initiator_depth = id->peer.responder_resources;
}

static void on_request(struct sr_cm_id *id)
{
    const struct sr_cm_letter *letter = &id->peer;
    struct sr_cm_id *listener = id->listener;

    if (0 != sr_cm_take_rail(id, (int) letter->rail)) {
        drop_incoming(id);
        return;
    }
    sr_cm_incoming_remove(id);
    agree(id);
    id->mine.retry_count = letter->retry_count;
    id->mine.rnr_retry_count = letter->rnr_retry_count;
    id->rdma.route.addr.src_storage = letter->to;
    id->rdma.route.addr.dst_storage = letter->from;
    id->state = SR_CM_ASKED;
    sr_cm_event_add(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, listener);
}

static void on_reply(struct sr_cm_id *id)
{
    int rc;

    id->deadline = 0;
    if (is_datagram(id)) {
        sr_cm_end(id, RDMA_CM_EVENT_ESTABLISHED, 0);
        return;
    }
    agree(id);
    if (NULL == id->rdma.qp) {
        id->state = SR_CM_ANSWERED;
        sr_cm_event_add(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, NULL);
        return;
    }
    rc = sr_cm_qp_to(id, IBV_QPS_RTR);
    rc = 0 == rc ? sr_cm_qp_to(id, IBV_QPS_RTS) : rc;
    rc = 0 == rc ? sr_cm_send(id, SR_CM_READY, NULL) : rc;
    if (0 != rc) {
        sr_cm_end(id, RDMA_CM_EVENT_CONNECT_ERROR, -rc);
        return;
    }
    id->state = SR_CM_CONNECTED;
    sr_cm_event_add(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
}

/* The peer has closed the socket, or its process has died. If the rail carries nothing, the identifier must not notice that. */
static void on_end_of_socket(struct sr_cm_id *id)
{
    if (SR_CM_INCOMING == id->state) {
        drop_incoming(id);
        return;
    }
    if (!sr_cm_rail_carries((unsigned) id->rail, id->peer.slot) || SR_CM_ASKED == id->state) {
        sr_cm_unwatch(id); /* ASKED: the program has not answered yet, and its answer will fail */
    } else if (SR_CM_CONNECTING == id->state) {
        end_rejected(id, SR_CM_BY_CONSUMER);
    } else if (SR_CM_ACCEPTED == id->state || SR_CM_ANSWERED == id->state) {
        sr_cm_end(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    } else if (SR_CM_CONNECTED == id->state) {
        sr_cm_end(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    } else {
        sr_cm_unwatch(id);
    }
}

/* Each kind is accepted in one state only; other letters do not come from a correct peer. */
static void on_letter(struct sr_cm_id *id, const struct sr_cm_letter *letter)
{
    if (SR_CM_INCOMING == id->state && SR_CM_REQUEST == letter->kind) {
        id->peer = *letter;
        on_request(id);
    } else if (SR_CM_CONNECTING == id->state && SR_CM_REPLY == letter->kind) {
        id->peer = *letter;
        on_reply(id);
    } else if (SR_CM_CONNECTING == id->state && SR_CM_REJECT == letter->kind) {
        id->peer = *letter;
        end_rejected(id, SR_CM_BY_CONSUMER);
    } else if (SR_CM_ACCEPTED == id->state && SR_CM_READY == letter->kind) {
        id->state = SR_CM_CONNECTED;
        id->deadline = 0;
        sr_cm_event_add(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
    } else if (SR_CM_GOODBYE == letter->kind) {
        on_end_of_socket(id);
    }
}

/* Looks at the next letter, which stays in the socket. False if there is no valid one. */
static bool peek(const struct sr_cm_id *id, struct sr_cm_letter *letter)
{
    return (ssize_t) sizeof(*letter) == recv(id->fd, letter, sizeof(*letter), MSG_DONTWAIT | MSG_PEEK) && SR_CM_DATA >= letter->length
           && SR_MAX_PROCS > letter->slot && sr.fabric.shm->rails > letter->rail;
}

static bool passes(const struct sr_cm_id *id, const struct sr_cm_letter *letter)
{
    return sr_cm_rail_carries(SR_CM_INCOMING == id->state ? letter->rail : (unsigned) id->rail, letter->slot);
}

void sr_cm_readable(struct sr_cm_id *id)
{
    struct sr_cm_letter letter;
    bool whole;
    ssize_t n;

    if (SR_CM_LISTENING == id->state) {
        accept_socket(id);
        return;
    }
    whole = peek(id, &letter);
    if (whole && !passes(id, &letter)) {
        id->held = true;
        sr_cm_unwatch(id);
        sr_cm_tick(sr_cm_channel(id->rdma.channel), true);
        return;
    }
    n = recv(id->fd, &letter, sizeof(letter), MSG_DONTWAIT);
    if (whole && (ssize_t) sizeof(letter) == n) {
        on_letter(id, &letter);
    } else if (0 <= n || (EAGAIN != errno && EINTR != errno)) {
        on_end_of_socket(id);
    }
}

/* ---- knocking ----------------------------------------------------------------------------------- */

/* The slot of the process at the other end of the socket. If it is not known, our own slot, so that our side alone decides what the rail
 * carries. */
static unsigned slot_of(int fd)
{
    const struct sr_fabric_shm *shm = sr.fabric.shm;
    socklen_t length = sizeof(struct ucred);
    struct ucred who;

    if (0 == getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length)) {
        for (unsigned slot = 0; slot < SR_MAX_PROCS; ++slot) {
            if (0 != atomic_load(&shm->proc[slot].incarnation) && (uint32_t) who.pid == atomic_load(&shm->proc[slot].pid)) {
                return slot;
            }
        }
    }
    return sr.slot;
}

/* Tries to reach the listener; if nobody listens yet, the caller tries again. Two programs may agree over another path to connect now,
 * and count on the time that a network takes: the other one may not have reached rdma_listen yet. */
static void knock(struct sr_cm_id *id)
{
    int fd = sr_cm_call(id->rdma.ps, *sr_cm_port(&id->rdma.route.addr.dst_addr), (unsigned) id->rail);
    bool nobody = 0 > fd && (ENOENT == errno || ECONNREFUSED == errno || EAGAIN == errno);

    await_answer(id); /* until now only the time counted in which the rail carried nothing */
    if (nobody && SR_CM_KNOCKS > ++id->knocks) {
        return;
    }
    if (nobody) {
        end_rejected(id, SR_CM_NO_SERVICE);
        return;
    }
    id->fd = fd;
    if (0 > fd || 0 != sr_cm_send(id, SR_CM_REQUEST, &id->mine)) {
        sr_cm_end(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
        return;
    }
    id->mine.private_data = NULL;
    memset(&id->peer, 0, sizeof(id->peer));
    id->peer.slot = slot_of(fd);
    id->state = SR_CM_CONNECTING;
    sr_cm_watch(id);
}

/* ---- resolving ---------------------------------------------------------------------------------- */

static void resolve(struct sr_cm_id *id)
{
    if (sr_cm_rail_carries((unsigned) id->rail, sr.slot)) {
        id->state = SR_CM_BOUND;
        id->deadline = 0;
        sr_cm_event_add(id, id->asked, 0, NULL);
    }
}

void sr_cm_resolve(struct sr_cm_id *id, enum rdma_cm_event_type asked, int timeout)
{
    id->state = SR_CM_RESOLVING;
    id->asked = asked;
    await(id, 0 < timeout ? (uint64_t) timeout * 1000000 : 1);
    resolve(id);
}

static void give_up(struct sr_cm_id *id)
{
    id->deadline = 0;
    if (SR_CM_RESOLVING == id->state) {
        id->state = SR_CM_BOUND;
        sr_cm_event_add(id, RDMA_CM_EVENT_ADDR_RESOLVED == id->asked ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, NULL);
    } else {
        sr_cm_end(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    }
}

/* Lets a held letter pass if the rail carries it. False if its sender gave up and the program does not know of the request yet. */
static bool let_go(struct sr_cm_id *id)
{
    struct pollfd closed = {.fd = id->fd};
    struct sr_cm_letter letter;

    if (!peek(id, &letter) || passes(id, &letter)) {
        id->held = false;
        sr_cm_watch(id);
        return true;
    }
    return SR_CM_INCOMING != id->state || 0 == poll(&closed, 1, 0);
}

bool sr_cm_on_tick(struct sr_cm_id *id)
{
    if (id->held && !let_go(id)) {
        drop_incoming(id);
        return false;
    }
    if (SR_CM_RESOLVING == id->state) {
        resolve(id);
    } else if (SR_CM_KNOCKING == id->state && sr_cm_rail_carries((unsigned) id->rail, sr.slot)) {
        knock(id);
    }
    if (0 != id->deadline && is_over(id)) {
        give_up(id);
    }
    return id->held || 0 != id->deadline;
}

/* ---- connecting --------------------------------------------------------------------------------- */

static int connect_locked(struct sr_cm_id *id, const struct rdma_conn_param *param)
{
    if (SR_CM_BOUND != id->state || 0 > id->rail
        || data_limit(SR_CM_REQUEST, id->rdma.ps) < (NULL == param->private_data ? 0 : param->private_data_len)) {
        return EINVAL;
    }
    id->mine = *param;
    id->mine.private_data = NULL == param->private_data ? NULL : id->peer.data; /* no letter has come yet */
    if (NULL != param->private_data) {
        memcpy(id->peer.data, param->private_data, param->private_data_len);
    }
    id->state = SR_CM_KNOCKING;
    id->peer.slot = sr.slot;
    id->knocks = 0;
    await_answer(id);
    if (sr_cm_rail_carries((unsigned) id->rail, sr.slot)) {
        knock(id);
    }
    return 0;
}

SR_PUBLIC int rdma_connect(struct rdma_cm_id *rdma, struct rdma_conn_param *param)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct rdma_conn_param none = {.retry_count = 7, .rnr_retry_count = 7, .responder_resources = 16, .initiator_depth = 16};
    int rc;

    pthread_mutex_lock(&channel->mutex);
    rc = connect_locked(sr_cm_id(rdma), NULL == param ? &none : param);
    pthread_mutex_unlock(&channel->mutex);
    return sr_cm_finish(sr_cm_id(rdma), rc);
}

static int accept_locked(struct sr_cm_id *id, const struct rdma_conn_param *param)
{
    int rc;

    if (SR_CM_ASKED != id->state) {
        return EINVAL;
    }
    id->mine = *param;
    id->mine.retry_count = id->peer.retry_count;
    if (is_datagram(id)) {
        rc = sr_cm_send(id, SR_CM_REPLY, &id->mine);
        hang_up(id);
        return rc;
    }
    rc = sr_cm_qp_to(id, IBV_QPS_RTR);
    rc = 0 == rc ? sr_cm_qp_to(id, IBV_QPS_RTS) : rc;
    rc = 0 == rc ? sr_cm_send(id, SR_CM_REPLY, &id->mine) : rc;
    if (0 == rc) {
        id->state = SR_CM_ACCEPTED;
        await_answer(id);
    }
    return rc;
}

SR_PUBLIC int rdma_accept(struct rdma_cm_id *rdma, struct rdma_conn_param *param)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);
    struct rdma_conn_param none = {
        .responder_resources = id->peer.initiator_depth, .initiator_depth = id->peer.responder_resources, .rnr_retry_count = 7};
    int rc;

    pthread_mutex_lock(&channel->mutex);
    rc = accept_locked(id, NULL == param ? &none : param);
    pthread_mutex_unlock(&channel->mutex);
    return sr_cm_finish(sr_cm_id(rdma), rc);
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
    return sr_cm_result(rc);
}

SR_PUBLIC int rdma_reject(struct rdma_cm_id *rdma, const void *data, uint8_t length)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct rdma_conn_param param = {.private_data = data, .private_data_len = length};
    struct sr_cm_id *id = sr_cm_id(rdma);
    int rc = EINVAL;

    pthread_mutex_lock(&channel->mutex);
    if (SR_CM_ASKED == id->state || SR_CM_ANSWERED == id->state) {
        rc = sr_cm_send(id, SR_CM_REJECT, &param);
        id->state = EINVAL == rc ? id->state : SR_CM_ENDED;
    }
    pthread_mutex_unlock(&channel->mutex);
    return sr_cm_result(rc);
}

SR_PUBLIC int rdma_disconnect(struct rdma_cm_id *rdma)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);
    int rc = 0;

    pthread_mutex_lock(&channel->mutex);
    if (is_datagram(id)) {
        rc = EINVAL;
    } else if (SR_CM_CONNECTED == id->state || SR_CM_ACCEPTED == id->state) {
        sr_cm_qp_to(id, IBV_QPS_ERR);
        sr_cm_send(id, SR_CM_GOODBYE, NULL);
        sr_cm_end(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    } else if (SR_CM_ENDED == id->state) {
        sr_cm_qp_to(id, IBV_QPS_ERR);
    } else {
        rc = EINVAL;
    }
    pthread_mutex_unlock(&channel->mutex);
    return sr_cm_finish(sr_cm_id(rdma), rc);
}
