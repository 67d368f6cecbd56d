/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The wire: packets wait for their port, get lost, and arrive. A packet that has left its port is not part of its queue pair any more: it
 * arrives also if the queue pair fails or is destroyed meanwhile. DESIGN.txt section 18.
 */
#include "fabric_internal.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

fabric_packet_t *fabric_packet_new(const fabric_qp_t *from, fabric_packet_kind_t kind, uint32_t to_qpn, int to_node, uint32_t length)
{
    fabric_packet_t *packet = malloc(sizeof(*packet) + length);

    if (NULL == packet) {
        abort();
    }
    memset(packet, 0, sizeof(*packet)); /* not the data, which the caller fills in */
    packet->kind = kind;
    packet->rail = from->object.context->rail;
    packet->from = from->object.context->node;
    packet->to = 0 > to_node ? WORLD_MAX_PROCESSES : (unsigned) to_node;
    packet->from_qpn = from->ibv.qp_num;
    packet->to_qpn = to_qpn;
    packet->length = length;
    return packet;
}

uint64_t fabric_wire_slot(fabric_port_t *port, uint32_t length)
{
    uint64_t start = port->free_at > world_now ? port->free_at : world_now;
    uint64_t packets = length <= fabric.habits.mtu ? 1 : (length + fabric.habits.mtu - 1) / fabric.habits.mtu;

    port->free_at = start + packets * fabric.habits.packet_ns;
    return start;
}

static void unlink_packet(fabric_packet_t *packet)
{
    if (NULL != packet->next) {
        packet->next->previous = packet->previous;
    }
    if (NULL != packet->previous) {
        packet->previous->next = packet->next;
    } else {
        fabric.in_flight = packet->next;
    }
}

static bool gets_lost(fabric_port_t *port)
{
    const bool is = 0 != port->loss && world_chance(port->loss);

    port->lost += is;
    return is;
}

/* Does the packet get out of its port, and through it onto the switch? */
static bool leaves(fabric_port_t *port, const fabric_packet_t *packet)
{
    const bool is_lost = PACKET_DATAGRAM == packet->kind && fabric.is_mute[packet->from];

    return packet->is_ghost || (port->is_up && !port->is_silent_out && !is_lost && !gets_lost(port));
}

static void arrive(void *argument)
{
    fabric_packet_t *packet = argument;
    const fabric_port_t *from = &fabric.port[packet->from][packet->rail], *to = &fabric.port[packet->to][packet->rail];
    bool is_cut = !packet->is_ghost && from->went_down > packet->made && from->went_down <= packet->leave; /* it waited for the wire then */

    unlink_packet(packet);
    fabric.packet_bytes -= malloc_usable_size(packet) + sizeof(size_t);
    if (!is_cut && !to->is_silent_in && (to->is_up || to->is_dead)) {
        fabric_packet_arrives(packet); /* a dead adapter drops it, or forgets what it acknowledges */
    }
    free(packet);
}

void fabric_wire_send(fabric_qp_t *from, fabric_packet_t *packet, uint64_t leave)
{
    fabric_port_t *port = fabric_port_of(from->object.context);
    uint64_t arrival;

    packet->made = world_now;
    packet->leave = leave;
    if (!leaves(port, packet) || fabric.habits.nodes <= packet->to) {
        free(packet);
        return;
    }
    arrival = leave + fabric.habits.latency + (0 == fabric.habits.jitter ? 0 : world_draw((unsigned) fabric.habits.jitter + 1));
    if (arrival < port->held_until && PACKET_WRITE == packet->kind) {
        arrival = port->held_until + arrival - leave;
    }
    if (arrival < from->last_arrival) {
        arrival = from->last_arrival;
    }
    from->last_arrival = arrival;
    packet->next = fabric.in_flight;
    if (NULL != packet->next) {
        packet->next->previous = packet;
    }
    fabric.in_flight = packet;
    fabric.packet_bytes += malloc_usable_size(packet) + sizeof(size_t);
    port->bytes += packet->length;
    world_at(arrival, arrive, packet);
}

void fabric_wire_forget(void)
{
    while (NULL != fabric.in_flight) {
        fabric_packet_t *packet = fabric.in_flight;
        fabric.in_flight = packet->next;
        free(packet);
    }
}
