/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Endpoints whose timers run. See DESIGN.txt 15.1.
 */
#include "btl_openib_timers.h"

void ofo_timers_add(ofo_endpoint_t *ep)
{
    if (!ep->is_active) {
        ep->is_active = true;
        ep->next_active = ep->module->active;
        ep->module->active = ep;
    }
}
