/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Blocking progress. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_SLEEP_H
#define BTL_OPENIB_SLEEP_H

#include "types/btl_openib_types.h"

int ofo_sleep_create(void);
void ofo_sleep_destroy(void);
/* Makes the completion channel of a module. Call it before the module's first CQ is made. */
int ofo_sleep_open(ofo_module_t *module);
void ofo_sleep_close(ofo_module_t *module);
/* Call it after each pass over all modules. It sleeps if many passes in a row found nothing. `arm` asks a module's CQs
 * for an event and polls once more; it returns false if it found something. */
void ofo_sleep_if_idle(bool found, bool (*arm)(ofo_module_t *module));

#endif /* BTL_OPENIB_SLEEP_H */
