/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which ports a list names, which GID and which partition key of a port are used, which interface has its IP address, which IP
 * address an iWARP port has, whether a device is near, and what the kernel shows of a port that verbs do not tell. No Open MPI
 * header: the command bfo makes these choices too. See DESIGN.txt 15.2.
 */
#ifndef BTL_OPENIB_CHOICE_H
#define BTL_OPENIB_CHOICE_H

#include <hwloc.h>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* An IPv4 address as a GID begins with these. */
extern const uint8_t ofo_v4_mapped[12];

/* Verbs have 8 bits for the index of the GID that a connection uses; a table may be longer. */
#define OFO_GID_INDEX_MAX 255

bool ofo_gid_is_empty(const uint8_t *gid);

/* The best GID of the port's table: RoCE v2 only; those of this network namespace first, then those that may be of it; among these
 * IPv4-mapped, then IPv6, then link-local; the first of equals. `all` is what getifaddrs tells. False if there is none. */
bool ofo_gid_choose(struct ibv_context *context, unsigned port, int table_len, const struct ifaddrs *all, struct ibv_gid_entry *best);

/* Index of the GID in the port's table. On a RoCE port it stands there once for each type: `v2_only`. */
bool ofo_gid_find(struct ibv_context *context, unsigned port, int table_len, const uint8_t *gid, bool v2_only, uint8_t *index);

/* Is "device" or "device:port" an entry of the list? */
bool ofo_list_names(const char *list, const char *device, unsigned port);

/* Index of the partition key `wanted`, or of the first one if that is 0: of a full member if there is one, because two limited
 * members do not hear each other, and index 0 is often limited. False if there is none. */
bool ofo_pkey_find(struct ibv_context *context, unsigned port, int table_len, unsigned wanted, uint16_t *index);

#define OFO_MAC_LEN 6
/* IP address of an interface with that hardware address, as RoCE writes it in a GID: IPv4, then IPv6 that is not link-local;
 * the first of equals. False if there is none. */
bool ofo_iwarp_address(const struct ifaddrs *all, const uint8_t *mac, uint8_t *gid);

/* The entry of the interface that has the IP address of a GID, or NULL. `all` is what getifaddrs tells. */
const struct ifaddrs *ofo_interface_of(const struct ifaddrs *all, const uint8_t *gid);

/* Length of the network prefix of an interface's address in bits, 0: not known. */
unsigned ofo_interface_prefix(const struct ifaddrs *interface);

/* Is the address in one of the networks of the list? Both as IPv4-mapped or IPv6. */
bool ofo_list_has_address(const char *list, const uint8_t *gid);

/* The rate that sysfs shows of a port, Mbit/s of data on the wire; 0: it shows none. `device` is the device's path in sysfs. */
uint32_t ofo_sysfs_rate(const char *device, unsigned port);

/* Mbit/s of data on the wire. The 8 bits of active_speed do not hold what is faster than NDR: sysfs tells such a rate. */
uint32_t ofo_port_rate(const char *device, unsigned port, const struct ibv_port_attr *attr);

/* The traffic class that the port's driver or librdmacm is configured for; 0 if neither is. */
uint8_t ofo_sysfs_traffic_class(const char *device, unsigned port);

/* Do the device's cores and those the process may run on have one in common? An empty set is one that is not known: near. */
bool ofo_cores_are_near(hwloc_const_bitmap_t own, hwloc_const_bitmap_t its);

#endif /* BTL_OPENIB_CHOICE_H */
