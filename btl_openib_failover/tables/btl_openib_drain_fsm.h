/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The machine of btl_openib_drain.def: it takes one event, changes the state, and returns the row's gate and action for the caller.
 * It holds no lock and includes no Open MPI header. See DESIGN.txt 10.3.
 */
#ifndef BTL_OPENIB_DRAIN_FSM_H
#define BTL_OPENIB_DRAIN_FSM_H

#include <stdbool.h>
#include <stdint.h>

#define STATE(name, text) OFO_DRAIN_##name,
typedef enum {
#include "tables/btl_openib_drain.def"
    OFO_DRAIN_STATES
} ofo_drain_state_t;

#define EVENT(name, lock, text) OFO_DEV_##name,
typedef enum {
#include "tables/btl_openib_drain.def"
    OFO_DRAIN_EVENTS
} ofo_drain_event_t;

#define ACTION(name) OFO_DACT_##name,
typedef enum {
#include "tables/btl_openib_drain.def"
    OFO_DRAIN_ACTIONS
} ofo_drain_action_t;

enum { OFO_DRAIN_KEEP, OFO_DRAIN_REFUSE }; /* the gate column */

/* The state of a set. Only this header and btl_openib_drain_fsm.c may name the member. */
typedef struct {
    uint8_t own; /* ofo_drain_state_t */
} ofo_drain_t;

typedef struct {
    bool listed;    /* false: no row, nothing changed */
    uint8_t next;   /* ofo_drain_state_t */
    uint8_t gate;   /* OFO_DRAIN_KEEP or OFO_DRAIN_REFUSE */
    uint8_t action; /* ofo_drain_action_t */
} ofo_drain_cell_t;

/* Takes one event. No other function writes the state. Locks: ep->lock. */
ofo_drain_cell_t ofo_drain_step(ofo_drain_t *drain, ofo_drain_event_t event);

/* Does the caller that raises the event hold ep->lock? */
bool ofo_drain_lock_is_held(ofo_drain_event_t event);

const char *ofo_drain_state_name(unsigned state);
const char *ofo_drain_event_name(unsigned event);
const char *ofo_drain_action_name(unsigned action);

/* Locks of the functions that follow: ep->lock, or the poll lock. A caller that holds the poll lock alone may see LIVE although a post
 * ends that state at the same moment. */
static inline ofo_drain_state_t ofo_drain_state(const ofo_drain_t *drain)
{
    return (ofo_drain_state_t) drain->own;
}

static inline bool ofo_drain_is_live(const ofo_drain_t *drain)
{
    return OFO_DRAIN_LIVE == drain->own;
}

/* Does the fence wait for what was posted? */
static inline bool ofo_drain_is_running(const ofo_drain_t *drain)
{
    return OFO_DRAIN_DRAINING <= drain->own && OFO_DRAIN_STUCK >= drain->own;
}

/* Is the fence done? */
static inline bool ofo_drain_is_over(const ofo_drain_t *drain)
{
    return OFO_DRAIN_FENCED <= drain->own;
}

_Static_assert(0 == OFO_DRAIN_LIVE && OFO_DRAIN_FENCED + 2 == OFO_DRAIN_STATES && OFO_DRAIN_DRAINING + 2 == OFO_DRAIN_STUCK,
               "the questions go by the order of the states");

#endif /* BTL_OPENIB_DRAIN_FSM_H */
