/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The restart handshake ("handshake"): the actions of the rows of the two request machines, and the sending of the four messages of the
 * handshake. The machines themselves are tables (pml_bfo_failover_*.def); nothing here decides a state.
 * DESIGN.txt sections 7 and 14.6.
 */
#include "types/pml_bfo.h"

#include "rails/pml_bfo_adopt.h"
#include "failover/pml_bfo_failover.h"
#include "handshake/pml_bfo_failover_actions.h"
#include "tables/pml_bfo_failover_fire.h"
#include "tables/pml_bfo_failover_fsm.h"
#include "failover/pml_bfo_failover_peer.h"
#include "rails/pml_bfo_failover_poison.h"
#include "ends/pml_bfo_failover_raise.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"
#include "ends/pml_bfo_recv_complete.h"
#include "recv/pml_bfo_recv_rdma.h"
#include "ends/pml_bfo_send_complete.h"
#include "send/pml_bfo_send_start.h"
#include "show/pml_bfo_tell.h"

#include "opal/util/output.h"

#if PML_BFO
/* ---- messages of the handshake --------------------------------------------------------------------- */

void bfo_handshake_pack(bfo_handshake_hdr_t *h, uint8_t type, uint16_t epoch, bool failed, bfo_id_t src_id, bfo_id_t dst_id)
{
    const opal_process_name_t me = OPAL_PROC_MY_NAME;

    *h = (bfo_handshake_hdr_t){.match = {.type = type, .flags = failed ? BFO_FLAG_FAILED : 0},
                               .src_id = src_id,
                               .dst_id = dst_id,
                               .epoch = epoch,
                               .jobid = me.jobid,
                               .vpid = me.vpid};
}

bool bfo_handshake_send(bfo_peer_t *peer, const bfo_handshake_hdr_t *h, mca_btl_base_completion_fn_t done, void *req)
{
    return OMPI_SUCCESS == bfo_ctl_send(peer, BFO_ANY_PATH, h, sizeof(*h), done, req);
}

/* ---- the states in which an action runs ---- */
/* The rows name them: `next` of each row with the action. With threads messages and declarations may have moved the request on since,
 * but not to DONE and to no other attempt, because the event that the action runs under is still held. */
#define SEND_STATE(name) (1u << BFO_SEND_##name)
#define RECV_STATE(name) (1u << BFO_RECV_##name)
enum {
    SEND_LATER_RTS = SEND_STATE(RTS) | SEND_STATE(STREAM) | SEND_STATE(ERRD) | SEND_STATE(DEAD),
    RECV_LATER_WAITRTS = RECV_STATE(WAITRTS) | RECV_STATE(ACTIVE) | RECV_STATE(ERRL) | RECV_STATE(QUIESCE) | RECV_STATE(DEAD)
};

static inline bool send_is_in(const bfo_send_t *req, unsigned states, unsigned later)
{
    return (states | bfo_threads * later) >> bfo_se_state(bfo_se_load(&req->m)) & 1;
}

static inline bool recv_is_in(const bfo_recv_t *req, unsigned states, unsigned later)
{
    return (states | bfo_threads * later) >> bfo_se_state(bfo_se_load(&req->m)) & 1;
}

/* ---- actions of the sender ------------------------------------------------------------------------- */

/* Ends a message that no rail can carry. Its peer may have been declared before this request reached its present state. */
static void send_give_up(bfo_send_t *req, const char *why)
{
    bfo_failover_declare(req->lane->peer, why);
    bfo_send_fail(req, bfo_lost_error());
}

static void notify_completed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des, int status)
{
    bfo_send_t *req = des->des_cbdata;
    bfo_peer_t *peer = req->lane->peer;
    const uint8_t rail = bfo_rail_index(peer, btl);

    if (OPAL_SUCCESS == status) {
        bfo_failover_send_raise(req, BFO_SEV_NOTIFY_OK, NULL);
        return;
    }
    bfo_failover_rail_failed(peer, rail, bfo_rail_gen(peer, rail), "a restart message came back with an error");
    if (bfo_failover_send_is_poison(req, rail, status)) {
        bfo_failover_send_raise(req, BFO_SEV_CONTROL_POISON, NULL);
    } else {
        bfo_failover_send_raise(req, req->got_ack || req->got_nack ? BFO_SEV_NOTIFY_ERR_ANSWERED : BFO_SEV_NOTIFY_ERR_UNANSWERED, NULL);
    }
}

static void send_notify(bfo_send_t *req)
{
    const mca_pml_base_request_t *base = &req->req_send.req_base;
    bfo_peer_t *peer = req->lane->peer;
    bfo_handshake_hdr_t h;

    BFO_ASSERT(send_is_in(req, SEND_STATE(NOTIFIED), SEND_STATE(DEAD)));
    BFO_ASSERT(BFO_EPOCH_LAST != bfo_se_epoch(req->m.se)); /* S13e: the last attempt is not restarted */
    BFO_ASSERT(BFO_MSG_MATCH != req->rts_type);
    bfo_handshake_pack(&h, BFO_MSG_NOTIFY, (uint16_t) (bfo_se_epoch(req->m.se) + 1), MPI_SUCCESS != req->error, bfo_name_id(&req->name), req->dst_id);
    h.match.ctx = (uint16_t) BFO_OMPI_CTX_OF(base->req_comm);
    h.match.src = base->req_comm->c_my_rank;
    h.match.tag = base->req_tag;
    h.match.seq = req->match_seq;
    bfo_failover_dead_set(peer, &h);
    bfo_send_get(req);
    if (!bfo_handshake_send(peer, &h, notify_completed, req)) {
        bfo_send_unget(req);
        send_give_up(req, "no rail is left for a restart");
    }
}

/* The state changes, and nothing else happens. */
void bfo_send_act_none(void *request, void *arg) {}

void bfo_send_act_post_notify(void *request, void *arg)
{
    bfo_send_t *req = request;

    BFO_ASSERT(0 == req->in_flight); /* S13: this attempt has drained */
    req->got_ack = req->got_nack = false;
    send_notify(req);
}

void bfo_send_act_resend_notify(void *request, void *arg)
{
    bfo_stat_add(BFO_STAT_RESENDS, 1);
    bfo_tell_resent(((bfo_send_t *) request)->lane->peer, "NOTIFY");
    send_notify(request);
}

/* MATCH, RNDV or RGET */
static void resend_first(bfo_send_t *req)
{
    bfo_stat_add(BFO_STAT_RESENDS, 1);
    bfo_tell_resent(req->lane->peer, bfo_hdr_name(req->rts_type));
    if (OMPI_SUCCESS != bfo_send_post_first_again(req)) {
        send_give_up(req, "a first fragment could not be sent again");
        return;
    }
    bfo_stat_mark_resumed();
}

void bfo_send_act_resend_match(void *request, void *arg)
{
    BFO_ASSERT(send_is_in(request, SEND_STATE(EAGER), SEND_STATE(DEAD)));
    BFO_ASSERT(BFO_MSG_MATCH == ((const bfo_send_t *) request)->rts_type && !((const bfo_send_t *) request)->rts_done);
    resend_first(request);
}

void bfo_send_act_resend_rts(void *request, void *arg)
{
    BFO_ASSERT(send_is_in(request, SEND_STATE(RTS), SEND_LATER_RTS));
    BFO_ASSERT(BFO_MSG_MATCH != ((const bfo_send_t *) request)->rts_type);
    resend_first(request);
}

void bfo_send_act_set_fail(void *request, void *arg)
{
    BFO_ASSERT(send_is_in(request, SEND_STATE(ERRD) | SEND_STATE(NOTIFIED), SEND_STATE(DEAD)));
    ((bfo_send_t *) request)->error = MPI_ERR_OTHER;
}

void bfo_send_act_take_dst(void *request, void *arg)
{
    bfo_send_t *req = request;

    BFO_ASSERT(send_is_in(req, SEND_STATE(ERRD), SEND_STATE(DEAD)));
    req->dst_id = *(const bfo_id_t *) arg;
    req->resp = true;
}

void bfo_send_act_take_rerr(void *request, void *arg)
{
    const bfo_handshake_hdr_t *h = arg;
    bfo_send_t *req = request;

    BFO_ASSERT(send_is_in(req, SEND_STATE(ERRD), SEND_STATE(DEAD)));
    BFO_ASSERT(bfo_se_is_epoch(req->m.se, h->epoch)); /* to_sender() took it for this attempt */
    req->dst_id = h->dst_id;
    req->resp = true;
    if (h->match.flags & BFO_FLAG_FAILED) {
        req->error = MPI_ERR_OTHER;
    }
}

void bfo_send_act_note_rack(void *request, void *arg)
{
    BFO_ASSERT(send_is_in(request, SEND_STATE(NOTIFIED), SEND_STATE(DEAD)));
    ((bfo_send_t *) request)->got_ack = true;
}

void bfo_send_act_note_nack(void *request, void *arg)
{
    const bfo_handshake_hdr_t *h = arg;
    bfo_send_t *req = request;

    BFO_ASSERT(send_is_in(req, SEND_STATE(NOTIFIED), SEND_STATE(DEAD)));
    BFO_ASSERT(bfo_se_is_next_epoch(req->m.se, h->epoch));
    req->got_nack = true;
    if (h->match.flags & BFO_FLAG_FAILED) {
        req->error = MPI_ERR_OTHER;
    }
}

void bfo_send_act_restart(void *request, void *arg)
{
    bfo_send_t *req = request;

    BFO_ASSERT(send_is_in(req, SEND_STATE(RTS), SEND_LATER_RTS));
    BFO_ASSERT(req->got_ack && !req->got_nack);
    BFO_ASSERT(0 != bfo_se_epoch(req->m.se));                /* the first attempt is no restart */
    BFO_ASSERT(0 == req->in_flight && 0 == req->scheduling); /* nothing of the last attempt is out */
    BFO_ASSERT(!req->first.queued && !req->work.queued);
    BFO_ASSERT(NULL == req->rget || (BFO_FRAG_RGET == req->rget->kind && req == req->rget->send));
    if (NULL != req->rget) {
        bfo_name_retire(&req->rget->name);
        req->rget->kind = BFO_FRAG_NONE;
        bfo_cache_give(BFO_CACHE_FRAG, &req->rget->super);
        req->rget = NULL;
    }
    if (NULL != req->regs) {
        bfo_regs_drop(req->regs);
        req->regs = NULL;
    }
    req->resp = req->acked = req->rts_done = false;
    req->bytes = req->next = req->end = 0;
    bfo_stat_add(BFO_STAT_RESTARTS, 1);
    if (OMPI_SUCCESS != bfo_send_begin_again(req)) {
        send_give_up(req, "a message could not be started again");
        return;
    }
    bfo_stat_mark_resumed();
}

void bfo_send_act_declare_peer(void *request, void *arg)
{
    BFO_ASSERT(send_is_in(request, SEND_STATE(DEAD), 0));
    bfo_failover_declare(((bfo_send_t *) request)->lane->peer, "a message can never be delivered");
}

/* An ACTION_IN_PLACE is not here: the engine rejects its rows. */
#define ACTION(name) [BFO_SACT_##name] = bfo_send_act_##name,
#define ACTION_IN_PLACE(name)
static const bfo_action_fn_t send_actions[BFO_SEND_ACTIONS] = {
#include "tables/pml_bfo_failover_send.def"
};

static void send_facts(void *request, unsigned state, bfo_send_facts_t *facts)
{
    const bfo_send_t *req = request;

    facts->rts_done = req->rts_done;
    facts->resp = req->resp;
    facts->all_bytes = req->rts_done && req->bytes == bfo_send_length(req);
    facts->got_ack = req->got_ack;
    facts->got_nack = req->got_nack;
    facts->peer_fenced = req->unposted || 0 == req->lane->peer->fencing;
}

/* ---- actions of the receiver ----------------------------------------------------------------------- */

/* A message of a receive request's handshake completed. */
static void recv_handshake_completed(mca_btl_base_module_t *btl, bfo_recv_t *req, int status, unsigned ok, unsigned err)
{
    bfo_peer_t *peer = req->lane->peer;
    const uint8_t rail = bfo_rail_index(peer, btl);

    if (OPAL_SUCCESS == status) {
        bfo_failover_recv_raise(req, ok, NULL);
        return;
    }
    bfo_failover_rail_failed(peer, rail, bfo_rail_gen(peer, rail), "a restart message came back with an error");
    bfo_failover_recv_raise(req, bfo_failover_recv_is_poison(req, rail, status) ? BFO_REV_CONTROL_POISON : err, NULL);
}

static void rerr_completed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des, int status)
{
    recv_handshake_completed(btl, des->des_cbdata, status, BFO_REV_RERR_OK, BFO_REV_RERR_ERR);
}

static void rack_completed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des, int status)
{
    recv_handshake_completed(btl, des->des_cbdata, status, BFO_REV_RACK_OK, BFO_REV_RACK_ERR);
}

static void recv_answer(bfo_recv_t *req, uint8_t type, uint16_t epoch, bool failed, mca_btl_base_completion_fn_t done)
{
    const mca_pml_base_request_t *base = &req->req_recv.req_base;
    bfo_peer_t *peer = req->lane->peer;
    bfo_handshake_hdr_t h;

    bfo_handshake_pack(&h, type, epoch, failed, req->src_id, bfo_name_id(&req->name));
    h.match.ctx = (uint16_t) BFO_OMPI_CTX_OF(base->req_comm);
    h.match.src = base->req_ompi.req_status.MPI_SOURCE;
    h.match.tag = base->req_ompi.req_status.MPI_TAG;
    h.match.seq = req->match_seq;
    if (NULL != done) {
        bfo_recv_get(req);
    }
    if (!bfo_handshake_send(peer, &h, done, req)) {
        if (NULL != done) {
            bfo_recv_unget(req);
        }
        bfo_failover_declare(peer, "no rail is left for a restart");
        if (NULL != done) {
            bfo_recv_fail(req, bfo_lost_error());
        }
    }
}

void bfo_recv_act_none(void *request, void *arg) {}

void bfo_recv_act_post_rerr(void *request, void *arg)
{
    bfo_recv_t *req = request;

    BFO_ASSERT(recv_is_in(req, RECV_STATE(ERRL), RECV_STATE(QUIESCE) | RECV_STATE(DEAD)));
    recv_answer(req, BFO_MSG_RERR, bfo_se_epoch(req->m.se), MPI_SUCCESS != req->error, rerr_completed);
}

void bfo_recv_act_resend_rerr(void *request, void *arg)
{
    bfo_stat_add(BFO_STAT_RESENDS, 1);
    bfo_tell_resent(((bfo_recv_t *) request)->lane->peer, "RERR");
    bfo_recv_act_post_rerr(request, arg);
}

void bfo_recv_act_fail_post_rerr(void *request, void *arg)
{
    ((bfo_recv_t *) request)->error = MPI_ERR_OTHER;
    bfo_recv_act_post_rerr(request, arg);
}

void bfo_recv_act_set_fail(void *request, void *arg)
{
    BFO_ASSERT(recv_is_in(request, RECV_STATE(ERRL) | RECV_STATE(QUIESCE), RECV_STATE(DEAD)));
    ((bfo_recv_t *) request)->error = MPI_ERR_OTHER;
}

static void take_notify(bfo_recv_t *req, const bfo_handshake_hdr_t *h)
{
    if (h->match.flags & BFO_FLAG_FAILED) {
        req->error = MPI_ERR_OTHER;
    }
    bfo_failover_rails_down(req->lane->peer, h->dead_mask, h->rail_gen);
}

void bfo_recv_act_enter_quiesce(void *request, void *arg)
{
    const bfo_notify_t *notify = arg;

    BFO_ASSERT(recv_is_in(request, RECV_STATE(QUIESCE), RECV_STATE(DEAD)));
    BFO_ASSERT(bfo_se_is_next_epoch(((const bfo_recv_t *) request)->m.se, notify->h->epoch));
    take_notify(request, notify->h);
}

void bfo_recv_act_repeat_down(void *request, void *arg)
{
    take_notify(request, ((const bfo_notify_t *) arg)->h);
}

/* Nothing of the old attempt can reach the buffer any more: forgets all of it. */
void bfo_recv_act_grant_restart(void *request, void *arg)
{
    bfo_recv_t *req = request;

    BFO_ASSERT(recv_is_in(req, RECV_STATE(WAITRTS), RECV_LATER_WAITRTS));
    BFO_ASSERT(0 != bfo_se_epoch(req->m.se));                 /* R12 has raised it */
    BFO_ASSERT(0 == req->lane->peer->fencing || bfo_threads); /* no late WRITE of the dead set; another thread may begin the next fence */
    BFO_ASSERT(NULL == req->rget || 0 == req->open);          /* every READ has come back; what is left are PUTs without FIN */
    BFO_ASSERT(0 == req->scheduling && !req->work.queued);
    bfo_recv_forget_puts(req);
    bfo_recv_drop_extras(req);
    req->open = 0;
    req->bytes = req->next = req->end = 0;
    recv_answer(req, BFO_MSG_RACK, bfo_se_epoch(req->m.se), false, rack_completed);
}

void bfo_recv_act_resend_rack(void *request, void *arg)
{
    bfo_recv_t *req = request;

    BFO_ASSERT(recv_is_in(req, RECV_STATE(WAITRTS), RECV_LATER_WAITRTS));
    bfo_stat_add(BFO_STAT_RESENDS, 1);
    bfo_tell_resent(req->lane->peer, "RACK");
    recv_answer(req, BFO_MSG_RACK, bfo_se_epoch(req->m.se), false, rack_completed);
}

void bfo_recv_act_post_nack_complete(void *request, void *arg)
{
    bfo_recv_t *req = request;

    BFO_ASSERT(recv_is_in(req, RECV_STATE(DONE), 0));
    BFO_ASSERT(req->bytes >= req->length);
    recv_answer(req, BFO_MSG_NACK, (uint16_t) (bfo_se_epoch(req->m.se) + 1), false, NULL);
    bfo_recv_complete(req, req->error);
}

void bfo_recv_act_post_nack_failed(void *request, void *arg)
{
    bfo_recv_t *req = request;

    BFO_ASSERT(recv_is_in(req, RECV_STATE(DONE), 0));
    BFO_ASSERT(MPI_SUCCESS != req->error);
    recv_answer(req, BFO_MSG_NACK, (uint16_t) (bfo_se_epoch(req->m.se) + 1), true, NULL);
    bfo_recv_forget_puts(req);
    bfo_recv_complete(req, MPI_ERR_OTHER);
}

void bfo_recv_act_declare_peer(void *request, void *arg)
{
    BFO_ASSERT(recv_is_in(request, RECV_STATE(DEAD), 0));
    bfo_failover_declare(((bfo_recv_t *) request)->lane->peer, "a message can never be received");
}

void bfo_recv_act_complete(void *request, void *arg)
{
    BFO_ASSERT(((const bfo_recv_t *) request)->bytes >= ((const bfo_recv_t *) request)->length);
    bfo_recv_complete(request, ((bfo_recv_t *) request)->error);
}

void bfo_recv_act_complete_dead(void *request, void *arg)
{
    bfo_recv_t *req = request;

    bfo_recv_forget_puts(req);
    bfo_recv_complete(req, MPI_SUCCESS != req->error ? req->error : bfo_lost_error());
}

void bfo_recv_act_drop_stale(void *request, void *arg)
{
    bfo_stat_drop(BFO_STAT_STALE);
}

#define ACTION(name) [BFO_RACT_##name] = bfo_recv_act_##name,
#define ACTION_IN_PLACE(name)
static const bfo_action_fn_t recv_actions[BFO_RECV_ACTIONS] = {
#include "tables/pml_bfo_failover_recv.def"
};

static bool fences_are_done(const bfo_recv_t *req, bfo_peer_t *peer)
{
    if (0 != peer->fencing) {
        return false;
    }
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        const bfo_rail_t *rail = &peer->rails[r];

        if ((req->fence_mask >> bfo_rail_name(peer, r) & 1) && rail->fenced < req->fence_gen[rail->name] && rail->gen <= req->fence_gen[rail->name]) {
            return false;
        }
    }
    return true;
}

/* Another thread may have completed the request since the caller's look, and the user may have posted it again, without a lane. Then the
 * facts are of no use, and the claim that follows fails. */
static void recv_facts(void *request, unsigned state, bfo_recv_facts_t *facts)
{
    const bfo_recv_t *req = request;
    const bfo_lane_t *lane = __atomic_load_n(&req->lane, __ATOMIC_RELAXED);

    facts->all_bytes = req->bytes >= req->length && BFO_RECV_WAITRTS != state;
    facts->fail = MPI_SUCCESS != req->error;
    if (BFO_RECV_DEAD == state) {
        facts->peer_fenced = !req->extras || NULL == lane || 0 == lane->peer->fencing; /* without a message nothing was ever posted */
    } else {
        facts->fences_done = NULL != lane && fences_are_done(req, lane->peer);
    }
}

/* An event without a row in the table cannot occur by the protocol: counts it and goes on. */
static void reject(void *request, uint32_t se, unsigned event)
{
    bfo_stat_drop(BFO_STAT_STALE);
}

void bfo_failover_actions_init(void)
{
    bfo_failover_raise_init(&(bfo_send_ops_t){.fsm = {.actions = send_actions, .reject = reject, .trace = bfo_tell_send_step, .threads = bfo_threads},
                                              .facts = send_facts},
                            &(bfo_recv_ops_t){.fsm = {.actions = recv_actions, .reject = reject, .trace = bfo_tell_recv_step, .threads = bfo_threads},
                                              .facts = recv_facts});
}

#endif /* PML_BFO */
