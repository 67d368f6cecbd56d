/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails whose port is down, and whose peer another rail is asked about. See DESIGN.txt 10.2.
 */
#ifndef BTL_OPENIB_DOUBT_H
#define BTL_OPENIB_DOUBT_H

#include "btl_openib_types.h"

/* The port is down: can another rail to the peer say whether the peer is there? Then the rail is in doubt. Locks: ep->lock held. */
bool ofo_doubt_begin(ofo_endpoint_t *ep);
/* Asks over this rail, if another rail to its peer is in doubt. Locks: ep->lock held. */
void ofo_doubt_ask_over(ofo_endpoint_t *ep);
/* Asks over the rails of all other modules that have a rail in doubt beside them. Context: progress, no lock held. */
void ofo_doubt_ask(const ofo_module_t *module);
/* The WRITE of the rail came back well, and somebody waits for that. Context: progress. Locks: ep->lock held. */
void ofo_doubt_answered(ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_DOUBT_H */
