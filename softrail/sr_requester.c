/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The requester takes send work requests, checks them, and hands each to the responder of the peer. Requests that have to
 * wait (receiver not ready, link or peer silent, rate) are kept in order. It decides from the answer whether to retry,
 * complete or fail. DESIGN.txt 16.
 */
#include "sr_completer.h"
#include "sr_device.h"
#include "sr_flush.h"
#include "sr_injector.h"
#include "sr_mr.h"
#include "sr_opcode.h"
#include "sr_pending.h"
#include "sr_requester.h"
#include "sr_responder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum progress { DONE, WAIT };

/* Receiver-not-ready timer, in units of 10 us, by its encoding (InfiniBand specification). */
static const uint32_t rnr_time[32] = {65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
                                      256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

/* ---- the remote end ----------------------------------------------------------------------------- */

void sr_requester_forget(struct sr_qp *qp)
{
    if (NULL != qp->peer) {
        sr_peer_put(qp->peer);
        qp->peer = NULL;
        qp->remote = NULL;
    }
}

/* Finds the queue pair with this number at that address. Returns its peer with a reference, or NULL. */
static struct sr_peer *find_remote(const struct sr_address *address, uint32_t qpn, struct sr_qp_shm **remote)
{
    struct sr_qp_entry *entry = &sr.fabric.shm->qp[SR_QPN_INDEX(qpn)];
    uint32_t owner = atomic_load(&entry->owner);
    struct sr_peer *peer;

    if (!address->valid || 0 == owner || qpn != atomic_load(&entry->qpn) || sr_word_slot(owner) != address->slot) {
        return NULL;
    }
    peer = owner == sr.word ? sr.self : NULL;
    if (NULL != peer) {
        pthread_mutex_lock(&sr.peer_mutex);
        ++peer->refs;
        pthread_mutex_unlock(&sr.peer_mutex);
    } else {
        peer = sr_peer_get(owner);
    }
    if (NULL == peer) {
        return NULL;
    }
    *remote = sr_peer_at(peer, atomic_load(&entry->offset), sizeof(**remote));
    if (NULL == *remote) {
        sr_peer_put(peer);
        return NULL;
    }
    return peer;
}

static bool connection_is_found(struct sr_qp *qp)
{
    if (sr_unlikely(NULL != qp->peer && qp->attr.dest_qp_num != atomic_load_explicit(&qp->remote->qpn, memory_order_relaxed))) {
        sr_requester_forget(qp);
    }
    if (sr_unlikely(NULL == qp->peer)) {
        qp->peer = find_remote(&qp->address, qp->attr.dest_qp_num, &qp->remote);
    }
    return NULL != qp->peer;
}

/* ---- one attempt -------------------------------------------------------------------------------- */

/* Resolves the local memory of the request. False if a key, a range or the access does not fit. */
static bool resolve_local(struct sr_qp *qp, struct sr_wqe *wqe)
{
    unsigned access = sr_opcode(wqe->opcode)->local_access;

    if (NULL != wqe->inline_copy) {
        wqe->iov[0] = (struct iovec){.iov_base = wqe->inline_copy, .iov_len = wqe->length};
        return true;
    }
    for (uint32_t i = 0; i < wqe->num_sge; ++i) {
        uint64_t where = wqe->sge[i].addr;
        if (0 == (wqe->flags & IBV_SEND_INLINE) && 0 != wqe->sge[i].length
            && !sr_mr_resolve(sr.self, qp->pd->id, wqe->sge[i].lkey, where, wqe->sge[i].length, access, &where)) {
            return false;
        }
        wqe->iov[i] = (struct iovec){.iov_base = (void *) (uintptr_t) where, .iov_len = wqe->sge[i].length};
    }
    return true;
}

/* Is the packet too large for a hop of the path? The hop drops it without an error. */
static bool is_too_large(const struct sr_qp *qp, const struct sr_wqe *wqe)
{
    uint32_t mtu = IBV_QPT_UD == qp->init.qp_type ? SR_MTU : 128u << qp->attr.path_mtu;
    uint32_t most = atomic_load_explicit(&sr.fabric.shm->rail[qp->rail].mtu_blackhole, memory_order_relaxed);

    return 0 != most && most < (wqe->length < mtu ? wqe->length : mtu);
}

static int deliver(struct sr_qp *qp, struct sr_wqe *wqe)
{
    const struct sr_fabric_shm *shm = sr.fabric.shm;
    struct sr_qp_shm *remote;
    struct sr_peer *peer;
    int answer;

    if (sr_unlikely(!sr_rail_carries(shm, qp->rail, sr.slot))) {
        sr_fabric_plug_in(&sr.fabric);
        return SR_ANSWER_LOST;
    }
    if (sr_unlikely(is_too_large(qp, wqe))) {
        return SR_ANSWER_LOST;
    }
    if (sr_unlikely(0 == wqe->length && IBV_WR_RDMA_WRITE == wqe->opcode && 0 == wqe->rkey && sr_habit(SR_FABRIC_NO_EMPTY_WRITE))) {
        return IBV_WC_LOC_QP_OP_ERR;
    }
    if (IBV_QPT_UD == qp->init.qp_type) {
        if (!sr_rail_carries(shm, qp->rail, wqe->address.slot)) {
            return SR_ANSWER_LOST;
        }
        peer = find_remote(&wqe->address, wqe->remote_qpn, &remote);
        answer = NULL == peer ? SR_ANSWER_LOST : sr_respond(peer, remote, qp, wqe);
        if (NULL != peer) {
            sr_peer_put(peer);
        }
        return answer;
    }
    if (!connection_is_found(qp) || sr_unlikely(!sr_rail_carries(shm, qp->rail, qp->address.slot))) {
        return SR_ANSWER_LOST;
    }
    if (sr_unlikely(!sr_peer_is_alive(qp->peer))) {
        sr_requester_forget(qp);
        return SR_ANSWER_LOST;
    }
    return sr_respond(qp->peer, qp->remote, qp, wqe);
}

/* ---- what the answer means ---------------------------------------------------------------------- */

static void fail_send_queue(struct sr_qp *qp, const struct sr_wqe *wqe, enum ibv_wc_status status)
{
    sr_count(&qp->shm->errors, 1);
    sr_complete_send(qp, wqe, status);
    if (IBV_QPT_RC == qp->init.qp_type || IBV_WC_LOC_QP_OP_ERR == status) { /* LOC_QP_OP_ERR: the queue pair itself broke (QP_FATAL) */
        sr_qp_fail(qp);
    } else {
        uint32_t rts = IBV_QPS_RTS;
        atomic_compare_exchange_strong(&qp->shm->state, &rts, IBV_QPS_SQE);
        qp->ibv.state = IBV_QPS_SQE;
    }
}

static enum progress not_ready(struct sr_qp *qp, struct sr_wqe *wqe)
{
    uint64_t now = sr_now(), allowed;

    if (0 == wqe->rnr_since) {
        wqe->rnr_since = now;
        sr_count(&qp->shm->retries, 1);
        sr_count(&qp->shm->rnr_waits, 1);
    }
    wqe->lost_since = 0;
    if (7 == qp->attr.rnr_retry) {
        return WAIT;
    }
    allowed = (uint64_t) qp->attr.rnr_retry * rnr_time[NULL == qp->remote ? 12 : qp->remote->rnr_timer & 31] * 10000;
    if (now - wqe->rnr_since < allowed) {
        return WAIT;
    }
    fail_send_queue(qp, wqe, IBV_WC_RNR_RETRY_EXC_ERR);
    return DONE;
}

static enum progress unanswered(struct sr_qp *qp, struct sr_wqe *wqe)
{
    uint64_t now = sr_now();

    if (0 == wqe->lost_since) {
        wqe->lost_since = now;
        sr_count(&qp->shm->retries, 1);
    }
    if (0 == qp->retry_ns || now - wqe->lost_since < qp->retry_ns) {
        return WAIT;
    }
    fail_send_queue(qp, wqe, IBV_WC_RETRY_EXC_ERR);
    return DONE;
}

static void count_sent(struct sr_qp *qp, const struct sr_wqe *wqe)
{
    sr_count(&qp->shm->tx_messages, 1);
    sr_count(&qp->shm->tx_bytes, wqe->length);
}

/* Corrupts the data of a read, which have arrived by now. */
static void corrupt_local(struct sr_wqe *wqe)
{
    uint32_t at = wqe->corrupt_at;

    for (uint32_t i = 0; i < wqe->num_sge; at -= (uint32_t) wqe->iov[i++].iov_len) {
        if (at < wqe->iov[i].iov_len) {
            ((uint8_t *) wqe->iov[i].iov_base)[at] ^= 0xff;
            return;
        }
    }
}

static void break_remote(struct sr_qp *qp, struct sr_wqe *wqe)
{
    struct sr_qp_shm *remote;
    struct sr_peer *peer;

    if (IBV_QPT_UD != qp->init.qp_type) {
        if (connection_is_found(qp)) {
            sr_respond_break(qp->peer, qp->remote, qp, wqe);
        }
        return;
    }
    peer = find_remote(&wqe->address, wqe->remote_qpn, &remote);
    if (NULL != peer) {
        sr_respond_break(peer, remote, qp, wqe);
        sr_peer_put(peer);
    }
}

/* Breaks the queue pairs that the fault names, after its message was dealt with. Returns the answer for the sender. SILENT breaks the
 * sender's queue pair when its time is over, the other faults at once. */
static int broken(struct sr_qp *qp, struct sr_wqe *wqe, int answer)
{
    bool later = SR_FATE_SILENT == wqe->fate && sr_now() < wqe->fate_time;

    if (SR_BREAKS_DEFAULT == wqe->breaks || (SR_BREAKS_RECEIVER != wqe->breaks && later)) {
        return answer;
    }
    if (SR_BREAKS_SENDER != wqe->breaks) {
        break_remote(qp, wqe);
    }
    if (SR_BREAKS_RECEIVER != wqe->breaks) {
        answer = IBV_WC_RETRY_EXC_ERR;
    }
    wqe->breaks = SR_BREAKS_DEFAULT;
    return answer;
}

/* Does what the fault plan wants for this request. Sets *answer, or returns true with the outcome in *progress. */
static bool injected(struct sr_qp *qp, struct sr_wqe *wqe, int *answer, enum progress *progress)
{
    bool before = 0 == wqe->fate_time || sr_now() < wqe->fate_time;

    *progress = WAIT;
    switch (wqe->fate) {
    case SR_FATE_LOSE:
        *answer = broken(qp, wqe, SR_ANSWER_LOST);
        return false;
    case SR_FATE_ERROR:
        *answer = wqe->forced_status;
        return false;
    case SR_FATE_SWALLOW:
        sr_complete_send(qp, wqe, IBV_WC_SUCCESS);
        *progress = DONE;
        return true;
    case SR_FATE_RNR:
        *answer = before ? SR_ANSWER_RNR : deliver(qp, wqe);
        return false;
    case SR_FATE_UNACKED:
    case SR_FATE_SILENT:
        if (!wqe->delivered) {
            *answer = deliver(qp, wqe);
            if (SR_ANSWER_OK != *answer) {
                return false;
            }
            wqe->delivered = 1;
            count_sent(qp, wqe);
        }
        *answer = broken(qp, wqe, SR_ANSWER_LOST);
        if (SR_FATE_SILENT == wqe->fate && !before && SR_ANSWER_LOST == *answer) {
            sr_complete_send(qp, wqe, IBV_WC_SUCCESS);
            *progress = DONE;
        }
        return SR_FATE_SILENT == wqe->fate && SR_ANSWER_LOST == *answer;
    default:
        *answer = deliver(qp, wqe);
        if (SR_FATE_CORRUPT == wqe->fate && SR_ANSWER_OK == *answer && NULL == wqe->inline_copy && 0 < wqe->length) {
            corrupt_local(wqe);
        }
        return false;
    }
}

static enum progress attempt(struct sr_qp *qp, struct sr_wqe *wqe)
{
    enum progress progress;
    int answer;

    if (sr_unlikely(!resolve_local(qp, wqe))) {
        fail_send_queue(qp, wqe, IBV_WC_LOC_PROT_ERR);
        return DONE;
    }
    if (sr_unlikely(SR_FATE_NONE != wqe->fate)) {
        if (injected(qp, wqe, &answer, &progress)) {
            return progress;
        }
    } else {
        answer = deliver(qp, wqe);
    }
    if (sr_unlikely(IBV_QPT_RC != qp->init.qp_type && 0 > answer)) {
        answer = SR_ANSWER_OK; /* an unreliable sender gets no error */
    }
    switch (answer) {
    case SR_ANSWER_OK:
        count_sent(qp, wqe);
        sr_complete_send(qp, wqe, IBV_WC_SUCCESS);
        return DONE;
    case SR_ANSWER_BUSY:
        wqe->lost_since = 0;
        return WAIT;
    case SR_ANSWER_RNR:
        return not_ready(qp, wqe);
    case SR_ANSWER_LOST:
        return unanswered(qp, wqe);
    default:
        fail_send_queue(qp, wqe, (enum ibv_wc_status) answer);
        return DONE;
    }
}

/* Computes from rate and latency of the rail when this message may arrive. An adapter takes packets from its queue pairs in turn, so a
 * datagram does not wait for the long messages that were posted before it. */
static void admit(struct sr_qp *qp, struct sr_wqe *wqe)
{
    struct sr_rail *rail = &sr.fabric.shm->rail[qp->rail];
    uint64_t rate = atomic_load_explicit(&rail->rate, memory_order_relaxed);
    uint64_t latency = atomic_load_explicit(&rail->latency, memory_order_relaxed);

    if (sr_unlikely(0 != (rate | latency))) {
        uint64_t now = sr_now(), begin = now, end = now;
        if (0 != rate) {
            uint64_t wire = (uint64_t) wqe->length * UINT64_C(8000000000) / rate;
            uint64_t next = atomic_load(&rail->next_free);
            do {
                begin = next > now ? next : now;
                end = begin + wire;
            } while (!atomic_compare_exchange_weak(&rail->next_free, &next, end));
            end = IBV_QPT_UD == qp->init.qp_type ? now + wire : end;
        }
        wqe->ready = end + latency;
    }
}

/* ---- waiting requests --------------------------------------------------------------------------- */

static int wait_in_line(struct sr_qp *qp, const struct sr_wqe *wqe)
{
    size_t sge_bytes = (NULL != wqe->inline_copy ? 0 : wqe->num_sge) * sizeof(struct ibv_sge);
    struct sr_wqe *kept = malloc(sizeof(*kept) + sge_bytes);

    if (NULL == kept) {
        return ENOMEM;
    }
    *kept = *wqe;
    memcpy(kept + 1, wqe->sge, sge_bytes);
    kept->sge = (struct ibv_sge *) (kept + 1);
    kept->next = NULL;
    if (0 != (wqe->flags & IBV_SEND_INLINE) && NULL == wqe->inline_copy) {
        char *to = kept->inline_copy = malloc(0 == wqe->length ? 1 : wqe->length);
        if (NULL == to) {
            free(kept);
            return ENOMEM;
        }
        for (uint32_t i = 0; i < wqe->num_sge; to += wqe->sge[i++].length) {
            memcpy(to, (void *) (uintptr_t) wqe->sge[i].addr, wqe->sge[i].length);
        }
        kept->num_sge = 1;
    }
    if (NULL == qp->wait_first) {
        qp->wait_first = kept;
    } else {
        qp->wait_last->next = kept;
    }
    qp->wait_last = kept;
    sr_pending_add(qp);
    return 0;
}

static bool may_send(const struct sr_qp *qp)
{
    return IBV_QPS_RTS == atomic_load_explicit(&qp->shm->state, memory_order_relaxed);
}

/* Delivers messages whose requests failed long ago, if the peer still accepts them. */
static void run_ghosts(struct sr_qp *qp)
{
    struct sr_wqe **at = &qp->ghosts;

    while (NULL != *at) {
        struct sr_wqe *ghost = *at;
        if (sr_now() < ghost->ready) {
            at = &ghost->next;
            continue;
        }
        *at = ghost->next;
        deliver(qp, ghost);
        free(ghost->inline_copy);
        free(ghost);
    }
}

/* Delivers a message although an earlier one still waits for its acknowledgement, because a lost acknowledgement does not keep later
 * messages from arriving. */
static void deliver_behind(struct sr_qp *qp, struct sr_wqe *wqe)
{
    if (SR_FATE_UNACKED == wqe->fate && !wqe->delivered && resolve_local(qp, wqe) && SR_ANSWER_OK == deliver(qp, wqe)) {
        wqe->delivered = 1;
        count_sent(qp, wqe);
    }
}

void sr_requester_run(struct sr_qp *qp)
{
    if (sr_unlikely(NULL != qp->ghosts)) {
        run_ghosts(qp);
    }
    if (sr_unlikely(IBV_QPS_ERR == atomic_load(&qp->shm->state) && !qp->in_error)) {
        sr_qp_fail(qp);
    }
    while (NULL != qp->wait_first && (may_send(qp) || IBV_QPS_SQE == atomic_load(&qp->shm->state))) {
        struct sr_wqe *wqe = qp->wait_first;
        if (0 != wqe->ready && may_send(qp) && sr_now() < wqe->ready) {
            return;
        }
        qp->wait_first = wqe->next; /* off the list, because if it fails the rest of the list is flushed */
        if (!may_send(qp)) {
            sr_complete_send(qp, wqe, IBV_WC_WR_FLUSH_ERR);
        } else if (WAIT == attempt(qp, wqe)) {
            qp->wait_first = wqe;
            return;
        }
        free(wqe->inline_copy);
        free(wqe);
    }
}

/* ---- posting ------------------------------------------------------------------------------------ */

static int check_request(const struct sr_qp *qp, const struct ibv_send_wr *wr, const struct sr_opcode *op, uint32_t *length)
{
    uint64_t sum = 0;

    if (NULL == op || 0 == (op->types >> qp->init.qp_type & 1) || 0 > wr->num_sge || qp->init.cap.max_send_sge < (uint32_t) wr->num_sge) {
        return EINVAL;
    }
    for (int i = 0; i < wr->num_sge; ++i) {
        sum += wr->sg_list[i].length;
    }
    if (SR_MAX_MSG < sum || (IBV_QPT_UD == qp->init.qp_type && (SR_MTU < sum || NULL == wr->wr.ud.ah))
        || (0 != (op->traits & SR_OP_ATOMIC) && 8 != sum)) {
        return EINVAL;
    }
    if (0 != (wr->send_flags & IBV_SEND_INLINE) && (qp->init.cap.max_inline_data < sum || 0 != (op->traits & (SR_OP_READ | SR_OP_ATOMIC)))) {
        return EINVAL;
    }
    *length = (uint32_t) sum;
    return 0;
}

static void fill(struct sr_wqe *wqe, const struct sr_qp *qp, const struct ibv_send_wr *wr, const struct sr_opcode *op, uint32_t length)
{
    wqe->wr_id = wr->wr_id;
    wqe->ready = wqe->lost_since = wqe->rnr_since = 0;
    wqe->sge = wr->sg_list;
    wqe->inline_copy = NULL;
    wqe->next = NULL;
    wqe->num_sge = (uint32_t) wr->num_sge;
    wqe->length = length;
    wqe->imm = wr->imm_data;
    wqe->flags = wr->send_flags;
    wqe->opcode = (uint8_t) wr->opcode;
    wqe->fate = wqe->forced_status = wqe->delivered = wqe->breaks = 0;
    if (IBV_QPT_UD == qp->init.qp_type) {
        wqe->address = sr_ah(wr->wr.ud.ah)->address;
        wqe->remote_qpn = wr->wr.ud.remote_qpn;
        wqe->remote_qkey = wr->wr.ud.remote_qkey;
    } else if (0 != (op->traits & SR_OP_ATOMIC)) {
        wqe->remote_addr = wr->wr.atomic.remote_addr;
        wqe->rkey = wr->wr.atomic.rkey;
        wqe->compare_add = wr->wr.atomic.compare_add;
        wqe->swap = wr->wr.atomic.swap;
    } else {
        wqe->remote_addr = wr->wr.rdma.remote_addr;
        wqe->rkey = wr->wr.rdma.rkey;
    }
}

/* Locks: sq_lock is held. */
static int post_one(struct sr_qp *qp, const struct ibv_send_wr *wr)
{
    const struct sr_opcode *op = sr_opcode(wr->opcode);
    uint32_t state = atomic_load_explicit(&qp->shm->state, memory_order_relaxed), length = 0;
    struct sr_wqe wqe;
    int rc = check_request(qp, wr, op, &length);

    if (0 != rc) {
        return rc;
    }
    if (qp->sq_posted - atomic_load_explicit(&qp->sq_retired, memory_order_acquire) >= qp->init.cap.max_send_wr) {
        return ENOMEM;
    }
    if (sr_unlikely(IBV_QPS_RTS != state)) {
        if (IBV_QPS_SQD != state && IBV_QPS_SQE != state && IBV_QPS_ERR != state) {
            return EINVAL;
        }
        if (IBV_QPS_ERR == state) {
            sr_qp_fail(qp); /* a peer may have set the state */
            if (sr_habit(SR_FABRIC_NO_POST_IN_ERROR)) {
                return EINVAL;
            }
        }
    }
    fill(&wqe, qp, wr, op, length);
    wqe.position = ++qp->sq_posted;
    if (sr_unlikely(IBV_QPS_ERR == state || IBV_QPS_SQE == state)) {
        sr_complete_send(qp, &wqe, IBV_WC_WR_FLUSH_ERR);
        return 0;
    }
    admit(qp, &wqe);
    if (sr_unlikely(sr_faults_planned()) && resolve_local(qp, &wqe)) {
        rc = sr_faults_decide(qp, &wqe);
        if (0 != rc) {
            --qp->sq_posted;
            return rc;
        }
    }
    if (NULL == qp->wait_first && 0 == wqe.ready && IBV_QPS_RTS == state) {
        if (DONE == attempt(qp, &wqe)) {
            free(wqe.inline_copy);
            return 0;
        }
    } else if (sr_unlikely(SR_FATE_UNACKED == wqe.fate && NULL != qp->wait_last && qp->wait_last->delivered)) {
        deliver_behind(qp, &wqe);
    }
    rc = wait_in_line(qp, &wqe);
    if (0 != rc) {
        free(wqe.inline_copy);
        --qp->sq_posted;
    }
    return rc;
}

int sr_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct sr_qp *qp = sr_qp(ibv);
    int rc = 0;

    if (sr_unlikely(!sr.joined)) {
        *bad = wr;
        return EINVAL;
    }
    pthread_mutex_lock(&qp->sq_lock);
    for (; NULL != wr; wr = wr->next) {
        rc = post_one(qp, wr);
        if (0 != rc) {
            *bad = wr;
            break;
        }
    }
    pthread_mutex_unlock(&qp->sq_lock);
    return rc;
}
