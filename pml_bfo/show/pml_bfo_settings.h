/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Parameters that change while the job runs: wishes of the user (bfo set) and of the program (MPI_T). DESIGN.txt section 19.6.
 */
#ifndef PML_BFO_SETTINGS_H
#define PML_BFO_SETTINGS_H

#include "types/pml_bfo_types.h"

/* Obeys or refuses a wish of the user. One thread at a time, as for bfo_settings_take(). */
void bfo_settings_wish(uint32_t parameter, int64_t value) BFO_COLD;
/* Has the program written a variable? */
bool bfo_settings_are_news(void);
/* Obeys or refuses what the program has written. */
void bfo_settings_take(void) BFO_COLD;

#endif /* PML_BFO_SETTINGS_H */
