/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A peer as a whole: declared unreachable, its requests looked at again, the flush.
 * DESIGN.txt sections 9, 11 and 14.6.
 */
#ifndef PML_BFO_FAILOVER_PEER_H
#define PML_BFO_FAILOVER_PEER_H

#include "pml_bfo.h"

/* The peer cannot be reached any more: all its requests end with MPI_ERR_OTHER. */
void bfo_failover_declare(bfo_peer_t *peer, const char *cause) BFO_COLD;
#if PML_BFO
/* No rail to the peer is left: it is waited for, pml_bfo_last_rail_timeout, or declared because of `cause`. Context: as rail_failed. */
void bfo_failover_wait(bfo_peer_t *peer, const char *cause) BFO_COLD;
/* While a peer is waited for, `is_dead` is asked in each call of progress whether its process has died: then the peer is declared.
 * `since`, `now`: ms. */
void bfo_failover_wait_init(bool (*is_dead)(bfo_peer_t *peer, uint64_t since, uint64_t now)) BFO_COLD;
/* A rail is back, or the peer is declared. */
void bfo_failover_wait_ends(bfo_peer_t *peer) BFO_COLD;
/* The PML ends. */
void bfo_failover_wait_fini(void) BFO_COLD;
#else
/* Compiled out: no rail comes back. */
static inline void bfo_failover_wait(bfo_peer_t *peer, const char *cause)
{
    bfo_failover_declare(peer, cause);
}
static inline void bfo_failover_wait_ends(bfo_peer_t *peer) {}
static inline void bfo_failover_wait_fini(void) {}
#endif
#if BFO_OMPI_HAS_ULFM && PML_BFO
/* The peer is declared, or a BTL without failover has closed its connection to it: ends the requests for which that BTL may return
 * nothing any more, if nothing of the peer can arrive. */
void bfo_failover_abandon(const bfo_peer_t *peer) BFO_COLD;
#endif
/* Every request in an ERR-class state looks at its guards again. */
void bfo_failover_settle_all(void) BFO_COLD;
/* peer_dead of bfo_btl_ext.h. */
void bfo_failover_peer_dead(mca_btl_base_module_t *btl, opal_proc_t *proc, const char *cause) BFO_COLD;
/* Returns when nothing that was sent waits to be sent again, and the rails have no work. Makes progress. Locks: none held. */
void bfo_failover_flush(void) BFO_COLD;

#endif /* PML_BFO_FAILOVER_PEER_H */
