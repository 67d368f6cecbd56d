/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A request for the tests of the machines: the machine, its facts, actions that count how often they ran, and two functions that raise an
 * event: s(request, sender event, data) and v(request, receiver event, data). Only the test programs include this file. */
#ifndef FSM_REQUEST_H
#define FSM_REQUEST_H

#include "tables/pml_bfo_failover_fsm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { ACTIONS_MAX = 64 };
_Static_assert((int) BFO_SEND_ACTIONS <= ACTIONS_MAX && (int) BFO_RECV_ACTIONS <= ACTIONS_MAX, "room for counters");

/* Stands in for a request of the PML: the machine, its facts, and what the machine did with the request. */
typedef struct {
    bfo_machine_t m;
    bfo_send_facts_t send;
    bfo_recv_facts_t recv;
    int ran[ACTIONS_MAX];
    unsigned last;
    int rejected;
    const char *row;
    bool posting; /* actions raise events as those of the PML do: an action that posts a control message raises them by 1 */
    int data;     /* take_ack, take_put and accept raise events by this number */
} request_t;

static void ran(void *request, unsigned action)
{
    request_t *r = request;

    r->ran[action]++;
    r->last = action;
}

static void post(void *request, int count)
{
    request_t *r = request;

    for (int i = 0; r->posting && i < count; i++) {
        bfo_events_up(&r->m, false);
    }
}

static const char *const control_posts[] = {"post_match", "resend_match", "post_rts",       "resend_rts",  "post_notify",   "resend_notify",
                                            "restart",    "post_rerr",    "fail_post_rerr", "resend_rerr", "grant_restart", "resend_rack"};
static const char *const data_posts[] = {"take_ack", "take_put", "accept"};

/* Raises as many events as the PML's action of this name posts descriptors. */
static void post_for(void *request, const char *name)
{
    for (size_t i = 0; i < sizeof(control_posts) / sizeof(control_posts[0]); i++) {
        post(request, 0 == strcmp(name, control_posts[i]) ? 1 : 0);
    }
    for (size_t i = 0; i < sizeof(data_posts) / sizeof(data_posts[0]); i++) {
        post(request, 0 == strcmp(name, data_posts[i]) ? ((request_t *) request)->data : 0);
    }
}

#define ACTION(name) \
    static void send_##name(void *request, void *arg) \
    { \
        (void) arg; \
        ran(request, BFO_SACT_##name); \
        post_for(request, #name); \
    }
#include "tables/pml_bfo_failover_send.def"
#define ACTION(name) \
    static void recv_##name(void *request, void *arg) \
    { \
        (void) arg; \
        ran(request, BFO_RACT_##name); \
        post_for(request, #name); \
    }
#include "tables/pml_bfo_failover_recv.def"

#define ACTION(name) [BFO_SACT_##name] = send_##name,
static const bfo_action_fn_t send_actions[] = {
#include "tables/pml_bfo_failover_send.def"
};
#define ACTION(name) [BFO_RACT_##name] = recv_##name,
static const bfo_action_fn_t recv_actions[] = {
#include "tables/pml_bfo_failover_recv.def"
};

static void reject(void *request, uint32_t se, unsigned event)
{
    (void) se;
    (void) event;
    ((request_t *) request)->rejected++;
}

static void trace(void *request, const char *row, uint32_t from, uint32_t to, unsigned event)
{
    (void) from;
    (void) to;
    (void) event;
    ((request_t *) request)->row = row;
}

static void send_facts(void *request, unsigned state, bfo_send_facts_t *facts)
{
    (void) state;
    *facts = ((request_t *) request)->send;
}

static void recv_facts(void *request, unsigned state, bfo_recv_facts_t *facts)
{
    (void) state;
    *facts = ((request_t *) request)->recv;
}

static const bfo_send_ops_t send_ops = {{send_actions, reject, trace, false}, send_facts};
static const bfo_recv_ops_t recv_ops = {{recv_actions, reject, trace, false}, recv_facts};

static inline void send_is(const request_t *r, unsigned state, unsigned epoch, unsigned action)
{
    if (state != bfo_se_state(r->m.se)) {
        fail_msg("sender is %s, not %s", bfo_send_state_name(bfo_se_state(r->m.se)), bfo_send_state_name(state));
    }
    assert_int_equal(epoch, bfo_se_epoch(r->m.se));
    if (action != r->last) {
        fail_msg("action was %s, not %s", bfo_send_action_name(r->last), bfo_send_action_name(action));
    }
}

static inline void recv_is(const request_t *r, unsigned state, unsigned epoch, unsigned action)
{
    if (state != bfo_se_state(r->m.se)) {
        fail_msg("receiver is %s, not %s", bfo_recv_state_name(bfo_se_state(r->m.se)), bfo_recv_state_name(state));
    }
    assert_int_equal(epoch, bfo_se_epoch(r->m.se));
    if (action != r->last) {
        fail_msg("action was %s, not %s", bfo_recv_action_name(r->last), bfo_recv_action_name(action));
    }
}

/* One event; take_ack, take_put and accept post `data` descriptors. */
static inline void s(request_t *r, unsigned event, int data)
{
    r->posting = true;
    r->data = data;
    (void) bfo_send_step(&r->m, event, &send_ops, r, NULL);
}

static inline void v(request_t *r, unsigned event, int data)
{
    r->posting = true;
    r->data = data;
    (void) bfo_recv_step(&r->m, event, &recv_ops, r, NULL);
}

#endif /* FSM_REQUEST_H */
