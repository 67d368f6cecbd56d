/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * ULFM's own messages, which bypass the PML. DESIGN.txt section 14.11.
 */
#ifndef PML_BFO_ULFM_TAGS_H
#define PML_BFO_ULFM_TAGS_H

#include "types/pml_bfo.h"

#if BFO_OMPI_HAS_ULFM && PML_BFO
/* Takes these messages over on rails with failover, and receives them. No effect without --with-ft. OMPI_SUCCESS or an error of the BML. */
int bfo_ulfm_tags_register(void) BFO_COLD;
#else
static inline int bfo_ulfm_tags_register(void)
{
    return OMPI_SUCCESS;
}
#endif

#endif /* PML_BFO_ULFM_TAGS_H */
