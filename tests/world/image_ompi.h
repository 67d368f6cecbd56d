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

/* As MPI_Init_thread and MPI_Finalize do. */
void image_begin(bool threads);
void image_end(void);

/* Makes image_other, as MPI_Comm_dup does. */
void image_dup(void);

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
