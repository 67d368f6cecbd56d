/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The receiving functions of the PML interface. DESIGN.txt section 14.3.
 */
#ifndef PML_BFO_RECV_API_H
#define PML_BFO_RECV_API_H

#include "types/pml_bfo.h"

int bfo_irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm, ompi_request_t **request);
int bfo_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm, ompi_request_t **request);
int bfo_recv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status);
int bfo_recv_restart(ompi_request_t *request);
int bfo_imrecv(void *buf, size_t count, ompi_datatype_t *datatype, ompi_message_t **message, ompi_request_t **request);
int bfo_mrecv(void *buf, size_t count, ompi_datatype_t *datatype, ompi_message_t **message, ompi_status_public_t *status);
/* Makes a request that is not active yet; NULL without memory. */
bfo_recv_t *bfo_recv_new(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag, ompi_communicator_t *comm, bool persistent);
/* Makes the request active and unmatched. */
void bfo_recv_activate(bfo_recv_t *req);

#endif /* PML_BFO_RECV_API_H */
