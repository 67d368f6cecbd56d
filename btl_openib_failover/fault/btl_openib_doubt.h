/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails in doubt: the port is down, and another rail to the peer is asked whether the peer is there. See DESIGN.txt 10.2.
 */
#ifndef BTL_OPENIB_DOUBT_H
#define BTL_OPENIB_DOUBT_H

#include "types/btl_openib_types.h"

/* The port is down. Puts the rail in doubt if another rail to the peer can be asked; returns whether it is in doubt. Locks: ep->lock
 * held. */
bool ofo_doubt_begin(ofo_endpoint_t *ep);
/* Asks over this rail if another rail to its peer is in doubt. Locks: ep->lock held. */
void ofo_doubt_ask_over(ofo_endpoint_t *ep);
/* Asks over each rail of all other modules whose peer has a rail in doubt. Context: progress, no lock held. */
void ofo_doubt_ask(const ofo_module_t *module);
/* The rail's WRITE completed with success while a rail in doubt waits for it. Context: progress. Locks: ep->lock held. */
void ofo_doubt_answered(ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_DOUBT_H */
