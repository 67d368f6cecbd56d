/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Small messages that travel together. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_COALESCE_H
#define BTL_OPENIB_COALESCE_H

#include "btl_openib_types.h"

/* Replaces what waits at the head of a list by a carrier, if two or more fit. Locks: ep->lock held. */
void ofo_coalesce(ofo_endpoint_t *ep, unsigned index);

/* A part of a message that carries several: where its payload begins, how long it is and for whom. */
typedef struct {
    uint8_t tag;
    size_t at, length;
} ofo_part_t;

/* The part at `*at` (below `length`), which moves to the next part, and to the end or beyond after the last. False: what is there is no part. */
bool ofo_parts_next(const uint8_t *bytes, size_t length, size_t *at, ofo_part_t *part);

#endif /* BTL_OPENIB_COALESCE_H */
