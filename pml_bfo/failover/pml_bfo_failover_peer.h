/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A peer as a whole: declares it unreachable, tests the guards of its requests again, and flushes.
 * DESIGN.txt sections 9, 11 and 14.6.
 */
#ifndef PML_BFO_FAILOVER_PEER_H
#define PML_BFO_FAILOVER_PEER_H

#include "types/pml_bfo.h"

/* Declares the peer unreachable: all its requests end with an error (bfo_lost_error()). */
void bfo_failover_declare(bfo_peer_t *peer, const char *cause) BFO_COLD;
#if PML_BFO
/* Progress function, registered at the first wait: gives up peers for which this process has waited for too long. Returns their number. */
int bfo_failover_look_at_waits(void);
/* No rail to the peer is left for new work: waits for one (pml_bfo_last_rail_timeout), or declares the peer because of `cause`. Context: as rail_failed. */
void bfo_failover_wait(bfo_peer_t *peer, const char *cause) BFO_COLD;
/* From now on each call of progress asks `is_dead` about each peer that this process waits for, and declares a peer whose process has
 * died. `since`, `now`: ms. */
void bfo_failover_wait_init(bool (*is_dead)(bfo_peer_t *peer, uint64_t since, uint64_t now)) BFO_COLD;
/* Ends the wait if a rail takes new work again, or the peer is declared. */
void bfo_failover_wait_ends(bfo_peer_t *peer) BFO_COLD;
/* Ends all waits at the end of the PML. */
void bfo_failover_wait_fini(void) BFO_COLD;
#else
/* Compiled out: no rail comes back, so there is nothing to wait for. */
static inline void bfo_failover_wait(bfo_peer_t *peer, const char *cause)
{
    bfo_failover_declare(peer, cause);
}
static inline void bfo_failover_wait_ends(bfo_peer_t *peer) {}
static inline void bfo_failover_wait_fini(void) {}
#endif
#if BFO_OMPI_HAS_ULFM && PML_BFO
/* The peer is declared, or a BTL without failover has closed its connection to it: if nothing of the peer can arrive any more, ends
 * the requests whose descriptors that BTL may never return. */
void bfo_failover_abandon(const bfo_peer_t *peer) BFO_COLD;
#endif
/* Tests the guards of every request in an ERR-class state again. */
void bfo_failover_settle_all(void) BFO_COLD;
/* peer_dead of bfo_btl_ext.h. */
void bfo_failover_peer_dead(mca_btl_base_module_t *btl, opal_proc_t *proc, const char *cause) BFO_COLD;
/* Returns when no message waits to be sent again and the rails have no work. Makes progress. Locks: none held. */
void bfo_failover_flush(void) BFO_COLD;

#endif /* PML_BFO_FAILOVER_PEER_H */
