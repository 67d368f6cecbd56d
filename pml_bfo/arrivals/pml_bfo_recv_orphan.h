/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * First fragments that find no communicator of their context id. DESIGN.txt section 8.
 */
#ifndef PML_BFO_RECV_ORPHAN_H
#define PML_BFO_RECV_ORPHAN_H

#include "types/pml_bfo.h"

/* Keeps a first fragment whose context id has no communicator yet, and returns NULL. If another thread has made the communicator
 * meanwhile, returns it, and the caller delivers the fragment. */
bfo_comm_t *bfo_orphan_keep(const bfo_in_t *in, bfo_peer_t *from) BFO_COLD;
/* A first fragment over a BTL without failover has no communicator here: which peer has this endpoint? NULL: not known, or nobody asks. */
bfo_peer_t *bfo_orphan_source(const mca_btl_base_module_t *btl, const struct mca_btl_base_endpoint_t *endpoint) BFO_COLD;
/* A first fragment of a process that is not in the communicator of its context id. True: it came for a communicator that has ended here, and
 * was refused; only in jobs that survive failures. `from` may be NULL. */
bool bfo_orphan_is_refused(bfo_peer_t *from, const bfo_match_hdr_t *h) BFO_COLD;
/* For MPI_Finalize. */
void bfo_orphans_close(void) BFO_COLD;
/* Gives the kept fragments of a new communicator to `deliver`. */
void bfo_orphans_adopt(bfo_comm_t *bc, void (*deliver)(bfo_comm_t *bc, const bfo_in_t *in, bfo_peer_t *from));
/* There is no memory for a first fragment. Its sequence then has a hole, so the peer is declared. */
void bfo_unexpected_has_no_memory(bfo_peer_t *peer, const bfo_match_hdr_t *h) BFO_COLD;

#endif /* PML_BFO_RECV_ORPHAN_H */
