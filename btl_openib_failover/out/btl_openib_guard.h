/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Messages that other components than the PML send, and that must survive the loss of a rail. DESIGN.txt section 14.11.
 */
#ifndef BTL_OPENIB_GUARD_H
#define BTL_OPENIB_GUARD_H

#include "types/btl_openib_types.h"

/* The function `guard` of bfo_btl_ext.h. */
void ofo_guard(mca_btl_base_module_t *btl, mca_btl_base_tag_t first, mca_btl_base_tag_t last);

#endif /* BTL_OPENIB_GUARD_H */
