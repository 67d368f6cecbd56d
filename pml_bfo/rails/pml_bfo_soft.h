/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails that seem silent, and second copies of their messages. DESIGN.txt 9 (rule 13) and 10.2, "Silence".
 */
#ifndef PML_BFO_SOFT_H
#define PML_BFO_SOFT_H

#include "types/pml_bfo.h"

/* Puts the callbacks of this file where a rail's extension gets them from. */
void bfo_soft_init(void);

#endif /* PML_BFO_SOFT_H */
