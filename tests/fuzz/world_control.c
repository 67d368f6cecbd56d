/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Control messages: what becomes of those without a request that come back with an error, and forged messages of the restart handshake,
 * which change nothing. Two rails with failover reach rank 1. DESIGN.txt sections 7 and 14.6.
 */
#include "world_case.h"

#include "door/pml_bfo_recv_api.h"
#include "door/pml_bfo_send_api.h"
#include "rails/pml_bfo_post.h"

void fuzz_progress(void);

static char room[6000];

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

static bfo_peer_t *patient_life_begins(void)
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
        const bfo_peer_t *peer = patient_life_begins();
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
        bfo_peer_t *peer = patient_life_begins();
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

static int unknown_state(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, bfo_rail_info_t *info)
{
    return OPAL_ERR_NOT_FOUND;
}

static void nameless_life_begins(void)
{
    world_btl[0].ext.rail_state = world_btl[1].ext.rail_state = unknown_state;
    world_begin();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    must(!peer_of_rank(1)->failover, "the PML uses failover over rails without names");
}

/* A READ has its bytes when it ends. */
static void fin_of_a_read_is_sent_again_without_failover(void)
{
    bfo_hdr_t sent;

    nameless_life_begins();
    (void) control_posted(peer_of_rank(1), READ_FIN, 1, &sent);
    world_complete(0, OPAL_ERROR);
    must(1 == world_posted() && 0 == memcmp(&sent, world_posted_message(0), sizeof(sent.fin)), "a FIN does not go again as it was");
    must(!peer_of_rank(1)->declared, "a rail is lost, and its peer is declared");
}

/* Without names of rails the receiver cannot wait for the bytes of a WRITE whose FIN goes another way. */
static void fin_of_a_write_is_not_sent_again_without_failover(void)
{
    ompi_request_t *request = NULL;
    const bfo_send_t *req;

    bfo_params.use_get = false;
    nameless_life_begins();
    must(OMPI_SUCCESS == bfo_isend(room, 6000, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request),
         "a send does not start");
    req = (const bfo_send_t *) request;
    world_complete(0, OPAL_SUCCESS);
    world_put_comes(&world_btl[0], req, 0, 6000);
    while (world_find(WORLD_PUT) >= 0) {
        world_complete((unsigned) world_find(WORLD_PUT), OPAL_SUCCESS);
    }
    must(0 == world_find(BFO_MSG_FIN), "no FIN is sent");
    must(OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, 1, 7, world_comm[0], &request), "no receive");
    world_complete(0, OPAL_ERROR);
    must(world_find(BFO_MSG_FIN) < 0, "a FIN may overtake its bytes");
    must(peer_of_rank(1)->declared && is_complete(request) && MPI_ERR_OTHER == request->req_status.MPI_ERROR,
         "a FIN is lost, and nobody hears of that");
}

/* ---- forged messages of the handshake -------------------------------------------------------------------- */

static void handshake_comes(bfo_handshake_hdr_t h)
{
    h.nrails = 2;
    h.vpid = 1;
    h.jobid = 0 == h.jobid ? 77 : h.jobid;
    world_receive(&world_btl[1], BFO_TAG(h.match.type), &h, sizeof(h), sizeof(h));
}

static void rndv_comes(uint32_t length, const bfo_restart_hdr_t *restart)
{
    struct {
        bfo_rndv_hdr_t h;
        bfo_restart_hdr_t restart;
    } rndv = {.h = {.msg_length = length, .src_id = 0x800000001u}};
    const size_t size = NULL == restart ? sizeof(rndv.h) : sizeof(rndv);

    bfo_hdr_pack_match(&rndv.h.match, BFO_MSG_RNDV, NULL == restart ? 0 : BFO_FLAG_RESTART, 0, 1, 7, 0);
    rndv.restart = NULL == restart ? rndv.restart : *restart;
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_RNDV), &rndv, size, size);
}

static void rest_comes(const bfo_recv_t *req, uint16_t epoch)
{
    struct {
        bfo_frag_hdr_t h;
        char data[600];
    } frag;

    memset(frag.data, 0x70 + epoch, sizeof(frag.data));
    bfo_hdr_pack_frag(&frag.h, epoch, req->src_id, bfo_name_id(&req->name), 0);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_FRAG), &frag, sizeof(frag), sizeof(frag));
}

static bfo_recv_t *recv_is_active(ompi_request_t **request)
{
    world_begin();
    must(OMPI_SUCCESS == bfo_irecv(room, 600, &ompi_mpi_byte.dt, 1, 7, world_comm[0], request), "no receive");
    rndv_comes(600, NULL);
    must(0 == world_find(BFO_MSG_ACK), "a rendezvous is not answered");
    world_complete(0, OPAL_SUCCESS);
    return (bfo_recv_t *) *request;
}

/* A NOTIFY from another job, of an epoch that is not the next, and with a rail's generation that cannot be there yet. */
static void forged_notify_restarts_nothing(void)
{
    ompi_request_t *request = NULL;
    const bfo_recv_t *req = recv_is_active(&request);
    bfo_handshake_hdr_t notify = {.match = {.type = BFO_MSG_NOTIFY, .tag = 7}, .src_id = req->src_id, .dst_id = bfo_name_id(&req->name), .epoch = 1};

    notify.jobid = 78;
    handshake_comes(notify);
    must(1 == bfo_local_stat(BFO_STAT_WRONG_SOURCE), "a message of another job counts");
    notify.jobid = 77;
    notify.epoch = 2;
    handshake_comes(notify);
    must(1 == bfo_local_stat(BFO_STAT_STALE), "a message of an impossible epoch counts");
    notify.epoch = notify.dead_mask = notify.rail_gen[0] = 1;
    handshake_comes(notify);
    must(1 == bfo_local_stat(BFO_STAT_BAD_HEADER), "a message that names an impossible generation counts");
    must(0 == world_posted() && 0 == world_fences() && 3 == peer_of_rank(1)->send_mask, "a forged NOTIFY is answered, or costs a rail");
    rest_comes(req, 0);
    must(is_well(request) && 0x70 == room[0] && 0x70 == room[599], "a receive does not end well after a forged NOTIFY");
}

/* The receive waits for the restart of its message. Its identifier alone is not enough. */
static void forged_restart_is_not_received(void)
{
    ompi_request_t *request = NULL;
    const bfo_recv_t *req = recv_is_active(&request);
    bfo_restart_hdr_t restart = {.dst_id = bfo_name_id(&req->name), .epoch = 2};

    handshake_comes((bfo_handshake_hdr_t){.match = {.type = BFO_MSG_NOTIFY, .tag = 7}, .src_id = req->src_id, .dst_id = restart.dst_id, .epoch = 1});
    must(0 == world_find(BFO_MSG_RACK), "a restart does not begin");
    world_complete(0, OPAL_SUCCESS);
    rndv_comes(600, &restart);
    restart.epoch = 1;
    rndv_comes(500, &restart);
    must(2 == bfo_local_stat(BFO_STAT_STALE) && 0 == world_posted(), "a restart of another epoch or length is answered");
    rest_comes(req, 1);
    must(!is_complete(request), "bytes count before the restart");
    rndv_comes(600, &restart);
    must(0 == world_find(BFO_MSG_ACK), "the restart is not answered");
    world_complete(0, OPAL_SUCCESS);
    rest_comes(req, 1);
    must(is_well(request) && 600 == request->req_status._ucount && 0x71 == room[0] && 0x71 == room[599], "a restarted receive does not end well");
}

/* The receiver's RERR names another attempt, or comes when only a RACK or a NACK can. */
static void forged_rerr_ends_nothing(void)
{
    bfo_handshake_hdr_t h = {.match = {.type = BFO_MSG_RERR}, .dst_id = 0x700000001u};
    ompi_request_t *request = NULL;
    const bfo_send_t *req;
    bfo_ack_hdr_t ack;

    bfo_params.use_get = bfo_params.use_put = false;
    world_begin();
    must(OMPI_SUCCESS == bfo_isend(room, 600, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_SYNCHRONOUS, world_comm[0], &request),
         "a send does not start");
    req = (const bfo_send_t *) request;
    h.src_id = bfo_name_id(&req->name);
    world_complete(0, OPAL_SUCCESS);
    bfo_hdr_pack_ack(&ack, 0, h.src_id, h.dst_id, req->rts_length, 600 - req->rts_length);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_ACK), &ack, sizeof(ack), sizeof(ack));
    must(0 == world_find(BFO_MSG_FRAG), "no FRAG is posted");
    h.epoch = 1;
    handshake_comes(h);
    must(BFO_SEND_STREAM == bfo_se_state(req->m.se), "a RERR of another attempt ends this attempt");
    h.epoch = 0;
    handshake_comes(h);
    while (world_find(BFO_MSG_FRAG) >= 0) {
        world_complete((unsigned) world_find(BFO_MSG_FRAG), OPAL_SUCCESS);
    }
    must(0 == world_find(BFO_MSG_NOTIFY), "a RERR of this attempt does not end it");
    world_complete(0, OPAL_SUCCESS);
    h.epoch = 1;
    handshake_comes(h);
    must(!is_complete(request) && 0 == world_posted(), "a RERR ends a send that waits for a RACK, or restarts it");
    h.match.type = BFO_MSG_RACK;
    handshake_comes(h);
    must(0 == world_find(BFO_MSG_RNDV) && 0 != (((const bfo_hdr_t *) world_posted_message(0))->common.flags & BFO_FLAG_RESTART),
         "no restart after a RACK");
    must(2 == bfo_local_stat(BFO_STAT_STALE), "not each forged RERR is counted");
}

static const world_case_t cases[] = {
    {"message_without_request_goes_again", message_without_request_goes_again},
    {"message_at_fault_on_two_rails_declares_its_peer", message_at_fault_on_two_rails_declares_its_peer},
    {"fin_of_a_read_is_sent_again_without_failover", fin_of_a_read_is_sent_again_without_failover},
    {"fin_of_a_write_is_not_sent_again_without_failover", fin_of_a_write_is_not_sent_again_without_failover},
    {"forged_notify_restarts_nothing", forged_notify_restarts_nothing},
    {"forged_restart_is_not_received", forged_restart_is_not_received},
    {"forged_rerr_ends_nothing", forged_rerr_ends_nothing},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
