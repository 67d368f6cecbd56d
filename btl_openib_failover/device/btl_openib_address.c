/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The address of a port. A RoCE GID is found by its value and type, because its index may change when addresses come or go. See
 * DESIGN.txt 15.2.
 */
#include "device/btl_openib_address.h"

#include "formats/btl_openib_choice.h"
#include "formats/btl_openib_rails.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

bool ofo_port_choose_gid(struct ibv_context *context, unsigned port, int table_len, struct ibv_gid_entry *best)
{
    struct ifaddrs *all;
    bool found;

    if (0 <= OFO.params.gid_index) {
        return 0 == ibv_query_gid_ex(context, port, (uint32_t) OFO.params.gid_index, best, 0) && !ofo_gid_is_empty(best->gid.raw);
    }
    if (0 != getifaddrs(&all)) {
        all = NULL;
    }
    found = ofo_gid_choose(context, port, table_len, all, best);
    freeifaddrs(all);
    return found;
}

bool ofo_port_find_gid(ofo_module_t *module, const uint8_t *gid)
{
    const bool is_roce = module->use_grh && IBV_LINK_LAYER_ETHERNET == module->port_attr.link_layer;
    const int given = OFO.params.gid_index;
    struct ibv_gid_entry entry;

    if (0 <= given && 0 == ibv_query_gid_ex(module->device->context, module->port_num, (uint32_t) given, &entry, 0)
        && 0 == memcmp(entry.gid.raw, gid, sizeof(entry.gid.raw))) {
        module->gid_index = (uint8_t) given;
        return true;
    }
    return ofo_gid_find(module->device->context, module->port_num, module->port_attr.gid_tbl_len, gid, is_roce && 0 > given, &module->gid_index);
}

ofo_interface_t ofo_interface_look(const uint8_t *gid)
{
    ofo_interface_t interface = {.prefix_len = 0};
    const struct ifaddrs *found;
    struct ifaddrs *all;

    if (0 != getifaddrs(&all)) {
        return interface;
    }
    found = ofo_interface_of(all, gid);
    if (NULL != found) {
        interface.is_up = 0 != (found->ifa_flags & IFF_UP);
        interface.prefix_len = ofo_interface_prefix(found);
    }
    freeifaddrs(all);
    return interface;
}

void ofo_port_set_subnet(const uint8_t *gid, ofo_subnet_t *subnet)
{
    const unsigned given = OFO.params.gid_prefix_len;

    ofo_subnet_set_ip(subnet, gid, 0 == given ? ofo_interface_look(gid).prefix_len : given);
}

/* The rails keep their names and partners, which follow from the GUID and the subnet. */
bool ofo_port_take_gid(ofo_module_t *module)
{
    ofo_port_t *port = &OFO.record.port[module->port_index];
    ofo_subnet_t subnet = {.type = 0};
    struct ibv_gid_entry entry;

    if (IBV_LINK_LAYER_ETHERNET != module->port_attr.link_layer || OFO_CPC_UD != OFO.cpc->type
        || !ofo_port_choose_gid(module->device->context, module->port_num, module->port_attr.gid_tbl_len, &entry)) {
        return false;
    }
    ofo_port_set_subnet(entry.gid.raw, &subnet);
    ofo_subnet_add_fabric(&subnet, OFO.params.fabrics, port->name);
    if (0 != memcmp(&subnet, &port->subnet, sizeof(subnet))) {
        return false;
    }
    memcpy(port->gid, entry.gid.raw, sizeof(port->gid));
    module->gid_index = (uint8_t) entry.gid_index;
    return true;
}

bool ofo_port_lost_interface(const ofo_module_t *module)
{
    return module->on_interface && !ofo_interface_look(OFO.record.port[module->port_index].gid).is_up;
}
