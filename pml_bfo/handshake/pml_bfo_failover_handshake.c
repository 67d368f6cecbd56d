/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The four messages of the restart handshake ("handshake"), and the restarted RTS, as they arrive. Each is matched with its request by
 * identifier, epoch and state and becomes an event of its machine; if the request is gone, this file answers. The actions of the
 * machine are in pml_bfo_failover_actions.c. DESIGN.txt sections 7 and 14.6.
 */
#include "types/pml_bfo.h"

#include "failover/pml_bfo_failover.h"
#include "handshake/pml_bfo_failover_actions.h"
#include "handshake/pml_bfo_failover_handshake.h"
#include "tables/pml_bfo_failover_fire.h"
#include "failover/pml_bfo_failover_peer.h"
#include "ends/pml_bfo_failover_raise.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_rails.h"
#include "ends/pml_bfo_recv_complete.h"
#include "recv/pml_bfo_recv_place.h"
#include "ends/pml_bfo_send_complete.h"

#if PML_BFO
/* ---- messages of the handshake arrive -------------------------------------------------------------- */

static void to_sender(const bfo_handshake_hdr_t *h)
{
    bfo_name_t *name = bfo_ids_find(&bfo.sends, h->src_id);
    bfo_send_t *req = NULL == name ? NULL : bfo_container(name, bfo_send_t, name);
    unsigned event = BFO_SEV_STALE;
    uint32_t se;

    if (NULL == req) {
        bfo_stat_drop(BFO_STAT_STALE);
        return;
    }
    bfo_send_get_by_look(req);
    se = bfo_se_load(&req->m);
    if (bfo_name_id(name) == h->src_id && h->match.seq == req->match_seq) {
        if (BFO_MSG_RERR == h->match.type && bfo_se_is_epoch(se, h->epoch) && bfo_send_is_flowing(se)) {
            event = BFO_SEV_RERR;
        } else if (BFO_SEND_NOTIFIED == bfo_se_state(se) && bfo_se_is_next_epoch(se, h->epoch)) {
            event = BFO_MSG_RACK == h->match.type ? BFO_SEV_RACK : BFO_MSG_NACK == h->match.type ? BFO_SEV_NACK : event;
        }
    }
    bfo_failover_send_raise(req, event, (void *) h);
    bfo_send_put(req);
}

/* Answers a NOTIFY for a complete receive with NACK. There need not be a request. */
void bfo_recv_act_answer_gone(void *request, void *arg)
{
    bfo_peer_t *from = ((const bfo_notify_t *) arg)->from;
    const bfo_handshake_hdr_t *h = ((const bfo_notify_t *) arg)->h;
    bfo_handshake_hdr_t nack;

    BFO_ASSERT(BFO_MSG_NOTIFY == h->match.type); /* no other message is answered with NACK */
    if (NULL == from || from->declared) {
        bfo_stat_drop(BFO_STAT_STALE);
        return;
    }
    bfo_handshake_pack(&nack, BFO_MSG_NACK, h->epoch, false, h->src_id, h->dst_id);
    nack.match.ctx = h->match.ctx;
    nack.match.src = h->match.src;
    nack.match.tag = h->match.tag;
    nack.match.seq = h->match.seq;
    bfo_failover_rails_down(from, h->dead_mask, h->rail_gen);
    if (!bfo_handshake_send(from, &nack, NULL, NULL)) {
        bfo_failover_declare(from, "no rail is left for a restart");
    }
}

/* The receive that the NOTIFY names is complete (DONE), or its object has a new message or none (NONE). */
static void receive_is_gone(uint32_t se, bfo_notify_t *notify)
{
    BFO_MUST_FIRE(bfo_recv_fire_at(NULL, BFO_RECV_DONE == bfo_se_state(se) ? BFO_KNOWN(BFO_RECV_DONE) : BFO_KNOWN(BFO_RECV_NONE), BFO_REV_NOTIFY_GONE,
                                   bfo_threads, NULL, notify));
}

static void to_receiver(bfo_peer_t *from, const bfo_handshake_hdr_t *h)
{
    bfo_name_t *name = bfo_ids_find(&bfo.recvs, h->dst_id);
    bfo_recv_t *req = NULL == name ? NULL : bfo_container(name, bfo_recv_t, name);
    bfo_notify_t notify = {from, h};
    unsigned event = BFO_REV_STALE;
    uint32_t se;

    if (NULL == req) {
        receive_is_gone(BFO_SE(BFO_RECV_NONE, 0), &notify);
        return;
    }
    bfo_recv_get_by_look(req);
    se = bfo_se_load(&req->m);
    if (bfo_name_id(name) != h->dst_id || !bfo_recv_state_is_open(bfo_se_state(se))) {
        receive_is_gone(se, &notify);
        bfo_recv_put(req);
        return;
    }
    if (bfo_se_is_next_epoch(se, h->epoch)) {
        event = BFO_REV_NOTIFY;
        if (BFO_RECV_ACTIVE == bfo_se_state(se) || BFO_RECV_ERRL == bfo_se_state(se)) {
            req->fence_mask = h->dead_mask;
            memcpy(req->fence_gen, h->rail_gen, sizeof(req->fence_gen));
        }
    } else if (bfo_se_is_epoch(se, h->epoch) && BFO_RECV_WAITRTS == bfo_se_state(se)) {
        event = BFO_REV_NOTIFY_COPY;
    }
    BFO_ASSERT(0 < bfo_events_load(&req->m)); /* that of the look keeps the request in its epoch */
    bfo_failover_recv_raise(req, event, &notify);
    bfo_recv_put(req);
}

void bfo_failover_on_handshake(bfo_peer_t *from, const bfo_handshake_hdr_t *h)
{
    const opal_process_name_t *name = NULL == from ? NULL : &from->proc->super.proc_name;

    if (NULL == name || h->jobid != name->jobid || h->vpid != name->vpid) {
        bfo_stat_drop(BFO_STAT_WRONG_SOURCE);
    } else if (BFO_MSG_NOTIFY != h->match.type) {
        to_sender(h);
    } else if (!bfo_failover_rails_are_possible(from, h->dead_mask, h->rail_gen)) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
    } else {
        to_receiver(from, h);
    }
}

/* R14: the sender restarts the message of a request that waits for the restarted RTS. The event of the look keeps the request in its
 * epoch, so another look finds the same epoch. */
void bfo_failover_on_restart(const bfo_in_t *in)
{
    const bfo_hdr_t *h = in->segments[0].seg_addr.pval;
    bfo_restart_hdr_t restart;
    bfo_look_t look;
    bfo_name_t *name;
    bfo_recv_t *req;

    memcpy(&restart, (const char *) h + (BFO_MSG_RGET == h->common.type ? in->length - sizeof(restart) : sizeof(bfo_rndv_hdr_t)), sizeof(restart));
    name = bfo_ids_find(&bfo.recvs, restart.dst_id);
    if (NULL == name) {
        bfo_stat_drop(BFO_STAT_STALE);
        return;
    }
    req = bfo_container(name, bfo_recv_t, name);
    bfo_recv_get_by_look(req);
    look = bfo_look_at(&req->m);
    if (bfo_name_id(name) != restart.dst_id || req->src_id != h->rndv.src_id || req->match_seq != h->match.seq || req->length != h->rndv.msg_length
        || !bfo_se_is_epoch(look.se, restart.epoch) || !bfo_recv_fire_at(&req->m, look, BFO_REV_RTS_RESTART, bfo_threads, req, &(bfo_rts_t){in, h})) {
        bfo_stat_drop(BFO_STAT_STALE);
    }
    bfo_recv_put(req);
}
#endif /* PML_BFO */
