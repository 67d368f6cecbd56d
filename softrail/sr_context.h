/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The list of devices, and devices that are open.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_CONTEXT_H
#define SR_CONTEXT_H

#include "sr_objects.h"

struct ibv_device **sr_device_list(int *count);
void sr_device_list_free(struct ibv_device **list);
struct ibv_context *sr_device_open(struct ibv_device *device);
int sr_device_close(struct ibv_context *context);

#endif /* SR_CONTEXT_H */
