/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Blocking progress. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_SLEEP_H
#define BTL_OPENIB_SLEEP_H

#include "btl_openib_types.h"

int ofo_sleep_create(void);
void ofo_sleep_destroy(void);
/* The completion channel of a module, before its first CQ. */
int ofo_sleep_open(ofo_module_t *module);
void ofo_sleep_close(ofo_module_t *module);
/* After each pass over all modules; sleeps when many in a row found nothing. `arm` asks a module for
 * an event and looks once more: false if there was something. */
void ofo_sleep_if_idle(bool found, bool (*arm)(ofo_module_t *module));

#endif /* BTL_OPENIB_SLEEP_H */
