/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The messages of the restart handshake ("handshake"), as they arrive. DESIGN.txt sections 7 and 14.6.
 */
#ifndef PML_BFO_FAILOVER_HANDSHAKE_H
#define PML_BFO_FAILOVER_HANDSHAKE_H

#include "types/pml_bfo.h"

/* Handles a message of the NOTIFY family from `from` (NULL: the BTL cannot say, and the message is dropped). */
void bfo_failover_on_handshake(bfo_peer_t *from, const bfo_handshake_hdr_t *h) BFO_COLD;
/* Handles an RNDV or RGET with RESTART. The caller has checked the header. */
void bfo_failover_on_restart(const bfo_in_t *in) BFO_COLD;

#endif /* PML_BFO_FAILOVER_HANDSHAKE_H */
