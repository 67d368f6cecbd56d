/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Jobs whose processes may die (ULFM, mpirun --with-ft ulfm): what the PML tells Open MPI of it, and what calls that Open MPI gives up
 * end with. Open MPI's word that a process has failed comes with revoke_comm (pml_bfo_revoke.c). DESIGN.txt section 14.11.
 */
#ifndef PML_BFO_ULFM_H
#define PML_BFO_ULFM_H

#include "pml_bfo.h"

#if BFO_OMPI_HAS_ULFM
/* The peer is declared: its process counts as failed in the whole job. Locks: none held. */
void bfo_ulfm_peer_failed(bfo_peer_t *peer) BFO_COLD;
/* What a cancelled receive ends with: Open MPI cancels requests that have failed, and says in their status why. */
int bfo_ulfm_cancel_error(const ompi_request_t *request) BFO_COLD;
/* The request is not cancelled, and goes on as if Open MPI had not tried. */
void bfo_ulfm_cancel_denied(ompi_request_t *request) BFO_COLD;
/* A blocking receive from any source came back without its message, because a process failed: it is cancelled, or its message has come
 * meanwhile and is waited for. Then it is complete. */
void bfo_ulfm_end_wait(ompi_request_t *request) BFO_COLD;
/* Why no message will come for a probe, or MPI_SUCCESS. */
int bfo_ulfm_probe_error(ompi_communicator_t *comm, int src, int tag) BFO_COLD;
#else
static inline void bfo_ulfm_peer_failed(bfo_peer_t *peer) {}
static inline int bfo_ulfm_cancel_error(const ompi_request_t *request)
{
    return MPI_SUCCESS;
}
static inline void bfo_ulfm_cancel_denied(ompi_request_t *request) {}
static inline void bfo_ulfm_end_wait(ompi_request_t *request) {}
static inline int bfo_ulfm_probe_error(ompi_communicator_t *comm, int src, int tag)
{
    return MPI_SUCCESS;
}
#endif

#endif /* PML_BFO_ULFM_H */
