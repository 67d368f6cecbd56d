/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The table of btl_openib_drain.def and its engine. It sends nothing and touches no queue pair. See DESIGN.txt 10.3.
 */
#include "tables/btl_openib_drain_fsm.h"

#include "bfo_assert.h"

/* Two rows for one pair (state, event) do not compile, whatever the flags of the build. */
#pragma GCC diagnostic error "-Woverride-init"

#define ROW(id, state, event, next_, gate_, act) [OFO_DRAIN_##state][OFO_DEV_##event] = {true, OFO_DRAIN_##next_, OFO_DRAIN_##gate_, OFO_DACT_##act},
static const ofo_drain_cell_t rows[OFO_DRAIN_STATES][OFO_DRAIN_EVENTS] = {
#include "tables/btl_openib_drain.def"
};

enum { TAKEN, HELD };
#define EVENT(name, lock, text) HELD == lock,
static const bool held[] = {
#include "tables/btl_openib_drain.def"
};

#define STATE(name, text) text,
static const char *const state_names[] = {
#include "tables/btl_openib_drain.def"
};
#define EVENT(name, lock, text) text,
static const char *const event_names[] = {
#include "tables/btl_openib_drain.def"
};
#define ACTION(name) #name,
static const char *const action_names[] = {
#include "tables/btl_openib_drain.def"
};

ofo_drain_cell_t ofo_drain_step(ofo_drain_t *drain, ofo_drain_event_t event)
{
    static const ofo_drain_cell_t none = {.listed = false};
    const ofo_drain_cell_t *row;

    if (OFO_DRAIN_STATES <= drain->own || OFO_DRAIN_EVENTS <= (unsigned) event) {
        return none;
    }
    row = &rows[drain->own][event];
    if (row->listed) {
        BFO_ASSERT(row->next >= drain->own || OFO_DRAIN_OBSTINATE == row->next); /* no set comes back to life */
        drain->own = row->next;
    }
    return *row;
}

bool ofo_drain_lock_is_held(ofo_drain_event_t event)
{
    return held[event];
}
const char *ofo_drain_state_name(unsigned state)
{
    return state < OFO_DRAIN_STATES ? state_names[state] : "?";
}
const char *ofo_drain_event_name(unsigned event)
{
    return event < OFO_DRAIN_EVENTS ? event_names[event] : "?";
}
const char *ofo_drain_action_name(unsigned action)
{
    return action < OFO_DRAIN_ACTIONS ? action_names[action] : "?";
}
