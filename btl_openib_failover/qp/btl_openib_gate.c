/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The gate of a rail: posts pass, wait for the connection, or are refused. See DESIGN.txt 15.4.
 */
#include "qp/btl_openib_gate.h"

#include "types/btl_openib_atomic.h"

#include "bfo_assert.h"

void ofo_gate_open(ofo_endpoint_t *ep)
{
    OFO_STORE(ep->gate, OFO_GATE_UP);
}

void ofo_gate_refuse(ofo_endpoint_t *ep, uint16_t gen)
{
    BFO_ASSERT((int32_t) gen >= ep->refused_gen); /* generations only grow */
    OFO_STORE(ep->gate, OFO_GATE_REFUSING);
    ep->refused_gen = gen;
}

void ofo_gate_refuse_for_port(ofo_endpoint_t *ep)
{
    OFO_STORE(ep->gate, OFO_GATE_REFUSING);
    ep->dead_port = true;
}

void ofo_gate_port_is_back(ofo_endpoint_t *ep)
{
    if (ep->dead_port) {
        ep->dead_port = false;
        OFO_STORE(ep->gate, NULL == ep->qps ? OFO_GATE_CLOSED : ep->gate); /* service may have opened the gate before this */
    }
}

void ofo_gate_ask(ofo_endpoint_t *ep, bool *start, int *rc)
{
    if (OFO_GATE_CLOSED == ep->gate && OFO_LOAD(ep->peer->declared)) {
        OFO_STORE(ep->gate, OFO_GATE_REFUSING);
    }
    if (OFO_GATE_REFUSING == ep->gate) {
        *rc = OPAL_ERR_UNREACH;
    } else if (OFO_GATE_CLOSED == ep->gate) {
        OFO_STORE(ep->gate, OFO_GATE_WAITING);
        *start = true;
    }
}
