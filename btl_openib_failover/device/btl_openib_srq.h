/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Shared receive queues of a module. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_SRQ_H
#define BTL_OPENIB_SRQ_H

#include "types/btl_openib_types.h"

int ofo_srqs_create(ofo_module_t *module);
void ofo_srqs_destroy(ofo_module_t *module);
/* The most receives of shared queues that can complete at one time. */
unsigned ofo_srqs_buffers_max(const ofo_module_t *module);
/* Gives a received buffer back to its queue. Context: progress. */
void ofo_srq_return(ofo_srq_t *srq, ofo_recv_t *recv);
/* Posts the buffers that queues refused. Context: progress. */
void ofo_srqs_post_refused(ofo_module_t *module);
/* Adds buffers, up to the number in btl_openib_receive_queues. Context: service of the device's first module. */
void ofo_srq_limit_reached(ofo_srq_t *srq);
/* At most `count` buffers were lost with a destroyed queue pair: posts new ones in their place. Context: any service. */
void ofo_srq_buffers_missing(ofo_srq_t *srq, uint32_t count);

#endif /* BTL_OPENIB_SRQ_H */
