/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The body of a received message: payload into the buffer, never past its end; how a rendezvous is answered; FRAG. DESIGN.txt sections
 * 7 (rows R2, R3) and 14.3.
 */
#include "types/pml_bfo.h"

#include "tables/pml_bfo_failover_fire.h"
#include "failover/pml_bfo_failover.h"
#include "types/pml_bfo_local.h"
#include "types/pml_bfo_params.h"
#include "rails/pml_bfo_rails.h"
#include "recv/pml_bfo_recv_answer.h"
#include "ends/pml_bfo_recv_complete.h"
#include "recv/pml_bfo_recv_place.h"
#include "recv/pml_bfo_recv_rdma.h"
#include "ends/pml_bfo_recv_strided.h"

#include <string.h>

void bfo_recv_place(bfo_recv_t *req, size_t offset, const bfo_in_t *in, size_t skip)
{
    if (bfo_unlikely(!req->flat)) {
        if (0 != req->capacity && !bfo_recv_place_strided(req, offset, in, skip)) {
            bfo_recv_fail(req, MPI_ERR_NO_MEM);
        }
        return;
    }
    for (size_t i = 0; i < in->n_segments && offset < req->capacity; ++i) {
        const mca_btl_base_segment_t *s = &in->segments[i];
        size_t size;

        if (bfo_unlikely(s->seg_len < skip)) {
            skip -= s->seg_len;
            continue;
        }
        size = s->seg_len - skip;
        size = size < req->capacity - offset ? size : req->capacity - offset;
        memcpy(req->base + offset, (char *) s->seg_addr.pval + skip, size);
        offset += size;
        skip = 0;
    }
}

/* ---- the request has its message ------------------------------------------------------------------- */

static void begin_rndv(bfo_recv_t *req, bfo_peer_t *peer, const bfo_in_t *in, const bfo_rndv_hdr_t *h)
{
    const size_t head = bfo_hdr_size(BFO_MSG_RNDV, h->match.flags, peer->handle_size);
    const size_t payload = in->length - head;
    const uint8_t both = BFO_FLAG_PIN | BFO_FLAG_CONTIG;

    BFO_ASSERT(payload <= req->length); /* the header was checked, and says how long the message is */
    bfo_recv_place(req, 0, in, head);
    req->bytes = payload;
    req->open = 0;
    if (both == (h->match.flags & both) && req->flat && req->length <= req->capacity && payload < req->length
        && bfo_recv_opens_to_writes(req, peer, bfo_rails_at_most(peer->put_mask, bfo_params.max_rdma_per_request))) {
        req->next = payload;
        req->end = req->length;
        bfo_recv_schedule(req);
        return;
    }
    bfo_recv_ask(req, payload);
}

/* `arg` is a bfo_rts_t. The caller holds an event, and bytes and buffers are reset. */
inline __attribute__((always_inline)) void bfo_recv_act_accept(void *request, void *arg)
{
    bfo_recv_t *req = request;
    bfo_peer_t *peer = req->lane->peer;
    const bfo_in_t *in = ((const bfo_rts_t *) arg)->in;
    const bfo_hdr_t *h = ((const bfo_rts_t *) arg)->header;

    BFO_ASSERT(bfo_threads || (NULL == req->regs && NULL == req->rget)); /* grant_restart has dropped those of the attempt before */
    BFO_ASSERT(bfo_threads || 0 == req->bytes);
    req->extras = true;
    req->copies = false;
    if (!bfo_peer_is_ready(peer) || bfo_unlikely(peer->declared)) {
        bfo_recv_fail(req, bfo_lost_error()); /* the rest of the message will never come */
    } else if (BFO_MSG_RNDV == h->common.type) {
        begin_rndv(req, peer, in, &h->rndv);
    } else {
        bfo_recv_begin_rget(req, peer, in, &h->rget);
    }
}

/* `next`, `end` and `open` are set later, by the function that decides which bytes to ask for. */
static void begin_rendezvous(bfo_recv_t *req, const bfo_in_t *in, const bfo_hdr_t *h)
{
    bool threads;

    BFO_ASSERT(BFO_SE(BFO_RECV_UNMATCHED, 0) == req->m.se && bfo_link_is_empty(&req->posted.key.link)); /* only the caller knows it */
    BFO_ASSERT(0 == req->scheduling);
    BFO_ASSERT(!req->work.queued);
    BFO_ASSERT(NULL == req->regs && NULL == req->rget); /* bfo_recv_drop_extras() has dropped those of its last message */
    req->src_id = h->rndv.src_id;
    req->length = h->rndv.msg_length;
    req->error = MPI_SUCCESS;
    req->bytes = 0;
    threads = bfo_threads; /* one test for the event and the row */
    bfo_recv_get(req);
    BFO_MUST_FIRE(bfo_recv_fire_at(&req->m, bfo_unlikely(threads) ? bfo_look_at(&req->m) : BFO_KNOWN(BFO_RECV_UNMATCHED), BFO_REV_MATCHED, threads,
                                   req, &(bfo_rts_t){in, h}));
    bfo_recv_put(req);
}

static inline void set_source(bfo_recv_t *req, bfo_lane_t *lane, const bfo_match_hdr_t *h)
{
    ompi_status_public_t *status = &req->req_recv.req_base.req_ompi.req_status;

    req->lane = lane;
    req->match_seq = h->seq;
    status->MPI_SOURCE = h->src;
    status->MPI_TAG = h->tag;
}

inline void bfo_recv_act_take_eager(void *request, void *arg)
{
    bfo_recv_complete(request, MPI_SUCCESS);
}

static inline void all_is_here(bfo_recv_t *req)
{
    BFO_ASSERT(BFO_SE(BFO_RECV_UNMATCHED, 0) == req->m.se); /* a receive gets one message */
    BFO_ASSERT(bfo_link_is_empty(&req->posted.key.link));
    BFO_MUST_FIRE(bfo_recv_fire_at(&req->m, BFO_KNOWN(BFO_RECV_UNMATCHED), BFO_REV_MATCHED_EAGER, false, req, NULL));
}

void bfo_recv_begin_pieces(bfo_recv_t *req, bfo_lane_t *lane, const bfo_in_t *in)
{
    set_source(req, lane, in->segments[0].seg_addr.pval);
    req->length = in->length - sizeof(bfo_match_hdr_t);
    req->holds = false;
    bfo_recv_place(req, 0, in, sizeof(bfo_match_hdr_t));
    all_is_here(req);
}

void bfo_recv_begin_match(bfo_recv_t *req, bfo_lane_t *lane, const bfo_match_hdr_t *h, size_t length)
{
    if (bfo_unlikely(!req->flat)) {
        const mca_btl_base_segment_t segment = {.seg_addr.pval = (void *) (uintptr_t) h, .seg_len = length};

        bfo_recv_begin_pieces(req, lane, &(bfo_in_t){NULL, &segment, 1, length});
        return;
    }
    set_source(req, lane, h);
    req->length = length - sizeof(*h);
    memcpy(req->base, h + 1, bfo_smaller(req->length, req->capacity));
    all_is_here(req);
}

void bfo_recv_begin(bfo_recv_t *req, bfo_lane_t *lane, const bfo_in_t *in)
{
    const bfo_hdr_t *h = in->segments[0].seg_addr.pval;

    if (BFO_MSG_MATCH == h->common.type) {
        bfo_recv_begin_pieces(req, lane, in);
        return;
    }
    set_source(req, lane, &h->match);
    begin_rendezvous(req, in, h);
}

/* A FRAG and its header. */
typedef struct {
    const bfo_in_t *in;
    const bfo_frag_hdr_t *header;
} frag_t;

/* R3 */
inline __attribute__((always_inline)) void bfo_recv_act_take_frag(void *request, void *arg)
{
    bfo_recv_t *req = request;
    const frag_t *frag = arg;
    const size_t payload = frag->in->length - sizeof(*frag->header);

    bfo_recv_place(req, frag->header->frag_offset, frag->in, sizeof(*frag->header));
    (void) bfo_add_size(&req->bytes, payload);
}

void bfo_recv_on_frag(const bfo_in_t *in, const bfo_frag_hdr_t *h)
{
    bfo_name_t *name = bfo_ids_find(&bfo.recvs, h->dst_id);
    const size_t payload = in->length - sizeof(*h);
    bfo_recv_t *req = NULL == name ? NULL : bfo_container(name, bfo_recv_t, name);
    uint32_t se;

    if (NULL == req) {
        bfo_stat_drop(BFO_STAT_STALE);
        return;
    }
    bfo_recv_get(req);
    se = bfo_se_load(&req->m);
    if (bfo_name_id(name) != h->dst_id || !bfo_recv_takes_data(se, h->epoch) || h->src_id != req->src_id) {
        BFO_RECV_ROW(se, STALE);
        bfo_stat_drop(BFO_STAT_STALE);
    } else if (h->frag_offset + payload > req->length || (NULL != req->regs && !req->copies)) { /* or the bytes come by PUT or READ */
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
    } else {
        BFO_RECV_ROW(se, FRAG);
        bfo_recv_act_take_frag(req, &(frag_t){in, h});
    }
    bfo_recv_put(req);
}
