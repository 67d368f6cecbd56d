/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The body of a received message. DESIGN.txt sections 7 and 14.3.
 */
#ifndef PML_BFO_RECV_PLACE_H
#define PML_BFO_RECV_PLACE_H

#include "types/pml_bfo.h"

/* An RNDV or RGET and its header: what the action accept gets. */
typedef struct {
    const bfo_in_t *in;
    const bfo_hdr_t *header;
} bfo_rts_t;

/* The active request has its message: takes the payload and answers. */
void bfo_recv_begin(bfo_recv_t *req, bfo_lane_t *lane, const bfo_in_t *in);
/* As bfo_recv_begin(), for a MATCH in any number of segments. */
void bfo_recv_begin_pieces(bfo_recv_t *req, bfo_lane_t *lane, const bfo_in_t *in);
/* As bfo_recv_begin(), for a MATCH in one segment: `length` bytes, header included. */
void bfo_recv_begin_match(bfo_recv_t *req, bfo_lane_t *lane, const bfo_match_hdr_t *h, size_t length);
/* Copies the payload, which follows `skip` bytes of header, to `offset` of the message. */
void bfo_recv_place(bfo_recv_t *req, size_t offset, const bfo_in_t *in, size_t skip);
void bfo_recv_on_frag(const bfo_in_t *in, const bfo_frag_hdr_t *h);

#endif /* PML_BFO_RECV_PLACE_H */
