/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The one public symbol of the PML. DESIGN.txt section 14.1.
 */
#ifndef PML_BFO_COMPONENT_H
#define PML_BFO_COMPONENT_H

#include "ompi_config.h"
#include "ompi/mca/pml/pml.h"

OMPI_MODULE_DECLSPEC extern mca_pml_base_component_2_0_0_t mca_pml_bfo_component;

#endif /* PML_BFO_COMPONENT_H */
