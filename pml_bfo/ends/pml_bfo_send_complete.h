/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The end of a send request, and who still refers to it. DESIGN.txt section 7 (rows S12, S19) and 14.3.
 */
#ifndef PML_BFO_SEND_COMPLETE_H
#define PML_BFO_SEND_COMPLETE_H

#include "types/pml_bfo.h"

OBJ_CLASS_DECLARATION(bfo_send_t);

/* Tests whether the request can move on now that its last event is gone. */
void bfo_send_check(bfo_send_t *req);
/* Packs a buffered send into the attached buffer. OMPI_SUCCESS, or OMPI_ERR_BUFFER if it has no room. */
int bfo_send_buffer(bfo_send_t *req);
/* Completes a request in state DONE, which the caller has claimed, towards MPI. */
void bfo_send_complete(bfo_send_t *req);
/* Returns the request to its free list. */
void bfo_send_recycle(bfo_send_t *req);
/* Ends the request with `error` as soon as nothing refers to it any more. The caller holds an event. */
void bfo_send_fail(bfo_send_t *req, int error) BFO_COLD;

static inline void bfo_send_get(bfo_send_t *req)
{
    const int32_t events = bfo_add32(&req->m.events, 1);

    BFO_ASSERT(0 < events);
}
/* For a caller that found the request by address or identifier and owns no event of it (see bfo_look()). */
static inline void bfo_send_get_by_look(bfo_send_t *req)
{
    bfo_send_get(req);
    bfo_look(&req->m, bfo_threads);
}
static inline void bfo_send_put(bfo_send_t *req)
{
    const int32_t left = bfo_add32(&req->m.events, -1);

    BFO_ASSERT(0 <= left);
    if (0 == left) {
        bfo_send_check(req);
    }
}
/* Takes an event back for which nothing was posted. The caller holds another; or it is a guard's action, where only threads need one. */
static inline void bfo_send_unget(bfo_send_t *req)
{
    const int32_t left = bfo_add32(&req->m.events, -1);

    BFO_ASSERT(0 <= left);
    BFO_ASSERT(0 < left || !bfo_threads); /* otherwise nobody tests the guards any more */
}

#endif /* PML_BFO_SEND_COMPLETE_H */
