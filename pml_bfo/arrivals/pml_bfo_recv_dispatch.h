/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Everything that arrives. DESIGN.txt sections 8 and 14.2.
 */
#ifndef PML_BFO_RECV_DISPATCH_H
#define PML_BFO_RECV_DISPATCH_H

#include "types/pml_bfo.h"

/* Registers the handler of every tag with the BTLs, and what the rooms above call in this one (bfo.up). */
int bfo_dispatch_register(void);
/* Applies the complete rule to a first fragment of an active communicator. The hottest callers have their own short form. */
void bfo_dispatch_first(bfo_comm_t *bc, const bfo_in_t *in, bfo_peer_t *from) __attribute__((noinline));

#endif /* PML_BFO_RECV_DISPATCH_H */
