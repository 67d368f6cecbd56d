/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A fragment of a request came back with an error, or its rail is gone: the rail is lost, and the request gets an event. With failover
 * compiled out, pml_bfo_failover_out.c declares the peer instead. DESIGN.txt sections 7 and 14.6.
 */
#ifndef PML_BFO_FAILOVER_ERRORS_H
#define PML_BFO_FAILOVER_ERRORS_H

#include "types/pml_bfo.h"

void bfo_failover_put_on_dead_rail(bfo_send_t *req, bfo_id_t dst_id) BFO_COLD;
void bfo_failover_rget_on_dead_rail(bfo_recv_t *req) BFO_COLD;

/* Error completions; each takes over the event of the descriptor and releases it. Compiled out, they declare the peer. */

/* MATCH, RNDV or RGET of a request. */
void bfo_failover_rts_failed(bfo_send_t *req, uint8_t rail, int status) BFO_COLD;
/* FRAG or WRITE. */
void bfo_failover_data_failed(bfo_send_t *req, uint8_t rail, int status) BFO_COLD;
/* ACK, PUT or READ. */
void bfo_failover_answer_failed(bfo_recv_t *req, uint8_t rail, int status) BFO_COLD;


#endif /* PML_BFO_FAILOVER_ERRORS_H */
