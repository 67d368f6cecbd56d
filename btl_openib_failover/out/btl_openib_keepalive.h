/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The write that shows whether an idle peer is alive. See DESIGN.txt 15.5.
 */
#ifndef BTL_OPENIB_KEEPALIVE_H
#define BTL_OPENIB_KEEPALIVE_H

#include "types/btl_openib_types.h"

/* Posts a WRITE of one byte on each connected rail whose turn it is and that carried nothing since its last turn. Context: progress. */
void ofo_keepalive(ofo_module_t *module);
/* Must the peer still be there? A peer that has ended properly would not answer, and a WRITE to it would look like the loss of a rail. */
bool ofo_keepalive_may_ask(const ofo_peer_t *peer);
/* Posts that WRITE; the caller has checked that none is in flight. Locks: ep->lock held. */
void ofo_keepalive_post(ofo_endpoint_t *ep, ofo_qpset_t *qps);

#endif /* BTL_OPENIB_KEEPALIVE_H */
