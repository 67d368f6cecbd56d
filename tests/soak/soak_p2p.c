/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Point-to-point operations of the soak. All parameters are common draws; each rank then does its part.
 */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 6, TAG = 11 };
enum { STANDARD, SYNCHRONOUS, BUFFERED, READY, MODES };           /* of a send */
enum { WAITALL, WAITANY, WAITSOME, TESTANY, TESTSOME, FINISHES }; /* ways to finish requests */

typedef struct {
    int sender, receiver;
    size_t length;
    uint64_t sequence; /* of this sender to this receiver within the operation */
} message_t;

typedef struct {
    message_t *list;
    int count;
    int mode, finish;
    bool strided; /* blocks of 24 bytes with gaps of 8; lengths are multiples of 24 then */
} plan_t;

/* Draws the messages of an operation: sender, receiver and length of each. A common draw. */
static plan_t draw_plan(soak_t *s, int mode, int finish)
{
    plan_t plan = {.list = soak_room(sizeof(message_t) * (size_t) (s->size * s->size * MOST)), .mode = mode, .finish = finish};
    bool small = 0 == soak_draw(s, 3);

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

/* Fill a send buffer, with gaps if the message is strided; and check and close the gaps after the receive. */
static void spread(const plan_t *plan, unsigned char *to, size_t length, uint64_t key)
{
    soak_fill(to, length, key);
    for (size_t i = length / 24; plan->strided && i-- > 0;) {
        memmove(to + i * 32, to + i * 24, 24);
    }
}

static void squeeze(const soak_t *s, const plan_t *plan, unsigned char *data, size_t length)
{
    for (size_t i = 0; plan->strided && i < length / 24; ++i) {
        soak_check_blank(s, data, i * 32 + 24, i * 32 + 32, "first byte written in a gap of a message");
    }
    for (size_t i = 0; plan->strided && i < length / 24; ++i) {
        memmove(data + i * 24, data + i * 32, 24);
    }
}

static void send_one(const soak_t *s, const plan_t *plan, const message_t *m, MPI_Datatype type, unsigned char *from, MPI_Request *request)
{
    spread(plan, from, m->length, soak_key(s, m->sender, m->receiver, m->sequence));
    switch (plan->mode) {
    case SYNCHRONOUS:
        SOAK_MPI(s, MPI_Issend(from, units(plan, m->length), type, m->receiver, TAG, s->comm, request));
        break;
    case BUFFERED:
        SOAK_MPI(s, MPI_Ibsend(from, units(plan, m->length), type, m->receiver, TAG, s->comm, request));
        break;
    case READY:
        SOAK_MPI(s, MPI_Irsend(from, units(plan, m->length), type, m->receiver, TAG, s->comm, request));
        break;
    default:
        SOAK_MPI(s, MPI_Isend(from, units(plan, m->length), type, m->receiver, TAG, s->comm, request));
    }
}

/* Where the data of a message end in a buffer. */
static size_t extent_of(const plan_t *plan, size_t length)
{
    return plan->strided ? length / 24 * 32 : length;
}

/* The received message must be the next message of its sender. `seen` counts the messages of each sender. Gives the buffer back. */
static void take(const soak_t *s, const plan_t *plan, unsigned char *data, const MPI_Status *status, int seen[])
{
    int nth = seen[status->MPI_SOURCE]++, bytes = -1;

    for (int i = 0; i < plan->count; ++i) {
        const message_t *m = &plan->list[i];
        if (m->sender == status->MPI_SOURCE && m->receiver == s->rank && 0 == nth--) {
            MPI_Get_count(status, MPI_BYTE, &bytes);
            soak_check_equal(s, (uint64_t) bytes, m->length, "length of a message");
            squeeze(s, plan, data, m->length);
            soak_check(s, data, m->length, soak_key(s, m->sender, m->receiver, m->sequence), "first wrong byte of a message");
            soak_give_back(s, data, extent_of(plan, m->length));
            return;
        }
    }
    soak_check_equal(s, 1, 0, "number of messages without a sender");
}

/* Finishes all requests, each once, with its status. */
static void finish_all(const soak_t *s, int n, MPI_Request *requests, MPI_Status *statuses, int how)
{
    MPI_Status *some = soak_room(sizeof(*some) * (size_t) (n + 1));
    int *which = soak_room(sizeof(*which) * (size_t) (n + 1)), left = n;

    if (WAITALL == how) {
        SOAK_MPI(s, MPI_Waitall(n, requests, statuses));
        left = 0;
    }
    while (0 < left) {
        int done = 1, flag = 1;
        if (WAITANY == how) {
            SOAK_MPI(s, MPI_Waitany(n, requests, which, some));
        } else if (WAITSOME == how) {
            SOAK_MPI(s, MPI_Waitsome(n, requests, &done, which, some));
        } else if (TESTANY == how) {
            SOAK_MPI(s, MPI_Testany(n, requests, which, &flag, some));
        } else {
            SOAK_MPI(s, MPI_Testsome(n, requests, &done, which, some));
        }
        done = flag ? done : 0;
        soak_check_equal(s, 0 <= done && done <= left, 1, "number of finished requests");
        for (int i = 0; i < done; ++i) {
            soak_check_equal(s, 0 <= which[i] && which[i] < n && MPI_REQUEST_NULL == requests[which[i]], 1, "index of a finished request");
            statuses[which[i]] = some[i];
        }
        left -= done;
    }
    free(some);
    free(which);
}

static void buffer_attach(const soak_t *s, size_t bytes)
{
    SOAK_MPI(s, MPI_Buffer_attach(soak_room(bytes), (int) bytes));
}

/* Waits until all buffered messages are sent. */
static void buffer_detach(const soak_t *s)
{
    void *buffer;
    int size;

    SOAK_MPI(s, MPI_Buffer_detach(&buffer, &size));
    free(buffer);
}

/* Messages between random pairs; receives name their sender or take any, and are posted before or after the sends. */
static void burst(soak_t *s, int mode, int finish)
{
    plan_t plan = draw_plan(s, mode, finish);
    bool any = 0 == soak_draw(s, 2), late = 0 == soak_draw(s, 2) && READY != mode;
    MPI_Datatype type = type_of(s, &plan);
    size_t most = extent_of(&plan, SOAK_MAX_BYTES);
    unsigned char **room = calloc((size_t) plan.count * 2 + 1, sizeof(*room));
    MPI_Request *sends = calloc((size_t) plan.count + 1, sizeof(*sends)), *recvs = calloc((size_t) plan.count + 1, sizeof(*recvs));
    MPI_Status *statuses = calloc((size_t) plan.count + 1, sizeof(*statuses));
    int ns = 0, nr = 0, rooms = 0, seen[SOAK_MAX_RANKS] = {0};
    size_t attached = 64;

    for (int i = 0; i < plan.count; ++i) {
        attached += plan.list[i].sender == s->rank ? plan.list[i].length / 24 * 32 + 64 + MPI_BSEND_OVERHEAD : 0;
    }
    if (BUFFERED == mode) {
        buffer_attach(s, attached);
    }
    for (int pass = 0; pass < 2; ++pass) {
        if (READY == mode && 1 == pass) {
            SOAK_MPI(s, MPI_Barrier(s->comm)); /* all receives are posted */
        }
        for (int i = 0; i < plan.count; ++i) {
            const message_t *m = &plan.list[i];
            if (late == (1 == pass) && m->receiver == s->rank) {
                room[rooms] = soak_receive_room(most);
                SOAK_MPI(s,
                         MPI_Irecv(room[rooms++], units(&plan, SOAK_MAX_BYTES), type, any ? MPI_ANY_SOURCE : m->sender, TAG, s->comm, &recvs[nr++]));
            }
            if (late != (1 == pass) && m->sender == s->rank) {
                unsigned char *from = soak_room(m->length / 24 * 32 + 64);
                room[plan.count + ns] = from;
                send_one(s, &plan, m, type, from, &sends[ns++]);
            }
        }
    }
    finish_all(s, nr, recvs, statuses, finish);
    for (int i = 0; i < nr; ++i) {
        take(s, &plan, room[i], &statuses[i], seen);
    }
    finish_all(s, ns, sends, statuses, finish);
    if (BUFFERED == mode) {
        buffer_detach(s);
    }
    if (any) {
        SOAK_MPI(s, MPI_Barrier(s->comm)); /* a receive from any source must not take messages of the next operation */
    }
    for (int i = 0; i < ns; ++i) {
        free(room[plan.count + i]);
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

static void burst_of_mode(soak_t *s, int mode)
{
    burst(s, mode, (int) soak_draw(s, FINISHES));
}

static void burst_finished_by(soak_t *s, int finish)
{
    burst(s, (int) soak_draw(s, MODES), finish);
}

/* Each rank sends to its right neighbour, several times. */
typedef struct {
    int right, left, rounds;
    unsigned char *out, *in;
    size_t longest; /* bytes received */
} ring_t;

static ring_t ring_begin(soak_t *s)
{
    return (ring_t){.right = (s->rank + 1) % s->size,
                    .left = (s->rank + s->size - 1) % s->size,
                    .rounds = 1 + (int) soak_draw(s, 8),
                    .out = soak_room(SOAK_MAX_BYTES),
                    .in = soak_receive_room(SOAK_MAX_BYTES)};
}

static void ring_check(const soak_t *s, ring_t *ring, const MPI_Status *status, size_t length, int round)
{
    int bytes = -1;

    MPI_Get_count(status, MPI_BYTE, &bytes);
    soak_check_equal(s, (uint64_t) bytes, length, "length in a ring");
    ring->longest = length > ring->longest ? length : ring->longest;
    soak_check(s, ring->in, length, soak_key(s, ring->left, s->rank, (uint64_t) round), "first wrong byte in a ring");
}

static void ring_end(const soak_t *s, const ring_t *ring)
{
    free(ring->out);
    soak_give_back(s, ring->in, ring->longest);
}

static void exchange(soak_t *s, int variant)
{
    ring_t ring = ring_begin(s);
    MPI_Status status;

    (void) variant;
    for (int i = 0; i < ring.rounds; ++i) {
        size_t length = soak_draw_length(s);
        soak_fill(ring.out, length, soak_key(s, s->rank, ring.right, (uint64_t) i));
        SOAK_MPI(s, MPI_Sendrecv(ring.out, (int) length, MPI_BYTE, ring.right, i, ring.in, SOAK_MAX_BYTES, MPI_BYTE, ring.left, i, s->comm, &status));
        ring_check(s, &ring, &status, length, i);
    }
    ring_end(s, &ring);
}

static void blocking(soak_t *s, int mode)
{
    ring_t ring = ring_begin(s);
    MPI_Request request;
    MPI_Status status;

    if (BUFFERED == mode) {
        buffer_attach(s, 8 * (SOAK_MAX_BYTES + MPI_BSEND_OVERHEAD));
    }
    for (int i = 0; i < ring.rounds; ++i) {
        size_t length = soak_draw_length(s);
        int n = (int) length;
        SOAK_MPI(s, MPI_Irecv(ring.in, SOAK_MAX_BYTES, MPI_BYTE, ring.left, TAG, s->comm, &request));
        soak_fill(ring.out, length, soak_key(s, s->rank, ring.right, (uint64_t) i));
        if (SYNCHRONOUS == mode) {
            SOAK_MPI(s, MPI_Ssend(ring.out, n, MPI_BYTE, ring.right, TAG, s->comm));
        } else if (BUFFERED == mode) {
            SOAK_MPI(s, MPI_Bsend(ring.out, n, MPI_BYTE, ring.right, TAG, s->comm));
        } else if (READY == mode) {
            SOAK_MPI(s, MPI_Barrier(s->comm));
            SOAK_MPI(s, MPI_Rsend(ring.out, n, MPI_BYTE, ring.right, TAG, s->comm));
        } else {
            SOAK_MPI(s, MPI_Send(ring.out, n, MPI_BYTE, ring.right, TAG, s->comm));
        }
        memset(ring.out, 0, length); /* the send is over */
        SOAK_MPI(s, MPI_Wait(&request, &status));
        ring_check(s, &ring, &status, length, i);
    }
    if (BUFFERED == mode) {
        buffer_detach(s);
    }
    ring_end(s, &ring);
}

/* Persistent requests that are started again and again. */
static void persistent(soak_t *s, int mode)
{
    ring_t ring = ring_begin(s);
    size_t length = soak_draw_length(s);
    int n = (int) length;
    MPI_Request r[2];
    MPI_Status statuses[2];

    if (BUFFERED == mode) {
        buffer_attach(s, 8 * (length + MPI_BSEND_OVERHEAD + 64));
    }
    SOAK_MPI(s, MPI_Recv_init(ring.in, n, MPI_BYTE, ring.left, TAG, s->comm, &r[0]));
    if (SYNCHRONOUS == mode) {
        SOAK_MPI(s, MPI_Ssend_init(ring.out, n, MPI_BYTE, ring.right, TAG, s->comm, &r[1]));
    } else if (BUFFERED == mode) {
        SOAK_MPI(s, MPI_Bsend_init(ring.out, n, MPI_BYTE, ring.right, TAG, s->comm, &r[1]));
    } else if (READY == mode) {
        SOAK_MPI(s, MPI_Rsend_init(ring.out, n, MPI_BYTE, ring.right, TAG, s->comm, &r[1]));
    } else {
        SOAK_MPI(s, MPI_Send_init(ring.out, n, MPI_BYTE, ring.right, TAG, s->comm, &r[1]));
    }
    for (int i = 0; i < ring.rounds; ++i) {
        soak_fill(ring.out, length, soak_key(s, s->rank, ring.right, (uint64_t) i));
        if (READY == mode) {
            SOAK_MPI(s, MPI_Start(&r[0]));
            SOAK_MPI(s, MPI_Barrier(s->comm));
            SOAK_MPI(s, MPI_Start(&r[1]));
        } else {
            SOAK_MPI(s, MPI_Startall(2, r));
        }
        SOAK_MPI(s, MPI_Waitall(2, r, statuses));
        ring_check(s, &ring, &statuses[0], length, i);
    }
    if (BUFFERED == mode) {
        buffer_detach(s);
    }
    SOAK_MPI(s, MPI_Request_free(&r[0]));
    SOAK_MPI(s, MPI_Request_free(&r[1]));
    ring_end(s, &ring);
}

/* All ranks send to one rank, which probes before it receives. */
enum { PROBE, IPROBE, MPROBE, IMPROBE };

static void look(const soak_t *s, int how, MPI_Message *message, MPI_Status *status)
{
    int flag = 0;

    if (PROBE == how) {
        SOAK_MPI(s, MPI_Probe(MPI_ANY_SOURCE, TAG, s->comm, status));
    } else if (MPROBE == how) {
        SOAK_MPI(s, MPI_Mprobe(MPI_ANY_SOURCE, TAG, s->comm, message, status));
    } else {
        while (!flag) {
            if (IPROBE == how) {
                SOAK_MPI(s, MPI_Iprobe(MPI_ANY_SOURCE, TAG, s->comm, &flag, status));
            } else {
                SOAK_MPI(s, MPI_Improbe(MPI_ANY_SOURCE, TAG, s->comm, &flag, message, status));
            }
        }
    }
}

static void probed(soak_t *s, int how)
{
    int root = (int) soak_draw(s, (uint64_t) s->size), n = 1 + (int) soak_draw(s, 4), seen[SOAK_MAX_RANKS] = {0};
    size_t length = soak_draw_length(s);
    unsigned char *room = soak_receive_room(SOAK_MAX_BYTES);

    for (int i = 0; s->rank != root && i < n; ++i) {
        soak_fill(room, length, soak_key(s, s->rank, root, (uint64_t) i));
        SOAK_MPI(s, MPI_Send(room, (int) length, MPI_BYTE, root, TAG, s->comm));
    }
    for (int i = 0; s->rank == root && i < n * (s->size - 1); ++i) {
        MPI_Message message;
        MPI_Status status;
        int bytes;
        look(s, how, &message, &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        soak_check_equal(s, (uint64_t) bytes, length, "length of a probed message");
        if (MPROBE == how || IMPROBE == how) {
            SOAK_MPI(s, MPI_Mrecv(room, bytes, MPI_BYTE, &message, &status));
        } else {
            SOAK_MPI(s, MPI_Recv(room, bytes, MPI_BYTE, status.MPI_SOURCE, TAG, s->comm, &status));
        }
        soak_check(s, room, length, soak_key(s, status.MPI_SOURCE, root, (uint64_t) seen[status.MPI_SOURCE]++),
                   "first wrong byte of a probed message");
    }
    SOAK_MPI(s, MPI_Barrier(s->comm));
    soak_give_back(s, room, length);
}

/* A receive that no message matches is cancelled during other traffic. */
static void cancelled(soak_t *s, int variant)
{
    MPI_Request request;
    MPI_Status status;
    int flag = 0;
    char byte;

    SOAK_MPI(s, MPI_Irecv(&byte, 1, MPI_BYTE, (s->rank + 1) % s->size, 999, s->comm, &request));
    exchange(s, variant);
    SOAK_MPI(s, MPI_Cancel(&request));
    SOAK_MPI(s, MPI_Wait(&request, &status));
    MPI_Test_cancelled(&status, &flag);
    soak_check_equal(s, (uint64_t) flag, 1, "cancelled receive");
}

static soak_row_t rows[] = {
    {"Isend", burst_of_mode, STANDARD, 0},
    {"Issend", burst_of_mode, SYNCHRONOUS, 0},
    {"Ibsend", burst_of_mode, BUFFERED, 0},
    {"Irsend", burst_of_mode, READY, 0},
    {"Waitall", burst_finished_by, WAITALL, 0},
    {"Waitany", burst_finished_by, WAITANY, 0},
    {"Waitsome", burst_finished_by, WAITSOME, 0},
    {"Testany", burst_finished_by, TESTANY, 0},
    {"Testsome", burst_finished_by, TESTSOME, 0},
    {"Sendrecv", exchange, 0, 0},
    {"Send", blocking, STANDARD, 0},
    {"Ssend", blocking, SYNCHRONOUS, 0},
    {"Bsend", blocking, BUFFERED, 0},
    {"Rsend", blocking, READY, 0},
    {"Send_init", persistent, STANDARD, 0},
    {"Ssend_init", persistent, SYNCHRONOUS, 0},
    {"Bsend_init", persistent, BUFFERED, 0},
    {"Rsend_init", persistent, READY, 0},
    {"Probe", probed, PROBE, 0},
    {"Iprobe", probed, IPROBE, 0},
    {"Mprobe", probed, MPROBE, 0},
    {"Improbe", probed, IMPROBE, 0},
    {"Cancel", cancelled, 0, 0},
};
const soak_table_t soak_point_to_point = {rows, sizeof(rows) / sizeof(rows[0])};
