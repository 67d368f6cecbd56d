/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The requester of a queue pair: cuts messages in packets, reads their bytes from memory when a packet leaves, waits for answers, sends
 * again what got lost, and completes work in order. DESIGN.txt section 18.
 */
#include "fabric_internal.h"

#include <stdlib.h>

#define SHORTEST_TIMEOUT (100 * WORLD_US)

/* ---- time --------------------------------------------------------------------------------------------- */

static void timer(void *argument);

static void start_timer(fabric_qp_t *qp)
{
    if (!qp->timer_runs) {
        qp->timer_runs = true;
        world_at(qp->deadline, timer, qp);
    }
}

/* Waits for an answer from now on, if there is something that waits for one. */
static void arm(fabric_qp_t *qp)
{
    uint64_t timeout = UINT64_C(4096) << qp->attr.timeout;

    if (0 == qp->attr.timeout || qp->done == qp->next || !fabric_qp_is_ready(qp)) {
        qp->deadline = 0;
        return;
    }
    timeout = timeout < SHORTEST_TIMEOUT ? SHORTEST_TIMEOUT : timeout;
    qp->deadline = world_now + timeout + world_draw((unsigned) (timeout / 8 < WORLD_S ? timeout / 8 : WORLD_S));
    start_timer(qp);
}

static void made_progress(fabric_qp_t *qp)
{
    qp->retries_left = qp->attr.retry_cnt;
    qp->went_back = false;
    arm(qp);
}

/* ---- failure ------------------------------------------------------------------------------------------ */

/* The oldest work failed. */
static void fail(fabric_qp_t *qp, enum ibv_wc_status status)
{
    const fabric_context_t *context = qp->object.context;

    world_trace("rank %u rail %u: queue pair %u: %s", context->rank, context->rail, qp->ibv.qp_num, ibv_wc_status_str(status));
    fabric_complete_send(qp, qp->done++, status);
    if (0 < (int32_t) (qp->done - qp->next)) {
        qp->next = qp->done;
    }
    fabric_qp_fail(qp, 0);
}

/* Work that cannot be sent fails when all before it is done. */
static void fail_if_bad(fabric_qp_t *qp)
{
    if (fabric_qp_is_ready(qp) && qp->done == qp->next && qp->done != qp->posted && 0 != fabric_send_at(qp, qp->done)->bad) {
        fail(qp, (enum ibv_wc_status) fabric_send_at(qp, qp->done)->bad);
    }
}

/* ---- out ---------------------------------------------------------------------------------------------- */

static uint32_t bytes_of_packet(const fabric_send_t *send, uint32_t index)
{
    uint32_t left = send->length - index * send->packet;

    return IBV_WR_RDMA_READ == send->opcode ? 0 : left < send->packet ? left : send->packet;
}

static bool may_send(fabric_qp_t *qp)
{
    const fabric_send_t *send;

    if (qp->next == qp->posted || !fabric_qp_is_ready(qp) || qp->is_held) {
        return false;
    }
    send = fabric_send_at(qp, qp->next);
    return 0 == send->bad && (IBV_WR_RDMA_READ != send->opcode || 0 == qp->attr.max_rd_atomic || qp->reads_out < qp->attr.max_rd_atomic);
}

static void send_datagram(fabric_qp_t *qp, fabric_send_t *send)
{
    fabric_packet_t *packet = fabric_packet_new(qp, PACKET_DATAGRAM, send->remote_qpn, send->ah->node, send->length);

    if (!fabric_gather(qp, send, 0, packet->data, send->length)) {
        free(packet);
        send->bad = IBV_WC_LOC_PROT_ERR;
        fail_if_bad(qp);
        return;
    }
    packet->packets = 1;
    packet->total = send->length;
    packet->qkey = 0 != (send->remote_qkey & UINT32_C(0x80000000)) ? qp->attr.qkey : send->remote_qkey;
    packet->is_global = send->ah->is_global;
    fabric_wire_send(qp, packet, world_now);
    qp->next = qp->done + 1;
    fabric_complete_send(qp, qp->done++, IBV_WC_SUCCESS);
}

/* The packet is of work whose last one has left. */
static void message_has_left(fabric_qp_t *qp, const fabric_send_t *send)
{
    qp->reads_out += IBV_WR_RDMA_READ == send->opcode;
    qp->next_packet = 0;
    ++qp->next;
    if (0 == qp->deadline) {
        arm(qp);
    }
}

static void send_packet(fabric_qp_t *qp, fabric_send_t *send)
{
    static const fabric_packet_kind_t kinds[] = {[IBV_WR_RDMA_WRITE] = PACKET_WRITE, [IBV_WR_SEND] = PACKET_SEND, [IBV_WR_RDMA_READ] = PACKET_READ};
    const bool is_read = IBV_WR_RDMA_READ == send->opcode;
    const uint32_t index = is_read ? send->landed : qp->next_packet, length = bytes_of_packet(send, index);
    fabric_packet_t *packet;

    if (is_read && 0 == qp->attr.max_rd_atomic) {
        send->bad = IBV_WC_LOC_QP_OP_ERR;
        fail_if_bad(qp);
        return;
    }
    packet = fabric_packet_new(qp, kinds[send->opcode], qp->attr.dest_qp_num, qp->peer_node, length);
    if (!fabric_gather(qp, send, index * send->packet, packet->data, length)) {
        free(packet);
        send->bad = IBV_WC_LOC_PROT_ERR;
        fail_if_bad(qp);
        return;
    }
    packet->psn = (send->psn + index) & 0xffffff;
    packet->index = index;
    packet->packets = send->packets;
    packet->packet = send->packet;
    packet->total = send->length;
    packet->remote_addr = send->remote_addr;
    packet->rkey = send->rkey;
    fabric_wire_send(qp, packet, world_now);
    if (is_read || ++qp->next_packet == send->packets) {
        message_has_left(qp, send);
    }
}

static void slot_comes(void *argument)
{
    fabric_qp_t *qp = argument;

    qp->has_slot = false;
    if (qp->object.is_gone || !may_send(qp)) {
        return;
    }
    if (IBV_QPT_UD == qp->ibv.qp_type) {
        send_datagram(qp, fabric_send_at(qp, qp->next));
    } else {
        send_packet(qp, fabric_send_at(qp, qp->next));
    }
    fabric_request_go(qp);
}

/* A queue pair has one place at a time in the line of its port, so that the queue pairs of a port send in turn. */
void fabric_request_go(fabric_qp_t *qp)
{
    if (!qp->has_slot && may_send(qp)) {
        qp->has_slot = true;
        world_at(fabric_wire_slot(fabric_port_of(qp->object.context), bytes_of_packet(fabric_send_at(qp, qp->next), qp->next_packet)), slot_comes,
                 qp);
    }
}

/* ---- again -------------------------------------------------------------------------------------------- */

/* Sends again from this packet of this message on. */
static void go_back(fabric_qp_t *qp, uint32_t place, uint32_t packet)
{
    for (uint32_t i = place; i != qp->next; ++i) {
        qp->reads_out -= IBV_WR_RDMA_READ == fabric_send_at(qp, i)->opcode;
    }
    qp->next = place;
    qp->next_packet = packet;
    arm(qp);
    fabric_request_go(qp);
}

/* Something got lost. */
static void retry(fabric_qp_t *qp, uint32_t place, uint32_t packet)
{
    if (0 == qp->retries_left) {
        fail(qp, IBV_WC_RETRY_EXC_ERR);
        return;
    }
    --qp->retries_left;
    go_back(qp, place, packet);
}

/* An answer shows that an earlier one got lost. The answers after it show the same. */
static void answer_is_missing(fabric_qp_t *qp)
{
    if (fabric_qp_is_ready(qp) && qp->done != qp->next && !qp->went_back) {
        qp->went_back = true;
        retry(qp, qp->done, 0);
    }
}

static void timer(void *argument)
{
    fabric_qp_t *qp = argument;

    qp->timer_runs = false;
    if (qp->object.is_gone || 0 == qp->deadline || !fabric_qp_is_ready(qp)) {
        return;
    }
    if (world_now < qp->deadline) {
        start_timer(qp);
        return;
    }
    qp->went_back = false;
    retry(qp, qp->done, 0);
}

static void hold_ends(void *argument)
{
    fabric_qp_t *qp = argument;

    if (!qp->object.is_gone && qp->is_held && world_now >= qp->hold_until) {
        qp->is_held = false;
        fabric_request_go(qp);
    }
}

/* ---- answers ------------------------------------------------------------------------------------------ */

/* All packets before `end` have arrived. Completes their work. False if a READ among them waits for data, which got lost then. */
static bool arrived_until(fabric_qp_t *qp, uint32_t end)
{
    const uint32_t before = qp->done;
    bool all = true;

    while (qp->done != qp->posted && all) {
        const fabric_send_t *send = fabric_send_at(qp, qp->done);
        if (0 > fabric_psn_ahead(end, send->psn + send->packets)) {
            break;
        }
        all = IBV_WR_RDMA_READ != send->opcode || send->landed == send->packets;
        if (all) {
            qp->reads_out -= IBV_WR_RDMA_READ == send->opcode && 0 > (int32_t) (qp->done - qp->next);
            fabric_complete_send(qp, qp->done++, IBV_WC_SUCCESS);
        }
    }
    if (0 < (int32_t) (qp->done - qp->next)) {
        qp->next = qp->done;
        qp->next_packet = 0;
    }
    if (before != qp->done) {
        qp->rnr_left = qp->attr.rnr_retry;
        made_progress(qp);
        fail_if_bad(qp);
        fabric_request_go(qp);
    }
    return all;
}

/* Finds the message of the packet among those that were sent. */
static bool find(const fabric_qp_t *qp, uint32_t psn, uint32_t *place, uint32_t *index)
{
    for (uint32_t i = qp->done; i != qp->posted; ++i) {
        const fabric_send_t *send = fabric_send_at(qp, i);
        int32_t ahead = fabric_psn_ahead(psn, send->psn);
        if (0 > ahead) {
            return false;
        }
        if (ahead < (int32_t) send->packets) {
            *place = i;
            *index = (uint32_t) ahead;
            return true;
        }
    }
    return false;
}

static bool is_sent(const fabric_qp_t *qp, uint32_t place, uint32_t index)
{
    return 0 > (int32_t) (place - qp->next) || (place == qp->next && index < qp->next_packet);
}

static void not_ready(fabric_qp_t *qp, uint32_t place, unsigned code)
{
    static const uint32_t unit[32] = {65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
                                      256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152}; /* 10 us */

    if (7 != qp->attr.rnr_retry && 0 == qp->rnr_left) {
        fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
        return;
    }
    qp->rnr_left -= 7 != qp->attr.rnr_retry;
    qp->is_held = true;
    qp->hold_until = world_now + unit[code & 31] * 10 * WORLD_US;
    world_at(qp->hold_until, hold_ends, qp);
    go_back(qp, place, 0);
}

static void data_comes(fabric_qp_t *qp, const fabric_packet_t *packet)
{
    uint32_t place, index;
    fabric_send_t *send;

    if (!find(qp, packet->psn, &place, &index)) {
        return;
    }
    send = fabric_send_at(qp, place);
    if (!arrived_until(qp, send->psn)) {
        answer_is_missing(qp);
        return;
    }
    if (!fabric_qp_is_ready(qp) || IBV_WR_RDMA_READ != send->opcode || index < send->landed) {
        return;
    }
    if (index > send->landed) {
        answer_is_missing(qp);
        return;
    }
    if (!fabric_scatter(qp, send->sge, send->sge_count, index * send->packet, packet->data, packet->length)) {
        fail(qp, IBV_WC_LOC_PROT_ERR);
        return;
    }
    ++send->landed;
    made_progress(qp);
    if (send->landed == send->packets) {
        (void) arrived_until(qp, send->psn + send->packets);
    }
}

/* What the responder says about a packet that it did not take. */
static void refused(fabric_qp_t *qp, const fabric_packet_t *packet)
{
    uint32_t place, index;

    if (!find(qp, packet->psn, &place, &index) || !is_sent(qp, place, index)) {
        return; /* it was said before, and is sent again already */
    }
    if (PACKET_GAP == packet->kind) {
        retry(qp, place, IBV_WR_RDMA_READ == fabric_send_at(qp, place)->opcode ? 0 : index);
    } else if (PACKET_NOT_READY == packet->kind) {
        not_ready(qp, place, packet->status);
    } else {
        fail(qp, (enum ibv_wc_status) packet->status);
    }
}

void fabric_answer_arrives(fabric_qp_t *qp, const fabric_packet_t *packet)
{
    if (PACKET_ANSWER == packet->kind) {
        data_comes(qp, packet);
        return;
    }
    if (!arrived_until(qp, PACKET_ACK == packet->kind ? packet->psn + 1 : packet->psn)) {
        answer_is_missing(qp);
    } else if (PACKET_ACK != packet->kind && fabric_qp_is_ready(qp)) {
        refused(qp, packet);
    }
}
