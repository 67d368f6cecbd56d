/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What a request does about a failure: pml_bfo_failover_actions.c; pml_bfo_failover_out.c when failover is compiled out.
 * DESIGN.txt sections 7 and 14.6.
 */
#ifndef PML_BFO_FAILOVER_ACTIONS_H
#define PML_BFO_FAILOVER_ACTIONS_H

#include "pml_bfo.h"

/* Called once, at start. */
void bfo_failover_init(void);

/* Tests the guards of a request in an ERR-class state. */
void bfo_failover_send_settle(bfo_send_t *req) BFO_COLD;
void bfo_failover_recv_settle(bfo_recv_t *req) BFO_COLD;
/* Raises an event of the request's machine; the request may be complete and reused when this returns. */
void bfo_failover_send_raise(bfo_send_t *req, unsigned event, void *arg) BFO_COLD;
void bfo_failover_recv_raise(bfo_recv_t *req, unsigned event, void *arg) BFO_COLD;
void bfo_dance_pack(bfo_dance_hdr_t *h, uint8_t type, uint16_t epoch, bool failed, bfo_id_t src_id, bfo_id_t dst_id);
/* Sends a message of the restart handshake; false: no rail is left. The callback, if any, takes over an event of the request. */
bool bfo_dance_send(bfo_peer_t *peer, const bfo_dance_hdr_t *h, mca_btl_base_completion_fn_t done, void *req);
void bfo_failover_put_on_dead_rail(bfo_send_t *req, bfo_id_t dst_id) BFO_COLD;
void bfo_failover_rget_on_dead_rail(bfo_recv_t *req) BFO_COLD;

/* Error completions; each takes over the event of the descriptor and releases it. Compiled out, they declare the peer. */

/* MATCH, RNDV or RGET of a request. */
void bfo_failover_rts_failed(bfo_send_t *req, uint8_t rail, int status) BFO_COLD;
/* FRAG or WRITE. */
void bfo_failover_data_failed(bfo_send_t *req, uint8_t rail, int status) BFO_COLD;
/* ACK, PUT or READ. */
void bfo_failover_answer_failed(bfo_recv_t *req, uint8_t rail, int status) BFO_COLD;

#endif /* PML_BFO_FAILOVER_ACTIONS_H */
