/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What happens when a fragment, a rail or a peer fails: the cold half of the PML. All symptoms are reported here; the
 * hot half never polls for them. DESIGN.txt sections 7, 10, 11 and 14.6.
 */
#ifndef PML_BFO_FAILOVER_H
#define PML_BFO_FAILOVER_H

#include "types/pml_bfo.h"

/* Fills bfo.up with the entrances of symptoms, and bfo.callbacks. Called once, at start. */
void bfo_failover_init(void);

/* Handles every symptom of a rail's failure: a descriptor with error status, a refused post, a report of the BTL or of the
 * peer. `gen`: the generation that failed; nothing happens if the rail has a later one. For a refused post the caller passes the
 * generation read before the post. For a descriptor bfo_rail_gen() is right, because the descriptor comes back before the fence of its
 * generation is done (B8). `rail` may be BFO_MAX_RAILS: none. Context: progress or post; locks: none held. */
void bfo_failover_rail_failed(bfo_peer_t *peer, uint8_t rail, uint16_t gen, const char *cause) BFO_COLD;

/* A PUT or READ failed: may its bytes be copied instead, without the loss of a rail? */
bool bfo_failover_may_copy(const bfo_peer_t *peer, uint8_t rail, bool refused) BFO_COLD;

/* The BML's error callback. */
void bfo_failover_btl_error(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info);

#if PML_BFO
/* Fills in the dead rails of this side, for NOTIFY. */
void bfo_failover_dead_set(bfo_peer_t *peer, bfo_handshake_hdr_t *h);
/* False: the NOTIFY names a generation that cannot exist; the caller drops it. */
bool bfo_failover_rails_are_possible(bfo_peer_t *peer, uint8_t mask, const uint16_t *gen);
/* Handles the dead rails that a NOTIFY names: fences each of them that is still alive here. */
void bfo_failover_rails_down(bfo_peer_t *peer, uint8_t mask, const uint16_t *gen);
#endif
/* May the FIN be handled now? False: it waits for the fence of the rail that carried its data. */
bool bfo_failover_fin_is_visible(bfo_peer_t *from, const bfo_fin_hdr_t *fin) BFO_COLD;
/* A FIN or another message without a request failed. `header` is valid only during the call. */
void bfo_failover_ctl_failed(bfo_peer_t *peer, uint8_t rail, const void *header, size_t length, int status) BFO_COLD;

#endif /* PML_BFO_FAILOVER_H */
