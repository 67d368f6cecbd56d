/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The memory of the figures of this process. DESIGN.txt section 19.1.
 */
#ifndef PML_BFO_FIGURES_FILE_H
#define PML_BFO_FIGURES_FILE_H

#include "bfo_figures.h"
#include "pml_bfo_types.h"

/* Makes the file, if pml_bfo_status_dir does not forbid it and nothing stands in the way; else the figures are in memory that only this
 * process sees. Its head is written, and that the process has begun. Set-up. */
bfo_figures_t *bfo_figures_file_open(void) BFO_COLD;
/* What the user asks of his jobs, mapped; NULL: there is no file. It stays until bfo_figures_file_close(). `number`: of the list when this
 * process came to be seen; older wishes are not meant for it. */
const bfo_steer_t *bfo_figures_steer(uint64_t *number) BFO_COLD;
/* The end: removes the file. `unmap`: nobody writes into the figures any more. */
void bfo_figures_file_close(bool unmap) BFO_COLD;

#endif /* PML_BFO_FIGURES_FILE_H */
