/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the status of a bad completion means: the rail's fault, or the work request's own. See DESIGN.txt 4 (B10).
 * No Open MPI header.
 */
#ifndef BTL_OPENIB_STATUS_H
#define BTL_OPENIB_STATUS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

typedef enum {
    OFO_WC_GOOD,
    OFO_WC_RAIL,  /* lost or delivered; another rail may carry it */
    OFO_WC_POISON /* no rail would carry it, unless the adapter is broken: the PML asks another rail */
} ofo_wc_class_t;

/* `is_first`: no work request of this send queue came back with an error before; what follows the first one is a
 * consequence. `is_fenced`: the queue pair was put into the error state here; what the remote side says then is one too.
 * `is_sound`: neither port nor queue pair is known to be broken. */
ofo_wc_class_t ofo_status_class(enum ibv_wc_status status, bool is_first, bool is_fenced, bool is_sound);

#endif /* BTL_OPENIB_STATUS_H */
