/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What a request does about a failure: pml_bfo_failover_actions.c; pml_bfo_failover_out.c when failover is compiled out.
 * DESIGN.txt sections 7 and 14.6.
 */
#ifndef PML_BFO_FAILOVER_ACTIONS_H
#define PML_BFO_FAILOVER_ACTIONS_H

#include "types/pml_bfo.h"

/* A NOTIFY: what the actions of its rows get. */
typedef struct {
    bfo_peer_t *from; /* or NULL */
    const bfo_handshake_hdr_t *h;
} bfo_notify_t;

/* Called once, at start. */
void bfo_failover_actions_init(void);

void bfo_handshake_pack(bfo_handshake_hdr_t *h, uint8_t type, uint16_t epoch, bool failed, bfo_id_t src_id, bfo_id_t dst_id);
/* Sends a message of the restart handshake; false: no rail is left. The callback, if any, takes over an event of the request. */
bool bfo_handshake_send(bfo_peer_t *peer, const bfo_handshake_hdr_t *h, mca_btl_base_completion_fn_t done, void *req);
#endif /* PML_BFO_FAILOVER_ACTIONS_H */
