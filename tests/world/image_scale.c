/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The application of a large job: rounds in which every process sends a message to every other one, all at once. Every message is verified: its
 * bytes, which message it is, and the memory after it. Rank 0 says in its messages what comes after the round. See scale.c.
 */
#include "image_scale.h"

#include "types/btl_openib_types.h"
#include "image_day.h"
#include "types/pml_bfo_local.h"
#include "door/pml_bfo_module.h"

#include "ompi/request/request.h"
#include "opal/runtime/opal_progress.h"

#include <string.h>

enum {
    TAG = 9,
    AFTER = 64, /* bytes after a message that nobody may write */
    SHORT = 64, /* lengths: of most messages, of a message from a larger buffer, and of a rendezvous */
    MIDDLE = 2000,
    LONG = 20000,
    SLICES = 4096 /* at so many places of the pattern messages begin */
};

typedef struct {
    uint32_t round, from, to, next;
} head_t;

typedef struct {
    ompi_request_t *request;
    uint8_t *memory;
    head_t head; /* what it is, or must be; `next` of a receive is what came */
    size_t size;
} slot_t;

static slot_t out[WORLD_MAX_PROCESSES], in[WORLD_MAX_PROCESSES];
static slot_t *open_slots[2 * WORLD_MAX_PROCESSES];
static unsigned n_open;
static uint8_t pattern[LONG + SLICES];
static uint32_t round_now;
static bool has_mute_peers;

/* ---- a message --------------------------------------------------------------------------------------------- */

static const uint8_t *bytes_of(const head_t *h)
{
    return pattern + world_hash(SLICES, h->round, h->from, h->to, 31);
}

/* Peers without an image answer no rendezvous and give no credits of queues for one peer. */
static size_t size_of(unsigned from, unsigned to)
{
    const unsigned kind = has_mute_peers ? 1 : world_hash(16, round_now, from, to, 32);

    return 0 == kind ? LONG : 3 > kind ? MIDDLE : SHORT;
}

static void begun(slot_t *s, int rc)
{
    if (OMPI_SUCCESS != rc) {
        world_broken("a call about a message from %u to %u returns %d", s->head.from, s->head.to, rc);
    }
    open_slots[n_open++] = s;
}

static void make(slot_t *s, unsigned from, unsigned to, uint32_t next)
{
    s->head = (head_t){.round = round_now, .from = from, .to = to, .next = next};
    s->size = size_of(from, to);
    s->memory = world_room(s->size + AFTER);
    memset(s->memory, 0xa5, s->size + AFTER);
}

static void send_to(unsigned to, uint32_t next)
{
    slot_t *s = &out[to];

    make(s, world_rank(), to, next);
    memcpy(s->memory, bytes_of(&s->head), s->size);
    memcpy(s->memory, &s->head, sizeof(s->head));
    begun(s, bfo_module.pml_isend(s->memory, s->size, &ompi_mpi_byte.dt, (int) to, TAG, MCA_PML_BASE_SEND_STANDARD, image_world, &s->request));
}

static void receive_from(unsigned from)
{
    slot_t *s = &in[from];

    make(s, from, world_rank(), 0);
    begun(s, bfo_module.pml_irecv(s->memory, s->size, &ompi_mpi_byte.dt, (int) from, TAG, image_world, &s->request));
}

static void check(slot_t *s)
{
    head_t came;

    memcpy(&came, s->memory, sizeof(came));
    s->head.next = came.next;
    if (0 != memcmp(&came, &s->head, sizeof(came)) || s->request->req_status._ucount != s->size) {
        world_broken("a message of round %u from %u to %u came instead of that of round %u from %u", came.round, came.from, came.to, s->head.round,
                     s->head.from);
    }
    if (0 != memcmp(s->memory + sizeof(came), bytes_of(&s->head) + sizeof(came), s->size - sizeof(came))) {
        world_broken("round %u, message from %u: its bytes are wrong", s->head.round, s->head.from);
    }
}

/* Has it ended? Then it is verified. */
static bool has_ended(slot_t *s)
{
    if (!REQUEST_COMPLETE(s->request)) {
        return false;
    }
    if (OMPI_SUCCESS != s->request->req_status.MPI_ERROR) {
        world_broken("a message from %u to %u ends with error %d", s->head.from, s->head.to, s->request->req_status.MPI_ERROR);
    }
    if (s->head.to == world_rank()) {
        check(s);
    }
    for (size_t i = 0; i < AFTER; ++i) {
        if (0xa5 != s->memory[s->size + i]) {
            world_broken("round %u: the memory after a message was written", s->head.round);
        }
    }
    (void) ompi_request_free(&s->request);
    world_room_ends(s->memory);
    return true;
}

/* ---- a round ------------------------------------------------------------------------------------------------- */

/* Each process begins with the next one, so that no process gets all first messages. Returns what comes after the round. */
static uint32_t round_of_all(void)
{
    const unsigned n = world_ranks(), me = world_rank();
    const uint32_t next = 0 == me ? world_scale_next() : 0;
    unsigned longs = 0;

    ++round_now;
    for (unsigned i = 1; i < n && !has_mute_peers; ++i) {
        receive_from((me + n - i) % n);
    }
    for (unsigned i = 1; i < n; ++i) {
        send_to((me + i) % n, next);
        longs += LONG == out[(me + i) % n].size;
    }
    while (0 < n_open) {
        opal_progress();
        for (unsigned i = n_open; i-- > 0;) {
            if (has_ended(open_slots[i])) {
                open_slots[i] = open_slots[--n_open];
            }
        }
    }
    world_scale_ended(n - 1 - longs, longs);
    return 0 == me ? next : in[0].head.next;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    (void) world_clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

/* As a process that waits in MPI. */
static void wait_ms(uint64_t ms)
{
    for (const uint64_t until = now_ms() + ms; now_ms() < until;) {
        opal_progress();
    }
}

/* ---- the job --------------------------------------------------------------------------------------------------- */

void image_scale_counts(world_scale_counts_t *c)
{
    BFO_FOREACH_PEER(peer)
    {
        c->rails += (unsigned) __builtin_popcount(peer->send_mask);
    }
    c->rails_lost += bfo_local_stat(BFO_STAT_RAILS_LOST);
    c->rails_back += bfo_local_stat(BFO_STAT_RAILS_BACK);
    c->peers_lost += bfo_local_stat(BFO_STAT_PEERS_LOST);
    c->resends += bfo_local_stat(BFO_STAT_RESENDS);
    c->restarts += bfo_local_stat(BFO_STAT_RESTARTS);
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        const ofo_counters_t *btl = &OFO.module[i]->count;

        c->credits += btl->credit_messages;
        c->saved += btl->coalesced - btl->carriers;
        c->inquiries += btl->inquiries;
        c->questions += btl->questions;
        c->keepalives += btl->keepalives;
        c->soft += btl->soft_rails;
        c->hard += btl->silent_rails;
        c->copies += btl->copies;
    }
}

void image_scale(void)
{
    uint32_t next;

    for (size_t i = 0; i < sizeof(pattern); ++i) {
        pattern[i] = (uint8_t) world_hash(256, (unsigned) i, 0, 0, 33);
    }
    has_mute_peers = 0 != world_plan_of("peers");
    image_begin(false);
    world_scale_ready();
    do {
        next = round_of_all();
        wait_ms(WORLD_SCALE_IDLES == next ? WORLD_SCALE_IDLE_MS : world_plan_of("pause"));
    } while (WORLD_SCALE_ENDS != next);
    if (has_mute_peers) {
        world_scale_leaves();
    }
    image_end();
    world_trace("ends");
}
