/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The connection manager udcm: datagrams. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_CONNECT_UD_H
#define BTL_OPENIB_CONNECT_UD_H

#include "types/btl_openib_types.h"

extern const ofo_cpc_t ofo_cpc_ud;
/* The device reported a failure of a queue pair. If a module sends its control messages by it, that module's service repairs it.
 * Context: any service. */
void ofo_ud_doubt(const ofo_device_t *device, const struct ibv_qp *qp);

#endif /* BTL_OPENIB_CONNECT_UD_H */
