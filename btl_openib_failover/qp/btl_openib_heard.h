/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The first message of a set of queue pairs. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_HEARD_H
#define BTL_OPENIB_HEARD_H

#include "types/btl_openib_types.h"

/* Reports the first message to service, which takes it in the place of RTU. With transport->acceptor_listens there is no other RTU: the side that
 * accepted a connection must not send before it has received something (RFC 5044, 7.1). */
void ofo_recv_tell_first(ofo_qpset_t *qps);
/* For transport->acceptor_listens: a message was received, and service keeps its completion for progress. Context: service, inside the poll lock. */
void ofo_recv_kept(ofo_module_t *module, const ofo_recv_t *recv, uint32_t qpn);

#endif /* BTL_OPENIB_HEARD_H */
