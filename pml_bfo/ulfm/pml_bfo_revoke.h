/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Revoked communicators (ULFM). DESIGN.txt section 14.11.
 */
#ifndef PML_BFO_REVOKE_H
#define PML_BFO_REVOKE_H

#include "types/pml_bfo.h"

#if BFO_OMPI_HAS_ULFM
/* pml_revoke_comm: the communicator is revoked, or (coll_only) one of its processes has failed and its collective operations end. Also
 * declares the peers whose processes Open MPI counts as failed. Context: MPI calls, progress; locks: none held. */
int bfo_revoke_comm(ompi_communicator_t *comm, bool coll_only) BFO_COLD;
/* For MPI_Finalize. */
void bfo_revoke_close(void) BFO_COLD;
#else
static inline void bfo_revoke_close(void) {}
#endif

#endif /* PML_BFO_REVOKE_H */
