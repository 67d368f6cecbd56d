/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Received messages. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_RECV_H
#define BTL_OPENIB_RECV_H

#include "btl_openib_types.h"

/* `qpn`: of the queue pair, as the completion names it; tells the sender on a shared queue. */
void ofo_recv_handle(ofo_module_t *module, ofo_recv_t *recv, uint32_t length, uint32_t qpn);
/* A message that arrived, checked for length: its credits and its payload. `length` with the header. */
void ofo_recv_message(ofo_module_t *module, ofo_qpset_t *qps, ofo_data_hdr_t *hdr, uint32_t length);
#endif /* BTL_OPENIB_RECV_H */
