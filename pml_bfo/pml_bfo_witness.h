/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Tells a dead process from a dead rail. In comes a peer to which no rail is left; the machine of the peer is asked whether its process
 * lives: /proc if that is this machine, else another process there, by the message LIFE. Out goes that the process is dead; silence says
 * nothing. DESIGN.txt section 11.
 */
#ifndef PML_BFO_WITNESS_H
#define PML_BFO_WITNESS_H

#include "pml_bfo.h"

#if PML_BFO
/* Takes the message LIFE, and tells the waits for peers how to ask. OMPI_SUCCESS or an error of Open MPI's. */
int bfo_witness_register(void) BFO_COLD;
#else
static inline int bfo_witness_register(void)
{
    return OMPI_SUCCESS;
}
#endif

#endif /* PML_BFO_WITNESS_H */
