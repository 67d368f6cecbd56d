/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Leads the request machines through whole stories, written by hand from DESIGN.txt section 7: flows, errors of each
 * fragment, the restart handshake ("handshake"), declaration, every epoch, and threads that compete for one claim. */
#include "fsm_request.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- flows without errors ------------------------------------------------------------------------------ */
static void send_frag_flow_completes_once_with_the_last_byte(void **unused)
{
    request_t r = {.m = {.se = 0}};

    (void) unused;
    s(&r, BFO_SEV_START, 0);
    send_is(&r, BFO_SEND_RTS, 0, BFO_SACT_post_rts);
    s(&r, BFO_SEV_RTS_OK, 0);
    send_is(&r, BFO_SEND_RTS, 0, BFO_SACT_count_rts);
    r.send.resp = true;
    s(&r, BFO_SEV_ACK, 2);
    send_is(&r, BFO_SEND_STREAM, 0, BFO_SACT_take_ack);
    s(&r, BFO_SEV_FRAG_OK, 0);
    send_is(&r, BFO_SEND_STREAM, 0, BFO_SACT_count_frag);
    r.send.all_bytes = true;
    s(&r, BFO_SEV_FRAG_OK, 0);
    send_is(&r, BFO_SEND_DONE, 0, BFO_SACT_complete);
    assert_int_equal(1, r.ran[BFO_SACT_complete]);
    assert_int_equal(0, r.m.events);
    assert_int_equal(0, r.rejected);
    s(&r, BFO_SEV_START, 0); /* a persistent request starts again at epoch 0 */
    send_is(&r, BFO_SEND_RTS, 0, BFO_SACT_post_rts);
}

static void send_put_flow_waits_for_every_write(void **unused)
{
    request_t r = {.send = {.resp = true}};

    (void) unused;
    s(&r, BFO_SEV_START, 0);
    s(&r, BFO_SEV_RTS_OK, 0);
    s(&r, BFO_SEV_PUT, 1);
    s(&r, BFO_SEV_PUT, 1);
    s(&r, BFO_SEV_WRITE_OK, 0);
    send_is(&r, BFO_SEND_STREAM, 0, BFO_SACT_count_write_post_fin);
    r.send.all_bytes = true;
    s(&r, BFO_SEV_WRITE_OK, 0);
    send_is(&r, BFO_SEND_DONE, 0, BFO_SACT_complete);
    assert_int_equal(2, r.ran[BFO_SACT_count_write_post_fin]);
}

static void send_get_flow_completes_from_rts(void **unused)
{
    request_t r = {.m = {.se = 0}};

    (void) unused;
    s(&r, BFO_SEV_START, 0);
    r.send.resp = r.send.all_bytes = true;
    s(&r, BFO_SEV_FIN, 0);
    send_is(&r, BFO_SEND_RTS, 0, BFO_SACT_take_fin); /* its RGET is still outstanding */
    s(&r, BFO_SEV_RTS_OK, 0);
    send_is(&r, BFO_SEND_DONE, 0, BFO_SACT_complete);
}

static void recv_flows_complete_when_bytes_and_events_are_in(void **unused)
{
    request_t r = {.m = {.se = 0}};

    (void) unused;
    v(&r, BFO_REV_POST, 0);
    v(&r, BFO_REV_MATCHED, 1);
    recv_is(&r, BFO_RECV_ACTIVE, 0, BFO_RACT_accept);
    v(&r, BFO_REV_FRAG, 0);
    r.recv.all_bytes = true;
    v(&r, BFO_REV_FRAG, 0);
    recv_is(&r, BFO_RECV_ACTIVE, 0, BFO_RACT_take_frag); /* its ACK has not completed */
    v(&r, BFO_REV_RESPONSE_OK, 0);
    recv_is(&r, BFO_RECV_DONE, 0, BFO_RACT_complete);
    v(&r, BFO_REV_POST, 0);
    v(&r, BFO_REV_MATCHED_EAGER, 0);
    recv_is(&r, BFO_RECV_DONE, 0, BFO_RACT_take_eager);
    v(&r, BFO_REV_CANCEL, 0); /* too late */
    assert_int_equal(1, r.rejected);
    v(&r, BFO_REV_POST, 0);
    v(&r, BFO_REV_CANCEL, 0);
    recv_is(&r, BFO_RECV_DONE, 0, BFO_RACT_complete_cancelled);
}

static void match_is_resent_until_one_copy_succeeds(void **unused)
{
    request_t r = {.m = {.se = 0}};

    (void) unused;
    s(&r, BFO_SEV_START_EAGER, 0);
    for (int i = 0; i < 5; i++) {
        s(&r, BFO_SEV_MATCH_ERR, 0);
        send_is(&r, BFO_SEND_EAGER, 0, BFO_SACT_resend_match);
    }
    r.send.rts_done = true;
    s(&r, BFO_SEV_MATCH_OK, 0);
    send_is(&r, BFO_SEND_DONE, 0, BFO_SACT_complete);
}

/* ---- errors, one fragment at a time --------------------------------------------------------------------- */
static void rts_unanswered_is_resent_and_answered_is_not(void **unused)
{
    request_t r = {.m = {.se = 0}};

    (void) unused;
    s(&r, BFO_SEV_START, 0);
    s(&r, BFO_SEV_RTS_ERR_UNANSWERED, 0);
    send_is(&r, BFO_SEND_RTS, 0, BFO_SACT_resend_rts);
    assert_int_equal(1, r.m.events);
    r.send.resp = true;
    s(&r, BFO_SEV_ACK, 1);
    s(&r, BFO_SEV_RTS_ERR_ANSWERED, 0);
    send_is(&r, BFO_SEND_STREAM, 0, BFO_SACT_count_rts);
    s(&r, BFO_SEV_DATA_ERR, 0);
    send_is(&r, BFO_SEND_NOTIFIED, 0, BFO_SACT_post_notify);
}

/* Leads a sender to NOTIFIED: it sends n FRAGs, and every second of them is lost. */
static void sender_to_notified(request_t *r, int n)
{
    s(r, BFO_SEV_START, 0);
    s(r, BFO_SEV_RTS_OK, 0);
    r->send.resp = true;
    s(r, BFO_SEV_ACK, n);
    s(r, BFO_SEV_DATA_ERR, 0);
    for (int i = 1; i < n; i++) {
        send_is(r, BFO_SEND_ERRD, 0, BFO_SACT_none);
        s(r, 0 == i % 2 ? BFO_SEV_DATA_ERR : BFO_SEV_FRAG_OK, 0); /* the last completion posts NOTIFY */
    }
    send_is(r, BFO_SEND_NOTIFIED, 0, BFO_SACT_post_notify);
}

static void frag_lost_drains_then_notifies_then_restarts(void **unused)
{
    request_t r = {.m = {.se = 0}};

    (void) unused;
    sender_to_notified(&r, 5);
    assert_int_equal(1, r.m.events);
    s(&r, BFO_SEV_NOTIFY_ERR_UNANSWERED, 0);
    send_is(&r, BFO_SEND_NOTIFIED, 0, BFO_SACT_resend_notify);
    r.send.got_ack = true;
    s(&r, BFO_SEV_RACK, 0);
    send_is(&r, BFO_SEND_NOTIFIED, 0, BFO_SACT_note_rack); /* NOTIFY itself is still outstanding */
    s(&r, BFO_SEV_NOTIFY_OK, 0);                           /* restart posts the RTS, therefore the guard stops there */
    assert_int_equal(1, r.ran[BFO_SACT_restart]);
    assert_int_equal(BFO_SE(BFO_SEND_RTS, 1), r.m.se);
    assert_int_equal(1, r.ran[BFO_SACT_post_notify]);
    s(&r, BFO_SEV_STALE, 0); /* a late ACK(0) */
    send_is(&r, BFO_SEND_RTS, 1, BFO_SACT_drop_stale);
}

static void nack_completes_the_sender_only_when_notify_is_back(void **unused)
{
    request_t r = {.m = {.se = 0}};

    (void) unused;
    sender_to_notified(&r, 2);
    r.send.got_nack = r.send.got_ack = true; /* NACK wins over RACK */
    s(&r, BFO_SEV_NACK, 0);
    send_is(&r, BFO_SEND_NOTIFIED, 0, BFO_SACT_note_nack);
    s(&r, BFO_SEV_NOTIFY_ERR_ANSWERED, 0);
    send_is(&r, BFO_SEND_DONE, 0, BFO_SACT_complete);
    assert_int_equal(0, r.ran[BFO_SACT_restart]);
}

static void put_on_a_dead_rail_and_rerr_lead_to_notify(void **unused)
{
    static const unsigned events[] = {BFO_SEV_PUT_RAIL_DOWN, BFO_SEV_RERR};

    (void) unused;
    for (int i = 0; i < 2; i++) {
        request_t r = {.m = {.se = 0}};

        s(&r, BFO_SEV_START, 0);
        s(&r, BFO_SEV_RTS_OK, 0);
        r.send.resp = true;
        s(&r, events[i], 0);
        send_is(&r, BFO_SEND_NOTIFIED, 0, BFO_SACT_post_notify);
    }
}

static void recv_response_lost_sends_rerr_and_still_counts_data(void **unused)
{
    request_t r = {.m = {.se = 0}};

    (void) unused;
    v(&r, BFO_REV_POST, 0);
    v(&r, BFO_REV_MATCHED, 1);
    v(&r, BFO_REV_RESPONSE_ERR, 0);
    recv_is(&r, BFO_RECV_ERRL, 0, BFO_RACT_post_rerr);
    assert_int_equal(1, r.m.events);
    v(&r, BFO_REV_FRAG, 0); /* the ACK did arrive; the sender may be done already */
    recv_is(&r, BFO_RECV_ERRL, 0, BFO_RACT_take_frag);
    v(&r, BFO_REV_RERR_ERR, 0);
    recv_is(&r, BFO_RECV_ERRL, 0, BFO_RACT_resend_rerr);
    r.recv.all_bytes = true;
    v(&r, BFO_REV_FRAG, 0);
    v(&r, BFO_REV_RERR_OK, 0);
    recv_is(&r, BFO_RECV_DONE, 0, BFO_RACT_complete);
}

static void recv_restart_waits_for_fences_then_grants_once(void **unused)
{
    request_t r = {.m = {.se = 0}};

    (void) unused;
    v(&r, BFO_REV_POST, 0);
    v(&r, BFO_REV_MATCHED, 1);
    v(&r, BFO_REV_NOTIFY, 0);
    recv_is(&r, BFO_RECV_QUIESCE, 0, BFO_RACT_enter_quiesce);
    v(&r, BFO_REV_FRAG, 0);
    v(&r, BFO_REV_NOTIFY, 0);
    recv_is(&r, BFO_RECV_QUIESCE, 0, BFO_RACT_repeat_down);
    v(&r, BFO_REV_RESPONSE_ERR, 0);
    recv_is(&r, BFO_RECV_QUIESCE, 0, BFO_RACT_none); /* drained; the fence still runs */
    r.recv.fences_done = true;
    bfo_recv_settle(&r.m, &recv_ops, &r); /* fence_done */
    recv_is(&r, BFO_RECV_WAITRTS, 1, BFO_RACT_grant_restart);
    v(&r, BFO_REV_NOTIFY_COPY, 0);
    recv_is(&r, BFO_RECV_WAITRTS, 1, BFO_RACT_repeat_down);
    v(&r, BFO_REV_FRAG, 0); /* no data in WAITRTS */
    assert_int_equal(1, r.rejected);
    v(&r, BFO_REV_RACK_ERR, 0);
    recv_is(&r, BFO_RECV_WAITRTS, 1, BFO_RACT_resend_rack);
    v(&r, BFO_REV_RTS_RESTART, 1);
    recv_is(&r, BFO_RECV_ACTIVE, 1, BFO_RACT_accept);
    v(&r, BFO_REV_RACK_ERR, 0);
    recv_is(&r, BFO_RECV_ACTIVE, 1, BFO_RACT_none); /* the RTS proves that the RACK arrived */
    assert_int_equal(1, r.ran[BFO_RACT_grant_restart]);
}

static void recv_complete_message_answers_notify_with_nack(void **unused)
{
    request_t r = {.recv = {.all_bytes = true}};

    (void) unused;
    v(&r, BFO_REV_POST, 0);
    v(&r, BFO_REV_MATCHED, 1);
    v(&r, BFO_REV_NOTIFY, 0);
    v(&r, BFO_REV_RESPONSE_OK, 0);
    recv_is(&r, BFO_RECV_DONE, 0, BFO_RACT_post_nack_complete);
    v(&r, BFO_REV_NOTIFY, 0); /* the NOTIFY lost the race against the completion of the message */
    recv_is(&r, BFO_RECV_DONE, 0, BFO_RACT_answer_gone);
    memset(&r, 0, sizeof(r));
    r.last = ACTIONS_MAX;
    v(&r, BFO_REV_NOTIFY_GONE, 0);
    recv_is(&r, BFO_RECV_NONE, 0, BFO_RACT_answer_gone);
}

static void poison_ends_in_failure_on_both_sides(void **unused)
{
    request_t tx = {.send = {.resp = true}}, rx = {.m = {.se = 0}};

    (void) unused;
    s(&tx, BFO_SEV_START, 0);
    s(&tx, BFO_SEV_RTS_OK, 0);
    s(&tx, BFO_SEV_ACK, 1);
    s(&tx, BFO_SEV_DATA_POISON, 0);
    assert_int_equal(1, tx.ran[BFO_SACT_set_fail]);
    send_is(&tx, BFO_SEND_NOTIFIED, 0, BFO_SACT_post_notify);
    v(&rx, BFO_REV_POST, 0);
    v(&rx, BFO_REV_MATCHED, 1);
    v(&rx, BFO_REV_RESPONSE_POISON, 0);
    recv_is(&rx, BFO_RECV_ERRL, 0, BFO_RACT_fail_post_rerr);
    v(&rx, BFO_REV_RERR_OK, 0);
    rx.recv.fail = rx.recv.fences_done = true;
    v(&rx, BFO_REV_NOTIFY, 0);
    recv_is(&rx, BFO_RECV_DONE, 0, BFO_RACT_post_nack_failed);
}

/* ---- declaration ------------------------------------------------------------------------------------------ */
static void declared_requests_drain_and_wait_for_the_fences(void **unused)
{
    (void) unused;
    for (unsigned state = BFO_SEND_EAGER; state <= BFO_SEND_DEAD; state++) {
        request_t r = {.m = {.se = BFO_SE(state, 3), .events = 2}};

        s(&r, BFO_SEV_PEER_DECLARED, 0);
        send_is(&r, BFO_SEND_DEAD, 3, BFO_SACT_die);
        s(&r, BFO_SEV_RTS_ERR_UNANSWERED, 0);
        s(&r, BFO_SEV_DISCARDED, 0);
        send_is(&r, BFO_SEND_DEAD, 3, BFO_SACT_none);
        r.send.peer_fenced = true;
        bfo_send_settle(&r.m, &send_ops, &r);
        send_is(&r, BFO_SEND_DONE, 3, BFO_SACT_complete_dead);
        assert_int_equal(0, r.rejected);
    }
    for (unsigned state = BFO_RECV_UNMATCHED; state <= BFO_RECV_DEAD; state++) {
        request_t r = {.m = {.se = BFO_SE(state, 3), .events = 1}, .recv = {.peer_fenced = true}};

        v(&r, BFO_REV_PEER_DECLARED, 0);
        recv_is(&r, BFO_RECV_DEAD, 3, BFO_RACT_die);
        v(&r, BFO_REV_FRAG, 0);
        assert_int_equal(1, r.rejected);
        v(&r, BFO_REV_RESPONSE_ERR, 0);
        recv_is(&r, BFO_RECV_DONE, 3, BFO_RACT_complete_dead);
    }
}

/* ---- every epoch -------------------------------------------------------------------------------------------- */
static void restarts_use_every_epoch_then_declare_the_peer(void **unused)
{
    request_t tx = {.send = {.resp = true, .got_ack = true}}, rx = {.recv = {.fences_done = true}};

    (void) unused;
    s(&tx, BFO_SEV_START, 0);
    v(&rx, BFO_REV_POST, 0);
    v(&rx, BFO_REV_MATCHED, 1);
    for (unsigned epoch = 0; epoch < 65535; epoch++) {
        assert_int_equal(BFO_SE(BFO_SEND_RTS, epoch), tx.m.se);
        assert_int_equal(BFO_SE(BFO_RECV_ACTIVE, epoch), rx.m.se);
        s(&tx, BFO_SEV_RERR, 0); /* the RTS is still outstanding: ERRD */
        assert_int_equal(BFO_SE(BFO_SEND_ERRD, epoch), tx.m.se);
        s(&tx, BFO_SEV_RTS_OK, 0); /* drained: the sender posts NOTIFY */
        assert_int_equal(BFO_SE(BFO_SEND_NOTIFIED, epoch), tx.m.se);
        assert_true(bfo_se_is_next_epoch(rx.m.se, (uint16_t) (bfo_se_epoch(tx.m.se) + 1)));
        v(&rx, BFO_REV_NOTIFY, 0);
        v(&rx, BFO_REV_RESPONSE_OK, 0); /* drained: the receiver posts RACK */
        assert_int_equal(BFO_SE(BFO_RECV_WAITRTS, epoch + 1), rx.m.se);
        s(&tx, BFO_SEV_RACK, 0);
        s(&tx, BFO_SEV_NOTIFY_OK, 0);
        v(&rx, BFO_REV_RACK_OK, 0);
        v(&rx, BFO_REV_RTS_RESTART, 1);
    }
    assert_int_equal(65535, tx.ran[BFO_SACT_restart]);
    assert_int_equal(65535, rx.ran[BFO_RACT_grant_restart]);
    assert_int_equal(BFO_SE(BFO_SEND_RTS, 65535), tx.m.se);
    assert_false(bfo_se_is_next_epoch(tx.m.se, 0)); /* no wrap */
    s(&tx, BFO_SEV_RERR, 0);
    s(&tx, BFO_SEV_RTS_OK, 0);
    send_is(&tx, BFO_SEND_DEAD, 65535, BFO_SACT_declare_peer);
    tx.send.peer_fenced = true;
    bfo_send_settle(&tx.m, &send_ops, &tx);
    send_is(&tx, BFO_SEND_DONE, 65535, BFO_SACT_complete_dead);
    assert_int_equal(0, tx.rejected + rx.rejected);
}

/* ---- threads ------------------------------------------------------------------------------------------------- */
enum { ROUNDS = 20000, WORKERS = 4 };

typedef struct {
    bfo_machine_t m;
    int notified, rejected;
    pthread_barrier_t gate;
} shared_t;

static void shared_reject(void *request, uint32_t se, unsigned event)
{
    (void) se;
    (void) event;
    (void) __atomic_add_fetch(&((shared_t *) request)->rejected, 1, __ATOMIC_SEQ_CST);
}

static void shared_notify(void *request, void *arg)
{
    shared_t *sh = request;

    (void) arg;
    (void) __atomic_add_fetch(&sh->notified, 1, __ATOMIC_SEQ_CST);
    bfo_events_up(&sh->m, true);
}

static void shared_none(void *request, void *arg)
{
    (void) request;
    (void) arg;
}

static void shared_facts(void *request, unsigned state, bfo_send_facts_t *facts)
{
    (void) request;
    (void) state;
    facts->resp = true;
}

static const bfo_action_fn_t shared_actions[BFO_SEND_ACTIONS] = {[BFO_SACT_none] = shared_none, [BFO_SACT_post_notify] = shared_notify};
static const bfo_send_ops_t shared_ops = {{shared_actions, shared_reject, NULL, true}, shared_facts};

static void *complete_one_in_error(void *arg)
{
    shared_t *sh = arg;

    for (int i = 0; i < ROUNDS; i++) {
        (void) pthread_barrier_wait(&sh->gate);
        bfo_events_up(&sh->m, true); /* the event of a late message, in addition */
        (void) bfo_send_step(&sh->m, BFO_SEV_DATA_ERR, &shared_ops, sh, NULL);
        if (0 == bfo_events_down(&sh->m, true)) {
            bfo_send_settle(&sh->m, &shared_ops, sh);
        }
        (void) pthread_barrier_wait(&sh->gate);
    }
    return NULL;
}

static void threads_that_drain_together_notify_exactly_once(void **unused)
{
    shared_t sh = {.m = {.se = 0}};
    pthread_t threads[WORKERS];

    (void) unused;
    assert_int_equal(0, pthread_barrier_init(&sh.gate, NULL, WORKERS + 1));
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(0, pthread_create(&threads[i], NULL, complete_one_in_error, &sh));
    }
    for (int i = 0; i < ROUNDS; i++) {
        sh.m.own = (bfo_look_t){.se = BFO_SE(BFO_SEND_STREAM, 5)};
        sh.m.events = WORKERS;
        sh.notified = 0;
        (void) pthread_barrier_wait(&sh.gate);
        (void) pthread_barrier_wait(&sh.gate);
        assert_int_equal(1, sh.notified);
        assert_int_equal(1, sh.m.events);
        assert_int_equal(BFO_SE(BFO_SEND_NOTIFIED, 5), sh.m.se);
    }
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(0, pthread_join(threads[i], NULL));
    }
    assert_int_equal(0, sh.rejected);
    (void) pthread_barrier_destroy(&sh.gate);
}

/* Another thread looks at the request, is delayed, and then claims it. Meanwhile the request was completed and used again, and has
 * reached the same state and epoch. */
static void request_taken_again_is_not_claimed_by_an_older_look(void **state)
{
    bfo_machine_t m = {.se = BFO_SE(BFO_SEND_STREAM, 0)};
    const bfo_look_t older = bfo_look_at(&m);

    assert_true(bfo_se_move(&m, BFO_SE(BFO_SEND_STREAM, 0), BFO_SE(BFO_SEND_DONE, 0), true));
    m.own.se = BFO_SE(BFO_SEND_RTS, 0);
    assert_true(bfo_se_move(&m, BFO_SE(BFO_SEND_RTS, 0), BFO_SE(BFO_SEND_STREAM, 0), true));
    assert_int_equal(older.se, m.se);
    assert_false(bfo_se_claim(&m, older, BFO_SE(BFO_SEND_DONE, 0), true));
    assert_int_equal(BFO_SE(BFO_SEND_STREAM, 0), m.se);
}

/* A completion sees no events; then another thread raises them in order to look at the request. The completion must not complete it now. */
static void completion_fails_once_somebody_looks(void **state)
{
    bfo_machine_t m = {.se = BFO_SE(BFO_SEND_STREAM, 7)};
    const bfo_look_t completion = bfo_look_at(&m);

    assert_int_equal(0, bfo_events_load(&m));
    bfo_events_up(&m, true);
    bfo_look(&m, true);
    assert_false(bfo_se_claim(&m, completion, BFO_SE(BFO_SEND_DONE, 0), true));
    assert_true(bfo_se_move(&m, BFO_SE(BFO_SEND_STREAM, 7), BFO_SE(BFO_SEND_ERRD, 7), true));
    assert_int_equal(1, bfo_events_load(&m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send_frag_flow_completes_once_with_the_last_byte),
        cmocka_unit_test(send_put_flow_waits_for_every_write),
        cmocka_unit_test(send_get_flow_completes_from_rts),
        cmocka_unit_test(recv_flows_complete_when_bytes_and_events_are_in),
        cmocka_unit_test(match_is_resent_until_one_copy_succeeds),
        cmocka_unit_test(rts_unanswered_is_resent_and_answered_is_not),
        cmocka_unit_test(frag_lost_drains_then_notifies_then_restarts),
        cmocka_unit_test(nack_completes_the_sender_only_when_notify_is_back),
        cmocka_unit_test(put_on_a_dead_rail_and_rerr_lead_to_notify),
        cmocka_unit_test(recv_response_lost_sends_rerr_and_still_counts_data),
        cmocka_unit_test(recv_restart_waits_for_fences_then_grants_once),
        cmocka_unit_test(recv_complete_message_answers_notify_with_nack),
        cmocka_unit_test(poison_ends_in_failure_on_both_sides),
        cmocka_unit_test(declared_requests_drain_and_wait_for_the_fences),
        cmocka_unit_test(restarts_use_every_epoch_then_declare_the_peer),
        cmocka_unit_test(threads_that_drain_together_notify_exactly_once),
        cmocka_unit_test(request_taken_again_is_not_claimed_by_an_older_look),
        cmocka_unit_test(completion_fails_once_somebody_looks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
