/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Address handles.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_AH_H
#define SR_AH_H

#include "sr_objects.h"

struct ibv_ah *sr_ah_create(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int sr_ah_destroy(struct ibv_ah *ah);
int sr_ah_attr_from_wc(struct ibv_context *context, uint8_t port, const struct ibv_wc *wc, const struct ibv_grh *grh, struct ibv_ah_attr *attr);

#endif /* SR_AH_H */
