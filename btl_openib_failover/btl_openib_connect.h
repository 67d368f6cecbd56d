/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the connection managers have in common. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_CONNECT_H
#define BTL_OPENIB_CONNECT_H

#include "btl_openib_types.h"

/* The connection manager of that name, or NULL. */
const ofo_cpc_t *ofo_cpc_find(const char *name, size_t length);
/* Fills the common header and sends to the rail's remote port; nothing to a declared peer. Context: service of the
 * module. */
void ofo_ctl_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl);
/* A valid control message. Context: service of the module that received it. */
void ofo_ctl_dispatch(ofo_module_t *module, const ofo_ctl_t *ctl);

#endif /* BTL_OPENIB_CONNECT_H */
