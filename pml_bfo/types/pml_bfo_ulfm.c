/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Jobs that survive the death of a process (ULFM): a declared peer becomes a failed process, and calls end with the errors of ULFM.
 * DESIGN.txt section 14.11.
 */
#include "types/pml_bfo.h"

#include "types/pml_bfo_ulfm.h"

#if BFO_OMPI_HAS_ULFM
#include "ompi/communicator/communicator.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/proc/proc.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

/* Not at the end of MPI_Finalize, when each process closes its connections at its own time. Open MPI ignores a second report of a process. */
void bfo_ulfm_peer_failed(bfo_peer_t *peer)
{
    if (BFO_OMPI_ULFM_IS_ON && ompi_mpi_state < OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT) {
        (void) ompi_errhandler_proc_failed(peer->proc);
    }
}

/* A receive with PENDING has not ended: the user may cancel it, and then it has not failed. */
int bfo_ulfm_cancel_error(const ompi_request_t *request)
{
    const int error = request->req_status.MPI_ERROR;

    return MPI_ERR_PROC_FAILED_PENDING == error ? MPI_SUCCESS : error;
}

void bfo_ulfm_cancel_denied(ompi_request_t *request)
{
    if (BFO_OMPI_ULFM_IS_ON && !REQUEST_COMPLETE(request)) {
        request->req_status.MPI_ERROR = MPI_SUCCESS;
    }
}

void bfo_ulfm_end_wait(ompi_request_t *request)
{
    request->req_status.MPI_ERROR = MPI_ERR_PROC_FAILED;
    (void) ompi_request_cancel(request);
    request->req_status._cancelled = 0;  /* it was not the user who cancelled */
    while (!REQUEST_COMPLETE(request)) { /* only if its message has matched meanwhile */
        opal_progress();
    }
}

/* A probe from any source ends at the first failure that is not acknowledged; MPI has no pending probes. */
int bfo_ulfm_probe_error(ompi_communicator_t *comm, int src, int tag)
{
    if (bfo_likely(!BFO_OMPI_ULFM_IS_ON) || ompi_request_tag_is_ft(tag)) {
        return MPI_SUCCESS;
    }
    if (ompi_comm_is_revoked(comm)) {
        return MPI_ERR_REVOKED;
    }
    return (MPI_ANY_SOURCE == src ? ompi_comm_is_any_source_enabled(comm) : ompi_comm_is_proc_active(comm, src, OMPI_COMM_IS_INTER(comm)))
               ? MPI_SUCCESS
               : MPI_ERR_PROC_FAILED;
}
#endif /* BFO_OMPI_HAS_ULFM */
