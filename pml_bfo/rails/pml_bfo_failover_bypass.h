/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Communication of this job that bypasses the PML. DESIGN.txt section 14.6.
 */
#ifndef PML_BFO_FAILOVER_BYPASS_H
#define PML_BFO_FAILOVER_BYPASS_H

#include "types/pml_bfo.h"

/* Reports, once per node, the components of this job that bypass the PML over rails that can fail. */
void bfo_failover_announce_bypass(const bfo_peer_t *peer);

#endif /* PML_BFO_FAILOVER_BYPASS_H */
