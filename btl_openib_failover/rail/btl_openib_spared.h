/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails that a port event leaves alone. See DESIGN.txt 10.2.
 */
#ifndef BTL_OPENIB_SPARED_H
#define BTL_OPENIB_SPARED_H

#include "types/btl_openib_types.h"

/* Has the port's device, or a queue of the module, failed? These do not come back. A port does, and the hardware repeats its packets
 * until then. */
bool ofo_port_is_gone(const ofo_module_t *module);
/* Is no other rail to the peer, which may take work, alive on a port that is up? */
bool ofo_rail_is_last(const ofo_endpoint_t *ep);
/* Must a port event leave this rail alone? Port events end no rail under a PML without failover, no rail in doubt, and never the last
 * live rail to a peer, whether it may take work or not. */
bool ofo_rail_is_spared(const ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_SPARED_H */
