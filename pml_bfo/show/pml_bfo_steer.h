/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Requests to this process while it runs, as read last: the ports that stand out, and other values of parameters. The command
 * bfo writes its list into a file that this process maps; the program names ports with pml_bfo_drain. DESIGN.txt sections 10.5 and 19.6.
 */
#ifndef PML_BFO_STEER_H
#define PML_BFO_STEER_H

#include "bfo_figures.h"
#include "show/pml_bfo_drain_cvar.h"
#include "types/pml_bfo_types.h"

enum { BFO_STEER_MOST = BFO_STEER_PORTS + BFO_DRAIN_NAMES };

/* Maps the list of the command bfo; false: there is none. */
bool bfo_steer_open(void) BFO_COLD;
void bfo_steer_close(void) BFO_COLD;
/* Has one of the two lists of ports changed since it was read? */
bool bfo_steer_is_news(void);
/* Reads both lists; skips the user's list while the command writes it. False: nothing was new. Calls `gone` for each port that
 * stood out and no longer does. One thread at a time. */
bool bfo_steer_read(void (*gone)(const char *port)) BFO_COLD;
/* After bfo_steer_read(): calls `wish` for each new wish for a parameter that is meant for this process, then reports to the user. */
void bfo_steer_obey(void (*wish)(uint32_t parameter, int64_t value)) BFO_COLD;
/* The ports read last: their number, and each name, which may lack its terminating 0. */
uint32_t bfo_steer_ports(void);
const char *bfo_steer_port(uint32_t i);
/* Does the port stand out even where it has the last rail to a process? Locks: as bfo_steer_place(). */
bool bfo_steer_is_forced(uint32_t i) BFO_COLD;
/* Index of a port in the list; bfo_steer_ports(): it does not stand out. Locks: bfo.lock held, or the caller is the thread that reads. */
uint32_t bfo_steer_place(const char *port) BFO_COLD;

#endif /* PML_BFO_STEER_H */
