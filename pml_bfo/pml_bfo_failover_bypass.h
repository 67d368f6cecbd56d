/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What goes past the PML in this job. DESIGN.txt section 14.6.
 */
#ifndef PML_BFO_FAILOVER_BYPASS_H
#define PML_BFO_FAILOVER_BYPASS_H

#include "pml_bfo.h"

/* Names, once per node, the components of this job that go past the PML over rails that can fail. */
void bfo_failover_announce_bypass(const bfo_peer_t *peer);

#endif /* PML_BFO_FAILOVER_BYPASS_H */
