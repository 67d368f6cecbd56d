/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Events of rails, ports and peers as events of PMIx, if pml_bfo_pmix_events asks for it. DESIGN.txt section 19.13.
 */
#ifndef PML_BFO_NOTIFY_H
#define PML_BFO_NOTIFY_H

#include "bfo_figures.h"
#include "formats/pml_bfo_sync.h"

/* The code of all our events, in the range that PMIx leaves to others. It never changes, because bfo(7) documents it for programs. */
#define BFO_NOTIFY_CODE (-6056)
enum { BFO_NOTIFY_MOST = 16 }; /* events of a process per minute; further events are only counted */

/* From now on events are sent, if pml_bfo_pmix_events asks for them. */
void bfo_notify_open(void) BFO_COLD;
/* From now on no event is sent, because MPI_Finalize begins. */
void bfo_notify_close(void) BFO_COLD;
/* Keeps a copy of an event until it is sent. Context: any thread, under any lock, because it only copies. */
void bfo_notify_add(const bfo_figures_event_t *event) BFO_COLD;

/* Takes the oldest event that waits to be sent; false: there is none. */
bool bfo_notify_next(bfo_figures_event_t *event) BFO_COLD;
/* Once the minute is over: returns how many events were only counted in it, and resets the count. `now`: CLOCK_MONOTONIC, in ns. */
uint32_t bfo_notify_held_back(uint64_t now) BFO_COLD;

#endif /* PML_BFO_NOTIFY_H */
