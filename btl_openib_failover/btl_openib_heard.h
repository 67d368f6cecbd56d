/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The first message of a set of queue pairs. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_HEARD_H
#define BTL_OPENIB_HEARD_H

#include "btl_openib_types.h"

/* Stands in for RTU. On iWARP it is RTU: who accepted a connection is silent on it until it has heard the other side (RFC
 * 5044, 7.1). */
void ofo_recv_tell_first(ofo_qpset_t *qps);
/* iWARP: one was received, and service keeps it for progress. Context: service, inside the poll lock. */
void ofo_recv_kept(ofo_module_t *module, const ofo_recv_t *recv, uint32_t qpn);

#endif /* BTL_OPENIB_HEARD_H */
