/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Revoked communicators (ULFM). DESIGN.txt section 14.11.
 */
#ifndef PML_BFO_REVOKE_H
#define PML_BFO_REVOKE_H

#include "types/pml_bfo.h"

/* Drops a first fragment that comes for a revoked communicator, or for one that has ended here, and refuses a rendezvous towards its sender.
 * The send ends with MPI_ERR_REVOKED; is_failure: with MPI_ERR_PROC_FAILED. Locks: none held. */
void bfo_refuse(bfo_peer_t *peer, const bfo_hdr_t *h, bool is_failure) BFO_COLD;

#if BFO_OMPI_HAS_ULFM
/* At start. */
void bfo_revoke_open(void) BFO_COLD;
/* pml_revoke_comm: the communicator is revoked, or (coll_only) one of its processes has failed and its collective operations end. Also
 * declares the peers whose processes Open MPI counts as failed. Context: MPI calls, progress; locks: none held. */
int bfo_revoke_comm(ompi_communicator_t *comm, bool coll_only) BFO_COLD;
/* For MPI_Finalize. */
void bfo_revoke_close(void) BFO_COLD;
#else
static inline void bfo_revoke_open(void) {}
static inline void bfo_revoke_close(void) {}
#endif

#endif /* PML_BFO_REVOKE_H */
