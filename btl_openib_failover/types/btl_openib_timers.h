/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The list of a module's endpoints whose timers run. Context: service of the module. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_TIMERS_H
#define BTL_OPENIB_TIMERS_H

#include "types/btl_openib_types.h"

/* Puts the endpoint on the list, because it has a timer now. */
void ofo_timers_add(ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_TIMERS_H */
