/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which rails of a peer stand out. DESIGN.txt section 10.5.
 */
#ifndef PML_BFO_RAILS_OUT_H
#define PML_BFO_RAILS_OUT_H

#include "pml_bfo.h"

/* Rails whose port stands out at this side or at the peer's, and those of them that stand out even if no other rail is left. */
typedef struct {
    uint8_t ours, theirs, forced_ours, forced_theirs;
} bfo_rails_out_t;

/* `theirs`, `forced_theirs`: the rails that the peer reports. Locks: as bfo_steer_place(). */
bfo_rails_out_t bfo_rails_out_read(const bfo_peer_t *peer, uint8_t theirs, uint8_t forced_theirs) BFO_COLD;

#endif /* PML_BFO_RAILS_OUT_H */
