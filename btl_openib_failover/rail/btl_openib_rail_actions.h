/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the rows of a rail's machine do. Context: service of the endpoint's module. See DESIGN.txt 10 and 15.
 */
#ifndef BTL_OPENIB_RAIL_ACTIONS_H
#define BTL_OPENIB_RAIL_ACTIONS_H

#include "types/btl_openib_types.h"

extern const ofo_fsm_action_fn_t ofo_rail_actions[OFO_DO_COUNT];
enum { OFO_CONNECT_PATIENCE = 11 };          /* a connection gets 12 times connect_timeout if its failure ends the job */
void ofo_rail_give_time(ofo_endpoint_t *ep); /* connect_timeout from now on */
void ofo_rail_repeat_after(ofo_endpoint_t *ep, unsigned backoff_ms);
void ofo_rail_send_down(ofo_endpoint_t *ep, uint16_t gen);
/* When the port will have been up for the stable time, after which the rail may come back; a time that is over if the peer has no other rail. */
uint64_t ofo_rail_stable_at(const ofo_endpoint_t *ep);
/* Has the peer answered since it was told the present address of our port? Context: service. */
bool ofo_rail_has_told_address(const ofo_endpoint_t *ep);
/* Would a request for that generation be answered if the port were up? */
bool ofo_rail_is_welcome(const ofo_endpoint_t *ep, uint16_t gen);
/* The place where the counts of this generation, whose fence is done, are kept. */
ofo_kept_t *ofo_rail_keep(ofo_endpoint_t *ep, uint16_t gen);
/* The fence was given up, and the loss check is over or does not matter any more: calls the PML's fence_done. */
void ofo_rail_close_check(ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_RAIL_ACTIONS_H */
