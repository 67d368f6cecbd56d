/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The answers of a receive to its sender. DESIGN.txt section 14.3.
 */
#ifndef PML_BFO_RECV_ANSWER_H
#define PML_BFO_RECV_ANSWER_H

#include "types/pml_bfo.h"
#include "rails/pml_bfo_post.h"

/* Asks the sender to send everything from `offset` on by FRAG. */
void bfo_recv_ask(bfo_recv_t *req, size_t offset);
/* Sends an answer of the request; takes an event if it succeeds. OMPI_ERR_OUT_OF_RESOURCE: no rail has room, and the answer cannot be queued.
 * Other errors are handled: the request has had its event. */
int bfo_recv_answer(bfo_recv_t *req, bfo_path_t path, const void *header, size_t length);

#endif /* PML_BFO_RECV_ANSWER_H */
