/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Checks of messages that arrive: I5, and I7 for the sender. A message is looked at before the PML handles it. Afterwards it was taken, unless
 * the PML has counted it as dropped or holds it. What was taken must belong to the present message and attempt of both processes.
 */
#include "image_checks.h"

#include "failover/pml_bfo_failover.h"
#include "formats/pml_bfo_stats.h"
#include "tables/pml_bfo_failover_fsm.h"

enum { TAGS = 256 };

/* What a message says, and what both requests were when it came. */
typedef struct {
    uint8_t type;
    uint16_t epoch;
    bool for_send; /* the request here is a send */
    bool has_seq;
    uint32_t seq;
    uint64_t own, other; /* identifiers of the request here and of the one there; 0: not named */
    world_request_t here, there;
    bool knows_there;
} claim_t;

/* A message that a thread handles now. */
typedef struct arrival {
    struct arrival *next;
    unsigned thread;
    bool is_dropped;
} arrival_t;

static arrival_t *arrivals;
static mca_btl_base_module_recv_cb_fn_t handlers[TAGS];
static void (*fin_is_visible)(const bfo_fin_hdr_t *fin);

/* ---- what a message says ------------------------------------------------------------------------------------------ */

static uint64_t id_of(const bfo_name_t *name)
{
    return (uint64_t) name->gen << 32 | name->slot;
}

/* A FIN names a fragment. False: it is stale. */
static bool read_fin(const bfo_fin_hdr_t *fin, claim_t *c)
{
    int32_t ahead;
    const bfo_name_t *name = image_name_of(&bfo.frags, fin->frag_id, &ahead);
    const bfo_frag_t *frag = NULL == name ? NULL : bfo_container(name, bfo_frag_t, name);

    *c = (claim_t){.type = BFO_MSG_FIN, .epoch = fin->epoch, .has_seq = true, .seq = fin->match.seq};
    if (NULL == frag || 0 != ahead) {
        return false;
    }
    if (BFO_FRAG_RGET == frag->kind && NULL != frag->send) {
        c->for_send = true;
        c->own = id_of(&frag->send->name);
        c->other = frag->send->dst_id;
        return true;
    }
    if (BFO_FRAG_PUT == frag->kind && NULL != frag->recv) {
        c->own = id_of(&frag->recv->name);
        c->other = frag->recv->src_id;
        return true;
    }
    return false;
}

static bool read_header(const bfo_hdr_t *h, size_t length, claim_t *c)
{
    switch (h->common.type) {
    case BFO_MSG_ACK:
        *c = (claim_t){.for_send = true, .epoch = h->ack.epoch, .own = h->ack.src_id, .other = h->ack.dst_id};
        break;
    case BFO_MSG_PUT:
        *c = (claim_t){.for_send = true, .epoch = h->put.epoch, .own = h->put.src_id, .other = h->put.dst_id};
        break;
    case BFO_MSG_FRAG:
        *c = (claim_t){.epoch = h->frag.epoch, .own = h->frag.dst_id, .other = h->frag.src_id};
        break;
    case BFO_MSG_RACK:
    case BFO_MSG_NACK:
    case BFO_MSG_RERR:
        *c = (claim_t){.for_send = true,
                       .epoch = h->handshake.epoch,
                       .own = h->handshake.src_id,
                       .other = h->handshake.dst_id,
                       .has_seq = true,
                       .seq = h->handshake.match.seq};
        break;
    default:
        return BFO_MSG_FIN == h->common.type && sizeof(bfo_fin_hdr_t) <= length && read_fin(&h->fin, c);
    }
    c->type = h->common.type;
    return length >= bfo_hdr_size(c->type, 0, 0);
}

static void look(claim_t *c)
{
    const world_looks_t *looks;

    (void) (c->for_send ? image_look_at_send(c->own, &c->here) : image_look_at_recv(c->own, &c->here));
    looks = c->here.is_open && 0 != c->other ? world_looks_of(c->here.rank) : NULL;
    if (NULL != looks) {
        c->knows_there = c->for_send ? looks->at_recv(c->other, &c->there) : looks->at_send(c->other, &c->there);
    }
}

/* ---- what it must be if it was taken ---------------------------------------------------------------------------------- */

#define SENDS(state) (1u << BFO_SEND_##state)
#define RECVS(state) (1u << BFO_RECV_##state)

/* The states of the request here that take such a message. */
static unsigned states_here(const claim_t *c)
{
    if (!c->for_send) {
        return RECVS(ACTIVE) | RECVS(ERRL) | RECVS(QUIESCE);
    }
    return BFO_MSG_RACK == c->type || BFO_MSG_NACK == c->type ? SENDS(NOTIFIED) : SENDS(RTS) | SENDS(STREAM);
}

/* The states in which the request there can be meanwhile, if it is not complete. */
static unsigned states_there(const claim_t *c)
{
    switch (c->type) {
    case BFO_MSG_RACK:
        return RECVS(WAITRTS) | RECVS(DEAD);
    case BFO_MSG_NACK:
        return 0;
    case BFO_MSG_RERR:
        return RECVS(ERRL) | RECVS(DEAD);
    default:
        return c->for_send ? RECVS(ACTIVE) | RECVS(ERRL) | RECVS(DEAD) : SENDS(STREAM) | SENDS(ERRD) | SENDS(NOTIFIED) | SENDS(DEAD);
    }
}

static bool fits_here(const claim_t *c)
{
    const unsigned later = BFO_MSG_RACK == c->type || BFO_MSG_NACK == c->type;

    return c->here.is_open && 0 != (states_here(c) >> c->here.state & 1) && c->here.epoch + later == c->epoch
           && (!c->has_seq || c->seq == c->here.seq);
}

/* A receive that is to get its message again is complete only if its process has given this one up, or has no memory. */
static bool may_be_complete(const claim_t *c)
{
    return BFO_MSG_RACK != c->type || world_looks_of(c->here.rank)->has_declared(world_rank()) || world_call_failed_in(c->here.rank);
}

static bool fits_there(const claim_t *c)
{
    if (!c->there.is_open) {
        return !c->there.is_unborn && may_be_complete(c);
    }
    return 0 != (states_there(c) >> c->there.state & 1) && c->there.epoch == c->epoch && c->there.seq == c->here.seq && c->there.other == c->own
           && c->there.rank == world_rank();
}

static void was_taken(const claim_t *c)
{
    if (!fits_here(c)) {
        world_broken("I5: %s of attempt %u was taken for message %u, which is %s in attempt %u", bfo_hdr_name(c->type), c->epoch, c->here.seq,
                     !c->here.is_open ? "complete"
                     : c->for_send    ? bfo_send_state_name(c->here.state)
                                      : bfo_recv_state_name(c->here.state),
                     c->here.epoch);
    }
    if (c->knows_there && !fits_there(c)) {
        world_broken(
            "%s: %s of attempt %u was taken for message %u, and process %u has a request for message %u of process %u, which is %s in attempt %u",
            BFO_MSG_NACK == c->type ? "I7" : "I5", bfo_hdr_name(c->type), c->epoch, c->here.seq, c->here.rank, c->there.seq, c->there.rank,
            !c->there.is_open ? "complete"
            : c->for_send     ? bfo_recv_state_name(c->there.state)
                              : bfo_send_state_name(c->there.state),
            c->there.epoch);
    }
}

/* ---- arrivals --------------------------------------------------------------------------------------------------------- */

static void begin(arrival_t *arrival)
{
    *arrival = (arrival_t){.next = arrivals, .thread = world_thread()};
    arrivals = arrival;
}

/* Arrivals of other threads may have come on top of it. */
static void end(const arrival_t *arrival)
{
    arrival_t **at = &arrivals;

    while (arrival != *at) {
        at = &(*at)->next;
    }
    *at = arrival->next;
}

/* The message that this thread handles is not taken now. */
static void drop(void)
{
    const unsigned thread = world_thread();
    arrival_t *arrival = arrivals;

    while (NULL != arrival && thread != arrival->thread) {
        arrival = arrival->next;
    }
    if (NULL != arrival) {
        arrival->is_dropped = true;
    }
}

void __real_bfo_stat_drop(bfo_stat_t why);
void __wrap_bfo_stat_drop(bfo_stat_t why);
void __wrap_bfo_stat_drop(bfo_stat_t why)
{
    drop();
    __real_bfo_stat_drop(why);
}

bool __real_bfo_failover_fin_is_visible(bfo_peer_t *from, const bfo_fin_hdr_t *fin);
bool __wrap_bfo_failover_fin_is_visible(bfo_peer_t *from, const bfo_fin_hdr_t *fin);
bool __wrap_bfo_failover_fin_is_visible(bfo_peer_t *from, const bfo_fin_hdr_t *fin)
{
    const bool is = __real_bfo_failover_fin_is_visible(from, fin);

    if (!is) {
        drop();
    }
    return is;
}

/* A FIN that was held. */
static void held_fin(const bfo_fin_hdr_t *fin)
{
    arrival_t arrival;
    claim_t claim;
    const bool is_known = read_fin(fin, &claim);

    if (is_known) {
        look(&claim);
    }
    begin(&arrival);
    fin_is_visible(fin);
    end(&arrival);
    if (is_known && !arrival.is_dropped) {
        was_taken(&claim);
    }
}

static void arrives(BFO_ARRIVAL_ARGS)
{
    arrival_t arrival;
    claim_t claim;
    const bool is_known = read_header(des->des_segments[0].seg_addr.pval, des->des_segments[0].seg_len, &claim);

    if (is_known) {
        look(&claim);
    }
    begin(&arrival);
    handlers[BFO_ARRIVAL_TAG](BFO_ARRIVAL_PASS);
    end(&arrival);
    if (is_known && !arrival.is_dropped) {
        was_taken(&claim);
    }
}

mca_btl_base_module_recv_cb_fn_t image_check_arrivals(mca_btl_base_tag_t tag, mca_btl_base_module_recv_cb_fn_t handler)
{
    handlers[tag] = handler;
    switch (tag - BFO_TAG_BASE) {
    case BFO_MSG_FIN:
        if (held_fin != bfo.up.fin_is_visible) {
            fin_is_visible = bfo.up.fin_is_visible;
            bfo.up.fin_is_visible = held_fin;
        }
        return arrives;
    case BFO_MSG_ACK:
    case BFO_MSG_PUT:
    case BFO_MSG_FRAG:
    case BFO_MSG_RACK:
    case BFO_MSG_NACK:
    case BFO_MSG_RERR:
        return arrives;
    default:
        return handler;
    }
}
