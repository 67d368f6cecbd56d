/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The receive queues of a rail, as the user writes them in btl_openib_receive_queues. No Open MPI header. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_QUEUES_H
#define BTL_OPENIB_QUEUES_H

#include "formats/btl_openib_wire.h"

#include <stdbool.h>

typedef struct {
    char type;       /* 'P' or 'S' */
    uint32_t size;   /* bytes of one buffer, our header included */
    uint32_t count;  /* buffers */
    uint32_t low;    /* S: buffers are posted again when fewer than so many are posted */
    uint32_t window; /* P: credits owed before a message is sent for them alone; S: sends in flight to one peer */
    uint32_t start;  /* S: buffers posted at first; doubled at each limit event up to count */
    uint32_t limit;  /* S: buffers left when the limit event comes */
} ofo_queue_t;

typedef struct {
    unsigned count;
    ofo_queue_t queue[OFO_MAX_QPS]; /* ascending size */
} ofo_queues_t;

/* Reads "P,size,count[,low[,window[,reserve]]]:S,size,count[,low[,sends[,start[,limit]]]]:...". `reserve`, and `low` of
 * a P, are read and not used, because one credit is always kept. Returns NULL, or a constant string that says what is wrong with the text. */
const char *ofo_queues_parse(const char *text, ofo_queues_t *queues);

/* Makes the same list without shared queues, for devices that have none. In the place of a shared queue each peer gets as many buffers
 * of its own as it may have messages in flight. Sizes and numbers in flight stay. */
void ofo_queues_unshare(const ofo_queues_t *queues, ofo_queues_t *plain);

/* Writes the user's queues into the record, and whether this process has the shared ones. */
void ofo_queues_publish(const ofo_queues_t *queues, bool shares, ofo_record_t *record);

/* Has the peer's user asked for the same queues? This must be so, because the sender chooses the buffer. */
bool ofo_queues_match(const ofo_queues_t *own, const ofo_record_t *peer);

/* Has the peer shared queues? If one side has none, both use the queues of ofo_queues_unshare(). */
bool ofo_queues_are_shared(const ofo_record_t *peer);

#endif /* BTL_OPENIB_QUEUES_H */
