/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The host's side of the fabric: its beginning, its faults, its figures. DESIGN.txt section 18.
 */
#include "fabric_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- beginning ---------------------------------------------------------------------------------------- */

static void free_objects(fabric_object_t *object)
{
    while (NULL != object) {
        fabric_object_t *next = object->next;
        free(object);
        object = next;
    }
}

void fabric_end(void)
{
    while (NULL != fabric.contexts) {
        fabric_context_end(fabric.contexts->context);
    }
    free_objects(fabric.graves);
    fabric_wire_forget();
    free(fabric.numbered);
    if (0 != fabric.habits.nodes) { /* a new fabric is zero, and large */
        memset(&fabric, 0, sizeof(fabric));
    }
}

static bool are_valid(const fabric_habits_t *habits)
{
    return 0 < habits->nodes && WORLD_MAX_PROCESSES >= habits->nodes && 0 < habits->rails && WORLD_MAX_RAILS >= habits->rails && 256 <= habits->mtu
           && 4096 >= habits->mtu && 0 == (habits->mtu & (habits->mtu - 1)) && WORLD_S > habits->jitter && WORLD_S >= habits->event_delay;
}

void fabric_begin(const fabric_habits_t *habits)
{
    fabric_end();
    if (!are_valid(habits)) {
        world_broken("the habits of the fabric are not valid");
    }
    fabric.habits = *habits;
    for (unsigned node = 0; node < habits->nodes; ++node) {
        for (unsigned rail = 0; rail < habits->rails; ++rail) {
            fabric.port[node][rail].is_up = true;
        }
    }
}

/* ---- ports -------------------------------------------------------------------------------------------- */

/* Raises the event for each open context of the port. */
static void on_contexts(unsigned node, unsigned rail, enum ibv_event_type event)
{
    for (fabric_object_t *object = fabric.contexts; NULL != object; object = object->next) {
        if (node == object->context->node && rail == object->context->rail) {
            fabric_raise(object->context, event, NULL);
        }
    }
}

void fabric_port(unsigned node, unsigned rail, bool is_up)
{
    fabric_port_t *port = &fabric.port[node][rail];

    if (port->is_dead || is_up == port->is_up) {
        return;
    }
    world_trace("node %u rail %u: the port is %s", node, rail, is_up ? "up" : "down");
    port->is_up = is_up;
    port->was_down |= !is_up;
    if (!is_up) {
        port->went_down = world_now;
    }
    on_contexts(node, rail, is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

bool fabric_port_is_up(unsigned node, unsigned rail)
{
    return fabric.port[node][rail].is_up;
}

bool fabric_port_was_always_up(unsigned node, unsigned rail)
{
    return fabric.port[node][rail].is_up && !fabric.port[node][rail].was_down;
}

void fabric_silence(unsigned node, unsigned rail, bool out, bool in)
{
    world_trace("node %u rail %u: the switch is silent: out %d, in %d", node, rail, out, in);
    fabric.port[node][rail].is_silent_out = out;
    fabric.port[node][rail].is_silent_in = in;
}

void fabric_loss(unsigned node, unsigned rail, unsigned per_1000)
{
    world_trace("node %u rail %u: %u of 1000 packets get lost", node, rail, per_1000);
    fabric.port[node][rail].loss = per_1000;
}

void fabric_hold(unsigned node, unsigned rail, uint64_t until)
{
    fabric_port_t *port = &fabric.port[node][rail];

    world_trace("node %u rail %u: the switch holds WRITEs until %.6f s", node, rail, (double) until / 1e9);
    port->held_until = until > port->held_until ? until : port->held_until;
}

void fabric_mute(unsigned node, bool is_mute)
{
    fabric.is_mute[node] = is_mute;
}

/* ---- adapters and queue pairs ------------------------------------------------------------------------- */

static bool is_connected(const fabric_qp_t *qp)
{
    return IBV_QPT_RC == qp->ibv.qp_type && (IBV_QPS_RTR == qp->ibv.state || IBV_QPS_RTS == qp->ibv.state);
}

void fabric_adapter_dies(unsigned node, unsigned rail, bool forgets)
{
    fabric_port_t *port = &fabric.port[node][rail];
    const uint64_t trip = fabric.habits.latency + fabric.habits.jitter + fabric.habits.packet_ns;

    if (port->is_dead) {
        return;
    }
    world_trace("node %u rail %u: the adapter dies%s", node, rail, forgets ? " and forgets" : "");
    on_contexts(node, rail, IBV_EVENT_DEVICE_FATAL);
    if (port->is_up) {
        port->went_down = world_now;
    }
    port->is_up = false;
    port->is_dead = true;
    for (uint32_t number = fabric.next_number; number-- > 0;) { /* the newest first */
        fabric_qp_t *qp = (fabric_qp_t *) fabric_object_find(number, FABRIC_QP);
        if (NULL == qp || node != qp->object.context->node || rail != qp->object.context->rail) {
            continue;
        }
        if (forgets && is_connected(qp) && world_chance(700)) {
            qp->forgets = true;
            qp->forgets_until = world_now + trip * (1 + world_draw(4));
        }
        if (IBV_QPS_RESET != qp->ibv.state) {
            fabric_qp_fail(qp, 0);
        }
    }
}

/* The queue pairs of the process on the rail that can break, counted from 0: returns the one with this place, or NULL. */
static fabric_qp_t *breakable(unsigned rank, unsigned rail, unsigned place)
{
    for (const fabric_object_t *context = fabric.contexts; NULL != context; context = context->next) {
        for (fabric_object_t *object = context->context->objects; rank == context->context->rank && NULL != object; object = object->next) {
            const fabric_qp_t *qp = (const fabric_qp_t *) object;
            if (FABRIC_QP == object->kind && rail == context->context->rail && IBV_QPS_RTR <= qp->ibv.state && IBV_QPS_RTS >= qp->ibv.state
                && 0 == place--) {
                return (fabric_qp_t *) object;
            }
        }
    }
    return NULL;
}

/* NULL if there is none. */
static fabric_qp_t *draw_breakable(unsigned rank, unsigned rail)
{
    unsigned count = 0;

    while (NULL != breakable(rank, rail, count)) {
        ++count;
    }
    return 0 == count ? NULL : breakable(rank, rail, world_draw(count));
}

bool fabric_breaks_a_queue_pair(unsigned rank, unsigned rail)
{
    fabric_qp_t *qp = draw_breakable(rank, rail);

    if (NULL == qp) {
        return false;
    }
    world_trace("rank %u rail %u: queue pair %u breaks", rank, rail, qp->ibv.qp_num);
    fabric_qp_fail(qp, IBV_EVENT_QP_FATAL);
    return true;
}

bool fabric_breaks_a_completion_queue(unsigned rank, unsigned rail)
{
    const fabric_qp_t *qp = draw_breakable(rank, rail);
    fabric_cq_t *cq;

    if (NULL == qp) {
        return false;
    }
    cq = world_chance(500) ? qp->send_cq : qp->recv_cq;
    world_trace("rank %u rail %u: completion queue %u of queue pair %u fails", rank, rail, cq->object.number, qp->ibv.qp_num);
    fabric_cq_fail(cq);
    return IBV_QPT_RC == qp->ibv.qp_type;
}

/* ---- processes ---------------------------------------------------------------------------------------- */

static fabric_context_t *context_of(unsigned rank)
{
    for (fabric_object_t *object = fabric.contexts; NULL != object; object = object->next) {
        if (rank == object->context->rank) {
            return object->context;
        }
    }
    return NULL;
}

void fabric_process_gone(unsigned rank)
{
    for (fabric_context_t *context = context_of(rank); NULL != context; context = context_of(rank)) {
        fabric_context_end(context);
    }
}

fabric_objects_t fabric_objects(unsigned rank)
{
    unsigned count[FABRIC_KINDS] = {0};

    for (const fabric_object_t *context = fabric.contexts; NULL != context; context = context->next) {
        for (const fabric_object_t *object = context->context->objects; rank == context->context->rank && NULL != object; object = object->next) {
            ++count[object->kind];
        }
        count[FABRIC_CONTEXT] += rank == context->context->rank;
    }
    return (fabric_objects_t){.contexts = count[FABRIC_CONTEXT],
                              .pds = count[FABRIC_PD],
                              .mrs = count[FABRIC_MR],
                              .cqs = count[FABRIC_CQ],
                              .srqs = count[FABRIC_SRQ],
                              .qps = count[FABRIC_QP],
                              .ahs = count[FABRIC_AH],
                              .channels = count[FABRIC_CHANNEL]};
}

uint64_t fabric_bytes(unsigned node, unsigned rail)
{
    return fabric.port[node][rail].bytes;
}

uint64_t fabric_lost(unsigned node, unsigned rail)
{
    return fabric.port[node][rail].lost;
}

fabric_posts_t fabric_posts(unsigned rank)
{
    return fabric.posts[rank];
}

uint64_t fabric_memory(void)
{
    return fabric.grave_bytes + fabric.packet_bytes + fabric.room * sizeof(fabric_object_t *);
}
