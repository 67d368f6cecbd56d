/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * "What is stuck where": the state of every request and message, for people. DESIGN.txt section 14.9.
 */
#ifndef PML_BFO_SHOW_H
#define PML_BFO_SHOW_H

#include "pml_bfo.h"

/* Prints on stderr what is under way on the communicator; verbose > 0: also every waiting message. */
int bfo_dump(ompi_communicator_t *comm, int verbose);

/* True for the first process of this job on this node that asks about `topic`: so that a message which concerns
 * all of them is said once, whichever process is first, and even if it is about to be ended. */
bool bfo_is_first_on_node(const char *topic);

#endif /* PML_BFO_SHOW_H */
