/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A message is offered for reading over all rails, and the receiver reads it over those that it likes. Two rails with failover reach
 * rank 1. DESIGN.txt sections 14.3 and 14.5.
 */
#include "world_case.h"

#include "failover/pml_bfo_failover.h"
#include "rails/pml_bfo_rails.h"
#include "door/pml_bfo_recv_api.h"
#include "door/pml_bfo_send_api.h"

void fuzz_progress(void);

enum { SHORT = 3000, LONG = 200000 };

static char room[LONG];

static bfo_peer_t *life_begins(void)
{
    memset(room, 0, sizeof(room));
    world_begin();
    bfo_params.rejoin = true;
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    return peer_of_rank(1);
}

static bfo_recv_t *recv_begins(size_t length)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_irecv(room, length, &ompi_mpi_byte.dt, 1, 4, world_comm[0], &request), "a receive does not start");
    return (bfo_recv_t *) request;
}

/* The sender offers `length` bytes over the rails that it names, or over that of the offer; the offer comes over module b. */
static void offer_comes(int b, size_t length, uint8_t names, size_t handle_size)
{
    struct {
        bfo_rget_hdr_t h;
        char handles[8 * WORLD_HANDLE];
    } rget = {.h = {.rndv = {.msg_length = length, .src_id = 0x800000001u}, .frag_id = 0x900000001u, .src_ptr = 0x10000, .rails = names}};
    const size_t size = sizeof(rget.h) + bfo_rget_handles_size(names, handle_size);
    size_t at = 0;

    bfo_hdr_pack_match(&rget.h.rndv.match, BFO_MSG_RGET, BFO_FLAG_CONTIG, 0, 1, 4, 0);
    for (unsigned name = 0; name < 8; ++name) {
        if (0 == names ? name == (unsigned) b : names >> name & 1) {
            rget.handles[at] = (char) WORLD_HANDLE_OF(name);
            at += handle_size;
        }
    }
    world_receive(&world_btl[b], BFO_TAG(BFO_MSG_RGET), &rget, size, size);
}

static unsigned reads(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < world_posted(); ++i) {
        must(world_find(WORLD_GET) >= 0, "the message is not read");
        n += WORLD_HANDLE_OF(world_btl_of(i) - world_btl) == world_handle_of(i);
    }
    must(world_posted() == n, "a READ does not use the handle of its rail");
    return n;
}

/* ---- sender ----------------------------------------------------------------------------------------- */

static void offer_names_all_rails(void)
{
    bfo_peer_t *peer = life_begins();
    ompi_request_t *request = NULL;
    const bfo_rget_hdr_t *h;
    const char *handles;

    must(OMPI_SUCCESS == bfo_isend(room, SHORT, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "no send");
    must(0 == world_find(BFO_MSG_RGET), "a long message is not offered for reading");
    h = world_posted_message(0);
    handles = (const char *) (h + 1);
    must(3 == h->rails && (char) WORLD_HANDLE_OF(0) == handles[0] && (char) WORLD_HANDLE_OF(1) == handles[WORLD_HANDLE], "the offer lacks a rail");
    must(bfo_hdr_is_valid(BFO_MSG_RGET, h, sizeof(*h) + 2 * WORLD_HANDLE, sizeof(*h) + 2 * WORLD_HANDLE, WORLD_HANDLE), "the offer is not valid");
    must(3 == peer->get_mask, "a rail is not used");
}

static void offer_names_only_rails_in_use(void)
{
    ompi_request_t *request = NULL;
    const bfo_rget_hdr_t *h;

    (void) life_begins();
    world_rail_fails(&world_btl[0]);
    must(OMPI_SUCCESS == bfo_isend(room, SHORT, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "no send");
    h = world_posted_message((unsigned) world_find(BFO_MSG_RGET));
    must(2 == h->rails && WORLD_HANDLE_OF(1) == *(const uint8_t *) (h + 1), "the offer names a lost rail");
}

/* The FIN says how much each rail has carried; the counters of the rails move by that. */
static void sender_counts_what_was_read(void)
{
    bfo_peer_t *peer = life_begins();
    ompi_request_t *request = NULL;
    const bfo_send_t *req;
    bfo_match_hdr_t message = {0};
    bfo_fin_hdr_t fin;
    uint64_t counted[2];

    must(OMPI_SUCCESS == bfo_isend(room, LONG, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "no send");
    req = (const bfo_send_t *) request;
    message.seq = req->match_seq;
    bfo_hdr_pack_fin(&fin, 0, 0, bfo_name_id(&req->rget->name), LONG, &message);
    fin.share[0] = 51;  /* a fifth */
    fin.share[1] = 203; /* less than the rest, because shares are rounded */
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_FIN), &fin, sizeof(fin), sizeof(fin));
    world_complete(0, OPAL_SUCCESS);
    must(REQUEST_COMPLETED == request->req_complete, "the send does not end");
    for (int r = 0; r < 2; ++r) {
        counted[r] = bfo_traffic_of(peer->rails[r].ext)->peer_read_bytes;
    }
    must(LONG / 5 == counted[0] && LONG == counted[0] + counted[1], "bytes are not counted, or not by rail");
}

/* To a peer with one rail an offer needs no name, and a FIN no shares. */
static void one_rail_needs_no_name(void)
{
    bfo_peer_t *peer;
    ompi_request_t *request = NULL;
    const bfo_rget_hdr_t *h;
    bfo_match_hdr_t message = {0};
    bfo_fin_hdr_t fin;
    const bfo_fin_hdr_t *theirs;

    bfo_params.max_rails = 1;
    peer = life_begins();
    must(1 == peer->n_rails && peer->failover, "the peer has more rails than allowed");
    must(OMPI_SUCCESS == bfo_isend(room, SHORT, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "no send");
    must(0 == world_find(BFO_MSG_RGET) && &world_btl[0] == world_btl_of(0), "a long message is not offered for reading");
    h = world_posted_message(0);
    must(0 == h->rails && WORLD_HANDLE_OF(0) == *(const uint8_t *) (h + 1), "the offer lacks the rail's handle, or names the only rail");
    must(bfo_hdr_is_valid(BFO_MSG_RGET, h, sizeof(*h) + WORLD_HANDLE, sizeof(*h) + WORLD_HANDLE, WORLD_HANDLE), "the offer is not valid");
    message.seq = ((bfo_send_t *) request)->match_seq;
    bfo_hdr_pack_fin(&fin, 0, 0, h->frag_id, SHORT, &message);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_FIN), &fin, sizeof(fin), sizeof(fin));
    world_complete(0, OPAL_SUCCESS);
    must(REQUEST_COMPLETED == request->req_complete, "the send does not end");
    must(SHORT == bfo_traffic_of(peer->rails[0].ext)->peer_read_bytes, "bytes are not counted");
    (void) recv_begins(SHORT);
    offer_comes(0, SHORT, 0, WORLD_HANDLE);
    must(1 == reads() && SHORT == world_size_of(0), "the message is not read with the handle of the offer");
    world_complete(0, OPAL_SUCCESS);
    theirs = world_posted_message((unsigned) world_find(BFO_MSG_FIN));
    must(SHORT == theirs->size && 0 == theirs->share[0], "the FIN of a READ over the only rail is wrong");
}

/* A sender with two rails has to learn which of them was used by a process that uses one. */
static void only_rail_is_named_to_a_sender_with_two(void)
{
    const bfo_fin_hdr_t *fin;
    bfo_peer_t *peer;

    bfo_params.max_rails = 1;
    peer = life_begins();
    (void) recv_begins(SHORT);
    offer_comes(0, SHORT, 3, WORLD_HANDLE);
    must(1 == peer->n_rails && 1 == reads(), "the message is not read");
    world_complete(0, OPAL_SUCCESS);
    fin = world_posted_message((unsigned) world_find(BFO_MSG_FIN));
    must(SHORT == fin->size && UINT8_MAX == fin->share[0], "the sender does not learn which rail was used");
}

/* ---- receiver --------------------------------------------------------------------------------------- */

static void long_message_is_read_over_all_rails(void)
{
    bfo_recv_t *req;
    const bfo_fin_hdr_t *fin;
    unsigned by[2] = {0, 0};
    size_t bytes = 0;

    (void) life_begins();
    req = recv_begins(LONG);
    offer_comes(0, LONG, 3, WORLD_HANDLE);
    must(2 * bfo_params.recv_pipeline_depth == reads(), "the pipeline is not as deep as its rails are many");
    while (world_find(WORLD_GET) >= 0) {
        (void) reads();
        ++by[world_btl_of(0) - world_btl];
        bytes += world_size_of(0);
        world_complete(0, OPAL_SUCCESS);
        if (world_find(BFO_MSG_FIN) >= 0) {
            break;
        }
    }
    must(LONG == bytes && req->bytes == LONG, "not every byte is read once");
    must(by[0] * 2 > by[1] && by[1] * 2 > by[0], "one of two rails carries most of the bytes");
    fin = world_posted_message((unsigned) world_find(BFO_MSG_FIN));
    must(0 == fin->fflags && LONG == fin->size && 100 < fin->share[0] && 100 < fin->share[1], "the FIN does not say which rail carried how much");
}

/* A short message takes one rail, and the next one the other. */
static void short_message_is_read_over_one_rail(void)
{
    (void) life_begins();
    (void) recv_begins(SHORT);
    offer_comes(1, SHORT, 3, WORLD_HANDLE);
    must(1 == reads() && SHORT == world_size_of(0), "a short message is not read at once");
}

/* The offer came over a rail that is taken out of service before the receive begins: that rail gets no new work. */
static void drained_rail_reads_nothing(void)
{
    bfo_peer_t *peer = life_begins();
    const bfo_rails_hdr_t rails = {
        .type = BFO_MSG_RAILS, .out = 1, .number = 1, .jobid = world_proc[1]->super.proc_name.jobid, .vpid = world_proc[1]->super.proc_name.vpid};

    offer_comes(0, LONG, 3, WORLD_HANDLE);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_RAILS), &rails, sizeof(rails), sizeof(rails));
    fuzz_progress();
    while (0 <= world_find(BFO_MSG_RAILS)) {
        world_complete((unsigned) world_find(BFO_MSG_RAILS), OPAL_SUCCESS);
    }
    must(2 == peer->get_mask, "the rail is not out");
    (void) recv_begins(LONG);
    must(bfo_params.recv_pipeline_depth == reads(), "the message is not read over the other rail");
    for (unsigned i = 0; i < world_posted(); ++i) {
        must(&world_btl[1] == world_btl_of(i), "a rail that stands out reads");
    }
}

/* Of the rails offered, rail 0 is lost here: the message is read over the other, and no restart is needed. */
static void lost_rail_reads_nothing(void)
{
    bfo_recv_t *req;

    (void) life_begins();
    world_rail_fails(&world_btl[0]);
    req = recv_begins(LONG);
    offer_comes(0, LONG, 3, WORLD_HANDLE);
    must(BFO_RECV_ACTIVE == bfo_se_state(req->m.se), "a message is restarted although a rail can read it");
    must(bfo_params.recv_pipeline_depth == reads() && &world_btl[1] == world_btl_of(0), "the message is not read over the other rail");
}

/* R6: no rail that is offered is UP. */
static void offer_of_lost_rails_is_restarted(void)
{
    bfo_recv_t *req;

    (void) life_begins();
    world_rail_fails(&world_btl[0]);
    req = recv_begins(LONG);
    offer_comes(1, LONG, 1, WORLD_HANDLE);
    must(BFO_RECV_ERRL == bfo_se_state(req->m.se) && world_find(WORLD_GET) < 0, "a message is read over a lost rail");
}

/* Names that no rail has here, and handles of another size, are never used: the message is copied. */
static void odd_offers_are_copied(void)
{
    static const struct {
        int b;
        uint8_t names;
    } odd[] = {{0, 0x80}, {1, 0x44}};

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); ++i) {
        (void) life_begins();
        (void) recv_begins(LONG);
        offer_comes(odd[i].b, LONG, odd[i].names, WORLD_HANDLE);
        must(world_find(WORLD_GET) < 0 && world_find(BFO_MSG_ACK) >= 0, "a rail that does not exist reads");
        world_drain();
        world_end();
    }
    (void) life_begins();
    (void) recv_begins(LONG);
    world_btl[0].super.btl_registration_handle_size = 4; /* this module's handles are shorter than those of the peer's other rails */
    offer_comes(0, LONG, 3, 4);
    world_btl[0].super.btl_registration_handle_size = WORLD_HANDLE;
    must(world_find(WORLD_GET) < 0 && world_find(BFO_MSG_ACK) >= 0, "handles are read beyond the end of the header");
}

/* H38: a READ over one rail fails. The restart waits for the READs of the other rail, which would write into the buffer later. */
static void restart_waits_for_all_reads(void)
{
    bfo_handshake_hdr_t notify = {.match = {.type = BFO_MSG_NOTIFY}, .src_id = 0x800000001u, .epoch = 1, .nrails = 2, .dead_mask = 1};
    bfo_recv_t *req;

    (void) life_begins();
    req = recv_begins(LONG);
    offer_comes(1, LONG, 3, WORLD_HANDLE);
    world_rail_fails(&world_btl[0]);
    for (unsigned i = 0; i < world_posted();) {
        if (&world_btl[0] == world_btl_of(i)) {
            world_complete(i, OPAL_ERROR);
            i = 0;
        } else {
            ++i;
        }
    }
    must(BFO_RECV_ERRL == bfo_se_state(req->m.se), "a READ that fails costs no restart");
    notify.match.seq = req->match_seq;
    notify.dst_id = bfo_name_id(&req->name);
    notify.jobid = world_proc[1]->super.proc_name.jobid;
    notify.vpid = world_proc[1]->super.proc_name.vpid;
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_NOTIFY), &notify, sizeof(notify), sizeof(notify));
    while (world_fences() > 0) {
        world_fence_done(0, false);
    }
    must(world_find(BFO_MSG_RERR) >= 0, "the sender is not told");
    world_complete((unsigned) world_find(BFO_MSG_RERR), OPAL_SUCCESS);
    while (world_find(WORLD_GET) >= 0) {
        must(BFO_RECV_QUIESCE == bfo_se_state(req->m.se), "the restart does not wait for a READ");
        world_complete((unsigned) world_find(WORLD_GET), OPAL_SUCCESS);
    }
    must(BFO_RECV_WAITRTS == bfo_se_state(req->m.se), "the restart does not begin");
}

/* ---- FINs and offers that a rail loses -------------------------------------------------------------------- */

/* A message of this kind is posted; it arrives. */
static void answer_goes(unsigned type, const char *what)
{
    const int n = world_find(type);

    must(0 <= n && 1 == world_posted(), what);
    world_complete((unsigned) n, OPAL_SUCCESS);
}

/* One of three rails has no failover. Therefore a WRITE whose FIN is lost may not have been written, but a READ is over. */
static void fin_to_a_process_without_failover(bool wrote)
{
    mca_bml_base_endpoint_t *e = world_proc[1]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
    mca_bml_base_btl_t *third = mca_bml_base_btl_array_insert(&e->btl_send);
    ompi_request_t *request = NULL;
    const bfo_peer_t *peer;
    int fin;

    *third = (mca_bml_base_btl_t){.btl = &world_btl[2].super, .btl_endpoint = (struct mca_btl_base_endpoint_t *) &world_btl[2]};
    bfo_params.use_get = !wrote;
    peer = life_begins();
    must(3 == peer->n_rails && !peer->failover, "a rail without failover does not count");
    if (wrote) {
        must(OMPI_SUCCESS == bfo_isend(room, SHORT, &ompi_mpi_byte.dt, 1, 4, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "no send");
        answer_goes(BFO_MSG_RNDV, "a message is not announced");
        world_put_comes(&world_btl[0], (bfo_send_t *) request, ((bfo_send_t *) request)->rts_length, 1000);
    } else {
        (void) recv_begins(SHORT);
        world_rget_comes(&world_btl[0], SHORT, 0);
    }
    answer_goes(wrote ? WORLD_PUT : WORLD_GET, "no byte moves");
    fin = world_find(BFO_MSG_FIN);
    must(0 <= fin && &world_btl[0] == world_btl_of((unsigned) fin), "the FIN leaves the rail of its bytes");
    world_complete((unsigned) fin, OPAL_ERROR);
    must(wrote == peer->declared, "a process is given up for a READ that is over, or a WRITE is believed that may be lost");
    must(wrote == (0 > world_find(BFO_MSG_FIN)), "the FIN of a READ is not sent again, or that of a WRITE is");
}

static void fin_of_a_read_is_sent_again_without_failover(void)
{
    fin_to_a_process_without_failover(false);
}

static void fin_of_a_write_is_not_sent_again_without_failover(void)
{
    fin_to_a_process_without_failover(true);
}

/* The message is offered by rail 1 while rail 0 is away. Rail 0 comes back, rail 1 is lost, and there is no memory to register the message. */
static void offer_without_a_registration_is_made_later(void)
{
    bfo_peer_t *peer;
    ompi_request_t *request = NULL;

    bfo_params.use_put = false;
    bfo_params.last_rail_timeout = 60;
    peer = life_begins();
    world_rail_fails(&world_btl[0]);
    world_fence_done(0, false);
    must(OMPI_SUCCESS == bfo_isend(room, SHORT, &ompi_mpi_byte.dt, 1, 4, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "no send");
    must(1 == world_posted() && 0 == world_find(BFO_MSG_RGET), "no offer");
    world_rail_returns(&world_btl[0]);
    world_refuse_memory = 1;
    world_rail_fails(&world_btl[1]);
    world_fence_done(0, false);
    must(0 == world_refuse_memory && 0 == world_posted() && 1 == bfo.n_pending && !peer->declared, "a message without a registration is lost");
    fuzz_progress();
    must(1 == world_posted() && 0 == world_find(BFO_MSG_RGET) && &world_btl[0] == world_btl_of(0), "the message is not offered when there is memory");
}

static const world_case_t cases[] = {
    {"offer_names_all_rails", offer_names_all_rails},
    {"offer_names_only_rails_in_use", offer_names_only_rails_in_use},
    {"sender_counts_what_was_read", sender_counts_what_was_read},
    {"one_rail_needs_no_name", one_rail_needs_no_name},
    {"only_rail_is_named_to_a_sender_with_two", only_rail_is_named_to_a_sender_with_two},
    {"long_message_is_read_over_all_rails", long_message_is_read_over_all_rails},
    {"short_message_is_read_over_one_rail", short_message_is_read_over_one_rail},
    {"drained_rail_reads_nothing", drained_rail_reads_nothing},
    {"lost_rail_reads_nothing", lost_rail_reads_nothing},
    {"offer_of_lost_rails_is_restarted", offer_of_lost_rails_is_restarted},
    {"odd_offers_are_copied", odd_offers_are_copied},
    {"restart_waits_for_all_reads", restart_waits_for_all_reads},
    {"offer_without_a_registration_is_made_later", offer_without_a_registration_is_made_later},
    {"fin_of_a_read_is_sent_again_without_failover", fin_of_a_read_is_sent_again_without_failover},
    {"fin_of_a_write_is_not_sent_again_without_failover", fin_of_a_write_is_not_sent_again_without_failover},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
