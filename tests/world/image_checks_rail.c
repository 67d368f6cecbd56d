/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * I10, for each change of a rail at either end. And the PML may take a generation for fenced only when none of its queue pairs can move data.
 */
#include "image_checks.h"

#include "types/btl_openib_types.h"

#include "rails/pml_bfo_generation.h"

/* ---- queue pairs --------------------------------------------------------------------------------------------------- */

static bool lives(const ofo_qpset_t *qps)
{
    bool is = false;

    for (unsigned i = 0; i < qps->nqp; ++i) {
        is = is || (NULL != qps->qp[i].qp && IBV_QPS_ERR != qps->qp[i].qp->state && IBV_QPS_RESET != qps->qp[i].qp->state);
    }
    return is;
}

/* Does a queue pair of the rail live whose generation is between the two? */
static bool any_lives(const ofo_endpoint_t *ep, unsigned first, unsigned last)
{
    const ofo_qpset_t *const sets[] = {ep->building, ep->qps, ep->draining};
    bool is = false;

    for (unsigned i = 0; i < sizeof(sets) / sizeof(sets[0]); ++i) {
        is = is || (NULL != sets[i] && first <= sets[i]->gen && sets[i]->gen <= last && lives(sets[i]));
    }
    for (const ofo_qpset_t *qps = ep->module->graveyard; NULL != qps; qps = qps->next) {
        is = is || (ep == qps->ep && first <= qps->gen && qps->gen <= last && lives(qps));
    }
    return is;
}

/* ---- I10 ----------------------------------------------------------------------------------------------------------- */

static void look(const ofo_endpoint_t *ep, unsigned generation, world_rail_t *seen)
{
    *seen = (world_rail_t){
        .state = ep->fsm.state,
        .generation = ep->fsm.gen,
        .is_fencing = (NULL != ep->draining && ep->draining->gen == generation)
                      || (generation == ep->fsm.gen && (OFO_ST_DRAINING == ep->fsm.state || OFO_ST_DRAINING_ACKED == ep->fsm.state)),
        .lives = any_lives(ep, generation, generation)};
}

/* By its name; a rail that has none yet is not found. */
static const ofo_endpoint_t *rail_of(const ofo_peer_t *peer, unsigned name)
{
    for (unsigned i = 0; i < peer->rail_count && name < OFO_MAX_RAILS; ++i) {
        if (name == peer->rail[i]->rail) {
            return peer->rail[i];
        }
    }
    return NULL;
}

/* A process that ends frees its rails. */
bool image_look_at_rail(unsigned rank, unsigned name, unsigned generation, world_rail_t *seen)
{
    void *peer = NULL;
    const ofo_endpoint_t *ep = NULL;

    if (!OFO.closing && 0 != OFO.peers.ht_size) {
        (void) opal_hash_table_get_value_uint64(&OFO.peers, (uint64_t) OFO.self.jobid << 32 | rank, &peer);
    }
    if (NULL != peer && !((const ofo_peer_t *) peer)->closing) {
        ep = rail_of(peer, name);
    }
    if (NULL != ep) {
        look(ep, generation, seen);
    }
    return NULL != ep;
}

static void broken(const ofo_endpoint_t *ep, const world_rail_t *here, const world_rail_t *there, const char *what)
{
    world_broken("I10: rail %u to process %u: generation %u is %s here%s%s; generation %u is %s there%s%s: %s", ep->rail, ep->peer->name.vpid,
                 here->generation, ofo_fsm_state_name((ofo_fsm_state_t) here->state), here->is_fencing ? ", is fenced" : "",
                 here->lives ? ", has living queue pairs" : "", there->generation, ofo_fsm_state_name((ofo_fsm_state_t) there->state),
                 there->is_fencing ? ", is fenced" : "", there->lives ? ", has living queue pairs" : "", what);
}

/* One side is UP or DOWN. `other`: the other side. */
static const char *what_is_wrong(const world_rail_t *side, const world_rail_t *other)
{
    if (OFO_ST_UP == side->state
        && (other->generation > side->generation || (other->generation == side->generation && OFO_ST_DOWN == other->state))) {
        return "one side is up, and the other one is down or beyond";
    }
    if (OFO_ST_DOWN == side->state) {
        return side->lives || other->lives             ? "a queue pair lives, and one side is down"
               : side->is_fencing || other->is_fencing ? "a fence runs, and one side is down"
                                                       : NULL;
    }
    return NULL;
}

/* Both sides are looked at for the generation of each side that is UP or DOWN. */
void image_check_rail(const ofo_fsm_t *fsm)
{
    const ofo_endpoint_t *ep = fsm->owner;
    const world_looks_t *looks = world_looks_of(ep->peer->name.vpid);
    world_rail_t here, there;
    const char *wrong;

    if (NULL == looks || OFO.closing || !looks->at_rail(world_rank(), ep->rail, ep->fsm.gen, &there)) {
        return;
    }
    look(ep, ep->fsm.gen, &here);
    wrong = what_is_wrong(&here, &there);
    if (NULL != wrong) {
        broken(ep, &here, &there, wrong);
    }
    if (there.generation != here.generation) {
        (void) looks->at_rail(world_rank(), ep->rail, there.generation, &there);
        look(ep, there.generation, &here);
    }
    wrong = what_is_wrong(&there, &here);
    if (NULL != wrong) {
        broken(ep, &here, &there, wrong);
    }
}

/* ---- the PML -------------------------------------------------------------------------------------------------------- */

void __real_bfo_generation_fence_ends(bfo_peer_t *peer, uint8_t r, uint16_t gen, bool lossy);
void __wrap_bfo_generation_fence_ends(bfo_peer_t *peer, uint8_t r, uint16_t gen, bool lossy);
void __wrap_bfo_generation_fence_ends(bfo_peer_t *peer, uint8_t r, uint16_t gen, bool lossy)
{
    if (any_lives(peer->rails[r].endpoint, 0, gen)) {
        world_broken("I10: rail %u to process %u: the fence of generation %u is over, and a queue pair lives", peer->rails[r].name,
                     peer->proc->super.proc_name.vpid, gen);
    }
    __real_bfo_generation_fence_ends(peer, r, gen, lossy);
}
