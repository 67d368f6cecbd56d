/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Who may post now. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_GATE_H
#define BTL_OPENIB_GATE_H

#include "btl_openib_types.h"

/* Posts are refused because of this generation. Locks: ep->lock held. */
void ofo_gate_refuse(ofo_endpoint_t *ep, uint16_t gen);
/* The rail is not up: may the caller queue? Else *rc says why not. *start: this post starts the connection. Locks: ep->lock held. */
void ofo_gate_ask(ofo_endpoint_t *ep, bool *start, int *rc);

/* True if a post may proceed; else *rc says why not, or the caller queues. Locks: ep->lock held. */
static inline bool ofo_gate_admits(ofo_endpoint_t *ep, bool *start, int *rc)
{
    *start = false;
    *rc = OPAL_SUCCESS;
    if (OPAL_LIKELY(OFO_GATE_UP == ep->gate)) {
        return ofo_drain_is_live(&ep->qps->drain);
    }
    ofo_gate_ask(ep, start, rc);
    return false;
}

#endif /* BTL_OPENIB_GATE_H */
