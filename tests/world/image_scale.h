/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The application of a large job, instead of that of image_job.c.
 */
#ifndef IMAGE_SCALE_H
#define IMAGE_SCALE_H

#include "image_ompi.h"

/* The life of the process, from MPI_Init to MPI_Finalize. */
void image_scale(void);
/* What this process has counted so far. The host calls it. */
void image_scale_counts(world_scale_counts_t *counts);

#endif /* IMAGE_SCALE_H */
