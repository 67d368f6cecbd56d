/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Protection domains.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_PD_H
#define SR_PD_H

#include "sr_objects.h"

struct ibv_pd *sr_pd_alloc(struct ibv_context *context);
int sr_pd_free(struct ibv_pd *pd);

#endif /* SR_PD_H */
