/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Incoming connects of rdmacm that wait for the others of their set. Context of all: service. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_CONNECT_PARKED_H
#define BTL_OPENIB_CONNECT_PARKED_H

#include "btl_openib_types.h"

#include <rdma/rdma_cma.h>

/* A connect whose others never came is rejected; the kernel repeats a lost one after seconds. */
enum { OFO_PARKED_MS = 60000 };

/* Keeps one connect of a REQ and owns its identifier from here on; one of the same queue pair gives way. True: all of
 * its set are here. */
bool ofo_parked_add(ofo_module_t *module, struct rdma_cm_id *id, const ofo_ctl_t *ctl, uint64_t now);
/* Rejects what waits for this rail; with a message, or without one (NULL, 0). */
void ofo_parked_reject(ofo_endpoint_t *ep, uint16_t gen, const uint8_t *data, size_t length);
/* Takes one that waits for this rail out and gives its identifier and queue pair index away; NULL: there is none. */
struct rdma_cm_id *ofo_parked_take(ofo_endpoint_t *ep, uint16_t gen, unsigned *index);
/* The peer gave this one up. */
void ofo_parked_drop(ofo_module_t *module, const struct rdma_cm_id *id);
/* Rejects what has waited too long. When to call again, in ms; 0: nothing waits. */
uint64_t ofo_parked_expire(ofo_module_t *module, uint64_t now);
/* Rejects all. */
void ofo_parked_free(ofo_module_t *module);

#endif /* BTL_OPENIB_CONNECT_PARKED_H */
