/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Executes btl_openib_rail.def. Only ofo_fsm_step() writes a rail's state. It changes the generation too, before the
 * action runs. See DESIGN.txt 10.
 */
#include "tables/btl_openib_rail_fsm.h"

enum { BACKOFF_FIRST_MS = 100, BACKOFF_LAST_MS = 2000 };

typedef struct {
    uint8_t defined;
    uint8_t next;
    uint8_t action;
} row_t;

#define ROW(id, state, event, next, action) [OFO_ST_##state][OFO_EV_##event] = {1, OFO_ST_##next, OFO_DO_##action},
static const row_t rows[OFO_ST_COUNT][OFO_EV_COUNT] = {
#include "tables/btl_openib_rail.def"
};

#define STATE(name, text) text,
static const char *const state_names[] = {
#include "tables/btl_openib_rail.def"
};

#define EVENT(name, text) text,
static const char *const event_names[] = {
#include "tables/btl_openib_rail.def"
};

/* Built with -DBFO_COUNT_ROWS=1, the process writes the rows it took to a file in BFO_ROWS_DIR when it ends (tests/sim/rows). */
#ifndef BFO_COUNT_ROWS
#define BFO_COUNT_ROWS 0
#endif
#if BFO_COUNT_ROWS
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint32_t rows_taken[OFO_ST_COUNT][OFO_EV_COUNT];

static __attribute__((destructor)) void write_rows(void)
{
    const char *dir = getenv("BFO_ROWS_DIR");
    char path[4096];
    FILE *out;

    if (NULL == dir || sizeof(path) <= (size_t) snprintf(path, sizeof(path), "%s/rail.%d", dir, (int) getpid())) {
        return;
    }
    out = fopen(path, "w");
    for (unsigned i = 0; NULL != out && i < OFO_ST_COUNT * OFO_EV_COUNT; ++i) {
        uint32_t taken = rows_taken[i / OFO_EV_COUNT][i % OFO_EV_COUNT];
        if (0 != taken) {
            fprintf(out, "rail|%s|%s|%u\n", state_names[i / OFO_EV_COUNT], event_names[i % OFO_EV_COUNT], taken);
        }
    }
    if (NULL != out) {
        fclose(out);
    }
}
#define COUNT_ROW(state, event) ((void) ++rows_taken[state][event])
#else
#define COUNT_ROW(state, event) ((void) 0)
#endif

void ofo_fsm_init(ofo_fsm_t *fsm, const ofo_fsm_action_fn_t *actions, ofo_fsm_trace_fn_t trace, void *owner)
{
    *fsm = (ofo_fsm_t){.state = OFO_ST_CLOSED, .check_gen = OFO_GEN_NONE, .actions = actions, .trace = trace, .owner = owner};
}

static ofo_fsm_event_t classify_request(const ofo_fsm_t *fsm, const ofo_ctl_t *message, const ofo_fsm_facts_t *facts)
{
    bool accepted = facts->usable && facts->hash_ok;

    if (message->gen == fsm->gen) {
        if (!accepted) {
            return OFO_EV_REQ_REFUSED;
        }
        return facts->own_is_higher ? OFO_EV_REQ_YIELD : OFO_EV_REQ_HOLD;
    }
    if (message->gen == fsm->gen + 1) {
        if (OFO_GEN_NONE != fsm->check_gen) {
            return OFO_EV_NONE; /* L14c: an older check is due; the peer asks again */
        }
        return accepted ? OFO_EV_REQ_NEXT : OFO_EV_REQ_NEXT_REFUSED;
    }
    return OFO_EV_NONE;
}

static ofo_fsm_event_t by_generation(const ofo_fsm_t *fsm, const ofo_ctl_t *message, ofo_fsm_event_t same, ofo_fsm_event_t older,
                                     ofo_fsm_event_t newer)
{
    if (message->gen == fsm->gen) {
        return same;
    }
    return message->gen < fsm->gen ? older : newer;
}

ofo_fsm_event_t ofo_fsm_classify(const ofo_fsm_t *fsm, const ofo_ctl_t *message, const ofo_fsm_facts_t *facts)
{
    bool same = message->gen == fsm->gen;

    switch (message->type) {
    case OFO_CTL_REQ:
        return classify_request(fsm, message, facts);
    case OFO_CTL_REP:
        if (!same) {
            return OFO_EV_NONE;
        }
        return facts->hash_ok ? OFO_EV_REP : OFO_EV_REP_REFUSED;
    case OFO_CTL_RTU:
        return same ? OFO_EV_PEER_PROVED : OFO_EV_NONE;
    case OFO_CTL_REJ:
        return same ? OFO_EV_REJ : OFO_EV_NONE;
    case OFO_CTL_DOWN:
        return by_generation(fsm, message, OFO_EV_DOWN_SAME, OFO_EV_DOWN_OLDER, OFO_EV_DOWN_NEWER);
    case OFO_CTL_DACK:
        return by_generation(fsm, message, OFO_EV_DACK_SAME, OFO_EV_DACK_OLDER, OFO_EV_DACK_NEWER);
    case OFO_CTL_PEERDEAD:
        return OFO_EV_PEERDEAD;
    default:
        return OFO_EV_NONE;
    }
}

/* L11-L14: the events that change the generation. */
static void move_generation(ofo_fsm_t *fsm, ofo_fsm_event_t event, const ofo_ctl_t *message)
{
    if (OFO_EV_RESTORED == event || OFO_EV_REQ_NEXT == event) {
        if (OFO_ST_DOWN == fsm->state) {
            ++fsm->gen;
        }
    } else if (OFO_EV_DOWN_NEWER == event || OFO_EV_DACK_NEWER == event) {
        if (OFO_ST_ASKING == fsm->state && OFO_GEN_NONE == fsm->check_gen) {
            fsm->check_gen = fsm->gen;
        }
        fsm->gen = message->gen;
    }
}

bool ofo_fsm_step(ofo_fsm_t *fsm, ofo_fsm_event_t event, const ofo_ctl_t *message)
{
    ofo_fsm_state_t from = fsm->state;
    const row_t *row;

    if (OFO_EV_COUNT <= event) {
        return false;
    }
    row = &rows[from][event];
    if (!row->defined) {
        ++fsm->refused;
        if (NULL != fsm->trace) {
            fsm->trace(fsm->owner, from, event, from, OFO_DO_COUNT);
        }
        return false;
    }
    COUNT_ROW(from, event);
    move_generation(fsm, event, message);
    fsm->state = (ofo_fsm_state_t) row->next;
    if (NULL != fsm->trace) {
        fsm->trace(fsm->owner, from, event, fsm->state, (ofo_fsm_action_t) row->action);
    }
    if (0 != fsm->actions[row->action](fsm->owner, message)) {
        ofo_fsm_step(fsm, OFO_EV_LOCAL_ERROR, NULL);
    }
    return true;
}

bool ofo_fsm_has_row(ofo_fsm_state_t state, ofo_fsm_event_t event)
{
    return 0 != rows[state][event].defined;
}

bool ofo_fsm_state_retransmits(ofo_fsm_state_t state)
{
    return ofo_fsm_has_row(state, OFO_EV_RETRANSMIT);
}

bool ofo_fsm_state_is_connecting(ofo_fsm_state_t state)
{
    return OFO_ST_REQUESTED == state || OFO_ST_PROVING == state || OFO_ST_READY == state || OFO_ST_CHECKING == state;
}

const char *ofo_fsm_state_name(ofo_fsm_state_t state)
{
    return OFO_ST_COUNT > state ? state_names[state] : "?";
}

const char *ofo_fsm_event_name(ofo_fsm_event_t event)
{
    return OFO_EV_COUNT > event ? event_names[event] : "?";
}

unsigned ofo_backoff_next(unsigned previous_ms)
{
    if (0 == previous_ms) {
        return BACKOFF_FIRST_MS;
    }
    return previous_ms >= BACKOFF_LAST_MS / 2 ? BACKOFF_LAST_MS : 2 * previous_ms;
}

unsigned ofo_backoff_jitter(unsigned delay_ms, uint32_t random)
{
    return delay_ms - delay_ms / 4 + random % (delay_ms / 2 + 1);
}
