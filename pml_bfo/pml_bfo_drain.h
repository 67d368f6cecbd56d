/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Drain: a port is taken out of service while its rails work, and given back. In comes the list of ports that the command bfo keeps,
 * and what a peer says of its ports; out go masks of rails that stand out, and what the other side and the user are told.
 * DESIGN.txt section 10.5.
 */
#ifndef PML_BFO_DRAIN_H
#define PML_BFO_DRAIN_H

#include "pml_bfo.h"

#if PML_BFO
/* Looks at the list of ports, at once and from then on five times a second, in Open MPI's event loop. */
void bfo_drain_open(void) BFO_COLD;
void bfo_drain_close(void) BFO_COLD;
/* Has the list changed, has the program written a variable, or has a peer told of its ports? Then progress looks at the peers' rails, until no rail stands out. */
void bfo_drain_check(void) BFO_COLD;
/* Takes the messages in which peers tell of their ports. */
int bfo_drain_register(void) BFO_COLD;
#else
static inline void bfo_drain_open(void) {}
static inline void bfo_drain_close(void) {}
static inline int bfo_drain_register(void)
{
    return OMPI_SUCCESS;
}
#endif

#endif /* PML_BFO_DRAIN_H */
