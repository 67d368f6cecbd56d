/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What MPI_T shows of the ports. See DESIGN.txt 15.
 */
#ifndef BTL_OPENIB_PVARS_H
#define BTL_OPENIB_PVARS_H

#include "types/btl_openib_types.h"

/* Registers the variables. They are zero before the modules are made and after their end. Context: set-up. */
void ofo_pvars_register(const mca_base_component_t *component);

#endif /* BTL_OPENIB_PVARS_H */
