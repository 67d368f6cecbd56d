/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Sends whose callbacks MPI_Comm_free has to wait for.
 */
#ifndef PML_BFO_WATCH_H
#define PML_BFO_WATCH_H

#include "ompi/communicator/communicator.h"

/* A key of attributes that no duplicate of a communicator inherits; `at_end` is called when one is freed. OMPI_SUCCESS or an error. */
int bfo_watch_key(MPI_Comm_delete_attr_function *at_end, int *keyval);

/* Once per process, before the first bfo_watch_begin(). OMPI_SUCCESS or an error of Open MPI's. */
int bfo_watch_open(void);

/* A send with a callback starts on `comm`, and has ended: its callback has returned. */
void bfo_watch_begin(ompi_communicator_t *comm);
void bfo_watch_end(const ompi_communicator_t *comm);

#endif /* PML_BFO_WATCH_H */
