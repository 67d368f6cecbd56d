/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Scenarios of world_rows: every row of the receiver's machine that a message, a completion, a loss or a second thread can
 * bring about, one story after the other. DESIGN.txt sections 7.2 and 13.
 */
#include "world.h"

#include "ends/pml_bfo_recv_complete.h"

static unsigned state_of(const bfo_recv_t *req)
{
    return bfo_se_state(req->m.se);
}

/* R0 to R5, R10, C1, R15, and D1 where no restart is needed. */
static void plain(void)
{
    bfo_recv_t *req;
    bfo_id_t gone;

    life_begins(READS);
    for (int i = 0; i < 8; ++i) { /* a new request, then requests that were used before */
        req = recv_posted();
        got_frag(req, 0, 0, 10); /* D1: no message has carried this name */
        got_match(4);
        give_back(req);
    }
    req = recv_posted();
    ((ompi_request_t *) req)->req_cancel((ompi_request_t *) req, 1);
    must(is_over(req));
    req = recv_copied();
    gone = bfo_name_id(&req->name);
    got_frag(req, 3, 0, 10); /* D1 */
    got_frag(req, 0, 0, 1200);
    comes_back(BFO_MSG_ACK, OPAL_SUCCESS);
    must(is_over(req));
    got_notify_of(gone); /* R15 */
    must(is_posted(BFO_MSG_NACK));
    req = recv_posted();
    got_match(4);
    got_frag(req, 0, 0, 10);                /* D1 in DONE */
    got_notify_of(bfo_name_id(&req->name)); /* R15 in DONE */
    req = recv_written();
    for (int i = 0; i < 4; ++i) {
        comes_back(BFO_MSG_PUT, OPAL_SUCCESS);
        got_fin_of_write(req, 0, 0);
    }
    must(is_over(req));
    req = recv_read(9000, &world_btl[0]);
    for (int i = 0; i < 3; ++i) {
        comes_back(WORLD_GET, OPAL_SUCCESS);
    }
    must(is_over(req));
    req = recv_posted();
    declare(); /* R16 in UNMATCHED */
    must(is_over(req));
    life_ends();
}

/* R6, R7, R8, R8b: errors of the receiver itself, and messages that still come in ERRL. */
static void own_errors(void)
{
    static const int ends[] = {OPAL_ERROR, OPAL_ERR_FATAL};
    bfo_recv_t *req;

    for (int i = 0; i < 2; ++i) {
        life_begins(0);
        req = recv_written(); /* four PUTs, two of them over one rail */
        for (int k = 0; k < 2; ++k) {
            comes_back(BFO_MSG_PUT, ends[i]);
        }
        must(BFO_RECV_ERRL == state_of(req) || BFO_RECV_DEAD == state_of(req));
        comes_back(BFO_MSG_PUT, OPAL_SUCCESS);
        life_ends();

        life_begins(0);
        req = recv_copied();
        comes_back(BFO_MSG_ACK, ends[i]);
        must(BFO_RECV_ERRL == state_of(req) && is_posted(BFO_MSG_RERR));
        got_frag(req, 5, 0, 10);           /* D1 */
        comes_back(BFO_MSG_RERR, ends[i]); /* R8, R16p */
        must(0 == i ? is_posted(BFO_MSG_RERR) : BFO_RECV_DEAD == state_of(req));
        if (0 == i) {
            comes_back(BFO_MSG_RERR, OPAL_SUCCESS);
            got_frag(req, 0, 0, 1200); /* R3, R10 in ERRL */
            must(is_over(req));
        }
        life_ends();

        life_begins(READS);
        req = recv_read(9000, &world_btl[0]);
        comes_back(WORLD_GET, ends[i]);
        must(BFO_RECV_ERRL == state_of(req));
        comes_back(WORLD_GET, OPAL_SUCCESS); /* R5 in ERRL */
        comes_back(WORLD_GET, ends[i]);      /* R7 */
        life_ends();
    }
    life_begins(0);
    req = recv_written();
    comes_back(BFO_MSG_PUT, OPAL_ERROR);
    comes_back(BFO_MSG_PUT, OPAL_SUCCESS);    /* R5b in ERRL */
    got_fin_of_write(req, 0, 1);              /* R4 in ERRL */
    got_fin_of_write(req, BFO_FIN_RESENT, 2); /* R4b in ERRL */
    life_ends();

    life_begins(0);
    req = recv_posted();
    world_rail_fails(&world_btl[0]);
    life_ends();
    life_begins(READS);
    (void) recv_copied(); /* makes the peer known before its rail fails */
    world_rail_fails(&world_btl[0]);
    req = recv_read(3000, &world_btl[0]); /* R6: RGET names a rail that is not UP */
    must(BFO_RECV_ERRL == state_of(req));
    declare(); /* R16 in ERRL and in ACTIVE */
    life_ends();
}

static const int ends[] = {OPAL_SUCCESS, OPAL_ERROR, OPAL_ERR_FATAL}; /* of an operation that comes back */

/* A NOTIFY names rail 0, whose fence ends when the scenario says so; an operation comes back with ends[i]. */
static void notified_once(int i)
{
    bfo_recv_t *req;

    life_begins(0);
    req = recv_copied();
    got_notify(req, 1, 0, 1);
    must(BFO_RECV_QUIESCE == state_of(req));
    got_notify(req, 1, 0, 1);         /* R9b */
    got_frag(req, 0, 0, 700);         /* R3 */
    got_frag(req, 9, 0, 10);          /* D1 */
    comes_back(BFO_MSG_ACK, ends[i]); /* R5b, R7 */
    fences_end();
    must(i < 2 ? BFO_SE(BFO_RECV_WAITRTS, 1) == req->m.se && is_posted(BFO_MSG_RACK) : is_over(req)); /* R12, R12f */
    life_ends();

    life_begins(0); /* all bytes have arrived: NACK */
    req = recv_copied();
    got_notify(req, 1, 0, 1);
    got_frag(req, 0, 0, 1200);
    comes_back(BFO_MSG_ACK, OPAL_SUCCESS);
    must(is_over(req) && is_posted(BFO_MSG_NACK));
    life_ends();

    life_begins(0); /* RACK comes back with each status, and is sent again */
    req = recv_copied();
    comes_back(BFO_MSG_ACK, OPAL_SUCCESS);
    got_notify(req, 1, 0, 1);
    fences_end();
    got_notify(req, 1, 0, 1); /* R9b in WAITRTS */
    got_frag(req, 0, 0, 10);  /* D1 */
    comes_back(BFO_MSG_RACK, ends[i]);
    must(0 == i ? BFO_RECV_WAITRTS == state_of(req) : 1 == i ? is_posted(BFO_MSG_RACK) : BFO_RECV_DEAD == state_of(req));
    life_ends(); /* R16 in WAITRTS */
}

/* RACK is still in flight when the next attempt is in ACTIVE, ERRL, QUIESCE; then a RERR is in flight. */
static void notified_again(int i)
{
    bfo_recv_t *req;

    for (int where = 0; where < 3; ++where) {
        life_begins(0);
        req = recv_copied();
        comes_back(BFO_MSG_ACK, OPAL_SUCCESS);
        got_notify(req, 1, 0, 0);
        must(is_posted(BFO_MSG_RACK));
        got_restart(req);
        must(BFO_SE(BFO_RECV_ACTIVE, 1) == req->m.se);
        if (1 == where) {
            comes_back(BFO_MSG_ACK, OPAL_ERROR);
        }
        if (2 == where) {
            got_notify(req, 2, 0, 0);
        }
        comes_back(BFO_MSG_RACK, ends[i]);
        life_ends();
    }
    life_begins(0);
    req = recv_copied();
    comes_back(BFO_MSG_ACK, OPAL_ERROR);
    got_notify(req, 1, 0, 1); /* R9 in ERRL */
    must(BFO_RECV_QUIESCE == state_of(req));
    comes_back(BFO_MSG_RERR, ends[i]);
    life_ends();
}

/* PUTs and READs in QUIESCE. */
static void notified_with_rdma(void)
{
    bfo_recv_t *req;

    life_begins(0);
    req = recv_written();
    got_notify(req, 1, 0, 1);
    comes_back(BFO_MSG_PUT, OPAL_SUCCESS);
    got_fin_of_write(req, 0, 1);
    got_fin_of_write(req, BFO_FIN_RESENT, 2);
    life_ends();
    life_begins(READS);
    req = recv_read(9000, &world_btl[0]);
    got_notify(req, 1, 0, 0);
    comes_back(WORLD_GET, OPAL_SUCCESS);
    life_ends();
    life_begins(READS);
    req = recv_read(3000, &world_btl[0]);
    got_notify(req, 1, 0, 0);
    comes_back(WORLD_GET, OPAL_SUCCESS);
    must(is_over(req));
    life_ends();
    life_begins(0); /* a FIN over another rail than its data, in ACTIVE; then a FIN of a request that is gone */
    req = recv_written();
    got_fin_of_write(req, BFO_FIN_RESENT, 2);
    fences_end();
    got_fin_again(0); /* R4b in NONE: the first FIN was taken when the fence ended */
    life_ends();
}

/* R9, R9b, R11, R12, R12f, R13, R14. */
static void notified(void)
{
    for (int i = 0; i < 3; ++i) {
        notified_once(i);
        notified_again(i);
    }
    notified_with_rdma();
}

/* The second of three READs is lost. The new attempt reads all three again, however much the old attempt had. */
static void read_again(void)
{
    bfo_recv_t *req;

    life_begins(READS);
    req = recv_read(9000, &world_btl[0]);
    comes_back(WORLD_GET, OPAL_SUCCESS);
    comes_back(WORLD_GET, OPAL_ERROR);
    comes_back(WORLD_GET, OPAL_ERROR);
    comes_back(BFO_MSG_RERR, OPAL_SUCCESS);
    got_notify(req, 1, 0, 1);
    fences_end();
    must(BFO_SE(BFO_RECV_WAITRTS, 1) == req->m.se);
    comes_back(BFO_MSG_RACK, OPAL_SUCCESS);
    got_restart_read(req, &world_btl[1]);
    for (int i = 0; i < 3; ++i) {
        must(!is_over(req) && !is_posted(BFO_MSG_FIN));
        comes_back(WORLD_GET, OPAL_SUCCESS);
    }
    must(is_posted(BFO_MSG_FIN));
    comes_back(BFO_MSG_FIN, OPAL_SUCCESS);
    give_back(req);
    life_ends();
}

/* ---- R12a: SEALED lasts while another thread holds the request --------------------------------------------- */

static bfo_recv_t *sealed;

/* Runs inside the step from QUIESCE to SEALED, and stands for a handler that began before it. */
static void other_thread_holds(const char *line)
{
    if (NULL != sealed && BFO_RECV_SEALED == state_of(sealed)) {
        bfo_recv_t *req = sealed;

        sealed = NULL;
        bfo_recv_get(req);
    }
}

static bfo_recv_t *to_sealed(bool written)
{
    bfo_recv_t *req;

    life_begins(THREADS);
    req = written ? recv_written() : recv_copied();
    while (is_posted(written ? BFO_MSG_PUT : BFO_MSG_ACK)) {
        comes_back(written ? BFO_MSG_PUT : BFO_MSG_ACK, OPAL_SUCCESS);
    }
    sealed = req;
    bfo_params.verbose = 100;
    world_on_output = other_thread_holds;
    got_notify(req, 1, 0, 0);
    must(BFO_RECV_SEALED == state_of(req) && NULL == sealed);
    return req;
}

static void threads(void)
{
    bfo_recv_t *req;

    for (int how = 0; how < 5; ++how) {
        req = to_sealed(3 == how);
        got_frag(req, 0, 0, 10);  /* D1: no longer admissible */
        got_notify(req, 1, 0, 0); /* R9b */
        if (1 == how) {           /* bytes that the other thread counted before */
            (void) bfo_add_size(&req->bytes, req->length);
        } else if (2 == how) {
            req->error = MPI_ERR_OTHER;
        } else if (3 == how) {
            got_fin_of_write(req, BFO_FIN_RESENT, 2); /* R4b */
        } else if (4 == how) {
            declare(); /* R16 */
        }
        bfo_recv_put(req); /* the other thread lets go */
        fences_end();
        must(1 == how || 2 == how || 4 == how ? is_over(req) : BFO_RECV_WAITRTS == state_of(req));
        life_ends();
    }
}

/* The peer is declared while a READ, or WRITEs, are in flight. */
static void dies_with_rdma(int i)
{
    bfo_recv_t *req;

    for (int k = 0; k < 2; ++k) {
        life_begins(READS);
        req = recv_read(0 == k ? 9000 : 3000, &world_btl[0]);
        declare();
        comes_back(WORLD_GET, ends[i]);
        life_ends();
    }
    life_begins(0);
    req = recv_written();
    declare();
    got_fin_of_write(req, BFO_FIN_RESENT, 2); /* R4b */
    while (is_posted(BFO_MSG_PUT)) {
        comes_back(BFO_MSG_PUT, ends[i]);
    }
    fences_end();
    must(is_over(req));
    got_fin_again(0); /* of a request that is gone, from a declared peer */
    life_ends();
}

/* R16 and R18: the peer is declared while an operation of each kind is in flight, which then comes back. */
static void deaths(void)
{
    bfo_recv_t *req;

    for (int i = 0; i < 3; ++i) {
        life_begins(0);
        req = recv_copied();
        declare();
        got_frag(req, 0, 0, 10); /* D1 */
        comes_back(BFO_MSG_ACK, ends[i]);
        fences_end();
        must(is_over(req));
        life_ends();

        dies_with_rdma(i);

        life_begins(0);
        req = recv_copied();
        comes_back(BFO_MSG_ACK, OPAL_ERROR);
        declare();
        comes_back(BFO_MSG_RERR, ends[i]);
        life_ends();

        life_begins(0);
        req = recv_copied();
        comes_back(BFO_MSG_ACK, OPAL_SUCCESS);
        got_notify(req, 1, 0, 0);
        declare();
        comes_back(BFO_MSG_RACK, ends[i]);
        fences_end();
        must(is_over(req));
        life_ends();

        life_begins(0);
        req = recv_copied();
        got_notify(req, 1, BFO_FLAG_FAILED, 1);
        if (0 == i) {
            declare(); /* R16 in QUIESCE */
        } else {
            comes_back(BFO_MSG_ACK, OPAL_SUCCESS); /* R12f */
            fences_end();
            must(is_over(req) && is_posted(BFO_MSG_NACK));
        }
        life_ends();
    }
}

/* pml_dump shows a receive in each state, and the event that it waits for. */
static void dumped(void)
{
    bfo_recv_t *req;

    life_begins(0);
    (void) recv_posted();
    must(dump_says("recv req 0x", "from 1 tag 4: unmatched, buffer of 12000 bytes, waits for a message"));
    life_ends();

    life_begins(0);
    req = recv_copied();
    must(dump_says("recv req 0x", "from 1 tag 4 seq 0: active epoch 0, 0 of 1200 bytes here, 0 transfers open, 1 events, waits for data"));
    comes_back(BFO_MSG_ACK, OPAL_ERROR);
    must(dump_says("recv req 0x", ": errl epoch 0, 0 of 1200 bytes here") && dump_says("recv", "waits for the sender to begin a restart"));
    must(dump_says("  rail 0 (openib) generation 0 ", "down, being fenced"));
    got_notify(req, 1, 0, 1);
    must(dump_says("recv req 0x", ": quiesce epoch ") && dump_says("recv", "waits for its answers to come back from lost rails"));
    comes_back(BFO_MSG_RERR, OPAL_SUCCESS);
    must(dump_says("recv req 0x", "waits for lost rails to be fenced"));
    fences_end();
    must(dump_says("recv req 0x", ": waitrts epoch 1, ") && dump_says("recv", "waits for the sender to send again"));
    must(!dump_says("  rail 0 ", "fenced") && dump_says("  rail 0 ", "down") && dump_says("  rail 1 ", "up"));
    got_restart(req);
    must(dump_says("recv req 0x", ": active epoch 1, "));
    declare();
    must(dump_says("recv req 0x", ": dead epoch 1, ") && dump_says("recv", "waits for its answers and the rails of a lost peer"));
    must(dump_says("rank 1 is ", ", declared unreachable"));
    life_ends();

    life_begins(0);
    (void) recv_written();
    must(dump_says("recv req 0x", "4 transfers open, ") && dump_says("recv", "waits for its transfers"));
    life_ends();

    req = to_sealed(false);
    world_on_output = NULL;
    must(dump_says("recv req 0x", ": sealed epoch "));
    bfo_recv_put(req);
    life_ends();
}

void rows_of_receivers(void)
{
    dumped();
    plain();
    own_errors();
    notified();
    read_again();
    threads();
    deaths();
}
