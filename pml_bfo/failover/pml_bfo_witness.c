/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Distinguishes a dead process from a dead rail: questions about peers to which no rail is left, and answers. A witness is a process of the
 * peer's machine to which a rail is up. DESIGN.txt section 11.
 */
#include "types/pml_bfo.h"

#include "types/pml_bfo_extension.h"
#include "failover/pml_bfo_failover.h"
#include "failover/pml_bfo_failover_peer.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"
#include "failover/pml_bfo_witness.h"

#include <string.h>

#if PML_BFO
enum {
    ASK_MS = 1000, /* time from the begin of a wait to the first question about a peer, and between questions */
    LOOKS = 16     /* processes examined for one question, if none of the machine is known */
};

static uint8_t is_asking;  /* a thread asks: one at a time; atomic */
static uint64_t last_walk; /* ms; time of the last question about any peer. This and the next one belong to the thread that asks */
static uint32_t n_asked;   /* number of the last wait in which a process was asked */

/* ---- the message ---------------------------------------------------------------------------------------- */

/* A lost message does no harm: the next one may be sent, and the peer is not declared for it. */
static void life_sent(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des, int status)
{
    bfo_peer_t *to = des->des_context;

    BFO_ASSERT(__atomic_load_n(&to->life_out, __ATOMIC_RELAXED)); /* send_life() has set it, and one message is out at a time */
    __atomic_store_n(&to->life_out, false, __ATOMIC_RELEASE);
    if (bfo_unlikely(OPAL_SUCCESS != status)) {
        const uint8_t r = bfo_rail_index(to, btl);

        bfo_failover_rail_failed(to, r, bfo_rail_gen(to, r), "a message came back with an error");
    }
}

static mca_btl_base_descriptor_t *life_build(void *what, bfo_peer_t *peer, uint8_t r)
{
    const bfo_rail_t *rail = &peer->rails[r];
    mca_btl_base_descriptor_t *des = rail->btl->btl_alloc(rail->btl, rail->endpoint, MCA_BTL_NO_ORDER, sizeof(bfo_life_hdr_t), BFO_DES_FLAGS);

    if (NULL != des) {
        memcpy(des->des_segments[0].seg_addr.pval, what, sizeof(bfo_life_hdr_t));
        des->des_segments[0].seg_len = sizeof(bfo_life_hdr_t);
        des->des_cbfunc = life_sent;
    }
    return des;
}

/* Sends one such message to a process at a time, and only if a rail has room now. A question not sent is asked again, an answer is dropped. */
static void send_life(bfo_peer_t *to, uint8_t answer, uint32_t number, const bfo_life_t *about)
{
    bfo_life_hdr_t h = {.type = BFO_MSG_LIFE,
                        .answer = answer,
                        .number = number,
                        .jobid = OPAL_PROC_MY_NAME.jobid,
                        .vpid = OPAL_PROC_MY_NAME.vpid,
                        .about = {.node = about->node, .started = about->started, .pid = about->pid}};

    if (!__atomic_exchange_n(&to->life_out, true, __ATOMIC_ACQUIRE)
        && OMPI_SUCCESS != bfo_post(to, bfo_rail_for_first(to, 0), &to->eager_mask, 0xff, life_build, &h)) {
        __atomic_store_n(&to->life_out, false, __ATOMIC_RELEASE);
    }
}

/* ---- asking --------------------------------------------------------------------------------------------- */

static bool is_witness(const bfo_peer_t *peer, const bfo_peer_t *of)
{
    return peer != of && __atomic_load_n(&peer->ready, __ATOMIC_ACQUIRE) && !peer->declared && peer->failover && 0 != peer->send_mask
           && peer->life.node == of->life.node && !__atomic_load_n(&peer->life_out, __ATOMIC_RELAXED);
}

/* Takes the witnesses in turn, because a process that computes does not answer. NULL: there is none. */
static bfo_peer_t *next_witness(bfo_peer_t *of)
{
    uint32_t n = 0, turn;

    BFO_FOREACH_PEER(peer)
    {
        n += is_witness(peer, of);
    }
    turn = 0 == n ? 0 : of->witness++ % n;
    BFO_FOREACH_PEER(peer)
    {
        if (is_witness(peer, of) && 0 == turn--) {
            return peer;
        }
    }
    return NULL;
}

/* ---- a witness that was not contacted before ---------------------------------------------------------------- */

/* The group of a communicator in which the peer was contacted, retained, and its rank there; or NULL. */
static ompi_group_t *group_of(const bfo_peer_t *peer, uint32_t *rank)
{
    ompi_group_t *group = NULL;

    BFO_LOCK(&bfo.lock);
    for (size_t i = 0; i < sizeof(bfo.comms) / sizeof(bfo.comms[0]) && NULL == group; ++i) {
        for (unsigned j = 0; NULL != bfo.comms[i] && j < 256 && NULL == group; ++j) {
            const bfo_comm_t *bc = bfo.comms[i][j];

            for (*rank = 0; NULL != bc && *rank < bc->size && NULL == group; *rank += NULL == group) {
                group = NULL != bc->lanes[*rank] && peer == bc->lanes[*rank]->peer ? bc->group : NULL;
            }
        }
    }
    if (NULL != group) {
        OBJ_RETAIN(group);
    }
    BFO_UNLOCK(&bfo.lock);
    return group;
}

/* May this process contact a new process of that machine? Not if it has contacted one before, because its rails may be lost like the peer's;
 * and not if no local port is up. */
static bool may_meet(const bfo_peer_t *of)
{
    bool is_port_up = false;

    BFO_FOREACH_PEER(peer)
    {
        if (peer != of && peer->life.node == of->life.node) {
            return false;
        }
    }
    for (uint8_t r = 0; r < of->n_rails; ++r) {
        is_port_up = is_port_up || bfo_ext_port_is_up(&of->rails[r]);
    }
    return is_port_up;
}

static bool meet(ompi_group_t *group, int64_t rank, const bfo_peer_t *of)
{
    ompi_proc_t *proc = 0 > rank || rank >= group->grp_proc_count ? NULL : ompi_group_peer_lookup(group, (int) rank);
    bfo_peer_t *peer;

    if (NULL == proc || bfo_rails_life_of(proc).node != of->life.node) {
        return false;
    }
    peer = bfo_peer_get(proc);
    return NULL != peer && OMPI_SUCCESS == bfo_peer_connect(peer);
}

/* Contacts a process of the peer's machine. The ranks of a node are mostly neighbours: tries 1 above, 1 below, 2 above, ..., a few per question. */
static bfo_peer_t *meet_witness(bfo_peer_t *of)
{
    uint32_t rank;
    ompi_group_t *group = may_meet(of) ? group_of(of, &rank) : NULL;
    bool is_met = false;

    if (NULL == group) {
        return NULL;
    }
    for (unsigned i = 0; i < LOOKS && of->looked / 2 < (uint32_t) group->grp_proc_count && !is_met; ++i, ++of->looked) {
        const int64_t far = of->looked / 2 + 1;

        is_met = meet(group, 0 == of->looked % 2 ? rank + far : rank - far, of);
    }
    OBJ_RELEASE(group);
    return is_met ? next_witness(of) : NULL;
}

static void ask(bfo_peer_t *peer)
{
    bfo_peer_t *witness;

    BFO_ASSERT(0 != peer->question && 0 != peer->life.node);
    if (bfo.modex.life.node == peer->life.node) {
        __atomic_store_n(&peer->is_dead, BFO_PROCESS_DEAD == bfo_life_of(&bfo.modex.life, &peer->life), __ATOMIC_RELAXED);
        return;
    }
    witness = next_witness(peer) ?: meet_witness(peer);
    if (NULL != witness) {
        send_life(witness, BFO_PROCESS_ASKED, peer->question, &peer->life);
    }
}

/* A wait gets its own number at its first question. Answers in an earlier wait no longer count, because a rail came back since. */
static bool is_dead(bfo_peer_t *peer, uint64_t since, uint64_t now)
{
    bool is_first;

    if (0 == peer->life.node || __atomic_exchange_n(&is_asking, 1, __ATOMIC_ACQUIRE)) {
        return false;
    }
    is_first = peer->asked_at <= since;
    if (is_first) {
        __atomic_store_n(&peer->is_dead, false, __ATOMIC_RELAXED);
    }
    if (now >= (is_first ? since : peer->asked_at) + ASK_MS && now != last_walk) {
        if (is_first) {
            n_asked += UINT32_MAX == n_asked ? 2 : 1;
            __atomic_store_n(&peer->question, n_asked, __ATOMIC_RELEASE);
            peer->looked = 0;
        }
        last_walk = now;
        peer->asked_at = now;
        ask(peer);
    }
    __atomic_store_n(&is_asking, 0, __ATOMIC_RELEASE);
    return __atomic_load_n(&peer->is_dead, __ATOMIC_RELAXED);
}

/* ---- answers ----------------------------------------------------------------------------------------------- */

static bool is_about(const bfo_peer_t *peer, const bfo_life_hdr_t *h)
{
    return h->number == __atomic_load_n(&peer->question, __ATOMIC_ACQUIRE) && 0 != __atomic_load_n(&peer->waits_since, __ATOMIC_RELAXED)
           && !peer->declared && peer->life.node == h->about.node && peer->life.started == h->about.started && peer->life.pid == h->about.pid;
}

/* Only a process of the same machine can know. Drops an answer that comes after the wait. */
static void answer_heard(const bfo_peer_t *from, const bfo_life_hdr_t *h)
{
    if (from->life.node != h->about.node) {
        bfo_stat_drop(BFO_STAT_WRONG_SOURCE);
        return;
    }
    BFO_FOREACH_PEER(peer)
    {
        if (is_about(peer, h)) {
            if (BFO_PROCESS_DEAD == h->answer) {
                __atomic_store_n(&peer->is_dead, true, __ATOMIC_RELAXED);
            }
            return;
        }
    }
    bfo_stat_drop(BFO_STAT_STALE);
}

static void life_heard(bfo_peer_t *from, const bfo_life_hdr_t *h)
{
    const opal_process_name_t *name = NULL == from ? NULL : &from->proc->super.proc_name;

    if (NULL == name || h->jobid != name->jobid || h->vpid != name->vpid) {
        bfo_stat_drop(BFO_STAT_WRONG_SOURCE);
    } else if (BFO_PROCESS_ASKED != h->answer) {
        answer_heard(from, h);
    } else if (!from->declared) {
        send_life(from, (uint8_t) bfo_life_of(&bfo.modex.life, &h->about), h->number, &h->about);
    }
}

static void on_life(BFO_ARRIVAL_ARGS)
{
    const bfo_life_hdr_t *h = des->des_segments[0].seg_addr.pval;
    const size_t length = des->des_segments[0].seg_len;
    ompi_proc_t *from = bfo_ext_source(btl, des);

    if (1 != des->des_segment_count || !bfo_hdr_is_valid(BFO_MSG_LIFE, h, length, length, 0)) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
    } else {
        life_heard(NULL == from ? NULL : bfo_peer_get(from), h);
    }
}

int bfo_witness_register(void)
{
    bfo_failover_wait_init(is_dead);
    return mca_bml.bml_register(BFO_TAG(BFO_MSG_LIFE), on_life, NULL);
}
#endif /* PML_BFO */
