/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Set-up and end of the PML, of processes and of communicators. DESIGN.txt sections 14.1 and 14.2.
 */
#ifndef PML_BFO_MODULE_H
#define PML_BFO_MODULE_H

#include "types/pml_bfo.h"

/* Publishes our modex record, before the modex of MPI_Init. Returns OMPI_SUCCESS or an error. */
int bfo_module_publish(void);
void bfo_module_finalize(void);
int bfo_add_comm(ompi_communicator_t *comm);
int bfo_del_comm(ompi_communicator_t *comm);

#endif /* PML_BFO_MODULE_H */
