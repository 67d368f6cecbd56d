/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The application of a day, instead of that of image_job.c.
 */
#ifndef IMAGE_DAY_H
#define IMAGE_DAY_H

#include "image_ompi.h"

/* The life of the process, from MPI_Init to MPI_Finalize. */
void image_day(void);
/* Adds what the lists of this process have. The host calls it. */
void image_day_lists(world_day_lists_t *sum);
/* The BTL reads its clock in the next call of progress. */
void image_day_look(void);

#endif /* IMAGE_DAY_H */
