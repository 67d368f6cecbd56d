/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The endpoints of a module whose timers run. An endpoint is on a list while service must look at it, and in a heap while nothing of it is due: a
 * port with thousands of peers costs a wake of service what is due then. Context: service of the module. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_TIMERS_H
#define BTL_OPENIB_TIMERS_H

#include "types/btl_openib_types.h"

/* Puts the endpoint on the list, because one of its timers was set. */
void ofo_timers_add(ofo_endpoint_t *ep);

/* Nothing of the endpoint is due before `due` (ms; UINT64_MAX: it waits for an event). Puts it into the heap; without memory, on the list. */
void ofo_timers_sleep(ofo_endpoint_t *ep, uint64_t due);

/* Empties the list, takes what is due by `now` from the heap, or with `all` everything, and returns these endpoints, linked by next_active.
 * is_active is still set in each. */
ofo_endpoint_t *ofo_timers_take(ofo_module_t *module, uint64_t now, bool all);

/* When the first endpoint of the heap is due (ms); UINT64_MAX: none is. */
uint64_t ofo_timers_due(const ofo_module_t *module);

void ofo_timers_free(ofo_module_t *module);

#endif /* BTL_OPENIB_TIMERS_H */
