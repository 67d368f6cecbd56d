/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Scenarios of world_rows: every row of the sender's machine that a message, a completion or a loss can bring about, one
 * story after the other. DESIGN.txt sections 7.1 and 13.
 */
#include "world.h"

static unsigned state_of(const bfo_send_t *req)
{
    return bfo_se_state(req->m.se);
}

/* Leads the send to ERRD without a lost rail: the receiver reports an error. The first fragment is delivered. */
static void to_errd(bfo_send_t *req)
{
    comes_back(req->rts_type, OPAL_SUCCESS);
    got_ack(req, bfo_se_epoch(req->m.se), req->rts_length, bfo_send_length(req) - req->rts_length);
    must(BFO_SEND_STREAM == state_of(req) && is_posted(BFO_MSG_FRAG));
    got_handshake(BFO_MSG_RERR, req, 0);
    must(BFO_SEND_ERRD == state_of(req));
}

static void to_notified(bfo_send_t *req)
{
    comes_back(req->rts_type, OPAL_SUCCESS);
    got_handshake(BFO_MSG_RERR, req, 0);
    must(BFO_SEND_NOTIFIED == state_of(req) && is_posted(BFO_MSG_NOTIFY));
}

/* M1 to M4, the eager half of S18 and S19. */
static void eager(void)
{
    static const int ends[] = {OPAL_SUCCESS, OPAL_ERROR, OPAL_ERR_FATAL};
    bfo_send_t *req;

    life_begins(0);
    for (int again = 0; again < 8; ++again) { /* a new request, then requests that were used before */
        req = send_match();
        got_ack(req, 0, 0, 1); /* D1: no message has carried this name */
        comes_back(BFO_MSG_MATCH, OPAL_SUCCESS);
        give_back(req);
    }
    req = send_match();
    comes_back(BFO_MSG_MATCH, OPAL_ERROR);
    must(is_posted(BFO_MSG_MATCH) && BFO_SEND_EAGER == state_of(req));
    comes_back(BFO_MSG_MATCH, OPAL_SUCCESS);
    must(is_over(req));
    req = send_match();
    comes_back(BFO_MSG_MATCH, OPAL_ERR_FATAL);
    must(BFO_SEND_DEAD == state_of(req));
    life_ends();
    for (int i = 0; i < 3; ++i) {
        life_begins(0);
        req = send_match();
        declare();
        comes_back(BFO_MSG_MATCH, ends[i]);
        fences_end();
        must(is_over(req));
        life_ends();
    }
}

static void streams_of_copies(void)
{
    bfo_send_t *req;

    life_begins(0);
    for (int i = 0; i < 8; ++i) { /* S1 from IDLE, then from DONE */
        req = send_copied();
        comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
        got_ack(req, 7, 0, 1); /* of another epoch */
        got_ack(req, 0, req->rts_length, bfo_send_length(req) - req->rts_length);
        got_ack(req, 9, 0, 1);
        while (is_posted(BFO_MSG_FRAG)) {
            comes_back(BFO_MSG_FRAG, OPAL_SUCCESS);
        }
        give_back(req);
    }
    req = send_copied(); /* answered before it completes with an error, therefore delivered */
    got_ack(req, 0, req->rts_length, bfo_send_length(req) - req->rts_length);
    comes_back(BFO_MSG_RNDV, OPAL_ERROR);
    while (is_posted(BFO_MSG_FRAG)) {
        comes_back(BFO_MSG_FRAG, OPAL_SUCCESS);
    }
    must(is_over(req));
    req = send_copied(); /* answered before it completes */
    got_ack(req, 0, req->rts_length, bfo_send_length(req) - req->rts_length);
    comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
    life_ends();

    life_begins(0);
    req = send_copied(); /* lost, therefore sent again over another rail */
    comes_back(BFO_MSG_RNDV, OPAL_ERROR);
    must(is_posted(BFO_MSG_RNDV));
    comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
    life_ends();
}

static void streams_of_puts(void)
{
    bfo_send_t *req;

    life_begins(0);
    req = send_written();
    comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
    world_put_comes(&world_btl[0], req, 0, 1000);    /* RTS */
    world_put_comes(&world_btl[1], req, 1000, 1000); /* STREAM */
    comes_back(WORLD_PUT, OPAL_SUCCESS);
    comes_back(WORLD_PUT, OPAL_SUCCESS);
    got_ack(req, 0, 2000, 1000); /* the receiver asks for copies of the rest */
    while (is_posted(BFO_MSG_FRAG)) {
        comes_back(BFO_MSG_FRAG, OPAL_SUCCESS);
    }
    must(is_over(req));
    req = send_written();
    comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
    world_put_comes(&world_btl[1], req, 0, 1000);
    world_rail_fails(&world_btl[0]);
    world_put_comes(&world_btl[0], req, 1000, 1000); /* S6b in STREAM */
    must(BFO_SEND_ERRD == state_of(req));
    comes_back(WORLD_PUT, OPAL_SUCCESS); /* S9 */
    must(BFO_SEND_NOTIFIED == state_of(req));
    life_ends();

    life_begins(0);
    req = send_written();
    world_rail_fails(&world_btl[0]);
    must(is_posted(BFO_MSG_RNDV));
    world_put_comes(&world_btl[0], req, 0, 1000); /* S6b in RTS */
    must(BFO_SEND_ERRD == state_of(req));
    life_ends();

    life_begins(0); /* the rail is lost before the message begins, therefore no memory is registered with it */
    req = send_copied();
    world_rail_fails(&world_btl[0]);
    req = send_written();
    must(0 == (req->regs->mask & 1));
    world_put_comes(&world_btl[0], req, 0, 1000); /* S6b: the receiver does not know of the loss */
    must(BFO_SEND_ERRD == state_of(req));
    world_put_comes(&world_btl[1], req, 0, 1000); /* D1 */
    life_ends();
}

/* S1 to S6b, S10 to S12 and D1 in RTS and STREAM. */
static void streams(void)
{
    streams_of_copies();
    streams_of_puts();
}

/* This process uses two of three rails, in the order of their names. The peer uses the third rail too, and asks for a PUT over it. */
static void rails_are_unlike(void)
{
    mca_bml_base_endpoint_t *endpoint = world_proc[1]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
    mca_bml_base_btl_t *all = endpoint->btl_send.bml_btls;
    const mca_bml_base_btl_t first = all[0];
    const bfo_peer_t *peer;
    bfo_send_t *req;

    bfo_params.max_rails = 2;
    for (int order = 0; order < 2; ++order) {
        all[0] = all[2];
        all[2] = first; /* the highest name is the first module */
        life_begins(0);
        req = send_written();
        peer = req->lane->peer;
        must(2 == peer->n_rails && 0 == peer->rails[0].name && 1 == peer->rails[1].name);
        comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
        world_put_comes(&world_btl[WORLD_BTLS], req, 0, 1000); /* S6b in RTS */
        must(BFO_SEND_NOTIFIED == state_of(req));
        comes_back(BFO_MSG_NOTIFY, OPAL_SUCCESS);
        got_handshake(BFO_MSG_RACK, req, 0);
        must(BFO_SE(BFO_SEND_RTS, 1) == req->m.se && NULL == req->regs); /* copied from now on, therefore no PUT can follow */
        comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
        got_ack(req, 1, req->rts_length, bfo_send_length(req) - req->rts_length);
        while (is_posted(BFO_MSG_FRAG)) {
            comes_back(BFO_MSG_FRAG, OPAL_SUCCESS);
        }
        give_back(req);
        must(NULL == send_written()->regs && 3 == peer->send_mask);
        life_ends();
        all[2] = all[0];
        all[0] = first;
    }
    bfo_params.max_rails = 8;
}

/* RGET: FIN in RTS and in STREAM, S4 in RTS. */
static void reads(void)
{
    bfo_send_t *req;

    life_begins(READS);
    req = send_read();
    must(BFO_MSG_RGET == req->rts_type);
    got_fin_of_read(req, 3000);
    comes_back(BFO_MSG_RGET, OPAL_SUCCESS);
    must(is_over(req));
    req = send_read();
    comes_back(BFO_MSG_RGET, OPAL_SUCCESS);
    got_ack(req, 0, 0, 600);
    got_fin_of_read(req, 2400);
    comes_back(BFO_MSG_FRAG, OPAL_SUCCESS);
    must(is_over(req));
    req = send_read();
    got_fin_of_read(req, 3000);
    comes_back(BFO_MSG_RGET, OPAL_ERROR); /* answered, therefore delivered */
    must(is_over(req));
    life_ends();

    life_begins(READS); /* a rail refuses to register: no RGET, because only the other rails could carry it again */
    comes_back(send_copied()->rts_type, OPAL_SUCCESS);
    world_refuse_memory = 1;
    req = send_read();
    must(BFO_MSG_RNDV == req->rts_type && NULL == req->regs);
    comes_back(BFO_MSG_RNDV, OPAL_ERROR);
    comes_back(BFO_MSG_RNDV, OPAL_ERROR);
    must(is_posted(BFO_MSG_RNDV) && !req->lane->peer->declared);
    life_ends();
}

static const int errors[] = {OPAL_ERROR, OPAL_ERR_FATAL};

static void handshakes_after_errors(void)
{
    bfo_send_t *req;

    for (int i = 0; i < 2; ++i) { /* FRAGs: the first fails, the next come back with and without an error */
        life_begins(0);
        req = send_copied();
        comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
        got_ack(req, 0, req->rts_length, bfo_send_length(req) - req->rts_length);
        comes_back(BFO_MSG_FRAG, errors[i]);
        must(BFO_SEND_ERRD == state_of(req));
        got_ack(req, 0, 0, 1); /* D1 */
        comes_back(BFO_MSG_FRAG, OPAL_SUCCESS);
        must(is_posted(BFO_MSG_FRAG));
        comes_back(BFO_MSG_FRAG, errors[i]);
        must(BFO_SEND_NOTIFIED == state_of(req));
        got_ack(req, 0, 0, 1); /* D1 */
        comes_back(BFO_MSG_NOTIFY, OPAL_SUCCESS);
        got_handshake(0 == i ? BFO_MSG_RACK : BFO_MSG_NACK, req, 0 == i ? 0 : BFO_FLAG_FAILED);
        must(0 == i ? BFO_SE(BFO_SEND_RTS, 1) == req->m.se && is_posted(BFO_MSG_RNDV) : is_over(req));
        life_ends();
    }

    life_begins(0); /* WRITEs */
    req = send_written();
    comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
    world_put_comes(&world_btl[0], req, 0, 1000);
    world_put_comes(&world_btl[1], req, 1000, 1000);
    world_put_comes(&world_btl[1], req, 2000, 1000);
    comes_back(WORLD_PUT, OPAL_ERROR);
    comes_back(WORLD_PUT, OPAL_SUCCESS);
    comes_back(WORLD_PUT, OPAL_ERROR);
    must(BFO_SEND_NOTIFIED == state_of(req));
    life_ends();
}

static void handshakes_after_rerr(void)
{
    bfo_send_t *req;

    for (int i = 0; i < 4; ++i) { /* RERR comes while the first fragment is in flight, which then comes back with each status */
        life_begins(0);
        req = send_copied();
        got_handshake(BFO_MSG_RERR, req, 0 == i ? BFO_FLAG_FAILED : 0);
        must(BFO_SEND_ERRD == state_of(req));
        if (i < 3) {
            comes_back(BFO_MSG_RNDV, 0 == i ? OPAL_SUCCESS : errors[i - 1]);
        }
        must((2 == i ? BFO_SEND_DEAD : 3 == i ? BFO_SEND_ERRD : BFO_SEND_NOTIFIED) == state_of(req));
        life_ends(); /* S18 in NOTIFIED and in ERRD */
    }

    for (int i = 0; i < 4; ++i) { /* RERR in STREAM; NOTIFY comes back with each status */
        life_begins(0);
        req = send_copied();
        to_errd(req);
        while (is_posted(BFO_MSG_FRAG)) {
            comes_back(BFO_MSG_FRAG, OPAL_SUCCESS);
        }
        if (1 == i) { /* answered before it completed */
            got_handshake(BFO_MSG_RACK, req, 0);
        }
        if (3 == i) {
            got_handshake(BFO_MSG_NACK, req, 0);
        }
        comes_back(BFO_MSG_NOTIFY, 2 == i ? OPAL_ERR_FATAL : OPAL_ERROR);
        must(0 == i   ? is_posted(BFO_MSG_NOTIFY)
             : 1 == i ? BFO_SE(BFO_SEND_RTS, 1) == req->m.se
             : 2 == i ? BFO_SEND_DEAD == state_of(req)
                      : is_over(req));
        life_ends();
    }
}

/* S7b, S9, S11, S13 to S17, and completions in between. */
static void handshakes(void)
{
    handshakes_after_errors();
    handshakes_after_rerr();
}

static void is_answered(bfo_send_t *req)
{
    got_ack(req, 0, req->rts_length, bfo_send_length(req) - req->rts_length);
    must(BFO_SEND_STREAM == state_of(req));
}

static void is_refused(bfo_send_t *req)
{
    is_answered(req);
    got_handshake(BFO_MSG_RERR, req, 0);
    must(BFO_SEND_ERRD == state_of(req));
}

/* S4: the first fragment comes back with an error, unanswered. Before the machine takes this event, another thread takes the answer, or
 * the answer and an error. The fragment has arrived, and therefore is not sent again. */
static void answers_in_between(void)
{
    static void (*const meanwhile[])(bfo_send_t * req) = {is_answered, is_refused};

    for (int i = 0; i < 2; ++i) {
        bfo_send_t *req;

        life_begins(THREADS);
        req = send_copied();
        world_event = BFO_SEV_RTS_ERR_UNANSWERED;
        world_before_event = meanwhile[i];
        comes_back(BFO_MSG_RNDV, OPAL_ERROR);
        must(NULL == world_before_event && !is_posted(BFO_MSG_RNDV) && req->rts_done);
        must((0 == i ? BFO_SEND_STREAM : BFO_SEND_ERRD) == state_of(req));
        while (is_posted(BFO_MSG_FRAG)) {
            comes_back(BFO_MSG_FRAG, OPAL_SUCCESS);
        }
        must(0 == i ? is_over(req) : BFO_SEND_NOTIFIED == state_of(req) && is_posted(BFO_MSG_NOTIFY));
        life_ends();
    }
}

/* S18p before and after an answer; a listed WRITE that became void. */
static void poison_and_lists(void)
{
    bfo_send_t *req;

    for (int answered = 0; answered < 2; ++answered) {
        life_begins(0);
        req = send_copied();
        if (answered) {
            got_ack(req, 0, req->rts_length, bfo_send_length(req) - req->rts_length);
        }
        comes_back(BFO_MSG_RNDV, OPAL_ERR_FATAL);
        must(BFO_SEND_DEAD == state_of(req));
        life_ends();

        life_begins(0);
        req = send_written();
        comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
        world_put_comes(&world_btl[0], req, 0, 1000);
        world_refuse_busy = 1;
        world_put_comes(&world_btl[1], req, 1000, 1000);
        must(1 == bfo.n_pending);
        if (answered) {
            comes_back(WORLD_PUT, OPAL_ERROR);
        } else {
            declare();
        }
        progress(); /* Q2 in ERRD, in DEAD */
        must(0 == bfo.n_pending);
        life_ends();
    }
}

/* The first rail that names a message as the cause is lost; the second rail is believed. */
static void suspicions(void)
{
    bfo_send_t *req;

    life_begins(0);
    req = send_match();
    comes_back_suspect(BFO_MSG_MATCH);
    must(is_posted(BFO_MSG_MATCH) && BFO_SEND_EAGER == state_of(req)); /* M3 */
    comes_back_suspect(BFO_MSG_MATCH);
    must(BFO_SEND_DEAD == state_of(req) && req->lane->peer->declared);
    life_ends();

    life_begins(0);
    req = send_copied();
    comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
    got_ack(req, 0, req->rts_length, bfo_send_length(req) - req->rts_length);
    comes_back_suspect(BFO_MSG_FRAG);
    must(BFO_SEND_ERRD == state_of(req) && MPI_SUCCESS == req->error);
    comes_back_suspect(BFO_MSG_FRAG); /* over another rail */
    must(MPI_SUCCESS != req->error && !req->lane->peer->declared);
    life_ends();
}

/* S18 and S19: the peer is declared while an operation of each kind is in flight, which then comes back. */
static void deaths(void)
{
    static const int ends[] = {OPAL_SUCCESS, OPAL_ERROR, OPAL_ERR_FATAL};
    bfo_send_t *req;

    for (int i = 0; i < 3; ++i) {
        for (int answered = 0; answered < 2; ++answered) {
            life_begins(0);
            req = send_copied();
            if (answered) {
                got_ack(req, 0, req->rts_length, bfo_send_length(req) - req->rts_length);
            }
            declare();
            got_ack(req, 0, 0, 1); /* D1 */
            comes_back(BFO_MSG_RNDV, ends[i]);
            while (is_posted(BFO_MSG_FRAG)) {
                comes_back(BFO_MSG_FRAG, ends[i]);
            }
            fences_end();
            must(is_over(req));
            life_ends();

            life_begins(0);
            req = send_copied();
            to_notified(req);
            if (answered) {
                got_handshake(BFO_MSG_RACK, req, 0);
            }
            declare();
            comes_back(BFO_MSG_NOTIFY, ends[i]);
            fences_end();
            must(is_over(req));
            life_ends();
        }
        life_begins(0);
        req = send_written();
        comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
        world_put_comes(&world_btl[0], req, 0, 1000);
        declare();
        comes_back(WORLD_PUT, ends[i]);
        fences_end();
        must(is_over(req));
        life_ends();
    }
}

/* The NOTIFY of a restart names the rail with which the message was lost. The peer fences this rail because of the NOTIFY alone, even if
 * nothing else has reported the loss yet (DESIGN.txt 6.1, dead set). */
static void dead_sets(void)
{
    bfo_send_t *req;
    world_btl_t *lost;
    const bfo_handshake_hdr_t *h;

    life_begins(0);
    req = send_copied();
    comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
    got_ack(req, 0, req->rts_length, bfo_send_length(req) - req->rts_length);
    lost = rail_of(BFO_MSG_FRAG);
    comes_back(BFO_MSG_FRAG, OPAL_ERROR);
    while (is_posted(BFO_MSG_FRAG)) {
        comes_back(BFO_MSG_FRAG, OPAL_SUCCESS);
    }
    must(BFO_SEND_NOTIFIED == state_of(req) && is_posted(BFO_MSG_NOTIFY));
    h = world_posted_message((unsigned) world_find(BFO_MSG_NOTIFY));
    must(1u << (lost - world_btl) == h->dead_mask);
    life_ends();
}

/* S13e: a send restarts in every epoch, then the peer is declared. */
static void epochs(void)
{
    bfo_send_t *req;
    unsigned restarts = 0;

    life_begins(0);
    req = send_copied();
    for (; restarts < BFO_EPOCH_LAST; ++restarts) {
        must(bfo_se_epoch(req->m.se) == restarts);
        to_notified(req);
        comes_back(BFO_MSG_NOTIFY, OPAL_SUCCESS);
        got_handshake(BFO_MSG_RACK, req, 0);
    }
    must(BFO_SE(BFO_SEND_RTS, BFO_EPOCH_LAST) == req->m.se && is_posted(BFO_MSG_RNDV));
    comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
    got_handshake(BFO_MSG_RERR, req, 0);
    must(BFO_SEND_DEAD == state_of(req) && req->lane->peer->declared);
    fences_end();
    must(is_over(req) && MPI_SUCCESS != ((ompi_request_t *) req)->req_status.MPI_ERROR);
    life_ends();
}

/* pml_dump shows a send in each state, and the event that it waits for. */
static void dumped(void)
{
    bfo_send_t *req;

    life_begins(0);
    (void) send_match();
    must(dump_says("send req 0x", "to 1 tag 3 seq 0: eager epoch 0, match, ") && dump_says("send", "waits for the rail to take the message"));
    life_ends();

    life_begins(0);
    req = send_copied();
    must(dump_says("send req 0x",
                   "to 1 tag 3 seq 0: rts epoch 0, rndv, 0 of 1920 bytes delivered, 1 events, waits for the rail to take the first fragment"));
    comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
    must(dump_says("send req 0x", "waits for the receiver to match it"));
    got_ack(req, 0, req->rts_length, bfo_send_length(req) - req->rts_length);
    must(dump_says("send req 0x", ": stream epoch 0, rndv, ") && dump_says("send", "waits for the rails to take its data"));
    comes_back(BFO_MSG_FRAG, OPAL_ERROR);
    must(dump_says("send req 0x", ": errd epoch 0, ") && dump_says("send", "waits for its fragments to come back from lost rails"));
    must(dump_says("  rail ", "down, being fenced"));
    while (is_posted(BFO_MSG_FRAG)) {
        comes_back(BFO_MSG_FRAG, OPAL_SUCCESS);
    }
    must(dump_says("send req 0x", ": notified epoch 0, ") && dump_says("send", "waits for the receiver to agree to a restart"));
    got_handshake(BFO_MSG_RACK, req, 0);
    must(dump_says("send req 0x", "waits for its restart message to come back"));
    comes_back(BFO_MSG_NOTIFY, OPAL_SUCCESS);
    must(dump_says("send req 0x", ": rts epoch 1, "));
    declare();
    must(dump_says("send req 0x", ": dead epoch 1, ") && dump_says("send", "waits for its fragments and the rails of a lost peer"));
    must(dump_says("rank 1 is ", ", declared unreachable"));
    life_ends();

    life_begins(0);
    req = send_written();
    comes_back(BFO_MSG_RNDV, OPAL_SUCCESS);
    world_refuse_busy = 1;
    world_put_comes(&world_btl[1], req, 0, 1000);
    must(dump_says("bfo: 1 pieces of work wait for resources", "0 messages for their communicator"));
    life_ends();
}

void rows_of_senders(void)
{
    dumped();
    eager();
    streams();
    rails_are_unlike();
    reads();
    handshakes();
    answers_in_between();
    poison_and_lists();
    suspicions();
    deaths();
    dead_sets();
    epochs();
}
