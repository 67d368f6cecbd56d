/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Asynchronous events of a device, and the state of its ports as these events say. See DESIGN.txt 15.5.
 */
#ifndef BTL_OPENIB_ASYNC_H
#define BTL_OPENIB_ASYNC_H

#include "types/btl_openib_types.h"

/* Reads and handles all events that the device has. Context: the service that reads them. */
void ofo_async_read(ofo_module_t *module);
/* Did the port go down last because its address changed? */
bool ofo_port_has_moved(const ofo_module_t *module);
/* Is the port up, with the address that its connections were made with? */
bool ofo_port_came_back(const ofo_module_t *module);
/* Looks again for the GIDs that the device's ports have lost, if it is time (`now` in ms). Context: the service that reads its events. */
void ofo_async_look_again(ofo_device_t *device, uint64_t now);
/* Notes that all ports of the device are down for good. Context: any service. */
void ofo_async_device_gone(const ofo_device_t *device);
/* Waits until service has noted all events of the device; false if that takes too long. Context: any thread but service. */
bool ofo_async_settled(ofo_device_t *device);
/* Is the port still up? The event of a dead port may come after the bad completions that the death causes. Therefore service asks
 * the device. Returns `unanswered` if the answer takes too long and no event has come. Context: progress. */
bool ofo_async_port_is_up(ofo_module_t *module, bool unanswered);
void ofo_async_answer(ofo_module_t *module); /* service's part of it */
/* Returns how often the port went down, and in *is_up whether it is up, both as events have said. Any thread. */
uint32_t ofo_async_downs(const ofo_module_t *module, bool *is_up);

#endif /* BTL_OPENIB_ASYNC_H */
