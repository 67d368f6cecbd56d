/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The connection managers, by their names. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_CPC_H
#define BTL_OPENIB_CPC_H

#include "types/btl_openib_types.h"

/* The connection manager of that name, or NULL. */
const ofo_cpc_t *ofo_cpc_find(const char *name, size_t length);

#endif /* BTL_OPENIB_CPC_H */
