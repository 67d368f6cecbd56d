/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which rails of a peer stand out. DESIGN.txt section 10.5.
 */
#ifndef PML_BFO_RAILS_OUT_H
#define PML_BFO_RAILS_OUT_H

#include "types/pml_bfo.h"

/* Rails whose port stands out at this side or at the peer's, and those of them that stand out even if no other rail is left. */
typedef struct {
    uint8_t ours, theirs, forced_ours, forced_theirs;
} bfo_rails_out_t;

/* `theirs`, `forced_theirs`: the rails that the peer reports. Locks: as bfo_steer_place(). */
bfo_rails_out_t bfo_rails_out_read(const bfo_peer_t *peer, uint8_t theirs, uint8_t forced_theirs) BFO_COLD;
/* Is this what stands out already? */
bool bfo_rails_out_are(const bfo_peer_t *peer, bfo_rails_out_t out) BFO_COLD;
/* Locks: bfo.lock held. */
void bfo_rails_out_set(bfo_peer_t *peer, bfo_rails_out_t out);

/* Tells the BTL which rails stand out by force. */
void bfo_rails_out_tell(const bfo_peer_t *peer) BFO_COLD;

/* Mask of the rails that can PUT, including those that stand out or are soft. */
uint8_t bfo_rails_out_put(const bfo_peer_t *peer) BFO_COLD;

#endif /* PML_BFO_RAILS_OUT_H */
