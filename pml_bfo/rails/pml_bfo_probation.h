/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The probation of a rail that came back: short messages avoid it until it has carried enough of long ones, or the BTL trusts it.
 * DESIGN.txt 10.2 ("Return") and 14.6.
 */
#ifndef PML_BFO_PROBATION_H
#define PML_BFO_PROBATION_H

#include "types/pml_bfo.h"

/* Sets bfo.callbacks.rail_trusted and bfo.carried_on_probation, before the first rail is found. */
void bfo_probation_init(void) BFO_COLD;

#endif /* PML_BFO_PROBATION_H */
