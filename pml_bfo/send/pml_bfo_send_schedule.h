/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The body of a long message. DESIGN.txt sections 7 (rows S5-S10) and 14.5.
 */
#ifndef PML_BFO_SEND_SCHEDULE_H
#define PML_BFO_SEND_SCHEDULE_H

#include "types/pml_bfo.h"

/* Posts FRAGs of [next, end) as the pipeline allows. The caller holds an event. */
void bfo_send_schedule(bfo_send_t *req);
/* Handle an ACK, a PUT and the FIN of an RGET, as the dispatch delivers them. */
void bfo_send_on_ack(const bfo_ack_hdr_t *ack);
void bfo_send_on_put(mca_btl_base_module_t *btl, const bfo_put_hdr_t *put);
void bfo_send_on_fin(bfo_frag_t *frag, const bfo_fin_hdr_t *fin);

#endif /* PML_BFO_SEND_SCHEDULE_H */
