/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The memory of the figures of this process. DESIGN.txt section 19.1.
 */
#ifndef PML_BFO_FIGURES_FILE_H
#define PML_BFO_FIGURES_FILE_H

#include "bfo_figures.h"
#include "types/pml_bfo_types.h"

/* Makes the file and returns its memory. If pml_bfo_status_dir forbids the file or it cannot be made, the figures are in memory that only
 * this process sees. Writes the head and the event BEGUN. Context: set-up. */
bfo_figures_t *bfo_figures_file_open(void) BFO_COLD;
/* Descriptor of the directory of the files, or -1: this process has no file. Valid until bfo_figures_file_close(). */
int bfo_figures_directory(void) BFO_COLD;
/* The mapped list of the user's wishes; NULL: there is no file. Valid until bfo_figures_file_close(). Sets *number to the number of the list
 * when the file of this process became visible; older wishes are not meant for this process. */
const bfo_steer_t *bfo_figures_steer(uint64_t *number) BFO_COLD;
/* Removes the file at the end. `unmap`: nobody writes to the figures any more. */
void bfo_figures_file_close(bool unmap) BFO_COLD;

#endif /* PML_BFO_FIGURES_FILE_H */
