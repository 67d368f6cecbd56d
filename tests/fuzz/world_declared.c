/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Peers that are declared, and what ends with them; peers that cannot be talked to; communicators freed with messages left; messages that
 * have no communicator yet, no memory, or a source that nobody can name. DESIGN.txt sections 8, 11, 14.
 */
#include "world_case.h"

#include "door/pml_bfo_recv_api.h"
#include "door/pml_bfo_recv_probe.h"
#include "door/pml_bfo_send_api.h"
#include "failover/pml_bfo_failover.h"
#include "failover/pml_bfo_failover_peer.h"
#include "rails/pml_bfo_failover_announce.h"
#include "recv/pml_bfo_recv_place.h"

#include "opal/mca/pmix/pmix.h"

static char room[9000];

/* ---- communicators freed with messages left ---------------------------------------------------------------- */

static bfo_lane_t *lane(int rank)
{
    return bfo_comm_of(world_comm[1])->lanes[rank];
}

static void early_message_ends_with_its_communicator(void)
{
    ompi_request_t *request = NULL;
    char got[8] = "";

    world_begin();
    world_comm_add();
    match_comes(1, 1, 5, 7, 1); /* this message overtakes number 0 */
    must(1 == lane(1)->match.n_early, "a message does not wait for the message before it");
    world_comm_remove();
    match_comes(0, 1, 5, 7, 0);
    world_comm_add();
    must(OMPI_SUCCESS == bfo_irecv(got, 8, &ompi_mpi_byte.dt, 1, 9, world_comm[1], &request), "no receive");
    match_comes(0, 1, 5, 9, 2);
    must(0 == bfo_comm_of(world_comm[1])->match.n_unexpected, "a message of the old communicator is in the new one");
    must(is_well(request) && 0 == memcmp(got, text, 8), "the new communicator waits for a message of the old one");
    request->req_free(&request);
}

/* There is no memory when a communicator is freed. Its numbers must go on in the next communicator nevertheless. */
static void numbers_outlive_their_communicator(void)
{
    ompi_request_t *request = NULL;
    char got[8];

    world_begin();
    world_comm_add();
    match_comes(0, 1, 5, 7, 0);
    no_memory = 1000;
    world_comm_remove();
    no_memory = 0;
    world_comm_add();
    must(OMPI_SUCCESS == bfo_irecv(got, 8, &ompi_mpi_byte.dt, 1, 9, world_comm[1], &request), "no receive");
    match_comes(0, 1, 5, 9, 1);
    must(is_well(request), "the first message of the new communicator is taken for a later message");
    request->req_free(&request);
}

/* ---- a declared peer ------------------------------------------------------------------------------------ */

static ompi_request_t *taken, *healthy;
static bfo_comm_t *locked;

static void matched_and_posted_again(void)
{
    bfo_recv_t *req = (bfo_recv_t *) taken;
    bfo_match_hdr_t h;

    bfo_match_withdraw(&locked->match, &req->posted); /* the other thread has found the receive, and goes on with it */
    bfo_unlock(&locked->lock);
    bfo_hdr_pack_match(&h, BFO_MSG_MATCH, 0, 0, 1, 7, 0);
    bfo_recv_begin_match(req, locked->lanes[1], &h, sizeof(h));
    must(is_complete(taken), "a matched receive does not end");
    taken->req_free(&taken);
    must(OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, 2, 7, world_comm[0], &healthy), "no receive");
}

/* Another thread has the first communicator's lock from here on. */
static void first_communicator_is_busy(void)
{
    bfo_unlock(&locked->lock);
    locked = bfo_comm_of(world_comm[0]);
    bfo_lock(&locked->lock);
    while_waiting = matched_and_posted_again;
}

/* While a peer is declared, a receive from it ends in another thread, and its request is used again for a receive from a healthy
 * process. */
static void declaration_leaves_other_receives_alone(void)
{
    opal_uses_threads = true;
    bfo_params.free_list_max = 1;
    world_begin();
    world_comm_add();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    (void) bfo_lane(bfo_comm_of(world_comm[1]), 1);
    must(OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, 1, 7, world_comm[0], &taken), "no receive");
    locked = bfo_comm_of(world_comm[1]);
    bfo_lock(&locked->lock);
    while_waiting = first_communicator_is_busy;
    bfo_failover_declare(peer_of_rank(1), "a test");
    if (NULL == healthy) {
        must(is_complete(taken) && MPI_ERR_OTHER == taken->req_status.MPI_ERROR, "a receive from a declared peer does not end");
    } else {
        must(!is_complete(healthy), "a receive from a healthy process ends with the error of another process");
    }
}

static void posted_receives_of_a_declared_peer_end(void)
{
    ompi_request_t *request[5] = {NULL};
    const int source[5] = {1, 1, 1, 2, MPI_ANY_SOURCE}, tag[5] = {7, 8, MPI_ANY_TAG, 7, 7};

    world_begin();
    for (int i = 0; i < 5; ++i) {
        must(OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, source[i], tag[i], world_comm[0], &request[i]), "no receive");
    }
    (void) bfo_peer_connect(bfo_peer_get(world_proc[1]));
    bfo_failover_declare(peer_of_rank(1), "a test");
    for (int i = 0; i < 5; ++i) {
        must((i < 3) == is_complete(request[i]), "not exactly the receives that name the declared peer end");
    }
}

/* A receive from any source waits as long as a process is left that could send to it. */
static void receives_from_any_source_end_with_the_last_peer(void)
{
    ompi_request_t *request[3] = {NULL};
    const int tag[3] = {7, MPI_ANY_TAG, 7};
    int is_there = 0;

    world_begin();
    match_comes(2, 2, 0, 9, 0);
    for (int i = 0; i < 2; ++i) {
        must(OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, MPI_ANY_SOURCE, tag[i], world_comm[0], &request[i]), "no receive");
    }
    must(is_complete(request[1]) && !is_complete(request[0]), "a message is not received from any source");
    for (int rank = 1; rank < WORLD_RANKS; ++rank) {
        must(!is_complete(request[0]), "a receive from any source ends although a process is left");
        must(OMPI_SUCCESS == bfo_iprobe(MPI_ANY_SOURCE, 7, world_comm[0], &is_there, MPI_STATUS_IGNORE), "a probe fails although a process is left");
        (void) bfo_peer_connect(bfo_peer_get(world_proc[rank]));
        bfo_failover_declare(peer_of_rank(rank), "a test");
    }
    must(is_complete(request[0]) && MPI_ERR_OTHER == request[0]->req_status.MPI_ERROR, "a receive waits for processes that are given up");
    must(OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, MPI_ANY_SOURCE, tag[2], world_comm[0], &request[2]), "no receive");
    must(is_complete(request[2]) && MPI_ERR_OTHER == request[2]->req_status.MPI_ERROR, "a new receive waits for processes that are given up");
    must(MPI_ERR_OTHER == bfo_iprobe(MPI_ANY_SOURCE, 7, world_comm[0], &is_there, MPI_STATUS_IGNORE),
         "a probe waits for processes that are given up");
}

/* The peer's rails are still being closed. A send that was never posted need not wait for that. */
static void send_to_a_declared_peer_fails_at_once(void)
{
    ompi_request_t *request = NULL;

    world_begin();
    (void) bfo_peer_connect(bfo_peer_get(world_proc[1]));
    bfo_failover_declare(peer_of_rank(1), "a test");
    must(world_fences() > 0, "no rail is being closed");
    must(OMPI_SUCCESS == bfo_isend(room, 3000, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request),
         "a send does not start");
    must(is_complete(request) && MPI_ERR_OTHER == request->req_status.MPI_ERROR, "a send to a declared peer waits");
}

/* ---- numbers that are never sent, messages that cannot be kept ------------------------------------------------ */

/* A send to a peer that cannot be reached yet uses no number. */
static void unreachable_peer_costs_no_number(void)
{
    void **place = &world_proc[1]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML], *const endpoint = *place;
    ompi_request_t *request = NULL;
    const bfo_match_hdr_t *h;

    world_begin();
    *place = NULL;
    if (OMPI_SUCCESS == bfo_isend(room, 3000, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request)) {
        must(MPI_SUCCESS != request->req_status.MPI_ERROR, "a send without a rail succeeds");
    }
    *place = endpoint;
    must(OMPI_SUCCESS == bfo_isend(room, 8, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "a send does not start");
    must(1 == world_posted(), "a message is not posted");
    h = world_posted_message(0);
    must(0 == h->seq, "the receiver waits for a number that is never sent");
}

/* A message comes before its communicator, there is no memory for it, and the BTL cannot name its source. */
static void lost_orphan_declares_its_source(void)
{
    ompi_request_t *request = NULL;

    bfo_params.unexpected_limit = 1; /* so that each message needs its own memory */
    world_begin();
    no_memory = 1;
    match_comes(2, 2, 5, 7, 0);
    must(0 == no_memory, "no allocation failed");
    world_comm_add();
    must(OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, 2, 7, world_comm[1], &request), "no receive");
    match_comes(2, 2, 5, 7, 1);
    must(is_complete(request), "a receive waits without end for a lost message");
    must(MPI_ERR_OTHER == request->req_status.MPI_ERROR && peer_of_rank(2)->declared, "a message was lost without an error");
}

/* The first message of a source needs memory for the peer, for its lane and for the counters of the lane. Number `after` fails. */
static void message_without_memory_declares_its_source(unsigned after)
{
    ompi_request_t *request = NULL;

    world_begin();
    no_memory_after = after;
    no_memory = 1;
    match_comes(2, 2, 0, 7, 0);
    must(0 == no_memory, "no allocation failed");
    must(OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, 2, 7, world_comm[0], &request), "no receive");
    match_comes(2, 2, 0, 7, 1);
    must(is_complete(request), "a receive waits without end for a lost message");
    must(MPI_ERR_OTHER == request->req_status.MPI_ERROR && peer_of_rank(2)->declared, "a message was lost without an error");
}

static void lost_peer_declares_its_source(void)
{
    message_without_memory_declares_its_source(0);
}

static void lost_lane_declares_its_source(void)
{
    message_without_memory_declares_its_source(1);
}

static void lost_counters_declare_their_source(void)
{
    message_without_memory_declares_its_source(2);
}

/* Without memory for identifiers the PML refuses requests; it makes them when there is memory again. */
static void request_without_identifier_is_refused(void)
{
    ompi_request_t *request = NULL;

    bfo_params.free_list_num = 0;
    world_begin();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    (void) bfo_lane(bfo_comm_of(world_comm[0]), 1);
    no_memory = 1000;
    must(OMPI_ERR_OUT_OF_RESOURCE == bfo_isend(room, 3000, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request),
         "a send without identifier is not refused");
    must(OMPI_ERR_OUT_OF_RESOURCE == bfo_irecv(room, 3000, &ompi_mpi_byte.dt, 1, 7, world_comm[0], &request),
         "a receive without identifier is not refused");
    no_memory = 0;
    must(OMPI_SUCCESS == bfo_isend(room, 3000, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request),
         "a send is refused although there is memory");
    must(0 != ((bfo_send_t *) request)->name.gen, "a send has no identifier");
}

/* ---- messages that nobody can place --------------------------------------------------------------------- */

static void orphan_of_another_communicator_waits_on(void)
{
    ompi_request_t *request = NULL;

    world_begin();
    match_comes(2, 2, 9, 7, 0);
    match_comes(0, 1, 5, 7, 0);
    world_comm_add();
    must(!bfo_link_is_empty(&bfo.orphans), "a communicator takes the message of another communicator");
    must(OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, 1, 7, world_comm[1], &request), "no receive");
    must(is_well(request) && 0 == memcmp(room, text, 8), "a communicator does not take its own message");
}

/* There is no memory for a message of `rank` in communicator `ctx`, and its BTL cannot name its source. */
static void message_is_lost(int rank, uint16_t ctx)
{
    no_memory = 1;
    match_comes(2, rank, ctx, 7, 0);
    must(0 == no_memory, "no allocation failed");
}

/* Ranks 1 and 2 each lose a message, but in different communicators. */
static void hole_is_of_one_source_and_communicator(void)
{
    ompi_request_t *request[2] = {NULL};

    bfo_params.unexpected_limit = 1; /* so that each message needs its own memory */
    world_begin();
    message_is_lost(2, 6);
    message_is_lost(1, 5);
    world_comm_add();
    must(OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, 2, 7, world_comm[1], &request[0]), "no receive");
    match_comes(2, 2, 5, 7, 0);
    must(is_well(request[0]), "a message that was lost in another communicator declares its source");
    (void) bfo_irecv(room, 8, &ompi_mpi_byte.dt, 1, 7, world_comm[1], &request[1]);
    must(peer_of_rank(1)->declared && !peer_of_rank(2)->declared, "not the source of the lost message is declared");
}

/* More messages are lost than the list of holes has room for. Any source may have lost its message. */
static void holes_beyond_the_room_are_everywhere(void)
{
    ompi_request_t *request = NULL;

    bfo_params.unexpected_limit = 1;
    world_begin();
    for (int i = 0; i < 40; ++i) {
        message_is_lost(2, 6);
    }
    world_comm_add();
    (void) bfo_irecv(room, 8, &ompi_mpi_byte.dt, 1, 7, world_comm[1], &request);
    must(peer_of_rank(1)->declared, "a message that may be lost is waited for");
}

/* ---- reports of a BTL ----------------------------------------------------------------------------------- */

/* The PML knows nothing of rank 2 yet; then the PML knows the process, but has no rail to it. */
static void reports_about_a_stranger_change_nothing(void)
{
    world_btl_t *btl = &world_btl[0];
    opal_proc_t *proc = &world_proc[2]->super;

    world_begin();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    for (int i = 0; i < 2; ++i) {
        btl->ext.fence_done(&btl->super, proc, 0, 1, false);
        btl->ext.rail_restored(&btl->super, proc, 0, 2);
        btl->ext.rail_trusted(&btl->super, proc, 0, 2);
        btl->ext.peer_dead(&btl->super, proc, "a test");
        bfo_failover_btl_error(&btl->super, MCA_BTL_ERROR_FLAGS_NONFATAL, proc, NULL);
        must(0 == world_posted(), "a report about a stranger is answered");
        must(!bfo_peer_get(world_proc[2])->declared && !peer_of_rank(1)->declared, "a report about a stranger declares a process");
    }
    must(OMPI_SUCCESS == bfo_peer_connect(peer_of_rank(2)), "a report about a stranger hinders the connection");
}

static void only_memory_cannot_fail(void)
{
    static const char *const names[] = {"self", "vader", "sm", "smcuda", "tcp"};
    mca_btl_base_component_t component = {.btl_version = {.mca_type_name = "btl"}};
    mca_btl_base_module_t btl = {.btl_component = &component};

    for (int i = 0; i < 5; ++i) {
        strcpy(component.btl_version.mca_component_name, names[i]);
        must((i < 4) == bfo_failover_cannot_fail(&btl), names[i]);
    }
}

/* A rail fails before its process was contacted. Then a rail to another process fails, and a message of that rail comes back. */
static void failure_of_a_strange_rail_costs_nothing(void)
{
    const bfo_match_hdr_t h = {.type = BFO_MSG_MATCH, .tag = 7};
    world_btl_t *btl = &world_btl[0];

    world_begin();
    no_memory = 2; /* for the process */
    bfo_failover_btl_error(&btl->super, MCA_BTL_ERROR_FLAGS_NONFATAL, &world_proc[1]->super, "a test");
    btl->ext.peer_dead(&btl->super, &world_proc[1]->super, "a test");
    must(0 == no_memory && NULL == peer_of_rank(1), "a report costs a process that nobody has contacted");
    (void) bfo_peer_get(world_proc[1]);
    bfo_failover_btl_error(&btl->super, MCA_BTL_ERROR_FLAGS_NONFATAL, &world_proc[1]->super, "a test");
    must(OMPI_SUCCESS == bfo_peer_connect(peer_of_rank(1)) && 3 == peer_of_rank(1)->send_mask, "a failure before the contact costs a rail");
    bfo_failover_btl_error(&world_btl[2].super, MCA_BTL_ERROR_FLAGS_NONFATAL, &world_proc[1]->super, "a test");
    btl->ext.failed_frag(&btl->super, (struct mca_btl_base_endpoint_t *) &world_btl[2], BFO_TAG(BFO_MSG_MATCH), &h, sizeof(h), OPAL_ERROR);
    must(3 == peer_of_rank(1)->send_mask && !peer_of_rank(1)->declared && 0 == peer_of_rank(1)->closed,
         "a process pays for the rail of another process");
    must(0 == world_posted() && 0 == world_fences() && 0 == bfo_local_stat(BFO_STAT_RAILS_LOST), "the message of a strange rail is sent again");
}

/* The port may have rails to any process, but only the rail to rank 2 is one of its rails. */
static void port_without_failover_costs_its_processes(void)
{
    ompi_request_t *request[2] = {NULL};

    world_begin();
    for (int rank = 1; rank <= 2; ++rank) {
        must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[rank]))
                 && OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, rank, 7, world_comm[0], &request[rank - 1]),
             "no receive");
    }
    bfo_failover_btl_error(&world_btl[2].super, MCA_BTL_ERROR_FLAGS_NONFATAL, NULL, "a test");
    must(peer_of_rank(2)->declared && is_complete(request[1]) && MPI_ERR_OTHER == request[1]->req_status.MPI_ERROR,
         "a receive waits for a lost port");
    must(!peer_of_rank(1)->declared && 3 == peer_of_rank(1)->send_mask && !is_complete(request[0]),
         "a process pays for a port that does not reach it");
}

/* A message of btl_sendi comes back, and the other rail refuses it. */
static void message_that_cannot_be_sent_again_costs_its_peer(void)
{
    ompi_request_t *request = NULL;

    world_begin();
    must(OMPI_SUCCESS == bfo_isend(room, 8, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request)
             && OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, 1, 7, world_comm[0], &request),
         "no request");
    must(1 == world_posted() && 0 == world_find(BFO_MSG_MATCH), "a message is not posted");
    world_refuse_dead = 1;
    world_complete(0, OPAL_ERROR);
    must(0 == world_refuse_dead && 0 == world_posted(), "a message is not sent again");
    must(peer_of_rank(1)->declared && is_complete(request) && MPI_ERR_OTHER == request->req_status.MPI_ERROR, "a message is lost without an error");
}

/* The network has begun to read, and may write into the buffer later: the bytes are not copied in its place, and the receive fails. */
static void failed_read_of_a_network_fails_the_receive(void)
{
    bfo_rget_hdr_t h = {.rndv = {.msg_length = 3000, .src_id = 0x100000001u}, .frag_id = 0x100000001u, .src_ptr = 0x10000};
    ompi_request_t *request = NULL;

    world_begin();
    must(OMPI_SUCCESS == bfo_irecv(room, 3000, &ompi_mpi_byte.dt, 2, 7, world_comm[0], &request), "no receive");
    bfo_hdr_pack_match(&h.rndv.match, BFO_MSG_RGET, BFO_FLAG_CONTIG, 0, 2, 7, 0);
    world_receive(&world_btl[2], BFO_TAG(BFO_MSG_RGET), &h, sizeof(h), sizeof(h));
    must(1 == world_posted() && 0 == world_find(WORLD_GET), "the message is not read");
    world_complete(0, OPAL_ERROR);
    must(0 == world_posted(), "the peer is asked for bytes that the network may still write");
    must(peer_of_rank(2)->declared && is_complete(request) && MPI_ERR_OTHER == request->req_status.MPI_ERROR, "a receive waits for a failed network");
}

/* ---- processes that cannot be talked to ------------------------------------------------------------------ */

/* The record of each process; a size of 0: there is none. */
static bfo_modex_t record;
static size_t record_size;

static int modex_get(const opal_process_name_t *proc, const char *key, opal_list_t *info, opal_value_t **value)
{
    if (0 == record_size) {
        return OPAL_ERR_NOT_FOUND;
    }
    *value = OBJ_NEW(opal_value_t);
    (*value)->type = OPAL_BYTE_OBJECT;
    (*value)->data.bo.bytes = malloc(record_size);
    (*value)->data.bo.size = (int32_t) record_size;
    memcpy((*value)->data.bo.bytes, &record, record_size);
    return OPAL_SUCCESS;
}

static void peer_of_another_protocol_is_refused(void)
{
    static const size_t sizes[] = {0, 3, offsetof(bfo_modex_t, life), sizeof(bfo_modex_t)};
    ompi_request_t *request = NULL;

    opal_pmix.get = modex_get;
    world_begin();
    record = bfo.modex;
    record.version += 1;
    record.life.node = 5;
    for (int i = 0; i < 4; ++i) {
        record_size = sizes[i];
        must(OMPI_ERR_UNREACH == bfo_peer_connect(bfo_peer_get(world_proc[1])), "a process without our protocol is no stranger");
        must(OMPI_SUCCESS != bfo_isend(room, 8, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request) && 0 == world_posted(),
             "a message goes out to a process without our protocol");
        must((3 == i ? 5 : 0) == bfo_rails_life_of(world_proc[1]).node, "a record that is too short tells where its process runs");
    }
    record.version -= 1;
    record_size = sizes[2];
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[2])) && 0 == peer_of_rank(2)->life.node,
         "a record without the newer fields is refused");
}

/* A message of the process was lost before the process was contacted. */
static void declared_peer_is_not_contacted(void)
{
    ompi_request_t *request = NULL;

    world_begin();
    bfo_failover_declare(bfo_peer_get(world_proc[1]), "a test");
    must(OMPI_ERR_UNREACH == bfo_peer_connect(peer_of_rank(1)) && 0 == peer_of_rank(1)->n_rails, "a declared process is contacted");
    if (OMPI_SUCCESS == bfo_isend(room, 8, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request)) {
        must(is_complete(request) && MPI_ERR_OTHER == request->req_status.MPI_ERROR, "a send to a declared process succeeds or waits");
    }
    must(0 == world_posted(), "a message goes out to a declared process");
}

/* A thread may connect a process that another thread has just connected, and whose rails may be lost by then. */
static void second_contact_changes_nothing(void)
{
    bfo_peer_t *peer;

    bfo_params.rejoin = true;
    bfo_params.last_rail_timeout = 60;
    world_begin();
    peer = bfo_peer_get(world_proc[1]);
    for (int i = 0; i < 2; ++i) {
        must(OMPI_SUCCESS == bfo_peer_connect(peer) && 2 == peer->n_rails && 3 == peer->send_mask, "a second contact changes the rails");
    }
    world_rail_fails(&world_btl[0]);
    world_rail_fails(&world_btl[1]);
    must(OMPI_SUCCESS == bfo_peer_connect(peer) && 0 == peer->send_mask && !peer->declared, "a process is refused that is waited for");
    peer->may_wait = false;
    must(OMPI_ERR_UNREACH == bfo_peer_connect(peer), "a process without a rail is reached although nobody waits for a rail");
}

static int unknown_state(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, bfo_rail_info_t *info)
{
    return OPAL_ERR_NOT_FOUND;
}

static void btl_of_another_version_has_no_failover(void)
{
    world_btl[1].ext.version += 1;
    world_begin();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])) && 3 == peer_of_rank(1)->send_mask, "a rail that can send is not used");
    must(!peer_of_rank(1)->failover && NULL == world_btl[1].ext.fence_done, "the PML relies on a BTL of another version");
}

/* There are more rails than may be used, and they have no names: the peer may have chosen other rails. */
static void rails_chosen_without_names_are_not_written_over(void)
{
    bfo_rndv_hdr_t rndv = {.msg_length = 3000, .src_id = 0x100000001u};
    ompi_request_t *request = NULL;

    mca_bml_base_endpoint_t *e = world_proc[1]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
    mca_bml_base_btl_t *third = mca_bml_base_btl_array_insert(&e->btl_send);

    *third = (mca_bml_base_btl_t){.btl = &world_btl[2].super, .btl_endpoint = (struct mca_btl_base_endpoint_t *) &world_btl[2]};
    world_btl[0].ext.rail_state = world_btl[1].ext.rail_state = unknown_state;
    bfo_params.max_rails = 2;
    world_begin();
    must(OMPI_SUCCESS == bfo_irecv(room, 3000, &ompi_mpi_byte.dt, 1, 7, world_comm[0], &request), "no receive");
    bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, BFO_FLAG_PIN | BFO_FLAG_CONTIG, 0, 1, 7, 0);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    must(2 == peer_of_rank(1)->n_rails && 0 > world_find(BFO_MSG_PUT), "a peer is asked to write over a rail that it may not use");
    must(0 <= world_find(BFO_MSG_ACK), "nobody asks for the message");
}

/* ---- windows --------------------------------------------------------------------------------------------- */

static unsigned heard;

static int hears(ompi_request_t *request)
{
    ++heard;
    return 0;
}

/* Its receive from any source has ended without a callback; a collective's receive from the lost process calls back. */
static void window_hears_of_a_lost_process_by_its_error_handler(void)
{
    ompi_request_t *window = NULL, *named = NULL, *collective = NULL;

    world_begin();
    world_comm_add();
    must(OMPI_SUCCESS == bfo_irecv(room, 8, &ompi_mpi_byte.dt, MPI_ANY_SOURCE, 0x10000, world_comm[0], &window)
             && OMPI_SUCCESS == bfo_irecv(room + 8, 8, &ompi_mpi_byte.dt, 1, 0x10001, world_comm[0], &named)
             && OMPI_SUCCESS == bfo_irecv(room + 16, 8, &ompi_mpi_byte.dt, 1, -30, world_comm[0], &collective),
         "no receive");
    window->req_complete_cb = named->req_complete_cb = hears;
    collective->req_complete_cb = hears;
    bfo_comm_of(world_comm[0])->is_window = bfo_comm_of(world_comm[1])->is_window = true; /* the second has no lane */
    for (int rank = 1; rank < WORLD_RANKS; ++rank) {
        (void) bfo_peer_connect(bfo_peer_get(world_proc[rank]));
        bfo_failover_declare(peer_of_rank(rank), "a test");
        must(1 == world_handled && world_comm[0] == world_handled_last, "an error handler is not called once, or of a wrong window");
    }
    must(is_complete(window) && is_complete(named) && MPI_ERR_OTHER == named->req_status.MPI_ERROR, "receives of a window wait");
    must(1 == heard && is_complete(collective), "a collective does not hear of the error");
    must(bfo_comm_of(world_comm[1])->is_window, "a window without the process was told");
}

static const world_case_t cases[] = {
    {"orphan_of_another_communicator_waits_on", orphan_of_another_communicator_waits_on},
    {"hole_is_of_one_source_and_communicator", hole_is_of_one_source_and_communicator},
    {"holes_beyond_the_room_are_everywhere", holes_beyond_the_room_are_everywhere},
    {"reports_about_a_stranger_change_nothing", reports_about_a_stranger_change_nothing},
    {"only_memory_cannot_fail", only_memory_cannot_fail},
    {"failure_of_a_strange_rail_costs_nothing", failure_of_a_strange_rail_costs_nothing},
    {"port_without_failover_costs_its_processes", port_without_failover_costs_its_processes},
    {"message_that_cannot_be_sent_again_costs_its_peer", message_that_cannot_be_sent_again_costs_its_peer},
    {"failed_read_of_a_network_fails_the_receive", failed_read_of_a_network_fails_the_receive},
    {"early_message_ends_with_its_communicator", early_message_ends_with_its_communicator},
    {"numbers_outlive_their_communicator", numbers_outlive_their_communicator},
    {"declaration_leaves_other_receives_alone", declaration_leaves_other_receives_alone},
    {"posted_receives_of_a_declared_peer_end", posted_receives_of_a_declared_peer_end},
    {"receives_from_any_source_end_with_the_last_peer", receives_from_any_source_end_with_the_last_peer},
    {"send_to_a_declared_peer_fails_at_once", send_to_a_declared_peer_fails_at_once},
    {"unreachable_peer_costs_no_number", unreachable_peer_costs_no_number},
    {"lost_orphan_declares_its_source", lost_orphan_declares_its_source},
    {"lost_peer_declares_its_source", lost_peer_declares_its_source},
    {"lost_lane_declares_its_source", lost_lane_declares_its_source},
    {"lost_counters_declare_their_source", lost_counters_declare_their_source},
    {"request_without_identifier_is_refused", request_without_identifier_is_refused},
    {"peer_of_another_protocol_is_refused", peer_of_another_protocol_is_refused},
    {"declared_peer_is_not_contacted", declared_peer_is_not_contacted},
    {"second_contact_changes_nothing", second_contact_changes_nothing},
    {"btl_of_another_version_has_no_failover", btl_of_another_version_has_no_failover},
    {"rails_chosen_without_names_are_not_written_over", rails_chosen_without_names_are_not_written_over},
    {"window_hears_of_a_lost_process_by_its_error_handler", window_hears_of_a_lost_process_by_its_error_handler},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
