/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Whether a rail takes posts now. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_GATE_H
#define BTL_OPENIB_GATE_H

#include "types/btl_openib_types.h"

/* Only these functions write ep->gate (tests/docs/tables_are_the_code.pl). A new rail's gate is CLOSED.
 * Lets posts pass from now on. Locks: ep->lock held, and gate_lock if service calls. */
void ofo_gate_open(ofo_endpoint_t *ep);
/* Makes the gate refuse posts because of this generation. Locks: ep->lock held. */
void ofo_gate_refuse(ofo_endpoint_t *ep, uint16_t gen);
/* Makes the gate refuse posts because a port of the rail is down, ours or the peer's, until the port is back. Locks: ep->lock held, or no
 * other thread knows the rail yet. */
void ofo_gate_refuse_for_port(ofo_endpoint_t *ep);
void ofo_gate_port_is_back(ofo_endpoint_t *ep);
/* The rail is not up. The caller may queue its message if *rc stays OPAL_SUCCESS; otherwise *rc says why not. *start says whether this
 * post starts the connection. Locks: ep->lock held. */
void ofo_gate_ask(ofo_endpoint_t *ep, bool *start, int *rc);

/* True if the caller may post now. Otherwise *rc is an error, or the caller may queue its message. Locks: ep->lock held. */
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
