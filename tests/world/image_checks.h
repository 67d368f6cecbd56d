/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The invariants of DESIGN.txt 13 that this world checks while a job runs. A breach ends the run with its number. A check reads the state of
 * this process and of the other one. It changes nothing, draws nothing and takes no time, so runs are the same with and without checks.
 */
#ifndef IMAGE_CHECKS_H
#define IMAGE_CHECKS_H

#include "types/pml_bfo.h"
#include "tables/btl_openib_rail_fsm.h"

/* ---- image_checks.c: I3, I7, I8 ---------------------------------------------------------------------------- */

extern const world_looks_t image_looks;
/* The object of an identifier whatever its generation; `ahead`: how many generations it is ahead of the identifier. */
const bfo_name_t *image_name_of(const bfo_ids_t *table, uint64_t id, int32_t *ahead);
/* The request of an identifier. False: this process has no requests now. */
bool image_look_at_send(uint64_t id, world_request_t *seen);
bool image_look_at_recv(uint64_t id, world_request_t *seen);

/* A control message is about to be sent. */
void image_check_control(const bfo_peer_t *to, const bfo_hdr_t *h);
/* A send is complete; image_checked.h puts the call into the source. */
void image_check_sent(const bfo_send_t *req);

/* ---- image_checks_arrival.c: I5, and I7 for the sender ------------------------------------------------------ */

/* What the BTL calls for messages of the tag, instead of `handler`. */
mca_btl_base_module_recv_cb_fn_t image_check_arrivals(mca_btl_base_tag_t tag, mca_btl_base_module_recv_cb_fn_t handler);

/* ---- image_checks_callback.c: I4 ---------------------------------------------------------------------------- */

/* From now on posts of the module are noted. */
void image_check_posts(mca_btl_base_module_t *module);

/* ---- image_checks_rail.c: I10 ------------------------------------------------------------------------------- */

bool image_look_at_rail(unsigned rank, unsigned name, unsigned generation, world_rail_t *seen);
/* The machine of the rail has taken an event. */
void image_check_rail(const ofo_fsm_t *fsm);

#endif /* IMAGE_CHECKS_H */
