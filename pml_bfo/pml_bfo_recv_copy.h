/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A BTL without failover refuses a PUT or READ: the bytes that are missing are copied.
 * DESIGN.txt sections 9 (rule 12) and 14.3.
 */
#ifndef PML_BFO_RECV_COPY_H
#define PML_BFO_RECV_COPY_H

#include "pml_bfo.h"

/* A PUT or READ of the bytes from `offset` on was refused: they are to be copied. Call before `open` is lowered. */
void bfo_recv_copy_from(bfo_recv_t *req, size_t offset) BFO_COLD;
/* `open` is 0 and `copies` set: asks for what is missing. The caller holds an event. */
void bfo_recv_copy_rest(bfo_recv_t *req) BFO_COLD;
/* For who has raised `open` to start a PUT or READ and found `copies` set. */
int bfo_recv_copies_instead(bfo_recv_t *req) BFO_COLD;

#endif /* PML_BFO_RECV_COPY_H */
