/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Endpoints whose timers run. See DESIGN.txt 15.1.
 */
#include "types/btl_openib_timers.h"

#include "bfo_assert.h"

#include <stdlib.h>

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

/* ---- the heap: heap[0] is due first, and heap[i] no later than heap[2i + 1] and heap[2i + 2] ----------------------- */

static void put(ofo_timers_t *t, uint32_t i, ofo_endpoint_t *ep)
{
    t->heap[i] = ep;
    ep->heap_at = i + 1;
}

static void rise(ofo_timers_t *t, uint32_t i)
{
    ofo_endpoint_t *ep = t->heap[i];

    for (; 0 < i && ep->due < t->heap[(i - 1) / 2]->due; i = (i - 1) / 2) {
        put(t, i, t->heap[(i - 1) / 2]);
    }
    put(t, i, ep);
}

static void sink(ofo_timers_t *t, uint32_t i)
{
    ofo_endpoint_t *ep = t->heap[i];

    for (uint32_t child = 2 * i + 1; child < t->count; i = child, child = 2 * i + 1) {
        child += child + 1 < t->count && t->heap[child + 1]->due < t->heap[child]->due;
        if (ep->due <= t->heap[child]->due) {
            break;
        }
        put(t, i, t->heap[child]);
    }
    put(t, i, ep);
}

static bool has_room(ofo_timers_t *t)
{
    ofo_endpoint_t **more;
    const uint32_t room = 0 == t->room ? 64 : 2 * t->room;

    if (t->count < t->room) {
        return true;
    }
    more = realloc(t->heap, room * sizeof(*more));
    if (NULL == more) {
        return false;
    }
    t->heap = more;
    t->room = room;
    return true;
}

void ofo_timers_sleep(ofo_endpoint_t *ep, uint64_t due)
{
    ofo_timers_t *t = &ep->module->timers;

    if (0 == ep->heap_at) {
        if (!has_room(t)) {
            ofo_timers_add(ep);
            return;
        }
        put(t, t->count++, ep);
    }
    BFO_ASSERT(ep == t->heap[ep->heap_at - 1]);
    ep->due = due;
    rise(t, ep->heap_at - 1);
    sink(t, ep->heap_at - 1);
}

static ofo_endpoint_t *take_first(ofo_timers_t *t)
{
    ofo_endpoint_t *ep = t->heap[0];

    ep->heap_at = 0;
    if (0 != --t->count) {
        put(t, 0, t->heap[t->count]);
        sink(t, 0);
    }
    return ep;
}

ofo_endpoint_t *ofo_timers_take(ofo_module_t *module, uint64_t now, bool all)
{
    ofo_timers_t *t = &module->timers;
    ofo_endpoint_t *list;

    while (0 != t->count && (all || t->heap[0]->due <= now)) {
        ofo_timers_add(take_first(t));
    }
    list = module->active;
    module->active = NULL;
    return list;
}

uint64_t ofo_timers_due(const ofo_module_t *module)
{
    return 0 == module->timers.count ? UINT64_MAX : module->timers.heap[0]->due;
}

void ofo_timers_free(ofo_module_t *module)
{
    free(module->timers.heap);
    module->timers = (ofo_timers_t){0};
}
