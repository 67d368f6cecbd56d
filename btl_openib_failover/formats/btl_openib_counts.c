/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The loss check. For each queue pair and kind "completed with success" and "received" are both prefixes of the messages
 * posted, so their difference shows a loss. In the sum differences could cancel out, but it does not wrap. See DESIGN.txt
 * 10.4.
 */
#include "formats/btl_openib_counts.h"

/* Is `sent` ahead? Both are modulo 2^16 and less than 2^15 apart. */
static bool is_ahead(uint16_t sent, uint16_t received)
{
    return 0 < (int16_t) (uint16_t) (sent - received);
}

bool ofo_counts_show_loss(const ofo_counts_t *sent, const ofo_counts_t *received)
{
    bool loss = sent->n_ok > received->n_ok || is_ahead(sent->n_eager, received->n_eager);

    for (unsigned i = 0; i < OFO_MAX_QPS; ++i) {
        loss = loss || is_ahead(sent->n_send[i], received->n_send[i]);
    }
    return loss;
}

ofo_check_t ofo_counts_check(const ofo_counts_t *sent, bool known, const ofo_counts_t *received, bool lossy)
{
    if (known) {
        return ofo_counts_show_loss(sent, received) ? OFO_CHECK_LOSS : OFO_CHECK_GOOD;
    }
    return lossy ? OFO_CHECK_UNKNOWN : OFO_CHECK_NONE;
}
