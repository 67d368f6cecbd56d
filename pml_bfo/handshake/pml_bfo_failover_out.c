/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Replaces pml_bfo_failover_actions.c and _handshake.c when failover is compiled out: nothing is sent again. When a fragment
 * fails its peer is declared, and the peer's requests end with an error once nothing refers to them. DESIGN.txt section 14.6.
 */
#include "types/pml_bfo.h"

#include "failover/pml_bfo_failover.h"
#include "handshake/pml_bfo_failover_actions.h"
#include "failover/pml_bfo_failover_errors.h"
#include "tables/pml_bfo_failover_fire.h"
#include "failover/pml_bfo_failover_peer.h"
#include "ends/pml_bfo_failover_raise.h"
#include "rails/pml_bfo_rails.h"
#include "ends/pml_bfo_recv_complete.h"
#include "recv/pml_bfo_recv_rdma.h"
#include "ends/pml_bfo_send_complete.h"

#if !PML_BFO
void bfo_failover_actions_init(void) {}

/* S19, R18: nobody but a completion that came late raises an event. */
void bfo_failover_send_raise(bfo_send_t *req, unsigned event, void *arg)
{
    BFO_ASSERT(BFO_SEND_DEAD == bfo_se_state(bfo_se_load(&req->m)));
    bfo_send_put(req);
}

void bfo_failover_recv_raise(bfo_recv_t *req, unsigned event, void *arg)
{
    BFO_ASSERT(BFO_RECV_DEAD == bfo_se_state(bfo_se_load(&req->m)));
    bfo_recv_put(req);
}

/* S19 */
void bfo_failover_send_settle(bfo_send_t *req)
{
    const bfo_look_t look = bfo_look_at(&req->m);

    if (0 == bfo_events_load(&req->m)) {
        (void) bfo_send_fire_at(&req->m, look, BFO_SEV_DEAD_DRAINED, bfo_threads, req, NULL);
    }
}

/* R18 */
void bfo_failover_recv_settle(bfo_recv_t *req)
{
    const bfo_look_t look = bfo_look_at(&req->m);

    if (BFO_RECV_DEAD == bfo_se_state(look.se) && 0 == bfo_events_load(&req->m)
        && bfo_se_claim(&req->m, look, BFO_SE(BFO_RECV_DONE, 0), bfo_threads)) {
        bfo_recv_forget_puts(req);
        bfo_recv_complete(req, MPI_SUCCESS != req->error ? req->error : bfo_lost_error());
    }
}

void bfo_failover_rts_failed(bfo_send_t *req, uint8_t rail, int status)
{
    bfo_failover_data_failed(req, rail, status);
}

void bfo_failover_data_failed(bfo_send_t *req, uint8_t rail, int status)
{
    bfo_failover_ctl_failed(req->lane->peer, rail, NULL, 0, status);
    bfo_send_fail(req, bfo_lost_error()); /* its peer may have been declared before the request began */
    bfo_send_put(req);
}

void bfo_failover_answer_failed(bfo_recv_t *req, uint8_t rail, int status)
{
    bfo_failover_ctl_failed(req->lane->peer, rail, NULL, 0, status);
    bfo_recv_fail(req, bfo_lost_error());
    bfo_recv_put(req);
}

void bfo_failover_ctl_failed(bfo_peer_t *peer, uint8_t rail, const void *header, size_t length, int status)
{
    bfo_failover_rail_failed(peer, rail, bfo_rail_gen(peer, rail), "a message came back with an error");
    bfo_failover_declare(peer, "a message was lost, and this PML was built without failover");
}
#endif
