/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Jobs that survive the death of a process (ULFM, mpirun --with-ft ulfm): what the PML reports to Open MPI, and the errors of calls that
 * Open MPI gives up. Open MPI reports a failed process through revoke_comm (pml_bfo_revoke.c). DESIGN.txt section 14.11.
 */
#ifndef PML_BFO_ULFM_H
#define PML_BFO_ULFM_H

#include "types/pml_bfo.h"

#if BFO_OMPI_HAS_ULFM
/* Reports the process of a declared peer as failed to the whole job. Locks: none held. */
void bfo_ulfm_peer_failed(bfo_peer_t *peer) BFO_COLD;
/* The error of a cancelled receive: Open MPI cancels requests that have failed, and puts the reason into their status. */
int bfo_ulfm_cancel_error(const ompi_request_t *request) BFO_COLD;
/* The request cannot be cancelled: undoes what Open MPI did to cancel it, so that it goes on. */
void bfo_ulfm_cancel_denied(ompi_request_t *request) BFO_COLD;
/* A blocking receive from any source returned without its message, because a process failed: cancels the receive, or waits for its message
 * if that has matched meanwhile. The request is complete when this returns. */
void bfo_ulfm_end_wait(ompi_request_t *request) BFO_COLD;
/* The error why no message will come for a probe, or MPI_SUCCESS. */
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
