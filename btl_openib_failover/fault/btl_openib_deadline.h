/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Sees that work of a rail does not end. Context: progress. See DESIGN.txt 10.2, "Silence".
 */
#ifndef BTL_OPENIB_DEADLINE_H
#define BTL_OPENIB_DEADLINE_H

#include "types/btl_openib_types.h"

/* Sets how often progress reads the clock. Context: set-up. */
void ofo_deadline_init(void);
/* Has all modules looked at after their next poll, if it is time to. Called in the calls of progress that OFO.look_mask selects, no lock held. */
void ofo_deadline_tick(void);
/* Looks at the module's rails. Locks: the poll lock held. */
void ofo_deadline_look(ofo_module_t *module);
/* Is work of generation `gen` out, and has none of it ended since a look found it so? Context: progress. */
bool ofo_deadline_still_waits(const ofo_endpoint_t *ep, uint16_t gen);
/* Service found generation `gen` of the rail silent. Ends the rail if its work has been out for half of the deadline, and none of it has ended
 * in the meantime. */
void ofo_deadline_over(ofo_endpoint_t *ep, uint16_t gen);

#endif /* BTL_OPENIB_DEADLINE_H */
