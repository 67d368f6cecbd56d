/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Symptoms of failure: a lost rail, a fence that is done, an unreachable peer, a message
 * without a request that came back. What a request does about it is in pml_bfo_failover_actions.c.
 * DESIGN.txt sections 10, 11 and 14.6.
 */
#include "types/pml_bfo.h"

#include "bfo_help.h"
#include "rails/pml_bfo_adopt.h"
#include "types/pml_bfo_extension.h"
#include "tables/pml_bfo_failover_fire.h"
#include "failover/pml_bfo_failover.h"
#include "rails/pml_bfo_failover_announce.h"
#include "rails/pml_bfo_failover_fence.h"
#include "failover/pml_bfo_failover_peer.h"
#include "rails/pml_bfo_failover_poison.h"
#include "rails/pml_bfo_generation.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"
#include "show/pml_bfo_tell.h"

#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/btl/base/base.h"
#include "opal/util/output.h"

/* A transfer that a network began and did not finish may still reach the buffer later. A refused transfer was never begun, and a failed
 * copy in memory is over. A rail with failover restarts the whole message instead. */
bool bfo_failover_may_copy(const bfo_peer_t *peer, uint8_t rail, bool refused)
{
    return NULL == peer->rails[rail].ext && !peer->declared && (refused || bfo_failover_cannot_fail(peer->rails[rail].btl));
}

/* ---- rails ------------------------------------------------------------------------------------------ */

/* `told`: the loss was reported to the user already. `by_btl`: the BTL reported the loss itself, and its fence follows (B3). Then this
 * function does not ask for the fence, because the BTL would assume that the peer brings the rail down, and send no DOWN. Otherwise it
 * asks: a BTL that ended the fence before the peer was `ready` reports the end again, and one without an error brings the rail down. */
static void rail_failed(bfo_peer_t *peer, uint8_t r, uint16_t gen, const char *cause, bool told, bool by_btl)
{
    bool is_new;

    bfo_stat_add(BFO_STAT_ERRORS, by_btl ? 0 : 1);
    if (r >= BFO_MAX_RAILS || gen < peer->rails[r].gen) {
        return;
    }
    BFO_ASSERT(r < peer->n_rails);
    (void) bfo_rail_name(peer, r); /* the messages to the user need the name */
    is_new = bfo_rail_take_down(peer, r);
#if PML_BFO
    if (by_btl && is_new) {
        (void) bfo_failover_fence_begins(peer, r, gen);
    }
#endif
    bfo_stat_add(BFO_STAT_ERRORS, by_btl && is_new ? 1 : 0); /* the end of a failed rejoin is no error */
    if (!by_btl && (is_new || gen > peer->rails[r].gen)) {
        bfo_failover_fence(peer, r, gen);
    }
    BFO_ASSERT(0 == (peer->send_mask & ~peer->up_mask) || bfo_threads);
    BFO_ASSERT(!is_new || NULL == peer->rails[r].ext || (peer->fencing >> r & 1) || peer->rails[r].fenced >= gen || peer->declared || bfo_threads);
    if (is_new) {
        bfo_stat_add(BFO_STAT_RAILS_LOST, 1);
        bfo_stat_mark_error();
        bfo_tell_rail_lost(peer, r, cause, told || (BFO_OMPI_ULFM_IS_ON && NULL == peer->rails[r].ext)); /* then the process has failed */
        if (NULL == peer->rails[r].ext) {
            bfo_failover_declare(peer, cause);
        } else if (0 == peer->send_mask) {
            bfo_failover_wait(peer, cause);
        }
    }
}

void bfo_failover_rail_failed(bfo_peer_t *peer, uint8_t rail, uint16_t gen, const char *cause)
{
    rail_failed(peer, rail, gen, cause, false, false);
}

#if PML_BFO
static uint8_t rail_by_name(bfo_peer_t *peer, uint8_t name)
{
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        if (bfo_rail_name(peer, r) == name) {
            return r;
        }
    }
    return BFO_MAX_RAILS;
}

/* The last generation of the rail that the BTL knows, from its own attempts or the peer's. The PML may not know all attempts. */
static uint16_t last_attempt(const bfo_peer_t *peer, const bfo_rail_t *rail)
{
    bfo_rail_info_t info;

    return bfo_ext_rail_state(peer, rail, &info) ? info.generation : 0;
}

/* LX: a generation after ours exists only once ours is fenced, and then it is the next one. A message that names any other generation is
 * bad; the BTL refuses to fence such a generation, therefore its fence would never be done. */
static bool generation_is_possible(bfo_peer_t *peer, uint8_t name, uint16_t gen)
{
    const uint8_t r = rail_by_name(peer, name);
    const bfo_rail_t *rail = &peer->rails[r < BFO_MAX_RAILS ? r : 0];

    return BFO_MAX_RAILS == r || gen <= rail->gen || (gen == rail->gen + 1 && rail->fenced >= rail->gen) || gen <= last_attempt(peer, rail);
}

bool bfo_failover_rails_are_possible(bfo_peer_t *peer, uint8_t mask, const uint16_t *gen)
{
    for (uint8_t name = 0; name < BFO_MAX_RAILS; ++name) {
        if ((mask >> name & 1) && !generation_is_possible(peer, name, gen[name])) {
            return false;
        }
    }
    return true;
}

/* The peer reports a generation of a rail as dead: takes ours down too. */
static void rail_is_dead(bfo_peer_t *peer, uint8_t name, uint16_t gen)
{
    const uint8_t r = rail_by_name(peer, name);

    if (BFO_MAX_RAILS != r && NULL != peer->rails[r].ext && peer->rails[r].fenced < gen) {
        bfo_failover_rail_failed(peer, r, gen, "the peer lost it");
    }
}

void bfo_failover_rails_down(bfo_peer_t *peer, uint8_t mask, const uint16_t *gen)
{
    for (uint8_t name = 0; name < BFO_MAX_RAILS; ++name) {
        if (mask >> name & 1) {
            rail_is_dead(peer, name, gen[name]);
        }
    }
}

void bfo_failover_dead_set(bfo_peer_t *peer, bfo_handshake_hdr_t *h)
{
    h->nrails = peer->n_rails;
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        const bfo_rail_t *rail = &peer->rails[r];
        const bool is_up = peer->up_mask >> r & 1;

        if (bfo_rail_name(peer, r) < BFO_MAX_RAILS && (!is_up || 0 < rail->gen)) { /* all generations before the one in use are dead */
            BFO_ASSERT(0 == (h->dead_mask >> rail->name & 1));                     /* no two rails have the same name */
            h->dead_mask |= (uint8_t) (1u << rail->name);
            h->rail_gen[rail->name] = (uint16_t) (rail->gen - is_up);
        }
    }
}

/* ---- FINs that came over another rail than their data ------------------------------------------------ */

/* The caller has seen that the rail is there. */
static const bfo_rail_t *rail_of_write(bfo_peer_t *peer, const bfo_fin_hdr_t *fin)
{
    const uint8_t r = rail_by_name(peer, fin->wrail);

    BFO_ASSERT(BFO_MAX_RAILS > r);
    return &peer->rails[r];
}

static bool fin_fence_is_done(bfo_peer_t *peer, const bfo_fin_hdr_t *fin)
{
    const bfo_rail_t *rail = rail_of_write(peer, fin);

    return rail->fenced >= fin->wgen || rail->gen > fin->wgen;
}

/* Were the queue pairs of the WRITE destroyed before all completions had come back? Then its data may never have reached memory.
 * A FIN that came on the same queue pair after the data is not in doubt. */
static bool fin_fence_was_lossy(bfo_peer_t *peer, const bfo_fin_hdr_t *fin)
{
    const bfo_rail_t *rail = rail_of_write(peer, fin);

    return 0 != (fin->fflags & BFO_FIN_RESENT) && rail->is_lossy && rail->lossy_first <= fin->wgen && fin->wgen <= rail->lossy_last;
}

/* The state of the receive that the FIN is for; NONE if it is gone. */
static bfo_look_t receive_of(const bfo_fin_hdr_t *fin)
{
    const bfo_name_t *name = bfo_ids_find(&bfo.frags, fin->frag_id);
    const bfo_frag_t *frag = NULL == name ? NULL : bfo_container(name, bfo_frag_t, name);
    const bool is_put = NULL != frag && BFO_FRAG_PUT == __atomic_load_n(&frag->kind, __ATOMIC_ACQUIRE);
    const bfo_recv_t *req = is_put ? __atomic_load_n(&frag->recv, __ATOMIC_RELAXED) : NULL;

    return NULL == req ? BFO_KNOWN(BFO_RECV_NONE) : bfo_look_at(&req->m);
}

bool bfo_failover_fin_is_visible(bfo_peer_t *from, const bfo_fin_hdr_t *fin)
{
    if (NULL == from || 0 == (fin->fflags & BFO_FIN_WRITE)) {
        return true;
    }
    if (BFO_MAX_RAILS <= fin->wrail || BFO_MAX_RAILS == rail_by_name(from, fin->wrail)) { /* a rail that carried data has a name */
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return false;
    }
    if (fin_fence_was_lossy(from, fin)) {
        bfo_failover_declare(from, "data that was reported as written is lost with a device");
        return false;
    }
    if (fin_fence_is_done(from, fin)) {
        return true;
    }
    if (!generation_is_possible(from, fin->wrail, fin->wgen)) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
        return false;
    }
    BFO_MUST_FIRE(bfo_recv_fire_at(NULL, receive_of(fin), BFO_REV_FIN_UNFENCED, bfo_threads, from, (void *) fin));
    return false;
}

static void held_fins_release(bfo_peer_t *peer)
{
    bfo_link_t ready, *next;

    bfo_link_init(&ready);
    BFO_LOCK(&bfo.lock);
    for (bfo_link_t *l = bfo.held_fins.next; l != &bfo.held_fins; l = next) {
        const bfo_ctl_t *held = bfo_container(l, bfo_ctl_t, work.link);

        next = l->next;
        BFO_ASSERT(sizeof(bfo_fin_hdr_t) == held->length && held->text == held->room);
        BFO_ASSERT(((const bfo_fin_hdr_t *) held->room)->wrail < BFO_MAX_RAILS); /* bfo_failover_fin_is_visible() has looked it up */
        if (held->peer == peer && fin_fence_is_done(peer, (const bfo_fin_hdr_t *) held->room)) {
            bfo_link_remove(l);
            bfo_link_append(&ready, l);
        }
    }
    BFO_UNLOCK(&bfo.lock);
    while (!bfo_link_is_empty(&ready)) {
        bfo_ctl_t *held = bfo_container(ready.next, bfo_ctl_t, work.link);

        bfo_link_remove(&held->work.link);
        if (bfo_failover_fin_is_visible(peer, (const bfo_fin_hdr_t *) held->room)) {
            bfo.up.fin_is_visible((const bfo_fin_hdr_t *) held->room);
        }
        opal_free_list_return(&bfo.ctl_list, &held->super);
    }
}

/* `request` is the peer, because the receive need not exist; `arg` is the FIN. */
void bfo_recv_act_hold_fin(void *request, void *arg)
{
    bfo_peer_t *from = request;
    const bfo_fin_hdr_t *fin = arg;
    bfo_ctl_t *held = (bfo_ctl_t *) opal_free_list_get(&bfo.ctl_list);

    BFO_ASSERT(0 != (fin->fflags & BFO_FIN_WRITE)); /* a READ has its bytes when it ends */
    if (NULL == held) {
        bfo_failover_declare(from, "no memory");
        return;
    }
    held->peer = from;
    held->text = held->room;
    held->length = sizeof(*fin);
    memcpy(held->room, fin, sizeof(*fin));
    BFO_LOCK(&bfo.lock);
    bfo_link_append(&bfo.held_fins, &held->work.link);
    BFO_UNLOCK(&bfo.lock);
    rail_is_dead(from, fin->wrail, fin->wgen);
    held_fins_release(from); /* another thread may have ended the fence before the FIN was in the list */
}

static void fence_done(mca_btl_base_module_t *btl, opal_proc_t *proc, uint8_t name, uint16_t generation, bool lossy)
{
    bfo_peer_t *peer = ((ompi_proc_t *) proc)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
    const uint8_t r = NULL == peer || !peer->ready ? BFO_MAX_RAILS : bfo_rail_index(peer, btl);

    if (BFO_MAX_RAILS == r) {
        return;
    }
    BFO_ASSERT(peer->rails[r].name >= BFO_MAX_RAILS || name == peer->rails[r].name); /* both sides mean this rail */
    BFO_LOCK(&bfo.lock);
    bfo_generation_fence_ends(peer, r, generation, lossy);
    BFO_UNLOCK(&bfo.lock);
    held_fins_release(peer);
    bfo_tell_rails(peer);
    bfo_failover_settle_all();
}

static void rail_restored(mca_btl_base_module_t *btl, opal_proc_t *proc, uint8_t name, uint16_t generation)
{
    bfo_peer_t *peer = ((ompi_proc_t *) proc)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
    uint8_t r;

    BFO_LOCK(&bfo.lock); /* waits for a thread that connects the peer now and may have found the rail down */
    r = NULL == peer || !peer->ready ? BFO_MAX_RAILS : bfo_rail_index(peer, btl);
    BFO_UNLOCK(&bfo.lock);
    if (BFO_MAX_RAILS == r) {
        return; /* bfo_failover_name_rails() will find the rail up */
    }
    BFO_ASSERT(peer->rails[r].name >= BFO_MAX_RAILS || name == peer->rails[r].name);
    bfo_tell_rails(peer); /* reports its loss first */
    if (bfo_rail_bring_up(peer, r, generation)) {
        bfo_failover_wait_ends(peer);
        bfo_stat_add(BFO_STAT_RAILS_BACK, 1);
        bfo_tell_rail_back(peer, r);
    }
}
#endif

/* ---- peers ------------------------------------------------------------------------------------------ */

/* Does the rail stay in use? The BTL does not end a rail that is the last one to its peer. */
static bool is_spared(const bfo_peer_t *peer, uint8_t r)
{
#if PML_BFO
    const bfo_rail_t *rail = &peer->rails[r < BFO_MAX_RAILS ? r : 0];
    bfo_rail_info_t info;

    return BFO_MAX_RAILS != r && bfo_ext_rail_state(peer, rail, &info) && BFO_RAIL_DOWN_LOCAL != info.state && BFO_RAIL_DOWN_BOTH != info.state;
#else
    return false;
#endif
}

/* Brings the rail down at the peer too, because the peer may not know of the loss, and the port may return: otherwise the peer
 * could connect a rail that was not connected, and only one side would use it. */
static void rail_lost_with_port(bfo_peer_t *peer, uint8_t r, const char *cause)
{
    if (!is_spared(peer, r)) {
        rail_failed(peer, r, bfo_rail_gen(peer, r), cause, true, false);
    }
}

/* A BTL also calls back to report that CUDA's IPC can be used from now on. And during MPI_Finalize each process closes the connections of a
 * BTL without failover at its own time; everything has been delivered by then. */
static bool is_loss(mca_btl_base_module_t *btl, int32_t flags)
{
    return 0 == (flags & BFO_BTL_ERROR_FLAGS_IPC)
           && (BFO_BTL_EXT_OK == bfo_btl_ext_check(btl) || ompi_mpi_state < OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT);
}

void bfo_failover_btl_error(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info)
{
    const char *cause = NULL == info ? "the BTL reports an error" : info;
    bool to_all = true;

    if (!is_loss(btl, flags)) {
        return;
    }
    if (NULL != proc) {
        bfo_peer_t *peer = bfo_peer_get((ompi_proc_t *) proc);

        if (NULL != peer && peer->ready) {
            const uint8_t r = bfo_rail_index(peer, btl);

            (void) bfo_set_bits(&peer->closed, (uint8_t) (r < BFO_MAX_RAILS ? 1u << r : 0));
            rail_failed(peer, r, bfo_rail_gen(peer, r), cause, false, true);
#if BFO_OMPI_HAS_ULFM && PML_BFO
            bfo_failover_abandon(peer);
#endif
        }
        return;
    }
    BFO_FOREACH_PEER(peer)
    {
        const uint8_t r = peer->ready ? bfo_rail_index(peer, btl) : BFO_MAX_RAILS;

        to_all = to_all && !is_spared(peer, r);
        if (BFO_MAX_RAILS != r) {
            (void) bfo_rail_name(peer, r);
        }
    }
    bfo_tell_port_lost(btl, cause, to_all);
    BFO_FOREACH_PEER(peer)
    {
        if (peer->ready) {
            rail_lost_with_port(peer, bfo_rail_index(peer, btl), cause);
        }
    }
}

#if PML_BFO
/* ---- messages without request ------------------------------------------------------------------------ */

/* Can the message be sent again without its request? The receiver drops a second MATCH by its sequence number, a second refusal (ACK without
 * dst_id) because the request has ended, a second FIN by the generation of its fragment. A resent FIN of a WRITE waits for the rail's fence. */
static bool is_resendable(const bfo_peer_t *peer, const bfo_hdr_t *h)
{
    return BFO_MSG_MATCH == h->common.type || BFO_MSG_NACK == h->common.type || BFO_MSG_FOREIGN == h->common.type
           || (BFO_MSG_ACK == h->common.type && 0 == h->ack.dst_id)
           || (BFO_MSG_FIN == h->common.type && (peer->failover || 0 == (h->fin.fflags & BFO_FIN_WRITE)));
}

void bfo_failover_ctl_failed(bfo_peer_t *peer, uint8_t rail, const void *header, size_t length, int status)
{
    const bfo_hdr_t *h = header;
    bfo_fin_hdr_t fin;

    bfo_failover_rail_failed(peer, rail, bfo_rail_gen(peer, rail), "a message came back with an error");
    if (peer->declared) {
        return;
    }
    if (sizeof(fin) == length && BFO_MSG_FIN == h->common.type) {
        fin = h->fin;
        fin.fflags |= 0 != (fin.fflags & BFO_FIN_WRITE) ? BFO_FIN_RESENT : 0;
        header = &fin;
    }
    if (is_resendable(peer, header) && !bfo_failover_ctl_is_poison(peer, rail, header, status)
        && OMPI_SUCCESS == bfo_ctl_resend(peer, header, length)) {
        bfo_stat_add(BFO_STAT_RESENDS, 1);
        if (BFO_MSG_MATCH == h->common.type) {
            bfo_stat_mark_resumed();
        }
        bfo_tell_resent(peer, bfo_hdr_name(h->common.type));
        return;
    }
    bfo_failover_declare(peer, "a message could not be sent again");
}

/* A fragment of btl_sendi failed: the BTL returns its bytes. */
static void sendi_failed(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_tag_t tag, const void *data,
                         size_t length, int status)
{
    BFO_FOREACH_PEER(peer)
    {
        const uint8_t rail = !peer->ready ? BFO_MAX_RAILS : bfo_rail_index(peer, btl);

        if (BFO_MAX_RAILS != rail && peer->rails[rail].endpoint == endpoint) {
            bfo_failover_ctl_failed(peer, rail, data, length, status);
            return;
        }
    }
}
#endif

void bfo_failover_init(void)
{
    bfo.up.rail_failed = bfo_failover_rail_failed;
    bfo.up.ctl_failed = bfo_failover_ctl_failed;
    bfo.up.wait = bfo_failover_wait;
    bfo.up.declare = bfo_failover_declare;
#if PML_BFO
    bfo.up.settle_all = bfo_failover_settle_all;
    bfo.callbacks.failed_frag = sendi_failed;
    bfo.callbacks.fence_done = fence_done;
    bfo.callbacks.rail_restored = rail_restored;
    bfo.callbacks.peer_dead = bfo_failover_peer_dead;
#endif
}
