/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The loss check: what one side of a rail knows was delivered, against what the other one has seen. Neither
 * clock nor queue pair. See DESIGN.txt 10.4. No Open MPI header.
 */
#ifndef BTL_OPENIB_COUNTS_H
#define BTL_OPENIB_COUNTS_H

#include "btl_openib_wire.h"

#include <stdbool.h>

/* `sent`: completed with success at the peer, of one generation; `received`: what came in here, after the drain.
 * True if something that the peer reports as delivered never arrived. Fewer successes than receptions are no loss: a
 * completion may have been an error although the message arrived. */
bool ofo_counts_show_loss(const ofo_counts_t *sent, const ofo_counts_t *received);

/* Where the verdict on a generation stands. */
typedef enum {
    OFO_CHECK_NONE,    /* nothing to say: the fence was whole and the peer knows no counts */
    OFO_CHECK_GOOD,    /* compared, nothing is missing */
    OFO_CHECK_UNKNOWN, /* receptions may have been lost here, and the peer's counts are not known yet */
    OFO_CHECK_LOSS
} ofo_check_t;

/* `known`: the peer's counts are valid; `lossy`: the own fence ended before everything had come back. */
ofo_check_t ofo_counts_check(const ofo_counts_t *sent, bool known, const ofo_counts_t *received, bool lossy);

#endif /* BTL_OPENIB_COUNTS_H */
