/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A peer that cannot be reached. See DESIGN.txt 11 and 15.2.
 */
#ifndef BTL_OPENIB_LOST_H
#define BTL_OPENIB_LOST_H

#include "types/btl_openib_types.h"

/* Declares the peer unreachable, once and for good; false if it was declared already. `why` is constant text. `tell_pml` is false if the
 * PML itself declares the peer; otherwise the PML is notified. Any thread. */
bool ofo_peer_declare(ofo_peer_t *peer, const char *why, bool tell_pml);
/* Warns the user once if the two ports of a rail that does not connect may be on different fabrics. Context: service. */
void ofo_peer_doubt_pair(const ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_LOST_H */
