/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Questions over a rail that seems silent and over the other rails to its peer, and the answers. Context: service of the rail's module.
 * See DESIGN.txt 10.2, "Silence".
 */
#ifndef BTL_OPENIB_PROBE_H
#define BTL_OPENIB_PROBE_H

#include "types/btl_openib_types.h"

/* Work of generation `gen` does not end, or its handshake is not answered. Begins an inquiry, unless the rail is of another
 * generation by now, or no other rail to the peer could answer. The inquiry may follow those of two other rails, or wait for its turn. */
void ofo_probe_begin(ofo_endpoint_t *ep, uint16_t gen);
/* Progress gives the rail no more work, because this side found the rail soft: tells the peer over the other rails. */
void ofo_probe_tell(ofo_endpoint_t *ep, uint16_t gen);
/* Generation `gen` is soft at the peer, as a message over another rail says. Takes the verdict over, and begins an inquiry that ends it, if
 * this side may judge the rail. */
void ofo_probe_told(ofo_endpoint_t *ep, uint16_t gen);
/* PROBE came over this rail: sends the answer; or ANSWER came. Either may concern another rail, perhaps of another module: tells that rail. */
void ofo_probe_message(ofo_endpoint_t *ep, const ofo_ctl_t *ctl);
/* Ends the round if it is over. Returns true if the rail is silent although another rail to the peer answers. */
bool ofo_probe_timer(ofo_endpoint_t *ep, uint64_t now);

#endif /* BTL_OPENIB_PROBE_H */
