/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Small messages that travel together. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_COALESCE_H
#define BTL_OPENIB_COALESCE_H

#include "btl_openib_types.h"

/* Replaces what waits at the head of a list by a carrier, if two or more fit. Locks: ep->lock held. */
void ofo_coalesce(ofo_endpoint_t *ep, unsigned index);
/* Completes each part, and gives the carrier back. Context: as ofo_send_complete. */
void ofo_parts_complete(ofo_frag_t *carrier, int status);
void ofo_parts_deliver(ofo_module_t *module, uint8_t *bytes, size_t length);

#endif /* BTL_OPENIB_COALESCE_H */
