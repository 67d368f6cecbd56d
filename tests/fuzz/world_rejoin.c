/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A lost rail comes back as a new generation: which work the new generation carries, and which work of the old generation it does not.
 * Two rails with failover reach rank 1. DESIGN.txt sections 10 and 14.6.
 */
#define _GNU_SOURCE
#include "world_case.h"

#include "failover/pml_bfo_failover.h"
#include "failover/pml_bfo_failover_peer.h"
#include "door/pml_bfo_recv_api.h"
#include "door/pml_bfo_send_api.h"
#include "rails/pml_bfo_failover_fence.h"
#include "send/pml_bfo_send_start.h"

void fuzz_progress(void);

enum { LONG = 8000, SHORT = 3000 };

static char room[9000];

/* Begins a case; is_lost: rail 0 is lost and its fence is done. */
static bfo_peer_t *life_begins(bool is_lost)
{
    bfo_peer_t *peer;

    world_begin();
    bfo_params.rejoin = true;
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    peer = peer_of_rank(1);
    if (is_lost) {
        world_rail_fails(&world_btl[0]);
        must(2 == peer->send_mask && 1 == peer->fencing && 1 == world_fences(), "a rail that failed is in use");
        world_fence_done(0, false);
        must(0 == peer->fencing, "a fence does not end");
    }
    return peer;
}

static void fence_ends(world_btl_t *btl, uint16_t gen, bool lossy)
{
    btl->ext.fence_done(&btl->super, &world_proc[1]->super, (uint8_t) (btl - world_btl), gen, lossy);
}

static bfo_send_t *send_long(void)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_isend(room, LONG, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_SYNCHRONOUS, world_comm[0], &request),
         "a send does not start");
    return (bfo_send_t *) request;
}

static void put_comes(const bfo_send_t *req)
{
    world_put_comes(&world_btl[0], req, req->rts_length, 1000);
}

static const bfo_fin_hdr_t *posted_fin(void)
{
    const int n = world_find(BFO_MSG_FIN);

    must(n >= 0, "no FIN is sent");
    return world_posted_message((unsigned) n);
}

/* ---- the rail itself ------------------------------------------------------------------------------- */

static void rail_that_returns_is_used(void)
{
    bfo_peer_t *peer = life_begins(true);
    bool used[2] = {false, false};

    world_rail_returns(&world_btl[0]);
    must(3 == peer->send_mask && 3 == peer->put_mask, "a rail that returned is not used");
    world_rail_is_trusted(&world_btl[0], 1);
    must(3 == peer->eager_mask, "short messages avoid a rail that the BTL trusts");
    must(1 == peer->rails[0].gen && 0 == peer->rails[0].fenced, "its generation is not the new one");
    for (int i = 0; i < 4; ++i) {
        (void) send_long();
        used[world_btl_of((unsigned) i) - world_btl] = true;
    }
    must(used[0] && used[1], "no message goes over the rail that returned");
    must(1 == bfo_local_stat(BFO_STAT_RAILS_BACK), "its return is not counted");
    world_rail_fails(&world_btl[0]);
    must(2 == peer->send_mask && 1 == peer->fencing, "a rail that returned is not lost again");
    must(1 == world_fences(), "its new generation is not fenced");
    world_fence_done(0, false);
    must(0 == peer->fencing && 1 == peer->rails[0].fenced, "the fence of its new generation does not end");
}

static void lost_rail_stays_lost_if_that_is_asked_for(void)
{
    const bfo_peer_t *peer;

    world_begin();
    bfo_params.rejoin = false;
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    peer = peer_of_rank(1);
    world_rail_fails(&world_btl[0]);
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    must(2 == peer->send_mask && 0 == peer->rails[0].gen, "a rail that returned is used");
}

/* The peer's NOTIFY reported the end of generation 1 before the BTL reported its beginning. */
static void return_of_a_dead_generation_is_no_return(void)
{
    bfo_peer_t *peer = life_begins(true);

    bfo_failover_rail_failed(peer, 0, 1, "the peer lost it");
    must(1 == peer->fencing && 1 == world_fences(), "a generation that only the peer knows is not fenced");
    world_rail_returns(&world_btl[0]);
    must(2 == peer->send_mask, "a generation that is dead is used");
    world_fence_done(0, false);
    must(0 == peer->fencing && 1 == peer->rails[0].fenced, "its fence does not end");
    world_rail_returns(&world_btl[0]);
    must(3 == peer->send_mask && 2 == peer->rails[0].gen, "the next generation is not used");
}

/* The BTL reports each end of queue pairs, also of queue pairs that were never connected. */
static void attempt_that_fails_is_no_error(void)
{
    bfo_peer_t *peer = life_begins(true);
    const uint64_t errors = bfo_local_stat(BFO_STAT_ERRORS), lost = bfo_local_stat(BFO_STAT_RAILS_LOST);

    must(0 < errors, "the loss of a rail is not counted");
    bfo_failover_btl_error(&world_btl[0].super, MCA_BTL_ERROR_FLAGS_NONFATAL, &world_proc[1]->super, NULL);
    fence_ends(&world_btl[0], 1, false);
    must(errors == bfo_local_stat(BFO_STAT_ERRORS) && lost == bfo_local_stat(BFO_STAT_RAILS_LOST), "an attempt that fails counts as an error");
    must(2 == peer->send_mask && 0 == peer->fencing, "an attempt that fails takes a rail along");
}

static void declared_peer_gets_no_rail_back(void)
{
    bfo_peer_t *peer = life_begins(true);

    bfo_failover_declare(peer, "a test");
    world_rail_returns(&world_btl[0]);
    must(0 == peer->send_mask, "a rail to a declared peer is used");
}

/* Symptoms of the previous generation may be reported late. */
static void failure_of_before_is_none(void)
{
    bfo_peer_t *peer = life_begins(true);

    world_rail_returns(&world_btl[0]);
    bfo_failover_rail_failed(peer, 0, 0, "a message was refused");
    must(3 == peer->send_mask && 0 == peer->fencing, "a rail that returned is lost by an error of its previous generation");
}

/* The PML asks for the fence again before the rail comes back. */
static void fence_of_before_ends_after_the_return(void)
{
    bfo_peer_t *peer = life_begins(true);

    peer->rails[0].fenced = -1;
    bfo_failover_fence(peer, 0, 0);
    must(1 == peer->fencing, "a fence does not begin");
    world_rail_returns(&world_btl[0]);
    fence_ends(&world_btl[0], 0, false);
    must(0 == peer->fencing && 3 == peer->send_mask, "the PML waits without end for the fence of the previous generation");
}

static void dead_set_names_the_generation_before(void)
{
    bfo_peer_t *peer = life_begins(true);
    bfo_handshake_hdr_t notify = {.epoch = 1};

    bfo_failover_dead_set(peer, &notify);
    must(1 == notify.dead_mask && 0 == notify.rail_gen[0], "a dead rail is not named");
    world_rail_returns(&world_btl[0]);
    world_rail_fails(&world_btl[0]);
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    notify = (bfo_handshake_hdr_t){.epoch = 1};
    bfo_failover_dead_set(peer, &notify);
    must(1 == notify.dead_mask && 1 == notify.rail_gen[0], "the last dead generation of a rail in use is not named");
}

/* Only the BTL knows generations of failed attempts to come back. */
static void generation_that_the_btl_knows_is_possible(void)
{
    bfo_peer_t *peer = life_begins(true);
    const uint16_t gen[BFO_MAX_RAILS] = {5};

    must(!bfo_failover_rails_are_possible(peer, 1, gen), "a generation that does not exist is believed");
    world_btl[0].gen = 5;
    must(bfo_failover_rails_are_possible(peer, 1, gen), "a generation that the peer knows is not believed");
}

static void returned_rail_is_as_far_as_the_others(void)
{
    bfo_peer_t *peer = life_begins(true);

    peer->stripe.load[0] = 10;
    peer->stripe.load[1] = 1u << 30;
    world_rail_returns(&world_btl[0]);
    must(1u << 30 == peer->stripe.load[0], "a rail that returned carries everything until it has caught up");
}

/* ---- probation -------------------------------------------------------------------------------------------- */

/* Sends short messages; returns the mask of the rails that carry them. */
static uint8_t carriers_of_short_messages(void)
{
    uint8_t mask = 0;

    for (int i = 0; i < 4; ++i) {
        const unsigned n = world_posted();

        must(OMPI_SUCCESS == bfo_send(room, 10, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0]), "a send fails");
        must(n + 1 == world_posted(), "a short message is not posted");
        mask |= (uint8_t) (1u << (world_btl_of(n) - world_btl));
        world_complete(n, OPAL_SUCCESS);
    }
    return mask;
}

static void short_messages_avoid_a_rail_on_probation(void)
{
    bfo_peer_t *peer = life_begins(true);

    world_rail_returns(&world_btl[0]);
    must(3 == peer->send_mask && 3 == peer->put_mask && 3 == peer->get_mask, "long messages avoid a rail that returned");
    must(2 == carriers_of_short_messages(), "short messages use a rail that is on probation");
    world_rail_is_trusted(&world_btl[0], 1);
    must(3 == carriers_of_short_messages(), "short messages avoid a rail that the BTL trusts");
}

/* The peer asks for one WRITE after the other. */
static void long_messages_end_the_probation(void)
{
    static char much[512 * 1024];
    bfo_peer_t *peer = life_begins(true);

    world_rail_returns(&world_btl[0]);
    for (int i = 0; i < 2; ++i) {
        ompi_request_t *request = NULL;
        const bfo_send_t *req;

        must(2 == peer->eager_mask, "the probation ends too early");
        must(OMPI_SUCCESS == bfo_isend(much, sizeof(much), &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_SYNCHRONOUS, world_comm[0], &request),
             "a send does not start");
        req = (const bfo_send_t *) request;
        world_put_comes(&world_btl[0], req, 0, sizeof(much));
        must(0 <= world_find(WORLD_PUT), "nothing is written");
        world_complete((unsigned) world_find(WORLD_PUT), OPAL_SUCCESS);
    }
    must(3 == carriers_of_short_messages(), "short messages avoid a rail that has carried long ones");
}

static void bytes_of_the_last_probation_do_not_count(void)
{
    bfo_peer_t *peer = life_begins(true);

    world_rail_returns(&world_btl[0]);
    bfo_rail_carried(peer, 0, 1024 * 1024 - 1);
    must(2 == peer->eager_mask, "the probation ends too early");
    world_rail_fails(&world_btl[0]);
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    bfo_rail_carried(peer, 0, 1024 * 1024 - 1);
    must(2 == peer->eager_mask, "bytes of the previous generation count");
    bfo_rail_carried(peer, 0, 1);
    must(3 == peer->eager_mask, "bytes of this generation do not count");
}

static void end_of_an_older_probation_is_void(void)
{
    bfo_peer_t *peer = life_begins(true);

    world_rail_returns(&world_btl[0]);
    world_rail_fails(&world_btl[0]);
    world_rail_is_trusted(&world_btl[0], 1);
    must(2 == peer->send_mask && 2 == peer->eager_mask, "a rail that is lost is used");
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    world_rail_is_trusted(&world_btl[0], 1);
    must(2 == carriers_of_short_messages(), "the end of the probation of an older generation counts");
    world_rail_is_trusted(&world_btl[0], 2);
    must(3 == carriers_of_short_messages(), "the end of this probation does not count");
}

/* The other rail is lost, soft, or stands out. */
static void rail_on_probation_carries_everything_if_it_is_the_only_one(void)
{
    bfo_peer_t *peer = life_begins(true);

    world_rail_returns(&world_btl[0]);
    must(bfo_rail_soften(peer, 1, true), "a rail does not become soft");
    must(1 == carriers_of_short_messages(), "short messages use a rail that seems silent");
    must(bfo_rail_soften(peer, 1, false) && 2 == carriers_of_short_messages(), "a rail that answers again does not take the short messages back");
    world_rail_fails(&world_btl[1]);
    must(1 == carriers_of_short_messages(), "the last rail does not carry short messages");
    world_fence_done(0, false);
    world_rail_returns(&world_btl[1]);
    must(3 == carriers_of_short_messages(), "one of two rails on probation carries all short messages");
    world_rail_is_trusted(&world_btl[1], 1);
    must(2 == carriers_of_short_messages(), "short messages use the rail that is still on probation");
}

/* A rail seems silent when the other rail is lost, or taken out of service. */
static void rail_that_seems_silent_carries_everything_if_it_is_the_only_one(void)
{
    bfo_peer_t *peer = life_begins(false);

    must(bfo_rail_soften(peer, 0, true) && 2 == carriers_of_short_messages(), "short messages use a rail that seems silent");
    peer->out_own = 2;
    bfo_rails_choose_again(peer);
    must(1 == carriers_of_short_messages(), "a rail that stands out serves although another rail is left");
    peer->out_own = 0;
    bfo_rails_choose_again(peer);
    world_rail_fails(&world_btl[1]);
    must(!peer->declared && 1 == carriers_of_short_messages(), "the last rail does not carry short messages");
    must(!bfo_rail_soften(peer, 1, true) && 1 == peer->soft, "a rail that is lost seems silent");
    world_fence_done(0, false);
    world_rail_returns(&world_btl[1]);
    must(2 == carriers_of_short_messages(), "short messages use a rail that seems silent instead of a rail that returned");
}

/* A slow rail is known to deliver; a rail on probation is not. */
static void slow_rail_is_better_than_a_rail_on_probation(void)
{
    bfo_peer_t *peer = life_begins(true);

    world_rail_returns(&world_btl[0]);
    peer->stripe.slow = 2;
    bfo_rails_choose_again(peer);
    must(2 == carriers_of_short_messages(), "short messages use a rail on probation instead of a slow rail");
    world_rail_is_trusted(&world_btl[0], 1);
    must(1 == carriers_of_short_messages(), "short messages use a slow rail");
}

/* ---- messages that have seen the old generation ---------------------------------------------------------- */

/* The message began while the rail was lost, therefore its memory is not registered with the rail. */
static void put_by_a_rail_that_returned_is_restarted(void)
{
    bfo_peer_t *peer = life_begins(true);
    bfo_send_t *req = send_long();

    must(NULL != req->regs && 2 == req->regs->mask, "the message offers no PUT");
    world_rail_returns(&world_btl[0]);
    put_comes(req);
    must(0 > world_find(WORLD_PUT) && BFO_SEND_STREAM != bfo_se_state(req->m.se), "memory that is not registered is written");
    must(!peer->foreign_puts && 3 == peer->pin_mask && !peer->declared, "PUTs of later messages are refused too");
}

/* The rail had no room for a WRITE; then the rail was lost and came back. */
static void write_of_before_is_not_written(void)
{
    bfo_peer_t *peer = life_begins(false);
    bfo_send_t *req = send_long();

    must(NULL != req->regs && 3 == req->regs->mask, "the message offers no PUT");
    world_refuse_busy = 1;
    put_comes(req);
    must(0 > world_find(WORLD_PUT) && 1 == bfo.n_pending, "a WRITE without room does not wait");
    world_rail_fails(&world_btl[0]);
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    must(3 == peer->send_mask, "a rail that returned is not used");
    (void) bfo_progress();
    must(0 > world_find(WORLD_PUT) && 0 == bfo.n_pending, "the new generation carries a WRITE of the previous generation");
    must(BFO_SEND_STREAM != bfo_se_state(req->m.se), "the message is not restarted");
    must(3 == peer->send_mask && 1 == peer->rails[0].gen, "the new generation fails because of a WRITE of the previous generation");
}

/* The rail is lost and comes back between the look at it and the post. The new generation carries the WRITE. */
static void fin_names_the_generation_that_carried_the_write(void)
{
    bfo_peer_t *peer = life_begins(false);
    bfo_send_t *req = send_long();
    const bfo_fin_hdr_t *fin;

    put_comes(req);
    must(0 <= world_find(WORLD_PUT), "nothing is written");
    must(bfo_rail_take_down(peer, 0) && bfo_rail_bring_up(peer, 0, 1), "a rail that returned is not used");
    world_complete((unsigned) world_find(WORLD_PUT), OPAL_SUCCESS);
    fin = posted_fin();
    must(1 == fin->wgen && 0 == (fin->fflags & BFO_FIN_RESENT), "the FIN names another generation than that of the WRITE");
}

/* The message begins while rail 0 is lost. Then rail 0 comes back, and rail 1 is lost before the message is complete. */
static void rget_goes_over_a_rail_that_returned(bool is_refused)
{
    bfo_peer_t *peer = life_begins(true);
    bfo_send_t *req = send_long();
    int n;

    must(BFO_MSG_RGET == req->rts_type && 2 == req->regs->mask, "the message offers no READ");
    world_rail_returns(&world_btl[0]);
    if (is_refused) { /* the post of its second copy finds that rail 1 is lost */
        world_refuse_dead = 1;
        (void) bfo_send_post_first_again(req);
    } else {
        world_rail_fails(&world_btl[1]);
        n = world_find(BFO_MSG_RGET);
        must(0 <= n, "the message was not posted");
        world_complete((unsigned) n, OPAL_ERROR);
    }
    for (n = 0; n < (int) world_posted() && world_btl_of((unsigned) n) != &world_btl[0]; ++n) {
    }
    must(n < (int) world_posted() && !peer->declared, "a message is lost although a rail is up");
    must(BFO_MSG_RGET == ((const bfo_hdr_t *) world_posted_message((unsigned) n))->common.type, "the message is not sent as an RGET");
    must(3 == req->regs->mask && NULL != req->regs->handle[0], "its memory is not registered with the rail");
    must(0 == memcmp((const char *) world_posted_message((unsigned) n) + sizeof(bfo_rget_hdr_t), req->regs->handle[0], WORLD_HANDLE),
         "it does not name its memory");
}
static void rget_that_failed_goes_over_a_rail_that_returned(void)
{
    rget_goes_over_a_rail_that_returned(false);
}
static void rget_that_is_refused_goes_over_a_rail_that_returned(void)
{
    rget_goes_over_a_rail_that_returned(true);
}

/* The rail that came back has no memory for a registration at first. */
static void rget_that_cannot_be_registered_waits(void)
{
    bfo_peer_t *peer = life_begins(true);
    const bfo_send_t *req = send_long();

    must(BFO_MSG_RGET == req->rts_type && 2 == req->regs->mask && 0 == world_find(BFO_MSG_RGET), "the message offers no READ");
    world_rail_returns(&world_btl[0]);
    world_rail_fails(&world_btl[1]);
    world_refuse_memory = 1;
    world_complete(0, OPAL_ERROR);
    must(0 == world_refuse_memory && 0 == world_posted() && 2 == req->regs->mask, "a READ is offered without a registration");
    must(1 == bfo.n_pending && !peer->declared, "a message that cannot be registered now does not wait");
    (void) bfo_progress();
    must(0 == world_find(BFO_MSG_RGET) && 1 == world_posted() && &world_btl[0] == world_btl_of(0),
         "a message that waited is not posted once, over the rail that returned");
    must(0 == memcmp((const char *) world_posted_message(0) + sizeof(bfo_rget_hdr_t), req->regs->handle[0], WORLD_HANDLE),
         "it does not name its memory");
}

/* The message offers a READ while rail 0 is lost. Then rail 1 is lost too, and rail 0 comes back. */
static void message_is_offered_by_a_rail_that_was_away(void)
{
    bfo_peer_t *peer;

    bfo_params.last_rail_timeout = 60;
    bfo_params.use_put = false;
    peer = life_begins(true);
    must(BFO_MSG_RGET == send_long()->rts_type && 1 == world_posted(), "the message is not offered for reading");
    world_rail_fails(&world_btl[1]);
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    fuzz_progress();
    must(!peer->declared && 1 == world_posted() && 0 <= world_find(BFO_MSG_RGET), "the message is not offered again");
    must(&world_btl[0] == world_btl_of(0), "the message goes over a lost rail");
}

/* The WRITE was delivered and its FIN had no room; then the rail was lost and came back. */
static void fin_of_before_says_so(void)
{
    bfo_peer_t *peer = life_begins(false);
    bfo_send_t *req = send_long();
    const bfo_fin_hdr_t *fin;

    put_comes(req);
    must(0 <= world_find(WORLD_PUT), "nothing is written");
    world_refuse_memory = 2;
    world_complete((unsigned) world_find(WORLD_PUT), OPAL_SUCCESS);
    must(0 > world_find(BFO_MSG_FIN) && 1 == bfo.n_pending, "a FIN without room does not wait");
    world_refuse_memory = 0;
    world_rail_fails(&world_btl[0]);
    world_fence_done(0, false);
    world_rail_returns(&world_btl[0]);
    must(3 == peer->send_mask, "a rail that returned is not used");
    (void) bfo_progress();
    fin = posted_fin();
    must(0 == fin->wgen && 0 != (fin->fflags & BFO_FIN_RESENT), "the FIN of the previous generation does not say that it was sent again");
}

/* Two fences were given up; the FIN names the generation of the first fence. */
static void data_of_each_lossy_fence_is_in_doubt(void)
{
    bfo_peer_t *peer = life_begins(false);
    bfo_fin_hdr_t fin = {.type = BFO_MSG_FIN, .fflags = BFO_FIN_WRITE | BFO_FIN_RESENT, .wrail = 0, .wgen = 1};

    for (uint16_t gen = 0; gen < 4; ++gen) {
        world_rail_fails(&world_btl[0]);
        world_fence_done(0, 1 == gen || 3 == gen);
        world_rail_returns(&world_btl[0]);
    }
    fin.wgen = 0;
    must(bfo_failover_fin_is_visible(peer, &fin) && !peer->declared, "data that has arrived is in doubt");
    fin.wgen = 1;
    must(!bfo_failover_fin_is_visible(peer, &fin) && peer->declared, "data that may be lost is taken");
}

/* The peer has lost the rail that carried the WRITE; this side hears of that by the FIN. */
static void fin_waits_for_the_fence_of_its_rail(bool is_lossy)
{
    bfo_peer_t *peer = life_begins(false);
    const bfo_fin_hdr_t fin = {.type = BFO_MSG_FIN, .fflags = BFO_FIN_WRITE | BFO_FIN_RESENT, .wrail = 0, .wgen = 0};

    must(!bfo_failover_fin_is_visible(peer, &fin) && 1 == world_fences() && 2 == peer->send_mask, "the FIN does not end its rail");
    must(!bfo_link_is_empty(&bfo.held_fins) && !peer->declared, "the FIN does not wait");
    world_fence_done(0, is_lossy);
    must(bfo_link_is_empty(&bfo.held_fins) && is_lossy == peer->declared, "data that may be lost is taken, or data that is there is not");
}

static void fin_waits_for_a_fence(void)
{
    fin_waits_for_the_fence_of_its_rail(false);
}

static void fin_waits_for_a_fence_that_is_lossy(void)
{
    fin_waits_for_the_fence_of_its_rail(true);
}

/* A READ had no room, and the sender restarts the message before the READ is posted. */
static void read_of_before_costs_no_rail(void)
{
    static char into[SHORT];
    bfo_peer_t *peer;
    ompi_request_t *request = NULL;
    const bfo_recv_t *req;
    bfo_handshake_hdr_t notify = {.match = {.type = BFO_MSG_NOTIFY}, .src_id = 0x800000001u, .epoch = 1, .nrails = 2};

    bfo_params.use_put = false;
    peer = life_begins(false);
    must(OMPI_SUCCESS == bfo_irecv(into, SHORT, &ompi_mpi_byte.dt, 1, 4, world_comm[0], &request), "a receive does not start");
    req = (const bfo_recv_t *) request;
    world_refuse_busy = 1;
    world_rget_comes(&world_btl[0], SHORT, 0);
    must(0 > world_find(WORLD_GET) && 1 == bfo.n_pending, "a READ without room does not wait");
    notify.match.seq = req->match_seq;
    notify.dst_id = bfo_name_id(&req->name);
    notify.jobid = world_proc[1]->super.proc_name.jobid;
    notify.vpid = world_proc[1]->super.proc_name.vpid;
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_NOTIFY), &notify, sizeof(notify), sizeof(notify));
    must(BFO_RECV_QUIESCE == bfo_se_state(req->m.se), "the message is not restarted");
    (void) bfo_progress();
    must(0 > world_find(WORLD_GET), "a READ of the previous attempt is posted");
    must(BFO_RECV_WAITRTS == bfo_se_state(req->m.se), "the restart waits for a READ that was never posted");
    must(3 == peer->send_mask && 0 == peer->fencing, "a rail that works is lost");
    bfo_params.use_put = true;
}

static const world_case_t cases[] = {
    {"rail_that_returns_is_used", rail_that_returns_is_used},
    {"lost_rail_stays_lost_if_that_is_asked_for", lost_rail_stays_lost_if_that_is_asked_for},
    {"return_of_a_dead_generation_is_no_return", return_of_a_dead_generation_is_no_return},
    {"attempt_that_fails_is_no_error", attempt_that_fails_is_no_error},
    {"declared_peer_gets_no_rail_back", declared_peer_gets_no_rail_back},
    {"failure_of_before_is_none", failure_of_before_is_none},
    {"fence_of_before_ends_after_the_return", fence_of_before_ends_after_the_return},
    {"dead_set_names_the_generation_before", dead_set_names_the_generation_before},
    {"generation_that_the_btl_knows_is_possible", generation_that_the_btl_knows_is_possible},
    {"returned_rail_is_as_far_as_the_others", returned_rail_is_as_far_as_the_others},
    {"short_messages_avoid_a_rail_on_probation", short_messages_avoid_a_rail_on_probation},
    {"long_messages_end_the_probation", long_messages_end_the_probation},
    {"bytes_of_the_last_probation_do_not_count", bytes_of_the_last_probation_do_not_count},
    {"end_of_an_older_probation_is_void", end_of_an_older_probation_is_void},
    {"rail_on_probation_carries_everything_if_it_is_the_only_one", rail_on_probation_carries_everything_if_it_is_the_only_one},
    {"rail_that_seems_silent_carries_everything_if_it_is_the_only_one", rail_that_seems_silent_carries_everything_if_it_is_the_only_one},
    {"slow_rail_is_better_than_a_rail_on_probation", slow_rail_is_better_than_a_rail_on_probation},
    {"read_of_before_costs_no_rail", read_of_before_costs_no_rail},
    {"put_by_a_rail_that_returned_is_restarted", put_by_a_rail_that_returned_is_restarted},
    {"write_of_before_is_not_written", write_of_before_is_not_written},
    {"fin_of_before_says_so", fin_of_before_says_so},
    {"fin_names_the_generation_that_carried_the_write", fin_names_the_generation_that_carried_the_write},
    {"message_is_offered_by_a_rail_that_was_away", message_is_offered_by_a_rail_that_was_away},
    {"rget_that_failed_goes_over_a_rail_that_returned", rget_that_failed_goes_over_a_rail_that_returned},
    {"rget_that_is_refused_goes_over_a_rail_that_returned", rget_that_is_refused_goes_over_a_rail_that_returned},
    {"rget_that_cannot_be_registered_waits", rget_that_cannot_be_registered_waits},
    {"data_of_each_lossy_fence_is_in_doubt", data_of_each_lossy_fence_is_in_doubt},
    {"fin_waits_for_a_fence", fin_waits_for_a_fence},
    {"fin_waits_for_a_fence_that_is_lossy", fin_waits_for_a_fence_that_is_lossy},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
