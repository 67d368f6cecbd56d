/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Rails that wait to be opened. Context: service of the module. See DESIGN.txt 15.3.
 */
#ifndef BTL_OPENIB_OPEN_H
#define BTL_OPENIB_OPEN_H

#include "btl_openib_types.h"

void ofo_open_want(ofo_endpoint_t *ep);                       /* a post wants the rail */
void ofo_open_ask(ofo_endpoint_t *ep, const ofo_ctl_t *req);  /* the peer does */
bool ofo_open_due(ofo_module_t *module);
void ofo_open_next(ofo_module_t *module); /* opens one at most */

#endif /* BTL_OPENIB_OPEN_H */
