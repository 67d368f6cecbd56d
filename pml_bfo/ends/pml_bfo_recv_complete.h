/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The end of a receive request, and who still refers to it. DESIGN.txt section 7 (rows R10, R18) and 14.3.
 */
#ifndef PML_BFO_RECV_COMPLETE_H
#define PML_BFO_RECV_COMPLETE_H

#include "types/pml_bfo.h"
#include "types/pml_bfo_local.h"

OBJ_CLASS_DECLARATION(bfo_recv_t);

void bfo_recv_check(bfo_recv_t *req);
/* Completes a request in state DONE towards MPI. */
void bfo_recv_complete(bfo_recv_t *req, int error);
/* Releases what a rendezvous or a strided buffer holds. */
void bfo_recv_drop_extras(bfo_recv_t *req);
void bfo_recv_recycle(bfo_recv_t *req);
void bfo_recv_fail(bfo_recv_t *req, int error) BFO_COLD;
/* A peer is declared: moves the receives that name its rank, or those from any source (BFO_ANY_SOURCE, lane NULL), out of matching into a
 * ring. Locks: the communicator's held. The second function then ends each of them with an error. Locks: none held. */
void bfo_recv_withdraw_all(bfo_comm_t *bc, bfo_lane_match_t *lane, int32_t source, bfo_link_t *ring) BFO_COLD;
void bfo_recv_fail_withdrawn(bfo_link_t *ring) BFO_COLD;

/* Decides whether a receive matched with a rendezvous must complete before later messages of its sender are delivered. osc/pt2pt relies
 * on it: it takes a later message as proof that the message before has ended. Locks: the communicator's held. */
static inline void bfo_recv_hold_back(bfo_recv_t *req, bfo_lane_t *lane)
{
    req->holds = bfo_is_onesided(&req->req_recv.req_base.req_ompi);
    lane->match.n_open += req->holds;
    BFO_ASSERT(!req->holds || 0 != (lane->match.n_open & (BFO_LANE_REVOKED - 1)));
}

static inline void bfo_recv_get(bfo_recv_t *req)
{
    const int32_t events = bfo_add32(&req->m.events, 1);

    BFO_ASSERT(0 < events);
}
/* For a caller that found the request by address or identifier and owns no event of it (see bfo_look()). */
static inline void bfo_recv_get_by_look(bfo_recv_t *req)
{
    bfo_recv_get(req);
    bfo_look(&req->m, bfo_threads);
}
static inline void bfo_recv_put(bfo_recv_t *req)
{
    const int32_t left = bfo_add32(&req->m.events, -1);

    BFO_ASSERT(0 <= left);
    if (0 == left) {
        bfo_recv_check(req);
    }
}
/* As bfo_send_unget(). */
static inline void bfo_recv_unget(bfo_recv_t *req)
{
    const int32_t left = bfo_add32(&req->m.events, -1);

    BFO_ASSERT(0 <= left);
    BFO_ASSERT(0 < left || !bfo_threads);
}

#endif /* PML_BFO_RECV_COMPLETE_H */
