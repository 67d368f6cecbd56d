/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A BTL without failover refuses a PUT or READ: the missing bytes are copied instead.
 * DESIGN.txt sections 9 (rule 12) and 14.3.
 */
#ifndef PML_BFO_RECV_COPY_H
#define PML_BFO_RECV_COPY_H

#include "types/pml_bfo.h"

/* A PUT or READ at `offset` was refused: marks the bytes from there on for copying. Call before `open` is lowered. */
void bfo_recv_copy_from(bfo_recv_t *req, size_t offset) BFO_COLD;
/* `open` is 0 and `copies` set: asks the sender for the missing bytes. The caller holds an event. */
void bfo_recv_copy_rest(bfo_recv_t *req) BFO_COLD;
/* For a caller that has raised `open` to start a PUT or READ and then found `copies` set. */
int bfo_recv_copies_instead(bfo_recv_t *req) BFO_COLD;

#endif /* PML_BFO_RECV_COPY_H */
