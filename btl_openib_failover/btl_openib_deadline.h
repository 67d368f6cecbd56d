/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Sees that work of a rail does not end. Context: progress. See DESIGN.txt 10.2, "Silence".
 */
#ifndef BTL_OPENIB_DEADLINE_H
#define BTL_OPENIB_DEADLINE_H

#include "btl_openib_types.h"

#define OFO_DEADLINE_PASSES 32 /* the clock is read once in so many calls of progress */

/* Looks at all rails if it is time to. Called once in OFO_DEADLINE_PASSES calls of progress, no lock held. */
void ofo_deadline_tick(void);
/* Service found generation `gen` of the rail silent. Ends the rail, unless work of it has ended in the meantime. */
void ofo_deadline_over(ofo_endpoint_t *ep, uint16_t gen);

#endif /* BTL_OPENIB_DEADLINE_H */
