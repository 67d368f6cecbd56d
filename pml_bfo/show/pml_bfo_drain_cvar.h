/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * pml_bfo_drain: the ports that a program, or the parameter at start, takes out of service for its own process. DESIGN.txt section 10.5.
 */
#ifndef PML_BFO_DRAIN_CVAR_H
#define PML_BFO_DRAIN_CVAR_H

#include "types/pml_bfo_types.h"

enum { BFO_DRAIN_NAMES = 24 }; /* ports that can have a bit: those named at start, and the ports of this process */

int bfo_drain_cvar_register(void) BFO_COLD;
/* Gives each port of this process a bit, once the ports are known, and reports the ports of the parameter that are not among them. */
void bfo_drain_cvar_know_ports(void) BFO_COLD;
/* Mask of the ports that stand out, and the name of each. */
uint32_t bfo_drain_cvar_ports(void);
const char *bfo_drain_cvar_port(uint32_t bit);

#endif /* PML_BFO_DRAIN_CVAR_H */
