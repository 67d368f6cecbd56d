/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The module: set-up and end of the PML, of processes and of communicators; the function table that Open MPI calls.
 * DESIGN.txt section 14.1.
 */
#include "types/pml_bfo.h"

#include "rails/pml_bfo_adopt.h"
#include "failover/pml_bfo_drain.h"
#include "failover/pml_bfo_failover.h"
#include "handshake/pml_bfo_failover_actions.h"
#include "failover/pml_bfo_failover_peer.h"
#include "door/pml_bfo_hooks.h"
#include "types/pml_bfo_local.h"
#include "door/pml_bfo_module.h"
#include "show/pml_bfo_notify.h"
#include "types/pml_bfo_params.h"
#include "rails/pml_bfo_pending.h"
#include "rails/pml_bfo_rails.h"
#include "door/pml_bfo_recv_api.h"
#include "ends/pml_bfo_recv_complete.h"
#include "arrivals/pml_bfo_recv_dispatch.h"
#include "ends/pml_bfo_recv_unexpected.h"
#include "arrivals/pml_bfo_recv_orphan.h"
#include "door/pml_bfo_recv_probe.h"
#include "ulfm/pml_bfo_revoke.h"
#include "door/pml_bfo_send_api.h"
#include "ends/pml_bfo_send_complete.h"
#include "show/pml_bfo_show.h"
#include "rails/pml_bfo_probation.h"
#include "rails/pml_bfo_soft.h"
#include "show/pml_bfo_tell.h"
#include "ulfm/pml_bfo_ulfm_tags.h"
#include "failover/pml_bfo_witness.h"

#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/class/opal_bitmap.h"
#include "opal/runtime/opal_progress.h"

#include <limits.h>
#include <stdlib.h>

bfo_t bfo = {
    .sends = BFO_IDS_INITIALIZER,
    .recvs = BFO_IDS_INITIALIZER,
    .frags = BFO_IDS_INITIALIZER,
    .modules = BFO_MAX_RAILS,
};

static void frag_construct(bfo_frag_t *frag)
{
    frag->kind = BFO_FRAG_NONE;
    frag->work.queued = false;
    (void) bfo_ids_add(&bfo.frags, &frag->name);
}

OBJ_CLASS_INSTANCE(bfo_frag_t, opal_free_list_item_t, frag_construct, NULL);
OBJ_CLASS_INSTANCE(bfo_regs_t, opal_free_list_item_t, NULL, NULL);
OBJ_CLASS_INSTANCE(bfo_unexpected_frag_t, opal_free_list_item_t, NULL, NULL);
OBJ_CLASS_INSTANCE(bfo_ctl_t, opal_free_list_item_t, NULL, NULL);

/* ---- set-up ---------------------------------------------------------------------------------------- */

static int list_init(opal_free_list_t *list, size_t size, opal_class_t *class, int most)
{
    return opal_free_list_init(list, size, opal_cache_line_size, class, 0, 0, bfo_params.free_list_num, most, bfo_params.free_list_inc, NULL, 0, NULL,
                               NULL, NULL);
}

/* The user's limit applies to requests, because there a call of MPI can fail. The limit does not apply to memory for messages in flight.
 * Without this memory the message would be lost, and with a first fragment the whole peer. */
static int lists_init(void)
{
    int rc = list_init(&mca_pml_base_send_requests, sizeof(bfo_send_t), OBJ_CLASS(bfo_send_t), bfo_params.free_list_max);

    if (OMPI_SUCCESS == rc) {
        rc = list_init(&mca_pml_base_recv_requests, sizeof(bfo_recv_t), OBJ_CLASS(bfo_recv_t), bfo_params.free_list_max);
    }
    if (OMPI_SUCCESS == rc) {
        rc = list_init(&bfo.frag_list, sizeof(bfo_frag_t), OBJ_CLASS(bfo_frag_t), -1);
    }
    if (OMPI_SUCCESS == rc) {
        rc = list_init(&bfo.regs_list, sizeof(bfo_regs_t), OBJ_CLASS(bfo_regs_t), -1);
    }
    if (OMPI_SUCCESS == rc) {
        rc = list_init(&bfo.got_list, sizeof(bfo_unexpected_frag_t) + bfo_params.unexpected_limit, OBJ_CLASS(bfo_unexpected_frag_t), -1);
    }
    if (OMPI_SUCCESS == rc) {
        rc = list_init(&bfo.ctl_list, sizeof(bfo_ctl_t), OBJ_CLASS(bfo_ctl_t), -1);
    }
    return rc;
}

static int bfo_enable(bool enable)
{
    int rc;

    if (!enable || bfo.enabled) {
        return OMPI_SUCCESS;
    }
    OBJ_CONSTRUCT(&bfo.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&bfo.pending_lock, opal_mutex_t);
    bfo_local_init();
    for (size_t i = 0; i < sizeof(bfo.unpack_lock) / sizeof(bfo.unpack_lock[0]); ++i) {
        OBJ_CONSTRUCT(&bfo.unpack_lock[i], opal_mutex_t);
    }
    bfo_link_init(&bfo.orphans);
    bfo_link_init(&bfo.held_fins);
    bfo_revoke_open();
    bfo_failover_init();
    bfo_failover_actions_init();
    bfo_soft_init();
    bfo_probation_init();
    bfo_failover_adopt_all();
    bfo_link_init(&bfo.pending);
    OBJ_CONSTRUCT(&bfo.frag_list, opal_free_list_t);
    OBJ_CONSTRUCT(&bfo.regs_list, opal_free_list_t);
    OBJ_CONSTRUCT(&bfo.got_list, opal_free_list_t);
    OBJ_CONSTRUCT(&bfo.ctl_list, opal_free_list_t);
    rc = lists_init();
    bfo.enabled = OMPI_SUCCESS == rc;
    if (bfo.enabled) {
        bfo_notify_open();
        bfo_drain_open();
    }
    return rc;
}

int bfo_module_publish(void)
{
    int rc;

    bfo.modex = (bfo_modex_t){.version = bfo_params.protocol_version, .life = bfo_life_own(bfo_ompi_node())};
    OPAL_MODEX_SEND(rc, BFO_MODEX_GLOBAL, &mca_pml_bfo_component.pmlm_version, &bfo.modex, sizeof(bfo.modex));
    return rc;
}

/* ---- communicators that MPI has freed ---------------------------------------------------------------- */

static void comm_free(bfo_comm_t *bc)
{
    BFO_ASSERT(bc->gone); /* no thread finds it any more */
    for (uint32_t rank = 0; rank < bc->size; ++rank) {
        free(bc->lanes[rank]);
    }
    bfo_match_free(&bc->match);
    free(bc->lanes);
    free(bc);
}

/* Frees communicators that MPI has freed, if no thread can still hold a pointer to them; otherwise a later call does. */
static void comms_free_gone(void)
{
    bfo_comm_t *gone, **end = &gone, *next;

    BFO_LOCK(&bfo.lock);
    gone = bfo.gone;
    bfo.gone = NULL;
    BFO_UNLOCK(&bfo.lock);
    if (NULL == gone) {
        return;
    }
    if (bfo_threads && !bfo_local_all_left()) {
        while (NULL != *end) {
            end = &(*end)->next_gone;
        }
        BFO_LOCK(&bfo.lock);
        *end = bfo.gone;
        bfo.gone = gone;
        BFO_UNLOCK(&bfo.lock);
        return;
    }
    for (; NULL != gone; gone = next) {
        next = gone->next_gone;
        OBJ_RELEASE(gone->group);
        comm_free(gone);
    }
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void list_release(opal_free_list_t *list)
{
    OBJ_DESTRUCT(list);
}

void bfo_module_finalize(void)
{
    if (!bfo.enabled) {
        return;
    }
    bfo.enabled = false;
    bfo_notify_close();
    bfo_hooks_close();
    bfo_tell_counters();
    if (bfo.progress_registered) {
        opal_progress_unregister(bfo_progress);
    }
    bfo_drain_close();
    bfo_revoke_close();
    bfo_orphans_close();
    bfo_failover_wait_fini();
    while (!bfo_link_is_empty(&bfo.orphans)) {
        bfo_unexpected_frag_t *g = bfo_container(bfo.orphans.next, bfo_unexpected_frag_t, link);

        bfo_link_remove(&g->link);
        bfo_unexpected_free(g);
    }
    while (!bfo_link_is_empty(&bfo.held_fins)) {
        bfo_ctl_t *held = bfo_container(bfo.held_fins.next, bfo_ctl_t, work.link);

        bfo_link_remove(&held->work.link);
        opal_free_list_return(&bfo.ctl_list, &held->super);
    }
    bfo_local_finalize();
    while (NULL != bfo.gone) { /* too late to release their groups */
        bfo_comm_t *next = bfo.gone->next_gone;

        comm_free(bfo.gone);
        bfo.gone = next;
    }
    for (size_t i = 0; i < sizeof(bfo.comms) / sizeof(bfo.comms[0]); ++i) {
        free(bfo.comms[i]);
        bfo.comms[i] = NULL;
    }
    list_release(&bfo.frag_list);
    list_release(&bfo.regs_list);
    list_release(&bfo.got_list);
    list_release(&bfo.ctl_list);
    bfo_ids_free(&bfo.sends); /* a message that still arrives finds nothing */
    bfo_ids_free(&bfo.recvs);
    bfo_ids_free(&bfo.frags);
}

/* ---- processes -------------------------------------------------------------------------------------- */

static int bfo_add_procs(ompi_proc_t **procs, size_t nprocs)
{
    opal_bitmap_t reachable;
    int rc;

    if (0 == nprocs) {
        return OMPI_SUCCESS;
    }
    rc = mca_pml_base_pml_check_selected("bfo", procs, nprocs);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    bfo_tell_processes(procs, nprocs);
    OBJ_CONSTRUCT(&reachable, opal_bitmap_t);
    rc = opal_bitmap_init(&reachable, (int) nprocs);
    if (OMPI_SUCCESS == rc) {
        rc = mca_bml.bml_add_procs(nprocs, procs, &reachable);
    }
    OBJ_DESTRUCT(&reachable);
    bfo_threads = opal_uses_threads; /* a BTL may have started a thread of its own */
    if (OMPI_SUCCESS == rc) {
        rc = bfo_dispatch_register();
    }
    if (OMPI_SUCCESS == rc) {
        rc = bfo_drain_register();
    }
    if (OMPI_SUCCESS == rc) {
        rc = bfo_witness_register();
    }
    if (OMPI_SUCCESS == rc) {
        rc = bfo_ulfm_tags_register();
    }
    if (OMPI_SUCCESS == rc) {
        rc = mca_bml.bml_register_error(bfo_failover_btl_error);
    }
    return rc;
}

static int bfo_del_procs(ompi_proc_t **procs, size_t nprocs)
{
    for (size_t i = 0; i < nprocs; ++i) {
        bfo_peer_free(procs[i]);
    }
    return mca_bml.bml_del_procs(nprocs, procs);
}

/* ---- communicators ---------------------------------------------------------------------------------- */

/* Enters the communicator of a context id, or NULL, into the table. False: no memory. Locks: bfo.lock held. */
static bool comm_is_known(uint32_t ctx, bfo_comm_t *bc)
{
    bfo_comm_t ***chunk = &bfo.comms[ctx >> 8], **made;

    if (NULL == *chunk) {
        if (NULL == bc) {
            return true;
        }
        made = calloc(256, sizeof(*made));
        if (NULL == made) {
            return false;
        }
        __atomic_store_n(chunk, made, __ATOMIC_RELEASE);
    }
    BFO_ASSERT(NULL == bc || NULL == (*chunk)[ctx & 255]); /* a context id belongs to one communicator at a time */
    __atomic_store_n(&(*chunk)[ctx & 255], bc, __ATOMIC_RELEASE);
    return true;
}

int bfo_add_comm(ompi_communicator_t *comm)
{
    bfo_comm_t *bc;
    bool is_known;

    if (BFO_OMPI_CTX_OF(comm) > UINT16_MAX) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    bc = bfo_calloc_line(sizeof(*bc));
    if (NULL == bc) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    bc->comm = comm;
    bc->group = comm->c_remote_group;
    OBJ_RETAIN(bc->group);
    bc->size = (uint32_t) comm->c_remote_group->grp_proc_count;
    bc->lanes = calloc(bc->size > 0 ? bc->size : 1, sizeof(*bc->lanes));
    if (NULL == bc->lanes || 0 != bfo_match_init(&bc->match)) {
        OBJ_RELEASE(bc->group);
        free(bc->lanes);
        free(bc);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    BFO_LOCK(&bfo.lock);
    comm->c_pml_comm = (struct mca_pml_comm_t *) bc;
    is_known = comm_is_known(BFO_OMPI_CTX_OF(comm), bc);
    BFO_UNLOCK(&bfo.lock);
    if (!is_known) {
        bfo_del_comm(comm);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    bfo_orphans_adopt(bc, bfo_dispatch_first);
    comms_free_gone();
    if (comm == &ompi_mpi_comm_self.comm) { /* attributes work from here on, and no user has a communicator yet */
        return bfo_hooks_open();
    }
    return OMPI_SUCCESS;
}

/* Drops a message that waits in a communicator that ends. After a failure or a revoke its sender must not wait for a receive that nobody posts. */
static void message_end(bfo_comm_t *bc, bfo_unexpected_t *unexpected)
{
    bfo_unexpected_frag_t *g = bfo_container(unexpected, bfo_unexpected_frag_t, unexpected);

    if (bc->is_marked && ompi_mpi_state < OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT) {
        bfo_refuse(g->peer, (const bfo_hdr_t *) g->data, false);
    }
    bfo_unexpected_free(g);
}

/* Drops the out-of-order messages of a communicator that ends. The sequence numbers of the messages they waited for count as used too;
 * otherwise the next communicator of this context id would get these messages when they arrive. */
static void lane_end(bfo_comm_t *bc, bfo_lane_t *lane, uint32_t ctx)
{
    uint32_t taken;
    bfo_link_t early;
    int rc;

    bfo_link_init(&early);
    bfo_lock(&bc->lock); /* a thread that found the communicator before it ended may still look at the lane */
    taken = lane->match.next_recv;
    if (!bfo_link_is_empty(&lane->match.early)) {
        lane->match.next_recv = bfo_container(lane->match.early.prev, bfo_unexpected_t, by_lane)->seq + 1;
    }
    while (!bfo_link_is_empty(&lane->match.early)) {
        bfo_unexpected_t *unexpected = bfo_container(lane->match.early.next, bfo_unexpected_t, by_lane);

        bfo_link_remove(&unexpected->by_lane);
        bfo_link_append(&early, &unexpected->by_lane);
    }
    lane->match.n_early = 0;
    bfo_unlock(&bc->lock);
    BFO_LOCK(&bfo.lock);
    rc = bfo_seqmap_store(&lane->peer->kept, ctx, lane->next_send, taken);
    BFO_ASSERT(0 == rc); /* bfo_lane_create() made the entry */
    rc = bfo_seqmap_skip(&lane->peer->kept, ctx, lane->match.next_recv);
    BFO_ASSERT(0 == rc);
    BFO_UNLOCK(&bfo.lock);
    while (!bfo_link_is_empty(&early)) {
        bfo_unexpected_t *unexpected = bfo_container(early.next, bfo_unexpected_t, by_lane);

        bfo_link_remove(&unexpected->by_lane);
        message_end(bc, unexpected);
    }
}

/* From now on no thread finds the communicator, and one that has found it takes no more messages: its sequence numbers are final. */
static void comm_end(bfo_comm_t *bc)
{
    BFO_LOCK(&bfo.lock);
    BFO_ASSERT(!bc->gone); /* a communicator ends once */
    bc->comm->c_pml_comm = NULL;
    (void) comm_is_known(BFO_OMPI_CTX_OF(bc->comm), NULL);
    bc->gone = true;
    BFO_UNLOCK(&bfo.lock);
    bfo_lock(&bc->lock);
    for (uint32_t rank = 0; rank < bc->size; ++rank) {
        if (NULL != bc->lanes[rank]) {
            bc->lanes[rank]->match.n_open |= BFO_LANE_GONE;
        }
    }
    bfo_unlock(&bc->lock);
}

int bfo_del_comm(ompi_communicator_t *comm)
{
    bfo_comm_t *bc = bfo_comm_of(comm);
    bfo_unexpected_t *unexpected;

    if (NULL == bc) {
        return OMPI_SUCCESS;
    }
    comm_end(bc);
    while (NULL != (unexpected = bfo_match_some(&bc->match))) {
        bfo_match_take(&bc->match, unexpected);
        message_end(bc, unexpected);
    }
    for (uint32_t rank = 0; rank < bc->size; ++rank) {
        if (NULL != bc->lanes[rank]) {
            lane_end(bc, bc->lanes[rank], BFO_OMPI_CTX_OF(comm));
        }
    }
    BFO_LOCK(&bfo.lock);
    bc->next_gone = bfo.gone;
    bfo.gone = bc;
    BFO_UNLOCK(&bfo.lock);
    comms_free_gone();
    return OMPI_SUCCESS;
}

/* ---- persistent requests ---------------------------------------------------------------------------- */

/* Calls the error handler, because MPI_Startall ignores what the PML returns, and MPI_Start of some releases calls no error handler. Where
 * MPI_Start calls one, an MPI_Startall of a single request, which looks the same here, gets none. */
static BFO_COLD int start_failed(const mca_pml_base_request_t *base, size_t count, int rc)
{
    if (1 == count && !BFO_OMPI_START_TELLS_NOBODY) {
        return rc;
    }
    return OMPI_ERRHANDLER_INVOKE(base->req_comm, rc, 1 == count ? "MPI_Start" : "MPI_Startall");
}

/* Starts every request although one start has failed, because MPI_Startall does not report the failure, and a wait for the rest would never
 * end. */
static int bfo_start(size_t count, ompi_request_t **requests)
{
    const mca_pml_base_request_t *failed = NULL;
    int first = OMPI_SUCCESS;

    for (size_t i = 0; i < count; ++i) {
        const mca_pml_base_request_t *base = (mca_pml_base_request_t *) requests[i];
        int rc = OMPI_SUCCESS;

        if (NULL == requests[i] || OMPI_REQUEST_PML != requests[i]->req_type) {
            continue;
        }
        switch (base->req_type) {
        case MCA_PML_REQUEST_SEND:
            rc = bfo_send_restart(&requests[i]);
            break;
        case MCA_PML_REQUEST_RECV:
            rc = bfo_recv_restart(requests[i]);
            break;
        default:
            rc = BFO_OMPI_HAS_ULFM ? bfo_lost_error() : OMPI_ERR_REQUEST; /* the request was abandoned with its peer */
            break;
        }
        if (bfo_unlikely(OMPI_SUCCESS != rc) && NULL == failed) {
            failed = (mca_pml_base_request_t *) requests[i];
            first = rc;
        }
    }
    return bfo_unlikely(NULL != failed) ? start_failed(failed, count, first) : OMPI_SUCCESS;
}

#if BFO_OMPI_HAS_FT_EVENT
/* Checkpoint and restart of processes is not supported. */
static int bfo_ft_event(int state)
{
    return OMPI_ERR_NOT_SUPPORTED;
}
#endif

mca_pml_base_module_t bfo_module = {
    .pml_add_procs = bfo_add_procs,
    .pml_del_procs = bfo_del_procs,
    .pml_enable = bfo_enable,
    .pml_progress = NULL, /* bfo_progress is registered when there is something to do */
    .pml_add_comm = bfo_add_comm,
    .pml_del_comm = bfo_del_comm,
    .pml_irecv_init = bfo_irecv_init,
    .pml_irecv = bfo_irecv,
    .pml_recv = bfo_recv,
    .pml_isend_init = bfo_isend_init,
    .pml_isend = bfo_isend,
    .pml_send = bfo_send,
    .pml_iprobe = bfo_iprobe,
    .pml_probe = bfo_probe,
    .pml_start = bfo_start,
    .pml_improbe = bfo_improbe,
    .pml_mprobe = bfo_mprobe,
    .pml_imrecv = bfo_imrecv,
    .pml_mrecv = bfo_mrecv,
    .pml_dump = bfo_dump,
#if BFO_OMPI_HAS_FT_EVENT
    .pml_ft_event = bfo_ft_event,
#endif
#if BFO_OMPI_HAS_ULFM
    .pml_revoke_comm = bfo_revoke_comm,
#endif
    .pml_max_contextid = UINT16_MAX,
    .pml_max_tag = INT_MAX,
    .pml_flags = 0,
};
