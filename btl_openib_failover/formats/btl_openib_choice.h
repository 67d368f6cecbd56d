/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Which ports a list names, which GID and which partition key of a port are used, which interface has its IP address, which IP
 * address an iWARP port has, whether a device is near, and facts of a port that sysfs has and verbs do not. No Open MPI header,
 * because the command bfo makes these choices too. See DESIGN.txt 15.2.
 */
#ifndef BTL_OPENIB_CHOICE_H
#define BTL_OPENIB_CHOICE_H

#include <hwloc.h>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* The first bytes of a GID that holds an IPv4 address. */
extern const uint8_t ofo_v4_mapped[12];

/* Verbs have 8 bits for the index of the GID that a connection uses; a table may be longer. */
#define OFO_GID_INDEX_MAX 255

bool ofo_gid_is_empty(const uint8_t *gid);

/* Finds the best GID of the port's table; false if there is none. Only GIDs of RoCE v2 count. Those of this network namespace come
 * first, then those that may belong to it; among these IPv4-mapped, then IPv6, then link-local; the first of equals. `all` is the
 * list of getifaddrs. */
bool ofo_gid_choose(struct ibv_context *context, unsigned port, int table_len, const struct ifaddrs *all, struct ibv_gid_entry *best);

/* Finds the index of the GID in the port's table; false if it is not there. On a RoCE port the table has it once for each type;
 * `v2_only` leaves RoCE v1 out. */
bool ofo_gid_find(struct ibv_context *context, unsigned port, int table_len, const uint8_t *gid, bool v2_only, uint8_t *index);

/* Does a port that is down belong to a fabric? On RoCE `gid`, the GID that it would use, must be that of an IP address that is not
 * link-local. On InfiniBand, where `gid` does not matter, a subnet manager must have given it a LID: a port keeps its LID without a link. */
bool ofo_port_has_address(const struct ibv_port_attr *attr, const uint8_t *gid);

/* Is "device" or "device:port" an entry of the list? */
bool ofo_list_names(const char *list, const char *device, unsigned port);

/* Is the very port an entry of the list? The name of a device with several ports (`ports`) names none of them: some may have no cable. */
bool ofo_list_names_port(const char *list, const char *device, unsigned port, unsigned ports);

/* Finds the index of the partition key `wanted`, or of the first key if that is 0; false if there is none. A key of a full member is
 * preferred, because two limited members cannot talk to each other, and index 0 is often limited. */
bool ofo_pkey_find(struct ibv_context *context, unsigned port, int table_len, unsigned wanted, uint16_t *index);

#define OFO_MAC_LEN 6
/* Finds the IP address of an interface with that hardware address and writes it as RoCE writes it in a GID; false if there is none.
 * IPv4 comes first, then IPv6 that is not link-local; the first of equals. */
bool ofo_iwarp_address(const struct ifaddrs *all, const uint8_t *mac, uint8_t *gid);

/* The entry of the interface that has the IP address of a GID, or NULL. It belongs to `all`, the list of getifaddrs. */
const struct ifaddrs *ofo_interface_of(const struct ifaddrs *all, const uint8_t *gid);

/* Length of the network prefix of an interface's address in bits; 0 if it is not known. */
unsigned ofo_interface_prefix(const struct ifaddrs *interface);

/* Is the address in one of the networks of the list? `gid` holds an IPv4-mapped or an IPv6 address. */
bool ofo_list_has_address(const char *list, const uint8_t *gid);

/* The rate that sysfs shows for a port, in Mbit/s of data on the wire; 0 if it shows none. `device` is the device's path in sysfs. */
uint32_t ofo_sysfs_rate(const char *device, unsigned port);

/* The port's rate in Mbit/s of data on the wire. The 8 bits of active_speed cannot hold speeds above NDR; sysfs shows these. */
uint32_t ofo_port_rate(const char *device, unsigned port, const struct ibv_port_attr *attr);

/* The traffic class that the port's driver or librdmacm is configured for; 0 if neither is. */
uint8_t ofo_sysfs_traffic_class(const char *device, unsigned port);

/* Do the device's cores and the cores that the process may run on have one in common? An empty set means "not known" and counts as near. */
bool ofo_cores_are_near(hwloc_const_bitmap_t own, hwloc_const_bitmap_t its);

#endif /* BTL_OPENIB_CHOICE_H */
