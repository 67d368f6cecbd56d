/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Chooses the ports that are used and describes each for the modex: link layer, GID, subnet, rate. See DESIGN.txt 15.
 */
#include "door/btl_openib_port.h"

#include "device/btl_openib_address.h"
#include "formats/btl_openib_choice.h"
#include "connect/btl_openib_connect_rdmacm.h"
#include "device/btl_openib_device.h"
#include "types/btl_openib_log.h"
#include "door/btl_openib_module.h"
#include "door/btl_openib_params.h"
#include "formats/btl_openib_rails.h"
#include "formats/btl_openib_wire.h"

#include "bfo_help.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/hwloc/base/base.h"

#include <arpa/inet.h>
#include <hwloc/openfabrics-verbs.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    unsigned devices;  /* devices seen */
    unsigned usable;   /* devices opened, or left out by a parameter */
    unsigned matched;  /* ports that passed if_include and if_exclude */
    unsigned active;   /* matched ports that are active */
    unsigned unwanted; /* devices and ports that another parameter leaves out */
    unsigned waiting;  /* matched ports that are down and are to join the job later */
    bool late;         /* looks for these ports */
    bool is_told;      /* the user has got a message why there is no port */
    const char *why;   /* why the last device could not be opened; constant text, or NULL */
} survey_t;

/* Makes the key of a text about a port, so that the text appears once for each port. The result is valid until the next call. Context:
 * set-up. */
static const char *key_of(const char *place, const char *port)
{
    static char key[128];

    snprintf(key, sizeof(key), "%s %s", place, port);
    return key;
}

/* ---- selection ---------------------------------------------------------------------------------- */

static bool is_given(const char *list)
{
    return NULL != list && '\0' != *list;
}

static bool is_wanted(const char *device, unsigned port)
{
    if (is_given(OFO.params.if_include)) {
        return ofo_list_names(OFO.params.if_include, device, port);
    }
    return !is_given(OFO.params.if_exclude) || !ofo_list_names(OFO.params.if_exclude, device, port);
}

/* May a port of the device pass is_wanted()? The device is not open yet, so its ports are not known. */
static bool device_may_be_wanted(const char *device)
{
    const char *list = OFO.params.if_include;
    const size_t length = strlen(device);

    if (!is_given(list)) {
        return !is_given(OFO.params.if_exclude) || !ofo_list_names(OFO.params.if_exclude, device, 0);
    }
    for (; '\0' != *list; list += strcspn(list, ","), list += ',' == *list) {
        if (length == strcspn(list, ",:") && 0 == strncmp(list, device, length)) {
            return true;
        }
    }
    return false;
}

/* Do the lists of networks want the port? An InfiniBand port has no IP address; a list of wanted networks leaves it out. */
static bool address_is_wanted(const ofo_port_t *port)
{
    bool ip = OFO_NET_IB != port->subnet.type;

    if (is_given(OFO.params.ipaddr_include)) {
        return ip && ofo_list_has_address(OFO.params.ipaddr_include, port->gid);
    }
    return !is_given(OFO.params.ipaddr_exclude) || !ip || !ofo_list_has_address(OFO.params.ipaddr_exclude, port->gid);
}

static bool type_is_wanted(const struct ibv_device *verbs)
{
    return ofo_transport_is_wanted(ofo_transport_of(verbs), OFO.params.device_type);
}

/* Finds the index of the user's partition key, or of the first one if the user names none. */
static bool find_pkey(const ofo_device_t *device, unsigned number, const struct ibv_port_attr *attr, uint16_t *index)
{
    if (!device->transport->has_partitions) {
        return true;
    }
    *index = (uint16_t) OFO.params.ib_pkey_index;
    if (0 != OFO.params.ib_pkey_index && 0 == OFO.params.pkey) {
        return OFO.params.ib_pkey_index < attr->pkey_tbl_len;
    }
    return ofo_pkey_find(device->context, number, attr->pkey_tbl_len, OFO.params.pkey, index) || (0 == OFO.params.pkey && 0 < attr->pkey_tbl_len);
}

/* ---- ports that are down ------------------------------------------------------------------------ */

/* Does if_include name the very port? */
static bool is_named(const ofo_device_t *device, unsigned number)
{
    return is_given(OFO.params.if_include) && ofo_list_names_port(OFO.params.if_include, device->name, number, device->attr.phys_port_cnt);
}

/* Is a port that is down to join the job when it comes up? Its rails then join as rails join again that were lost. Something must tell that
 * the port has a cable: the user, who names it, or the address that it has on a fabric. */
static bool may_be_late(const ofo_device_t *device, unsigned number, const struct ibv_port_attr *attr)
{
    const bool is_ethernet = IBV_LINK_LAYER_ETHERNET == attr->link_layer;
    struct ibv_gid_entry entry = {.gid_index = 0};

    if (is_named(device, number)) {
        return true;
    }
    return (!is_ethernet || ofo_port_choose_gid(device->context, number, attr->gid_tbl_len, &entry)) && ofo_port_has_address(attr, entry.gid.raw);
}

/* The rate of the fastest port of those that are known so far. */
static uint32_t fastest_rate(void)
{
    uint32_t fastest = 0;

    for (unsigned i = 0; i < OFO.record.nports; ++i) {
        fastest = OFO.record.port[i].rate > fastest ? OFO.record.port[i].rate : fastest;
    }
    return fastest;
}

/* ---- locality ----------------------------------------------------------------------------------- */

static bool is_near(struct ibv_device *verbs)
{
    hwloc_bitmap_t own, its;
    bool near = true;

    if (is_given(OFO.params.test_far_devices)) {
        return !ofo_list_names(OFO.params.test_far_devices, ibv_get_device_name(verbs), 1);
    }
    if (OPAL_SUCCESS != opal_hwloc_base_get_topology() || NULL == opal_hwloc_topology) {
        return true;
    }
    own = hwloc_bitmap_alloc();
    its = hwloc_bitmap_alloc();
    if (NULL != own && NULL != its && 0 == hwloc_get_cpubind(opal_hwloc_topology, own, HWLOC_CPUBIND_PROCESS)
        && 0 == hwloc_ibv_get_device_cpuset(opal_hwloc_topology, verbs, its)) {
        near = ofo_cores_are_near(own, its);
    }
    hwloc_bitmap_free(own);
    hwloc_bitmap_free(its);
    return near;
}

/* ---- GIDs and subnets --------------------------------------------------------------------------- */

/* Describes a port without GIDs by the network interface whose hardware address the port gives in their place. librdmacm finds the device in the
 * same way. */
static bool describe_interface(const ofo_device_t *device, unsigned number, ofo_port_t *port, ofo_module_t *module)
{
    struct ifaddrs *all = NULL;
    union ibv_gid gid;
    bool found;

    if (0 != ibv_query_gid(device->context, (uint8_t) number, 0, &gid) || 0 != getifaddrs(&all)) {
        return false;
    }
    found = ofo_iwarp_address(all, gid.raw, port->gid);
    freeifaddrs(all);
    if (!found) {
        bfo_help_say_once(key_of(__func__, module->name), OFO_HELP_FILE, "no address", module->name, gid.raw[0], gid.raw[1], gid.raw[2], gid.raw[3],
                          gid.raw[4], gid.raw[5]);
        return false;
    }
    ofo_port_set_subnet(port->gid, &port->subnet);
    port->subnet.type += OFO_NET_IWARP;
    module->on_interface = true;
    memcpy(port->guid, port->gid, sizeof(port->guid));
    return true;
}

static bool describe_address(const ofo_device_t *device, unsigned number, const struct ibv_port_attr *attr, ofo_port_t *port, ofo_module_t *module)
{
    struct ibv_gid_entry entry = {.gid_index = 0};

    if (!device->transport->has_gids) {
        return describe_interface(device, number, port, module);
    }
    module->use_grh = true;
    if (IBV_LINK_LAYER_ETHERNET == attr->link_layer) {
        if (!ofo_port_choose_gid(device->context, number, attr->gid_tbl_len, &entry)) {
            bfo_help_say_once(key_of(__func__, module->name), OFO_HELP_FILE, "no gid", module->name, OFO.params.gid_index);
            return false;
        }
        ofo_port_set_subnet(entry.gid.raw, &port->subnet);
        module->on_interface = ofo_interface_look(entry.gid.raw).is_up;
        memcpy(port->guid, entry.gid.raw, sizeof(port->guid));
    } else {
        unsigned index = 0 <= OFO.params.gid_index ? (unsigned) OFO.params.gid_index : 0;
        if (0 != ibv_query_gid(device->context, (uint8_t) number, (int) index, &entry.gid)) {
            return false;
        }
        entry.gid_index = index;
        module->use_grh = 0 == attr->lid || 0 != (attr->flags & IBV_QPF_GRH_REQUIRED);
        port->wants_grh = module->use_grh;
        port->subnet.type = OFO_NET_IB;
        port->subnet.prefix_len = 64;
        memcpy(port->subnet.key, entry.gid.raw, 8);
        memcpy(port->guid, entry.gid.raw + 8, 8);
    }
    memcpy(port->gid, entry.gid.raw, sizeof(port->gid));
    module->gid_index = (uint8_t) entry.gid_index;
    return true;
}

/* The user's traffic class, or else the one that the port is configured for. */
static uint8_t traffic_class(const ofo_device_t *device, unsigned number, const struct ibv_port_attr *attr)
{
    if (0 <= OFO.params.ib_traffic_class) {
        return (uint8_t) OFO.params.ib_traffic_class;
    }
    return IBV_LINK_LAYER_ETHERNET == attr->link_layer ? ofo_sysfs_traffic_class(device->context->device->ibdev_path, number) : 0;
}

/* ---- opening ------------------------------------------------------------------------------------ */

static bool add_lane(ofo_device_t *device, const ofo_module_t *model, ofo_port_t *port, unsigned lane)
{
    ofo_module_t *module = malloc(sizeof(*module));

    if (NULL == module) {
        return false;
    }
    BFO_ASSERT(OFO.module_count < OFO_MAX_MODULES && lane == port->lanes);
    *module = *model;
    module->lane = (uint8_t) lane;
    module->owns_async = 0 == device->users;
    if (OPAL_SUCCESS != ofo_module_init(module)) {
        ofo_module_destroy(module);
        return false;
    }
    ++device->users;
    port->contact[lane] = module->contact;
    port->qkey = module->ud.qkey;
    port->cpc = OFO.cpc->type;
    port->lanes = (uint8_t) (lane + 1);
    OFO.module[OFO.module_count++] = module;
    return true;
}

/* A port that is down may have no size of packets yet; the peer refuses a record with a size that does not exist. */
static uint8_t known_mtu(enum ibv_mtu mtu)
{
    return IBV_MTU_256 <= mtu && IBV_MTU_4096 >= mtu ? (uint8_t) mtu : (uint8_t) IBV_MTU_1024;
}

/* Writes what peers need to know of the port, except its address. A port without a link shows some low rate. */
static void describe_port(const ofo_module_t *model, bool late, ofo_port_t *port)
{
    const ofo_device_t *device = model->device;
    const struct ibv_port_attr *attr = &model->port_attr;

    memcpy(port->name, model->name, sizeof(port->name));
    ofo_subnet_add_fabric(&port->subnet, OFO.params.fabrics, port->name);
    port->lid = attr->lid;
    port->sm_lid = attr->sm_lid;
    port->mtu = known_mtu(attr->active_mtu);
    port->is_late = late;
    port->rate = model->port_up ? ofo_port_rate(device->context->device->ibdev_path, model->port_num, attr) : fastest_rate();
    port->proof_at = (uintptr_t) device->proof;
    port->proof_key = device->proof_mr->rkey;
}

static void add_port(ofo_device_t *device, unsigned number, const struct ibv_port_attr *attr, const mca_btl_base_module_t *defaults, survey_t *survey)
{
    ofo_port_t *port = &OFO.record.port[OFO.record.nports];
    ofo_module_t model = {.super = *defaults, .device = device, .transport = device->transport, .port_num = (uint8_t) number, .port_attr = *attr};
    bool near;

    BFO_ASSERT(OFO.record.nports < OFO_MAX_PORTS); /* there_is_room() was asked */
    memset(port, 0, sizeof(*port));
    model.port_up = IBV_PORT_ACTIVE == attr->state;
    ofo_port_name(device->name, number, model.name);
    if (!describe_address(device, number, attr, port, &model)) {
        return;
    }
    if (!address_is_wanted(port)) {
        ++survey->unwanted;
        return;
    }
    if (!find_pkey(device, number, attr, &model.pkey_index)) {
        if (!survey->late || is_named(device, number)) {
            bfo_help_say_once(key_of(__func__, model.name), OFO_HELP_FILE, "no pkey", model.name, OFO.params.pkey, OFO.params.ib_pkey_index);
        }
        return;
    }
    describe_port(&model, survey->late, port);
    model.tells_late = !model.port_up && is_named(device, number);
    model.down_why = "the port is down";
    model.wake_fd = -1;
    model.traffic_class = traffic_class(device, number, attr);
    model.port_index = OFO.record.nports;
    model.max_message = 0 < attr->max_msg_sz ? attr->max_msg_sz : 1u << 20;
    if (0 < OFO.params.max_hw_msg_size && OFO.params.max_hw_msg_size < model.max_message) {
        model.max_message = OFO.params.max_hw_msg_size;
    }
    near = OFO.params.ignore_locality || is_near(device->context->device);
    if (!near) {
        ++model.super.btl_latency;
    }
    if (0 == model.super.btl_bandwidth) {
        model.super.btl_bandwidth = port->rate / OFO.params.lanes;
    }
    ofo_log(1, "%s: %s, gid index %u, prefix %u, pkey index %u, %s%s", model.name,
            device->transport->delivers && IBV_LINK_LAYER_ETHERNET == attr->link_layer ? "ethernet" : device->transport->type, model.gid_index,
            port->subnet.prefix_len, model.pkey_index, near ? "near" : "far", model.port_up ? "" : ", down");
    for (unsigned lane = 0; lane < OFO.params.lanes; ++lane) {
        if (!add_lane(device, &model, port, lane)) {
            break;
        }
    }
    if (0 < port->lanes) {
        ++OFO.record.nports;
    }
}

static bool there_is_room(void)
{
    return OFO_MAX_PORTS > OFO.record.nports && (0 == OFO.params.max_btls || OFO.params.max_btls > OFO.record.nports);
}

static bool is_taken(const ofo_device_t *device, unsigned number)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        if (device == OFO.module[i]->device && number == OFO.module[i]->port_num) {
            return true;
        }
    }
    return false;
}

/* May the port be taken in now? The second look takes a port too that came up after the first look. */
static bool is_ready(const ofo_device_t *device, unsigned number, const struct ibv_port_attr *attr, survey_t *survey)
{
    const bool is_active = IBV_PORT_ACTIVE == attr->state;

    if (survey->late) {
        return !is_taken(device, number) && may_be_late(device, number, attr);
    }
    survey->active += is_active;
    survey->waiting += !is_active && may_be_late(device, number, attr);
    return is_active;
}

static void look_at_port(ofo_device_t *device, unsigned number, const mca_btl_base_module_t *defaults, survey_t *survey)
{
    struct ibv_port_attr attr;

    if (!there_is_room() || !is_wanted(device->name, number) || 0 != ibv_query_port(device->context, (uint8_t) number, &attr)
        || (IBV_LINK_LAYER_ETHERNET != attr.link_layer && !OFO.params.allow_ib)) {
        return;
    }
    ++survey->matched;
    if (is_ready(device, number, &attr, survey)) {
        add_port(device, number, &attr, defaults, survey);
    }
}

static ofo_device_t *opened_device(const char *name)
{
    for (unsigned i = 0; i < OFO.device_count; ++i) {
        if (0 == strcmp(OFO.device[i]->name, name)) {
            return OFO.device[i];
        }
    }
    return NULL;
}

static void look_at_device(struct ibv_device *verbs, const mca_btl_base_module_t *defaults, survey_t *survey)
{
    ofo_device_t *device;

    ++survey->devices;
    if (!type_is_wanted(verbs)) {
        ++survey->unwanted;
        ++survey->usable;
        return;
    }
    if (!device_may_be_wanted(ibv_get_device_name(verbs))) {
        ++survey->usable;
        return;
    }
    if (!there_is_room()) {
        return;
    }
    device = opened_device(ibv_get_device_name(verbs));
    if (NULL == device) {
        device = ofo_device_open(verbs, &survey->why);
    }
    if (NULL == device) {
        ofo_log(1, "%s: %s", ibv_get_device_name(verbs), survey->why);
        return;
    }
    ++survey->usable;
    for (unsigned port = 1; port <= device->attr.phys_port_cnt; ++port) {
        look_at_port(device, port, defaults, survey);
    }
    if (0 == device->users) {
        ofo_device_close(device);
    } else if (NULL == opened_device(device->name)) {
        BFO_ASSERT(OFO.device_count < OFO.record.nports); /* each device has a port, and no two devices share a port */
        OFO.device[OFO.device_count++] = device;
    }
}

/* Warns about each name of an interface list that fits no device. */
static void warn_about_names(struct ibv_device **list, int count, const char *parameter, const char *names)
{
    while (OFO.params.warn_no_device && NULL != names && '\0' != *names) {
        size_t length = strcspn(names, ","), name = strcspn(names, ",:");
        bool found = false;
        for (int i = 0; i < count && !found; ++i) {
            const char *device = ibv_get_device_name(list[i]);
            found = strlen(device) == name && 0 == strncmp(device, names, name);
        }
        if (!found) {
            char text[64];
            snprintf(text, sizeof(text), "%.*s", (int) length, names);
            bfo_help_say(OFO_HELP_FILE, "no such device", parameter, text);
        }
        names += length + (',' == names[length]);
    }
}

/* Did the user ask for this BTL by name? Only then the user gets a message if there is no device. */
static bool was_asked_for(void)
{
    int index = mca_base_var_find("opal", "btl", NULL, NULL);
    const char **value = NULL;

    return 0 <= index && OPAL_SUCCESS == mca_base_var_get_value(index, (void *) &value, NULL, NULL) && NULL != value && NULL != *value
           && '^' != **value && NULL != strstr(*value, "openib");
}

static const char *text_of(const char *list)
{
    return is_given(list) ? list : "(not given)";
}

static void say_why_none(const survey_t *survey)
{
    const char *include = text_of(OFO.params.if_include), *exclude = text_of(OFO.params.if_exclude);

    if (0 == survey->devices || 0 == survey->usable) {
        if (was_asked_for()) {
            bfo_help_say(OFO_HELP_FILE, "no device", survey->devices, NULL == survey->why ? "there is none" : survey->why);
        }
    } else if (0 == survey->matched || 0 < survey->unwanted) {
        bfo_help_say(OFO_HELP_FILE, "no matching port", include, exclude, text_of(OFO.params.ipaddr_include), text_of(OFO.params.ipaddr_exclude),
                     OFO.params.device_type);
    } else if (0 == survey->active) {
        bfo_help_say(OFO_HELP_FILE, "no active port", survey->matched);
    }
}

/* Small messages go over the ports of the lowest latency. A port's latency rises by one for each time that its rate must double to reach
 * the fastest port. */
static void rank_by_rate(void)
{
    const uint32_t fastest = fastest_rate();

    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_module_t *module = OFO.module[i];
        BFO_ASSERT(0 < OFO.record.port[module->port_index].rate); /* a rate of 0 would never reach the fastest */
        for (uint32_t rate = OFO.record.port[module->port_index].rate; rate <= fastest / 2; rate *= 2) {
            ++module->super.btl_latency;
        }
        ofo_log(1, "%s: lane %u, %u Mbit/s, latency %u", module->name, module->lane, module->super.btl_bandwidth, module->super.btl_latency);
    }
}

static void look_at_devices(struct ibv_device **list, int count, bool delivers, const mca_btl_base_module_t *defaults, survey_t *survey)
{
    for (int i = 0; NULL != list && i < count; ++i) {
        if (delivers == ofo_transport_of(list[i])->delivers) {
            look_at_device(list[i], defaults, survey);
        }
    }
}

/* Opens ports without failover, but only if no other port is open: beside them the rails of other ports would lose failover. */
static void look_without_failover(struct ibv_device **list, int count, const mca_btl_base_module_t *defaults, survey_t *survey)
{
    bool any = false;

    for (int i = 0; i < count; ++i) {
        any |= !ofo_transport_of(list[i])->delivers && type_is_wanted(list[i]);
    }
    if (any && !ofo_params_allow_rdmacm()) {
        bfo_help_say(OFO_HELP_FILE, "iwarp without rdmacm", text_of(OFO.params.cpc_include), text_of(OFO.params.cpc_exclude));
        survey->is_told = true;
        return;
    }
    if (any) {
        OFO.cpc = &ofo_cpc_rdmacm;
        OFO.params.completion_interval = 1; /* messages that are not reported yet would look lost when the peer leaves */
    }
    look_at_devices(list, count, false, defaults, survey);
}

int ofo_ports_open(mca_btl_base_module_t *defaults)
{
    survey_t survey = {.late = false}, late = {.late = true};
    int count = 0;
    struct ibv_device **list;

    unsetenv("MLX5_SINGLE_THREADED"); /* libmlx5 would leave out the locks that service and progress need */
    list = ibv_get_device_list(&count);

    look_at_devices(list, count, true, defaults, &survey);
    if (0 < OFO.module_count && 0 < survey.waiting) {
        look_at_devices(list, count, true, defaults, &late);
    }
    if (NULL != list && 0 == OFO.module_count) {
        look_without_failover(list, count, defaults, &survey);
    }
    if (NULL != list) {
        warn_about_names(list, count, "btl_openib_if_include", OFO.params.if_include);
        warn_about_names(list, count, "btl_openib_if_exclude", OFO.params.if_exclude);
        ibv_free_device_list(list);
    }
    rank_by_rate();
    if (0 == OFO.module_count && !survey.is_told) {
        say_why_none(&survey);
    }
    return (int) OFO.module_count;
}
