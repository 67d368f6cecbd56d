/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The machine of one rail to one peer: bring-down, asynchronous fence, rejoin. It takes events, changes its state and
 * variables, and returns the action that its owner performs. No verbs, no Open MPI header.
 * DESIGN.txt section 10.2; the table is btl_openib_rail.def. Locks: none of its own; a rail has one caller at a time. */
#ifndef BTL_OPENIB_RAIL_FSM_H
#define BTL_OPENIB_RAIL_FSM_H

#include <stdbool.h>
#include <stdint.h>

#define STATE(name, text) OFO_RAIL_##name,
enum ofo_rail_state {
#include "btl_openib_rail.def"
    OFO_RAIL_STATES
};
#define EVENT(name, text) OFO_REV_##name,
enum ofo_rail_event {
    OFO_REV_NOTHING,
#include "btl_openib_rail.def"
    OFO_RAIL_EVENTS
};
#define EFFECT(name) OFO_REFF_##name,
enum ofo_rail_effect {
#include "btl_openib_rail.def"
    OFO_RAIL_EFFECTS
};
#define ACTION(name) OFO_RACT_##name,
enum ofo_rail_action {
#include "btl_openib_rail.def"
    OFO_RAIL_ACTIONS
};

#define OFO_GENERATION_LAST 65535u /* a rail of this generation never rejoins */

/* Zero is the state of a rail that was never connected. Written by ofo_rail_step() only. */
typedef struct {
    uint8_t state;
    bool fz;     /* our own fence of g runs */
    bool da;     /* DACK(g) received */
    bool owes;   /* the check of generation ck is due */
    uint16_t g;  /* generation: number of the set of queue pairs */
    uint16_t ck; /* valid if owes */
} ofo_rail_machine_t;

typedef struct {
    bool listed;     /* false: the event was dropped, nothing changed */
    unsigned action; /* OFO_RACT_* for the caller to perform, after the change of state */
    const char *row;
} ofo_rail_step_t;

/* Takes one event; x is the generation that its message names (any value for events without a message). */
ofo_rail_step_t ofo_rail_step(ofo_rail_machine_t *rail, unsigned event, uint16_t x);

/* Which event a message is: the guards of the table are decided here and nowhere else. */
unsigned ofo_rail_down_event(const ofo_rail_machine_t *rail, uint16_t x);
unsigned ofo_rail_dack_event(const ofo_rail_machine_t *rail, uint16_t x);
unsigned ofo_rail_fence_event(const ofo_rail_machine_t *rail);
/* acceptable: port up, hash ok, resources; higher: own process name is the higher of the two */
unsigned ofo_rail_req_event(const ofo_rail_machine_t *rail, uint16_t x, bool acceptable, bool higher);
/* first: no REP or RTU of this generation was taken before. OFO_REV_NOTHING: the message is of another generation, drop it */
unsigned ofo_rail_rep_event(const ofo_rail_machine_t *rail, uint16_t x, bool hash_ok, bool first);
unsigned ofo_rail_rtu_event(const ofo_rail_machine_t *rail, uint16_t x, bool first);
unsigned ofo_rail_rej_event(const ofo_rail_machine_t *rail, uint16_t x);

/* May the rail ask for a rejoin (guard of L13, in addition to port, stable time and the user's will)? */
static inline bool ofo_rail_may_rejoin(const ofo_rail_machine_t *rail)
{
    return OFO_RAIL_DOWNB == rail->state && OFO_GENERATION_LAST != rail->g && !rail->owes;
}

/* May the PML post? CLOSED and CONNECTING take posts too: the first one starts the connection, and all wait in the BTL. */
static inline bool ofo_rail_is_up(const ofo_rail_machine_t *rail)
{
    return OFO_RAIL_UP == rail->state;
}

/* Is our own fence of generation x done? Those of older generations are by definition; that of a generation not yet reached is not. */
static inline bool ofo_rail_is_fenced(const ofo_rail_machine_t *rail, uint16_t x)
{
    return x < rail->g || (x == rail->g && (OFO_RAIL_DOWNL == rail->state || OFO_RAIL_DOWNB == rail->state) && !rail->fz);
}

const char *ofo_rail_state_name(unsigned state);
const char *ofo_rail_event_name(unsigned event);
const char *ofo_rail_action_name(unsigned action);

#endif /* BTL_OPENIB_RAIL_FSM_H */
