/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What bfo adds to MPI_Comm_free, MPI_Finalize, MPI_Comm_disconnect, and to MPI_Comm_spawn, _connect and _accept.
 * DESIGN.txt sections 14.3 and 14.6.
 */
#ifndef PML_BFO_HOOKS_H
#define PML_BFO_HOOKS_H

#include "ompi/communicator/communicator.h"

/* From now on MPI_Finalize and MPI_Comm_disconnect begin with a flush, MPI_Comm_free can wait for callbacks, and a process that
 * connects to other processes makes progress meanwhile. Called once per process,
 * when MPI_COMM_SELF exists and before the first send. Returns OMPI_SUCCESS or an error of Open MPI. */
int bfo_hooks_open(void);
/* Restores the runtime's own functions. The two attributes end with their communicators. */
void bfo_hooks_close(void);

/* A send with a callback starts on `comm`: MPI_Comm_free waits until bfo_callback_was_made() has been called for it. `is_onesided`: the send
 * is one of osc/pt2pt. */
void bfo_hooks_callback_is_owed(ompi_communicator_t *comm, bool is_onesided);

#endif /* PML_BFO_HOOKS_H */
