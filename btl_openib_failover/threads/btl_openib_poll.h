/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Completions of a module. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_POLL_H
#define BTL_OPENIB_POLL_H

#include "types/btl_openib_types.h"

int ofo_component_progress(void);
int ofo_module_progress(ofo_module_t *module);

#endif /* BTL_OPENIB_POLL_H */
