/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rules that are stated by hand, and the comparison of a machine with them.
 */
#ifndef FSM_RULES_H
#define FSM_RULES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { SAME = 99, NOW = 7, NEXT = 8, TOLD = 9 }; /* epoch or generation: unchanged, the present, the next, that of the message */

typedef struct {
    unsigned event, states; /* a bit for each state */
    unsigned to;            /* or SAME */
    unsigned number;        /* epoch or generation afterwards (before: NOW; 0: begins again); of a set: its gate */
    unsigned action;
} rule_t;

/* What a machine did with an event. */
typedef struct {
    bool taken;
    unsigned to, number, action;
} seen_t;

typedef struct {
    const char *name;
    const rule_t *rules;
    size_t n;
    unsigned states, events;
    seen_t (*ask)(unsigned state, unsigned event);
    const char *(*state_name)(unsigned state);
    const char *(*event_name)(unsigned event);
} machine_t;

static inline const rule_t *rule_for(const machine_t *m, unsigned state, unsigned event)
{
    const rule_t *found = NULL;

    for (size_t i = 0; i < m->n; ++i) {
        if (event == m->rules[i].event && 0 != (m->rules[i].states >> state & 1)) {
            assert_null(found); /* two rules for one pair */
            found = &m->rules[i];
        }
    }
    return found;
}

static inline void keeps_its_rules(const machine_t *m)
{
    for (unsigned state = 0; state < m->states; ++state) {
        for (unsigned event = 0; event < m->events; ++event) {
            const rule_t *rule = rule_for(m, state, event);
            const seen_t seen = m->ask(state, event);
            const char *wrong = seen.taken != (NULL != rule)                       ? (seen.taken ? "is taken" : "is refused")
                                : NULL == rule                                     ? NULL
                                : seen.to != (SAME == rule->to ? state : rule->to) ? m->state_name(seen.to)
                                : seen.number != rule->number                      ? "has another epoch, generation or gate"
                                : seen.action != rule->action                      ? "has another action"
                                                                                   : NULL;

            if (NULL != wrong) {
                fail_msg("%s: %s in %s: %s (action %u, number %u)", m->name, m->event_name(event), m->state_name(state), wrong, seen.action,
                         seen.number);
            }
        }
    }
}

#endif /* FSM_RULES_H */
