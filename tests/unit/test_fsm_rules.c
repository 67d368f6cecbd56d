/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The tables of the four machines against the rules of DESIGN.txt 7.1, 7.2, 10.2, 10.3 and 15.3, stated here by hand: this file
 * includes no .def. A rule says in which states a machine takes an event, and what the machine does then. A machine must refuse a pair
 * (state, event) that no rule names. The last tests check, one by one, the promises that the rules are there for. */
#include "tables/btl_openib_drain_fsm.h"
#include "tables/btl_openib_rail_fsm.h"
#include "tables/pml_bfo_failover_fsm.h"

#include "fsm_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* ---- sender ---------------------------------------------------------------------------------------------- */
#define S(state) (1u << BFO_SEND_##state)
enum {
    S_OPEN = S(EAGER) | S(RTS) | S(STREAM) | S(ERRD) | S(NOTIFIED) | S(DEAD),
    S_RENDEZVOUS = S(RTS) | S(STREAM) | S(ERRD) | S(NOTIFIED), /* a copy of the first fragment may be in flight */
    S_ANSWERABLE = S(RTS) | S(STREAM),                         /* the attempt goes on, therefore answers and data count */
    S_DRAINING = S(ERRD) | S(NOTIFIED)                         /* fragments in flight come back, and do not count */
};

/* clang-format off */
#define RULE(event, states, to, number, act) {BFO_SEV_##event, states, to, number, BFO_SACT_##act}
/* clang-format on */
static const rule_t send_rules[] = {
    RULE(START_EAGER, S(IDLE) | S(DONE), BFO_SEND_EAGER, 0, post_match),
    RULE(START, S(IDLE) | S(DONE), BFO_SEND_RTS, 0, post_rts),
    RULE(PEER_DECLARED, S_OPEN, BFO_SEND_DEAD, NOW, die),
    RULE(MATCH_OK, S(EAGER), SAME, NOW, count_match),
    RULE(MATCH_ERR, S(EAGER), SAME, NOW, resend_match),
    RULE(RTS_OK, S_RENDEZVOUS, SAME, NOW, count_rts),
    /* without an answer the RTS may not have arrived; in a later state there was an answer */
    RULE(RTS_ERR_UNANSWERED, S(RTS), SAME, NOW, resend_rts),
    RULE(RTS_ERR_UNANSWERED, S_RENDEZVOUS & ~S(RTS), SAME, NOW, count_rts),
    RULE(RTS_ERR_ANSWERED, S_RENDEZVOUS, SAME, NOW, count_rts),
    RULE(FRAG_OK, S(STREAM), SAME, NOW, count_frag),
    RULE(WRITE_OK, S(STREAM), SAME, NOW, count_write_post_fin),
    RULE(DATA_ERR, S(STREAM), BFO_SEND_ERRD, NOW, none),
    RULE(DATA_POISON, S(STREAM), BFO_SEND_ERRD, NOW, set_fail),
    RULE(FRAG_OK, S_DRAINING, SAME, NOW, none),
    RULE(WRITE_OK, S_DRAINING, SAME, NOW, none),
    RULE(DATA_ERR, S_DRAINING, SAME, NOW, none),
    RULE(DATA_POISON, S_DRAINING, SAME, NOW, set_fail),
    RULE(NOTIFY_OK, S(NOTIFIED), SAME, NOW, none),
    RULE(NOTIFY_ERR_UNANSWERED, S(NOTIFIED), SAME, NOW, resend_notify),
    RULE(NOTIFY_ERR_ANSWERED, S(NOTIFIED), SAME, NOW, none),
    RULE(CONTROL_POISON, S_OPEN & ~S(DEAD), BFO_SEND_DEAD, NOW, declare_peer),
    RULE(DISCARDED, S_OPEN, SAME, NOW, none),
    /* in DEAD every completion drains */
    RULE(MATCH_OK, S(DEAD), SAME, NOW, none),
    RULE(MATCH_ERR, S(DEAD), SAME, NOW, none),
    RULE(RTS_OK, S(DEAD), SAME, NOW, none),
    RULE(RTS_ERR_UNANSWERED, S(DEAD), SAME, NOW, none),
    RULE(RTS_ERR_ANSWERED, S(DEAD), SAME, NOW, none),
    RULE(FRAG_OK, S(DEAD), SAME, NOW, none),
    RULE(WRITE_OK, S(DEAD), SAME, NOW, none),
    RULE(DATA_ERR, S(DEAD), SAME, NOW, none),
    RULE(DATA_POISON, S(DEAD), SAME, NOW, none),
    RULE(NOTIFY_OK, S(DEAD), SAME, NOW, none),
    RULE(NOTIFY_ERR_UNANSWERED, S(DEAD), SAME, NOW, none),
    RULE(NOTIFY_ERR_ANSWERED, S(DEAD), SAME, NOW, none),
    RULE(CONTROL_POISON, S(DEAD), SAME, NOW, none),
    /* messages */
    RULE(ACK, S_ANSWERABLE, BFO_SEND_STREAM, NOW, take_ack),
    RULE(REFUSED, S(RTS), BFO_SEND_DEAD, NOW, die),
    RULE(PUT, S_ANSWERABLE, BFO_SEND_STREAM, NOW, take_put),
    RULE(PUT_RAIL_DOWN, S_ANSWERABLE, BFO_SEND_ERRD, NOW, take_dst),
    RULE(FIN, S_ANSWERABLE, SAME, NOW, take_fin),
    RULE(RERR, S_ANSWERABLE, BFO_SEND_ERRD, NOW, take_rerr),
    RULE(RACK, S(NOTIFIED), SAME, NOW, note_rack),
    RULE(NACK, S(NOTIFIED), SAME, NOW, note_nack),
    RULE(STALE, S_OPEN, SAME, NOW, drop_stale),
    /* nothing is out any more */
    RULE(ALL_DELIVERED, S(EAGER) | S_ANSWERABLE, BFO_SEND_DONE, NOW, complete),
    RULE(DRAINED, S(ERRD), BFO_SEND_NOTIFIED, NOW, post_notify),
    RULE(EPOCH_SPENT, S(ERRD), BFO_SEND_DEAD, NOW, declare_peer),
    RULE(DRAINED_NACKED, S(NOTIFIED), BFO_SEND_DONE, NOW, complete),
    RULE(DRAINED_ACKED, S(NOTIFIED), BFO_SEND_RTS, NEXT, restart),
    RULE(DEAD_DRAINED, S(DEAD), BFO_SEND_DONE, NOW, complete_dead),
    RULE(ABANDONED, S(DEAD), BFO_SEND_DONE, NOW, complete_dead),
};
#undef RULE

static seen_t ask_send(unsigned state, unsigned event)
{
    const bfo_cell_t c = bfo_send_cell(BFO_SE(state, NOW), event);

    return (seen_t){c.listed, bfo_se_state(c.next), bfo_se_epoch(c.next), c.action};
}

/* ---- receiver -------------------------------------------------------------------------------------------- */
#define R(state) (1u << BFO_RECV_##state)
enum {
    R_IDLE = R(NONE) | R(DONE),
    R_OPEN = R(UNMATCHED) | R(ACTIVE) | R(ERRL) | R(QUIESCE) | R(SEALED) | R(WAITRTS) | R(DEAD),
    R_DATA = R(ACTIVE) | R(ERRL) | R(QUIESCE), /* data still counts, and ACKs, PUTs and READs may be out */
    R_FENCED = R(QUIESCE) | R(SEALED),         /* waits for fences and for what is in flight */
    R_RACK = R_DATA | R(WAITRTS),              /* a RACK may be in flight, because the restart can overtake its completion */
    R_LISTED = R_RACK | R(DEAD)                /* something may be listed */
};

/* clang-format off */
#define RULE(event, states, to, number, act) {BFO_REV_##event, states, to, number, BFO_RACT_##act}
/* clang-format on */
static const rule_t recv_rules[] = {
    RULE(POST, R_IDLE, BFO_RECV_UNMATCHED, 0, reset),
    RULE(CANCEL, R(UNMATCHED), BFO_RECV_DONE, NOW, complete_cancelled),
    RULE(PEER_DECLARED, R_OPEN, BFO_RECV_DEAD, NOW, die),
    RULE(RAIL_DOWN, R(ACTIVE), BFO_RECV_ERRL, NOW, post_rerr),
    /* messages */
    RULE(RTS_FIRST, R(NONE), SAME, NOW, match_first),
    RULE(RTS_REFUSED, R(NONE), SAME, NOW, refuse),
    RULE(MATCHED_EAGER, R(UNMATCHED), BFO_RECV_DONE, NOW, take_eager),
    RULE(MATCHED, R(UNMATCHED), BFO_RECV_ACTIVE, 0, accept),
    RULE(RTS_RESTART, R(WAITRTS), BFO_RECV_ACTIVE, NOW, accept),
    RULE(FRAG, R_DATA, SAME, NOW, take_frag),
    RULE(FIN, R(ACTIVE), SAME, NOW, take_fin_more),
    RULE(FIN, R_DATA & ~R(ACTIVE), SAME, NOW, take_fin), /* after an error the receiver asks for no more */
    RULE(FIN_UNFENCED, R_IDLE | R_OPEN, SAME, NOW, hold_fin),
    RULE(NOTIFY, R(ACTIVE) | R(ERRL), BFO_RECV_QUIESCE, NOW, enter_quiesce),
    RULE(NOTIFY, R_FENCED, SAME, NOW, repeat_down),
    RULE(NOTIFY, R(DONE), SAME, NOW, answer_gone),
    RULE(NOTIFY_COPY, R(WAITRTS), SAME, NOW, repeat_down),
    RULE(NOTIFY_GONE, R_IDLE, SAME, NOW, answer_gone),
    RULE(STALE, R_OPEN | R(DONE), SAME, NOW, drop_stale),
    /* completions */
    RULE(READ_OK, R_DATA, SAME, NOW, count_read),
    RULE(READ_ALL_OK, R_DATA, SAME, NOW, count_read_post_fin),
    RULE(RESPONSE_OK, R_DATA, SAME, NOW, none),
    RULE(RESPONSE_ERR, R(ACTIVE), BFO_RECV_ERRL, NOW, post_rerr),
    RULE(RESPONSE_POISON, R(ACTIVE), BFO_RECV_ERRL, NOW, fail_post_rerr),
    RULE(RESPONSE_ERR, R_DATA & ~R(ACTIVE), SAME, NOW, none),
    RULE(RESPONSE_POISON, R_DATA & ~R(ACTIVE), SAME, NOW, set_fail),
    RULE(RERR_OK, R(ERRL) | R(QUIESCE), SAME, NOW, none),
    RULE(RERR_ERR, R(ERRL), SAME, NOW, resend_rerr),
    RULE(RERR_ERR, R(QUIESCE), SAME, NOW, none), /* the sender's NOTIFY came without the RERR */
    RULE(RACK_OK, R_RACK, SAME, NOW, none),
    RULE(RACK_ERR, R(WAITRTS), SAME, NOW, resend_rack),
    RULE(RACK_ERR, R_RACK & ~R(WAITRTS), SAME, NOW, none), /* the restart proves that the RACK arrived */
    RULE(CONTROL_POISON, R_RACK, BFO_RECV_DEAD, NOW, declare_peer),
    RULE(DISCARDED, R_LISTED, SAME, NOW, none),
    /* in DEAD every completion drains */
    RULE(READ_OK, R(DEAD), SAME, NOW, none),
    RULE(READ_ALL_OK, R(DEAD), SAME, NOW, none),
    RULE(RESPONSE_OK, R(DEAD), SAME, NOW, none),
    RULE(RESPONSE_ERR, R(DEAD), SAME, NOW, none),
    RULE(RESPONSE_POISON, R(DEAD), SAME, NOW, none),
    RULE(RERR_OK, R(DEAD), SAME, NOW, none),
    RULE(RERR_ERR, R(DEAD), SAME, NOW, none),
    RULE(RACK_OK, R(DEAD), SAME, NOW, none),
    RULE(RACK_ERR, R(DEAD), SAME, NOW, none),
    RULE(CONTROL_POISON, R(DEAD), SAME, NOW, none),
    /* nothing is out any more */
    RULE(ALL_PLACED, R(ACTIVE) | R(ERRL), BFO_RECV_DONE, NOW, complete),
    RULE(ALL_PLACED, R_FENCED, BFO_RECV_DONE, NOW, post_nack_complete),
    RULE(QUIET_SHARED, R(QUIESCE), BFO_RECV_SEALED, NOW, none),
    RULE(QUIET, R_FENCED, BFO_RECV_WAITRTS, NEXT, grant_restart),
    RULE(QUIET_FAILED, R_FENCED, BFO_RECV_DONE, NOW, post_nack_failed),
    RULE(DEAD_DRAINED, R(DEAD), BFO_RECV_DONE, NOW, complete_dead),
    RULE(ABANDONED, R(DEAD), BFO_RECV_DONE, NOW, complete_dead),
};
#undef RULE

static seen_t ask_recv(unsigned state, unsigned event)
{
    const bfo_cell_t c = bfo_recv_cell(BFO_SE(state, NOW), event);

    return (seen_t){c.listed, bfo_se_state(c.next), bfo_se_epoch(c.next), c.action};
}

/* ---- connection ------------------------------------------------------------------------------------------ */
#define C(state) (1u << OFO_ST_##state)
enum {
    C_ALL = (1u << OFO_ST_COUNT) - 1,
    C_LIVE = C(REQUESTED) | C(PROVING) | C(READY) | C(CHECKING) | C(UP), /* the rail has queue pairs, and no fence runs */
    C_FENCING = C(DRAINING) | C(DRAINING_ACKED),                         /* the own fence runs */
    C_FENCED = C(ASKING) | C(DOWN),                                      /* the own fence is done */
    C_AGREED = C(CHECKING) | C(UP)                                       /* copies of handshake messages come here */
};

/* clang-format off */
#define RULE(event, states, to, number, act) {OFO_EV_##event, states, to, number, OFO_DO_##act}
/* clang-format on */
static const rule_t connect_rules[] = {
    RULE(POST, C(CLOSED), OFO_ST_REQUESTED, NOW, open_active),
    RULE(REQ_YIELD, C(CLOSED), OFO_ST_READY, NOW, open_passive),
    RULE(REQ_HOLD, C(CLOSED), OFO_ST_READY, NOW, open_passive),
    RULE(REQ_YIELD, C(REQUESTED), OFO_ST_READY, NOW, become_passive),
    RULE(REQ_HOLD, C(REQUESTED) | C(PROVING), SAME, NOW, nothing),
    RULE(REQ_YIELD, C(READY), SAME, NOW, send_rep),
    RULE(REQ_HOLD, C(READY), SAME, NOW, send_rep),
    RULE(REQ_YIELD, C_AGREED, SAME, NOW, nothing),
    RULE(REQ_HOLD, C_AGREED, SAME, NOW, nothing),
    RULE(REQ_REFUSED, C(CLOSED) | C(REQUESTED), SAME, NOW, send_rej),
    RULE(REQ_NEXT, C(DOWN), OFO_ST_READY, NEXT, open_passive),
    RULE(REQ_NEXT, C_FENCING | C(ASKING), SAME, NOW, nothing),
    RULE(REQ_NEXT_REFUSED, C(DOWN), SAME, NOW, send_rej),
    RULE(REP, C(REQUESTED), OFO_ST_PROVING, NOW, prove_active),
    RULE(REP, C(PROVING), SAME, NOW, nothing),
    RULE(REP, C(UP), SAME, NOW, send_rtu),
    RULE(REP_REFUSED, C(REQUESTED), OFO_ST_DRAINING, NOW, fence_and_tell),
    RULE(PEER_PROVED, C(READY), OFO_ST_CHECKING, NOW, prove_passive),
    RULE(PEER_PROVED, C_AGREED, SAME, NOW, nothing),
    RULE(PROVED, C(PROVING), OFO_ST_UP, NOW, map_and_tell),
    RULE(PROVED, C(CHECKING), OFO_ST_UP, NOW, map),
    RULE(REJ, C(REQUESTED), OFO_ST_DRAINING, NOW, fence_and_tell),
    RULE(LOCAL_ERROR, C_LIVE, OFO_ST_DRAINING, NOW, fence_and_tell),
    RULE(LOCAL_ERROR, C_ALL & ~C_LIVE, SAME, NOW, nothing),
    RULE(DOWN_SAME, C(CLOSED) | C_LIVE, OFO_ST_DRAINING, NOW, fence),
    RULE(DOWN_SAME, C_FENCING, SAME, NOW, nothing), /* the DACK follows at the end of the fence */
    RULE(DOWN_SAME, C_FENCED, SAME, NOW, send_dack),
    RULE(DOWN_OLDER, C_ALL, SAME, NOW, send_dack),
    RULE(DOWN_NEWER, C_FENCED, OFO_ST_ASKING, TOLD, send_dack),
    RULE(DACK_SAME, C(CLOSED) | C_LIVE, OFO_ST_DRAINING_ACKED, NOW, fence_and_keep),
    RULE(DACK_SAME, C(DRAINING), OFO_ST_DRAINING_ACKED, NOW, keep_counts),
    RULE(DACK_SAME, C(DRAINING_ACKED), SAME, NOW, nothing),
    RULE(DACK_SAME, C(ASKING), OFO_ST_DOWN, NOW, keep_and_check),
    RULE(DACK_SAME, C(DOWN), SAME, NOW, recheck),
    RULE(DACK_OLDER, C_ALL, SAME, NOW, check_older),
    RULE(DACK_NEWER, C_FENCED, OFO_ST_DOWN, TOLD, send_dack),
    RULE(FENCE_DONE, C(DRAINING), OFO_ST_ASKING, NOW, send_dack),
    RULE(FENCE_DONE, C(DRAINING_ACKED), OFO_ST_DOWN, NOW, dack_and_check),
    RULE(RESTORED, C(DOWN), OFO_ST_REQUESTED, NEXT, open_active),
    RULE(PEERDEAD, C_LIVE, OFO_ST_DRAINING, NOW, fence),
    RULE(PEERDEAD, C_ALL & ~C_LIVE, SAME, NOW, nothing),
    RULE(RETRANSMIT, C(REQUESTED), SAME, NOW, send_req),
    RULE(RETRANSMIT, C(READY), SAME, NOW, send_rep),
    RULE(RETRANSMIT, C(DRAINING), SAME, NOW, send_down),
    RULE(RETRANSMIT, C(ASKING), SAME, NOW, down_and_dack),
};
#undef RULE

static int acts(void *owner, const ofo_ctl_t *message)
{
    (void) owner;
    (void) message;
    return 0;
}

static void traced(void *owner, ofo_fsm_state_t state, ofo_fsm_event_t event, ofo_fsm_state_t next, ofo_fsm_action_t action)
{
    (void) state;
    (void) event;
    (void) next;
    *(unsigned *) owner = (unsigned) action;
}

static seen_t ask_connect(unsigned state, unsigned event)
{
    ofo_fsm_action_fn_t actions[OFO_DO_COUNT];
    const ofo_ctl_t message = {.gen = TOLD};
    unsigned action = OFO_DO_COUNT;
    ofo_fsm_t fsm;
    bool taken;

    for (unsigned i = 0; i < OFO_DO_COUNT; ++i) {
        actions[i] = acts;
    }
    ofo_fsm_init(&fsm, actions, traced, &action);
    fsm.state = (ofo_fsm_state_t) state;
    fsm.gen = NOW;
    taken = ofo_fsm_step(&fsm, (ofo_fsm_event_t) event, &message);
    return (seen_t){taken, (unsigned) fsm.state, fsm.gen, action};
}

static const char *connect_state_name(unsigned state)
{
    return ofo_fsm_state_name((ofo_fsm_state_t) state);
}
static const char *connect_event_name(unsigned event)
{
    return ofo_fsm_event_name((ofo_fsm_event_t) event);
}

/* ---- drain of a set of queue pairs ----------------------------------------------------------------------- */
#define D(state) (1u << OFO_DRAIN_##state)
enum {
    D_UNTOLD = D(LIVE) | D(BROKEN) | D(CLOSED),        /* nobody has told the PML yet that the rail is lost */
    D_RUNNING = D(DRAINING) | D(OBSTINATE) | D(STUCK), /* the fence runs */
    D_OVER = D(FENCED) | D(LOSSY),                     /* the set belongs to service */
    D_KNOWN = D(FAILED) | D_RUNNING | D_OVER
};

/* clang-format off */
#define RULE(event, states, to, gate, act) {OFO_DEV_##event, states, to, OFO_DRAIN_##gate, OFO_DACT_##act}
/* clang-format on */
static const rule_t drain_rules[] = {
    RULE(POST_REFUSED, D(LIVE), OFO_DRAIN_BROKEN, KEEP, tell_service),
    RULE(UP, D(LIVE), SAME, KEEP, open_gate),
    RULE(UP_LATE, D(LIVE), OFO_DRAIN_BROKEN, KEEP, tell_service),
    RULE(UP, D(BROKEN), SAME, KEEP, tell_service), /* after CLOSE_EARLY nobody has told service yet */
    RULE(UP_LATE, D(BROKEN), SAME, KEEP, tell_service),
    RULE(UP, D(FAILED), SAME, KEEP, nothing),
    RULE(UP_LATE, D(FAILED), SAME, KEEP, nothing),
    RULE(CLOSE_EARLY, D(LIVE), OFO_DRAIN_BROKEN, KEEP, nothing),
    RULE(CLOSE, D(LIVE), OFO_DRAIN_CLOSED, REFUSE, nothing),
    RULE(CLOSE, D(BROKEN), SAME, KEEP, nothing),
    RULE(TURN, D(CLOSED), SAME, KEEP, tell_service),
    RULE(ERROR, D_UNTOLD, OFO_DRAIN_FAILED, REFUSE, tell_all),
    RULE(ERROR, D_KNOWN, SAME, KEEP, nothing),
    RULE(PORT_LOST, D_UNTOLD, OFO_DRAIN_FAILED, REFUSE, tell_service), /* the port's message tells the PML */
    RULE(PORT_LOST, D_KNOWN, SAME, KEEP, nothing),
    RULE(DRAIN, D_UNTOLD, OFO_DRAIN_DRAINING, REFUSE, tell_pml_drain),
    RULE(DRAIN, D(FAILED), OFO_DRAIN_DRAINING, REFUSE, drain),
    RULE(LAST_WQE, D(DRAINING) | D(OBSTINATE), SAME, KEEP, post_markers),
    RULE(LAST_WQE, D(STUCK), SAME, KEEP, nothing),
    RULE(DRAINED, D_RUNNING, OFO_DRAIN_FENCED, KEEP, end_fence),
    RULE(OVERDUE, D(DRAINING) | D(OBSTINATE), OFO_DRAIN_STUCK, KEEP, ask_service),
    RULE(OVERDUE, D(STUCK), SAME, KEEP, nothing),
    RULE(HOPELESS, D(DRAINING), OFO_DRAIN_STUCK, KEEP, ask_service),
    RULE(HOPELESS, D(OBSTINATE) | D(STUCK), SAME, KEEP, nothing),
    RULE(NOT_DESTROYED, D(STUCK), OFO_DRAIN_OBSTINATE, KEEP, post_markers),
    RULE(DESTROYED, D(STUCK), OFO_DRAIN_LOSSY, KEEP, give_up),
};
#undef RULE

/* Leads a set into a state on the shortest way that the rules name, because only the machine may write the state. */
static ofo_drain_t set_in(unsigned state)
{
    static const struct {
        unsigned n;
        ofo_drain_event_t event[3];
    } way[OFO_DRAIN_STATES] = {
        [OFO_DRAIN_BROKEN] = {1, {OFO_DEV_POST_REFUSED}},
        [OFO_DRAIN_CLOSED] = {1, {OFO_DEV_CLOSE}},
        [OFO_DRAIN_FAILED] = {1, {OFO_DEV_ERROR}},
        [OFO_DRAIN_DRAINING] = {1, {OFO_DEV_DRAIN}},
        [OFO_DRAIN_OBSTINATE] = {3, {OFO_DEV_DRAIN, OFO_DEV_OVERDUE, OFO_DEV_NOT_DESTROYED}},
        [OFO_DRAIN_STUCK] = {2, {OFO_DEV_DRAIN, OFO_DEV_HOPELESS}},
        [OFO_DRAIN_FENCED] = {2, {OFO_DEV_DRAIN, OFO_DEV_DRAINED}},
        [OFO_DRAIN_LOSSY] = {3, {OFO_DEV_DRAIN, OFO_DEV_OVERDUE, OFO_DEV_DESTROYED}},
    };
    ofo_drain_t set = {0};

    for (unsigned i = 0; i < way[state].n; ++i) {
        (void) ofo_drain_step(&set, way[state].event[i]);
    }
    assert_int_equal(ofo_drain_state(&set), state);
    return set;
}

static seen_t ask_drain(unsigned state, unsigned event)
{
    ofo_drain_t set = set_in(state);
    const ofo_drain_cell_t cell = ofo_drain_step(&set, (ofo_drain_event_t) event);

    assert_int_equal(ofo_drain_state(&set), cell.listed ? cell.next : state);
    return (seen_t){cell.listed, cell.next, cell.gate, cell.action};
}

/* ---- every pair ------------------------------------------------------------------------------------------ */
#define RULES(list) list, sizeof(list) / sizeof((list)[0])
static const machine_t sender = {"sender", RULES(send_rules), BFO_SEND_STATES, BFO_SEND_EVENTS, ask_send, bfo_send_state_name, bfo_send_event_name};
static const machine_t receiver = {"receiver", RULES(recv_rules),   BFO_RECV_STATES,    BFO_RECV_EVENTS,
                                   ask_recv,   bfo_recv_state_name, bfo_recv_event_name};
static const machine_t connection = {"connection", RULES(connect_rules), OFO_ST_COUNT,      OFO_EV_COUNT,
                                     ask_connect,  connect_state_name,   connect_event_name};

static const machine_t drain = {"drain",   RULES(drain_rules),   OFO_DRAIN_STATES,    OFO_DRAIN_EVENTS,
                                ask_drain, ofo_drain_state_name, ofo_drain_event_name};

static void machines_do_what_the_rules_say_and_nothing_else(void **unused)
{
    (void) unused;
    keeps_its_rules(&sender);
    keeps_its_rules(&receiver);
    keeps_its_rules(&connection);
    keeps_its_rules(&drain);
}

/* ---- promises --------------------------------------------------------------------------------------------- */
static unsigned completions(const unsigned *list, size_t n, unsigned events, bool of_sender)
{
    unsigned found = 0;

    for (unsigned event = 1; event < events; ++event) {
        const unsigned kind = of_sender ? bfo_send_cell(0, event).kind : bfo_recv_cell(0, event).kind;
        bool is_listed = false;

        for (size_t i = 0; i < n; ++i) {
            is_listed |= event == list[i];
        }
        if (is_listed != (BFO_KIND_COMPLETION == kind)) {
            fail_msg("%s: is it a completion?", of_sender ? bfo_send_event_name(event) : bfo_recv_event_name(event));
        }
        found += is_listed;
    }
    return found;
}

/* Only a completion gives an event back; otherwise a request could end while a descriptor is in flight. */
static void events_are_given_back_by_completions_alone(void **unused)
{
    static const unsigned send[] = {BFO_SEV_MATCH_OK,
                                    BFO_SEV_MATCH_ERR,
                                    BFO_SEV_RTS_OK,
                                    BFO_SEV_RTS_ERR_UNANSWERED,
                                    BFO_SEV_RTS_ERR_ANSWERED,
                                    BFO_SEV_FRAG_OK,
                                    BFO_SEV_WRITE_OK,
                                    BFO_SEV_DATA_ERR,
                                    BFO_SEV_DATA_POISON,
                                    BFO_SEV_NOTIFY_OK,
                                    BFO_SEV_NOTIFY_ERR_UNANSWERED,
                                    BFO_SEV_NOTIFY_ERR_ANSWERED,
                                    BFO_SEV_CONTROL_POISON,
                                    BFO_SEV_DISCARDED};
    static const unsigned recv[] = {BFO_REV_READ_OK,         BFO_REV_READ_ALL_OK,    BFO_REV_RESPONSE_OK, BFO_REV_RESPONSE_ERR,
                                    BFO_REV_RESPONSE_POISON, BFO_REV_RERR_OK,        BFO_REV_RERR_ERR,    BFO_REV_RACK_OK,
                                    BFO_REV_RACK_ERR,        BFO_REV_CONTROL_POISON, BFO_REV_DISCARDED};

    (void) unused;
    assert_int_equal(14, completions(send, sizeof(send) / sizeof(send[0]), BFO_SEND_EVENTS, true));
    assert_int_equal(11, completions(recv, sizeof(recv) / sizeof(recv[0]), BFO_RECV_EVENTS, false));
}

/* Only a restart raises the epoch: the receiver's when it posts RACK, the sender's when it has received RACK. */
static void epochs_rise_by_a_restart_alone(void **unused)
{
    (void) unused;
    for (unsigned epoch = 1; epoch < 65535; epoch += 9361) {
        for (unsigned event = 0; event < BFO_SEND_EVENTS; ++event) {
            for (unsigned state = 0; state < BFO_SEND_STATES; ++state) {
                const unsigned next = bfo_se_epoch(bfo_send_cell(BFO_SE(state, epoch), event).next);
                const bool begins = (BFO_SEV_START == event || BFO_SEV_START_EAGER == event) && 0 == (S_OPEN >> state & 1);
                const bool restarts = BFO_SEV_DRAINED_ACKED == event && BFO_SEND_NOTIFIED == state;

                assert_int_equal(begins ? 0 : epoch + restarts, next);
            }
        }
        for (unsigned event = 0; event < BFO_RECV_EVENTS; ++event) {
            for (unsigned state = 0; state < BFO_RECV_STATES; ++state) {
                const unsigned next = bfo_se_epoch(bfo_recv_cell(BFO_SE(state, epoch), event).next);
                const bool begins = (BFO_REV_POST == event && 0 == (R_OPEN >> state & 1))
                                    || (BFO_REV_MATCHED == event && BFO_RECV_UNMATCHED == state);
                const bool restarts = BFO_REV_QUIET == event && 0 != (R_FENCED >> state & 1);

                assert_int_equal(begins ? 0 : epoch + restarts, next);
            }
        }
    }
}

/* A request that is DONE belongs to the user, and only its next use leads out of DONE. DEAD leads to DONE only. */
static void ends_are_ends(void **unused)
{
    (void) unused;
    for (unsigned event = 0; event < BFO_SEND_EVENTS; ++event) {
        const unsigned done = bfo_se_state(bfo_send_cell(BFO_SE(BFO_SEND_DONE, NOW), event).next);
        const unsigned dead = bfo_se_state(bfo_send_cell(BFO_SE(BFO_SEND_DEAD, NOW), event).next);

        assert_true(BFO_SEND_DONE == done || BFO_SEV_START == event || BFO_SEV_START_EAGER == event);
        assert_true(BFO_SEND_DEAD == dead || (BFO_SEND_DONE == dead && (BFO_SEV_DEAD_DRAINED == event || BFO_SEV_ABANDONED == event)));
    }
    for (unsigned event = 0; event < BFO_RECV_EVENTS; ++event) {
        const unsigned done = bfo_se_state(bfo_recv_cell(BFO_SE(BFO_RECV_DONE, NOW), event).next);
        const unsigned dead = bfo_se_state(bfo_recv_cell(BFO_SE(BFO_RECV_DEAD, NOW), event).next);

        assert_true(BFO_RECV_DONE == done || BFO_REV_POST == event);
        assert_true(BFO_RECV_DEAD == dead || (BFO_RECV_DONE == dead && (BFO_REV_DEAD_DRAINED == event || BFO_REV_ABANDONED == event)));
    }
}

/* I10: a rail is UP after a proof, and DOWN after its own fence and the peer's DACK. It gets new queue pairs only when no old queue pair
 * lives. A fence that has begun runs to its end. */
static void rails_keep_i10(void **unused)
{
    (void) unused;
    for (unsigned event = 0; event < OFO_EV_COUNT; ++event) {
        for (unsigned state = 0; state < OFO_ST_COUNT; ++state) {
            const seen_t seen = ask_connect(state, event);
            const bool opens = OFO_DO_open_active == seen.action || OFO_DO_open_passive == seen.action;
            const bool fences = OFO_DO_fence == seen.action || OFO_DO_fence_and_tell == seen.action || OFO_DO_fence_and_keep == seen.action;

            if (!seen.taken) {
                continue;
            }
            assert_true(OFO_ST_UP != seen.to || OFO_ST_UP == state || OFO_EV_PROVED == event);
            assert_true(OFO_ST_DOWN != seen.to || OFO_ST_DOWN == state || (OFO_ST_DRAINING_ACKED == state && OFO_EV_FENCE_DONE == event)
                        || (OFO_ST_ASKING == state && (OFO_EV_DACK_SAME == event || OFO_EV_DACK_NEWER == event)));
            assert_true(!opens || OFO_ST_CLOSED == state || OFO_ST_DOWN == state);
            assert_true(0 == (C_FENCING >> state & 1) || 0 != (C_FENCING >> seen.to & 1) || OFO_EV_FENCE_DONE == event);
            assert_int_equal(fences, 0 == (C_FENCING >> state & 1) && 0 != (C_FENCING >> seen.to & 1));
            assert_true(NOW == seen.number || 0 != (C_FENCED >> state & 1)); /* otherwise queue pairs of NOW may live */
        }
    }
}

/* A set takes posts only in LIVE, and never returns to LIVE. The gate refuses before the PML is told, and before a buffer can come back.
 * The fence begins once and ends once. It gives back what is still posted only when no queue pair is left. */
static void sets_end_once(void **unused)
{
    (void) unused;
    for (unsigned event = 0; event < OFO_DRAIN_EVENTS; ++event) {
        for (unsigned state = 0; state < OFO_DRAIN_STATES; ++state) {
            const seen_t seen = ask_drain(state, event);
            const bool begins = OFO_DACT_drain == seen.action || OFO_DACT_tell_pml_drain == seen.action;
            const bool ends = OFO_DACT_end_fence == seen.action || OFO_DACT_give_up == seen.action;
            const bool tells_pml = OFO_DACT_tell_all == seen.action || OFO_DACT_tell_pml_drain == seen.action;

            if (!seen.taken) {
                continue;
            }
            assert_true(OFO_DRAIN_LIVE != seen.to || (OFO_DRAIN_LIVE == state && OFO_DEV_UP == event));
            assert_true(OFO_DACT_open_gate != seen.action || OFO_DRAIN_LIVE == state);
            assert_true(0 == (D_KNOWN >> state & 1) || 0 != (D_KNOWN >> seen.to & 1));
            assert_true(!tells_pml || (0 != (D_UNTOLD >> state & 1) && OFO_DRAIN_REFUSE == seen.number));
            assert_int_equal(begins, 0 == ((D_RUNNING | D_OVER) >> state & 1) && 0 != (D_RUNNING >> seen.to & 1));
            assert_int_equal(ends, 0 != (D_RUNNING >> state & 1) && 0 != (D_OVER >> seen.to & 1));
            assert_true(0 == (D_OVER >> seen.to & 1) || 0 != ((D_RUNNING | D_OVER) >> state & 1));
            assert_true(0 == (D_RUNNING >> state & 1) || 0 != ((D_RUNNING | D_OVER) >> seen.to & 1));
            assert_true(0 == (D_OVER >> state & 1) || seen.to == state);
            assert_int_equal(OFO_DRAIN_LOSSY == seen.to && OFO_DRAIN_LOSSY != state, OFO_DACT_give_up == seen.action);
            assert_true(OFO_DACT_give_up != seen.action || (OFO_DRAIN_STUCK == state && OFO_DEV_DESTROYED == event));
            assert_true(OFO_DACT_post_markers != seen.action || OFO_DRAIN_STUCK != seen.to); /* service owns the queue pairs */
        }
    }
}

static void questions_about_sets_go_by_the_states(void **unused)
{
    (void) unused;
    for (unsigned state = 0; state < OFO_DRAIN_STATES; ++state) {
        const ofo_drain_t set = set_in(state);

        assert_int_equal(ofo_drain_is_live(&set), D(LIVE) >> state & 1);
        assert_int_equal(ofo_drain_is_running(&set), D_RUNNING >> state & 1);
        assert_int_equal(ofo_drain_is_over(&set), D_OVER >> state & 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_do_what_the_rules_say_and_nothing_else),
        cmocka_unit_test(events_are_given_back_by_completions_alone),
        cmocka_unit_test(epochs_rise_by_a_restart_alone),
        cmocka_unit_test(ends_are_ends),
        cmocka_unit_test(rails_keep_i10),
        cmocka_unit_test(sets_end_once),
        cmocka_unit_test(questions_about_sets_go_by_the_states),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
