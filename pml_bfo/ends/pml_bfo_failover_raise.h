/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Events of the machines of requests. DESIGN.txt section 7.
 */
#ifndef PML_BFO_FAILOVER_RAISE_H
#define PML_BFO_FAILOVER_RAISE_H

#include "types/pml_bfo.h"
#include "tables/pml_bfo_failover_fsm.h"

/* Tests the guards of a request in an ERR-class state. */
void bfo_failover_send_settle(bfo_send_t *req) BFO_COLD;
void bfo_failover_recv_settle(bfo_recv_t *req) BFO_COLD;
/* Raises an event of the request's machine; the request may be complete and reused when this returns. */
void bfo_failover_send_raise(bfo_send_t *req, unsigned event, void *arg) BFO_COLD;
void bfo_failover_recv_raise(bfo_recv_t *req, unsigned event, void *arg) BFO_COLD;
#if PML_BFO
/* The actions and facts of both machines; called once, at start. */
void bfo_failover_raise_init(const bfo_send_ops_t *of_sends, const bfo_recv_ops_t *of_receives);
#endif

#endif /* PML_BFO_FAILOVER_RAISE_H */
