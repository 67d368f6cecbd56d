/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Peers and their rails. Input: a process. Output: the BTL modules that reach it, with masks of what each
 * can do, and limits over all of them that do not change. DESIGN.txt sections 10 and 14.5.
 */
#include "types/pml_bfo.h"

#include "bfo_help.h"
#include "rails/pml_bfo_adopt.h"
#include "rails/pml_bfo_failover_announce.h"
#include "rails/pml_bfo_failover_bypass.h"
#include "rails/pml_bfo_failover_fence.h"
#include "rails/pml_bfo_failover_poison.h"
#include "rails/pml_bfo_generation.h"
#include "types/pml_bfo_local.h"
#include "types/pml_bfo_params.h"
#include "rails/pml_bfo_pending.h"
#include "rails/pml_bfo_rails.h"
#include "rails/pml_bfo_rails_out.h"
#include "show/pml_bfo_tell.h"

#include "opal/runtime/opal_params.h"
#include "opal/util/arch.h"
#include "opal/util/output.h"

#include <stdlib.h>

bfo_peer_t *bfo_peer_get(ompi_proc_t *proc)
{
    void **place = &proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
    bfo_peer_t *peer = __atomic_load_n(place, __ATOMIC_ACQUIRE);

    if (NULL == peer) {
        BFO_LOCK(&bfo.lock);
        peer = *place;
        if (NULL == peer) {
            peer = calloc(1, sizeof(*peer) + bfo.modules * sizeof(peer->rails[0]));
            if (NULL != peer) {
                peer->proc = proc;
                bfo_link_init(&peer->waiting);
                OBJ_RETAIN(proc);
                peer->next = bfo.peers;
                __atomic_store_n(&bfo.peers, peer, __ATOMIC_RELEASE);
                __atomic_store_n(place, peer, __ATOMIC_RELEASE);
            }
        }
        BFO_UNLOCK(&bfo.lock);
    }
    BFO_ASSERT(NULL == peer || proc == peer->proc);
    return peer;
}

void bfo_peer_free(ompi_proc_t *proc)
{
    bfo_peer_t *peer = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

    BFO_ASSERT(NULL == peer || proc == peer->proc);
    if (NULL != peer) {
        bfo_peer_t **at = &bfo.peers;

        BFO_LOCK(&bfo.lock);
        while (peer != *at) {
            BFO_ASSERT(NULL != *at);
            at = &(*at)->next;
        }
        *at = peer->next;
        BFO_UNLOCK(&bfo.lock);
        bfo_work_forget(peer);
        proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = NULL;
        bfo_failover_forget_suspects(peer);
        bfo_seqmap_free(&peer->kept);
        free(peer->no_regs);
        free(peer);
        OBJ_RELEASE(proc);
    }
}

uint8_t bfo_rail_index(const bfo_peer_t *peer, const mca_btl_base_module_t *btl)
{
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        if (peer->rails[r].btl == btl) {
            return r;
        }
    }
    return BFO_MAX_RAILS;
}

/* ---- connecting ---------------------------------------------------------------------------------- */

static int modex_of(const ompi_proc_t *proc, bfo_modex_t **theirs, size_t *size)
{
    int rc;

    OPAL_MODEX_RECV(rc, &mca_pml_bfo_component.pmlm_version, &proc->super.proc_name, (void **) theirs, size);
    return rc;
}

bfo_life_t bfo_rails_life_of(const ompi_proc_t *proc)
{
    bfo_modex_t *theirs = NULL;
    bfo_life_t life = {0};
    size_t size = 0;

    if (OPAL_SUCCESS == modex_of(proc, &theirs, &size) && size >= sizeof(*theirs)) {
        life = theirs->life;
    }
    free(theirs);
    return life;
}

/* Both sides must speak the same protocol; a peer without a record runs another PML, which
 * mca_pml_base_pml_check_selected() has reported. */
static bool speaks_our_protocol(bfo_peer_t *peer)
{
    bfo_modex_t *theirs = NULL;
    const size_t least = offsetof(bfo_modex_t, life); /* of any version */
    size_t size = 0;
    int rc;

    rc = modex_of(peer->proc, &theirs, &size);
    if (OPAL_SUCCESS != rc || size < least) {
        bfo_help_say("help-pml-bfo.txt", "wrong-protocol", BFO_PROTOCOL_VERSION, OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), OPAL_PROC_MY_HOSTNAME,
                     (uint32_t) 0, OPAL_NAME_PRINT(peer->proc->super.proc_name));
        free(theirs);
        return false;
    }
    rc = theirs->version == bfo.modex.version;
    if (size >= sizeof(*theirs)) {
        peer->life = theirs->life;
    }
    if (!rc) {
        bfo_help_say("help-pml-bfo.txt", "wrong-protocol", bfo.modex.version, OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), OPAL_PROC_MY_HOSTNAME,
                     theirs->version, OPAL_NAME_PRINT(peer->proc->super.proc_name));
    }
    free(theirs);
    return rc;
}

/* Must be the same architecture, because headers and flat buffers travel as they are in memory. */
static bool is_of_our_kind(const bfo_peer_t *peer)
{
    const bool is = peer->proc->super.proc_arch == opal_local_arch;

    if (!is) {
        bfo_help_say("help-pml-bfo.txt", "other-architecture", OPAL_PROC_MY_HOSTNAME, opal_local_arch, OPAL_NAME_PRINT(peer->proc->super.proc_name),
                     peer->proc->super.proc_arch);
    }
    return is;
}

static void rail_add(bfo_peer_t *peer, const mca_bml_base_btl_t *bml_btl)
{
    mca_btl_base_module_t *btl = bml_btl->btl;
    bfo_rail_t *rail = &peer->rails[peer->n_rails];
    const size_t most = btl->btl_max_send_size;

    BFO_ASSERT(peer->n_rails < BFO_MAX_RAILS && peer->n_rails < bfo.modules);
    rail->btl = btl;
    rail->endpoint = bml_btl->btl_endpoint;
    rail->ext = bfo_failover_adopt(btl);
    rail->name = peer->n_rails;
    bfo_generation_init(rail);
    rail->flags = btl->btl_flags;
    rail->frag_limit = most > sizeof(bfo_frag_hdr_t) + 64 ? most : btl->btl_eager_limit;
    rail->get_limit = bfo_smaller(0 != btl->btl_get_limit ? btl->btl_get_limit : SIZE_MAX,
                                  0 != bfo_params.frag_size ? bfo_params.frag_size : SIZE_MAX);
    peer->get_align |= 0 != btl->btl_get_alignment ? btl->btl_get_alignment - 1 : 0;
    if (NULL == btl->btl_put || !bfo_params.use_put) {
        rail->flags &= ~(uint32_t) MCA_BTL_FLAGS_PUT;
    }
    if (NULL == btl->btl_get || !bfo_params.use_get) {
        rail->flags &= ~(uint32_t) MCA_BTL_FLAGS_GET;
    }
    bfo_stripe_add(&peer->stripe, peer->n_rails, btl->btl_bandwidth);
    ++peer->n_rails;
}

/* Adds at most pml_bfo_max_rails. If there are more, it chooses by name, because both sides use the same names but order their modules
 * differently. Without names the peer may choose other rails, so this process must not ask it to write over one of ours. */
static void rails_add(bfo_peer_t *peer, mca_bml_base_endpoint_t *endpoint)
{
    const mca_bml_base_btl_t *all = endpoint->btl_send.bml_btls;
    const size_t n = endpoint->btl_send.arr_size;
    const size_t most = bfo_smaller(bfo_params.max_rails, bfo.modules);
    bool named = true;

    for (size_t i = 0; i < n && n <= most; ++i) {
        rail_add(peer, &all[i]);
    }
    for (uint8_t name = 0; n > most && name <= BFO_MAX_RAILS; ++name) {
        for (size_t i = 0; i < n && peer->n_rails < most; ++i) {
            if (name == bfo_failover_rail_name(peer, all[i].btl)) {
                rail_add(peer, &all[i]);
                named = named && name < BFO_MAX_RAILS;
            }
        }
    }
    for (uint8_t r = 0; r < peer->n_rails && !named; ++r) {
        peer->rails[r].flags &= ~(uint32_t) MCA_BTL_FLAGS_PUT;
    }
}

/* Limits over all configured rails, because any of them must be able to send a first fragment again. */
static void set_limits(bfo_peer_t *peer)
{
    size_t eager = SIZE_MAX, rndv = SIZE_MAX, rdma = 0;
    const size_t head = sizeof(bfo_rndv_hdr_t) + sizeof(bfo_restart_hdr_t);

    BFO_ASSERT(0 != peer->n_rails);
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        const mca_btl_base_module_t *btl = peer->rails[r].btl;

        eager = bfo_smaller(eager, btl->btl_eager_limit);
        rndv = bfo_smaller(rndv, 0 != btl->btl_rndv_eager_limit ? btl->btl_rndv_eager_limit : btl->btl_eager_limit);
        rndv = bfo_smaller(rndv, peer->rails[r].frag_limit);
        if (NULL != btl->btl_register_mem && !opal_leave_pinned && btl->btl_min_rdma_pipeline_size > rdma) {
            rdma = btl->btl_min_rdma_pipeline_size;
        }
    }
    if (0 != bfo_params.eager_limit) {
        eager = bfo_smaller(eager, bfo_params.eager_limit);
        rndv = bfo_smaller(rndv, bfo_params.eager_limit);
    }
    peer->match_limit = eager > sizeof(bfo_match_hdr_t) ? eager - sizeof(bfo_match_hdr_t) : 0;
    peer->rndv_limit = rndv > head ? rndv - head : 0;
    peer->rdma_min = 0 != bfo_params.rdma_min ? bfo_params.rdma_min : rdma;
}

/* First fragments go over the rails with the lowest latency, and not over a rail on probation or a slow rail if there is another. Soft rails
 * are used if there is no other, and after them rails that stand out, so that no peer waits because of them, unless they stand out by force.
 * The peer may ask for PUTs over a soft rail, therefore buffers are registered with it too. */
static void set_masks(bfo_peer_t *peer, uint8_t up)
{
    const uint8_t in = (uint8_t) (up & ~(peer->out_own | peer->out_theirs)), spare = (uint8_t) (up & ~(peer->forced_own | peer->forced_theirs));
    const uint8_t calm = (uint8_t) (in & ~peer->soft), use = 0 != calm ? calm : 0 != in ? in : spare, pins = use | (in & peer->soft);
    const uint8_t fast = bfo_rails_but(bfo_rails_but(use, peer->probation), peer->stripe.slow);
    uint32_t lowest = UINT32_MAX;
    uint8_t eager = 0, put = 0, pin = 0, get = 0;

    BFO_ASSERT(0 == up >> peer->n_rails);
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        if ((fast >> r & 1) && peer->rails[r].btl->btl_latency < lowest) {
            lowest = peer->rails[r].btl->btl_latency;
        }
    }
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        pin |= (pins >> r & 1) && (peer->rails[r].flags & MCA_BTL_FLAGS_PUT) ? 1u << r : 0;
        if (use >> r & 1) {
            eager |= (fast >> r & 1) && peer->rails[r].btl->btl_latency == lowest ? 1u << r : 0;
            put |= pin & 1u << r;
            get |= (peer->rails[r].flags & MCA_BTL_FLAGS_GET) ? 1u << r : 0;
        }
    }
    BFO_ASSERT((0 == use) == (0 == eager)); /* while a rail is in use, some rail takes first fragments */
    BFO_ASSERT(0 == ((eager | put | get) & ~use));
    BFO_ASSERT(0 == (eager & peer->probation) || 0 == (use & ~peer->probation)); /* first fragments avoid probation while another rail serves */
    BFO_ASSERT(0 == (use & ~up) && 0 == (pin & ~up));                            /* no new work begins on a rail that is not UP */
    BFO_ASSERT(0 == (use & (peer->forced_own | peer->forced_theirs)));
    BFO_ASSERT(0 == ((peer->soft | peer->probation | peer->fencing) >> peer->n_rails));
    peer->up_mask = up;
    peer->send_mask = use;
    peer->eager_mask = eager;
    peer->put_mask = put;
    peer->pin_mask = peer->foreign_puts ? 0 : pin;
    peer->get_mask = get;
    peer->offers_reads = bfo_rails_offer_reads(peer);
}

void bfo_rails_bulk_end(bfo_peer_t *peer, uint8_t rail, uint8_t mask, size_t bytes, bool carried)
{
    if (rail < peer->n_rails && bfo_stripe_end(&peer->stripe, rail, mask, bytes, carried)) {
        BFO_LOCK(&bfo.lock);
        set_masks(peer, peer->up_mask);
        BFO_UNLOCK(&bfo.lock);
        bfo_tell_slow(peer);
    }
}

/* The peer asks for PUTs over rails that this process does not use, or that cannot write here. */
void bfo_rails_offer_no_put(bfo_peer_t *peer)
{
    BFO_LOCK(&bfo.lock);
    peer->foreign_puts = true;
    peer->pin_mask = 0;
    BFO_UNLOCK(&bfo.lock);
}

static void set_handle_size(bfo_peer_t *peer)
{
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        bfo_rail_t *rail = &peer->rails[r];
        const size_t h = bfo_handle_size(rail->btl);

        if (0 == (rail->flags & MCA_BTL_FLAGS_RDMA)) {
            continue;
        }
        if (h > BFO_HANDLE_MAX || (0 != peer->handle_size && 0 != h && h != peer->handle_size)) {
            bfo_help_say("help-pml-bfo.txt", "handle-size", OPAL_PROC_MY_HOSTNAME, OPAL_NAME_PRINT(peer->proc->super.proc_name));
            for (uint8_t q = 0; q < peer->n_rails; ++q) {
                peer->rails[q].flags &= ~(uint32_t) MCA_BTL_FLAGS_RDMA;
            }
            peer->handle_size = 0;
            return;
        }
        peer->handle_size = h > peer->handle_size ? h : peer->handle_size;
    }
    for (uint8_t r = 0; r < peer->n_rails && 0 != peer->handle_size; ++r) { /* tcp with verbs: a header has room for all or none */
        if (0 == bfo_handle_size(peer->rails[r].btl)) {
            peer->rails[r].flags &= ~(uint32_t) MCA_BTL_FLAGS_RDMA;
        }
    }
}

static void set_no_regs(bfo_peer_t *peer)
{
    uint8_t mask = 0;

    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        mask |= NULL == peer->rails[r].btl->btl_register_mem ? (uint8_t) (1u << r) : 0;
    }
    peer->no_regs = 0 == mask ? NULL : calloc(1, sizeof(*peer->no_regs));
    if (NULL != peer->no_regs) {
        peer->no_regs->peer = peer;
        peer->no_regs->mask = mask;
    }
}

static bfo_rails_out_t read_out(bfo_peer_t *peer)
{
    return bfo_rails_out_read(peer, bfo_failover_rails_of_names(peer, peer->names_out), bfo_failover_rails_of_names(peer, peer->names_forced));
}

int bfo_peer_connect(bfo_peer_t *peer)
{
    mca_bml_base_endpoint_t *endpoint;
    uint8_t all, down = 0;

    if (peer->declared) {
        return OMPI_ERR_UNREACH;
    }
    if (peer->ready) {
        return 0 != peer->send_mask || bfo_peer_may_wait(peer) ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
    }
    endpoint = mca_bml_base_get_endpoint(peer->proc);
    if (NULL == endpoint || !is_of_our_kind(peer) || !speaks_our_protocol(peer)) {
        return OMPI_ERR_UNREACH;
    }
    BFO_LOCK(&bfo.lock);
    if (!peer->ready) {
        rails_add(peer, endpoint);
        if (0 == peer->n_rails) {
            BFO_UNLOCK(&bfo.lock);
            return OMPI_ERR_UNREACH;
        }
        set_handle_size(peer);
        set_no_regs(peer);
        set_limits(peer);
        peer->eager_turn = bfo_turn_first(OPAL_PROC_MY_NAME.vpid, peer->proc->super.proc_name.vpid, peer->n_rails);
        all = (uint8_t) ((1u << peer->n_rails) - 1);
        down = bfo_failover_name_rails(peer);
        BFO_ASSERT(0 == (down & ~all) && peer->handle_size <= BFO_HANDLE_MAX);
        BFO_ASSERT(0 == (peer->fencing & ~down)); /* only a rail that is down is being fenced */
        peer->may_wait = PML_BFO && peer->failover && bfo_params.rejoin;
        bfo_rails_out_set(peer, read_out(peer));
        set_masks(peer, all == down ? all : (uint8_t) (all & ~down)); /* if none is left, the first use finds out */
        bfo_failover_announce(peer);
        bfo_failover_announce_bypass(peer);
        bfo_tell_connected(peer);
        __atomic_store_n(&peer->ready, true, __ATOMIC_RELEASE);
    }
    BFO_UNLOCK(&bfo.lock);
    bfo_failover_fence_down(peer, down);
    bfo_rails_out_tell(peer);
    if (bfo_unlikely(0 == peer->send_mask)) {
        bfo.up.wait(peer, "its rails are drained by force");
    }
    return OMPI_SUCCESS;
}

bool bfo_rail_take_down(bfo_peer_t *peer, uint8_t rail)
{
    bool was_up;

    BFO_ASSERT(rail < peer->n_rails);
    BFO_LOCK(&bfo.lock);
    was_up = peer->up_mask >> rail & 1;
    if (was_up) {
        set_masks(peer, (uint8_t) (peer->up_mask & ~(1u << rail)));
    }
    BFO_UNLOCK(&bfo.lock);
    return was_up;
}

bool bfo_rail_bring_up(bfo_peer_t *peer, uint8_t r, uint16_t gen)
{
    bfo_rail_t *rail = &peer->rails[r];
    bool is_new;

    BFO_ASSERT(r < peer->n_rails);
    BFO_LOCK(&bfo.lock);
    is_new = !peer->declared && bfo_generation_is_next(rail, gen);
    if (is_new) { /* the rail is UP here already if all rails were down at the first contact */
        bfo_stripe_join(&peer->stripe, r, peer->send_mask);
        peer->soft &= (uint8_t) ~(1u << r);
        (void) __atomic_fetch_or(&peer->probation, (uint8_t) (1u << r), __ATOMIC_RELAXED); /* its bytes are counted from here on */
        rail->carried = 0;
        bfo_generation_use(rail, gen);
        set_masks(peer, (uint8_t) (peer->up_mask | 1u << r));
    }
    BFO_UNLOCK(&bfo.lock);
    return is_new;
}

void bfo_rails_choose_again(bfo_peer_t *peer)
{
    const uint8_t before = peer->send_mask;

    set_masks(peer, peer->up_mask);
    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        if ((peer->send_mask & ~before) >> r & 1) {
            bfo_stripe_join(&peer->stripe, r, before);
        }
    }
}

bool bfo_rails_stand_out(bfo_peer_t *peer)
{
    const bfo_rails_out_t out = read_out(peer); /* without the lock, because the BTL may be asked for names */

    if (bfo_rails_out_are(peer, out)) {
        return false;
    }
    BFO_LOCK(&bfo.lock);
    bfo_rails_out_set(peer, out);
    bfo_rails_choose_again(peer);
    BFO_UNLOCK(&bfo.lock);
    return true;
}

bool bfo_rail_soften(bfo_peer_t *peer, uint8_t rail, bool is_soft)
{
    const uint8_t bit = (uint8_t) (1u << rail);
    bool may;

    BFO_ASSERT(rail < peer->n_rails);
    BFO_LOCK(&bfo.lock);
    may = 0 != (peer->up_mask & bit) && 0 != (peer->up_mask & ~(peer->out_own | peer->out_theirs | peer->soft | bit));
    peer->soft = is_soft && may ? peer->soft | bit : is_soft ? peer->soft : (uint8_t) (peer->soft & ~bit);
    bfo_rails_choose_again(peer);
    BFO_UNLOCK(&bfo.lock);
    return may;
}

/* ---- lanes --------------------------------------------------------------------------------------- */

/* Lock: bfo.lock */
static struct {
    uint16_t ctx;
    int32_t src;
} holes[32];
static unsigned n_holes; /* if larger than the room: every lane made from then on may have a hole */

void bfo_lane_has_hole(uint16_t ctx, int32_t src)
{
    BFO_LOCK(&bfo.lock);
    if (n_holes < sizeof(holes) / sizeof(holes[0])) {
        holes[n_holes].ctx = ctx;
        holes[n_holes].src = src;
    }
    ++n_holes;
    BFO_UNLOCK(&bfo.lock);
}

static bool has_hole(uint16_t ctx, uint32_t src)
{
    const unsigned room = sizeof(holes) / sizeof(holes[0]);
    bool has = n_holes > room;

    for (unsigned i = 0; i < n_holes && i < room; ++i) {
        has = has || (ctx == holes[i].ctx && src == (uint32_t) holes[i].src);
    }
    return has;
}

/* Allocates the entry for the counters before the first message counts, so that the end of the communicator cannot fail for lack of memory.
 * NULL without memory. Locks: bfo.lock held. */
static const bfo_seqs_t *kept_counters(bfo_peer_t *peer, uint32_t ctx)
{
    const bfo_seqs_t *kept = bfo_seqmap_find(&peer->kept, ctx);

    return NULL != kept || 0 != bfo_seqmap_store(&peer->kept, ctx, 0, 0) ? kept : bfo_seqmap_find(&peer->kept, ctx);
}

bfo_lane_t *bfo_lane_create(bfo_comm_t *bc, uint32_t rank)
{
    ompi_proc_t *proc = ompi_group_peer_lookup(bc->group, (int) rank); /* bc->comm may be freed */
    bfo_peer_t *peer = NULL == proc ? NULL : bfo_peer_get(proc);
    bfo_lane_t *lane, *made;
    const bfo_seqs_t *kept;
    bool lost = false;

    BFO_ASSERT(rank < bc->size);
    if (NULL == peer) {
        return NULL;
    }
    made = bfo_calloc_line(sizeof(*made));
    if (NULL == made) {
        return NULL;
    }
    made->peer = peer;
    BFO_LOCK(&bfo.lock);
    lane = bc->lanes[rank];
    if (NULL == lane && !bc->gone && NULL != (kept = kept_counters(peer, BFO_OMPI_CTX_OF(bc->comm)))) {
        bfo_lane_match_init(&made->match, kept->next_recv);
        made->match.n_open = (peer->declared ? BFO_LANE_ENDED : 0) | (bc->is_marked ? BFO_LANE_REVOKED : 0);
        made->next_send = kept->next_send;
        lane = made;
        made = NULL;
        lost = has_hole((uint16_t) BFO_OMPI_CTX_OF(bc->comm), rank);
        __atomic_store_n(&bc->lanes[rank], lane, __ATOMIC_RELEASE);
    }
    BFO_ASSERT(NULL == lane || peer == lane->peer);
    BFO_UNLOCK(&bfo.lock);
    free(made);
    if (lost) {
        bfo.up.declare(peer, BFO_HOLE);
    }
    return lane;
}

/* ---- registrations ------------------------------------------------------------------------------- */

/* False: the rail needs a registration and did not give one. */
static inline bool register_with(bfo_regs_t *regs, uint8_t r, void *base, size_t size, uint32_t access)
{
    const bfo_rail_t *rail = &regs->peer->rails[r];

    BFO_ASSERT(0 == (regs->mask >> r & 1)); /* a rail registers a buffer once */
    if (bfo_unlikely(NULL == rail->btl->btl_register_mem)) {
        regs->handle[r] = NULL;
        return true;
    }
    regs->handle[r] = rail->btl->btl_register_mem(rail->btl, rail->endpoint, base, size, access);
    return NULL != regs->handle[r];
}

uint8_t bfo_regs_register(bfo_peer_t *peer, uint8_t mask, void *base, size_t size, uint32_t access, bfo_regs_t **out)
{
    bfo_regs_t *regs;

    BFO_ASSERT(0 == mask >> peer->n_rails);
    *out = NULL;
    if (0 == mask) {
        return 0;
    }
    regs = (bfo_regs_t *) opal_free_list_get(&bfo.regs_list);
    if (NULL == regs) {
        return 0;
    }
    regs->peer = peer;
    regs->mask = 0;
    for (uint8_t rest = mask; 0 != rest; rest &= (uint8_t) (rest - 1)) {
        const uint8_t r = (uint8_t) __builtin_ctz(rest);

        regs->mask |= register_with(regs, r, base, size, access) ? (uint8_t) (1u << r) : 0;
    }
    if (0 == regs->mask) {
        opal_free_list_return(&bfo.regs_list, &regs->super);
        return 0;
    }
    BFO_ASSERT(0 == (regs->mask & ~mask));
    *out = regs;
    return regs->mask;
}

uint8_t bfo_regs_extend(bfo_regs_t *regs, uint8_t mask, void *base, size_t size, uint32_t access)
{
    BFO_ASSERT(0 == mask >> regs->peer->n_rails);
    for (uint8_t r = 0; r < regs->peer->n_rails && regs != regs->peer->no_regs; ++r) {
        if ((mask & ~regs->mask) >> r & 1 && register_with(regs, r, base, size, access)) {
            __atomic_store_n(&regs->mask, (uint8_t) (regs->mask | 1u << r), __ATOMIC_RELEASE); /* a thread that sees the rail sees its handle */
        }
    }
    return regs->mask & mask;
}

void bfo_regs_deregister(bfo_regs_t *regs)
{
    BFO_ASSERT(regs != regs->peer->no_regs && 0 == regs->mask >> regs->peer->n_rails);
    for (uint8_t r = 0; r < regs->peer->n_rails; ++r) {
        if ((regs->mask >> r & 1) && NULL != regs->handle[r]) {
            mca_btl_base_module_t *btl = regs->peer->rails[r].btl;

            btl->btl_deregister_mem(btl, regs->handle[r]);
        }
    }
    regs->mask = 0; /* bfo_regs_drop() asserts that it is not dropped again */
    opal_free_list_return(&bfo.regs_list, &regs->super);
}
