/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A message that comes by RDMA. DESIGN.txt sections 7 and 14.3.
 */
#ifndef PML_BFO_RECV_RDMA_H
#define PML_BFO_RECV_RDMA_H

#include "types/pml_bfo.h"

#include "rails/pml_bfo_rails.h"

/* Frees the fragments of all PUTs of this attempt. The peer sends nothing more of the attempt. Identifiers of the fragments become stale. */
void bfo_recv_forget_puts(bfo_recv_t *req) BFO_COLD;
/* Starts PUTs or READs as the pipeline allows. The caller holds an event. */
void bfo_recv_schedule(bfo_recv_t *req);
void bfo_recv_on_fin(bfo_frag_t *frag, const bfo_fin_hdr_t *fin);
/* Registers the receive's buffer with these rails; false: no rail registered it. */
static inline bool bfo_recv_opens_to_writes(bfo_recv_t *req, bfo_peer_t *peer, uint8_t rails)
{
    return 0 != bfo_regs_make(peer, rails, req->base, req->length, MCA_BTL_REG_FLAG_LOCAL_WRITE | MCA_BTL_REG_FLAG_REMOTE_WRITE, &req->regs);
}
/* Reads a message that the peer offers, or asks for copies of its bytes. */
void bfo_recv_begin_rget(bfo_recv_t *req, bfo_peer_t *peer, const bfo_in_t *in, const bfo_rget_hdr_t *h);

#endif /* PML_BFO_RECV_RDMA_H */
