/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Distinguishes a dead process from a dead rail. Input: a peer to which no rail is left. This process finds out on the peer's machine
 * whether the peer is alive: from /proc if that is this machine, otherwise from another process there, with the message LIFE. Output: that
 * the peer's process is dead; the lack of an answer proves nothing. DESIGN.txt section 11.
 */
#ifndef PML_BFO_WITNESS_H
#define PML_BFO_WITNESS_H

#include "types/pml_bfo.h"

#if PML_BFO
/* Registers for the message LIFE, and lets the waits for peers ask. OMPI_SUCCESS or an error of Open MPI. */
int bfo_witness_register(void) BFO_COLD;
#else
static inline int bfo_witness_register(void)
{
    return OMPI_SUCCESS;
}
#endif

#endif /* PML_BFO_WITNESS_H */
