/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Control messages to a peer. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_CTL_H
#define BTL_OPENIB_CTL_H

#include "btl_openib_types.h"

/* Fills the common header and sends to the rail's remote port; nothing to a declared peer. Context: service of the
 * module. */
void ofo_ctl_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl);
/* The address handle of the rail's remote port is made anew with the next message. Context: service of the module. */
void ofo_ud_forget(ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_CTL_H */
