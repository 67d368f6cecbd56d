/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The connection manager rdmacm. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_CONNECT_RDMACM_H
#define BTL_OPENIB_CONNECT_RDMACM_H

#include "types/btl_openib_types.h"

extern const ofo_cpc_t ofo_cpc_rdmacm;

#endif /* BTL_OPENIB_CONNECT_RDMACM_H */
