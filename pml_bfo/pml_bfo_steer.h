/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the user asks of his jobs on this node, as it was read last: the ports that stand out. The command bfo writes the list, in memory
 * that this process maps. DESIGN.txt sections 10.5 and 19.6.
 */
#ifndef PML_BFO_STEER_H
#define PML_BFO_STEER_H

#include "bfo_figures.h"
#include "pml_bfo_types.h"

/* Takes the mapped list, if there is one; false: there is none. */
bool bfo_steer_open(void) BFO_COLD;
void bfo_steer_close(void) BFO_COLD;
/* The number of the list that is there now, and of the one that was read. They differ if it has changed. */
uint64_t bfo_steer_number(void);
uint64_t bfo_steer_number_read(void);
/* Reads it. False: it is being written. `gone`: called for each port that stood out and does so no more. One thread at a time. */
bool bfo_steer_read(void (*gone)(const char *port)) BFO_COLD;
/* The list that was read: how many ports, and each name, which may have no end. */
uint32_t bfo_steer_ports(void);
const char *bfo_steer_port(uint32_t i);
/* Where a port stands in the list; bfo_steer_ports(): it does not stand out. Locks: bfo.lock held, or the thread that reads. */
uint32_t bfo_steer_place(const char *port) BFO_COLD;

#endif /* PML_BFO_STEER_H */
