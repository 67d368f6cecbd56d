/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Control messages to a peer. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_CTL_H
#define BTL_OPENIB_CTL_H

#include "types/btl_openib_types.h"

/* Fills in the common header and sends the message to the rail's remote port. A declared peer gets nothing but PEERDEAD. Context:
 * service of the module. */
void ofo_ctl_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl);
/* Is there room for one more message of the module? A timer that would send a message waits for room: a message that is lost here looks as if
 * the peer did not answer. Context: service of the module. */
bool ofo_ctl_has_room(ofo_module_t *module);
/* Destroys the address handle of the rail's remote port; the next message makes another. Context: service of the module. */
void ofo_ud_forget(ofo_endpoint_t *ep);
/* The next random number of the module; its low bits are poor. Context: service of the module. */
static inline uint32_t ofo_random(ofo_module_t *module)
{
    module->random = module->random * 1664525u + 1013904223u;
    return module->random;
}
/* The flow label of the rail's queue pairs and datagrams: random and not 0. Context: service of the module. */
uint32_t ofo_flow_label(ofo_endpoint_t *ep);
/* Gives the rail another flow label, so that a network with several paths may choose another path. Its connected queue pairs keep theirs.
 * Context: service of the module. */
void ofo_flow_label_renew(ofo_endpoint_t *ep);

#endif /* BTL_OPENIB_CTL_H */
