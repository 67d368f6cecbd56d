/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Reports of failures to the user: warnings, lines by pml_bfo_verbose, counters at the end. DESIGN.txt section 14.9.
 */
#ifndef PML_BFO_TELL_H
#define PML_BFO_TELL_H

#include "types/pml_bfo.h"
#include "types/pml_bfo_params.h"

/* Levels of pml_bfo_verbose. */
enum { BFO_TELL_RAILS = 1, BFO_TELL_STEPS = 2, BFO_TELL_MESSAGES = 3 };

/* Looks for rank 0 among new processes, because only processes of its node explain warnings. */
void bfo_tell_processes(ompi_proc_t **procs, size_t n) BFO_COLD;
/* Name of the module's local port, or of its BTL. */
const char *bfo_tell_port(mca_btl_base_module_t *btl);
/* Reports the rails of a peer, once they are known (level 1). Rank 0 also reports its first peer with failover (pml_bfo_say_protected).
 * Locks: bfo.lock. */
void bfo_tell_connected(const bfo_peer_t *peer) BFO_COLD;
/* A rail to a peer is lost. The warning waits until bfo_tell_rails(), because the port may turn out to be lost to all peers.
 * `told`: the loss was reported already. */
void bfo_tell_rail_lost(bfo_peer_t *peer, uint8_t rail, const char *cause, bool told) BFO_COLD;
/* Prints the warnings that wait: those of one peer, or with NULL of all. */
void bfo_tell_rails(bfo_peer_t *peer) BFO_COLD;
/* Reports that a port is lost to all peers, known and future (`to_all`), or to those that another rail reaches. */
void bfo_tell_port_lost(mca_btl_base_module_t *btl, const char *cause, bool to_all) BFO_COLD;
/* Reports that a new generation of a lost rail is in use. */
void bfo_tell_rail_back(bfo_peer_t *peer, uint8_t rail) BFO_COLD;
/* Reports that its probation is over. */
void bfo_tell_rail_trusted(const bfo_peer_t *peer, uint8_t rail, const char *why) BFO_COLD;
/* Reports that the set of slow rails has changed (level 1). */
void bfo_tell_slow(const bfo_peer_t *peer) BFO_COLD;
/* Reports that no rail to the peer is left and its requests wait for one. */
void bfo_tell_peer_waits(bfo_peer_t *peer) BFO_COLD;
/* Reports that a peer uses a rail that this process does not use (level 1). */
void bfo_tell_foreign_put(const bfo_peer_t *peer) BFO_COLD;
void bfo_tell_peer_lost(bfo_peer_t *peer, const char *cause) BFO_COLD;
/* Reports that the end of this process waits for a peer (NULL: not known which). */
void bfo_tell_flush_waits(const bfo_peer_t *peer, int seconds) BFO_COLD;
/* Reports that a message is sent again (level 3). */
void bfo_tell_resent(const bfo_peer_t *peer, const char *what) BFO_COLD;
/* Prints, at the end, how many warnings were held back and, if pml_bfo_counters asks for it, every counter that is not 0. */
void bfo_tell_counters(void) BFO_COLD;

#endif /* PML_BFO_TELL_H */
