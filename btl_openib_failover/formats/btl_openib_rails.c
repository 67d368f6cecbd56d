/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Pairs ports into rails. In each subnet the ports of each side are sorted by name, then by GUID, and paired i-th with
 * i-th: first those of one name and one subnet manager, then those of one subnet manager, then the rest. The pairs, with
 * their lanes, are sorted by (subnet, port of the lower process, port of the higher process, lane). Ports that were down at
 * the start come after all others, in both steps, so they change no rail of the others. A rail map replaces the pairing, not
 * the order. See DESIGN.txt 10.
 */
#include "formats/btl_openib_rails.h"

#include <stdlib.h>
#include <string.h>

/* A pair as both sides see it: "low" is the process with the lower name. */
typedef struct {
    uint8_t low, high, lane;
} link_t;

typedef struct {
    const ofo_record_t *low, *high;
    link_t link[OFO_MAX_PORTS * OFO_MAX_LANES];
    unsigned count;
    uint8_t low_used[OFO_MAX_PORTS], high_used[OFO_MAX_PORTS];
    unsigned unroutable;
} links_t;

uint64_t ofo_fnv1a(uint64_t hash, const void *data, size_t length)
{
    const uint8_t *byte = data;

    for (size_t i = 0; i < length; ++i) {
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

void ofo_subnet_set_ip(ofo_subnet_t *subnet, const uint8_t *gid, unsigned prefix_len)
{
    static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};
    const bool v4 = 0 == memcmp(gid, v4_mapped, sizeof(v4_mapped));
    const unsigned bytes = v4 ? 4 : 16;

    if (0 == prefix_len || 8 * bytes < prefix_len) {
        prefix_len = v4 ? 24 : 64;
    }
    subnet->type = v4 ? OFO_NET_IPV4 : OFO_NET_IPV6;
    subnet->prefix_len = (uint8_t) prefix_len;
    memcpy(subnet->key, v4 ? gid + 12 : gid, bytes);
    for (unsigned bit = prefix_len; bit < 8 * bytes; ++bit) {
        subnet->key[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
    }
}

static int subnet_compare(const ofo_subnet_t *a, const ofo_subnet_t *b)
{
    if (a->type != b->type) {
        return a->type < b->type ? -1 : 1;
    }
    if (a->prefix_len != b->prefix_len) {
        return a->prefix_len < b->prefix_len ? -1 : 1;
    }
    return memcmp(a->key, b->key, sizeof(a->key));
}

static int port_compare(const ofo_port_t *a, const ofo_port_t *b)
{
    int order = subnet_compare(&a->subnet, &b->subnet);

    if (0 == order) {
        order = strverscmp(a->name, b->name); /* mlx5_2 before mlx5_10 */
    }
    return 0 != order ? order : memcmp(a->guid, b->guid, sizeof(a->guid));
}

/* Sorts the indices of the record's ports by (subnet, name, GUID). Insertion sort keeps equal ports in their order. */
static void sort_ports(const ofo_record_t *record, uint8_t *index)
{
    for (unsigned i = 0; i < record->nports; ++i) {
        unsigned at = i;
        for (; 0 < at && 0 > port_compare(&record->port[i], &record->port[index[at - 1]]); --at) {
            index[at] = index[at - 1];
        }
        index[at] = (uint8_t) i;
    }
}

static bool is_late(const ofo_port_t *a, const ofo_port_t *b)
{
    return 0 != a->is_late || 0 != b->is_late;
}

static int link_is_late(const links_t *links, const link_t *link)
{
    return is_late(&links->low->port[link->low], &links->high->port[link->high]);
}

static int link_compare(const links_t *links, const link_t *a, const link_t *b)
{
    int order = link_is_late(links, a) - link_is_late(links, b);

    if (0 == order) {
        order = port_compare(&links->low->port[a->low], &links->low->port[b->low]);
    }
    if (0 == order) {
        order = port_compare(&links->high->port[a->high], &links->high->port[b->high]);
    }
    return 0 != order ? order : (int) a->lane - (int) b->lane;
}

/* Adds the pair with all its lanes, each at its place in the order. */
static void add_links(links_t *links, unsigned low, unsigned high)
{
    unsigned lanes = links->low->port[low].lanes;

    if (lanes > links->high->port[high].lanes) {
        lanes = links->high->port[high].lanes;
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
        link_t link = {(uint8_t) low, (uint8_t) high, (uint8_t) lane};
        unsigned at = links->count++;
        for (; 0 < at && 0 > link_compare(links, &link, &links->link[at - 1]); --at) {
            links->link[at] = links->link[at - 1];
        }
        links->link[at] = link;
    }
    links->low_used[low] = links->high_used[high] = 1;
}

/* What two ports share. A subnet manager's LID changes when another manager takes over. Then one process has the old LID and the other
 * process the new one. Ports of one name are paired first, so that they are less often taken for ports of different fabrics. */
typedef enum { SHARED_MANAGER_AND_NAME, SHARED_MANAGER, SHARED_SUBNET } shared_t;

static bool do_share(const ofo_port_t *a, const ofo_port_t *b, shared_t what)
{
    return 0 == subnet_compare(&a->subnet, &b->subnet) && (SHARED_SUBNET == what || a->sm_lid == b->sm_lid)
           && (SHARED_MANAGER_AND_NAME != what || 0 == strcmp(a->name, b->name));
}

/* Pairs the i-th port with the i-th among those that share `what` and have no partner yet; without `late` only ports that were up. */
static void pair_by_subnet(links_t *links, shared_t what, bool late)
{
    uint8_t low[OFO_MAX_PORTS], high[OFO_MAX_PORTS];

    sort_ports(links->low, low);
    sort_ports(links->high, high);
    for (unsigned l = 0; l < links->low->nports; ++l) {
        const ofo_port_t *port = &links->low->port[low[l]];
        for (unsigned h = 0; h < links->high->nports && !links->low_used[low[l]]; ++h) {
            const ofo_port_t *other = &links->high->port[high[h]];
            if (!links->high_used[high[h]] && (late || !is_late(port, other)) && do_share(port, other, what)) {
                add_links(links, low[l], high[h]);
            }
        }
    }
}

static int find_port(const ofo_record_t *record, const char *name, size_t length)
{
    for (unsigned i = 0; i < record->nports; ++i) {
        if (strlen(record->port[i].name) == length && 0 == memcmp(record->port[i].name, name, length)) {
            return (int) i;
        }
    }
    return -1;
}

/* InfiniBand packets leave their subnet only by a router, and only with a global route header. */
static bool is_unroutable(const ofo_port_t *a, const ofo_port_t *b)
{
    if (OFO_NET_IB != a->subnet.type && OFO_NET_IB != b->subnet.type) {
        return false;
    }
    return a->subnet.type != b->subnet.type || (0 != memcmp(a->gid, b->gid, 8) && !a->wants_grh && !b->wants_grh);
}

/* Adds the pair of an entry. False if the first name is no port of the lower process or the second none of the higher. */
static bool map_entry(links_t *links, const char *first, size_t first_len, const char *second, size_t second_len)
{
    int low = find_port(links->low, first, first_len), high = find_port(links->high, second, second_len);

    if (0 > low || 0 > high) {
        return false;
    }
    if (is_unroutable(&links->low->port[low], &links->high->port[high])) {
        ++links->unroutable;
    } else if (!links->low_used[low] && !links->high_used[high]) {
        add_links(links, (unsigned) low, (unsigned) high);
    }
    return true;
}

static bool has_inner_dash(const char *entry, size_t length)
{
    return 2 < length && NULL != memchr(entry + 1, '-', length - 2);
}

static bool map_at(links_t *links, const char *entry, size_t first, size_t length)
{
    const char *second = entry + first + 1;
    bool known = map_entry(links, entry, first, second, length - first - 1);

    return map_entry(links, second, length - first - 1, entry, first) || known;
}

/* Each entry "A-B" pairs port A of one process with port B of the other, in both directions. No side is "local" here, so that
 * both sides get the same list from one parameter. A name may contain a '-' itself. */
static int pair_by_map(links_t *links, const char *map)
{
    while ('\0' != *map) {
        size_t length = strcspn(map, ",");
        if (!has_inner_dash(map, length)) {
            return -1;
        }
        for (size_t first = 1; first + 1 < length; ++first) {
            if ('-' == map[first] && map_at(links, map, first, length)) {
                break;
            }
        }
        map += length + (',' == map[length]);
    }
    return 0;
}

static uint64_t hash_links(const links_t *links, unsigned count)
{
    uint64_t hash = OFO_FNV_START;

    for (unsigned i = 0; i < count; ++i) {
        const ofo_port_t *low = &links->low->port[links->link[i].low];
        const ofo_port_t *high = &links->high->port[links->link[i].high];
        uint8_t net[2] = {low->subnet.type, low->subnet.prefix_len};
        hash = ofo_fnv1a(hash, net, sizeof(net));
        hash = ofo_fnv1a(hash, low->subnet.key, sizeof(low->subnet.key));
        hash = ofo_fnv1a(hash, low->guid, sizeof(low->guid));
        hash = ofo_fnv1a(hash, high->guid, sizeof(high->guid));
        hash = ofo_fnv1a(hash, &links->link[i].lane, 1);
    }
    return hash;
}

/* A late port without a partner is missed by nobody. */
static unsigned count_unused(const uint8_t *used, const ofo_record_t *record)
{
    unsigned unused = 0;

    for (unsigned i = 0; i < record->nports; ++i) {
        unused += !used[i] && !record->port[i].is_late;
    }
    return unused;
}

void ofo_subnet_add_fabric(ofo_subnet_t *subnet, const char *list, const char *port)
{
    const size_t name = strlen(port);

    for (size_t length; NULL != list && '\0' != *list; list += length + (',' == list[length])) {
        length = strcspn(list, ",");
        if (name < length && 0 == memcmp(list, port, name) && '=' == list[name]) {
            const uint64_t hash = ofo_fnv1a(OFO_FNV_START, list + name + 1, length - name - 1);
            for (unsigned i = 0; i < 8; ++i) {
                subnet->key[8 + i] ^= (uint8_t) (hash >> 8 * i);
            }
            return;
        }
    }
}

/* Length of the port's name in the entry; 0 if the entry is no "device:port=name". */
static size_t port_length(const char *entry, size_t length)
{
    const char *is = memchr(entry, '=', length);

    return NULL != is && entry + length > is + 1 ? (size_t) (is - entry) : 0;
}

bool ofo_fabrics_are_well(const char *list)
{
    for (size_t length; NULL != list && '\0' != *list; list += length + (',' == list[length])) {
        length = strcspn(list, ",");
        if (0 == port_length(list, length)) {
            return false;
        }
    }
    return true;
}

const char *ofo_fabrics_stray(const char *list, const ofo_record_t *record)
{
    for (size_t length; NULL != list && '\0' != *list; list += length + (',' == list[length])) {
        length = strcspn(list, ",");
        if (0 > find_port(record, list, port_length(list, length))) {
            return list;
        }
    }
    return NULL;
}

static bool are_alike(const ofo_port_t *a, const ofo_port_t *b)
{
    return OFO_NET_IB == a->subnet.type && do_share(a, b, SHARED_MANAGER);
}

static bool pair_is_late(const ofo_record_t *own, const ofo_record_t *peer, const ofo_pair_t *pair)
{
    return is_late(&own->port[pair->local], &peer->port[pair->remote]);
}

uint16_t ofo_rails_choices(const ofo_record_t *own, const ofo_record_t *peer, const ofo_rails_t *rails, unsigned rail)
{
    const ofo_pair_t *pair = &rails->pair[rail];
    uint16_t choices = 0;

    for (unsigned i = 0; i < rails->count && !pair_is_late(own, peer, pair); ++i) {
        const ofo_pair_t *other = &rails->pair[i];
        if (!pair_is_late(own, peer, other) && other->lane == pair->lane && are_alike(&own->port[other->local], &own->port[pair->local])
            && are_alike(&peer->port[other->remote], &peer->port[pair->remote])) {
            choices |= (uint16_t) (1u << other->remote);
        }
    }
    return 0 == (choices & (choices - 1)) ? 0 : choices;
}

int ofo_rails_pair(const ofo_record_t *own, const ofo_record_t *peer, bool own_is_lower, const char *map, ofo_rails_t *rails)
{
    links_t links = {.low = own_is_lower ? own : peer, .high = own_is_lower ? peer : own};

    memset(rails, 0, sizeof(*rails));
    if (NULL == map || '\0' == *map) {
        for (int late = 0; late <= 1; ++late) {
            pair_by_subnet(&links, SHARED_MANAGER_AND_NAME, late);
            pair_by_subnet(&links, SHARED_MANAGER, late);
            pair_by_subnet(&links, SHARED_SUBNET, late);
        }
    } else if (0 != pair_by_map(&links, map)) {
        return -1;
    }
    rails->count = links.count < OFO_MAX_RAILS ? links.count : OFO_MAX_RAILS;
    for (unsigned i = 0; i < rails->count; ++i) {
        rails->pair[i].local = own_is_lower ? links.link[i].low : links.link[i].high;
        rails->pair[i].remote = own_is_lower ? links.link[i].high : links.link[i].low;
        rails->pair[i].lane = links.link[i].lane;
    }
    rails->unroutable = links.unroutable;
    rails->hash = hash_links(&links, rails->count);
    rails->unused_local = count_unused(own_is_lower ? links.low_used : links.high_used, own);
    rails->unused_remote = count_unused(own_is_lower ? links.high_used : links.low_used, peer);
    return 0;
}
