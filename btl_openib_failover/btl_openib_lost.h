/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A peer that cannot be reached. See DESIGN.txt 11 and 15.2.
 */
#ifndef BTL_OPENIB_LOST_H
#define BTL_OPENIB_LOST_H

#include "btl_openib_types.h"

/* Declares the peer unreachable, for good and once; false if it was already. `why` is constant text. The PML is told
 * unless the PML says so itself. Any thread. */
bool ofo_peer_declare(ofo_peer_t *peer, const char *why, bool tell_pml);
/* Tells the user, once, if the two ports of a rail that does not connect may be on different fabrics. Context: service. */
void ofo_peer_doubt_pair(const ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_LOST_H */
