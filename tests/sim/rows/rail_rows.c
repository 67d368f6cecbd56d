/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Two machines of btl_openib_rail.def over a network that loses, duplicates, delays and reorders messages. The two sides
 * connect, lose the rail, fence, check, rejoin with new generations, refuse each other, and are declared. At the end of each story
 * both are UP with one generation, or both rest because the peer is declared or refuses. rail_rows met: built with
 * -DBFO_COUNT_ROWS=1 the machine writes the rows that it took. rail_rows raised: takes every row once. DESIGN.txt 10.2, 13.
 */
#include "tables/btl_openib_rail_fsm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE = 48, STORIES = 4000, TROUBLE = 300, PEACE = 20000 };

typedef struct side side_t;
struct side {
    ofo_fsm_t fsm;
    side_t *other;
    bool higher, port_up, hash_ok, declared, fencing, proving;
    ofo_ctl_t queue[QUEUE]; /* messages on the way to this side */
    unsigned count;
};

static uint64_t random_state;
static unsigned loss; /* percent */

static unsigned draw(unsigned n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned) (random_state >> 33) % n;
}

static void put(side_t *to, ofo_ctl_type_t type, uint16_t gen)
{
    for (int copies = 0 == draw(5) ? 2 : 1; 0 < copies; --copies) {
        if (draw(100) >= loss && to->count < QUEUE) {
            to->queue[to->count++] = (ofo_ctl_t){.type = (uint8_t) type, .gen = gen};
        }
    }
}

static int act(side_t *s, ofo_fsm_action_t action, const ofo_ctl_t *m)
{
    switch (action) {
    case OFO_DO_open_active:
        if (!s->port_up) {
            return -1;
        }
        put(s->other, OFO_CTL_REQ, s->fsm.gen);
        break;
    case OFO_DO_send_req:
        put(s->other, OFO_CTL_REQ, s->fsm.gen);
        break;
    case OFO_DO_open_passive:
    case OFO_DO_become_passive:
    case OFO_DO_send_rep:
        put(s->other, OFO_CTL_REP, s->fsm.gen);
        break;
    case OFO_DO_prove_active:
    case OFO_DO_prove_passive:
        s->proving = true;
        break;
    case OFO_DO_map_and_tell:
    case OFO_DO_send_rtu:
        put(s->other, OFO_CTL_RTU, s->fsm.gen);
        break;
    case OFO_DO_send_rej:
        put(s->other, OFO_CTL_REJ, m->gen);
        break;
    case OFO_DO_fence_and_tell:
        put(s->other, OFO_CTL_DOWN, s->fsm.gen);
        s->fencing = true;
        s->proving = false;
        break;
    case OFO_DO_fence:
    case OFO_DO_fence_and_keep:
        s->fencing = true;
        s->proving = false;
        break;
    case OFO_DO_send_down:
        put(s->other, OFO_CTL_DOWN, s->fsm.gen);
        break;
    case OFO_DO_down_and_dack:
        put(s->other, OFO_CTL_DOWN, s->fsm.gen);
        put(s->other, OFO_CTL_DACK, s->fsm.gen);
        break;
    case OFO_DO_send_dack:
    case OFO_DO_dack_and_check:
        put(s->other, OFO_CTL_DACK, NULL != m && OFO_DO_send_dack == action ? m->gen : s->fsm.gen);
        break;
    case OFO_DO_check_older:
        if (s->fsm.check_gen == (int32_t) m->gen) {
            s->fsm.check_gen = OFO_GEN_NONE;
        }
        break;
    default:
        break;
    }
    return 0;
}

#define ACTION(name) \
    static int do_##name(void *owner, const ofo_ctl_t *m) \
    { \
        return act(owner, OFO_DO_##name, m); \
    }
#include "tables/btl_openib_rail.def"

#define ACTION(name) [OFO_DO_##name] = do_##name,
static const ofo_fsm_action_fn_t actions[OFO_DO_COUNT] = {
#include "tables/btl_openib_rail.def"
};

static bool is(const side_t *s, ofo_fsm_state_t state)
{
    return state == s->fsm.state;
}

/* Delivers one message, chosen at random, so that some messages are very old when they arrive. */
static void deliver(side_t *s)
{
    const unsigned pick = draw(s->count);
    const ofo_ctl_t m = s->queue[pick];
    const ofo_fsm_facts_t facts = {.own_is_higher = s->higher, .hash_ok = s->hash_ok, .usable = s->port_up && !s->declared};
    ofo_fsm_event_t event;

    s->queue[pick] = s->queue[--s->count];
    if (s->declared && OFO_CTL_PEERDEAD != m.type) {
        put(s->other, OFO_CTL_PEERDEAD, 0);
    }
    event = ofo_fsm_classify(&s->fsm, &m, &facts);
    if (OFO_EV_PEERDEAD == event) {
        s->declared = true;
    }
    if (OFO_EV_NONE != event) {
        (void) ofo_fsm_step(&s->fsm, event, &m);
    }
}

/* An event that time brings about. */
static void tick(side_t *s)
{
    switch (draw(6)) {
    case 0:
        if (s->proving && s->port_up && s->other->port_up) {
            s->proving = false;
            (void) ofo_fsm_step(&s->fsm, OFO_EV_PROVED, NULL);
        }
        break;
    case 1:
        if (s->fencing) {
            s->fencing = false;
            (void) ofo_fsm_step(&s->fsm, OFO_EV_FENCE_DONE, NULL);
        }
        break;
    case 2:
        if (ofo_fsm_state_retransmits(s->fsm.state)) {
            (void) ofo_fsm_step(&s->fsm, OFO_EV_RETRANSMIT, NULL);
        }
        if (OFO_GEN_NONE != s->fsm.check_gen) {
            put(s->other, OFO_CTL_DOWN, (uint16_t) s->fsm.check_gen);
        }
        break;
    case 3: /* the first data of a side that is up proves this side to the other (L20) */
        if (is(s, OFO_ST_UP) && s->fsm.gen == s->other->fsm.gen && (is(s->other, OFO_ST_READY) || 0 == draw(20))) {
            if (is(s->other, OFO_ST_READY) || is(s->other, OFO_ST_CHECKING) || is(s->other, OFO_ST_UP)) {
                (void) ofo_fsm_step(&s->other->fsm, OFO_EV_PEER_PROVED, NULL);
            }
        }
        break;
    case 4:
        if (is(s, OFO_ST_DOWN) && OFO_GEN_NONE == s->fsm.check_gen && s->port_up && !s->declared && s->fsm.gen < 65535) {
            (void) ofo_fsm_step(&s->fsm, OFO_EV_RESTORED, NULL);
        }
        break;
    default:
        if (ofo_fsm_state_is_connecting(s->fsm.state) && 0 == draw(100)) { /* T_conn */
            (void) ofo_fsm_step(&s->fsm, OFO_EV_LOCAL_ERROR, NULL);
        }
        if (is(s, OFO_ST_CLOSED) && !s->declared && s->port_up) {
            (void) ofo_fsm_step(&s->fsm, OFO_EV_POST, NULL);
        }
        break;
    }
}

/* A fault. */
static void trouble(side_t *s)
{
    switch (draw(12)) {
    case 0:
        s->port_up = !s->port_up;
        if (!s->port_up) {
            (void) ofo_fsm_step(&s->fsm, OFO_EV_LOCAL_ERROR, NULL);
        }
        break;
    case 1:
    case 2:
        (void) ofo_fsm_step(&s->fsm, OFO_EV_LOCAL_ERROR, NULL);
        break;
    case 3:
        if (0 == draw(60)) {
            s->declared = true;
            put(s->other, OFO_CTL_PEERDEAD, 0);
        }
        break;
    case 4:
        loss = draw(80);
        break;
    default:
        break;
    }
}

static void turn(side_t *s)
{
    if (0 < s->count && 0 != draw(3)) {
        deliver(s);
    } else {
        tick(s);
    }
}

static bool is_at_peace(const side_t *a, const side_t *b)
{
    const bool severed = a->declared || b->declared || !a->hash_ok || !b->hash_ok;

    return severed || (is(a, OFO_ST_UP) && is(b, OFO_ST_UP) && a->fsm.gen == b->fsm.gen);
}

static void story(uint64_t seed)
{
    side_t a = {.port_up = true, .hash_ok = true}, b = {.port_up = true, .hash_ok = true, .higher = true};
    int steps = 0;

    random_state = seed;
    loss = draw(40);
    a.hash_ok = 0 != draw(20);
    b.hash_ok = 0 != draw(20);
    a.other = &b;
    b.other = &a;
    ofo_fsm_init(&a.fsm, actions, NULL, &a);
    ofo_fsm_init(&b.fsm, actions, NULL, &b);
    for (; steps < TROUBLE; ++steps) {
        turn(0 == draw(2) ? &a : &b);
        if (0 == draw(1 + (unsigned) (seed % 16))) {
            trouble(0 == draw(2) ? &a : &b);
        }
    }
    a.port_up = b.port_up = true;
    loss = 10;
    while (!is_at_peace(&a, &b)) {
        turn(0 == draw(2) ? &a : &b);
        if (++steps > PEACE) {
            fprintf(stderr, "rail_rows: story %u does not end: %s generation %u, %s generation %u\n", (unsigned) seed,
                    ofo_fsm_state_name(a.fsm.state), a.fsm.gen, ofo_fsm_state_name(b.fsm.state), b.fsm.gen);
            exit(1);
        }
    }
}

/* Takes each row of the table with a machine that is put into the row's state. */
static void raise_all(void)
{
    for (int s = 0; s < OFO_ST_COUNT; ++s) {
        for (int e = 0; e < OFO_EV_COUNT; ++e) {
            side_t a = {.port_up = true, .hash_ok = true}, b = {.port_up = true};
            const ofo_ctl_t m = {.gen = 3};

            a.other = &b;
            ofo_fsm_init(&a.fsm, actions, NULL, &a);
            a.fsm.state = (ofo_fsm_state_t) s;
            a.fsm.gen = 3;
            if (ofo_fsm_has_row(a.fsm.state, (ofo_fsm_event_t) e) && !ofo_fsm_step(&a.fsm, (ofo_fsm_event_t) e, &m)) {
                exit(1);
            }
        }
    }
}

int main(int argc, char **argv)
{
    if (2 != argc || (0 != strcmp(argv[1], "met") && 0 != strcmp(argv[1], "raised"))) {
        fprintf(stderr, "usage: rail_rows met|raised\n");
        return 2;
    }
    if (0 == strcmp(argv[1], "raised")) {
        raise_all();
        return 0;
    }
    for (uint64_t seed = 1; seed <= STORIES; ++seed) {
        story(seed);
    }
    return 0;
}
