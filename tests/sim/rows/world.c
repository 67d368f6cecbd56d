/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Requests, completions and a peer's messages for the scenarios of world_rows. world_rows met|raised runs the scenarios;
 * built with -DBFO_COUNT_ROWS=1 the PML writes the rows that they took. Ends with abort() if a request does not end.
 * DESIGN.txt section 13.
 */
#include "world.h"

#include "failover/pml_bfo_failover_peer.h"
#include "rails/pml_bfo_failover_poison.h"
#include "door/pml_bfo_recv_api.h"
#include "door/pml_bfo_send_api.h"
#include "show/pml_bfo_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_progress(void);

void world_must(bool what, const char *function, int line, const char *text)
{
    if (!what) {
        fprintf(stderr, "world_rows: %s, line %d: not so: %s\n", function, line, text);
        abort();
    }
}

/* ---- one life of the PML ----------------------------------------------------------------------------- */

enum { MAX_MINE = 16, ROOM = 16384 };
static ompi_request_t *mine[MAX_MINE];
static char *buffers[MAX_MINE];
static int n_mine;

void life_begins(unsigned how)
{
    opal_uses_threads = 0 != (how & THREADS);
    bfo_params.use_get = 0 != (how & READS);
    n_mine = 0;
    world_begin();
}

bool is_over(const void *request)
{
    return REQUEST_COMPLETED == ((const ompi_request_t *) request)->req_complete;
}

void give_back(void *request)
{
    must(is_over(request) && MPI_SUCCESS == ((ompi_request_t *) request)->req_status.MPI_ERROR);
    for (int i = 0; i < n_mine; ++i) {
        if (mine[i] == request) {
            mine[i]->req_free(&mine[i]);
            free(buffers[i]);
            mine[i] = mine[--n_mine];
            buffers[i] = buffers[n_mine];
        }
    }
}

void life_ends(void)
{
    world_on_output = NULL;
    bfo_params.verbose = 0;
    world_drain();
    for (int i = 0; i < n_mine; ++i) {
        must(is_over(mine[i]));
        mine[i]->req_free(&mine[i]);
        free(buffers[i]);
    }
    world_end();
    opal_uses_threads = false;
}

void declare(void)
{
    bfo_failover_declare(world_proc[1]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML], "a scenario says so");
}

void fences_end(void)
{
    while (world_fences() > 0) {
        world_fence_done(0, false);
    }
}

void progress(void)
{
    fuzz_progress();
    fuzz_progress();
}

static ompi_request_t **next(char **buffer)
{
    must(n_mine < MAX_MINE);
    buffers[n_mine] = *buffer = calloc(1, ROOM);
    return &mine[n_mine++];
}

/* ---- sends -------------------------------------------------------------------------------------------- */

static bfo_send_t *send_of(size_t count, ompi_datatype_t *type, mca_pml_base_send_mode_t mode)
{
    ompi_request_t **request;
    char *buffer;

    request = next(&buffer);
    must(OMPI_SUCCESS == bfo_isend(buffer, count, type, 1, 3, mode, world_comm[0], request));
    must(&ompi_request_empty != *request);
    return (bfo_send_t *) *request;
}

bfo_send_t *send_match(void)
{
    world_refuse_busy = 1;
    return send_of(100, &ompi_mpi_byte.dt, MCA_PML_BASE_SEND_STANDARD);
}

bfo_send_t *send_copied(void)
{
    return send_of(60, world_strided, MCA_PML_BASE_SEND_STANDARD);
}

bfo_send_t *send_written(void)
{
    return send_of(3000, &ompi_mpi_byte.dt, MCA_PML_BASE_SEND_STANDARD);
}

bfo_send_t *send_read(void)
{
    return send_of(3000, &ompi_mpi_byte.dt, MCA_PML_BASE_SEND_STANDARD);
}

/* ---- receives ----------------------------------------------------------------------------------------- */

static uint32_t next_number(void)
{
    const bfo_lane_t *lane = bfo_comm_of(world_comm[0])->lanes[1];

    return NULL == lane ? 0 : lane->match.next_recv;
}

bfo_recv_t *recv_posted(void)
{
    ompi_request_t **request;
    char *buffer;

    request = next(&buffer);
    must(OMPI_SUCCESS == bfo_irecv(buffer, 12000, &ompi_mpi_byte.dt, 1, 4, world_comm[0], request));
    (*request)->req_complete_cb = NULL; /* as MPI leaves it at the start of a request */
    return (bfo_recv_t *) *request;
}

static void got_rndv(size_t length, unsigned flags)
{
    bfo_rndv_hdr_t h = {.msg_length = length, .src_id = 0x800000001u};

    bfo_hdr_pack_match(&h.match, BFO_MSG_RNDV, (uint8_t) flags, 0, 1, 4, next_number());
    world_receive(&world_btl[0], BFO_TAG(BFO_MSG_RNDV), &h, sizeof(h), sizeof(h));
}

bfo_recv_t *recv_copied(void)
{
    bfo_recv_t *req = recv_posted();

    got_rndv(1200, 0);
    return req;
}

bfo_recv_t *recv_written(void)
{
    bfo_recv_t *req = recv_posted();

    got_rndv(6000, BFO_FLAG_PIN | BFO_FLAG_CONTIG);
    return req;
}

bfo_recv_t *recv_read(size_t length, world_btl_t *btl)
{
    bfo_recv_t *req = recv_posted();

    world_rget_comes(btl, length, next_number());
    return req;
}

/* ---- completions -------------------------------------------------------------------------------------- */

bool is_posted(unsigned type)
{
    return 0 <= world_find(type);
}

world_btl_t *rail_of(unsigned type)
{
    must(is_posted(type));
    return world_btl_of((unsigned) world_find(type));
}

/* As if each request of this process had come back before from another rail, which named the request as the cause (DESIGN.txt 7.5). */
static void blame(void)
{
    enum { ELSEWHERE = BFO_MAX_RAILS };

    for (int i = 0; i < n_mine; ++i) {
        if (OMPI_REQUEST_PML == mine[i]->req_type && MCA_PML_REQUEST_SEND == ((mca_pml_base_request_t *) mine[i])->req_type) {
            (void) bfo_failover_send_is_poison((const bfo_send_t *) mine[i], ELSEWHERE, OPAL_ERR_FATAL);
        } else if (NULL != ((const bfo_recv_t *) mine[i])->lane) {
            (void) bfo_failover_recv_is_poison((const bfo_recv_t *) mine[i], ELSEWHERE, OPAL_ERR_FATAL);
        }
    }
}

void (*world_before_event)(bfo_send_t *req);
unsigned world_event;

/* The linker directs each call of bfo_send_step() to this function (-Wl,--wrap). */
bfo_step_t __real_bfo_send_step(bfo_machine_t *m, unsigned event, const bfo_send_ops_t *ops, void *request, void *arg);
bfo_step_t __wrap_bfo_send_step(bfo_machine_t *m, unsigned event, const bfo_send_ops_t *ops, void *request, void *arg);
bfo_step_t __wrap_bfo_send_step(bfo_machine_t *m, unsigned event, const bfo_send_ops_t *ops, void *request, void *arg)
{
    void (*meanwhile)(bfo_send_t * req) = world_before_event;

    if (NULL != meanwhile && world_event == event) {
        world_before_event = NULL;
        meanwhile(request);
    }
    return __real_bfo_send_step(m, event, ops, request, arg);
}

void comes_back(unsigned type, int status)
{
    const int n = world_find(type);

    must(0 <= n);
    if (OPAL_ERR_FATAL == status) {
        blame();
    }
    if (OPAL_SUCCESS != status) {
        world_rail_fails(world_btl_of((unsigned) n));
    }
    world_complete((unsigned) n, status);
}

void comes_back_suspect(unsigned type)
{
    const int n = world_find(type);

    must(0 <= n);
    world_rail_fails(world_btl_of((unsigned) n));
    world_complete((unsigned) n, OPAL_ERR_FATAL);
}

/* ---- messages of the peer ----------------------------------------------------------------------------- */

static void got(world_btl_t *btl, uint8_t type, const void *bytes, size_t length)
{
    world_receive(btl, BFO_TAG(type), bytes, length, length);
}

void got_ack(const bfo_send_t *req, uint16_t epoch, size_t from, size_t size)
{
    bfo_ack_hdr_t h;

    bfo_hdr_pack_ack(&h, epoch, bfo_name_id(&req->name), 0x700000001u, from, size);
    got(&world_btl[1], BFO_MSG_ACK, &h, sizeof(h));
}

void got_fin_of_read(const bfo_send_t *req, size_t size)
{
    bfo_match_hdr_t message = {.seq = req->match_seq};
    bfo_fin_hdr_t h;

    must(NULL != req->rget);
    bfo_hdr_pack_fin(&h, bfo_se_epoch(req->m.se), 0, bfo_name_id(&req->rget->name), size, &message);
    got(&world_btl[1], BFO_MSG_FIN, &h, sizeof(h));
}

static void handshake(bfo_handshake_hdr_t *h)
{
    h->jobid = 77;
    h->vpid = 1;
    h->nrails = 3;
    got(&world_btl[1], h->match.type, h, sizeof(*h));
}

void got_handshake(uint8_t type, const bfo_send_t *req, unsigned flags)
{
    bfo_handshake_hdr_t h = {.match = {.type = type, .flags = (uint8_t) flags, .seq = req->match_seq},
                             .src_id = bfo_name_id(&req->name),
                             .dst_id = 0x700000001u,
                             .epoch = (uint16_t) (bfo_se_epoch(req->m.se) + (BFO_MSG_RERR != type))};

    handshake(&h);
}

void got_notify(const bfo_recv_t *req, uint16_t epoch, unsigned flags, uint8_t dead_mask)
{
    bfo_handshake_hdr_t h = {.match = {.type = BFO_MSG_NOTIFY, .flags = (uint8_t) flags, .seq = req->match_seq},
                             .src_id = req->src_id,
                             .dst_id = bfo_name_id(&req->name),
                             .epoch = epoch,
                             .dead_mask = dead_mask};

    handshake(&h);
}

void got_notify_of(bfo_id_t id)
{
    bfo_handshake_hdr_t h = {.match = {.type = BFO_MSG_NOTIFY}, .src_id = 0x800000001u, .dst_id = id, .epoch = 1};

    handshake(&h);
}

void got_frag(const bfo_recv_t *req, uint16_t epoch, size_t from, size_t size)
{
    struct {
        bfo_frag_hdr_t h;
        char data[4000];
    } frag = {.data = {0}};

    must(size <= sizeof(frag.data));
    bfo_hdr_pack_frag(&frag.h, epoch, req->src_id, bfo_name_id(&req->name), from);
    got(&world_btl[1], BFO_MSG_FRAG, &frag, sizeof(frag.h) + size);
}

void got_match(int tag)
{
    struct {
        bfo_match_hdr_t h;
        char data[40];
    } match = {.data = {0}};

    bfo_hdr_pack_match(&match.h, BFO_MSG_MATCH, 0, 0, 1, tag, next_number());
    got(&world_btl[1], BFO_MSG_MATCH, &match, sizeof(match));
}

void got_restart(const bfo_recv_t *req)
{
    struct {
        bfo_rndv_hdr_t h;
        bfo_restart_hdr_t restart;
    } rndv = {.h = {.msg_length = req->length, .src_id = req->src_id},
              .restart = {.dst_id = bfo_name_id(&req->name), .epoch = bfo_se_epoch(req->m.se)}};

    bfo_hdr_pack_match(&rndv.h.match, BFO_MSG_RNDV, BFO_FLAG_RESTART, 0, 1, 4, req->match_seq);
    got(&world_btl[1], BFO_MSG_RNDV, &rndv, sizeof(rndv));
}

void got_restart_read(const bfo_recv_t *req, world_btl_t *btl)
{
    struct {
        bfo_rget_hdr_t h;
        char handle[WORLD_HANDLE];
        bfo_restart_hdr_t restart;
    } rget = {.h = {.rndv = {.msg_length = req->length, .src_id = req->src_id}, .frag_id = 0x900000001u, .src_ptr = 0x10000},
              .restart = {.dst_id = bfo_name_id(&req->name), .epoch = bfo_se_epoch(req->m.se)}};

    must(bfo_rget_hdr_size(WORLD_HANDLE, true) == sizeof(rget));
    bfo_hdr_pack_match(&rget.h.rndv.match, BFO_MSG_RGET, BFO_FLAG_CONTIG | BFO_FLAG_RESTART, 0, 1, 4, req->match_seq);
    got(btl, BFO_MSG_RGET, &rget, sizeof(rget));
}

static bfo_fin_hdr_t last_fin;

void got_fin_of_write(const bfo_recv_t *req, unsigned flags, uint8_t rail)
{
    const bfo_frag_t *frag = NULL;
    bfo_match_hdr_t message = {.seq = req->match_seq};
    bfo_fin_hdr_t h;

    for (uint32_t i = 0; i < bfo.frags.size; ++i) {
        const bfo_frag_t *f = bfo_container(bfo_ids_at(&bfo.frags, i), bfo_frag_t, name);

        frag = BFO_FRAG_PUT == f->kind && f->recv == req ? f : frag;
    }
    must(NULL != frag);
    bfo_hdr_pack_fin(&h, frag->epoch, (uint8_t) (BFO_FIN_WRITE | flags), bfo_name_id(&frag->name), frag->length, &message);
    h.wrail = req->lane->peer->rails[rail].name;
    last_fin = h;
    got(&world_btl[1], BFO_MSG_FIN, &h, sizeof(h));
}

void got_fin_again(uint8_t rail)
{
    last_fin.fflags |= BFO_FIN_RESENT;
    last_fin.wrail = (uint8_t) (world_btl[rail].ext.magic == BFO_BTL_EXT_MAGIC ? rail : 0);
    got(&world_btl[1], BFO_MSG_FIN, &last_fin, sizeof(last_fin));
}

/* ---- pml_dump ----------------------------------------------------------------------------------------- */

static const char *wanted_first, *wanted_second;
static bool was_said;

static void hear(const char *line)
{
    const char *at = strstr(line, wanted_first);

    was_said = was_said || (NULL != at && NULL != strstr(at, wanted_second));
}

bool dump_says(const char *first, const char *second)
{
    wanted_first = first;
    wanted_second = second;
    was_said = false;
    world_on_output = hear;
    must(OMPI_SUCCESS == bfo_dump(world_comm[0], 1));
    world_on_output = NULL;
    return was_said;
}

int main(int argc, char **argv)
{
    if (2 != argc || (0 != strcmp(argv[1], "met") && 0 != strcmp(argv[1], "raised"))) {
        fprintf(stderr, "usage: world_rows met|raised\n");
        return 2;
    }
    world_third_rail = true;
    world_init();
    if (0 == strcmp(argv[1], "raised")) {
        rows_raised();
    } else {
        rows_of_senders();
        rows_of_receivers();
    }
    return 0;
}
