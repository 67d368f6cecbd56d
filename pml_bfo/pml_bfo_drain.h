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
/* Begins to look at the list of ports, in Open MPI's progress, and at once. Without a list nothing happens until a peer tells of its
 * ports. */
void bfo_drain_open(void) BFO_COLD;
void bfo_drain_close(void) BFO_COLD;
/* Takes the messages in which peers tell of their ports. */
int bfo_drain_register(void) BFO_COLD;
#else
static inline void bfo_drain_open(void) { }
static inline void bfo_drain_close(void) { }
static inline int bfo_drain_register(void) { return OMPI_SUCCESS; }
#endif

#endif /* PML_BFO_DRAIN_H */
