/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The ports that are used. See DESIGN.txt 15.2.
 */
#ifndef BTL_OPENIB_PORT_H
#define BTL_OPENIB_PORT_H

#include "types/btl_openib_types.h"

/* Opens the devices and makes one module in OFO for each usable port and lane. Returns the number of modules. */
int ofo_ports_open(mca_btl_base_module_t *defaults);

#endif /* BTL_OPENIB_PORT_H */
