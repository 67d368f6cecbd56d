/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The table of btl_openib_rail.def and its engine. It takes one event, changes state and variables, and returns one action.
 * It sends nothing and touches no queue pair. DESIGN.txt section 10.2. */
#include "btl_openib_rail_fsm.h"

#include <stddef.h>

/* Two rows for one pair (state, event) do not compile, whatever the flags of the build. */
#pragma GCC diagnostic error "-Woverride-init"

typedef struct {
    uint8_t listed, next, effect, action;
} row_t;

#define ROW(id, state, event, next_, effect_, act) [OFO_RAIL_##state][OFO_REV_##event] = {1, OFO_RAIL_##next_, OFO_REFF_##effect_, OFO_RACT_##act},
static const row_t rows[OFO_RAIL_STATES][OFO_RAIL_EVENTS] = {
#include "btl_openib_rail.def"
};

#define ROW(id, state, event, next_, effect_, act) [OFO_RAIL_##state][OFO_REV_##event] = #id,
static const char ids[OFO_RAIL_STATES][OFO_RAIL_EVENTS][6] = {
#include "btl_openib_rail.def"
};

#define STATE(name, text) text,
static const char *const state_names[] = {
#include "btl_openib_rail.def"
};
#define EVENT(name, text) text,
static const char *const event_names[] = {
    "nothing",
#include "btl_openib_rail.def"
};
#define ACTION(name) #name,
static const char *const action_names[] = {
#include "btl_openib_rail.def"
};

static void owe(ofo_rail_machine_t *rail)
{
    /* If a check is due already, the current generation was never used here and carried nothing. The older check stays due. */
    if (!rail->owes) {
        rail->owes = true;
        rail->ck = rail->g;
    }
}

static void apply(ofo_rail_machine_t *rail, unsigned effect, uint16_t x)
{
    switch (effect) {
    case OFO_REFF_FENCE:
        rail->fz = true;
        rail->da = false;
        break;
    case OFO_REFF_FENCE_ACKED:
        rail->fz = true;
        rail->da = true;
        break;
    case OFO_REFF_FENCED:
        rail->fz = false;
        break;
    case OFO_REFF_ACKED:
        rail->da = true;
        break;
    case OFO_REFF_NEXT:
        rail->g++;
        rail->da = false;
        break;
    case OFO_REFF_OWE:
    case OFO_REFF_OWE_ACKED:
        owe(rail);
        rail->g = x;
        rail->da = OFO_REFF_OWE_ACKED == effect;
        break;
    case OFO_REFF_ADOPT:
    case OFO_REFF_ADOPT_ACKED:
        rail->g = x;
        rail->da = OFO_REFF_ADOPT_ACKED == effect;
        break;
    case OFO_REFF_CHECKED:
        rail->owes = false;
        break;
    default:
        break;
    }
}

ofo_rail_step_t ofo_rail_step(ofo_rail_machine_t *rail, unsigned event, uint16_t x)
{
    ofo_rail_step_t step = {.listed = false, .action = OFO_RACT_none, .row = "-"};
    const row_t *row;

    if (rail->state >= OFO_RAIL_STATES || event >= OFO_RAIL_EVENTS) {
        return step;
    }
    row = &rows[rail->state][event];
    if (!row->listed) {
        return step;
    }
    step.listed = true;
    step.action = row->action;
    step.row = ids[rail->state][event];
    apply(rail, row->effect, x);
    rail->state = row->next;
    return step;
}

/* ---- guards ------------------------------------------------------------------------------------------ */
unsigned ofo_rail_down_event(const ofo_rail_machine_t *rail, uint16_t x)
{
    if (x < rail->g) {
        return OFO_REV_DOWN_OLD;
    }
    if (x > rail->g) {
        return rail->fz ? OFO_REV_DOWN_NEW_FENCING : OFO_REV_DOWN_NEW;
    }
    return rail->fz ? OFO_REV_DOWN_NOW_FENCING : OFO_REV_DOWN_NOW;
}

unsigned ofo_rail_dack_event(const ofo_rail_machine_t *rail, uint16_t x)
{
    if (x < rail->g) {
        return rail->owes && x == rail->ck ? OFO_REV_DACK_OLD_DUE : OFO_REV_DACK_OLD;
    }
    if (x > rail->g) {
        return rail->fz ? OFO_REV_DACK_NEW_FENCING : OFO_REV_DACK_NEW;
    }
    return rail->fz ? OFO_REV_DACK_NOW_FENCING : OFO_REV_DACK_NOW;
}

unsigned ofo_rail_fence_event(const ofo_rail_machine_t *rail)
{
    return rail->da ? OFO_REV_FENCE_DONE_ACKED : OFO_REV_FENCE_DONE;
}

unsigned ofo_rail_req_event(const ofo_rail_machine_t *rail, uint16_t x, bool acceptable, bool higher)
{
    bool down = OFO_RAIL_DOWNL == rail->state || OFO_RAIL_DOWNB == rail->state;

    if (x < rail->g) {
        return OFO_REV_NOTHING;
    }
    if (x == rail->g) {
        return higher ? OFO_REV_REQ_NOW_HIGHER : OFO_REV_REQ_NOW_LOWER;
    }
    if (!down || x != rail->g + 1u) {
        return OFO_REV_REQ_NEW;
    }
    if (rail->owes) {
        return OFO_REV_REQ_NEXT_BLOCKED;
    }
    return acceptable ? OFO_REV_REQ_NEXT : OFO_REV_REQ_NEXT_REFUSED;
}

unsigned ofo_rail_rep_event(const ofo_rail_machine_t *rail, uint16_t x, bool hash_ok, bool first)
{
    if (x != rail->g || !hash_ok) {
        return OFO_REV_NOTHING;
    }
    return first ? OFO_REV_REP_NOW : OFO_REV_REP_AGAIN;
}

unsigned ofo_rail_rtu_event(const ofo_rail_machine_t *rail, uint16_t x, bool first)
{
    if (x != rail->g) {
        return OFO_REV_NOTHING;
    }
    return first ? OFO_REV_PEER_READY : OFO_REV_PEER_READY_AGAIN;
}

unsigned ofo_rail_rej_event(const ofo_rail_machine_t *rail, uint16_t x)
{
    return x == rail->g ? OFO_REV_REJ_NOW : OFO_REV_NOTHING;
}

/* ---- names ------------------------------------------------------------------------------------------- */
const char *ofo_rail_state_name(unsigned state)
{
    return state < OFO_RAIL_STATES ? state_names[state] : "?";
}
const char *ofo_rail_event_name(unsigned event)
{
    return event < OFO_RAIL_EVENTS ? event_names[event] : "?";
}
const char *ofo_rail_action_name(unsigned action)
{
    return action < OFO_RAIL_ACTIONS ? action_names[action] : "?";
}
