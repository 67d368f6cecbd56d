/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The head of a message (sender, receiver, flow and number) determines every byte. Therefore a receiver can name what happened to a
 * message: flipped, lost, doubled, swapped with another, of a wrong length, or written beyond its end.
 */
#include "rf.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAGIC = 0x72616c66, POISON = 0xa5 };

static uint64_t judged;
/* For the watcher thread: describes a message that another message overtook; the text is complete when the flag is set. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const rf_flow_t *suspect;
static char suspicion[200];

void rf_count(void)
{
    __atomic_fetch_add(&judged, 1, __ATOMIC_RELAXED);
}

uint64_t rf_judged(void)
{
    return __atomic_load_n(&judged, __ATOMIC_RELAXED);
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

static uint64_t seed_of(const rf_head_t *head)
{
    return mix(((uint64_t) head->from << 40) ^ ((uint64_t) head->to << 20) ^ head->flow ^ (head->number << 1) ^ 0x9e3779b97f4a7c15ULL);
}

/* Byte i is byte i % 8 of word i / 8. */
static uint8_t byte_at(uint64_t seed, size_t i)
{
    uint64_t word = mix(seed + i / 8);

    return ((const uint8_t *) &word)[i % 8];
}

size_t rf_size(const rf_flow_t *flow, uint64_t number)
{
    size_t spread = flow->most - flow->least;

    return 0 == spread ? flow->least : flow->least + mix(number + 17) % (spread / 8 + 1) * 8;
}

uint64_t rf_number(uint64_t place)
{
    if (0 != rf_rank) {
        return place;
    }
    switch (rf_wrong) {
    case RF_LOSE:
        return place >= rf_wrong_at ? place + 1 : place;
    case RF_DOUBLE:
        return place > rf_wrong_at ? place - 1 : place;
    case RF_SWAP:
        return place == rf_wrong_at ? place + 1 : place == rf_wrong_at + 1 ? place - 1 : place;
    default:
        return place;
    }
}

size_t rf_fill(const rf_flow_t *flow, uint64_t number, void *buffer)
{
    rf_head_t head = {MAGIC, flow->from, flow->to, flow->flow, number, rf_size(flow, number)};
    uint64_t seed = seed_of(&head);
    uint8_t *bytes = buffer;

    memcpy(buffer, &head, sizeof head);
    for (size_t i = sizeof head; i < head.bytes; i += 8) {
        uint64_t word = mix(seed + i / 8);
        memcpy(bytes + i, &word, head.bytes - i < 8 ? head.bytes - i : 8);
    }
    if (rf_is_due(RF_FLIP, number)) {
        bytes[head.bytes - 1] ^= 0x10;
    }
    return head.bytes;
}

void rf_clear(void *buffer, size_t most)
{
    memset(buffer, POISON, most + RF_GUARD);
}

/* Returns the first wrong byte after the head; SIZE_MAX if there is none. */
static size_t first_wrong(uint64_t seed, const uint8_t *data, size_t bytes)
{
    for (size_t i = sizeof(rf_head_t); i < bytes; i += 8) {
        uint64_t word = mix(seed + i / 8);
        size_t n = bytes - i < 8 ? bytes - i : 8;

        for (size_t k = 0; 0 != memcmp(data + i, &word, n) && k < n; ++k) {
            if (data[i + k] != byte_at(seed, i + k)) {
                return i + k;
            }
        }
    }
    return SIZE_MAX;
}

/* Checks every byte of a message, and returns its head. A wrong byte ends the process. */
static rf_head_t read_head(const rf_flow_t *flow, uint64_t due, const void *buffer, size_t bytes)
{
    const uint8_t *data = buffer;
    rf_head_t head;
    uint64_t seed;
    size_t i;

    rf_count();
    if (bytes < sizeof head) {
        rf_say_wrong("wrong length: message %" PRIu64 " from rank %" PRIu32 " has %zu bytes", due, flow->from, bytes);
    }
    memcpy(&head, buffer, sizeof head);
    if (MAGIC != head.magic) {
        rf_say_wrong("flipped: the head of message %" PRIu64 " from rank %" PRIu32, due, flow->from);
    }
    seed = seed_of(&head);
    i = first_wrong(seed, data, bytes < head.bytes ? bytes : head.bytes);
    if (i < bytes) {
        rf_say_wrong("flipped: byte %zu of %zu of message %" PRIu64 " from rank %" PRIu32 " is 0x%02x, not 0x%02x", i, bytes, due, flow->from,
                     data[i], byte_at(seed, i));
    }
    if (head.bytes != bytes) {
        rf_say_wrong("wrong length: message %" PRIu64 " from rank %" PRIu32 " has %zu bytes, not %" PRIu64, head.number, flow->from, bytes,
                     head.bytes);
    }
    if (head.from != flow->from || head.to != flow->to || head.flow != flow->flow) {
        rf_say_wrong("swapped: in the place of message %" PRIu64 " from rank %" PRIu32 " to %" PRIu32 " is one from rank %" PRIu32 " to %" PRIu32,
                     due, flow->from, flow->to, head.from, head.to);
    }
    return head;
}

static void check_guard(const rf_flow_t *flow, uint64_t number, const uint8_t *beyond)
{
    for (int i = 0; i < RF_GUARD; ++i) {
        if (POISON != beyond[i]) {
            rf_say_wrong("beyond its end: message %" PRIu64 " from rank %" PRIu32 " changed the bytes after it", number, flow->from);
        }
    }
}

void rf_judge(rf_flow_t *flow, uint64_t place, const void *buffer, size_t bytes)
{
    rf_head_t head = read_head(flow, place, buffer, bytes);
    uint64_t i = head.number - flow->next;

    check_guard(flow, head.number, (const uint8_t *) buffer + bytes);
    if (head.number < flow->next || (i < 64 && (flow->seen >> i & 1))) {
        rf_say_wrong("doubled: message %" PRIu64 " from rank %" PRIu32 " came twice", head.number, flow->from);
    }
    if (head.number < place) {
        rf_say_wrong("swapped: message %" PRIu64 " from rank %" PRIu32 " came after a later one", head.number, flow->from);
    }
    flow->seen |= i < 64 ? UINT64_C(1) << i : 0;
    if (head.number > place && RF_NONE == flow->missing) {
        flow->missing = place;
        pthread_mutex_lock(&lock);
        suspect = flow;
        snprintf(suspicion, sizeof suspicion, "lost: message %" PRIu64 " from rank %" PRIu32 "; message %" PRIu64 " came", place, flow->from,
                 head.number);
        pthread_mutex_unlock(&lock);
    }
}

void rf_judge_end(rf_flow_t *flow)
{
    if (RF_NONE != flow->missing) {
        rf_say_wrong("lost: message %" PRIu64 " from rank %" PRIu32 "; later ones came", flow->missing, flow->from);
    }
    flow->next += RF_WINDOW;
    flow->seen = 0;
}

void rf_judge_slot(const rf_flow_t *flow, uint64_t number, const void *buffer, size_t bytes)
{
    rf_head_t head = read_head(flow, number, buffer, bytes);

    if (head.number < flow->next) {
        rf_say_wrong("lost: message %" PRIu64 " from rank %" PRIu32 "; in its place is still message %" PRIu64, number, flow->from, head.number);
    }
    if (head.number != number) {
        rf_say_wrong("swapped: in the place of message %" PRIu64 " from rank %" PRIu32 " is message %" PRIu64, number, flow->from, head.number);
    }
}

/* A receiver that waits for a lost message cannot report it. This thread does, when a later message has been here for long. It calls no
 * function of MPI. */
static void *watch(void *unused)
{
    const struct timespec patience = {(time_t) rf_patience, (long) ((rf_patience - (double) (time_t) rf_patience) * 1e9)};
    const rf_flow_t *before = NULL;

    (void) unused;
    for (;;) {
        nanosleep(&patience, NULL);
        pthread_mutex_lock(&lock);
        if (NULL != suspect && suspect == before) {
            rf_say_wrong("%s", suspicion);
        }
        before = suspect;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

void rf_watch(void)
{
    pthread_t thread;

    if (0 != pthread_create(&thread, NULL, watch, NULL)) {
        rf_skip("no thread can be made");
    }
}
