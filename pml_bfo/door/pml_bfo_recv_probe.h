/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Probes. DESIGN.txt section 14.3.
 */
#ifndef PML_BFO_RECV_PROBE_H
#define PML_BFO_RECV_PROBE_H

#include "types/pml_bfo.h"

int bfo_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_status_public_t *status);
int bfo_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status);
int bfo_improbe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_message_t **message, ompi_status_public_t *status);
int bfo_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message, ompi_status_public_t *status);

#endif /* PML_BFO_RECV_PROBE_H */
