/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The machine of btl_openib_rail.def: it takes events and classified messages and runs actions of its owner.
 * It has no lock and no clock and includes no Open MPI header. See DESIGN.txt 10.
 */
#ifndef BTL_OPENIB_RAIL_FSM_H
#define BTL_OPENIB_RAIL_FSM_H

#include "formats/btl_openib_wire.h"

#include <stdbool.h>

#define STATE(name, text) OFO_ST_##name,
typedef enum {
#include "tables/btl_openib_rail.def"
    OFO_ST_COUNT
} ofo_fsm_state_t;

#define EVENT(name, text) OFO_EV_##name,
typedef enum {
#include "tables/btl_openib_rail.def"
    OFO_EV_COUNT,
    OFO_EV_NONE = OFO_EV_COUNT /* a message that is dropped before it is an event */
} ofo_fsm_event_t;

#define ACTION(name) OFO_DO_##name,
typedef enum {
#include "tables/btl_openib_rail.def"
    OFO_DO_COUNT
} ofo_fsm_action_t;

/* Runs one action. `message` is the control message that caused it, or NULL. If the result is not 0 the rail cannot
 * go on, and the machine takes LOCAL_ERROR. Context: service thread of the rail. */
typedef int (*ofo_fsm_action_fn_t)(void *owner, const ofo_ctl_t *message);

/* Called after every accepted transition and for every refused event (next == state, action OFO_DO_COUNT). */
typedef void (*ofo_fsm_trace_fn_t)(void *owner, ofo_fsm_state_t state, ofo_fsm_event_t event, ofo_fsm_state_t next, ofo_fsm_action_t action);

#define OFO_GEN_NONE (-1)

typedef struct {
    ofo_fsm_state_t state;
    uint16_t gen;                       /* of the current or last set of queue pairs */
    int32_t check_gen;                  /* older generation whose loss check is still due, or OFO_GEN_NONE */
    uint32_t refused;                   /* events that met an empty cell */
    const ofo_fsm_action_fn_t *actions; /* OFO_DO_COUNT entries */
    ofo_fsm_trace_fn_t trace;           /* may be NULL */
    void *owner;
} ofo_fsm_t;

/* What the classification of a message needs to know in addition to the machine. */
typedef struct {
    bool own_is_higher; /* own process name > the peer's */
    bool hash_ok;       /* the message's rail_hash is ours (REQ, REP) */
    bool usable;        /* port up, not declared, not disabled */
} ofo_fsm_facts_t;

void ofo_fsm_init(ofo_fsm_t *fsm, const ofo_fsm_action_fn_t *actions, ofo_fsm_trace_fn_t trace, void *owner);

/* The event that `message` is for this machine, or OFO_EV_NONE. Changes nothing. */
ofo_fsm_event_t ofo_fsm_classify(const ofo_fsm_t *fsm, const ofo_ctl_t *message, const ofo_fsm_facts_t *facts);

/* Takes one event. False if the table has no row for it: nothing changes but the counter. */
bool ofo_fsm_step(ofo_fsm_t *fsm, ofo_fsm_event_t event, const ofo_ctl_t *message);

/* Does the table have a row for it? (tests) */
bool ofo_fsm_has_row(ofo_fsm_state_t state, ofo_fsm_event_t event);

/* Does a retransmission timer run in this state? Does a connection timer? */
bool ofo_fsm_state_retransmits(ofo_fsm_state_t state);
bool ofo_fsm_state_is_connecting(ofo_fsm_state_t state);

const char *ofo_fsm_state_name(ofo_fsm_state_t state);
const char *ofo_fsm_event_name(ofo_fsm_event_t event);

/* The next retransmission delay: it doubles from 100 ms up to 2 s; `previous_ms` 0 starts. The time to wait is the jittered
 * value, which is within 25 % of the delay; `random` is any 32 random bits. */
unsigned ofo_backoff_next(unsigned previous_ms);
unsigned ofo_backoff_jitter(unsigned delay_ms, uint32_t random);

#endif /* BTL_OPENIB_RAIL_FSM_H */
