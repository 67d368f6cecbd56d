/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Asynchronous events of a device, and what is known of its ports. See DESIGN.txt 15.5.
 */
#ifndef BTL_OPENIB_ASYNC_H
#define BTL_OPENIB_ASYNC_H

#include "btl_openib_types.h"

void ofo_async_read(ofo_module_t *module);
/* Did the port go down last because its address is another? */
bool ofo_port_has_moved(const ofo_module_t *module);
/* Is the port up, with the address that its connections were made with? */
bool ofo_port_came_back(const ofo_module_t *module);
/* Looks for the GIDs that the device's ports have lost. Context: the service that reads its events. */
void ofo_async_look_again(ofo_device_t *device, uint64_t now);
/* All ports of the device are down, for good. Context: any service. */
void ofo_async_device_gone(const ofo_device_t *device);
/* Waits until all that the device has to say was noted; false if that takes too long. Any thread but service. */
bool ofo_async_settled(ofo_device_t *device);
/* Does the port still stand? The event that tells may come after a completion that does, so service asks the device;
 * `unanswered` if the answer takes too long and no event has come. Context: progress. */
bool ofo_async_port_is_up(ofo_module_t *module, bool unanswered);
void ofo_async_answer(ofo_module_t *module); /* service's part */
/* How often the port went down, and is it up? Both as events have told. Any thread. */
uint32_t ofo_async_downs(const ofo_module_t *module, bool *is_up);

#endif /* BTL_OPENIB_ASYNC_H */
