/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A message of the application. See image_message.h.
 */
#include "image_message.h"

#include <string.h>

enum { TAG = 5 };

static ompi_datatype_t *with_gaps;
static unsigned biggest, wildcards, probes, strided, persistent, others;

/* ---- what both ends know ------------------------------------------------------------------------------------ */

kind_t kind_of(unsigned from, unsigned to, unsigned number)
{
    const unsigned percent = world_hash(100, from, to, number, 1);

    if (percent < wildcards) {
        return ANY;
    }
    if (world_hash(100, from, to, number, 2) < probes) {
        return PROBED;
    }
    if (world_hash(100, from, to, number, 8) < persistent) {
        return PERSISTENT;
    }
    return world_hash(100, from, to, number, 9) < others ? OTHER : NAMED;
}

static bool is_strided(unsigned rank, unsigned from, unsigned to, unsigned number)
{
    return PERSISTENT != kind_of(from, to, number) && world_hash(100, from, to, number, 10 + rank) < strided;
}

/* A persistent request has one length. */
static unsigned length_key(unsigned from, unsigned to, unsigned number)
{
    return PERSISTENT == kind_of(from, to, number) ? UINT32_MAX : number;
}

/* Half of the messages are short; the lengths of the others spread evenly over the powers of two. With gaps: whole blocks. */
size_t size_of(unsigned from, unsigned to, unsigned number)
{
    const unsigned key = length_key(from, to, number);
    unsigned size = world_hash(65, from, to, key, 3);

    if (0 != world_hash(2, from, to, key, 4)) {
        unsigned most = 64;

        for (unsigned left = world_hash(16, from, to, key, 5); 0 < left && most < biggest; --left) {
            most *= 2;
        }
        size = world_hash(most, from, to, key, 6);
    }
    size = size < biggest ? size : biggest;
    if (is_strided(from, from, to, number) || is_strided(to, from, to, number)) {
        size = (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    return NAMED == kind_of(from, to, number) || HEADER <= size ? size : (size_t) HEADER * 2;
}

size_t message_longest(void)
{
    return biggest < 2 * HEADER ? 2 * HEADER : biggest;
}

ompi_communicator_t *comm_of(kind_t kind)
{
    return OTHER == kind ? image_other : image_world;
}

int tag_of(kind_t kind, unsigned thread, unsigned number)
{
    if (OTHER == kind) {
        return 100 + (int) (10 * (number % 7) + thread);
    }
    return TAG + (int) kind + 10 * (int) thread;
}

/* The first bytes name the message. */
static void bytes_of(unsigned from, unsigned to, unsigned number, uint8_t *bytes, size_t size)
{
    uint64_t x = ((uint64_t) world_hash(UINT32_MAX, from, to, number, 7) << 32) | number | 1;
    const uint32_t header[HEADER / 4] = {0xb0f0b0f0u, from, to, number};

    for (size_t i = 0; i < size; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(bytes + i, &x, size - i < 8 ? size - i : 8);
    }
    memcpy(bytes, header, size < HEADER ? size : HEADER);
}

/* ---- memory of a message: guards around it, and gaps ------------------------------------------------------------ */

static uint8_t guards[256]; /* what stands where no message may write, over and over */

uint8_t guard_at(size_t i)
{
    return guards[i % sizeof(guards)];
}

void memory_clear(message_t *m)
{
    for (size_t i = 0; i < m->length + 2 * GUARD; i += sizeof(guards)) {
        memcpy(m->memory + i, guards, m->length + 2 * GUARD - i < sizeof(guards) ? m->length + 2 * GUARD - i : sizeof(guards));
    }
}

static void memory_make(message_t *m)
{
    m->length = m->is_strided ? m->size / BLOCK * EXTENT : m->size;
    m->memory = malloc(m->length + 2 * GUARD);
    memory_clear(m);
}

/* The datatype is four parts of 8 bytes, 24 bytes apart. */
static void copy(const message_t *m, uint8_t *bytes, bool out)
{
    for (size_t done = 0; done < m->size;) {
        const size_t at = GUARD + (m->is_strided ? done / BLOCK * EXTENT + done % BLOCK / 8 * 24 : done), n = m->is_strided ? 8 : m->size;

        memcpy(out ? bytes + done : m->memory + at, out ? m->memory + at : bytes + done, n);
        done += n;
    }
}

void memory_fill(message_t *m, unsigned from, unsigned to)
{
    uint8_t *bytes = malloc(m->size + 8);

    bytes_of(from, to, m->number, bytes, m->size);
    copy(m, bytes, false);
    free(bytes);
}

static bool is_gap(const message_t *m, size_t i)
{
    if (i < GUARD || i >= GUARD + m->length) {
        return true;
    }
    return m->is_strided && 8 <= (i - GUARD) % EXTENT % 24;
}

void memory_check(const message_t *m, unsigned from, unsigned to, const char *when)
{
    uint8_t *bytes = malloc(2 * m->size + 16), *want = bytes + m->size + 8;

    copy(m, bytes, true);
    bytes_of(from, to, m->number, want, m->size);
    for (size_t i = 0; 0 != memcmp(bytes, want, m->size) && i < m->size; ++i) {
        if (bytes[i] != want[i]) {
            world_broken("message %u of %zu bytes from %u to %u: byte %zu is wrong %s", m->number, m->size, from, to, i, when);
        }
    }
    free(bytes);
    for (size_t i = 0; i < m->length + 2 * GUARD; i = !m->is_strided && GUARD == i + 1 ? GUARD + m->length : i + 1) {
        if (is_gap(m, i) && guard_at(i) != m->memory[i]) {
            world_broken("message %u of %zu bytes from %u to %u: memory beside it, at %zd, was written %s", m->number, m->size, from, to,
                         (ssize_t) i - GUARD, when);
        }
    }
}

message_t *message_make(bool is_send, unsigned peer, unsigned number, kind_t kind, size_t size)
{
    message_t *m = calloc(1, sizeof(*m));
    const unsigned me = world_rank();

    m->is_send = is_send;
    m->peer = peer;
    m->number = number;
    m->kind = kind;
    m->size = size;
    m->is_strided = ANY != kind && is_strided(me, is_send ? me : peer, is_send ? peer : me, number);
    memory_make(m);
    return m;
}

void message_free(message_t *m)
{
    free(m->memory);
    free(m);
}

ompi_datatype_t *type_of(const message_t *m)
{
    return m->is_strided ? with_gaps : &ompi_mpi_byte.dt;
}

size_t count_of(const message_t *m)
{
    return m->is_strided ? m->size / BLOCK : m->size;
}

void message_begin(void)
{
    biggest = world_plan_of("biggest");
    wildcards = world_plan_of("wildcards");
    probes = world_plan_of("probes");
    strided = world_plan_of("strided");
    persistent = world_plan_of("persistent");
    others = world_plan_of("others");
    for (size_t i = 0; i < sizeof(guards); ++i) {
        guards[i] = (uint8_t) (0xa5 ^ i * 37);
    }
    if (OMPI_SUCCESS != ompi_datatype_create_vector(4, 8, 24, &ompi_mpi_byte.dt, &with_gaps) || OMPI_SUCCESS != ompi_datatype_commit(&with_gaps)) {
        world_broken("no datatype with gaps");
    }
}
