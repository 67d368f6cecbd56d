/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Control messages to a peer. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_CTL_H
#define BTL_OPENIB_CTL_H

#include "btl_openib_types.h"

/* Fills in the common header and sends the message to the rail's remote port. A declared peer gets nothing but PEERDEAD. Context:
 * service of the module. */
void ofo_ctl_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl);
/* Destroys the address handle of the rail's remote port; the next message makes another. Context: service of the module. */
void ofo_ud_forget(ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_CTL_H */
