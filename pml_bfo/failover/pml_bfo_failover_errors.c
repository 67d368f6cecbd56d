/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Error completions of requests become events of their machines. DESIGN.txt sections 7 and 14.6.
 */
#include "types/pml_bfo.h"

#include "failover/pml_bfo_failover.h"
#include "failover/pml_bfo_failover_errors.h"
#include "failover/pml_bfo_failover_peer.h"
#include "rails/pml_bfo_failover_poison.h"
#include "ends/pml_bfo_failover_raise.h"
#include "rails/pml_bfo_rails.h"

#if PML_BFO
void bfo_failover_rts_failed(bfo_send_t *req, uint8_t rail, int status)
{
    bfo_peer_t *peer = req->lane->peer;

    bfo_failover_rail_failed(peer, rail, bfo_rail_gen(peer, rail), "a first fragment came back with an error");
    if (bfo_failover_send_is_poison(req, rail, status)) {
        bfo_failover_send_raise(req, BFO_SEV_CONTROL_POISON, NULL);
    } else if (BFO_MSG_MATCH == req->rts_type) {
        bfo_failover_send_raise(req, BFO_SEV_MATCH_ERR, NULL);
    } else {
        bfo_failover_send_raise(req, req->resp ? BFO_SEV_RTS_ERR_ANSWERED : BFO_SEV_RTS_ERR_UNANSWERED, NULL);
    }
}

/* A part of a transfer came back with an error: its rail is lost. A BTL that cannot say what arrived costs the peer. */
static void transfer_is_torn(bfo_peer_t *peer, uint8_t rail, const char *cause)
{
    bfo_failover_rail_failed(peer, rail, bfo_rail_gen(peer, rail), cause);
    if (!peer->failover) {
        bfo_failover_declare(peer, "a message was torn, and this BTL cannot say what arrived of it");
    }
}

void bfo_failover_data_failed(bfo_send_t *req, uint8_t rail, int status)
{
    transfer_is_torn(req->lane->peer, rail, "a data fragment came back with an error");
    bfo_failover_send_raise(req, bfo_failover_send_is_poison(req, rail, status) ? BFO_SEV_DATA_POISON : BFO_SEV_DATA_ERR, NULL);
}

void bfo_failover_answer_failed(bfo_recv_t *req, uint8_t rail, int status)
{
    transfer_is_torn(req->lane->peer, rail, "an answer came back with an error");
    bfo_failover_recv_raise(req, bfo_failover_recv_is_poison(req, rail, status) ? BFO_REV_RESPONSE_POISON : BFO_REV_RESPONSE_ERR, NULL);
}

void bfo_failover_put_on_dead_rail(bfo_send_t *req, bfo_id_t dst_id)
{
    bfo_failover_send_raise(req, BFO_SEV_PUT_RAIL_DOWN, &dst_id);
}

void bfo_failover_rget_on_dead_rail(bfo_recv_t *req)
{
    bfo_failover_recv_raise(req, BFO_REV_RAIL_DOWN, NULL);
}
#endif
