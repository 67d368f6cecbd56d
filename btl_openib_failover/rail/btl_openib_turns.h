/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The queues of a module's rails that wait for their turn to be opened. Context: service of the module. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_TURNS_H
#define BTL_OPENIB_TURNS_H

#include "types/btl_openib_types.h"

/* The peer asks for the rail by this REQ or ASK. If other rails wait too, the peer gets the answer "busy". */
void ofo_turn_ask(ofo_endpoint_t *ep, const ofo_ctl_t *req);
/* A post of this process wants the rail. */
void ofo_turn_want(ofo_endpoint_t *ep);
/* Takes the first rail out of the queue. NULL: no rail waits. */
ofo_endpoint_t *ofo_turn_take_asked(ofo_module_t *module);
ofo_endpoint_t *ofo_turn_take_wanted(ofo_module_t *module);

#endif /* BTL_OPENIB_TURNS_H */
