/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * DESIGN.txt section 14.9.
 */
#ifndef PML_BFO_PVARS_H
#define PML_BFO_PVARS_H

/* Registers the MPI_T performance variables of the PML. */
void bfo_pvars_register(void);

#endif /* PML_BFO_PVARS_H */
