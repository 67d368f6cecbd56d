/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Cases at the edges of the PML: RDMA that a BTL without failover refuses, callbacks that report no loss, rails of which only
 * some need registrations, memory of a device, rails without room. DESIGN.txt sections 9, 14.
 */
#define _GNU_SOURCE
#include "world_case.h"

#include "failover/pml_bfo_failover.h"
#include "failover/pml_bfo_failover_peer.h"
#include "door/pml_bfo_recv_api.h"
#include "rails/pml_bfo_failover_fence.h"
#include "recv/pml_bfo_recv_place.h"
#include "door/pml_bfo_send_api.h"

#include "opal/util/arch.h"

#include <sys/mman.h>
#include <unistd.h>

static char room[9000];

/* ---- messages of a peer ------------------------------------------------------------------------------ */

static void frags_come(const bfo_recv_t *req, size_t offset, size_t size)
{
    struct {
        bfo_frag_hdr_t h;
        char data[9000];
    } frag;

    memset(frag.data, 0x77, sizeof(frag.data));
    bfo_hdr_pack_frag(&frag.h, 0, req->src_id, bfo_name_id(&req->name), offset);
    world_receive(&world_btl[2], BFO_TAG(BFO_MSG_FRAG), &frag, sizeof(frag.h) + size, sizeof(frag.h) + size);
}

static const bfo_ack_hdr_t *posted_ack(void)
{
    const int n = world_find(BFO_MSG_ACK);

    must(n >= 0, "no ACK asks for the bytes that could not be read or written");
    return world_posted_message((unsigned) n);
}

static void answer_leaves(unsigned type)
{
    const int n = world_find(type);

    must(n >= 0, "an answer is not posted");
    world_complete((unsigned) n, OPAL_SUCCESS);
}

/* ---- RDMA that is refused ---------------------------------------------------------------------------- */

static ompi_request_t *rget_comes(size_t size)
{
    bfo_rget_hdr_t h = {.rndv = {.msg_length = size, .src_id = 0x100000001u}, .frag_id = 0x100000001u, .src_ptr = 0x10000};
    ompi_request_t *request = NULL;

    memset(room, 0, sizeof(room));
    must(OMPI_SUCCESS == bfo_irecv(room, size, &ompi_mpi_byte.dt, 2, 7, world_comm[0], &request), "no receive");
    bfo_hdr_pack_match(&h.rndv.match, BFO_MSG_RGET, BFO_FLAG_CONTIG, 0, 2, 7, 0);
    world_receive(&world_btl[2], BFO_TAG(BFO_MSG_RGET), &h, sizeof(h), sizeof(h));
    return request;
}

static void rest_is_copied(ompi_request_t *request, size_t from, size_t size)
{
    const bfo_ack_hdr_t ack = *posted_ack();

    must(!peer_of_rank(2)->declared, "a peer is declared although no rail was lost");
    must(from == ack.send_offset && size - from == ack.send_size, "the ACK asks for other bytes");
    answer_leaves(BFO_MSG_ACK);
    must(!is_complete(request), "a receive is complete before its bytes are there");
    frags_come((bfo_recv_t *) request, from, size - from);
    must(is_well(request), "a receive does not end well after its READ was refused");
    for (size_t i = from; i < size; ++i) {
        must(0x77 == room[i], "a byte was not copied");
    }
    request->req_free(&request);
}

static void refused_read_is_copied(void)
{
    world_begin();
    world_refuse_dead = 1;
    rest_is_copied(rget_comes(3000), 0, 3000);
}

/* Of three READs the second comes back with an error, before the third is complete. */
static void failed_read_is_copied(void)
{
    static const mca_btl_base_component_t vader = {.btl_version.mca_component_name = "vader"};
    ompi_request_t *request;

    world_btl[2].super.btl_component = (mca_btl_base_component_t *) &vader;
    bfo_params.recv_pipeline_depth = 3;
    world_begin();
    request = rget_comes(9000);
    must(3 == world_posted(), "not three READs");
    world_complete(0, OPAL_SUCCESS);
    world_complete(0, OPAL_ERROR);
    must(world_find(BFO_MSG_ACK) < 0, "an ACK asks for the rest while a READ is in flight");
    world_complete(0, OPAL_SUCCESS);
    rest_is_copied(request, 4000, 9000);
}

static ompi_request_t *send_begins(void)
{
    ompi_request_t *request = NULL;

    bfo_params.use_get = false;
    world_begin();
    must(OMPI_SUCCESS == bfo_isend(room, 6000, &ompi_mpi_byte.dt, 2, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request),
         "a send does not start");
    world_complete(0, OPAL_SUCCESS);
    return request;
}

static void put_is_asked_for(const bfo_send_t *req, uint64_t offset, uint64_t size)
{
    bfo_put_hdr_t put = {.type = BFO_MSG_PUT,
                         .src_id = bfo_name_id(&req->name),
                         .frag_id = 0x900000001u + offset,
                         .dst_id = 0x700000001u,
                         .rdma_offset = offset,
                         .dst_ptr = 0x10000,
                         .dst_size = size};

    world_receive(&world_btl[2], BFO_TAG(BFO_MSG_PUT), &put, sizeof(put), sizeof(put));
}

/* The BTL refuses the second of three WRITEs. Its FIN says so, and the sender sends the bytes that the next ACK asks for. */
static void refused_write_is_copied(void)
{
    ompi_request_t *request = send_begins();
    const bfo_send_t *req = (bfo_send_t *) request;
    const bfo_fin_hdr_t *fin;
    bfo_ack_hdr_t ack;

    put_is_asked_for(req, 0, 2000);
    world_refuse_dead = 1;
    put_is_asked_for(req, 2000, 2000);
    must(!peer_of_rank(2)->declared, "a peer is declared although no rail was lost");
    must(world_find(BFO_MSG_FIN) >= 0, "nobody tells the receiver of a refused PUT");
    fin = world_posted_message((unsigned) world_find(BFO_MSG_FIN));
    must(0 != (fin->fflags & 4) && 2000 == fin->size, "a FIN does not say that nothing was written");
    put_is_asked_for(req, 4000, 2000);
    answer_leaves(WORLD_PUT);
    answer_leaves(WORLD_PUT);
    while (world_find(BFO_MSG_FIN) >= 0) {
        answer_leaves(BFO_MSG_FIN);
    }
    must(!is_complete(request), "a send is complete with bytes missing");
    bfo_hdr_pack_ack(&ack, 0, bfo_name_id(&req->name), 0x700000001u, 2000, 4000);
    world_receive(&world_btl[2], BFO_TAG(BFO_MSG_ACK), &ack, sizeof(ack), sizeof(ack));
    while (world_posted() > 0) {
        must(!is_complete(request), "a send is complete before its last FRAG");
        answer_leaves(BFO_MSG_FRAG);
    }
    must(is_well(request), "a send does not end well after its WRITE was refused");
}

/* The same for the receiver: the sender could not serve the second of four PUTs. */
static void refused_put_is_asked_for_by_ack(void)
{
    bfo_rndv_hdr_t rndv = {.msg_length = 6000, .src_id = 0x800000001u};
    ompi_request_t *request = NULL;
    bfo_match_hdr_t message;
    bfo_put_hdr_t put[4];
    bfo_fin_hdr_t fin;

    world_begin();
    bfo_irecv(room, 6000, &ompi_mpi_byte.dt, 2, 6, world_comm[0], &request);
    bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, BFO_FLAG_PIN | BFO_FLAG_CONTIG, 0, 2, 6, 0);
    world_receive(&world_btl[2], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    must(4 == world_posted(), "not four PUTs");
    for (int i = 0; i < 4; ++i) {
        memcpy(&put[i], world_posted_message(0), sizeof(put[i]));
        world_complete(0, OPAL_SUCCESS);
    }
    bfo_hdr_pack_match(&message, 0, 0, 0, 2, 6, 0);
    for (int i = 3; i >= 0; --i) {
        must(world_find(BFO_MSG_ACK) < 0, "an ACK asks for the rest while a PUT is open");
        bfo_hdr_pack_fin(&fin, 0, 1 == i ? BFO_FIN_WRITE | 4 : BFO_FIN_WRITE, put[i].frag_id, put[i].dst_size, &message);
        world_receive(&world_btl[2], BFO_TAG(BFO_MSG_FIN), &fin, sizeof(fin), sizeof(fin));
    }
    must(1500 == put[1].rdma_offset, "the second PUT is another");
    rest_is_copied(request, 1500, 6000);
    must(0 == world_open_puts(), "a PUT stays open");
}

/* ---- callbacks that report no loss --------------------------------------------------------------------- */

static void notice_is_no_loss(void)
{
    world_begin();
    (void) bfo_peer_connect(bfo_peer_get(world_proc[2]));
    bfo_failover_btl_error(&world_btl[2].super, MCA_BTL_ERROR_FLAGS_ADD_CUDA_IPC, &world_proc[2]->super, "cuda ipc");
    must(!peer_of_rank(2)->declared, "CUDA's IPC becomes ready, and its peer is declared");
    ompi_mpi_state = OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT;
    bfo_failover_btl_error(&world_btl[2].super, MCA_BTL_ERROR_FLAGS_NONFATAL, &world_proc[2]->super, "closed");
    must(!peer_of_rank(2)->declared, "a connection is closed at the end, and its peer is declared");
    ompi_mpi_state = OMPI_MPI_STATE_INIT_COMPLETED;
    bfo_failover_btl_error(&world_btl[2].super, MCA_BTL_ERROR_FLAGS_NONFATAL, &world_proc[2]->super, "closed");
    must(peer_of_rank(2)->declared, "a loss is not noticed");
}

/* ---- rails with and without registrations ---------------------------------------------------------------- */

static void rail_without_registrations_writes_nothing(void)
{
    mca_bml_base_endpoint_t *e = world_proc[1]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
    mca_bml_base_btl_t *b = mca_bml_base_btl_array_insert(&e->btl_send);
    bfo_rndv_hdr_t h = {.msg_length = sizeof(room), .src_id = 0x100000001u};
    ompi_request_t *request = NULL;

    b->btl = &world_btl[2].super;
    b->btl_endpoint = (struct mca_btl_base_endpoint_t *) &world_btl[2];
    world_begin();
    bfo_irecv(room, sizeof(room), &ompi_mpi_byte.dt, 1, 7, world_comm[0], &request);
    bfo_hdr_pack_match(&h.match, BFO_MSG_RNDV, BFO_FLAG_PIN | BFO_FLAG_CONTIG, 0, 1, 7, 0);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &h, sizeof(h), sizeof(h));
    must(3 == peer_of_rank(1)->n_rails && world_posted() > 2, "the receive does not post PUTs over three rails");
    for (unsigned n = 0; n < world_posted(); ++n) {
        const mca_btl_base_module_t *btl = &world_btl_of(n)->super;
        const size_t size = sizeof(bfo_put_hdr_t) + peer_of_rank(1)->handle_size;

        must(
            bfo_hdr_is_valid(BFO_MSG_PUT, world_posted_message(n), size, size, NULL == btl->btl_register_mem ? 0 : btl->btl_registration_handle_size),
            "a PUT is not as long as its receiver expects");
    }
}

/* ---- no more memory ---------------------------------------------------------------------------------------- */

/* A strided receive has no memory for a part that comes too early. */
static void receive_without_memory_says_so(void)
{
    bfo_rndv_hdr_t rndv = {.msg_length = 128, .src_id = 0x800000001u};
    ompi_request_t *request = NULL;

    bfo_params.unexpected_limit = 1;
    world_begin();
    must(OMPI_SUCCESS == bfo_irecv(room, 4, world_strided, 1, 7, world_comm[0], &request), "no receive");
    bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, 0, 0, 1, 7, 0);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    answer_leaves(BFO_MSG_ACK);
    no_memory = 1;
    frags_come((bfo_recv_t *) request, 64, 32);
    must(is_complete(request) && MPI_ERR_NO_MEM == request->req_status.MPI_ERROR, "a receive without memory ends with another error");
}

/* ---- rails that their BTL does not know ---------------------------------------------------------------------- */

static int unknown_state(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, bfo_rail_info_t *info)
{
    return OPAL_ERR_NOT_FOUND;
}

static int refused_fence(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, uint8_t rail, uint16_t gen)
{
    return OPAL_ERR_BAD_PARAM;
}

static void unnamed_rail_has_no_failover(void)
{
    world_btl[1].ext.rail_state = unknown_state;
    world_begin();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    must(!peer_of_rank(1)->failover, "the PML uses failover over a rail without a name");
}

static void refused_fence_is_not_awaited(void)
{
    ompi_request_t *request = NULL;

    world_btl[0].ext.fence = refused_fence;
    world_btl[1].ext.fence = refused_fence;
    world_begin();
    must(OMPI_SUCCESS == bfo_isend(room, 3000, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request),
         "a send does not start");
    bfo_failover_declare(peer_of_rank(1), "a test");
    while (world_posted() > 0) {
        world_complete(0, OPAL_ERROR);
    }
    must(is_complete(request), "a send waits for a fence that its BTL has refused");
}

static void other_architecture_is_refused(void)
{
    ompi_request_t *request = NULL;

    world_begin();
    world_proc[1]->super.proc_arch = ~opal_local_arch;
    must(OMPI_SUCCESS != bfo_peer_connect(bfo_peer_get(world_proc[1])), "a peer that stores data in another way is not refused");
    must(OMPI_SUCCESS != bfo_isend(room, 8, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request),
         "a message goes out to a peer that stores data in another way");
}

/* ---- requests of Open MPI's own components ----------------------------------------------------------------- */

static int never_called(ompi_request_t *request)
{
    return 0;
}

/* Does the PML answer a second rendezvous while the first is in progress, whose receive has a callback? */
static bool second_is_answered(int tag)
{
    ompi_request_t *request[2] = {NULL};
    bfo_rndv_hdr_t rndv = {.msg_length = 3000, .src_id = 0x800000001u};
    unsigned answers = 0;

    world_begin();
    for (uint32_t i = 0; i < 2; ++i) {
        must(OMPI_SUCCESS == bfo_irecv(room + 3000 * i, 3000, &ompi_mpi_byte.dt, 1, tag, world_comm[0], &request[i]), "no receive");
        request[i]->req_complete_cb = never_called;
    }
    for (uint32_t i = 0; i < 2; ++i) {
        rndv.src_id += i;
        bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, 0, 0, 1, tag, i);
        world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    }
    for (unsigned i = 0; i < world_posted(); ++i) {
        answers += BFO_MSG_ACK == ((const bfo_hdr_t *) world_posted_message(i))->common.type;
    }
    must(answers > 0, "the first message is not answered");
    return answers > 1;
}

static void segments_of_a_collective_overlap(void)
{
    must(second_is_answered(-30), "a segment of a collective waits for the segment before it");
}

static void answer_of_a_window_is_held_back(void)
{
    must(!second_is_answered(0x10000), "osc/pt2pt sees a message before the previous message has ended");
}

/* Another thread sends while btl_sendi is about to refuse. */
static void pass_by(void)
{
    ompi_request_t *request;

    must(OMPI_SUCCESS == bfo_isend(room, 8, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "no send");
    world_refuse_busy = 1;
}

/* The other message has the next number. Therefore this message must go out, in spite of the limit. */
static void request_beyond_the_limit_is_the_lists(void)
{
    ompi_request_t *request;
    void *spare[8];
    unsigned n = 0;

    bfo_params.free_list_max = 4;
    world_begin();
    while (n < 8 && NULL != (spare[n] = bfo_cache_take(BFO_CACHE_SEND))) {
        ++n;
    }
    must(4 == n && 4 == mca_pml_base_send_requests.fl_num_allocated, "the limit is not kept");
    world_in_sendi = pass_by;
    must(OMPI_SUCCESS == bfo_isend(room, 8, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "no send");
    must(2 == world_posted(), "a message does not go out although a later number was used");
    must(5 == mca_pml_base_send_requests.fl_num_allocated, "nobody will free a request beyond the limit");
}

/* ---- memory of a device --------------------------------------------------------------------------------------- */

static void device_begins(void)
{
    const int fd = memfd_create("device", 0);

    must(fd >= 0 && 0 == ftruncate(fd, DEVICE_SIZE), "no memory");
    device_inside = mmap(NULL, DEVICE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    device = mmap(NULL, DEVICE_SIZE, PROT_NONE, MAP_SHARED, fd, 0);
    must(MAP_FAILED != device_inside && MAP_FAILED != device, "no memory");
    memset(device_inside, 0x33, DEVICE_SIZE);
    bfo_params.recv_pipeline_depth = 4;
    world_begin();
}

static void device_memory_is_received_into(void)
{
    bfo_rndv_hdr_t rndv = {.msg_length = 3000, .src_id = 0x800000001u};
    ompi_request_t *request = NULL;

    device_begins();
    must(OMPI_SUCCESS == bfo_irecv(device, 8, &ompi_mpi_byte.dt, 1, 7, world_comm[0], &request), "no receive");
    match_comes(0, 1, 0, 7, 0);
    must(is_well(request) && 0 == memcmp(device_inside, text, 8), "a short message is not in the device");
    must(OMPI_SUCCESS == bfo_irecv(device, 3000, &ompi_mpi_byte.dt, 1, 7, world_comm[0], &request), "no receive");
    bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, BFO_FLAG_PIN | BFO_FLAG_CONTIG, 0, 1, 7, 1);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    must(world_find(BFO_MSG_PUT) < 0, "a peer is asked to write into a device");
    answer_leaves(BFO_MSG_ACK);
    frags_come((bfo_recv_t *) request, 0, 3000);
    must(is_well(request) && 0x77 == device_inside[0] && 0x77 == device_inside[2999] && 0x33 == device_inside[3000],
         "a long message is not in the device");
}

static void device_memory_is_sent_from(void)
{
    ompi_request_t *request = NULL;
    const bfo_rndv_hdr_t *h;

    device_begins();
    must(OMPI_SUCCESS == bfo_isend(device, 100, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request),
         "a send does not start");
    must(0x33 == ((const char *) world_posted_message(0))[sizeof(bfo_match_hdr_t)], "a short message is not the device's");
    must(OMPI_SUCCESS == bfo_isend(device, 3000, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request),
         "a send does not start");
    h = world_posted_message(1);
    must(BFO_MSG_RNDV == h->match.type && 0 == (h->match.flags & (BFO_FLAG_PIN | BFO_FLAG_CONTIG)), "a device's memory is offered for RDMA");
    must(0x33 == ((const char *) h)[sizeof(*h)], "a long message is not the device's");
}

/* ---- generations of a rail ----------------------------------------------------------------------------------- */

static bfo_peer_t *peer_of_generation(uint16_t gen)
{
    bfo_peer_t *peer;

    world_begin();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
    peer = peer_of_rank(1);
    peer->rails[0].gen = gen;
    return peer;
}

/* The BTL reports the end of an older generation's fence again, while the fence of a newer generation runs. */
static void old_fence_ends_no_newer(void)
{
    bfo_peer_t *peer = peer_of_generation(3);

    bfo_failover_fence(peer, 0, 3);
    world_btl[0].ext.fence_done(&world_btl[0].super, &world_proc[1]->super, 0, 2, false);
    must(0 != (peer->fencing & 1), "the end of an older fence is taken for that of a newer one");
    world_btl[0].ext.fence_done(&world_btl[0].super, &world_proc[1]->super, 0, 3, false);
    must(0 == peer->fencing, "a fence does not end");
}

/* A thread reports a refused post after the rail has come back; its report is about the old generation. */
static void old_failure_ends_no_newer_rail(void)
{
    bfo_peer_t *peer = peer_of_generation(3);

    bfo_failover_rail_failed(peer, 0, 2, "a post was refused");
    must(3 == peer->send_mask && 0 == world_fences(), "the failure of an older generation ends the rail");
    bfo_failover_rail_failed(peer, 0, 3, "a post was refused");
    must(2 == peer->send_mask && 1 == world_fences(), "a rail that failed stays in use");
}

/* The peer has seen our rail come back and fail again; this process has seen neither. */
static void newer_failure_is_fenced_too(void)
{
    bfo_peer_t *peer = peer_of_generation(3);

    bfo_failover_rail_failed(peer, 0, 3, "a post was refused");
    world_fence_done(0, false);
    must(0 == peer->fencing, "a fence does not end");
    bfo_failover_rail_failed(peer, 0, 4, "the peer lost it");
    must(1 == world_fences() && 1 == peer->fencing, "a generation that only the peer knows is not fenced");
    world_fence_done(0, false);
    must(0 == peer->fencing && 4 == peer->rails[0].fenced, "a fence does not end");
}

/* ---- messages that wait for rails ----------------------------------------------------------------------------- */

static unsigned refusals;

static int no_room(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des,
                   mca_btl_base_tag_t tag)
{
    ++refusals;
    return OPAL_ERR_OUT_OF_RESOURCE;
}

static void send_to(int rank)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_isend(room, 100, &ompi_mpi_byte.dt, rank, 7, MCA_PML_BASE_SEND_SYNCHRONOUS, world_comm[0], &request),
         "a send does not start");
}

/* The rails of a peer have no room for many messages. The rail of another peer refuses one message, once. */
static void sick_peer_holds_up_no_other(void)
{
    enum { N = 40 };
    const mca_btl_base_module_send_fn_t btl_send = world_btl[0].super.btl_send;

    world_begin();
    world_btl[0].super.btl_send = world_btl[1].super.btl_send = no_room;
    for (int i = 0; i < N; ++i) {
        send_to(1);
    }
    world_refuse_busy = 1;
    send_to(2);
    must(0 == world_posted() && N + 1 == bfo.n_pending, "a message that was refused does not wait");
    refusals = 0;
    (void) bfo_progress();
    must(1 == world_posted(), "a peer whose rails have no room holds up the messages of another");
    must(0 < refusals && refusals < N, "progress does not try the messages that wait, or tries without a bound");
    world_btl[0].super.btl_send = world_btl[1].super.btl_send = btl_send;
    (void) bfo_progress();
    must(N + 1 == world_posted() && 0 == bfo.n_pending, "a message waits although its rails have room again");
}

static void is_posted_by_the_other_rail(unsigned type, const char *what)
{
    const int n = world_find(type);

    must(n >= 0, what);
    must(no_room != world_btl_of((unsigned) n)->super.btl_send, "a rail without room takes a message");
}

/* One rail has no room, the other rail has: it takes a first fragment, an ACK, the FRAGs. */
static void rail_with_room_is_taken(void)
{
    bfo_rndv_hdr_t rndv = {.msg_length = 600, .src_id = 0x800000001u};
    ompi_request_t *request = NULL;
    const bfo_send_t *req;
    bfo_ack_hdr_t ack;

    world_begin();
    bfo_params.use_put = bfo_params.use_get = false;
    world_btl[0].super.btl_send = no_room;
    for (int i = 0; i < 2; ++i) { /* the first choice alternates */
        must(OMPI_SUCCESS == bfo_isend(room, 3000, &ompi_mpi_byte.dt, 1, 7, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request),
             "a send does not start");
        is_posted_by_the_other_rail(BFO_MSG_RNDV, "a first fragment waits for one rail while the other has room");
        world_complete(0, OPAL_SUCCESS);
        req = (bfo_send_t *) request;
        bfo_hdr_pack_ack(&ack, 0, bfo_name_id(&req->name), 0x700000001u, req->rts_length, 3000 - req->rts_length);
        world_receive(&world_btl[1], BFO_TAG(BFO_MSG_ACK), &ack, sizeof(ack), sizeof(ack));
        is_posted_by_the_other_rail(BFO_MSG_FRAG, "a FRAG waits for one rail while the other has room");
        while (world_posted() > 0) {
            world_complete(0, OPAL_SUCCESS);
        }
        must(is_well(request) && 0 == bfo.n_pending, "a send does not end well with one rail without room");
        must(OMPI_SUCCESS == bfo_irecv(room, 600, &ompi_mpi_byte.dt, 1, 7, world_comm[0], &request), "no receive");
        bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, 0, 0, 1, 7, (uint32_t) i);
        world_receive(&world_btl[1], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
        is_posted_by_the_other_rail(BFO_MSG_ACK, "an ACK waits for one rail while the other has room");
        answer_leaves(BFO_MSG_ACK);
    }
}

static void progress_of_nothing_writes_nothing(void)
{
    static char before[sizeof(bfo)];

    world_begin();
    world_refuse_memory = 1;
    send_to(2);
    must(1 == bfo.n_pending, "a message without a descriptor does not wait");
    (void) bfo_progress();
    must(0 == bfo.n_pending, "a message waits although there are descriptors again");
    memcpy(before, &bfo, sizeof(bfo));
    (void) bfo_progress();
    must(0 == memcmp(before, &bfo, sizeof(bfo)), "every call of progress writes to shared lines though nothing waits");
}

static const world_case_t cases[] = {
    {"old_fence_ends_no_newer", old_fence_ends_no_newer},
    {"old_failure_ends_no_newer_rail", old_failure_ends_no_newer_rail},
    {"newer_failure_is_fenced_too", newer_failure_is_fenced_too},
    {"sick_peer_holds_up_no_other", sick_peer_holds_up_no_other},
    {"rail_with_room_is_taken", rail_with_room_is_taken},
    {"progress_of_nothing_writes_nothing", progress_of_nothing_writes_nothing},
    {"receive_without_memory_says_so", receive_without_memory_says_so},
    {"unnamed_rail_has_no_failover", unnamed_rail_has_no_failover},
    {"refused_fence_is_not_awaited", refused_fence_is_not_awaited},
    {"other_architecture_is_refused", other_architecture_is_refused},
    {"segments_of_a_collective_overlap", segments_of_a_collective_overlap},
    {"answer_of_a_window_is_held_back", answer_of_a_window_is_held_back},
    {"request_beyond_the_limit_is_the_lists", request_beyond_the_limit_is_the_lists},
    {"device_memory_is_received_into", device_memory_is_received_into},
    {"device_memory_is_sent_from", device_memory_is_sent_from},
    {"refused_read_is_copied", refused_read_is_copied},
    {"failed_read_is_copied", failed_read_is_copied},
    {"refused_write_is_copied", refused_write_is_copied},
    {"refused_put_is_asked_for_by_ack", refused_put_is_asked_for_by_ack},
    {"notice_is_no_loss", notice_is_no_loss},
    {"rail_without_registrations_writes_nothing", rail_without_registrations_writes_nothing},
};

int main(int argc, char **argv)
{
    if (argc > 1) {
        world_init();
    }
    return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
