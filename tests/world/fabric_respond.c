/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The responder of a queue pair: takes packets in the order of their numbers, checks keys, puts data into memory packet by packet, and
 * answers. Nothing that was executed is executed twice. DESIGN.txt section 18.
 */
#include "fabric_internal.h"
#include "host.h"

#include <string.h>

/* ---- answers ------------------------------------------------------------------------------------------ */

static void answer(fabric_qp_t *qp, fabric_packet_kind_t kind, uint32_t psn, unsigned status)
{
    fabric_packet_t *packet = fabric_packet_new(qp, kind, qp->attr.dest_qp_num, qp->peer_node, 0);

    packet->psn = psn & 0xffffff;
    packet->status = (uint8_t) status;
    packet->is_ghost = fabric_port_of(qp->object.context)->is_dead;
    fabric_wire_send(qp, packet, fabric_wire_slot(fabric_port_of(qp->object.context), 0));
}

/* Tells the requester that its message failed, and gives up the connection. */
static void refuse(fabric_qp_t *qp, const fabric_packet_t *packet, enum ibv_wc_status status, enum ibv_event_type event)
{
    const fabric_context_t *context = qp->object.context;

    world_trace("rank %u rail %u: queue pair %u refuses a message of %u bytes: %s", context->rank, context->rail, qp->ibv.qp_num, packet->total,
                ibv_wc_status_str(status));
    answer(qp, PACKET_ERROR, packet->psn, status);
    fabric_qp_fail(qp, event);
}

static bool is_last(const fabric_packet_t *packet)
{
    return packet->index + 1 == packet->packets;
}

static void taken(fabric_qp_t *qp, const fabric_packet_t *packet)
{
    qp->expected_psn = (packet->psn + 1) & 0xffffff;
    if (is_last(packet)) {
        answer(qp, PACKET_ACK, packet->psn, 0);
    }
}

/* ---- messages ----------------------------------------------------------------------------------------- */

static void end_receive(fabric_qp_t *qp, const fabric_packet_t *packet, enum ibv_wc_status status)
{
    qp->is_receiving = false;
    fabric_complete_recv(qp, &qp->current, status, packet->total, packet);
}

static bool fits(const fabric_recv_t *recv, uint64_t length)
{
    uint64_t room = 0;

    for (uint32_t i = 0; i < recv->sge_count; ++i) {
        room += recv->sge[i].length;
    }
    return length <= room;
}

static void take_send(fabric_qp_t *qp, const fabric_packet_t *packet)
{
    if (NULL != qp->hears) {
        qp->hears(qp, packet);
        taken(qp, packet);
        return;
    }
    if (qp->recv_cq->is_dead) { /* what cannot be completed is not acknowledged */
        fabric_qp_fail(qp, IBV_EVENT_QP_FATAL);
        return;
    }
    if (0 == packet->index && !qp->is_receiving) {
        if (!fabric_recv_take(qp, &qp->current)) {
            qp->nak_sent = true;
            answer(qp, PACKET_NOT_READY, packet->psn, qp->attr.min_rnr_timer);
            return;
        }
        qp->is_receiving = true;
    }
    if (!fits(&qp->current, (uint64_t) packet->index * packet->packet + packet->length)) {
        end_receive(qp, packet, IBV_WC_LOC_LEN_ERR);
        refuse(qp, packet, IBV_WC_REM_INV_REQ_ERR, 0);
        return;
    }
    if (!fabric_scatter(qp, qp->current.sge, qp->current.sge_count, packet->index * packet->packet, packet->data, packet->length)) {
        end_receive(qp, packet, IBV_WC_LOC_PROT_ERR);
        refuse(qp, packet, IBV_WC_REM_OP_ERR, 0);
        return;
    }
    if (is_last(packet)) {
        end_receive(qp, packet, IBV_WC_SUCCESS);
    }
    taken(qp, packet);
}

/* May the requester use the memory that the message names? The first packet asks for all of it, the others for their part. */
static bool is_allowed(const fabric_qp_t *qp, const fabric_packet_t *packet, unsigned access)
{
    const uint64_t offset = (uint64_t) packet->index * packet->packet;
    const uint64_t length = PACKET_READ == packet->kind || 0 == packet->index ? packet->total - offset : packet->length;

    return 0 == packet->total
           || (0 != (qp->attr.qp_access_flags & access)
               && fabric_covers(qp->object.context, qp->ibv.pd, packet->rkey, packet->remote_addr + offset, length, access));
}

static void take_write(fabric_qp_t *qp, const fabric_packet_t *packet)
{
    if (!is_allowed(qp, packet, IBV_ACCESS_REMOTE_WRITE)) {
        if (faults_are_harmless()) {
            world_broken("a WRITE comes for memory that was given back"); /* I6 */
        }
        refuse(qp, packet, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
        return;
    }
    if (0 < packet->length) {
        memcpy((void *) (uintptr_t) (packet->remote_addr + (uint64_t) packet->index * packet->packet), packet->data, packet->length);
    }
    taken(qp, packet);
}

/* Also for a READ that asks again for the rest of its data. The data are those of now. */
static void take_read(fabric_qp_t *qp, const fabric_packet_t *packet)
{
    const uint32_t end = packet->psn - packet->index + packet->packets;

    if (!is_allowed(qp, packet, IBV_ACCESS_REMOTE_READ)) {
        refuse(qp, packet, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
        return;
    }
    for (uint32_t i = packet->index; i < packet->packets; ++i) {
        const uint32_t offset = i * packet->packet, left = packet->total - offset;
        const uint32_t length = left < packet->packet ? left : packet->packet;
        fabric_packet_t *data = fabric_packet_new(qp, PACKET_ANSWER, qp->attr.dest_qp_num, qp->peer_node, length);
        data->psn = (packet->psn - packet->index + i) & 0xffffff;
        data->index = i;
        if (0 < length) {
            memcpy(data->data, (const void *) (uintptr_t) (packet->remote_addr + offset), length);
        }
        fabric_wire_send(qp, data, fabric_wire_slot(fabric_port_of(qp->object.context), length));
    }
    if (0 < fabric_psn_ahead(end, qp->expected_psn)) {
        qp->expected_psn = end & 0xffffff;
    }
}

static void take_request(fabric_qp_t *qp, const fabric_packet_t *packet)
{
    const int32_t ahead = fabric_psn_ahead(packet->psn, qp->expected_psn);

    if (0 < ahead) {
        if (!qp->nak_sent) {
            qp->nak_sent = true;
            answer(qp, PACKET_GAP, qp->expected_psn, 0);
        }
        return;
    }
    if (0 > ahead) { /* a copy of something that was executed */
        if (PACKET_READ == packet->kind) {
            take_read(qp, packet);
        } else if (is_last(packet)) {
            answer(qp, PACKET_ACK, qp->expected_psn - 1, 0);
        }
        return;
    }
    qp->nak_sent = false;
    if (PACKET_SEND == packet->kind) {
        take_send(qp, packet);
    } else if (PACKET_WRITE == packet->kind) {
        take_write(qp, packet);
    } else {
        take_read(qp, packet);
    }
}

/* ---- datagrams ---------------------------------------------------------------------------------------- */

/* The first 40 bytes of the buffer are for the route header. They are noise without one. */
static void fill_header(const fabric_packet_t *packet, struct ibv_grh *header)
{
    union ibv_gid gid[2];

    memset(header, 0x5a, sizeof(*header));
    if (packet->is_global) {
        fabric_gid(packet->from, packet->rail, &gid[0]);
        fabric_gid(packet->to, packet->rail, &gid[1]);
        memcpy(&header->sgid, &gid[0], sizeof(gid[0]));
        memcpy(&header->dgid, &gid[1], sizeof(gid[1]));
    }
}

static void take_datagram(fabric_qp_t *qp, const fabric_packet_t *packet)
{
    struct ibv_grh header;
    fabric_recv_t recv;

    _Static_assert(FABRIC_GRH == sizeof(header), "the header of a datagram has 40 bytes");
    if ((IBV_QPS_RTR != qp->ibv.state && IBV_QPS_RTS != qp->ibv.state) || packet->qkey != qp->attr.qkey) {
        return;
    }
    if (NULL != qp->hears) {
        qp->hears(qp, packet);
        return;
    }
    if (!fabric_recv_take(qp, &recv)) {
        ++fabric.posts[qp->object.context->rank].unheard;
        return;
    }
    if (!fits(&recv, FABRIC_GRH + (uint64_t) packet->length)) {
        fabric_complete_recv(qp, &recv, IBV_WC_LOC_LEN_ERR, 0, packet);
        fabric_qp_fail(qp, 0);
        return;
    }
    fill_header(packet, &header);
    if (!fabric_scatter(qp, recv.sge, recv.sge_count, 0, (const uint8_t *) &header, FABRIC_GRH)
        || !fabric_scatter(qp, recv.sge, recv.sge_count, FABRIC_GRH, packet->data, packet->length)) {
        fabric_complete_recv(qp, &recv, IBV_WC_LOC_PROT_ERR, 0, packet);
        fabric_qp_fail(qp, 0);
        return;
    }
    fabric_complete_recv(qp, &recv, IBV_WC_SUCCESS, FABRIC_GRH + packet->length, packet);
}

/* ---- arrival ------------------------------------------------------------------------------------------ */

/* A dying adapter acknowledges a WRITE whose data stay in its own memory. */
static void forget_write(fabric_qp_t *qp, const fabric_packet_t *packet)
{
    if (qp->forgets && world_now <= qp->forgets_until && PACKET_WRITE == packet->kind && packet->psn == qp->expected_psn) {
        taken(qp, packet);
    }
}

void fabric_packet_arrives(fabric_packet_t *packet)
{
    fabric_qp_t *qp = (fabric_qp_t *) fabric_object_find(packet->to_qpn, FABRIC_QP);
    const fabric_context_t *context;

    if (NULL == qp) {
        return;
    }
    context = qp->object.context;
    if (context->node != packet->to || context->rail != packet->rail || (IBV_QPT_UD == qp->ibv.qp_type) != (PACKET_DATAGRAM == packet->kind)) {
        return;
    }
    if (PACKET_DATAGRAM == packet->kind) {
        if (!fabric_port_of(context)->is_dead) {
            take_datagram(qp, packet);
        }
        return;
    }
    if (packet->from_qpn != qp->attr.dest_qp_num || (int) packet->from != qp->peer_node) {
        return;
    }
    if (fabric_port_of(context)->is_dead) {
        forget_write(qp, packet);
    } else if (PACKET_READ < packet->kind) {
        if (fabric_qp_is_ready(qp)) {
            fabric_answer_arrives(qp, packet);
        }
    } else if (IBV_QPS_RTR == qp->ibv.state || IBV_QPS_RTS == qp->ibv.state) {
        take_request(qp, packet);
    }
}
