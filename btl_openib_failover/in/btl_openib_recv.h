/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Received messages. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_RECV_H
#define BTL_OPENIB_RECV_H

#include "types/btl_openib_types.h"

/* Takes a completed receive. `qpn` is the queue pair's number in the completion; it names the sender of a message on a shared queue. */
void ofo_recv_handle(ofo_module_t *module, ofo_recv_t *recv, uint32_t length, uint32_t qpn);
/* Takes the credits and the payload of a message whose length was checked. `length` includes the header. */
void ofo_recv_message(ofo_module_t *module, ofo_qpset_t *qps, ofo_data_hdr_t *hdr, uint32_t length);
#endif /* BTL_OPENIB_RECV_H */
