/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Devices, ports and addresses.
 * Unless said otherwise functions return 0 or an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_DEVICE_H
#define SR_DEVICE_H

#include "sr_objects.h"

/* The address of (rail, slot), and back. The link layer decides between LID and GID. */
uint16_t sr_lid(unsigned slot); /* before any LID change */
uint16_t sr_lid_shift(unsigned rail);
uint32_t sr_host_address(unsigned rail, unsigned slot); /* IPv4, host order: 127.42.rail.(slot + 1) until a GID change */
void sr_gid(unsigned rail, unsigned slot, union ibv_gid *gid);
unsigned sr_gid_count(void);  /* the last one is the port's own */
bool sr_habit(unsigned flag); /* SR_FABRIC_* */
int sr_address_resolve(unsigned rail, const struct ibv_ah_attr *attr, struct sr_address *address);
/* Does the context accept more work? EIO if the device is gone; EINVAL in a forked child. */
int sr_device_check(const struct ibv_context *context);
int sr_device_query(struct ibv_context *context, struct ibv_device_attr *attr);
int sr_port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);

#endif /* SR_DEVICE_H */
