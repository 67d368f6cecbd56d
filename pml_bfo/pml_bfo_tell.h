/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the user is told of failures: warnings, lines by pml_bfo_verbose, counters at the end. DESIGN.txt section 14.9.
 */
#ifndef PML_BFO_TELL_H
#define PML_BFO_TELL_H

#include "pml_bfo.h"
#include "pml_bfo_params.h"

/* Levels of pml_bfo_verbose. */
enum { BFO_TELL_RAILS = 1, BFO_TELL_STEPS = 2, BFO_TELL_MESSAGES = 3 };

/* New processes: the explanations of warnings are for the node of rank 0. */
void bfo_tell_processes(ompi_proc_t **procs, size_t n) BFO_COLD;
/* Name of the local port behind a module, or of its BTL. */
const char *bfo_tell_port(mca_btl_base_module_t *btl);
/* The rails of a peer are known (level 1). The first one of rank 0 with failover is told of (pml_bfo_say_protected).
 * Locks: bfo.lock. */
void bfo_tell_connected(const bfo_peer_t *peer) BFO_COLD;
/* A rail to a peer is out of use. The warning waits until bfo_tell_rails(): the port may turn out to be lost to all.
 * `told`: it was said already. */
void bfo_tell_rail_lost(bfo_peer_t *peer, uint8_t rail, const char *cause, bool told) BFO_COLD;
/* Says the warnings that wait: of one peer, or with NULL of all. */
void bfo_tell_rails(bfo_peer_t *peer) BFO_COLD;
/* A port is lost to all peers, known and future, or to those that another rail reaches. */
void bfo_tell_port_lost(mca_btl_base_module_t *btl, const char *cause, bool to_all) BFO_COLD;
/* A new generation of a rail that was lost is in use. */
void bfo_tell_rail_back(bfo_peer_t *peer, uint8_t rail) BFO_COLD;
/* Other rails than before are slow (level 1). */
void bfo_tell_slow(const bfo_peer_t *peer) BFO_COLD;
/* No rail to the peer is left, and its requests wait for one. */
void bfo_tell_peer_waits(bfo_peer_t *peer) BFO_COLD;
/* A peer uses a rail that we do not (level 1). */
void bfo_tell_foreign_put(const bfo_peer_t *peer) BFO_COLD;
void bfo_tell_peer_lost(bfo_peer_t *peer, const char *cause) BFO_COLD;
/* The end of this process waits for a peer (NULL: not known which). */
void bfo_tell_flush_waits(const bfo_peer_t *peer, int seconds) BFO_COLD;
/* A step of a request's machine (level 2). */
void bfo_tell_send_step(void *request, const char *row, uint32_t from, uint32_t to, unsigned event) BFO_COLD;
void bfo_tell_recv_step(void *request, const char *row, uint32_t from, uint32_t to, unsigned event) BFO_COLD;
/* A message is sent again (level 3). */
void bfo_tell_resent(const bfo_peer_t *peer, const char *what) BFO_COLD;
/* At the end: how many warnings were held back, and every counter that is not 0, if pml_bfo_counters asks for it. */
void bfo_tell_counters(void) BFO_COLD;

#endif /* PML_BFO_TELL_H */
