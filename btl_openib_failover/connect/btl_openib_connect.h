/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Control messages that were received. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_CONNECT_H
#define BTL_OPENIB_CONNECT_H

#include "types/btl_openib_types.h"

/* Hands a valid control message to the rail it is for. Context: service of the module that received it. */
void ofo_ctl_dispatch(ofo_module_t *module, const ofo_ctl_t *ctl);

#endif /* BTL_OPENIB_CONNECT_H */
