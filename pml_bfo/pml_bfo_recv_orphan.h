/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * First fragments that find no communicator of their context id. DESIGN.txt section 8.
 */
#ifndef PML_BFO_RECV_ORPHAN_H
#define PML_BFO_RECV_ORPHAN_H

#include "pml_bfo.h"

/* A first fragment of a context id without a communicator. */
void bfo_orphan_arrived(const bfo_in_t *in, bfo_peer_t *from) BFO_COLD;
/* Matches the fragments that came before their communicator. */
void bfo_orphans_adopt(bfo_comm_t *bc);
/* A first fragment that cannot be kept is a hole in its stream: there is no memory left to go on. */
void bfo_got_has_no_memory(bfo_peer_t *peer, const bfo_match_hdr_t *h) BFO_COLD;

#endif /* PML_BFO_RECV_ORPHAN_H */
