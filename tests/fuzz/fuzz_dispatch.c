/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * libFuzzer target: the input is a program of calls, arriving messages (raw bytes, or headers made of living
 * identifiers and then damaged), completions, refusals, lost rails. Checks at every step: no access goes outside a message
 * or a buffer (AddressSanitizer), a step completes only requests that it concerns, a receive gets a message that it
 * asked for. At the end all peers are lost, and every request completes. DESIGN.txt section 18.
 */
#include "fuzz_world.h"

#include "door/pml_bfo_recv_api.h"
#include "door/pml_bfo_recv_probe.h"
#include "door/pml_bfo_send_api.h"
#include "show/pml_bfo_show.h"

#include "fuzz_requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_progress(void);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- messages ---------------------------------------------------------------------------------------- */

/* The n-th living object of a table, or NULL. */
static bfo_name_t *living(bfo_ids_t *ids, unsigned n)
{
    return 0 == ids->size ? NULL : bfo_ids_at(ids, n % ids->size);
}

typedef struct {
    union {
        bfo_hdr_t h;
        uint8_t raw[BFO_HDR_MAX + 1200];
    } u;
    size_t length;
    uint8_t type;
} message_t;

static void make_first(message_t *m, unsigned rank, unsigned flags)
{
    const int comm = (int) below(2);
    const bfo_comm_t *bc = bfo_comm_of(world_comm[comm]);
    const bfo_lane_t *lane = NULL == bc ? NULL : bc->lanes[rank];
    const uint32_t next = NULL == lane ? 0 : lane->match.next_recv;
    const unsigned delta = byte();
    size_t payload = word() % 1000, handle = 1 == rank ? WORLD_HANDLE : 0;

    bfo_hdr_pack_match(&m->u.h.match, m->type, (uint8_t) flags, (uint16_t) world_comm[comm]->c_contextid, (int) rank,
                       (int) below(4) - (0 == delta % 16), next + (delta < 200 ? 0 : (uint32_t) ((int) delta - 228)));
    if (BFO_MSG_MATCH != m->type) {
        m->u.h.rndv.src_id = 0x100000000u + byte();
        m->u.h.rndv.msg_length = word() % 9000;
        payload = payload < m->u.h.rndv.msg_length ? payload : m->u.h.rndv.msg_length;
    }
    if (BFO_MSG_RGET == m->type) {
        m->u.h.rget.frag_id = 0x200000000u + byte();
        m->u.h.rget.src_ptr = 0x10000;
        m->u.h.rget.rails = (uint8_t) byte();
        payload = 0;
        handle = bfo_rget_handles_size(m->u.h.rget.rails, handle);
    }
    m->length = bfo_hdr_size(m->type, m->u.h.common.flags, handle);
    if (BFO_MSG_MATCH != m->type && (flags & BFO_FLAG_RESTART)) {
        const bfo_name_t *name = living(&bfo.recvs, byte());
        const bfo_recv_t *req = NULL == name ? NULL : bfo_container(name, bfo_recv_t, name);
        bfo_restart_hdr_t restart = {.dst_id = NULL == name ? 1 : bfo_name_id(name), .epoch = NULL == name ? 1 : bfo_se_epoch(req->m.se)};

        if (NULL != req) {
            m->u.h.rndv.src_id = req->src_id;
            m->u.h.rndv.msg_length = req->length;
            m->u.h.match.seq = req->match_seq;
            payload = payload < req->length ? payload : req->length;
            payload = BFO_MSG_RGET == m->type ? 0 : payload;
        }
        memcpy(m->u.raw + m->length - sizeof(restart), &restart, sizeof(restart));
    }
    m->length += payload;
}

static void make_ack(message_t *m)
{
    const bfo_name_t *name = living(&bfo.sends, byte());
    const bfo_send_t *req = NULL == name ? NULL : bfo_container(name, bfo_send_t, name);
    const size_t length = NULL == req ? 0 : bfo_send_length(req), from = NULL == req ? 0 : req->rts_length;
    const unsigned odd = byte();

    bfo_hdr_pack_ack(&m->u.h.ack, NULL == req ? 0 : bfo_se_epoch(req->m.se), NULL == name ? 1 : bfo_name_id(name), 0x300000000u + byte(),
                     odd < 200 ? from : word(), odd < 220 ? length - from : word());
    m->length = sizeof(bfo_ack_hdr_t);
}

static void make_frag(message_t *m)
{
    const bfo_name_t *name = living(&bfo.recvs, byte());
    const bfo_recv_t *req = NULL == name ? NULL : bfo_container(name, bfo_recv_t, name);
    const unsigned odd = byte();
    size_t offset = NULL == req ? 0 : req->bytes, left = NULL == req ? 1 : req->length - offset;

    offset = odd < 180 ? offset : word() % 9000;
    left = odd < 180 && left > 0 && left < 600 ? left : 1 + word() % 600;
    bfo_hdr_pack_frag(&m->u.h.frag, NULL == req ? 0 : bfo_se_epoch(req->m.se), NULL == req ? 1 : req->src_id, NULL == name ? 1 : bfo_name_id(name),
                      offset);
    m->length = sizeof(bfo_frag_hdr_t) + left;
}

static void make_put(message_t *m, unsigned rank)
{
    const bfo_name_t *name = living(&bfo.sends, byte());
    const bfo_send_t *req = NULL == name ? NULL : bfo_container(name, bfo_send_t, name);
    const size_t length = NULL == req ? 1 : bfo_send_length(req);
    const unsigned odd = byte();

    m->u.h.put = (bfo_put_hdr_t){.type = BFO_MSG_PUT,
                                 .epoch = NULL == req ? 0 : bfo_se_epoch(req->m.se),
                                 .src_id = NULL == name ? 1 : bfo_name_id(name),
                                 .frag_id = 0x400000000u + byte(),
                                 .dst_id = 0x500000000u + byte(),
                                 .dst_ptr = 0x20000,
                                 .rdma_offset = odd < 128 ? 0 : word(),
                                 .dst_size = odd < 200 ? length : 1 + word()};
    m->length = sizeof(bfo_put_hdr_t) + (1 == rank ? WORLD_HANDLE : 0);
}

static void make_fin(message_t *m)
{
    const bfo_name_t *name = living(&bfo.frags, byte());
    const bfo_frag_t *frag = NULL == name ? NULL : bfo_container(name, bfo_frag_t, name);
    const unsigned odd = byte();
    const bool is_put = NULL != frag && BFO_FRAG_PUT == frag->kind;
    bfo_match_hdr_t message = {0};

    if (is_put) {
        message.seq = frag->recv->match_seq;
    } else if (NULL != frag && BFO_FRAG_RGET == frag->kind) {
        message.seq = frag->send->match_seq;
    }
    bfo_hdr_pack_fin(&m->u.h.fin, NULL == frag ? 0 : frag->epoch, is_put ? BFO_FIN_WRITE : 0, NULL == name ? 1 : bfo_name_id(name),
                     NULL == frag || odd > 200 ? word() : frag->length, &message);
    if (odd & 1) {
        m->u.h.fin.fflags |= BFO_FIN_RESENT;
        m->u.h.fin.wrail = (uint8_t) below(3);
        m->u.h.fin.wgen = (uint16_t) below(2);
    }
    m->u.h.fin.share[odd % 8] = (uint8_t) odd;
    m->length = sizeof(bfo_fin_hdr_t);
}

static void make_handshake(message_t *m, unsigned rank)
{
    const bool to_receiver = BFO_MSG_NOTIFY == m->type;
    const bfo_name_t *name = living(to_receiver ? &bfo.recvs : &bfo.sends, byte());
    const unsigned odd = byte();
    bfo_handshake_hdr_t *h = &m->u.h.handshake;

    *h = (bfo_handshake_hdr_t){.match = {.type = m->type}, .nrails = 2, .jobid = 77, .vpid = rank, .src_id = 9, .dst_id = 9};
    if (NULL != name && to_receiver) {
        const bfo_recv_t *req = bfo_container(name, bfo_recv_t, name);

        h->dst_id = bfo_name_id(name);
        h->src_id = req->src_id;
        h->match.seq = req->match_seq;
        h->epoch = (uint16_t) (bfo_se_epoch(req->m.se) + (odd < 200));
        h->dead_mask = (uint8_t) below(4);
        h->rail_gen[below(2)] = (uint16_t) (odd > 240);
    } else if (NULL != name) {
        const bfo_send_t *req = bfo_container(name, bfo_send_t, name);

        h->src_id = bfo_name_id(name);
        h->dst_id = 0 != req->dst_id ? req->dst_id : 0x600000001u;
        h->match.seq = req->match_seq;
        h->epoch = (uint16_t) (bfo_se_epoch(req->m.se) + (BFO_MSG_RERR != m->type && odd < 200));
    }
    h->match.flags = odd % 8 == 7 ? BFO_FLAG_FAILED : 0;
    m->length = sizeof(*h);
}

/* ---- no request completes that the message does not concern ------------------------------------------- */

static bool names(const message_t *m, bfo_id_t id)
{
    for (size_t i = 8; i + sizeof(id) <= m->length && i < 120; i += 8) {
        if (0 == memcmp(m->u.raw + i, &id, sizeof(id))) {
            return true;
        }
    }
    return false;
}

static bool concerns(const message_t *m, const mine_t *r, bfo_frag_t *frag, bool lost)
{
    if (lost || names(m, r->id)) {
        return true;
    }
    if (NULL != frag && (r->is_send ? frag->send == send_of(r) : frag->recv == recv_of(r))) {
        return true;
    }
    /* a first fragment; or it let a first fragment take its turn that was early */
    return !r->is_send && m->type <= BFO_MSG_RGET;
}

static unsigned peers_lost(void)
{
    unsigned n = 0;

    for (int rank = 0; rank < WORLD_RANKS; ++rank) {
        const bfo_peer_t *peer = world_proc[rank]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

        n += NULL != peer && peer->declared;
    }
    return n;
}

static void receive(world_btl_t *btl, const message_t *m, size_t split)
{
    const unsigned lost = peers_lost();
    bfo_frag_t *frag = NULL, before;
    bfo_name_t *name;
    bfo_id_t id;

    for (mine_t *r = mine; r < mine + MAX_REQUESTS; ++r) {
        r->open = NULL != r->request && !is_done(r);
        r->id = !r->open ? 0 : r->is_send ? bfo_name_id(&send_of(r)->name) : bfo_name_id(&recv_of(r)->name);
    }
    memcpy(&id, m->u.raw + offsetof(bfo_fin_hdr_t, frag_id), sizeof(id));
    name = BFO_MSG_FIN == m->type && m->length >= sizeof(bfo_fin_hdr_t) ? bfo_ids_find(&bfo.frags, id) : NULL;
    if (NULL != name) {
        before = *bfo_container(name, bfo_frag_t, name);
        frag = &before;
    }
    world_receive(btl, BFO_TAG(m->type), m->u.raw, m->length, split);
    for (const mine_t *r = mine; r < mine + MAX_REQUESTS; ++r) {
        if (r->open && is_done(r) && !concerns(m, r, frag, lost != peers_lost())) {
            die("a message completed a request that it does not concern", r);
        }
    }
}

static void op_message(void)
{
    static const uint8_t types[] = {BFO_MSG_MATCH,  BFO_MSG_RNDV, BFO_MSG_RGET, BFO_MSG_ACK,  BFO_MSG_FRAG,  BFO_MSG_PUT, BFO_MSG_FIN,
                                    BFO_MSG_NOTIFY, BFO_MSG_RACK, BFO_MSG_NACK, BFO_MSG_RERR, BFO_MSG_RAILS, BFO_MSG_LIFE};
    static message_t m;
    world_btl_t *btl = &world_btl[below(WORLD_BTLS)];
    const unsigned rank = (unsigned) btl->peer, shape = byte();
    unsigned damage;

    memset(&m, 0x33, sizeof(m));
    m.type = types[below(sizeof(types))];
    switch (m.type) {
    case BFO_MSG_MATCH:
    case BFO_MSG_RNDV:
    case BFO_MSG_RGET:
        make_first(&m, rank, BFO_MSG_MATCH == m.type ? 0 : byte() & ~(unsigned) BFO_FLAG_NBO);
        break;
    case BFO_MSG_ACK:
        make_ack(&m);
        break;
    case BFO_MSG_FRAG:
        make_frag(&m);
        break;
    case BFO_MSG_PUT:
        make_put(&m, rank);
        break;
    case BFO_MSG_FIN:
        make_fin(&m);
        break;
    case BFO_MSG_RAILS:
        m.u.h.rails = (bfo_rails_hdr_t){.type = BFO_MSG_RAILS,
                                        .out = (uint8_t) below(8),
                                        .quiet = (uint8_t) below(8),
                                        .number = 1 + below(4),
                                        .jobid = 77,
                                        .vpid = rank,
                                        .forced = (uint8_t) below(8)};
        m.length = sizeof(bfo_rails_hdr_t);
        break;
    case BFO_MSG_LIFE:
        m.u.h.life = (bfo_life_hdr_t){.type = BFO_MSG_LIFE,
                                      .answer = (uint8_t) below(BFO_PROCESS_ANSWERS),
                                      .number = 1 + below(3),
                                      .jobid = 77,
                                      .vpid = rank,
                                      .about = world_life[1]};
        m.length = sizeof(bfo_life_hdr_t);
        break;
    default:
        make_handshake(&m, rank);
        break;
    }
    m.length = m.length < sizeof(m.u.raw) ? m.length : sizeof(m.u.raw);
    for (damage = shape & 3; damage > 0 && (shape & 4); --damage) {
        m.u.raw[byte() % (m.length > 0 ? m.length : 1)] ^= (uint8_t) byte();
    }
    if (shape & 8) {
        m.length = m.length > byte() ? m.length - (unsigned) byte() % (m.length + 1) : m.length;
    }
    receive(btl, &m, shape & 16 ? (size_t) byte() : m.length);
}

static void op_raw(void)
{
    static message_t m;
    world_btl_t *btl = &world_btl[below(WORLD_BTLS)];

    m.type = (uint8_t) below(BFO_MSG_MAX + 1);
    m.length = byte();
    for (size_t i = 0; i < m.length; ++i) {
        m.u.raw[i] = (uint8_t) byte();
    }
    receive(btl, &m, m.length);
}

/* ---- other steps -------------------------------------------------------------------------------------- */

static void op_complete(void)
{
    static const int statuses[] = {OPAL_SUCCESS, OPAL_SUCCESS, OPAL_SUCCESS, OPAL_ERROR, OPAL_ERR_FATAL};
    const int status = statuses[below(5)];
    unsigned count = 1 + below(8);

    while (count-- > 0 && world_posted() > 0) {
        world_complete(byte() % world_posted(), status);
    }
}

static void op_probe(void)
{
    const int comm = pick_comm(), rank = (int) below(3), tag = (int) below(5) - 1;
    ompi_message_t *message = NULL;
    ompi_status_public_t status;
    int found = 0;
    mine_t *m;

    if (byte() & 1) {
        (void) bfo_iprobe(0 == rank ? MPI_ANY_SOURCE : rank, tag, world_comm[comm], &found, &status);
        return;
    }
    m = unused();
    if (NULL == m || OMPI_SUCCESS != bfo_improbe(0 == rank ? MPI_ANY_SOURCE : rank, tag, world_comm[comm], &found, &message, &status) || !found) {
        return;
    }
    *m = (mine_t){.rank = status.MPI_SOURCE, .tag = status.MPI_TAG, .comm = comm, .capacity = word() % 2000};
    m->buffer = malloc(m->capacity > 0 ? m->capacity : 1);
    if (OMPI_SUCCESS != bfo_imrecv(m->buffer, m->capacity, &ompi_mpi_byte.dt, &message, &m->request)) {
        die("a matched receive could not be made", m);
    }
}

static void op_cancel(void)
{
    mine_t *m = &mine[below(MAX_REQUESTS)];

    if (NULL != m->request && !is_done(m)) {
        m->cancelled = !m->is_send && BFO_SE(BFO_RECV_UNMATCHED, 0) == recv_of(m)->m.se;
        m->request->req_cancel(m->request, 1);
        if (m->cancelled && !is_done(m)) {
            die("a cancelled receive is not complete", m);
        }
    }
}

static void op_trouble(void)
{
    switch (byte() % 8) {
    case 0:
        world_rail_fails(&world_btl[below(WORLD_BTLS)]);
        break;
    case 1:
    case 2:
        if (world_fences() > 0) {
            world_fence_done(byte() % world_fences(), byte() > 240);
        }
        break;
    case 3:
        world_refuse_dead = below(3);
        break;
    case 4:
        world_refuse_memory = below(6);
        break;
    default:
        world_refuse_busy = below(6);
        break;
    }
}

static void op_comm(void)
{
    if (!world_comm_is_there()) {
        world_comm_add();
    } else if (!comm_is_used(1)) {
        world_comm_remove();
    }
}

/* Dumps the communicator; only the sanitizer checks the accesses. */
static void op_dump(void)
{
    (void) bfo_dump(world_comm[pick_comm()], 1);
}

static void step(void)
{
    static void (*const ops[])(void) = {op_receive, op_receive, op_send,    op_send,    op_message,  op_message,  op_message,
                                        op_message, op_message, op_message, op_message, op_complete, op_complete, op_complete,
                                        op_raw,     op_probe,   op_cancel,  op_trouble, op_trouble,  op_comm,     fuzz_progress};

    const unsigned op = byte(), n_ops = sizeof(ops) / sizeof(ops[0]);

    if (op >= 256 / n_ops * n_ops) { /* not in the table, so that the kept inputs keep their meaning */
        op_dump();
    } else {
        ops[op % n_ops]();
    }
    reap();
}

/* All peers are lost. Only receives from any source may still be open, and they can be cancelled. */
static void finish(void)
{
    world_drain();
    reap();
    for (mine_t *m = mine; m < mine + MAX_REQUESTS; ++m) {
        if (NULL == m->request) {
            continue;
        }
        if (m->is_send || m->rank >= 0) {
            die("a request of a lost peer does not end", m);
        }
        m->cancelled = true;
        m->request->req_cancel(m->request, 1);
        if (!is_done(m)) {
            die("a receive can be neither completed nor cancelled", m);
        }
    }
    reap();
    if (0 != world_open_puts()) {
        die("a PUT of a lost peer is still open", NULL);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    world_init();
    fuzz_races();
    fuzz_threads();
    fuzz_early();
    fuzz_params();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    at = data;
    end = data + size;
    memset(mine, 0, sizeof(mine));
    world_begin();
    for (unsigned n = 0; at < end && n < 400; ++n) {
        step();
    }
    finish();
    world_end();
    return 0;
}
