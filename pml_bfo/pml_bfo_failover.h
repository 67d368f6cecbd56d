/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What happens when a fragment, a rail or a peer fails: the cold half of the PML. Symptoms come in here; the
 * hot half never asks. DESIGN.txt sections 7, 10, 11 and 14.6.
 */
#ifndef PML_BFO_FAILOVER_H
#define PML_BFO_FAILOVER_H

#include "pml_bfo.h"

/* The extension of a BTL that has one and may be used, now with our callbacks in it; else NULL. */
bfo_btl_ext_t *bfo_failover_adopt(mca_btl_base_module_t *btl);

/* Says once per node if failover is not in force for a peer reached by the rails found, and why. */
void bfo_failover_announce(const bfo_peer_t *peer);

/* A rail of the peer failed: error status of a descriptor, or a post refused with UNREACH. Context: progress
 * or post; locks: none held. */
void bfo_failover_rail_lost(bfo_peer_t *peer, uint8_t rail, const char *cause) BFO_COLD;

/* The BML's error callback. */
void bfo_failover_btl_error(mca_btl_base_module_t *btl, int32_t flags, opal_proc_t *proc, char *info);

/* The peer cannot be reached any more: all its requests end with MPI_ERR_OTHER. */
void bfo_failover_declare(bfo_peer_t *peer, uint8_t rail, const char *cause) BFO_COLD;

/* BTL order tag that binds a WRITE on the rail and its FIN to one queue pair. */
uint8_t bfo_failover_write_order(const bfo_peer_t *peer, uint8_t rail);

/* ---- error completions; the event of the descriptor is still held by the caller ------------------- */

/* MATCH, RNDV or RGET of a request. */
void bfo_failover_rts_failed(bfo_send_t *req, uint8_t rail, int status) BFO_COLD;
/* FRAG or WRITE. */
void bfo_failover_data_failed(bfo_send_t *req, uint8_t rail, int status) BFO_COLD;
/* ACK, PUT or READ. */
void bfo_failover_answer_failed(bfo_recv_t *req, uint8_t rail, int status) BFO_COLD;
/* FIN or another message without request; `header` is valid during the call. */
void bfo_failover_ctl_failed(bfo_peer_t *peer, uint8_t rail, const void *header, size_t length, int status) BFO_COLD;

#endif /* PML_BFO_FAILOVER_H */
