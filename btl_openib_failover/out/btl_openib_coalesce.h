/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Small messages that travel together. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_COALESCE_H
#define BTL_OPENIB_COALESCE_H

#include "types/btl_openib_types.h"

enum { OFO_JOINED_MAX = 64 }; /* a bit for each in ofo_frag_t.copied */

/* Packs the messages that wait at the head of the pending list of queue pair `from` into one carrier for queue pair `index`, if two or more
 * fit. The carrier takes their place in the list. If the queue pairs differ, only messages of sendi that their sender has not put in order
 * are packed, and only if a carrier of `from` would hold fewer of them. False: there is no carrier. Context: progress; locks: ep->lock held. */
bool ofo_coalesce(ofo_endpoint_t *ep, unsigned index, unsigned from);

/* Room for one more message of sendi, of `length` bytes, in the last message of sendi that waits for the first queue pair. The caller copies
 * the bytes there. NULL: there is no room. Locks: ep->lock held. */
void *ofo_coalesce_join(ofo_endpoint_t *ep, size_t length, uint8_t tag, uint8_t order, uint32_t flags);

/* One message inside a carrier: where its payload begins, how long it is, and its tag. */
typedef struct {
    uint8_t tag;
    size_t at, length;
} ofo_part_t;

/* Reads the part at `*at`, which is at most `length`, and moves `*at` to the next part; after the last part it is `length` or more. False
 * if the bytes there are no valid part. */
bool ofo_parts_next(const uint8_t *bytes, size_t length, size_t *at, ofo_part_t *part);

#endif /* BTL_OPENIB_COALESCE_H */
