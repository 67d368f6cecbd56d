/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The service thread of a module. See DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_SERVICE_H
#define BTL_OPENIB_SERVICE_H

#include "types/btl_openib_types.h"

int ofo_service_start(ofo_module_t *module);
void ofo_service_stop(ofo_module_t *module); /* other threads may still send it letters and wake it */
void ofo_service_free(ofo_module_t *module); /* once no service runs any more */
/* Frees the letters that nobody will read, and the sets of queue pairs that only these letters point to. */
void ofo_mailbox_free(ofo_mailbox_t *box);

#endif /* BTL_OPENIB_SERVICE_H */
