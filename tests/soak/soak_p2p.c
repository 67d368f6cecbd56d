/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Point-to-point operations of the soak. All parameters are common draws; each rank then plays its part.
 */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 6, TAG = 11 };

typedef struct {
    int sender, receiver;
    size_t length;
    uint64_t sequence; /* of this sender to this receiver within the operation */
} message_t;

typedef struct {
    message_t *list;
    int count;
    int mode;     /* 0 standard, 1 synchronous, 2 buffered */
    bool strided; /* blocks of 24 bytes with gaps of 8; lengths are multiples of 24 then */
} plan_t;

/* Who sends what to whom: a common draw. */
static plan_t draw_plan(soak_t *s)
{
    plan_t plan = {.list = soak_room(sizeof(message_t) * (size_t) (s->size * s->size * MOST))};
    bool small = 0 == soak_draw(s, 3);

    plan.mode = (int) soak_draw(s, 3);
    plan.strided = 0 == soak_draw(s, 4);
    for (int sender = 0; sender < s->size; ++sender) {
        for (int receiver = 0; receiver < s->size; ++receiver) {
            int n = 0 == soak_draw(s, 2) ? (int) soak_draw(s, MOST + 1) : 0;
            for (int i = 0; i < n; ++i) {
                size_t length = small ? (size_t) soak_draw(s, 3000) : soak_draw_length(s);
                if (plan.strided) {
                    length -= length % 24;
                }
                plan.list[plan.count++] = (message_t){sender, receiver, length, (uint64_t) i};
            }
        }
    }
    return plan;
}

static MPI_Datatype type_of(const soak_t *s, const plan_t *plan)
{
    MPI_Datatype block, type;

    if (!plan->strided) {
        return MPI_BYTE;
    }
    SOAK_MPI(s, MPI_Type_contiguous(24, MPI_BYTE, &block));
    SOAK_MPI(s, MPI_Type_create_resized(block, 0, 32, &type));
    SOAK_MPI(s, MPI_Type_commit(&type));
    SOAK_MPI(s, MPI_Type_free(&block));
    return type;
}

static int units(const plan_t *plan, size_t length)
{
    return (int) (plan->strided ? length / 24 : length);
}

/* Data of a message with its gaps squeezed out, and back. */
static void spread(const plan_t *plan, unsigned char *to, size_t length, uint64_t key)
{
    soak_fill(to, length, key);
    for (size_t i = length / 24; plan->strided && i-- > 0;) {
        memmove(to + i * 32, to + i * 24, 24);
    }
}

static void squeeze(const plan_t *plan, unsigned char *data, size_t length)
{
    for (size_t i = 0; plan->strided && i < length / 24; ++i) {
        memmove(data + i * 24, data + i * 32, 24);
    }
}

static void send_one(const soak_t *s, const plan_t *plan, const message_t *m, MPI_Datatype type, unsigned char *from,
                     MPI_Request *request)
{
    spread(plan, from, m->length, soak_key(s, m->sender, m->receiver, m->sequence));
    switch (plan->mode) {
    case 1:
        SOAK_MPI(s, MPI_Issend(from, units(plan, m->length), type, m->receiver, TAG, s->comm, request));
        break;
    case 2:
        SOAK_MPI(s, MPI_Ibsend(from, units(plan, m->length), type, m->receiver, TAG, s->comm, request));
        break;
    default:
        SOAK_MPI(s, MPI_Isend(from, units(plan, m->length), type, m->receiver, TAG, s->comm, request));
    }
}

/* The received message must be the next of its sender. `seen` counts them. */
static void take(const soak_t *s, const plan_t *plan, unsigned char *data, const MPI_Status *status, int seen[])
{
    int nth = seen[status->MPI_SOURCE]++, bytes = -1;

    for (int i = 0; i < plan->count; ++i) {
        const message_t *m = &plan->list[i];
        if (m->sender == status->MPI_SOURCE && m->receiver == s->rank && 0 == nth--) {
            MPI_Get_count(status, MPI_BYTE, &bytes);
            soak_check_equal(s, (uint64_t) bytes, m->length, "length of a message");
            squeeze(plan, data, m->length);
            soak_check(s, data, m->length, soak_key(s, m->sender, m->receiver, m->sequence), "first wrong byte of a message");
            return;
        }
    }
    soak_check_equal(s, 1, 0, "message that nobody sent");
}

/* Messages between random pairs; receives by name or from anybody, before or behind the sends. */
static void burst(soak_t *s)
{
    plan_t plan = draw_plan(s);
    bool any = 0 == soak_draw(s, 2), late = 0 == soak_draw(s, 2);
    MPI_Datatype type = type_of(s, &plan);
    size_t most = SOAK_MAX_BYTES / 24 * 32 + 64;
    unsigned char **room = calloc((size_t) plan.count * 2 + 1, sizeof(*room));
    MPI_Request *sends = calloc((size_t) plan.count + 1, sizeof(*sends)), *recvs = calloc((size_t) plan.count + 1, sizeof(*recvs));
    MPI_Status *statuses = calloc((size_t) plan.count + 1, sizeof(*statuses));
    int ns = 0, nr = 0, rooms = 0, seen[SOAK_MAX_RANKS] = {0};
    size_t attached = 64;
    void *buffer = NULL;

    for (int i = 0; i < plan.count; ++i) {
        attached += plan.list[i].sender == s->rank ? plan.list[i].length / 24 * 32 + 64 + MPI_BSEND_OVERHEAD : 0;
    }
    if (2 == plan.mode) {
        buffer = soak_room(attached);
        SOAK_MPI(s, MPI_Buffer_attach(buffer, (int) attached));
    }
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = 0; i < plan.count; ++i) {
            const message_t *m = &plan.list[i];
            if (late == (1 == pass) && m->receiver == s->rank) {
                room[rooms] = soak_room(most);
                SOAK_MPI(s, MPI_Irecv(room[rooms++], units(&plan, SOAK_MAX_BYTES), type, any ? MPI_ANY_SOURCE : m->sender, TAG, s->comm,
                                      &recvs[nr++]));
            }
            if (late != (1 == pass) && m->sender == s->rank) {
                unsigned char *from = soak_room(m->length / 24 * 32 + 64);
                room[plan.count + ns] = from;
                send_one(s, &plan, m, type, from, &sends[ns++]);
            }
        }
    }
    SOAK_MPI(s, MPI_Waitall(nr, recvs, statuses));
    SOAK_MPI(s, MPI_Waitall(ns, sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < nr; ++i) {
        take(s, &plan, room[i], &statuses[i], seen);
    }
    if (NULL != buffer) {
        int size;
        SOAK_MPI(s, MPI_Buffer_detach(&buffer, &size));
        free(buffer);
    }
    if (any) {
        SOAK_MPI(s, MPI_Barrier(s->comm)); /* a receive from anybody must not take messages of the next operation */
    }
    for (int i = 0; i < 2 * plan.count; ++i) {
        free(room[i]);
    }
    if (MPI_BYTE != type) {
        SOAK_MPI(s, MPI_Type_free(&type));
    }
    free(room);
    free(sends);
    free(recvs);
    free(statuses);
    free(plan.list);
}

/* Everybody to its right neighbour, several times, by blocking calls. */
static void ring(soak_t *s)
{
    int right = (s->rank + 1) % s->size, left = (s->rank + s->size - 1) % s->size, n = 1 + (int) soak_draw(s, 8);
    unsigned char *out = soak_room(SOAK_MAX_BYTES), *in = soak_room(SOAK_MAX_BYTES);

    for (int i = 0; i < n; ++i) {
        size_t length = soak_draw_length(s);
        MPI_Status status;
        int bytes;
        soak_fill(out, length, soak_key(s, s->rank, right, (uint64_t) i));
        SOAK_MPI(s, MPI_Sendrecv(out, (int) length, MPI_BYTE, right, i, in, SOAK_MAX_BYTES, MPI_BYTE, left, i, s->comm, &status));
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        soak_check_equal(s, (uint64_t) bytes, length, "length in a ring");
        soak_check(s, in, length, soak_key(s, left, s->rank, (uint64_t) i), "first wrong byte in a ring");
    }
    free(out);
    free(in);
}

/* Persistent requests with one neighbour, started again and again. */
static void persistent(soak_t *s)
{
    int right = (s->rank + 1) % s->size, left = (s->rank + s->size - 1) % s->size, n = 2 + (int) soak_draw(s, 10);
    size_t length = soak_draw_length(s);
    unsigned char *out = soak_room(length), *in = soak_room(length);
    MPI_Request r[2];

    SOAK_MPI(s, MPI_Recv_init(in, (int) length, MPI_BYTE, left, TAG, s->comm, &r[0]));
    SOAK_MPI(s, MPI_Send_init(out, (int) length, MPI_BYTE, right, TAG, s->comm, &r[1]));
    for (int i = 0; i < n; ++i) {
        soak_fill(out, length, soak_key(s, s->rank, right, (uint64_t) i));
        SOAK_MPI(s, MPI_Startall(2, r));
        SOAK_MPI(s, MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        soak_check(s, in, length, soak_key(s, left, s->rank, (uint64_t) i), "first wrong byte of a persistent receive");
    }
    SOAK_MPI(s, MPI_Request_free(&r[0]));
    SOAK_MPI(s, MPI_Request_free(&r[1]));
    free(out);
    free(in);
}

/* All send to one, which looks before it receives. */
static void probed(soak_t *s)
{
    int root = (int) soak_draw(s, (uint64_t) s->size), n = 1 + (int) soak_draw(s, 4), seen[SOAK_MAX_RANKS] = {0};
    bool matched = 0 == soak_draw(s, 2);
    size_t length = soak_draw_length(s);
    unsigned char *room = soak_room(SOAK_MAX_BYTES);

    for (int i = 0; s->rank != root && i < n; ++i) {
        soak_fill(room, length, soak_key(s, s->rank, root, (uint64_t) i));
        SOAK_MPI(s, MPI_Send(room, (int) length, MPI_BYTE, root, TAG, s->comm));
    }
    for (int i = 0; s->rank == root && i < n * (s->size - 1); ++i) {
        MPI_Message message;
        MPI_Status status;
        int bytes;
        if (matched) {
            SOAK_MPI(s, MPI_Mprobe(MPI_ANY_SOURCE, TAG, s->comm, &message, &status));
        } else {
            SOAK_MPI(s, MPI_Probe(MPI_ANY_SOURCE, TAG, s->comm, &status));
        }
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        soak_check_equal(s, (uint64_t) bytes, length, "length of a probed message");
        if (matched) {
            SOAK_MPI(s, MPI_Mrecv(room, bytes, MPI_BYTE, &message, &status));
        } else {
            SOAK_MPI(s, MPI_Recv(room, bytes, MPI_BYTE, status.MPI_SOURCE, TAG, s->comm, &status));
        }
        soak_check(s, room, length, soak_key(s, status.MPI_SOURCE, root, (uint64_t) seen[status.MPI_SOURCE]++),
                   "first wrong byte of a probed message");
    }
    SOAK_MPI(s, MPI_Barrier(s->comm));
    free(room);
}

/* A receive nobody sends to is cancelled beside real traffic. */
static void cancelled(soak_t *s)
{
    MPI_Request request;
    MPI_Status status;
    int flag = 0;
    char byte;

    SOAK_MPI(s, MPI_Irecv(&byte, 1, MPI_BYTE, (s->rank + 1) % s->size, 999, s->comm, &request));
    ring(s);
    SOAK_MPI(s, MPI_Cancel(&request));
    SOAK_MPI(s, MPI_Wait(&request, &status));
    MPI_Test_cancelled(&status, &flag);
    soak_check_equal(s, (uint64_t) flag, 1, "cancelled receive");
}

void soak_point_to_point(soak_t *s)
{
    switch (soak_draw(s, 8)) {
    case 0:
        ring(s);
        break;
    case 1:
        persistent(s);
        break;
    case 2:
        probed(s);
        break;
    case 3:
        cancelled(s);
        break;
    default:
        burst(s);
    }
}
