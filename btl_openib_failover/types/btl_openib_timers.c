/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Endpoints whose timers run. See DESIGN.txt 15.1.
 */
#include "types/btl_openib_timers.h"

#include "bfo_assert.h"

void ofo_timers_add(ofo_endpoint_t *ep)
{
    BFO_ASSERT(NULL == ep->module->active || ep->module->active->is_active);
    if (!ep->is_active) {
        BFO_ASSERT(ep != ep->module->active);
        ep->is_active = true;
        ep->next_active = ep->module->active;
        ep->module->active = ep;
    }
}
