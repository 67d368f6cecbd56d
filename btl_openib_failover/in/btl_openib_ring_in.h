/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Messages that arrive through eager rings. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_RING_IN_H
#define BTL_OPENIB_RING_IN_H

#include "types/btl_openib_types.h"

/* Announces the ring that service has made and polls it from now on. Context: progress. */
void ofo_ring_open(ofo_module_t *module, ofo_endpoint_t *ep, uint16_t gen);
int ofo_rings_poll(ofo_module_t *module);
/* Hands up the messages that are complete and stops polling. The queue pairs are drained. Context: progress. */
void ofo_ring_drain(ofo_qpset_t *qps);

#endif /* BTL_OPENIB_RING_IN_H */
