/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Payload for a strided buffer. DESIGN.txt section 14.3.
 */
#ifndef PML_BFO_RECV_STRIDED_H
#define PML_BFO_RECV_STRIDED_H

#include "types/pml_bfo.h"

/* As bfo_recv_place(), for a buffer that is not flat and has room. False: no memory. */
bool bfo_recv_place_strided(bfo_recv_t *req, size_t offset, const bfo_in_t *in, size_t skip) BFO_COLD;
/* Discards parts that came out of order and are not unpacked yet. */
void bfo_recv_forget_ahead(bfo_recv_t *req);

#endif /* PML_BFO_RECV_STRIDED_H */
