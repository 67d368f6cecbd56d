/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What is asked of this process while it runs, as it was read last: the ports that stand out, and other values of parameters. The command
 * bfo writes its list into memory that this process maps; the program names ports by pml_bfo_drain. DESIGN.txt sections 10.5 and 19.6.
 */
#ifndef PML_BFO_STEER_H
#define PML_BFO_STEER_H

#include "bfo_figures.h"
#include "pml_bfo_drain_cvar.h"
#include "pml_bfo_types.h"

enum { BFO_STEER_MOST = BFO_STEER_PORTS + BFO_DRAIN_NAMES };

/* Takes the mapped list, if there is one; false: there is none. */
bool bfo_steer_open(void) BFO_COLD;
void bfo_steer_close(void) BFO_COLD;
/* Has one of the two lists of ports changed since it was read? */
bool bfo_steer_is_news(void);
/* Reads both; of the user's list nothing is taken while it is being written. False: nothing was new. `gone`: called for each port that
 * stood out and does so no more. One thread at a time. */
bool bfo_steer_read(void (*gone)(const char *port)) BFO_COLD;
/* After that: hands in each wish for a parameter that is meant for this process, and was not handed in before; then tells the user. */
void bfo_steer_obey(void (*wish)(uint32_t parameter, int64_t value)) BFO_COLD;
/* The ports that were read: how many, and each name, which may have no end. */
uint32_t bfo_steer_ports(void);
const char *bfo_steer_port(uint32_t i);
/* Where a port stands in the list; bfo_steer_ports(): it does not stand out. Locks: bfo.lock held, or the thread that reads. */
uint32_t bfo_steer_place(const char *port) BFO_COLD;

#endif /* PML_BFO_STEER_H */
