/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A communicator is revoked: the PML drops unexpected messages, those present and those that still come, and answers the sender of a
 * rendezvous. Matched messages go on to their end; Open MPI cancels posted receives. Messages of ULFM itself pass. The hot path
 * has no test for this, because a mark in each lane sends arrivals to the slow path. DESIGN.txt section 14.11.
 */
#include "types/pml_bfo.h"

#include "tables/pml_bfo_failover_fire.h"
#include "failover/pml_bfo_failover_peer.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_post.h"
#include "ends/pml_bfo_recv_unexpected.h"
#include "ulfm/pml_bfo_revoke.h"

/* There is no receive: `request` is the peer, `arg` the answer. */
void bfo_recv_act_refuse(void *request, void *arg)
{
    bfo_peer_t *peer = request;

    if (OMPI_SUCCESS != bfo_ctl_send(peer, BFO_ANY_PATH, arg, sizeof(bfo_ack_hdr_t), NULL, NULL)) {
        bfo_failover_declare(peer, "no rail takes the word that a communicator is revoked");
    }
}

/* A MATCH needs no answer, because it does not wait for its receiver. */
void bfo_refuse(bfo_peer_t *peer, const bfo_hdr_t *h, bool is_failure)
{
    bfo_ack_hdr_t ack;

    bfo_stat_drop(BFO_STAT_STALE);
    if (BFO_MSG_MATCH != h->common.type && !peer->declared) {
        bfo_hdr_pack_ack(&ack, 0, h->rndv.src_id, 0, 0, 0);
        ack.flags = is_failure ? BFO_FLAG_FAILED : 0;
        BFO_MUST_FIRE(bfo_recv_fire_at(NULL, BFO_KNOWN(BFO_RECV_NONE), BFO_REV_RTS_REFUSED, bfo_threads, peer, &ack));
    }
}

#if BFO_OMPI_HAS_ULFM
#include "ompi/communicator/communicator.h"
#include "ompi/group/group.h"
#include "ompi/proc/proc.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/class/opal_pointer_array.h"
#include "opal/runtime/opal_progress.h"

/* Open MPI fills the place of an id in each process before any process can use the id, and frees the place after the communicator. During
 * MPI_Init and at the end of MPI_Finalize places are free, and no message may be judged by them. */
static bool id_is_in_use(uint16_t ctx)
{
    const int32_t state = ompi_mpi_state;

    return state < OMPI_MPI_STATE_INIT_COMPLETED || state >= OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT
           || NULL != opal_pointer_array_get_item(&ompi_mpi_communicators, ctx);
}

void bfo_revoke_open(void)
{
    bfo.id_is_in_use = BFO_OMPI_ULFM_IS_ON ? id_is_in_use : NULL;
}

static bool is_revoked(ompi_communicator_t *comm, int tag)
{
    return !ompi_request_tag_is_ft(tag) && (ompi_comm_is_revoked(comm) || (ompi_comm_coll_revoked(comm) && ompi_request_tag_is_collective(tag)));
}

static bool refuses(bfo_comm_t *bc, bfo_lane_t *lane, const bfo_hdr_t *h)
{
    const bool is_failure = !ompi_comm_is_revoked(bc->comm);

    if (!is_revoked(bc->comm, h->match.tag)) {
        return false;
    }
    bfo_unlock(&bc->lock);
    bfo_refuse(lane->peer, h, is_failure);
    return true;
}

/* Moves the unexpected messages that are revoked into a ring. Locks: the communicator's held. */
static void take_revoked(bfo_comm_t *bc, bfo_link_t *ring)
{
    bfo_unexpected_t *next;

    for (bfo_unexpected_t *unexpected = bfo_match_after(&bc->match, NULL); NULL != unexpected; unexpected = next) {
        next = bfo_match_after(&bc->match, unexpected);
        if (is_revoked(bc->comm, unexpected->by_key.tag)) {
            bfo_match_take(&bc->match, unexpected);
            bfo_link_append(ring, &bfo_container(unexpected, bfo_unexpected_frag_t, unexpected)->link);
        }
    }
}

static void revoke_one(ompi_communicator_t *comm, bool coll_only)
{
    bfo_comm_t *bc = bfo_comm_of(comm);
    bfo_link_t ring;

    if (NULL == bc) {
        comm->coll_revoked = true;
        comm->comm_revoked = comm->comm_revoked || !coll_only;
        return;
    }
    BFO_ASSERT(comm == bc->comm);
    bfo_link_init(&ring);
    BFO_LOCK(&bfo.lock);
    bfo.refuses = refuses;
    bc->is_marked = true;
    bfo_lock(&bc->lock);
    comm->coll_revoked = true;
    comm->comm_revoked = comm->comm_revoked || !coll_only;
    for (uint32_t rank = 0; rank < bc->size; ++rank) {
        if (NULL != bc->lanes[rank]) {
            bc->lanes[rank]->match.n_open |= BFO_LANE_REVOKED;
        }
    }
    take_revoked(bc, &ring);
    bfo_unlock(&bc->lock);
    BFO_UNLOCK(&bfo.lock);
    while (!bfo_link_is_empty(&ring)) {
        bfo_unexpected_frag_t *g = bfo_container(ring.next, bfo_unexpected_frag_t, link);

        bfo_link_remove(&g->link);
        bfo_refuse(bc->lanes[g->unexpected.by_key.src]->peer, (const bfo_hdr_t *) g->data, !comm->comm_revoked);
        bfo_unexpected_free(g);
    }
}

static void declare_failed(void)
{
    BFO_FOREACH_PEER(peer)
    {
        if (!peer->declared && !ompi_proc_is_active(peer->proc)) {
            bfo_failover_declare(peer, "its process has failed");
        }
    }
}

static int is_looking; /* atomic */

/* A progress function: have more processes failed than when it looked last? */
static int look(void)
{
    static int known; /* atomic */

    opal_mutex_lock(&ompi_group_afp_mutex);
    const int n = ompi_group_size(ompi_group_all_failed_procs);
    opal_mutex_unlock(&ompi_group_afp_mutex);
    if (n != __atomic_exchange_n(&known, n, __ATOMIC_RELAXED)) {
        declare_failed();
    }
    return 0;
}

void bfo_revoke_close(void)
{
    if (__atomic_exchange_n(&is_looking, 0, __ATOMIC_RELAXED)) {
        opal_progress_unregister(look);
    }
}

int bfo_revoke_comm(ompi_communicator_t *comm, bool coll_only)
{
    bfo_local_t *me = bfo_enter();

    revoke_one(comm, coll_only);
    if (OMPI_COMM_IS_INTER(comm) && NULL != comm->c_local_comm) {
        revoke_one(comm->c_local_comm, coll_only);
    }
    bfo_leave(me);
    declare_failed();
    if (!BFO_OMPI_REVOKES_FOR_EACH_FAILURE && !__atomic_exchange_n(&is_looking, 1, __ATOMIC_RELAXED)) {
        opal_progress_register_lp(look);
    }
    return OMPI_SUCCESS;
}
#endif /* BFO_OMPI_HAS_ULFM */
