/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Can the rails to a peer fail, and is failover in force for it? See DESIGN.txt section 14.6.
 */
#ifndef PML_BFO_FAILOVER_ANNOUNCE_H
#define PML_BFO_FAILOVER_ANNOUNCE_H

#include "types/pml_bfo.h"

/* Does the BTL reach processes of this node through memory, which does not fail? */
bool bfo_failover_cannot_fail(const mca_btl_base_module_t *btl) BFO_COLD;
/* Reports, once per node, if failover is not in force for a peer reached over the rails found, and why. */
void bfo_failover_announce(bfo_peer_t *peer);

#endif /* PML_BFO_FAILOVER_ANNOUNCE_H */
