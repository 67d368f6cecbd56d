/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The sending functions of the PML interface. DESIGN.txt section 14.3.
 */
#ifndef PML_BFO_SEND_API_H
#define PML_BFO_SEND_API_H

#include "types/pml_bfo.h"

int bfo_isend_init(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag, mca_pml_base_send_mode_t mode,
                   ompi_communicator_t *comm, ompi_request_t **request);
int bfo_isend(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
              ompi_request_t **request);
int bfo_send(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm);
/* Starts a persistent send. It may replace *request. OMPI_SUCCESS or an error; after an error the request is inactive. */
int bfo_send_restart(ompi_request_t **request);

#endif /* PML_BFO_SEND_API_H */
