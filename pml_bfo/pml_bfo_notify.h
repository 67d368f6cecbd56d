/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Events of rails, ports and peers as events of PMIx, if pml_bfo_pmix_events asks for it. DESIGN.txt section 19.13.
 */
#ifndef PML_BFO_NOTIFY_H
#define PML_BFO_NOTIFY_H

#include "bfo_figures.h"
#include "pml_bfo_sync.h"

/* The code of all our events, in the range that PMIx leaves to others; bfo(7) tells it to programs, so it never changes. */
#define BFO_NOTIFY_CODE (-6056)
enum { BFO_NOTIFY_MOST = 16 }; /* events of a process in a minute; more are counted */

/* From now on events go out, if the parameter says so. */
void bfo_notify_open(void) BFO_COLD;
/* No event goes out any more: MPI_Finalize begins. */
void bfo_notify_close(void) BFO_COLD;
/* Keeps a copy of an event until it goes out. Context: any thread, under any lock; it only copies. */
void bfo_notify_add(const bfo_figures_event_t *event) BFO_COLD;

/* The oldest event that is to go out; false: none. */
bool bfo_notify_next(bfo_figures_event_t *event) BFO_COLD;
/* How many events were only counted, once their minute is over; counting begins again. `now`: of CLOCK_MONOTONIC, in ns. */
uint32_t bfo_notify_held_back(uint64_t now) BFO_COLD;

#endif /* PML_BFO_NOTIFY_H */
