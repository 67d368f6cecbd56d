/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * world_rows raised: takes every row of both request machines, except guards and states without a request, on a real request with
 * its real action. This file puts the request into the state and raises the event, and the request must end. This covers rows that no
 * message or completion can bring about (unreached.list tells why). DESIGN.txt section 13.
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

static bfo_send_t *send_in(unsigned state)
{
    bfo_send_t *req = BFO_SEND_EAGER == state ? send_match() : send_copied();

    switch (state) {
    case BFO_SEND_DEAD:
        declare();
        break;
    case BFO_SEND_NOTIFIED:
        comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
        got_dance(BFO_MSG_RERR, req, 0);
        break;
    case BFO_SEND_ERRD:
        got_dance(BFO_MSG_RERR, req, 0);
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

/* The caller that raises the event of a completion holds this event; a caller that brings a message holds the request meanwhile. */
static void raise_send(const row_t *row)
{
    bfo_dance_hdr_t h = {.match = {.type = BFO_MSG_RACK}, .dst_id = 0x700000001u};
    int error = MPI_ERR_OTHER;
    bfo_send_t *req;

    life_begins(0);
    req = send_in(row->state);
    h.epoch = (uint16_t) (bfo_se_epoch(req->m.se) + (BFO_SEV_RERR != row->event)); /* RERR ends this attempt, RACK and NACK speak of the next */
    bfo_send_get(req);
    bfo_failover_send_raise(req, row->event,
                            BFO_SEV_PUT_RAIL_DOWN == row->event   ? (void *) &h.dst_id
                            : BFO_SEV_PEER_DECLARED == row->event ? (void *) &error
                                                                  : (void *) &h);
    if (BFO_KIND_COMPLETION != bfo_send_cell(req->m.se, row->event).kind) {
        bfo_send_put(req);
    }
    life_ends();
}

static void raise_recv(const row_t *row)
{
    bfo_dance_hdr_t h = {.match = {.type = BFO_MSG_NOTIFY}};
    bfo_notify_t notify = {NULL, &h};
    int error = MPI_ERR_OTHER;
    bfo_recv_t *req;

    life_begins(0);
    req = recv_in(row->state);
    notify.from = world_proc[1]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
    h.epoch = (uint16_t) (bfo_se_epoch(req->m.se) + 1);
    bfo_recv_get(req);
    bfo_failover_recv_raise(req, row->event, BFO_REV_PEER_DECLARED == row->event ? (void *) &error : (void *) &notify);
    if (BFO_KIND_COMPLETION != bfo_recv_cell(req->m.se, row->event).kind) {
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
    (void) bfo_recv_fire_at(NULL, BFO_KNOWN(BFO_RECV_NONE), BFO_REV_RTS_REFUSED, false, world_proc[1]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML],
                            &ack);
    must(is_posted(BFO_MSG_ACK));
    life_ends();
}

/* Is this a row of a receive that the PML ends before it asks the machine? Raised alone, such a row would leave the request open. */
static bool is_done_in_place(const row_t *row)
{
    const unsigned to = bfo_se_state(bfo_recv_cell(BFO_SE(row->state, 0), row->event).next);

    return BFO_RECV_UNMATCHED == row->state && BFO_REV_STALE != row->event && BFO_REV_FIN_UNFENCED != row->event && BFO_RECV_UNMATCHED != to;
}

/* Does the action of this row take data that only a BTL can bring? */
static bool send_needs_data(const row_t *row)
{
    const unsigned action = bfo_send_cell(BFO_SE(row->state, 0), row->event).action;

    return BFO_SACT_count_frag == action || BFO_SACT_count_write_post_fin == action || BFO_SACT_take_fin == action;
}

void rows_raised(void)
{
    for (size_t i = 0; i < sizeof(send_rows) / sizeof(send_rows[0]); ++i) {
        const row_t *row = &send_rows[i];

        if (bfo_send_state_is_open(row->state) && BFO_KIND_GUARD != bfo_send_cell(0, row->event).kind && !send_needs_data(row)) {
            raise_send(row);
        }
    }
    for (size_t i = 0; i < sizeof(recv_rows) / sizeof(recv_rows[0]); ++i) {
        const row_t *row = &recv_rows[i];

        if (BFO_RECV_NONE != row->state && BFO_RECV_SEALED != row->state && !is_done_in_place(row) && BFO_REV_POST != row->event
            && BFO_KIND_GUARD != bfo_recv_cell(0, row->event).kind) {
            raise_recv(row);
        }
    }
    raise_refused();
}
