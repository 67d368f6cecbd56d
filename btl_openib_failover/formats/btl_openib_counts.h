/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The loss check compares what the sender of a rail knows to be delivered with what the other side received. It needs
 * no clock and no queue pair. See DESIGN.txt 10.4. No Open MPI header.
 */
#ifndef BTL_OPENIB_COUNTS_H
#define BTL_OPENIB_COUNTS_H

#include "formats/btl_openib_wire.h"

#include <stdbool.h>

/* `sent`: what completed with success at the peer, of one generation; `received`: what came in here, after the drain.
 * True if a message that the peer reports as delivered never arrived. Fewer successes than receptions are no loss, because
 * a message may arrive although its completion is an error. */
bool ofo_counts_show_loss(const ofo_counts_t *sent, const ofo_counts_t *received);

/* The result of a generation's check so far. */
typedef enum {
    OFO_CHECK_NONE,    /* no result: our fence was complete, and the peer's counts are not known */
    OFO_CHECK_GOOD,    /* compared, nothing is missing */
    OFO_CHECK_UNKNOWN, /* receptions may have been lost here, and the peer's counts are not known yet */
    OFO_CHECK_LOSS
} ofo_check_t;

/* `known`: the peer's counts are valid; `lossy`: our own fence ended before all work had come back. */
ofo_check_t ofo_counts_check(const ofo_counts_t *sent, bool known, const ofo_counts_t *received, bool lossy);

#endif /* BTL_OPENIB_COUNTS_H */
