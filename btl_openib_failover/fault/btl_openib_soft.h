/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A rail that seems silent: no new work, and its messages go over other rails as well. Context: progress, inside the poll lock of the
 * rail's module. See DESIGN.txt 10.2, "Silence".
 */
#ifndef BTL_OPENIB_SOFT_H
#define BTL_OPENIB_SOFT_H

#include "types/btl_openib_types.h"

/* Service found that generation `gen` of the rail seems silent. Tells the PML and the peer, and offers the PML the rail's messages, unless
 * work of the rail has ended in the meantime. Locks: none but the poll lock. */
void ofo_soft_begin(ofo_endpoint_t *ep, uint16_t gen);
/* The peer found that generation `gen` seems silent. Does what ofo_soft_begin() does, even if work of the rail has ended here meanwhile, and
 * tells the peer nothing. Locks: none but the poll lock. */
void ofo_soft_adopt(ofo_endpoint_t *ep, uint16_t gen);
/* The rail does not seem silent any more: tells the PML. */
void ofo_soft_end(ofo_endpoint_t *ep, uint16_t gen);
/* Ends the rail if a message of `gen` that has a second copy has been in flight for a minute. Locks: none but the poll lock. */
void ofo_soft_overdue(ofo_endpoint_t *ep, uint16_t gen);

#endif /* BTL_OPENIB_SOFT_H */
