/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails that a port event leaves alone. See DESIGN.txt 10.2.
 */
#ifndef BTL_OPENIB_SPARED_H
#define BTL_OPENIB_SPARED_H

#include "btl_openib_types.h"

/* A device or completion queue that failed does not come back, a port does: the hardware repeats its packets until then. */
bool ofo_port_is_gone(const ofo_module_t *module);
/* Does no other rail to the peer live, over a port that is up? */
bool ofo_rail_is_last(const ofo_endpoint_t *ep);
/* Must a port event leave this rail alone? It ends no rail under a PML without failover, and never the last live rail to a
 * peer. */
bool ofo_rail_is_spared(const ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_SPARED_H */
