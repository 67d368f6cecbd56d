/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The start of a send request. DESIGN.txt sections 9 and 14.3.
 */
#ifndef PML_BFO_SEND_START_H
#define PML_BFO_SEND_START_H

#include "types/pml_bfo.h"

/* Begins the transfer of a request whose base, lane and match_seq are set. Always returns OMPI_SUCCESS: if no rail takes the message, the
 * peer is declared, and the request is active and ends with an error. */
int bfo_send_begin(bfo_send_t *req);
/* Sends the first fragment of the next attempt, in state RTS(e), with bits and bytes reset: RNDV or RGET, never MATCH. */
int bfo_send_begin_again(bfo_send_t *req) BFO_COLD;
/* Sends the RTS or MATCH of the request, for the first time or again; takes the event for it. */
int bfo_send_post_first(bfo_send_t *req);
/* As bfo_send_post_first(), for a copy after an error, now or when its turn comes (pml_bfo_resend_burst). */
int bfo_send_post_first_again(bfo_send_t *req) BFO_COLD;

#endif /* PML_BFO_SEND_START_H */
