/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails that wait to be opened. Context: service of the module. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_OPEN_H
#define BTL_OPENIB_OPEN_H

#include "types/btl_openib_types.h"

/* A post wants the rail. If the rail was opened before, its machine gets the event at once; otherwise the rail queues for its turn. */
void ofo_open_want(ofo_endpoint_t *ep);
/* May a rail be opened now? */
bool ofo_open_due(ofo_module_t *module);
/* Opens the next rail, if one may be opened. */
void ofo_open_next(ofo_module_t *module);

#endif /* BTL_OPENIB_OPEN_H */
