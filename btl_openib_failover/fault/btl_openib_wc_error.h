/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Bad completions. See DESIGN.txt 4 (B5, B10).
 */
#ifndef BTL_OPENIB_WC_ERROR_H
#define BTL_OPENIB_WC_ERROR_H

#include "types/btl_openib_types.h"

void ofo_wc_error(ofo_module_t *module, const struct ibv_wc *wc);
#endif /* BTL_OPENIB_WC_ERROR_H */
