/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * How a fence waits for LAST_WQE_REACHED. See DESIGN.txt 10.3.
 */
#ifndef BTL_OPENIB_LAST_WQE_H
#define BTL_OPENIB_LAST_WQE_H

#include "types/btl_openib_types.h"

/* Starts the timer that bounds a fence's wait for LAST_WQE_REACHED; acts when it ends. Context: service of the module. */
void ofo_async_await_last_wqe(ofo_endpoint_t *ep);
void ofo_async_last_wqe_late(ofo_endpoint_t *ep, uint64_t now);
/* Has the device events that service has not noted yet? The order of the two looks matters: an event that is no longer in the device
 * is being read, and one that is no longer being read was noted. */
bool ofo_device_has_unread(const ofo_device_t *device);

#endif /* BTL_OPENIB_LAST_WQE_H */
