/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Control messages: what becomes of those without a request that come back with an error, and messages that name rails and generations which
 * do not exist. A message that cannot be kept. Two rails with failover reach rank 1. DESIGN.txt sections 7 and 14.6.
 */
#include "world_case.h"

#include "failover/pml_bfo_failover.h"
#include "failover/pml_bfo_failover_peer.h"
#include "rails/pml_bfo_post.h"

void fuzz_progress(void);

/* ---- messages without a request that come back ------------------------------------------------------------ */

enum { REFUSAL, NACK, FOREIGN, READ_FIN, KINDS };

/* Posts message `number` of this kind, as the PML does; returns its size. */
static size_t control_posted(bfo_peer_t *peer, int kind, uint32_t number, bfo_hdr_t *h)
{
    static const size_t size[] = {sizeof(h->ack), sizeof(h->handshake), sizeof(h->foreign), sizeof(h->fin)};
    const bfo_match_hdr_t message = {.src = 1, .seq = number};

    memset(h, 0, sizeof(*h));
    if (REFUSAL == kind) {
        bfo_hdr_pack_ack(&h->ack, 0, 0x100000000u + number, 0, 0, 0);
    } else if (NACK == kind) {
        h->handshake = (bfo_handshake_hdr_t){.match = {.type = BFO_MSG_NACK, .seq = number}, .src_id = 0x100000000u + number, .epoch = 1};
    } else if (FOREIGN == kind) {
        h->foreign = (bfo_foreign_hdr_t){.type = BFO_MSG_FOREIGN, .tag = 1, .number = number};
    } else {
        bfo_hdr_pack_fin(&h->fin, 0, 0, 0x100000000u + number, 100, &message);
    }
    must(OMPI_SUCCESS == bfo_ctl_send(peer, BFO_ANY_PATH, h, size[kind], NULL, NULL), "a message is not posted");
    return size[kind];
}

static bfo_peer_t *life_begins(void)
{
    world_begin();
    bfo_params.last_rail_timeout = 60;
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    return peer_of_rank(1);
}

static void all_fences_end(void)
{
    while (world_fences() > 0) {
        world_fence_done(0, false);
    }
}

/* First one rail returns the message with an error, then the other rail returns its copy. The peer waits for the message. */
static void message_without_request_goes_again(void)
{
    bfo_hdr_t sent;

    for (int kind = 0; kind < KINDS; ++kind) {
        const bfo_peer_t *peer = life_begins();
        const size_t size = control_posted(peer_of_rank(1), kind, 1, &sent);
        const uint64_t resends = bfo_local_stat(BFO_STAT_RESENDS);
        const world_btl_t *first = world_btl_of(0);

        world_complete(0, OPAL_ERROR);
        must(1 == world_posted() && first != world_btl_of(0), "a message that came back does not go over the other rail");
        must(0 == memcmp(&sent, world_posted_message(0), size), "a message has other bytes when it goes again");
        world_complete(0, OPAL_ERROR);
        all_fences_end();
        must(0 == world_posted() && !peer->declared, "a message does not wait for a rail, or declares its peer");
        world_rail_returns(&world_btl[0]);
        fuzz_progress();
        must(1 == world_posted() && 0 == memcmp(&sent, world_posted_message(0), size), "a message that waited does not go once, as it was");
        must(resends + 2 == bfo_local_stat(BFO_STAT_RESENDS), "not each copy is counted");
        world_drain();
        world_end();
    }
}

/* Two rails report that a message was at fault: the same message on both, or a message each, which proves nothing. */
static void message_at_fault_on_two_rails_declares_its_peer(void)
{
    bfo_hdr_t sent[2];

    for (int test = 0; test < 2 * KINDS; ++test) {
        const int kind = test / 2;
        const bool is_same = 0 == test % 2;
        bfo_peer_t *peer = life_begins();
        const size_t size = control_posted(peer, kind, 1, &sent[0]);

        world_complete(0, OPAL_ERR_FATAL);
        must(1 == world_posted() && !peer->declared, "one report of one rail declares the peer");
        if (!is_same) {
            (void) control_posted(peer, kind, 2, &sent[1]);
        }
        world_complete(world_posted() - 1, OPAL_ERR_FATAL);
        must(is_same == peer->declared,
             is_same ? "a message that no rail can carry is sent again and again" : "two messages pass for the same message");
        all_fences_end();
        world_rail_returns(&world_btl[0]);
        fuzz_progress();
        must((is_same ? 0 : 2) == world_posted(), "two messages do not go once each, or a declared peer gets a message");
        must(is_same || 0 != memcmp(world_posted_message(0), world_posted_message(1), size), "one message goes twice, and the other does not");
        world_drain();
        world_end();
    }
}

/* ---- rails that a message names ---------------------------------------------------------------------------- */

/* Rails that carried data have names here as well. Without a name nobody knows which fence to wait for. */
static void fin_of_a_rail_that_is_not_there_is_bad(void)
{
    bfo_peer_t *peer = life_begins();
    bfo_fin_hdr_t fin = {.type = BFO_MSG_FIN, .fflags = BFO_FIN_WRITE | BFO_FIN_RESENT, .wgen = 0};

    for (unsigned name = 2; name <= BFO_MAX_RAILS; ++name) {
        fin.wrail = (uint8_t) name;
        must(!bfo_failover_fin_is_visible(peer, &fin), "a FIN counts although its rail is unknown");
        must(name - 1 == bfo_local_stat(BFO_STAT_BAD_HEADER) && !peer->declared && 3 == peer->send_mask, "a bad FIN is not counted, or costs a rail");
    }
}

/* The next generation exists once the fence of this generation is done. No fence of the generation that the FIN names would ever end. */
static void fin_of_a_generation_that_cannot_be_is_bad(void)
{
    bfo_peer_t *peer = life_begins();
    bfo_fin_hdr_t fin = {.type = BFO_MSG_FIN, .fflags = BFO_FIN_WRITE | BFO_FIN_RESENT};

    for (uint16_t gen = 1; gen < 3; ++gen) {
        fin.wgen = gen;
        must(!bfo_failover_fin_is_visible(peer, &fin) && gen == bfo_local_stat(BFO_STAT_BAD_HEADER), "a FIN of a generation that cannot be counts");
        must(bfo_link_is_empty(&bfo.held_fins) && 0 == world_fences() && 3 == peer->send_mask, "a FIN waits without end, or costs a rail");
    }
    world_rail_fails(&world_btl[0]);
    world_fence_done(0, false);
    fin.wgen = 1; /* the peer had it, and has lost it; the BTL has not reported it yet */
    must(!bfo_failover_fin_is_visible(peer, &fin) && 1 == world_fences(), "a FIN of the next generation does not wait for a fence of it");
    world_fence_done(0, false);
    must(bfo_link_is_empty(&bfo.held_fins) && !peer->declared, "a FIN of the next generation waits without end");
}

static uint8_t name_of_1 = BFO_MAX_RAILS;

static int late_name(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, bfo_rail_info_t *info)
{
    *info = (bfo_rail_info_t){.state = BFO_RAIL_UP, .name = name_of_1};
    return OPAL_SUCCESS;
}

/* A rail gets its name when it connects. Before that the peer does not know the rail. */
static void dead_set_names_only_rails_with_a_name(void)
{
    bfo_handshake_hdr_t notify = {.epoch = 1};
    bfo_peer_t *peer;

    world_btl[1].ext.rail_state = late_name;
    peer = life_begins();
    world_rail_fails(&world_btl[1]);
    must(peer->failover && 1 == peer->send_mask, "a rail without a name is in use after its loss, or costs the failover");
    bfo_failover_dead_set(peer, &notify);
    must(2 == notify.nrails && 0 == notify.dead_mask, "a rail is named that has no name");
    name_of_1 = 1;
    bfo_failover_dead_set(peer, &notify);
    must(2 == notify.dead_mask && 0 == notify.rail_gen[1], "a dead rail is not named after it got its name");
}

/* The second message of a source is unexpected, and there is no memory for it. */
static void lost_unexpected_message_declares_its_source(void)
{
    bfo_params.unexpected_limit = 1; /* so that each message needs its own memory */
    world_begin();
    match_comes(2, 2, 0, 7, 0);
    must(!peer_of_rank(2)->declared, "a message that is kept declares its source");
    no_memory = 1;
    match_comes(2, 2, 0, 7, 1);
    must(0 == no_memory, "no allocation failed");
    must(peer_of_rank(2)->declared, "a message was lost without an error");
}

static const world_case_t cases[] = {
    {"lost_unexpected_message_declares_its_source", lost_unexpected_message_declares_its_source},
    {"message_without_request_goes_again", message_without_request_goes_again},
    {"message_at_fault_on_two_rails_declares_its_peer", message_at_fault_on_two_rails_declares_its_peer},
    {"fin_of_a_rail_that_is_not_there_is_bad", fin_of_a_rail_that_is_not_there_is_bad},
    {"fin_of_a_generation_that_cannot_be_is_bad", fin_of_a_generation_that_cannot_be_is_bad},
    {"dead_set_names_only_rails_with_a_name", dead_set_names_only_rails_with_a_name},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
