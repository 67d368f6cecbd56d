/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The endpoints of a peer and of a module. See DESIGN.txt 15.2.
 */
#ifndef BTL_OPENIB_ENDPOINTS_H
#define BTL_OPENIB_ENDPOINTS_H

#include "types/btl_openib_types.h"

/* The peer's endpoint on this module, or NULL. */
ofo_endpoint_t *ofo_peer_endpoint(ofo_peer_t *peer, const ofo_module_t *module);
/* The peer's rail of that name, or NULL. */
ofo_endpoint_t *ofo_peer_rail(const ofo_peer_t *peer, uint8_t name);
/* Calls `visit` for each endpoint of the module. Locks: takes peers_lock and, for each visit, ep->lock. */
void ofo_for_each_endpoint(ofo_module_t *module, void (*visit)(ofo_endpoint_t *));

#endif /* BTL_OPENIB_ENDPOINTS_H */
