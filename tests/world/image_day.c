/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The application of a day: bursts of messages between all processes, with pauses in which each process computes, for as long as the host
 * wants. Rank 0 says in its messages of a burst what comes after it: the next burst, a series of exchanges with a process of another machine, or
 * the end. Every message is verified: its bytes, its place in the order, and the memory after it. See day.c.
 */
#include "image_day.h"

#include "types/btl_openib_types.h"
#include "types/pml_bfo_local.h"
#include "door/pml_bfo_module.h"

#include "ompi/request/request.h"
#include "opal/runtime/opal_progress.h"

#include <string.h>

enum {
    MOST = WORLD_JOB_PROCESSES,
    PER_PEER = 3, /* messages of one process to another in a burst, */
    FLOOD = 40,   /* or now and then so many short ones: more than the other process has buffers for if it computes or is stopped */
    FLOODS = 24,
    TAG = 7,
    AFTER = 64, /* bytes after a message that nobody may write */
    SHORT = 64,
    LONG = 4096,
    LONGEST = 256 * 1024, /* of a burst */
    SLICES = 4096,        /* at so many places of the pattern messages begin */
    SHORT_US = 500,       /* between two exchanges the process computes */
    BULK_US = 10000
};

typedef struct {
    uint32_t round, from, to, number, next, size;
} head_t;

typedef struct {
    ompi_request_t *request;
    uint8_t *memory;
    size_t room;
    head_t head; /* what it is, or must be; `next` of a receive is what came */
    bool is_open;
} slot_t;

static slot_t out[MOST][FLOOD], in[MOST][FLOOD];
static slot_t *open_slots[2 * MOST * FLOOD]; /* of a burst */
static unsigned n_open;
static uint8_t pattern[WORLD_DAY_BULK_BYTES + SLICES];
static uint32_t round_now;
static uint64_t messages;

/* ---- a message --------------------------------------------------------------------------------------------- */

static const uint8_t *bytes_of(const head_t *h)
{
    return pattern + world_hash(SLICES, h->round, h->from * MOST + h->to, h->number, 21);
}

static void make_room(slot_t *s, size_t size)
{
    if (s->room < size + AFTER) {
        free(s->memory);
        s->room = size + AFTER;
        s->memory = malloc(s->room);
    }
    memset(s->memory + size, 0xa5, AFTER);
}

/* All at once, so that the memory of the process does not grow with the messages. */
static void make_rooms(void)
{
    for (unsigned p = 0; p < world_ranks(); ++p) {
        for (unsigned k = 0; k < PER_PEER; ++k) {
            make_room(&out[p][k], LONGEST);
            make_room(&in[p][k], LONGEST);
        }
    }
}

static void begun(slot_t *s, int rc)
{
    if (OMPI_SUCCESS != rc) {
        world_broken("a call about process %u returns %d", s->head.from == world_rank() ? s->head.to : s->head.from, rc);
    }
    s->is_open = true;
}

static void send_slot(slot_t *s)
{
    make_room(s, s->head.size);
    memcpy(s->memory, bytes_of(&s->head), s->head.size);
    memcpy(s->memory, &s->head, sizeof(s->head));
    begun(s, bfo_module.pml_isend(s->memory, s->head.size, &ompi_mpi_byte.dt, (int) s->head.to, TAG, MCA_PML_BASE_SEND_STANDARD, image_world,
                                  &s->request));
}

static void receive_slot(slot_t *s)
{
    make_room(s, s->head.size);
    memset(s->memory, 0xa5, s->head.size);
    begun(s, bfo_module.pml_irecv(s->memory, s->head.size, &ompi_mpi_byte.dt, (int) s->head.from, TAG, image_world, &s->request));
}

static void check(slot_t *s)
{
    head_t came;

    memcpy(&came, s->memory, sizeof(came));
    s->head.next = came.next;
    if (0 != memcmp(&came, &s->head, sizeof(came)) || s->request->req_status._ucount != s->head.size) {
        world_broken("message %u of round %u from %u came instead of message %u of round %u from %u", came.number, came.round, came.from,
                     s->head.number, s->head.round, s->head.from);
    }
    if (0 != memcmp(s->memory + sizeof(came), bytes_of(&s->head) + sizeof(came), s->head.size - sizeof(came))) {
        world_broken("message %u of round %u from %u: its bytes are wrong", s->head.number, s->head.round, s->head.from);
    }
    ++messages;
}

/* Has it ended? Then it is verified. */
static bool has_ended(slot_t *s)
{
    if (!s->is_open || !REQUEST_COMPLETE(s->request)) {
        return !s->is_open;
    }
    if (OMPI_SUCCESS != s->request->req_status.MPI_ERROR) {
        world_saw_error(s->head.from == world_rank() ? s->head.to : s->head.from, s->request->req_status.MPI_ERROR);
        world_broken("a message ends with error %d", s->request->req_status.MPI_ERROR);
    }
    if (s->head.to == world_rank()) {
        check(s);
    }
    for (size_t i = 0; i < AFTER; ++i) {
        if (0xa5 != s->memory[s->head.size + i]) {
            world_broken("round %u: the memory after a message was written", s->head.round);
        }
    }
    (void) ompi_request_free(&s->request);
    s->is_open = false;
    return true;
}

static void wait_for(slot_t *s)
{
    while (!has_ended(s)) {
        opal_progress();
    }
}

/* ---- a burst ------------------------------------------------------------------------------------------------- */

static unsigned messages_of(unsigned from, unsigned to)
{
    if (0 == world_hash(FLOODS, round_now, from, to, 27)) {
        return FLOOD;
    }
    return 1 + world_hash(PER_PEER, round_now, from, to, 22);
}

static uint32_t size_of_burst(unsigned from, unsigned to, unsigned number)
{
    const unsigned kind = world_hash(10, round_now, from * MOST + to, number, 23);
    const unsigned most = 6 > kind || PER_PEER <= number ? SHORT : 9 > kind ? LONG : LONGEST;

    return (uint32_t) sizeof(head_t) + world_hash(most - (unsigned) sizeof(head_t), round_now, from * MOST + to, number, 24);
}

static head_t head_of(unsigned from, unsigned to, unsigned number, uint32_t next)
{
    return (head_t){.round = round_now, .from = from, .to = to, .number = number, .next = next, .size = size_of_burst(from, to, number)};
}

static void begin_with(unsigned peer, uint32_t next)
{
    const unsigned me = world_rank();

    for (unsigned k = 0; k < messages_of(peer, me); ++k) {
        in[peer][k].head = head_of(peer, me, k, 0);
        receive_slot(&in[peer][k]);
        open_slots[n_open++] = &in[peer][k];
    }
    for (unsigned k = 0; k < messages_of(me, peer); ++k) {
        out[peer][k].head = head_of(me, peer, k, next);
        send_slot(&out[peer][k]);
        open_slots[n_open++] = &out[peer][k];
    }
}

/* Returns what comes after it. */
static uint32_t burst(void)
{
    uint32_t next = 0 == world_rank() ? world_day_next() : 0;

    ++round_now;
    for (unsigned p = 0; p < world_ranks(); ++p) {
        if (world_rank() != p) {
            begin_with(p, next);
        }
    }
    while (0 < n_open) {
        opal_progress();
        for (unsigned i = n_open; i-- > 0;) {
            if (has_ended(open_slots[i])) {
                open_slots[i] = open_slots[--n_open];
            }
        }
    }
    return 0 == world_rank() ? next : in[0][0].head.next;
}

/* ---- a series of exchanges -------------------------------------------------------------------------------------- */

static void pass(unsigned from, unsigned to, uint32_t number, uint32_t size, uint32_t *next)
{
    slot_t *s = from == world_rank() ? &out[to][0] : &in[from][0];

    s->head = (head_t){.round = round_now, .from = from, .to = to, .number = number, .next = *next, .size = size};
    from == world_rank() ? send_slot(s) : receive_slot(s);
    wait_for(s);
    *next = s->head.next;
}

/* The first process, and one of another machine, send each other a message in turn, until the host has seen enough. */
static void exchanges(bool is_bulk)
{
    const unsigned other = world_plan_of("per_node"), me = world_rank();
    uint32_t goes_on = 1;

    for (uint32_t number = FLOOD; 0 != goes_on && (0 == me || other == me); ++number) {
        goes_on = 0 == me && !world_day_goes_on() ? 0 : goes_on;
        pass(0, other, number, is_bulk ? WORLD_DAY_BULK_BYTES : (uint32_t) sizeof(head_t), &goes_on);
        pass(other, 0, number, (uint32_t) sizeof(head_t), &goes_on);
        if (0 == me) {
            world_day_exchanged();
            world_sleep((is_bulk ? BULK_US : SHORT_US) * UINT64_C(1000));
        }
    }
}

/* ---- the day ------------------------------------------------------------------------------------------------------ */

/* All compute about as long, and now and then a process much longer, so that the others wait for it. */
static void compute(void)
{
    uint64_t us = 500000 + world_hash(3000000, round_now, 0, 0, 25) + world_draw(300000);

    if (0 == world_draw(40)) {
        us += world_draw(5000000);
    }
    world_sleep(1000 * us);
}

static unsigned rails_in_use(void)
{
    unsigned n = 0;

    BFO_FOREACH_PEER(peer)
    {
        n += (unsigned) __builtin_popcount(peer->send_mask);
    }
    return n;
}

static void report(void)
{
    world_day_counts_t c = {.messages = messages, .bursts = round_now, .rails = rails_in_use()};

    c.rails_lost = bfo_local_stat(BFO_STAT_RAILS_LOST);
    c.rails_back = bfo_local_stat(BFO_STAT_RAILS_BACK);
    c.peers_lost = bfo_local_stat(BFO_STAT_PEERS_LOST);
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        const ofo_counters_t *btl = &OFO.module[i]->count;

        c.inquiries += btl->inquiries;
        c.soft += btl->soft_rails;
        c.hard += btl->silent_rails;
        c.copies += btl->copies;
    }
    world_day_counts(&c);
}

static size_t aligned(size_t size, size_t to)
{
    return 0 == to ? size : (size + to - 1) / to * to;
}

static void add_list(world_day_lists_t *sum, const opal_free_list_t *list)
{
    const size_t each = aligned(list->fl_frag_size, list->fl_frag_alignment)
                        + aligned(list->fl_payload_buffer_size, list->fl_payload_buffer_alignment);

    sum->registered += NULL != list->fl_rcache ? opal_list_get_size((opal_list_t *) (uintptr_t) &list->fl_allocations) : 0;
    sum->bytes += list->fl_num_allocated * each;
}

static uint64_t out_of(const opal_free_list_t *list)
{
    const opal_lifo_t *free_items = &list->super;
    uint64_t n = list->fl_num_allocated;

    for (const opal_list_item_t *item = (opal_list_item_t *) free_items->opal_lifo_head.data.item; item != &free_items->opal_lifo_ghost;
         item = (opal_list_item_t *) item->opal_list_next) {
        --n;
    }
    return n;
}

void image_day_lists(world_day_lists_t *sum)
{
    const opal_free_list_t *const of_pml[] = {&image_send_requests, &image_recv_requests, &bfo.frag_list,
                                              &bfo.regs_list,       &bfo.got_list,        &bfo.ctl_list};

    for (size_t i = 0; i < sizeof(of_pml) / sizeof(of_pml[0]); ++i) {
        add_list(sum, of_pml[i]);
    }
    for (unsigned m = 0; m < OFO.module_count; ++m) {
        for (unsigned i = 0; i < OFO.module[m]->frag_lists; ++i) {
            add_list(sum, &OFO.module[m]->frags[i].free);
            sum->out += out_of(&OFO.module[m]->frags[i].free);
        }
        add_list(sum, &OFO.module[m]->rdmas);
    }
}

void image_day_look(void)
{
    OFO.passes |= OFO.look_mask;
}

void image_day(void)
{
    uint32_t next;

    for (size_t i = 0; i < sizeof(pattern); ++i) {
        pattern[i] = (uint8_t) world_hash(256, (unsigned) i, 0, 0, 26);
    }
    make_rooms();
    image_begin(false);
    do {
        compute();
        next = burst();
        if (WORLD_DAY_PING == next || WORLD_DAY_BULK == next) {
            exchanges(WORLD_DAY_BULK == next);
        }
    } while (WORLD_DAY_ENDS != next);
    report();
    image_end();
    world_trace("ends");
}
