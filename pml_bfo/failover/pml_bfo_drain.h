/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Drain: takes a port out of service while its rails work, and puts it back. Input: the list of ports that the command bfo keeps,
 * and what peers report of their ports. Output: masks of rails that stand out, messages to the peers, and reports to the user.
 * A port or rail "stands out" while it is out of service. DESIGN.txt section 10.5.
 */
#ifndef PML_BFO_DRAIN_H
#define PML_BFO_DRAIN_H

#include "types/pml_bfo.h"

#if PML_BFO
/* Reads the list of ports now, and from then on five times a second in Open MPI's event loop. */
void bfo_drain_open(void) BFO_COLD;
void bfo_drain_close(void) BFO_COLD;
/* If the list has changed, the program has written a variable, or a peer has reported its ports, progress looks at the peers' rails until
 * no rail stands out. */
void bfo_drain_check(void) BFO_COLD;
/* Registers for the messages in which peers report their ports. Returns OMPI_SUCCESS or an error of the BML. */
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
