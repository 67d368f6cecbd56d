/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The state of the fabric: its objects by number, and addresses. Numbers grow and are never used twice, so that nothing which is late
 * meets a new object. DESIGN.txt section 18.
 */
#include "fabric_internal.h"

#include <endian.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_NUMBER = 0x40 };

fabric_state_t fabric;

/* ---- objects ------------------------------------------------------------------------------------------ */

static bool add_number(fabric_object_t *object)
{
    if (0 == fabric.next_number) {
        fabric.next_number = FIRST_NUMBER;
    }
    if (fabric.next_number >= fabric.room) {
        uint32_t room = 2 * fabric.next_number + 1024;
        fabric_object_t **grown = realloc(fabric.numbered, room * sizeof(fabric_object_t *));
        if (NULL == grown) {
            return false;
        }
        memset(grown + fabric.room, 0, (room - fabric.room) * sizeof(fabric_object_t *));
        fabric.numbered = grown;
        fabric.room = room;
    }
    object->number = fabric.next_number++;
    fabric.numbered[object->number] = object;
    return true;
}

bool fabric_fails(world_call_t call, const fabric_context_t *context)
{
    if (fabric_port_of(context)->is_dead || !world_call_fails(call, context->rail)) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

/* The list that the object stands in. */
static fabric_object_t **list_of(const fabric_object_t *object)
{
    return FABRIC_CONTEXT == object->kind ? &fabric.contexts : &object->context->objects;
}

void *fabric_object_new(fabric_kind_t kind, fabric_context_t *context, size_t size, world_call_t call)
{
    fabric_object_t *object;

    if (NULL != context) {
        fabric_object_check(&context->object, "an open device");
        if (fabric_port_of(context)->is_dead) {
            errno = EIO;
            return NULL;
        }
        if (fabric_fails(call, context)) {
            return NULL;
        }
    }
    object = calloc(1, size);
    if (NULL == object || !add_number(object)) {
        abort();
    }
    object->kind = kind;
    object->context = context;
    object->next = *list_of(object);
    if (NULL != object->next) {
        object->next->previous = object;
    }
    *list_of(object) = object;
    return object;
}

void fabric_object_end(fabric_object_t *object)
{
    object->is_gone = true;
    fabric.numbered[object->number] = NULL;
    if (NULL != object->next) {
        object->next->previous = object->previous;
    }
    if (NULL != object->previous) {
        object->previous->next = object->next;
    } else {
        *list_of(object) = object->next;
    }
    object->previous = NULL;
    object->next = fabric.graves;
    fabric.graves = object;
    fabric.grave_bytes += malloc_usable_size(object) + sizeof(size_t); /* as the heap counts them */
}

void fabric_object_check(const fabric_object_t *object, const char *verb)
{
    static const char *const names[FABRIC_KINDS] = {"device",           "protection domain",    "registration", "completion channel",
                                                    "completion queue", "shared receive queue", "queue pair",   "address handle"};

    if (object->is_gone) {
        world_broken("%s: %s %u is used after it was destroyed", verb, names[object->kind], object->number);
    }
    if (NULL != world_me && world_me->rank != object->context->rank) {
        world_broken("%s: process %u uses %s %u of process %u", verb, world_me->rank, names[object->kind], object->number, object->context->rank);
    }
}

fabric_object_t *fabric_object_find(uint32_t number, fabric_kind_t kind)
{
    fabric_object_t *object = number < fabric.room ? fabric.numbered[number] : NULL;

    return NULL != object && kind == object->kind ? object : NULL;
}

bool fabric_covers(const fabric_context_t *context, const struct ibv_pd *pd, uint32_t key, uint64_t address, uint64_t length, unsigned access)
{
    const fabric_mr_t *mr = (const fabric_mr_t *) fabric_object_find(key, FABRIC_MR);
    uint64_t from;

    if (0 == length) {
        return true;
    }
    if (NULL == mr || pd != mr->ibv.pd || context != mr->object.context || access != (mr->access & access)) {
        return false;
    }
    from = (uintptr_t) mr->ibv.addr;
    return address >= from && length <= mr->ibv.length && address - from <= mr->ibv.length - length;
}

/* ---- addresses ---------------------------------------------------------------------------------------- */

uint16_t fabric_lid(unsigned node)
{
    return (uint16_t) (node + 1);
}

/* Each rail is a subnet. */
void fabric_gid(unsigned node, unsigned rail, union ibv_gid *gid)
{
    gid->global.subnet_prefix = htobe64(UINT64_C(0xfe80000000000000) | (rail + 1));
    gid->global.interface_id = htobe64(UINT64_C(0x0202c9fffe000000) | (node + 1) >> 8 << 16 | rail << 8 | ((node + 1) & 0xff));
}

int fabric_node_of(unsigned rail, const struct ibv_ah_attr *attr)
{
    const uint64_t id = be64toh(attr->grh.dgid.global.interface_id);
    const unsigned node = attr->is_global ? (unsigned) ((id >> 16 & 0xff) << 8 | (id & 0xff)) - 1 : attr->dlid - 1u;
    union ibv_gid gid;

    if (node >= fabric.habits.nodes) {
        return -1;
    }
    fabric_gid(node, rail, &gid);
    return !attr->is_global || 0 == memcmp(&gid, &attr->grh.dgid, sizeof(gid)) ? (int) node : -1;
}
