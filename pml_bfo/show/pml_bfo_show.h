/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Shows what is stuck where: the state of every request and message, for people. DESIGN.txt section 14.9.
 */
#ifndef PML_BFO_SHOW_H
#define PML_BFO_SHOW_H

#include "types/pml_bfo.h"

/* Prints on stderr what is in flight on the communicator; verbose > 0: also every waiting message. */
int bfo_dump(ompi_communicator_t *comm, int verbose);


#endif /* PML_BFO_SHOW_H */
