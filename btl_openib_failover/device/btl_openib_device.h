/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Verbs devices and the registration of memory. See DESIGN.txt 15.
 */
#ifndef BTL_OPENIB_DEVICE_H
#define BTL_OPENIB_DEVICE_H

#include "types/btl_openib_types.h"

/* Opens the device, its PD and its registration cache. The caller closes it. NULL and *why (constant text) on failure. */
ofo_device_t *ofo_device_open(struct ibv_device *verbs, const char **why);
void ofo_device_close(ofo_device_t *device);
/* Has the adapter lived at some time after `since` (ms)? A dead adapter answers no query, also before the event of its death comes.
 * Context: service, because a query may take a minute. */
bool ofo_device_lived_after(ofo_module_t *module, uint64_t since);
/* Allocates whole pages, which the caller frees by free(); NULL if there is no memory. Fork support takes the pages of registered
 * memory away from a child, together with all other data on them. */
void *ofo_pages_alloc(size_t size);
/* Tells the user that the device may not lock enough memory, and what the limit is. */
void ofo_device_say_locked_memory(const ofo_device_t *device);
mca_btl_base_registration_handle_t *ofo_register_mem(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, void *base, size_t size, uint32_t flags);
int ofo_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle);

#endif /* BTL_OPENIB_DEVICE_H */
