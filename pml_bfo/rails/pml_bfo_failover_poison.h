/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Poison: a message that fails on every rail. DESIGN.txt section 7.5.
 */
#ifndef PML_BFO_FAILOVER_POISON_H
#define PML_BFO_FAILOVER_POISON_H

#include "types/pml_bfo.h"

#if PML_BFO
/* Kinds of suspects: a message that this process sends or receives, a FIN, a FOREIGN, or the refusal of a rendezvous. */
typedef enum { BFO_SUSPECT_SENT, BFO_SUSPECT_RECEIVED, BFO_SUSPECT_FIN, BFO_SUSPECT_FOREIGN, BFO_SUSPECT_REFUSAL } bfo_suspect_t;
/* Something of the request came back with `status`: will no rail carry it? False the first time, which is remembered. */
bool bfo_failover_send_is_poison(const bfo_send_t *req, uint8_t rail, int status) BFO_COLD;
bool bfo_failover_recv_is_poison(const bfo_recv_t *req, uint8_t rail, int status) BFO_COLD;
/* As the two above, for a message without a request. */
bool bfo_failover_ctl_is_poison(const bfo_peer_t *peer, uint8_t rail, const bfo_hdr_t *h, int status) BFO_COLD;
/* Forgets the suspects of a peer that goes. */
void bfo_failover_forget_suspects(const bfo_peer_t *peer);
#else
static inline void bfo_failover_forget_suspects(const bfo_peer_t *peer) {}
#endif

#endif /* PML_BFO_FAILOVER_POISON_H */
