/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rounds of a job: all processes together do what a collective, a window, or the end of a communicator makes of the PML.
 */
#ifndef IMAGE_ROUNDS_H
#define IMAGE_ROUNDS_H

#include "image_message.h"

/* Does the next round, if one is left. The processes come at different times, and all to the same rounds in the same order. */
void image_round(unsigned round);
/* Looks at everything that rounds have received once more. */
void image_rounds_recheck(void);

/* ---- between image_rounds.c and image_window.c ------------------------------------------------------------ */

/* The peer of a call that ended with this result. Does not return after an error. */
void round_saw(unsigned peer, int rc);
/* As MPI_Isend and MPI_Irecv of bytes; they call again if memory was short. */
void round_isend(ompi_communicator_t *comm, unsigned to, int tag, const void *bytes, size_t size, ompi_request_t **request);
void round_irecv(ompi_communicator_t *comm, unsigned from, int tag, void *bytes, size_t size, ompi_request_t **request);
/* As MPI_Wait. */
void round_wait(unsigned peer, ompi_request_t *request);
/* As MPI_Barrier. */
void round_barrier(ompi_communicator_t *comm);
/* What was received stays for the last look: bytes of `from` to `to`. */
void round_keep(message_t *m, unsigned from, unsigned to);

/* A window of each process, as osc/pt2pt makes it: puts and gets, short and long, until a flush. */
void image_window(unsigned round);

#endif /* IMAGE_ROUNDS_H */
