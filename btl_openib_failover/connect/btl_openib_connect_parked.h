/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Incoming connects of rdmacm that wait for the other connects of their set. Context of all: service. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_CONNECT_PARKED_H
#define BTL_OPENIB_CONNECT_PARKED_H

#include "types/btl_openib_types.h"

#include <rdma/rdma_cma.h>

/* After this time a connect is rejected if the others of its set did not come. The kernel needs seconds to repeat a lost one. */
enum { OFO_PARKED_MS = 60000 };

/* Keeps one connect of a REQ and takes over its identifier. An older connect of the same queue pair is rejected. True if all
 * connects of the set are here now. */
bool ofo_parked_add(ofo_module_t *module, struct rdma_cm_id *id, const ofo_ctl_t *ctl, uint64_t now);
/* Rejects the connects that wait for this rail, with a message or without one (NULL, 0). */
void ofo_parked_reject(ofo_endpoint_t *ep, uint16_t gen, const uint8_t *data, size_t length);
/* Takes out a connect that waits for this rail. Returns its identifier, which the caller owns then, and the index of its queue pair;
 * NULL if none waits. */
struct rdma_cm_id *ofo_parked_take(ofo_endpoint_t *ep, uint16_t gen, unsigned *index);
/* Drops the connect of this identifier, because the peer gave it up. */
void ofo_parked_drop(ofo_module_t *module, const struct rdma_cm_id *id);
/* Rejects the connects that have waited too long. Returns the time in ms at which to call again; 0 if nothing waits. */
uint64_t ofo_parked_expire(ofo_module_t *module, uint64_t now);
/* Rejects all. */
void ofo_parked_free(ofo_module_t *module);

#endif /* BTL_OPENIB_CONNECT_PARKED_H */
