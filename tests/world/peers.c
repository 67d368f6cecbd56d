/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Peers without an image, so that one process can have 10,000 of them. A peer has adapters, published records like those of the process, and
 * queue pairs, which take every message and acknowledge it. It answers control messages: a request by a reply, a bring-down and its question by an
 * acknowledgement, a probe by an answer. It asks for nothing by itself: no rail ends or begins because of it. DESIGN.txt section 18.
 */
#include "peers.h"

#include "host.h"

#include "formats/btl_openib_wire.h"
#include "fabric_internal.h"

#include <string.h>

enum { LATEST_NS = 20000 /* from a message to its answer, at most */, READS = 4 };

typedef struct {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *ud, *rc[OFO_MAX_QPS];
    struct ibv_mr *proof;
    unsigned nqp;
    ofo_ctl_t reply; /* to the latest request; type 0: there was none */
} peer_rail_t;

static peer_rail_t rails[WORLD_MAX_PROCESSES][WORLD_MAX_RAILS]; /* a rail is named by its port here */
static bool is_made[WORLD_MAX_PROCESSES];
static uint8_t proof_page[OFO_PROOF_SIZE];
static uint32_t its_qkey; /* of the process */

static void must(bool is, const char *what)
{
    if (!is) {
        world_broken("a peer without an image cannot %s", what);
    }
}

/* ---- queue pairs ----------------------------------------------------------------------------------------- */

static void hears_message(fabric_qp_t *qp, const fabric_packet_t *packet) {}

static void rc_end(peer_rail_t *at)
{
    for (unsigned q = 0; q < at->nqp; ++q) {
        (void) ibv_destroy_qp(at->rc[q]);
    }
    at->nqp = 0;
}

static struct ibv_qp *rc_new(const peer_rail_t *at, const ofo_ctl_t *req, unsigned q)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
                                    .send_cq = at->cq,
                                    .recv_cq = at->cq,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(at->pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    must(NULL != qp && 0 == ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "make a queue pair");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = (enum ibv_mtu) req->mtu,
                                .dest_qp_num = req->qp[q].qpn,
                                .rq_psn = req->qp[q].psn,
                                .max_dest_rd_atomic = READS,
                                .min_rnr_timer = 12,
                                .ah_attr = {.dlid = req->lid, .port_num = 1}};
    must(0
             == ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC
                                  | IBV_QP_MIN_RNR_TIMER),
         "connect a queue pair");
    FABRIC_OF(fabric_qp_t, qp)->hears = hears_message;
    return qp;
}

/* ---- control messages -------------------------------------------------------------------------------------- */

static void tell(fabric_qp_t *ud, const fabric_packet_t *to, const ofo_ctl_t *ctl)
{
    uint8_t bytes[OFO_CTL_MAX_SIZE];
    const size_t length = ofo_ctl_pack(ctl, bytes, sizeof(bytes));
    fabric_packet_t *packet = fabric_packet_new(ud, PACKET_DATAGRAM, to->from_qpn, (int) to->from, (uint32_t) length);

    must(0 != length, "write a message");
    memcpy(packet->data, bytes, length);
    packet->packets = 1;
    packet->total = (uint32_t) length;
    packet->qkey = its_qkey;
    ++fabric.posts[ud->object.context->rank].datagrams[ctl->type % FABRIC_TYPES];
    fabric_wire_send(ud, packet, fabric_wire_slot(fabric_port_of(ud->object.context), (uint32_t) length) + world_draw(LATEST_NS));
}

/* The first request of a generation makes queue pairs; its copies get the same reply. */
static void take_request(peer_rail_t *at, const fabric_context_t *here, const ofo_ctl_t *req)
{
    ofo_ctl_t *reply = &at->reply;

    if (0 != reply->type && reply->gen == req->gen) {
        return;
    }
    rc_end(at);
    *reply = (ofo_ctl_t){.type = OFO_CTL_REP,
                         .gen = req->gen,
                         .rail = req->rail,
                         .from = req->to,
                         .to = req->from,
                         .lid = fabric_lid(here->node),
                         .mtu = req->mtu,
                         .nqp = req->nqp,
                         .reads = READS,
                         .rail_hash = req->rail_hash};
    fabric_gid(here->node, here->rail, (union ibv_gid *) (void *) reply->gid);
    for (unsigned q = 0; q < req->nqp; ++q) {
        at->rc[q] = rc_new(at, req, q);
        reply->qp[q].qpn = at->rc[q]->qp_num;
        at->nqp = q + 1;
    }
}

/* The peer has sent nothing that the process could miss. */
static ofo_ctl_t acknowledged(const ofo_ctl_t *down)
{
    return (ofo_ctl_t){.type = OFO_CTL_DACK, .gen = down->gen, .rail = down->rail, .flags = OFO_DACK_VALID | (down->flags & OFO_CTL_ASKS)};
}

/* The rail that the message names belongs to another port than that of its way if the message is a copy. */
static void end_rail(unsigned rank, const ofo_ctl_t *down)
{
    for (unsigned r = 0; r < PLAN_OF(rails); ++r) {
        peer_rail_t *at = &rails[rank][r];

        if (0 == (down->flags & OFO_CTL_ASKS) && 0 != at->reply.type && down->rail == at->reply.rail && down->gen == at->reply.gen) {
            rc_end(at);
        }
    }
}

static void hears_control(fabric_qp_t *ud, const fabric_packet_t *packet)
{
    const fabric_context_t *here = ud->object.context;
    peer_rail_t *at = &rails[here->rank][here->rail];
    ofo_ctl_t ctl, answer;

    if (OFO_WIRE_OK != ofo_ctl_unpack(packet->data, packet->length, &ctl)) {
        world_broken("a control message to peer %u is not valid", here->rank);
    }
    switch (ctl.type) {
    case OFO_CTL_REQ:
        take_request(at, here, &ctl);
        answer = at->reply;
        break;
    case OFO_CTL_DOWN:
        end_rail(here->rank, &ctl);
        answer = acknowledged(&ctl);
        break;
    case OFO_CTL_PROBE:
        answer = ctl;
        answer.type = OFO_CTL_ANSWER;
        break;
    default:
        return;
    }
    answer.jobid = ctl.jobid;
    answer.vpid = here->rank;
    answer.src_inc = ctl.dst_inc;
    answer.dst_inc = ctl.src_inc;
    tell(ud, packet, &answer);
}

/* ---- adapters and records ------------------------------------------------------------------------------------ */

static struct ibv_qp *ud_new(const peer_rail_t *at, uint32_t qkey)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD,
                                    .send_cq = at->cq,
                                    .recv_cq = at->cq,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(at->pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};

    must(NULL != qp && 0 == ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "make a queue pair");
    attr.qp_state = IBV_QPS_RTR;
    must(0 == ibv_modify_qp(qp, &attr, IBV_QP_STATE), "receive");
    FABRIC_OF(fabric_qp_t, qp)->hears = hears_control;
    return qp;
}

static uint32_t incarnation_of(unsigned rank)
{
    return 0x1000 + rank;
}

static void make(unsigned rank)
{
    world_process_t *const caller = world_me;
    struct ibv_device **devices;

    world_me = &world_processes[rank];
    devices = ibv_get_device_list(NULL);
    for (unsigned r = 0; r < PLAN_OF(rails); ++r) {
        peer_rail_t *at = &rails[rank][r];
        struct ibv_context *context = ibv_open_device(devices[r]);

        must(NULL != context, "open its adapter");
        at->pd = ibv_alloc_pd(context);
        at->cq = ibv_create_cq(context, 1, NULL, NULL, 0);
        at->proof = ibv_reg_mr(at->pd, proof_page, sizeof(proof_page), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        at->ud = ud_new(at, incarnation_of(rank));
    }
    ibv_free_device_list(devices);
    world_me = caller;
    is_made[rank] = true;
}

/* The record of the process, with what differs in the peer's. */
static size_t record_of(unsigned rank, ofo_record_t *record, uint8_t *bytes)
{
    its_qkey = record->port[0].qkey;
    if (!is_made[rank]) {
        make(rank);
    }
    record->incarnation = incarnation_of(rank);
    for (unsigned i = 0; i < record->nports; ++i) {
        ofo_port_t *port = &record->port[i];
        const unsigned rail = (unsigned) (port->name[1] - '0'); /* "w0:1" */
        const peer_rail_t *at = &rails[rank][rail];

        fabric_gid(world_processes[rank].node, rail, (union ibv_gid *) (void *) port->gid);
        memcpy(port->guid, port->gid, sizeof(port->guid));
        port->lid = fabric_lid(world_processes[rank].node);
        port->contact[0] = at->ud->qp_num;
        port->qkey = incarnation_of(rank);
        port->proof_at = (uintptr_t) proof_page;
        port->proof_key = at->proof->rkey;
    }
    return ofo_record_pack(record, bytes, OFO_RECORD_MAX_SIZE);
}

const void *peers_published(unsigned rank, const char *key, size_t *size)
{
    static uint8_t bytes[OFO_RECORD_MAX_SIZE];
    ofo_record_t record;
    const void *its = world_get(0, key, size);

    if (NULL != its && OFO_WIRE_OK == ofo_record_unpack(its, *size, &record)) {
        *size = record_of(rank, &record, bytes);
        must(0 != *size, "write its record");
        return bytes;
    }
    return its; /* the PML's does not differ in anything that counts here */
}
