/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Shared receive queues of a module. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_SRQ_H
#define BTL_OPENIB_SRQ_H

#include "btl_openib_types.h"

int ofo_srqs_create(ofo_module_t *module);
void ofo_srqs_destroy(ofo_module_t *module);
/* Receives of shared queues that can be completed at once. */
unsigned ofo_srqs_buffers_max(const ofo_module_t *module);
/* A received buffer goes back. Context: progress. */
void ofo_srq_return(ofo_srq_t *srq, ofo_recv_t *recv);
/* More buffers, up to what was asked for. Context: service of the device's first module. */
void ofo_srq_limit_reached(ofo_srq_t *srq);
/* Up to so many buffers went with a queue pair and will not come back: others take their place. Context: any service. */
void ofo_srq_buffers_missing(ofo_srq_t *srq, uint32_t count);

#endif /* BTL_OPENIB_SRQ_H */
