/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Receiving: from MPI_Recv or the first fragment, whichever comes first, to the last byte in place.
 * DESIGN.txt sections 7 and 14.3.
 */
#ifndef PML_BFO_RECV_H
#define PML_BFO_RECV_H

#include "pml_bfo.h"

OBJ_CLASS_DECLARATION(bfo_recv_t);

/* A fragment as it came: header in the first segment. */
typedef struct bfo_in_t {
    mca_btl_base_module_t *btl;
    const mca_btl_base_segment_t *segments;
    size_t n_segments;
    size_t length; /* of all segments */
} bfo_in_t;

/* ---- pml_bfo_recv_api.c --------------------------------------------------------------------------- */
int bfo_irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm,
                   ompi_request_t **request);
int bfo_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm,
              ompi_request_t **request);
int bfo_recv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm,
             ompi_status_public_t *status);
int bfo_recv_restart(ompi_request_t *request);
/* ---- pml_bfo_recv_probe.c ------------------------------------------------------------------------- */
int bfo_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_status_public_t *status);
int bfo_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status);
int bfo_improbe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_message_t **message,
                ompi_status_public_t *status);
int bfo_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message, ompi_status_public_t *status);
int bfo_imrecv(void *buf, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
               ompi_request_t **request);
int bfo_mrecv(void *buf, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
              ompi_status_public_t *status);
/* helpers of the two files above, in pml_bfo_recv_api.c */
bfo_recv_t *bfo_recv_new(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                         ompi_communicator_t *comm, bool persistent);
/* Makes the request active and unmatched. */
void bfo_recv_activate(bfo_recv_t *req);

/* ---- pml_bfo_recv_dispatch.c ---------------------------------------------------------------------- */
/* Registers the handler of every tag with the BTLs. */
int bfo_dispatch_register(void);
/* FIN whose data is visible. */
void bfo_dispatch_fin(const bfo_fin_hdr_t *fin);
/* A matched receive that held back what came behind it has completed. */
void bfo_dispatch_release(bfo_comm_t *bc, bfo_lane_t *lane) BFO_COLD;
/* The complete rule for a first fragment of an active communicator, for all but the hottest callers. */
void bfo_dispatch_first(bfo_comm_t *bc, const bfo_in_t *in, bfo_peer_t *from) __attribute__((noinline));
/* A copy of a fragment, or NULL without memory. */
bfo_got_frag_t *bfo_got_keep(const bfo_in_t *in, bfo_peer_t *peer);
void bfo_got_free(bfo_got_frag_t *g);
/* What was kept, as it arrived. `segment` is room. */
static inline bfo_in_t bfo_got_in(const bfo_got_frag_t *g, mca_btl_base_segment_t *segment)
{
    *segment = (mca_btl_base_segment_t){.seg_addr.pval = g->data, .seg_len = g->length};
    return (bfo_in_t){g->btl, segment, 1, g->length};
}

/* ---- pml_bfo_recv_orphan.c ------------------------------------------------------------------------ */
/* A first fragment of a context id without a communicator. */
void bfo_orphan_arrived(const bfo_in_t *in, bfo_peer_t *from) BFO_COLD;
/* Matches the fragments that came before their communicator. */
void bfo_orphans_adopt(bfo_comm_t *bc);
/* A first fragment that cannot be kept is a hole in its stream: there is no memory left to go on. */
void bfo_got_has_no_memory(bfo_peer_t *peer, const bfo_match_hdr_t *h) BFO_COLD;

/* ---- pml_bfo_recv_place.c ------------------------------------------------------------------------- */
/* The request has found its message: take the payload, answer. The request must be active. */
void bfo_recv_begin(bfo_recv_t *req, bfo_lane_t *lane, const bfo_in_t *in);
/* The same for a MATCH, in any number of segments. */
void bfo_recv_begin_pieces(bfo_recv_t *req, bfo_lane_t *lane, const bfo_in_t *in);
/* The same for a MATCH in one segment: `length` bytes, header included. */
void bfo_recv_begin_match(bfo_recv_t *req, bfo_lane_t *lane, const bfo_match_hdr_t *h, size_t length);
/* Payload behind `skip` bytes of header goes to `offset` of the message. */
void bfo_recv_place(bfo_recv_t *req, size_t offset, const bfo_in_t *in, size_t skip);
/* The RTS of the next attempt has come, in state ACTIVE(e), bytes and buffers reset. The caller holds an event. */
void bfo_recv_begin_again(bfo_recv_t *req, const bfo_in_t *in, const bfo_hdr_t *h) BFO_COLD;
/* Nothing of this attempt can come any more: the PUTs it has asked for go back, and whatever still names them is stale. */
void bfo_recv_forget_puts(bfo_recv_t *req) BFO_COLD;
/* Starts PUTs or READs as the pipeline allows. The caller holds an event. */
void bfo_recv_schedule(bfo_recv_t *req);
void bfo_recv_on_frag(const bfo_in_t *in, const bfo_frag_hdr_t *h);
void bfo_recv_on_fin(bfo_frag_t *frag, const bfo_fin_hdr_t *fin);

/* Asks for everything from `offset` on to be sent by FRAG. */
void bfo_recv_ask(bfo_recv_t *req, size_t offset);

/* ---- pml_bfo_recv_copy.c -------------------------------------------------------------------------- */
/* A PUT or READ of the bytes from `offset` on was refused: they are to be copied. Call before `open` is lowered. */
void bfo_recv_copy_from(bfo_recv_t *req, size_t offset) BFO_COLD;
/* `open` is 0 and `copies` set: asks for what is missing. The caller holds an event. */
void bfo_recv_copy_rest(bfo_recv_t *req) BFO_COLD;
/* For who has raised `open` to start a PUT or READ and found `copies` set. */
int bfo_recv_copies_instead(bfo_recv_t *req) BFO_COLD;

/* ---- pml_bfo_recv_strided.c ----------------------------------------------------------------------- */
/* As bfo_recv_place(), for a buffer that does not take the packed message as it is and has room. */
void bfo_recv_place_strided(bfo_recv_t *req, size_t offset, const bfo_in_t *in, size_t skip) BFO_COLD;
/* Throws away parts that came ahead of their turn. */
void bfo_recv_forget_ahead(bfo_recv_t *req);

/* ---- pml_bfo_recv_complete.c ---------------------------------------------------------------------- */
void bfo_recv_check(bfo_recv_t *req);
/* All of the message is there, in state DONE: tell MPI. */
void bfo_recv_complete(bfo_recv_t *req, int error);
/* Gives back what a rendezvous or a strided buffer holds. */
void bfo_recv_drop_extras(bfo_recv_t *req);
void bfo_recv_recycle(bfo_recv_t *req);
void bfo_recv_fail(bfo_recv_t *req, int error) BFO_COLD;
/* The peer of a lane is declared. Takes the receives that name its rank out of matching, into a ring; under the communicator's
 * lock. Then each ends with an error; no lock is held. */
void bfo_recv_withdraw_all(bfo_comm_t *bc, bfo_lane_t *lane, int32_t rank, bfo_link_t *ring) BFO_COLD;
void bfo_recv_fail_withdrawn(bfo_link_t *ring) BFO_COLD;

/* Matched with a rendezvous: must that be complete before later messages of its sender are seen? The owner of a callback
 * (osc/pt2pt) counts on it: what reaches it after a message tells that the message has ended. Collectives (coll/adapt) set
 * callbacks, too, and do not count on it: their tags are negative. Under the communicator's lock. */
static inline void bfo_recv_hold_back(bfo_recv_t *req, bfo_lane_t *lane)
{
    req->holds = NULL != req->req_recv.req_base.req_ompi.req_complete_cb && BFO_ANY_TAG <= req->want.key.tag;
    lane->match.n_open += req->holds;
}

static inline void bfo_recv_get(bfo_recv_t *req)
{
    (void) bfo_add32(&req->m.events, 1);
}
/* For who merely looks at the request, knowing its address or its identifier (see bfo_look()). */
static inline void bfo_recv_get_by_look(bfo_recv_t *req)
{
    bfo_recv_get(req);
    bfo_look(&req->m, bfo_threads);
}
static inline void bfo_recv_put(bfo_recv_t *req)
{
    if (0 == bfo_add32(&req->m.events, -1)) {
        bfo_recv_check(req);
    }
}
#endif /* PML_BFO_RECV_H */
