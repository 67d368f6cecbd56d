/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What an image has of Open MPI: one process with MPI_COMM_WORLD, and the calls of MPI that the application's part uses.
 */
#ifndef IMAGE_OMPI_H
#define IMAGE_OMPI_H

#include "types/pml_bfo.h"

/* What stands in for Open MPI has memory. */
#undef malloc
#undef calloc
#undef posix_memalign
#undef strdup

/* world_image_t.covered */
#if WORLD_COVERAGE
#include <gcov.h>
#define IMAGE_COVERED __gcov_dump
#else
#define IMAGE_COVERED NULL
#endif

/* As MPI_Init_thread and MPI_Finalize do. */
void image_begin(bool threads);
void image_end(void);

/* Makes image_other, as MPI_Comm_dup does. */
void image_dup(void);

/* A communicator of all processes, as MPI_Comm_dup and MPI_Comm_free make and end it. No process may use its context id before all have ended
 * its last communicator. */
ompi_communicator_t *image_comm_make(uint32_t context);
void image_comm_free(ompi_communicator_t *comm);

/* The calls of the runtime in which MPI_Comm_disconnect and MPI_Comm_spawn wait for all processes. */
int image_fence(void);
int image_connect(void);

extern ompi_communicator_t *image_world, *image_other;

/* ---- between image_ompi.c and image_bml.c --------------------------------------------------------------- */

/* Progress of the BTL. */
int image_bml_progress(void);

static inline void must_be(bool is, const char *what)
{
    if (!is) {
        world_gives_up(what);
    }
}

#endif /* IMAGE_OMPI_H */
