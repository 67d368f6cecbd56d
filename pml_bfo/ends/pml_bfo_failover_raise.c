/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * From a symptom to a row: raises an event of the machine of a request. What the rows do is in pml_bfo_failover_actions.c, which hands its
 * tables over at start. With failover compiled out, pml_bfo_failover_out.c has these functions. DESIGN.txt section 7.
 */
#include "types/pml_bfo.h"

#include "ends/pml_bfo_failover_raise.h"

#if PML_BFO
static bfo_send_ops_t send_ops;
static bfo_recv_ops_t recv_ops;

void bfo_failover_raise_init(const bfo_send_ops_t *of_sends, const bfo_recv_ops_t *of_receives)
{
    send_ops = *of_sends;
    recv_ops = *of_receives;
}

void bfo_failover_send_raise(bfo_send_t *req, unsigned event, void *arg)
{
    (void) bfo_send_step(&req->m, event, &send_ops, req, arg);
}

void bfo_failover_recv_raise(bfo_recv_t *req, unsigned event, void *arg)
{
    (void) bfo_recv_step(&req->m, event, &recv_ops, req, arg);
}

void bfo_failover_send_settle(bfo_send_t *req)
{
    bfo_send_settle(&req->m, &send_ops, req);
}

void bfo_failover_recv_settle(bfo_recv_t *req)
{
    bfo_recv_settle(&req->m, &recv_ops, req);
}
#endif
