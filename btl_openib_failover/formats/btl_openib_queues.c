/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Reads, compares and publishes receive queue specifications. See DESIGN.txt 15.4, "Receive queues".
 */
#include "formats/btl_openib_queues.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_MIN = 256, SIZE_MAX_BYTES = 16 << 20, COUNT_MIN = 4, COUNT_MAX = 16384, FIELDS_MAX = 6, SENDS_MIN = 4, START_MIN = 4 };

/* Reads ",number" up to FIELDS_MAX times; returns how many, or -1. */
static int read_numbers(const char *text, size_t length, unsigned long *number)
{
    const char *end = text + length;
    int count = 0;

    while (text < end) {
        char *next;
        if (',' != *text || FIELDS_MAX == count || '0' > text[1] || '9' < text[1]) {
            return -1;
        }
        number[count++] = strtoul(text + 1, &next, 10);
        text = next;
    }
    return text == end ? count : -1;
}

static uint32_t or_default(int given, unsigned long number, uint32_t most, uint32_t otherwise)
{
    return given && 0 < number && number <= most ? (uint32_t) number : otherwise;
}

/* Fields that were left out, or do not fit the others, get the defaults of the stock BTL. */
static void complete_queue(ofo_queue_t *queue, int count, const unsigned long *number)
{
    if ('P' == queue->type) {
        queue->window = or_default(3 < count, number[3], COUNT_MAX, queue->count / 4);
        queue->window = 0 == queue->window ? 1 : queue->window;
        return;
    }
    queue->low = or_default(2 < count, number[2], queue->count, queue->count / 2);
    queue->window = or_default(3 < count, number[3], COUNT_MAX, queue->low / 4 < SENDS_MIN ? SENDS_MIN : queue->low / 4);
    queue->window = queue->window < SENDS_MIN ? SENDS_MIN : queue->window;
    queue->start = or_default(4 < count, number[4], queue->count, queue->count / 4 < START_MIN ? START_MIN : queue->count / 4);
    queue->limit = or_default(5 < count, number[5], queue->start, 1 + queue->start * 3 / 16);
}

static const char *read_queue(const char *text, size_t length, ofo_queue_t *queue)
{
    unsigned long number[FIELDS_MAX] = {0};
    int count;

    if (0 == length || ('P' != *text && 'S' != *text)) {
        return 0 < length && 'X' == *text ? "XRC queues (X) are not supported" : "a queue must begin with P or S";
    }
    count = read_numbers(text + 1, length - 1, number);
    if (2 > count) {
        return "a queue needs at least a buffer size and a number of buffers";
    }
    if ('P' == *text && FIELDS_MAX == count) {
        return "a queue per peer (P) has at most five numbers";
    }
    if (SIZE_MIN > number[0] || SIZE_MAX_BYTES < number[0]) {
        return "a buffer must have 256 bytes to 16 MiB";
    }
    if (COUNT_MIN > number[1] || COUNT_MAX < number[1]) {
        return "a queue must have 4 to 16384 buffers";
    }
    queue->type = *text;
    queue->size = (uint32_t) number[0];
    queue->count = (uint32_t) number[1];
    complete_queue(queue, count, number);
    return NULL;
}

const char *ofo_queues_parse(const char *text, ofo_queues_t *queues)
{
    memset(queues, 0, sizeof(*queues));
    for (;;) {
        size_t length = strcspn(text, ":");
        const char *wrong;
        if (OFO_MAX_QPS == queues->count) {
            return "at most 8 queues";
        }
        wrong = read_queue(text, length, &queues->queue[queues->count]);
        if (NULL != wrong) {
            return wrong;
        }
        if (0 < queues->count && queues->queue[queues->count].size <= queues->queue[queues->count - 1].size) {
            return "buffer sizes must rise from queue to queue";
        }
        ++queues->count;
        if ('\0' == text[length]) {
            return NULL;
        }
        text += length + 1;
    }
}

void ofo_queues_unshare(const ofo_queues_t *queues, ofo_queues_t *plain)
{
    *plain = *queues;
    for (unsigned i = 0; i < plain->count; ++i) {
        ofo_queue_t *queue = &plain->queue[i];
        if ('S' == queue->type) {
            *queue = (ofo_queue_t){.type = 'P', .size = queue->size, .count = queue->window, .window = queue->window / 4};
        }
    }
}

/* The published form of a queue. A shared queue that the device does not have is an 's'. */
static ofo_queue_shape_t shape_of(const ofo_queue_t *queue, bool shares)
{
    bool shared = 'S' == queue->type;

    return (ofo_queue_shape_t){
        .type = shared && !shares ? 's' : queue->type, .sends = shared ? (uint16_t) queue->window : 0, .size = queue->size, .count = queue->count};
}

void ofo_queues_publish(const ofo_queues_t *queues, bool shares, ofo_record_t *record)
{
    record->nqp = (uint8_t) queues->count;
    for (unsigned i = 0; i < queues->count; ++i) {
        record->queue[i] = shape_of(&queues->queue[i], shares);
    }
}

bool ofo_queues_match(const ofo_queues_t *own, const ofo_record_t *peer)
{
    if (own->count != peer->nqp) {
        return false;
    }
    for (unsigned i = 0; i < own->count; ++i) {
        const ofo_queue_shape_t *theirs = &peer->queue[i], ours = shape_of(&own->queue[i], 's' != theirs->type);
        if (ours.type != theirs->type || ours.sends != theirs->sends || ours.size != theirs->size || ours.count != theirs->count) {
            return false;
        }
    }
    return true;
}

bool ofo_queues_are_shared(const ofo_record_t *peer)
{
    for (unsigned i = 0; i < peer->nqp; ++i) {
        if ('s' == peer->queue[i].type) {
            return false;
        }
    }
    return true;
}
