/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A module: set-up, end, and the memory of its fragments. See DESIGN.txt 15.
 */
#ifndef BTL_OPENIB_MODULE_H
#define BTL_OPENIB_MODULE_H

#include "types/btl_openib_types.h"

int ofo_module_init(ofo_module_t *module);
void ofo_module_destroy(ofo_module_t *module);
/* Stops all service threads, then frees everything that ofo_ports_open() and ofo_sleep_create() made. */
void ofo_modules_free(void);
void ofo_module_set_functions(mca_btl_base_module_t *super);

#endif /* BTL_OPENIB_MODULE_H */
