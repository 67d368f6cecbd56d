/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Choices about devices and ports; the header lists them. See DESIGN.txt 15.2, and 15.7 for ports without GIDs.
 */
#include "formats/btl_openib_choice.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint8_t ofo_v4_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool ofo_gid_is_empty(const uint8_t *gid)
{
    static const uint8_t empty[16];

    return 0 == memcmp(gid, empty, sizeof(empty));
}

/* Does the GID belong to this network namespace? 2 yes, 1 perhaps, 0 no. Only the address is a proof: the kernel gives the index that
 * the interface has in its own namespace, and another interface may have that index in ours. */
static int gid_place(const struct ibv_gid_entry *entry, const struct ifaddrs *all)
{
    char name[IF_NAMESIZE];

    if (NULL != ofo_interface_of(all, entry->gid.raw)) {
        return 2;
    }
    return 0 == entry->ndev_ifindex || NULL != if_indextoname(entry->ndev_ifindex, name);
}

/* Each interface has a link-local address, whatever network it is on, if any. */
static bool is_link_local(const uint8_t *gid)
{
    return 0xfe == gid[0];
}

/* The higher the better; 0 is unusable. */
static int gid_rank(const struct ibv_gid_entry *entry, const struct ifaddrs *all)
{
    int kind = 2;

    if (IBV_GID_TYPE_ROCE_V2 != entry->gid_type || ofo_gid_is_empty(entry->gid.raw)) {
        return 0;
    }
    if (0 == memcmp(entry->gid.raw, ofo_v4_mapped, sizeof(ofo_v4_mapped))) {
        kind = 3;
    } else if (is_link_local(entry->gid.raw)) {
        kind = 1; /* link-local last */
    }
    return 4 * gid_place(entry, all) + kind;
}

bool ofo_gid_choose(struct ibv_context *context, unsigned port, int table_len, const struct ifaddrs *all, struct ibv_gid_entry *best)
{
    int best_rank = 0;

    for (int i = 0; i < table_len && OFO_GID_INDEX_MAX >= i; ++i) {
        struct ibv_gid_entry entry;
        if (0 == ibv_query_gid_ex(context, port, (uint32_t) i, &entry, 0) && gid_rank(&entry, all) > best_rank) {
            best_rank = gid_rank(&entry, all);
            *best = entry;
        }
    }
    return 0 < best_rank;
}

bool ofo_gid_find(struct ibv_context *context, unsigned port, int table_len, const uint8_t *gid, bool v2_only, uint8_t *index)
{
    for (int i = 0; i < table_len && OFO_GID_INDEX_MAX >= i; ++i) {
        struct ibv_gid_entry entry;
        if (0 == ibv_query_gid_ex(context, port, (uint32_t) i, &entry, 0) && 0 == memcmp(entry.gid.raw, gid, sizeof(entry.gid.raw))
            && (!v2_only || IBV_GID_TYPE_ROCE_V2 == entry.gid_type)) {
            *index = (uint8_t) i;
            return true;
        }
    }
    return false;
}

/* A port that no subnet manager has set up has the LID 0 or 0xffff. */
static bool is_lid(uint16_t lid)
{
    enum { LAST = 0xbfff };

    return 0 < lid && LAST >= lid;
}

bool ofo_port_has_address(const struct ibv_port_attr *attr, const uint8_t *gid)
{
    if (IBV_LINK_LAYER_ETHERNET == attr->link_layer) {
        return !ofo_gid_is_empty(gid) && !is_link_local(gid);
    }
    return is_lid(attr->lid) && is_lid(attr->sm_lid);
}

bool ofo_list_names(const char *list, const char *device, unsigned port)
{
    char with_port[IBV_SYSFS_NAME_MAX + 8];
    size_t length;

    snprintf(with_port, sizeof(with_port), "%s:%u", device, port);
    for (; '\0' != *list; list += length + (',' == list[length])) {
        length = strcspn(list, ",");
        if ((strlen(device) == length && 0 == strncmp(list, device, length))
            || (strlen(with_port) == length && 0 == strncmp(list, with_port, length))) {
            return true;
        }
    }
    return false;
}

bool ofo_list_names_port(const char *list, const char *device, unsigned port, unsigned ports)
{
    return ofo_list_names(list, device, port) && (1 == ports || !ofo_list_names(list, device, 0));
}

bool ofo_pkey_find(struct ibv_context *context, unsigned port, int table_len, unsigned wanted, uint16_t *index)
{
    bool found = false;

    for (int i = 0; i < table_len; ++i) {
        __be16 entry;
        uint16_t pkey;
        if (0 != ibv_query_pkey(context, (uint8_t) port, i, &entry)) {
            continue;
        }
        pkey = ntohs(entry);
        if (0 == (pkey & 0x7fff) || (0 != wanted && (pkey & 0x7fff) != (wanted & 0x7fff))) {
            continue;
        }
        if (!found || 0 != (pkey & 0x8000)) {
            *index = (uint16_t) i;
            found = true;
        }
        if (0 != (pkey & 0x8000)) {
            break;
        }
    }
    return found;
}

/* The higher the better; 0 is none. */
static int address_rank(const struct sockaddr *address)
{
    if (NULL != address && AF_INET == address->sa_family) {
        return 2;
    }
    return NULL != address && AF_INET6 == address->sa_family && !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *) address)->sin6_addr);
}

static bool has_hardware_address(const struct ifaddrs *all, const char *interface, const uint8_t *mac)
{
    for (; NULL != all; all = all->ifa_next) {
        const struct sockaddr_ll *link = (const struct sockaddr_ll *) all->ifa_addr;
        if (NULL != link && AF_PACKET == link->sll_family && 0 == strcmp(interface, all->ifa_name) && OFO_MAC_LEN == link->sll_halen
            && 0 == memcmp(link->sll_addr, mac, OFO_MAC_LEN)) {
            return true;
        }
    }
    return false;
}

bool ofo_iwarp_address(const struct ifaddrs *all, const uint8_t *mac, uint8_t *gid)
{
    int best = 0;

    for (const struct ifaddrs *i = all; NULL != i; i = i->ifa_next) {
        const int rank = address_rank(i->ifa_addr);
        if (rank <= best || !has_hardware_address(all, i->ifa_name, mac)) {
            continue;
        }
        best = rank;
        if (AF_INET == i->ifa_addr->sa_family) {
            memcpy(gid, ofo_v4_mapped, sizeof(ofo_v4_mapped));
            memcpy(gid + sizeof(ofo_v4_mapped), &((const struct sockaddr_in *) i->ifa_addr)->sin_addr, 4);
        } else {
            memcpy(gid, &((const struct sockaddr_in6 *) i->ifa_addr)->sin6_addr, 16);
        }
    }
    return 0 < best;
}

const struct ifaddrs *ofo_interface_of(const struct ifaddrs *all, const uint8_t *gid)
{
    const bool v4 = 0 == memcmp(gid, ofo_v4_mapped, sizeof(ofo_v4_mapped));

    for (; NULL != all; all = all->ifa_next) {
        if (NULL == all->ifa_addr || all->ifa_addr->sa_family != (v4 ? AF_INET : AF_INET6)) {
            continue;
        }
        if (v4 ? 0 == memcmp(&((const struct sockaddr_in *) all->ifa_addr)->sin_addr, gid + sizeof(ofo_v4_mapped), 4)
               : 0 == memcmp(&((const struct sockaddr_in6 *) all->ifa_addr)->sin6_addr, gid, 16)) {
            return all;
        }
    }
    return NULL;
}

static unsigned mask_length(const uint8_t *mask, unsigned bytes)
{
    unsigned length = 0;

    while (length < 8 * bytes && (mask[length / 8] & (0x80 >> length % 8))) {
        ++length;
    }
    return length;
}

unsigned ofo_interface_prefix(const struct ifaddrs *interface)
{
    if (NULL == interface->ifa_netmask) {
        return 0;
    }
    return AF_INET == interface->ifa_addr->sa_family
               ? mask_length((const uint8_t *) &((const struct sockaddr_in *) interface->ifa_netmask)->sin_addr, 4)
               : mask_length((const uint8_t *) &((const struct sockaddr_in6 *) interface->ifa_netmask)->sin6_addr, 16);
}

bool ofo_list_has_address(const char *list, const uint8_t *gid)
{
    for (size_t length; '\0' != *list; list += length + (',' == list[length])) {
        char entry[INET6_ADDRSTRLEN + 8], *slash;
        uint8_t net[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
        unsigned bits = 128, base = 0, same = 0;

        length = strcspn(list, ",");
        snprintf(entry, sizeof(entry), "%.*s", (int) (length < sizeof(entry) ? length : sizeof(entry) - 1), list);
        slash = strchr(entry, '/');
        if (NULL != slash) {
            *slash = '\0';
        }
        if (1 == inet_pton(AF_INET, entry, net + 12)) {
            base = 96;
        } else if (1 != inet_pton(AF_INET6, entry, net)) {
            continue;
        }
        if (NULL != slash && base + (unsigned) atoi(slash + 1) < 128) {
            bits = base + (unsigned) atoi(slash + 1);
        }
        while (same < bits && 0 == ((net[same / 8] ^ gid[same / 8]) & (0x80 >> same % 8))) {
            ++same;
        }
        if (same == bits) {
            return true;
        }
    }
    return false;
}

/* The first line of a file of sysfs or configfs. */
static bool read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    bool done = NULL != file && NULL != fgets(line, size, file);

    if (NULL != file) {
        fclose(file);
    }
    return done;
}

uint32_t ofo_sysfs_rate(const char *device, unsigned port)
{
    char path[512], line[64];
    unsigned whole = 0, tenth = 0;

    snprintf(path, sizeof(path), "%.400s/ports/%u/rate", device, port);
    if (!read_line(path, line, sizeof(line)) || 1 > sscanf(line, "%7u.%1u", &whole, &tenth) || 1000000 < whole) {
        return 0;
    }
    return 1000 * whole + 100 * tenth;
}

uint32_t ofo_port_rate(const char *device, unsigned port, const struct ibv_port_attr *attr)
{
    const uint32_t shown = ofo_sysfs_rate(device, port);
    static const uint32_t speed[] = {2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000};
    static const uint32_t width[] = {1, 4, 8, 12, 2};
    unsigned s = 0, w = 0;

    while (s < 7 && attr->active_speed >> (s + 1)) {
        ++s;
    }
    while (w < 4 && attr->active_width >> (w + 1)) {
        ++w;
    }
    return shown > speed[s] * width[w] ? shown : speed[s] * width[w];
}

uint8_t ofo_sysfs_traffic_class(const char *device, unsigned port)
{
    const char *class = strstr(device, "/class/infiniband/");
    char path[512], line[64];
    unsigned value = 0;

    snprintf(path, sizeof(path), "%.400s/tc/%u/traffic_class", device, port);
    if (read_line(path, line, sizeof(line)) && 1 == sscanf(line, "Global tclass=%3u", &value) && 255 >= value) {
        return (uint8_t) value;
    }
    if (NULL == class) {
        return 0;
    }
    snprintf(path, sizeof(path), "%.*s/kernel/config/rdma_cm/%.64s/ports/%u/default_roce_tos", (int) (class - device), device,
             strrchr(device, '/') + 1, port);
    return read_line(path, line, sizeof(line)) && 1 == sscanf(line, "%3u", &value) && 255 >= value ? (uint8_t) value : 0;
}

bool ofo_cores_are_near(hwloc_const_bitmap_t own, hwloc_const_bitmap_t its)
{
    return hwloc_bitmap_iszero(own) || hwloc_bitmap_iszero(its) || hwloc_bitmap_intersects(own, its);
}
