/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Payloads of test programs. Byte i of a payload is a function of its seed and of i, so a receiver that knows the seed finds the first
 * wrong byte of a message. A room is a receive buffer between two guards. All of a room is blank, guards too, until its message comes:
 * a write outside the message shows. A program gives a room back after its message was verified; the last rooms given back are kept, blank
 * again, and a late write to them shows when they leave, or at the recheck that ends the program. tests/README.md.
 */
#ifndef PAYLOAD_H
#define PAYLOAD_H

#include <endian.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes ---------------------------------------------------------------------------------------------- */

/* Bijective mixing of 32 bits (the finaliser of MurmurHash3). */
static inline uint32_t payload_mix(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

/* The four bytes from 4 * n on. `start` is payload_mix() of the seed and a constant, because seed 0 must not begin with zeros. */
static inline uint32_t payload_word(uint32_t start, size_t n)
{
    return htole32(payload_mix(start + (uint32_t) n));
}
static inline uint32_t payload_start(uint32_t seed)
{
    return payload_mix(seed + 0x9e3779b9u);
}

/* Byte i of the payload that `seed` names. */
static inline uint8_t payload_byte(uint32_t seed, size_t i)
{
    return (uint8_t) (le32toh(payload_word(payload_start(seed), i / 4)) >> i % 4 * 8);
}

/* Writes `length` bytes of the payload, from its byte `first` on. */
static inline void payload_fill_part(void *to, size_t length, uint32_t seed, size_t first)
{
    const uint32_t start = payload_start(seed);
    uint8_t *bytes = to;
    size_t i = 0;

    while (i < length) {
        if (0 != (first + i) % 4 || length - i < 4) {
            bytes[i] = payload_byte(seed, first + i);
            ++i;
            continue;
        }
        for (; 4 <= length - i; i += 4) {
            const uint32_t word = payload_word(start, (first + i) / 4);
            memcpy(bytes + i, &word, 4);
        }
    }
}
static inline void payload_fill(void *to, size_t length, uint32_t seed)
{
    payload_fill_part(to, length, seed, 0);
}

/* Compares `length` bytes with those of the payload from its byte `first` on. Returns the index of the first wrong byte, or `length`. */
static inline size_t payload_first_wrong_part(const void *from, size_t length, uint32_t seed, size_t first)
{
    const uint32_t start = payload_start(seed);
    const uint8_t *bytes = from;
    size_t i = 0;

    while (i < length) {
        for (; 0 == (first + i) % 4 && 4 <= length - i; i += 4) {
            const uint32_t word = payload_word(start, (first + i) / 4);
            if (0 != memcmp(bytes + i, &word, 4)) {
                break;
            }
        }
        if (i < length && bytes[i] != payload_byte(seed, first + i)) {
            return i;
        }
        i += i < length;
    }
    return length;
}
static inline size_t payload_first_wrong(const void *from, size_t length, uint32_t seed)
{
    return payload_first_wrong_part(from, length, seed, 0);
}

/* ---- rooms ---------------------------------------------------------------------------------------------- */

enum { PAYLOAD_GUARD = 64, PAYLOAD_HEAD = 16, PAYLOAD_KEPT = 16 };
#define PAYLOAD_BLANK 0xb1a4c000u /* the seed of a blank room, whose byte 0 is that of the first guard */

static inline size_t payload_room_length(const uint8_t *room)
{
    size_t length;

    memcpy(&length, room - PAYLOAD_GUARD - PAYLOAD_HEAD, sizeof(length));
    return length;
}

/* Makes all of the room blank. */
static inline void payload_blank(uint8_t *room)
{
    payload_fill(room - PAYLOAD_GUARD, payload_room_length(room) + 2 * PAYLOAD_GUARD, PAYLOAD_BLANK);
}

/* A blank room of `length` bytes; NULL without memory. */
static inline uint8_t *payload_room(size_t length)
{
    uint8_t *memory = malloc(PAYLOAD_HEAD + length + 2 * PAYLOAD_GUARD), *room;

    if (NULL == memory) {
        return NULL;
    }
    memcpy(memory, &length, sizeof(length));
    room = memory + PAYLOAD_HEAD + PAYLOAD_GUARD;
    payload_blank(room);
    return room;
}

static inline void payload_room_free(uint8_t *room)
{
    free(room - PAYLOAD_GUARD - PAYLOAD_HEAD);
}

/* The first byte of [from, to) of the room that is not blank any more, or `to`. Negative bytes are those of the guard before the room. */
static inline ptrdiff_t payload_first_written(const uint8_t *room, ptrdiff_t from, ptrdiff_t to)
{
    return from + (ptrdiff_t) payload_first_wrong_part(room + from, (size_t) (to - from), PAYLOAD_BLANK, (size_t) (from + PAYLOAD_GUARD));
}

/* Nothing may be written before the room, or after its first `used` bytes. Returns NULL, or a text that names the first such byte. */
static inline const char *payload_fault(const uint8_t *room, size_t used, const char *when)
{
    static _Thread_local char text[128];
    const size_t length = payload_room_length(room);
    const ptrdiff_t end = (ptrdiff_t) length + PAYLOAD_GUARD;
    ptrdiff_t at = payload_first_written(room, -PAYLOAD_GUARD, 0);

    at = 0 > at ? at : payload_first_written(room, (ptrdiff_t) used, end);
    if (end == at) {
        return NULL;
    }
    snprintf(text, sizeof(text), "byte %td of a buffer of %zu bytes was written %s", at, length, when);
    return text;
}

/* ---- rooms given back ------------------------------------------------------------------------------------- */

/* Keeps this room, or nothing, instead of the room that was kept for longest, and returns the latter. Each source file keeps its own. */
static inline uint8_t *payload_keep(uint8_t *room)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint8_t *kept[PAYLOAD_KEPT];
    static unsigned next;
    uint8_t *oldest;

    pthread_mutex_lock(&lock);
    oldest = kept[next];
    kept[next] = room;
    next = (next + 1) % PAYLOAD_KEPT;
    pthread_mutex_unlock(&lock);
    return oldest;
}

static inline const char *payload_leave(uint8_t *room)
{
    const char *fault = NULL;

    if (NULL != room) {
        fault = payload_fault(room, 0, "after its message was complete");
        payload_room_free(room);
    }
    return fault;
}

/* Takes a room whose first `used` bytes were verified. Until it is freed no write may reach it. Returns NULL or a text, see payload_fault(). */
static inline const char *payload_give_back(uint8_t *room, size_t used)
{
    const char *fault = payload_fault(room, used, "outside its message");

    if (NULL != fault) {
        return fault;
    }
    payload_blank(room);
    return payload_leave(payload_keep(room));
}

/* At the end of the program: looks at all rooms that are kept, and frees them. Returns NULL or a text. */
static inline const char *payload_recheck(void)
{
    const char *fault = NULL;

    for (int i = 0; NULL == fault && i < PAYLOAD_KEPT; ++i) {
        fault = payload_leave(payload_keep(NULL));
    }
    return fault;
}

#endif /* PAYLOAD_H */
