/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * world_rows raised: takes every row of both request machines, except guards and states without a request, on a real request with
 * its real action. This file puts the request into the state and raises the event, and the request must end. This covers rows that no
 * message or completion can bring about (unreached.list tells why). The engine has no ACTION_IN_PLACE: rows with these actions are fired,
 * those of unreached.list alone. DESIGN.txt section 13.
 */
#include "world.h"

#include "handshake/pml_bfo_failover_actions.h"
#include "ends/pml_bfo_failover_raise.h"
#include "tables/pml_bfo_failover_fire.h"
#include "ends/pml_bfo_recv_complete.h"
#include "ends/pml_bfo_send_complete.h"

typedef struct {
    unsigned state, event;
} row_t;

#define ROW(id, state, event, next, act) {BFO_SEND_##state, BFO_SEV_##event},
static const row_t send_rows[] = {
#include "tables/pml_bfo_failover_send.def"
};
#define ROW(id, state, event, next, act) {BFO_RECV_##state, BFO_REV_##event},
static const row_t recv_rows[] = {
#include "tables/pml_bfo_failover_recv.def"
};

/* The actions that the engine does not have, as bits. */
#define ACTION(name)
#define ACTION_IN_PLACE(name) | 1u << BFO_SACT_##name
static const uint32_t send_in_place = 0
#include "tables/pml_bfo_failover_send.def"
    ;
#define ACTION(name)
#define ACTION_IN_PLACE(name) | 1u << BFO_RACT_##name
static const uint32_t recv_in_place = 0
#include "tables/pml_bfo_failover_recv.def"
    ;

static bool send_is_in_place(const row_t *row)
{
    return send_in_place >> bfo_send_cell(BFO_SE(row->state, 0), row->event).action & 1;
}

static bool recv_is_in_place(const row_t *row)
{
    return recv_in_place >> bfo_recv_cell(BFO_SE(row->state, 0), row->event).action & 1;
}

static bfo_send_t *send_in(unsigned state)
{
    bfo_send_t *req = BFO_SEND_EAGER == state ? send_match() : send_copied();

    switch (state) {
    case BFO_SEND_DEAD:
        declare();
        break;
    case BFO_SEND_NOTIFIED:
        comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
        got_handshake(BFO_MSG_RERR, req, 0);
        break;
    case BFO_SEND_ERRD:
        got_handshake(BFO_MSG_RERR, req, 0);
        break;
    case BFO_SEND_STREAM:
        got_ack(req, 0, req->rts_length, bfo_send_length(req) - req->rts_length);
        break;
    default:
        break;
    }
    must(state == bfo_se_state(req->m.se));
    return req;
}

static bfo_recv_t *recv_in(unsigned state)
{
    bfo_recv_t *req = BFO_RECV_UNMATCHED == state ? recv_posted() : recv_copied();

    switch (state) {
    case BFO_RECV_DEAD:
        declare();
        break;
    case BFO_RECV_ERRL:
        comes_back(BFO_MSG_ACK, OPAL_ERROR);
        break;
    case BFO_RECV_QUIESCE:
        got_notify(req, 1, 0, 1);
        break;
    case BFO_RECV_WAITRTS:
        comes_back(BFO_MSG_ACK, OPAL_SUCCESS);
        got_notify(req, 1, 0, 0);
        break;
    case BFO_RECV_DONE:
        got_frag(req, 0, 0, 1200);
        comes_back(BFO_MSG_ACK, OPAL_SUCCESS);
        break;
    default:
        break;
    }
    must(state == bfo_se_state(req->m.se));
    return req;
}

/* A receive in ERRL all of whose READs have come back, one of them in error. */
static bfo_recv_t *recv_of_reads_in_errl(void)
{
    bfo_recv_t *req = recv_read(9000, &world_btl[0]);

    comes_back(WORLD_GET, OPAL_ERROR);
    while (is_posted(WORLD_GET)) {
        comes_back(WORLD_GET, OPAL_SUCCESS);
    }
    must(BFO_RECV_ERRL == bfo_se_state(req->m.se) && 0 == req->open);
    return req;
}

static bool fires_send(const row_t *row)
{
    return BFO_SEV_REFUSED == row->event || (BFO_SEND_DEAD == row->state && BFO_SEV_PEER_DECLARED == row->event);
}

static void fire_send(bfo_send_t *req, unsigned event)
{
    int error = MPI_ERR_OTHER;

    must(BFO_SEV_REFUSED == event ? bfo_send_fire(&req->m, BFO_SEV_REFUSED, false, req, &error)
                                  : bfo_send_fire(&req->m, BFO_SEV_PEER_DECLARED, false, req, &error));
}

/* Rows of READs, whose action needs READs; the world takes those in ACTIVE and QUIESCE. */
static bool needs_reads(const row_t *row)
{
    return (BFO_REV_READ_OK == row->event || BFO_REV_READ_ALL_OK == row->event) && (BFO_RECV_ACTIVE == row->state || BFO_RECV_QUIESCE == row->state);
}

static bool fires_recv(const row_t *row)
{
    return BFO_REV_FIN_UNFENCED == row->event || (BFO_RECV_DEAD == row->state && BFO_REV_PEER_DECLARED == row->event);
}

static void fire_recv(bfo_recv_t *req, unsigned event)
{
    const bfo_match_hdr_t message = {.seq = req->match_seq};
    int error = MPI_ERR_OTHER;
    bfo_peer_t *peer;
    bfo_fin_hdr_t fin;

    if (BFO_REV_FIN_UNFENCED == event) {
        peer = bfo_peer_get(world_proc[1]);
        must(peer->declared || OMPI_SUCCESS == bfo_peer_connect(peer)); /* a receive that is posted needs no rails, a FIN came over one */
        bfo_hdr_pack_fin(&fin, 0, BFO_FIN_WRITE | BFO_FIN_RESENT, 0x700000001u, 100, &message);
        fin.wrail = peer->rails[1].name;
        must(bfo_recv_fire_at(NULL, bfo_look_at(&req->m), BFO_REV_FIN_UNFENCED, false, peer, &fin));
    } else {
        must(bfo_recv_fire(&req->m, BFO_REV_PEER_DECLARED, false, req, &error));
    }
}

/* The caller that raises the event of a completion holds this event; a caller that brings a message holds the request meanwhile. */
static void raise_send(const row_t *row)
{
    bfo_handshake_hdr_t h = {.match = {.type = BFO_MSG_RACK}, .dst_id = 0x700000001u};
    bfo_send_t *req;

    life_begins(0);
    req = send_in(row->state);
    h.epoch = (uint16_t) (bfo_se_epoch(req->m.se) + (BFO_SEV_RERR != row->event)); /* RERR ends this attempt, RACK and NACK speak of the next */
    bfo_send_get(req);
    if (send_is_in_place(row)) {
        fire_send(req, row->event);
    } else {
        bfo_failover_send_raise(req, row->event, BFO_SEV_PUT_RAIL_DOWN == row->event ? (void *) &h.dst_id : (void *) &h);
    }
    if (send_is_in_place(row) || BFO_KIND_COMPLETION != bfo_send_cell(req->m.se, row->event).kind) {
        bfo_send_put(req);
    }
    life_ends();
}

static void raise_recv(const row_t *row)
{
    bfo_handshake_hdr_t h = {.match = {.type = BFO_MSG_NOTIFY}};
    const bool reads = BFO_RECV_ERRL == row->state && (BFO_REV_READ_OK == row->event || BFO_REV_READ_ALL_OK == row->event);
    bfo_notify_t notify = {NULL, &h};
    bfo_recv_t *req;

    life_begins(reads ? READS : 0);
    req = reads ? recv_of_reads_in_errl() : recv_in(row->state);
    notify.from = world_proc[1]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
    h.epoch = (uint16_t) (bfo_se_epoch(req->m.se) + 1);
    req->open += reads; /* the READ that comes back now */
    bfo_recv_get(req);
    if (recv_is_in_place(row)) {
        fire_recv(req, row->event);
    } else {
        bfo_failover_recv_raise(req, row->event, &notify);
    }
    if (recv_is_in_place(row) || BFO_KIND_COMPLETION != bfo_recv_cell(req->m.se, row->event).kind) {
        bfo_recv_put(req);
    }
    life_ends();
}

/* A rendezvous without a receive, on a revoked communicator: the PML refuses it, and its sender gets an answer. */
static void raise_refused(void)
{
    bfo_ack_hdr_t ack;

    life_begins(0);
    (void) send_match(); /* the first message makes the peer */
    bfo_hdr_pack_ack(&ack, 0, 0x700000001u, 0, 0, 0);
    must(bfo_recv_fire_at(NULL, BFO_KNOWN(BFO_RECV_NONE), BFO_REV_RTS_REFUSED, false, world_proc[1]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML],
                          &ack));
    must(is_posted(BFO_MSG_ACK));
    life_ends();
}

void rows_raised(void)
{
    for (size_t i = 0; i < sizeof(send_rows) / sizeof(send_rows[0]); ++i) {
        const row_t *row = &send_rows[i];

        if (bfo_send_state_is_open(row->state) && BFO_KIND_GUARD != bfo_send_cell(0, row->event).kind
            && (!send_is_in_place(row) || fires_send(row))) {
            raise_send(row);
        }
    }
    for (size_t i = 0; i < sizeof(recv_rows) / sizeof(recv_rows[0]); ++i) {
        const row_t *row = &recv_rows[i];

        if (BFO_RECV_NONE != row->state && BFO_RECV_SEALED != row->state && BFO_KIND_GUARD != bfo_recv_cell(0, row->event).kind
            && (!recv_is_in_place(row) || fires_recv(row)) && !needs_reads(row)) {
            raise_recv(row);
        }
    }
    raise_refused();
}
