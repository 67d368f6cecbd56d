/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Steps of a second thread between two steps of the first, forced at places where the PML calls other code: it takes a lock,
 * waits for a lock, or asks a BTL for memory. Also messages that come after their communicator was freed. Ends the process if a byte, a
 * request or a fence goes wrong. fuzz_dispatch runs this at its start. DESIGN.txt sections 7.3 and 14.7.
 */
#include "fuzz_must.h"
#include "fuzz_world.h"

#include "failover/pml_bfo_failover.h"
#include "tables/pml_bfo_failover_fsm.h"
#include "types/pml_bfo_local.h"
#include "door/pml_bfo_recv_api.h"
#include "recv/pml_bfo_recv_rdma.h"
#include "door/pml_bfo_send_api.h"
#include "send/pml_bfo_send_schedule.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char room[80 * 100];

/* ---- the place before bfo.lock is taken ---------------------------------------------------------------- */

static void (*in_front_of_lock)(void); /* called once */
static unsigned locks_to_skip;

#undef pthread_mutex_lock
int pthread_mutex_lock(pthread_mutex_t *mutex);
int fuzz_mutex_lock(pthread_mutex_t *mutex);
int fuzz_mutex_lock(pthread_mutex_t *mutex)
{
    void (*const meanwhile)(void) = in_front_of_lock;

    if (NULL != meanwhile && &bfo.lock.m_lock_pthread == mutex && 0 == locks_to_skip--) {
        in_front_of_lock = NULL;
        meanwhile();
    }
    return pthread_mutex_lock(mutex);
}

/* ---- the place in which a thread waits for the lock of a communicator ---------------------------------------- */

static bfo_comm_t *lock_of;

/* Lets the thread that holds the lock go on. */
int fuzz_nanosleep(const struct timespec *time, struct timespec *left);
int fuzz_nanosleep(const struct timespec *time, struct timespec *left)
{
    void (*const meanwhile)(void) = in_front_of_lock;

    if (NULL != meanwhile && NULL != lock_of) {
        in_front_of_lock = NULL;
        bfo_unlock(&lock_of->lock);
        lock_of = NULL;
        meanwhile();
    }
    return 0;
}

static void life_begins(void)
{
    opal_uses_threads = true;
    locks_to_skip = 0;
    world_begin();
    must(OMPI_SUCCESS == bfo_peer_connect(bfo_peer_get(world_proc[1])), "no rails");
}

static void life_ends(void)
{
    must(NULL == in_front_of_lock, "the place where the second thread was to run was not reached");
    world_drain();
    world_end();
    opal_uses_threads = false;
}

static void all_succeed(void)
{
    while (world_posted() > 0) {
        world_complete(0, OPAL_SUCCESS);
    }
}

static void fence_ends(void)
{
    must(world_fences() > 0, "no fence has begun");
    world_fence_done(0, false);
}

static bool is_over(const void *request)
{
    return REQUEST_COMPLETED == ((const ompi_request_t *) request)->req_complete;
}

/* ---- a fence ends meanwhile ---------------------------------------------------------------------------- */

/* Starts a receive that asks for its bytes by PUT; all PUTs are delivered. Returns the receive, its first PUT and the rail of this PUT. */
static bfo_recv_t *receive_by_put(bfo_put_hdr_t *put, world_btl_t **rail)
{
    bfo_rndv_hdr_t rndv = {.msg_length = 1400, .src_id = 0x800000001u};
    ompi_request_t *request = NULL;
    int n;

    must(OMPI_SUCCESS == bfo_irecv(room, 1400, &ompi_mpi_byte.dt, 1, 6, world_comm[0], &request), "no receive");
    bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, BFO_FLAG_PIN | BFO_FLAG_CONTIG, 0, 1, 6, 0);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    n = world_find(BFO_MSG_PUT);
    must(0 <= n, "nothing was asked for by PUT");
    memcpy(put, world_posted_message((unsigned) n), sizeof(*put));
    *rail = world_btl_of((unsigned) n);
    all_succeed();
    return (bfo_recv_t *) request;
}

/* ... after the PML has found that a FIN needs the fence, and before the FIN is in the list that the end of the fence empties. */
static void fin_is_held_no_longer_than_its_fence(bool between)
{
    bfo_fin_hdr_t fin = {.type = BFO_MSG_FIN, .fflags = BFO_FIN_WRITE | BFO_FIN_RESENT};
    world_btl_t *rail, *other;
    bfo_put_hdr_t put;
    bfo_recv_t *req;

    life_begins();
    req = receive_by_put(&put, &rail);
    other = rail == &world_btl[0] ? &world_btl[1] : &world_btl[0];
    world_rail_fails(rail);
    fin.wrail = (uint8_t) (rail - world_btl);
    fin.size = put.dst_size;
    fin.frag_id = put.frag_id;
    in_front_of_lock = between ? fence_ends : NULL;
    world_receive(other, BFO_TAG(BFO_MSG_FIN), &fin, sizeof(fin), sizeof(fin));
    if (!between) {
        must(!is_over(req), "a FIN was taken before the fence of its data");
        fence_ends();
    }
    must(bfo_link_is_empty(&bfo.held_fins) && is_over(req), "a FIN is held although its fence is done");
    ((ompi_request_t *) req)->req_free((ompi_request_t **) &req);
    life_ends();
}

/* ... after a rail was taken out, and before its fence counts as running. */
static void fence_that_has_ended_does_not_run(void)
{
    bfo_peer_t *peer;

    life_begins();
    peer = bfo_peer_get(world_proc[1]);
    (void) peer->rails[0].ext->fence(peer->rails[0].btl, &peer->proc->super, 0, 0); /* the BTL began the fence first */
    in_front_of_lock = fence_ends;
    locks_to_skip = 1;
    bfo_failover_rail_failed(peer, 0, 0, "a post is refused");
    must(0 == peer->rails[0].fenced && 0 == peer->fencing, "a fence that is done counts as running");
    life_ends();
}

/* ... while the PML is not ready to hear of it. */
static void fence_that_was_not_heard_of_is_told_again(void)
{
    bfo_peer_t *peer;

    life_begins();
    peer = bfo_peer_get(world_proc[1]);
    peer->ready = false; /* as within bfo_peer_connect(), after it has asked for the state of the rail */
    world_rail_fails(&world_btl[0]);
    fence_ends();
    peer->ready = true;
    bfo_failover_rail_failed(peer, 0, 0, "a post is refused");
    must(1 == peer->fencing, "the PML does not wait for the fence of a lost rail");
    fence_ends();
    must(0 == peer->fencing, "a fence does not end");
    life_ends();
}

/* ---- one convertor, two threads ------------------------------------------------------------------------ */

static mca_btl_base_module_alloc_fn_t btl_alloc;
static mca_btl_base_module_prepare_fn_t btl_prepare;
static sem_t first_is_at_alloc, first_goes_on;
static pthread_t first_thread;
static unsigned prepares;

static void *first_fragment_fails(void *unused)
{
    world_complete(0, OPAL_ERROR);
    return NULL;
}

/* T1 is about to pack the first fragment again for a copy, and waits for T2. */
static mca_btl_base_descriptor_t *alloc_of_t1(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, uint8_t order, size_t size,
                                              uint32_t flags)
{
    if (pthread_equal(pthread_self(), first_thread)) {
        sem_post(&first_is_at_alloc);
        sem_wait(&first_goes_on);
    }
    return btl_alloc(btl, endpoint, order, size, flags);
}

/* T2 is about to pack the second FRAG, and waits for T1. */
static mca_btl_base_descriptor_t *prepare_of_t2(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                                                struct opal_convertor_t *convertor, uint8_t order, size_t reserve, size_t *size, uint32_t flags)
{
    if (2 == ++prepares) {
        sem_post(&first_goes_on);
        pthread_join(first_thread, NULL);
    }
    return btl_prepare(btl, endpoint, convertor, order, reserve, size, flags);
}

static void hook_rails(void)
{
    btl_alloc = world_btl[0].super.btl_alloc;
    btl_prepare = world_btl[0].super.btl_prepare_src;
    for (int b = 0; b < 2; ++b) {
        world_btl[b].super.btl_alloc = alloc_of_t1;
        world_btl[b].super.btl_prepare_src = prepare_of_t2;
    }
}

static void unhook_rails(void)
{
    for (int b = 0; b < 2; ++b) {
        world_btl[b].super.btl_alloc = btl_alloc;
        world_btl[b].super.btl_prepare_src = btl_prepare;
    }
}

static void check_posted(const char *want, size_t length, size_t rts_length)
{
    for (; world_posted() > 0; world_complete(0, OPAL_SUCCESS)) {
        const bfo_hdr_t *h = world_posted_message(0);
        const bool is_frag = BFO_MSG_FRAG == h->common.type;
        const size_t from = is_frag ? h->frag.frag_offset : 0, most = 700 - sizeof(h->frag);
        const size_t size = !is_frag ? rts_length : length - from < most ? length - from : most;

        must(0 == memcmp((const char *) h + (is_frag ? sizeof(h->frag) : sizeof(h->rndv)), want + from, size),
             "a fragment has bytes from another place of the message");
    }
}

/* The first fragment comes back to T1 with an error, and T1 is about to pack it again. But the receiver has the fragment
 * and answers; T2 takes the answer and packs FRAGs. */
static void copy_of_first_fragment_has_its_own_convertor(void)
{
    enum { COUNT = 100, LENGTH = COUNT * 32 };
    ompi_request_t *request = NULL;
    char want[LENGTH];
    size_t at = 0, rts_length;
    bfo_ack_hdr_t ack;
    bfo_send_t *req;

    for (size_t i = 0; i < sizeof(room); ++i) {
        room[i] = (char) (i * 7 + i / 251);
    }
    for (int c = 0; c < COUNT * 4; ++c, at += 8) {
        memcpy(want + at, room + c / 4 * 80 + c % 4 * 24, 8);
    }
    life_begins();
    must(OMPI_SUCCESS == bfo_isend(room, COUNT, world_strided, 1, 3, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request), "a send does not start");
    req = (bfo_send_t *) request;
    rts_length = req->rts_length;
    sem_init(&first_is_at_alloc, 0, 0);
    sem_init(&first_goes_on, 0, 0);
    prepares = 0;
    hook_rails();
    pthread_create(&first_thread, NULL, first_fragment_fails, NULL);
    sem_wait(&first_is_at_alloc);
    bfo_hdr_pack_ack(&ack, 0, bfo_name_id(&req->name), 0x700000001u, rts_length, LENGTH - rts_length);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_ACK), &ack, sizeof(ack), sizeof(ack));
    unhook_rails();
    must(2 <= prepares && rts_length == req->rts_length, "the length of a first fragment that was posted has changed");
    check_posted(want, LENGTH, rts_length);
    must(is_over(req) && MPI_SUCCESS == request->req_status.MPI_ERROR, "a send does not end well");
    request->req_free(&request);
    life_ends();
}

/* ---- fragments that are used again ---------------------------------------------------------------------- */

/* Two copies of a FIN arrive over two rails. The second copy finds the fragment; then the first copy is taken, and the fragment is used
 * again, possibly on the other side of the PML. */
static void second_fin_finds_nobody(void)
{
    const bfo_fin_hdr_t fin = {.type = BFO_MSG_FIN};
    uint64_t dropped;
    bfo_frag_t *frag;

    life_begins();
    dropped = bfo_local_stat(BFO_STAT_STALE);
    frag = bfo_cache_take(BFO_CACHE_FRAG);
    frag->send = NULL;
    frag->recv = NULL;
    bfo_send_on_fin(frag, &fin);
    bfo_recv_on_fin(frag, &fin);
    must(dropped + 2 == bfo_local_stat(BFO_STAT_STALE), "a FIN of a fragment without a request was not dropped");
    bfo_cache_give(BFO_CACHE_FRAG, &frag->super);
    life_ends();
}

/* The PML drops a FIN of an attempt that is being given up (row S10). */
static void fin_in_error_state_is_stale(void)
{
    bfo_match_hdr_t message = {.seq = 0};
    ompi_request_t *request = NULL;
    bfo_send_t *req;
    bfo_fin_hdr_t fin;

    bfo_params.use_put = false;
    life_begins();
    must(OMPI_SUCCESS == bfo_isend(room, 3000, &ompi_mpi_byte.dt, 1, 3, MCA_PML_BASE_SEND_STANDARD, world_comm[0], &request),
         "a send does not start");
    req = (bfo_send_t *) request;
    must(BFO_MSG_RGET == req->rts_type, "no RGET");
    bfo_hdr_pack_fin(&fin, 1, 0, bfo_name_id(&req->rget->name), 3000, &message);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_FIN), &fin, sizeof(fin), sizeof(fin));
    must(0 == req->bytes && !req->resp, "a FIN of another attempt was taken");
    world_drain();
    bfo_hdr_pack_fin(&fin, 0, 0, NULL == req->rget ? 0 : bfo_name_id(&req->rget->name), 3000, &message);
    world_receive(&world_btl[1], BFO_TAG(BFO_MSG_FIN), &fin, sizeof(fin), sizeof(fin));
    must(is_over(req) && MPI_SUCCESS != request->req_status.MPI_ERROR, "a send to a lost peer does not end with an error");
    request->req_free(&request);
    life_ends();
    bfo_params.use_put = true;
}

/* A fragment belongs to no request between its use as a PUT of one request and its use by the next request. */
static void ended_put_is_of_no_request(void)
{
    bfo_fin_hdr_t fin = {.type = BFO_MSG_FIN, .fflags = BFO_FIN_WRITE};
    bfo_put_hdr_t put;
    world_btl_t *rail;
    bfo_recv_t *req;
    bfo_frag_t *frag;

    life_begins();
    req = receive_by_put(&put, &rail);
    frag = bfo_container(bfo_ids_find(&bfo.frags, put.frag_id), bfo_frag_t, name);
    must(frag->recv == req, "a PUT is of another request");
    fin.size = put.dst_size;
    fin.frag_id = put.frag_id;
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_FIN), &fin, sizeof(fin), sizeof(fin));
    must(is_over(req) && BFO_FRAG_NONE == frag->kind && NULL == frag->recv, "a PUT that has ended names its request");
    ((ompi_request_t *) req)->req_free((ompi_request_t **) &req);
    life_ends();
}

/* ---- a start that fails --------------------------------------------------------------------------------- */

static void failed_start_leaves_the_request_inactive(void)
{
    ompi_request_t *request = NULL;

    life_begins();
    must(OMPI_SUCCESS == bfo_isend_init(room, 64, &ompi_mpi_byte.dt, 1, 3, MCA_PML_BASE_SEND_BUFFERED, world_comm[0], &request),
         "no persistent request");
    for (int again = 0; again < 2; ++again) {
        const bfo_send_t *req = (const bfo_send_t *) request;

        must(OMPI_SUCCESS != bfo_send_restart(&request) && req == (const bfo_send_t *) request, "a buffered send without buffer starts");
        must(OMPI_REQUEST_INACTIVE == request->req_state && is_over(request) && BFO_LIFE_PML_DONE == req->life,
             "a request whose start failed is not inactive");
    }
    request->req_free(&request);
    life_ends();
}

/* ---- a callback that frees the communicator -------------------------------------------------------------- */

static unsigned called;

/* Frees the request, then gives back the user's reference; without another reference this frees the communicator. */
static int frees_everything(ompi_request_t *request)
{
    ++called;
    request->req_free(&request);
    if (1 == ((opal_object_t *) world_comm[1])->obj_reference_count) {
        world_comm_remove();
    }
    return 1;
}

static void receive_with_callback(int tag)
{
    ompi_request_t *request = NULL;

    must(OMPI_SUCCESS == bfo_irecv_init(room, 600, &ompi_mpi_byte.dt, 1, tag, world_comm[1], &request), "no receive");
    must(OMPI_SUCCESS == bfo_recv_restart(request), "a receive does not start");
    request->req_complete_cb = frees_everything;
}

static void match(uint32_t seq)
{
    bfo_match_hdr_t h;

    bfo_hdr_pack_match(&h, BFO_MSG_MATCH, 0, (uint16_t) world_comm[1]->c_contextid, 1, 4, seq);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_MATCH), &h, sizeof(h), sizeof(h));
}

/* The receive of a rendezvous holds back later messages. It looks for them after its callback has freed everything; so does the
 * receive of the message that was held back. */
static void callback_may_free_the_communicator(bool with_held)
{
    bfo_rndv_hdr_t rndv = {.msg_length = 600, .src_id = 0x800000001u};
    struct {
        bfo_frag_hdr_t h;
        char data[600];
    } frag = {.data = {0}};
    const bfo_recv_t *req;

    called = 0;
    life_begins();
    world_comm_add();
    receive_with_callback(4);
    bfo_hdr_pack_match(&rndv.match, BFO_MSG_RNDV, 0, (uint16_t) world_comm[1]->c_contextid, 1, 4, 0);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &rndv, sizeof(rndv), sizeof(rndv));
    req = bfo_container(bfo_ids_at(&bfo.recvs, bfo_load(&bfo.recvs.size) - 1), bfo_recv_t, name);
    for (uint32_t i = 0; i < bfo_load(&bfo.recvs.size); ++i) {
        const bfo_recv_t *each = bfo_container(bfo_ids_at(&bfo.recvs, i), bfo_recv_t, name);

        req = BFO_RECV_ACTIVE == bfo_se_state(each->m.se) ? each : req;
    }
    if (with_held) {
        receive_with_callback(4);
        match(1);
    }
    all_succeed();
    bfo_hdr_pack_frag(&frag.h, 0, req->src_id, bfo_name_id(&req->name), 0);
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_FRAG), &frag, sizeof(frag), sizeof(frag));
    must((with_held ? 2 : 1) == called, "a receive with a callback did not end");
    must(world_comm_is_there(), "a communicator that was in use was freed");
    life_ends();
}

/* ---- a communicator is freed by another thread ------------------------------------------------------------- */

/* A message has found its communicator, and waits for the lock, or is about to make a lane in it; meanwhile another thread frees the
 * communicator. `seq` is the message's number, and numbers begin at 0. The PML keeps only a new message, for the next communicator. */
static void late_message_meets_a_freed_communicator(uint32_t seq, bool with_lane)
{
    char text[16] = "";
    struct {
        bfo_match_hdr_t h;
        char data[16];
    } late = {.data = "it is late"};
    ompi_request_t *request = NULL;
    uint64_t dropped, orphans;

    life_begins();
    world_comm_add();
    if (with_lane) {
        must(OMPI_SUCCESS == bfo_irecv(text, 0, &ompi_mpi_byte.dt, 1, 4, world_comm[1], &request), "no receive");
        match(0);
        must(is_over(request), "a message is not received");
        request->req_free(&request);
        lock_of = bfo_comm_of(world_comm[1]);
        bfo_lock(&lock_of->lock);
    }
    dropped = bfo_local_stat(BFO_STAT_DUPLICATE);
    orphans = bfo_local_stat(BFO_STAT_ORPHAN);
    bfo_hdr_pack_match(&late.h, BFO_MSG_MATCH, 0, (uint16_t) world_comm[1]->c_contextid, 1, 5, seq);
    in_front_of_lock = world_comm_remove;
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_MATCH), &late, sizeof(late), sizeof(late));
    must(NULL != bfo.gone, "a communicator in use was not kept");
    if (with_lane && 0 == seq) {
        must(dropped + 1 == bfo_local_stat(BFO_STAT_DUPLICATE), "a copy was not dropped");
    } else {
        must(orphans + 1 == bfo_local_stat(BFO_STAT_ORPHAN), "a message was lost with the communicator before its own");
    }
    world_comm_add();
    must(NULL == bfo.gone, "a communicator that nobody uses any more was kept");
    must(OMPI_SUCCESS == bfo_irecv(text, 16, &ompi_mpi_byte.dt, 1, 5, world_comm[1], &request), "no receive");
    must((!with_lane || 0 != seq) == is_over(request), "the next communicator has another message");
    if (is_over(request)) {
        must(0 == strcmp("it is late", text), "a message has other bytes");
        request->req_free(&request);
    } else {
        request->req_cancel(request, 1);
        request->req_free(&request);
    }
    life_ends();
}

void fuzz_threads(void)
{
    late_message_meets_a_freed_communicator(0, true);
    late_message_meets_a_freed_communicator(1, true);
    late_message_meets_a_freed_communicator(0, false);
    callback_may_free_the_communicator(false);
    callback_may_free_the_communicator(true);
    fin_is_held_no_longer_than_its_fence(false);
    fin_is_held_no_longer_than_its_fence(true);
    fence_that_has_ended_does_not_run();
    fence_that_was_not_heard_of_is_told_again();
    copy_of_first_fragment_has_its_own_convertor();
    second_fin_finds_nobody();
    fin_in_error_state_is_stale();
    ended_put_is_of_no_request();
    failed_start_leaves_the_request_inactive();
}
