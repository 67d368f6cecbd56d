/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * DESIGN.txt section 14.9.
 */
#ifndef PML_BFO_PVARS_PORTS_H
#define PML_BFO_PVARS_PORTS_H

/* Registers the MPI_T performance variables that have a value for each port. */
void bfo_pvars_register_ports(void);

#endif /* PML_BFO_PVARS_PORTS_H */
