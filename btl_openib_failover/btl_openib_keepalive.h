/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The write that tells whether an idle peer is alive. See DESIGN.txt 15.5.
 */
#ifndef BTL_OPENIB_KEEPALIVE_H
#define BTL_OPENIB_KEEPALIVE_H

#include "btl_openib_types.h"

/* A WRITE of one byte on each connected rail whose turn it is and where nothing came or went since its last turn. Context: progress. */
void ofo_keepalive(ofo_module_t *module);
/* Must the peer be there? Others may have ended properly, and a WRITE to them would pass for the loss of a rail. */
bool ofo_keepalive_may_ask(const ofo_peer_t *peer);
/* That WRITE; the caller has looked that none is out. Locks: ep->lock held. */
void ofo_keepalive_post(ofo_endpoint_t *ep, ofo_qpset_t *qps);

#endif /* BTL_OPENIB_KEEPALIVE_H */
