/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Whether the status of a bad completion is a fault of the rail or of the work request. See DESIGN.txt 4 (B10).
 * No Open MPI header.
 */
#ifndef BTL_OPENIB_STATUS_H
#define BTL_OPENIB_STATUS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

typedef enum {
    OFO_WC_GOOD,
    OFO_WC_RAIL,  /* lost or delivered; another rail may carry it */
    OFO_WC_POISON /* no rail would carry it, unless this adapter is broken: the PML tries another rail */
} ofo_wc_class_t;

/* `is_first`: this is the first error of the send queue; the errors after it are consequences. `is_fenced`: we put the queue
 * pair into the error state; errors that the remote side reports then are consequences too. `is_sound`: neither the port nor
 * the queue pair is known to be broken. */
ofo_wc_class_t ofo_status_class(enum ibv_wc_status status, bool is_first, bool is_fenced, bool is_sound);

#endif /* BTL_OPENIB_STATUS_H */
