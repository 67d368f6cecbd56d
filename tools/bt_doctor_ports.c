/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo doctor: the ports that libibverbs shows, and whether the BTL openib would use them; locked memory; librdmacm; what the loss of
 * each port means. Choices are made by the BTL's own functions. DESIGN.txt section 19.5.
 */
#include "bt_doctor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "formats/btl_openib_choice.h"
#include "formats/btl_openib_rails.h"
#include "formats/btl_openib_wire.h"
#include "types/btl_openib_transport.h"

#define PORTS "ports"

/* Why a port is not used. `is_wish`: a parameter says so. */
typedef struct {
    const char *why, *remedy;
    bool is_wish;
} objection_t;

typedef struct {
    bt_doctor_t *doctor;
    struct ifaddrs *all;
    struct ibv_device *verbs;
    struct ibv_context *context;
    bool is_iwarp, has_iwarp;
    unsigned ports; /* of the device */
    long used, most;
} scan_t;

/* ---- one port ------------------------------------------------------------------------------------------------ */

static const char *name_of(const json_t *port)
{
    return json_string_value(json_object_get(port, "port"));
}

static bool is_used(const json_t *port)
{
    return json_is_true(json_object_get(port, "used"));
}

/* Is this parameter, a list, set and not empty? */
static bool has_list(const scan_t *scan, const char *name, char room[BT_VALUE])
{
    return '\0' != *bt_info_btl(&scan->doctor->info, name, room);
}

static bool is_left_out(const scan_t *scan, unsigned number)
{
    const char *device = ibv_get_device_name(scan->verbs);
    char list[BT_VALUE];

    if (has_list(scan, "if_include", list)) {
        return !ofo_list_names(list, device, number);
    }
    return has_list(scan, "if_exclude", list) && ofo_list_names(list, device, number);
}

/* Does btl_openib_if_include name the very port? */
static bool is_named(const scan_t *scan, unsigned number)
{
    char list[BT_VALUE];

    return has_list(scan, "if_include", list) && ofo_list_names_port(list, ibv_get_device_name(scan->verbs), number, scan->ports);
}

static bool is_unwanted(const scan_t *scan, const struct ibv_port_attr *attr)
{
    char room[BT_VALUE];
    const char *type = bt_info_btl(&scan->doctor->info, "device_type", room);

    if ('\0' != *type && !ofo_transport_is_wanted(ofo_transport_of(scan->verbs), type)) {
        return true;
    }
    return IBV_LINK_LAYER_ETHERNET != attr->link_layer && 0 == strcmp("false", bt_info_btl(&scan->doctor->info, "allow_ib", room));
}

static bool address_is_left_out(const scan_t *scan, bool is_ip, const uint8_t *gid)
{
    char list[BT_VALUE];

    if (has_list(scan, "ipaddr_include", list)) {
        return !is_ip || !ofo_list_has_address(list, gid);
    }
    return has_list(scan, "ipaddr_exclude", list) && is_ip && ofo_list_has_address(list, gid);
}

static bool find_gid(const scan_t *scan, unsigned number, const struct ibv_port_attr *attr, struct ibv_gid_entry *entry)
{
    const long given = bt_info_btl_number(&scan->doctor->info, "gid_index", -1);
    const bool is_roce = IBV_LINK_LAYER_ETHERNET == attr->link_layer;

    union ibv_gid mac;

    if (scan->is_iwarp) {
        return 0 == ibv_query_gid(scan->context, (uint8_t) number, 0, &mac) && ofo_iwarp_address(scan->all, mac.raw, entry->gid.raw);
    }
    if (is_roce && 0 > given) {
        return ofo_gid_choose(scan->context, number, attr->gid_tbl_len, scan->all, entry);
    }
    entry->gid_index = 0 <= given && OFO_GID_INDEX_MAX >= given ? (uint32_t) given : 0;
    return 0 == ibv_query_gid(scan->context, (uint8_t) number, (int) entry->gid_index, &entry->gid) && !ofo_gid_is_empty(entry->gid.raw);
}

static bool find_pkey(const scan_t *scan, unsigned number, const struct ibv_port_attr *attr, unsigned *pkey)
{
    const long wanted = bt_info_btl_number(&scan->doctor->info, "pkey", 0), given = bt_info_btl_number(&scan->doctor->info, "ib_pkey_index", 0);
    uint16_t index = (uint16_t) given;
    __be16 entry;

    if ((0 == given || 0 != wanted) && !ofo_pkey_find(scan->context, number, attr->pkey_tbl_len, (unsigned) wanted, &index)
        && (0 != wanted || 0 == attr->pkey_tbl_len)) {
        return false;
    }
    if (index >= attr->pkey_tbl_len || 0 != ibv_query_pkey(scan->context, (uint8_t) number, index, &entry)) {
        return false;
    }
    *pkey = ntohs(entry);
    return true;
}

/* Does a job take in a port that is down when the port comes up? See DESIGN.txt 15.2, "A port that is down". */
static bool may_be_late(const scan_t *scan, unsigned number, const struct ibv_port_attr *attr)
{
    const bool is_ethernet = IBV_LINK_LAYER_ETHERNET == attr->link_layer;
    struct ibv_gid_entry entry = {.gid_index = 0};
    char rejoin[BT_VALUE];

    if (scan->is_iwarp || 0 == strcmp("false", bt_info_value(&scan->doctor->info, "pml", "bfo", "rejoin", rejoin))) {
        return false;
    }
    return is_named(scan, number) || ((!is_ethernet || find_gid(scan, number, attr, &entry)) && ofo_port_has_address(attr, entry.gid.raw));
}

/* Why the BTL does not use the port; NULL if it does. Adds the facts to `port`. */
static const objection_t *objection_to(scan_t *scan, unsigned number, const struct ibv_port_attr *attr, json_t *port)
{
    static const objection_t left_out = {"btl_openib_if_include or btl_openib_if_exclude leaves it out", NULL, true},
                             unwanted = {"btl_openib_device_type or btl_openib_allow_ib leaves it out", NULL, true},
                             network = {"btl_openib_ipaddr_include or btl_openib_ipaddr_exclude leaves it out", NULL, true},
                             too_many = {"there are more ports than btl_openib_max_btls, or 16", NULL, true},
                             is_down = {"it is not active", "cable, switch port; on RoCE also: ip link set INTERFACE up", false},
                             is_late = {"it is down; a job uses it as soon as it is active",
                                        "cable, switch port; on RoCE also: ip link set INTERFACE up", false},
                             no_manager = {"it is not active", "the link is there, and no subnet manager has set it up: is opensm running?", false},
                             no_gid = {"it has no GID that can be used",
                                       "give its network interface an IP address; btl_openib_gid_index, if it is set, must name a GID", false},
                             no_pkey = {"it has no such partition key",
                                        "btl_openib_pkey and btl_openib_ib_pkey_index must name a key of /sys/class/infiniband/*/ports/*/pkeys",
                                        false},
                             iwarp = {"iWARP has no failover", "use RoCE or InfiniBand ports", false};
    const bool is_ethernet = IBV_LINK_LAYER_ETHERNET == attr->link_layer;
    struct ibv_gid_entry entry = {.gid_index = 0};
    char text[INET6_ADDRSTRLEN];
    unsigned pkey;

    if (is_left_out(scan, number)) {
        return &left_out;
    }
    if (is_unwanted(scan, attr)) {
        return &unwanted;
    }
    if (IBV_PORT_ACTIVE != attr->state) {
        return IBV_PORT_INIT == attr->state || IBV_PORT_ARMED == attr->state ? &no_manager : may_be_late(scan, number, attr) ? &is_late : &is_down;
    }
    if (!find_gid(scan, number, attr, &entry)) {
        return &no_gid;
    }
    json_object_set_new(port, "gid", json_string(inet_ntop(AF_INET6, entry.gid.raw, text, sizeof(text))));
    json_object_set_new(port, "gid_index", json_integer(entry.gid_index));
    if (address_is_left_out(scan, is_ethernet, entry.gid.raw)) {
        return &network;
    }
    if (scan->is_iwarp) {
        return &iwarp;
    }
    if (!find_pkey(scan, number, attr, &pkey)) {
        return &no_pkey;
    }
    json_object_set_new(port, "pkey", json_integer(pkey));
    return scan->used >= scan->most ? &too_many : NULL;
}

/* A text that identifies the adapter. Two functions of one PCI device are one adapter. */
static json_t *card_of(const struct ibv_device *verbs)
{
    char path[IBV_SYSFS_PATH_MAX + 8], *real, *dot;
    json_t *card;

    snprintf(path, sizeof(path), "%s/device", verbs->ibdev_path);
    real = realpath(path, NULL);
    dot = NULL == real ? NULL : strrchr(real, '.');
    if (NULL != dot && NULL == strchr(dot, '/') && strcspn(dot, "01234567") == 1 && 2 == strlen(dot)) {
        *dot = '\0';
    }
    card = json_string(NULL == real ? ibv_get_device_name((struct ibv_device *) verbs) : real);
    free(real);
    return card;
}

/* The traffic class of RoCE packets: that of the parameter, or the one that the port is configured for. */
static unsigned traffic_class(const scan_t *scan, unsigned number)
{
    const long given = bt_info_btl_number(&scan->doctor->info, "ib_traffic_class", -1);

    return 0 <= given && given <= 255 ? (unsigned) given : ofo_sysfs_traffic_class(scan->verbs->ibdev_path, number);
}

/* A text for the subnet as the BTL compares it. Ports with the same text can be joined. */
static json_t *subnet_of(const scan_t *scan, const struct ibv_port_attr *attr, const char *name, const json_t *port)
{
    const struct ifaddrs *interface;
    ofo_subnet_t subnet = {.type = OFO_NET_IB, .prefix_len = 64};
    char list[BT_VALUE], text[64];
    uint8_t gid[16];
    size_t at;

    if (1 != inet_pton(AF_INET6, json_string_value(json_object_get(port, "gid")), gid)) {
        return json_string("");
    }
    if (IBV_LINK_LAYER_ETHERNET == attr->link_layer) {
        const long given = bt_info_btl_number(&scan->doctor->info, "gid_prefix_len", 0);

        interface = ofo_interface_of(scan->all, gid);
        ofo_subnet_set_ip(&subnet, gid, 0 < given ? (unsigned) given : NULL == interface ? 0 : ofo_interface_prefix(interface));
    } else {
        memcpy(subnet.key, gid, 8);
    }
    if (has_list(scan, "fabrics", list)) {
        ofo_subnet_add_fabric(&subnet, list, name);
    }
    at = (size_t) snprintf(text, sizeof(text), "%u/%u/", subnet.type, subnet.prefix_len);
    for (size_t i = 0; i < sizeof(subnet.key); ++i) {
        at += (size_t) snprintf(text + at, sizeof(text) - at, "%02x", subnet.key[i]);
    }
    return json_string(text);
}

static void look_at_port(scan_t *scan, unsigned number)
{
    static const char *const states[] = {"unknown", "down", "initializing", "armed", "active", "active with an error"};
    const char *device = ibv_get_device_name(scan->verbs), *state, *kind, *gid;
    struct ibv_port_attr attr;
    char rate[16], class[32] = "", name[IBV_SYSFS_NAME_MAX + 8];
    const objection_t *objection;
    json_t *port;

    snprintf(name, sizeof(name), "%s:%u", device, number);
    bt_doctor_clean(name);
    if (0 != ibv_query_port(scan->context, (uint8_t) number, &attr)) {
        bt_doctor_find(scan->doctor, BT_WARNING, PORTS, "look into the kernel's log", "%s: the device says nothing of this port", name);
        return;
    }
    state = states[attr.state < sizeof(states) / sizeof(states[0]) ? attr.state : 0];
    kind = scan->is_iwarp ? "iWARP" : IBV_LINK_LAYER_ETHERNET == attr.link_layer ? "RoCE v2" : "InfiniBand";
    port = json_pack("{s:s, s:o, s:s, s:s, s:I, s:I}", "port", name, "adapter", card_of(scan->verbs), "state", state, "kind", kind, "rate_mbits",
                     (json_int_t) ofo_port_rate(scan->verbs->ibdev_path, number, &attr), "mtu",
                     (json_int_t) (1 <= attr.active_mtu && 5 >= attr.active_mtu ? 128 << attr.active_mtu : 0));
    objection = objection_to(scan, number, &attr, port);
    json_object_set_new(port, "used", json_boolean(NULL == objection));
    bt_rate(rate, (uint32_t) json_integer_value(json_object_get(port, "rate_mbits")));
    if (NULL != objection) {
        bt_doctor_find(scan->doctor, objection->is_wish ? BT_OK : BT_WARNING, PORTS, objection->remedy, "%s: %s, %s; not used, because %s", name,
                       state, kind, objection->why);
    } else {
        json_object_set_new(port, "subnet", subnet_of(scan, &attr, name, port));
        gid = json_string_value(json_object_get(port, "gid"));
        if (IBV_LINK_LAYER_ETHERNET == attr.link_layer) {
            json_object_set_new(port, "traffic_class", json_integer(traffic_class(scan, number)));
            snprintf(class, sizeof(class), ", traffic class %u", (unsigned) json_integer_value(json_object_get(port, "traffic_class")));
        }
        ++scan->used;
        bt_doctor_find(scan->doctor, BT_OK, PORTS, NULL, "%s: %s, %s, %s, MTU %u, GID %s (index %u), P_Key 0x%04x%s", name, state, kind, rate,
                       (unsigned) json_integer_value(json_object_get(port, "mtu")), NULL == gid ? "?" : gid,
                       (unsigned) json_integer_value(json_object_get(port, "gid_index")),
                       (unsigned) json_integer_value(json_object_get(port, "pkey")), class);
    }
    json_array_append_new(scan->doctor->ports, port);
}

/* ---- one device ---------------------------------------------------------------------------------------------- */

static const char raise_the_limit[] = "ulimit -l unlimited; for jobs of a batch system in its daemon, as LimitMEMLOCK=infinity of slurmd";

static const char *limit_text(char room[32])
{
    struct rlimit limit;

    if (0 != getrlimit(RLIMIT_MEMLOCK, &limit)) {
        snprintf(room, 32, "unknown");
    } else if (RLIM_INFINITY == limit.rlim_cur) {
        snprintf(room, 32, "unlimited");
    } else {
        snprintf(room, 32, "%llu KiB", (unsigned long long) limit.rlim_cur / 1024);
    }
    return room;
}

/* Tries what the BTL tries on each device before it uses it: can 256 KiB be registered, and are there reliable connections? */
static bool device_can_work(scan_t *scan, const char *name)
{
    enum { PROBE = 256 * 1024, PAGE = 4096 };
    void *memory = aligned_alloc(PAGE, PROBE);
    struct ibv_pd *pd = ibv_alloc_pd(scan->context);
    struct ibv_mr *mr = NULL == pd || NULL == memory ? NULL : ibv_reg_mr(pd, memory, PROBE, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_cq *cq = ibv_create_cq(scan->context, 2, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = NULL == pd || NULL == cq ? NULL : ibv_create_qp(pd, &init);
    const bool works = NULL != mr && NULL != qp;
    char limit[32];

    if (NULL == mr) {
        bt_doctor_find(scan->doctor, BT_PROBLEM, PORTS, raise_the_limit, "%s: 256 KiB of memory cannot be locked (limit: %s); not used", name,
                       limit_text(limit));
    } else if (NULL == qp) {
        bt_doctor_find(scan->doctor, BT_WARNING, PORTS, "use an adapter of InfiniBand or RoCE", "%s: it has no reliable connections; not used", name);
    }
    if (NULL != qp) {
        ibv_destroy_qp(qp);
    }
    if (NULL != cq) {
        ibv_destroy_cq(cq);
    }
    if (NULL != mr) {
        ibv_dereg_mr(mr);
    }
    if (NULL != pd) {
        ibv_dealloc_pd(pd);
    }
    free(memory);
    return works;
}

static void look_at_device(scan_t *scan)
{
    char name[IBV_SYSFS_NAME_MAX];
    struct ibv_device_attr attr;

    snprintf(name, sizeof(name), "%s", ibv_get_device_name(scan->verbs));
    bt_doctor_clean(name);
    scan->is_iwarp = IBV_TRANSPORT_IWARP == scan->verbs->transport_type;
    scan->has_iwarp |= scan->is_iwarp;
    errno = 0;
    scan->context = ibv_open_device(scan->verbs);
    if (NULL == scan->context) {
        bt_doctor_find(scan->doctor, BT_WARNING, PORTS, "the user needs to read and write /dev/infiniband/uverbs*",
                       "%s: cannot be opened (%s); not used", name, 0 == errno ? "no reason given" : strerror(errno));
        return;
    }
    if (0 != ibv_query_device(scan->context, &attr)) {
        bt_doctor_find(scan->doctor, BT_WARNING, PORTS, "look into the kernel's log", "%s: the device does not answer; not used", name);
    } else if (device_can_work(scan, name)) {
        scan->ports = attr.phys_port_cnt;
        for (unsigned number = 1; number <= scan->ports; ++number) {
            look_at_port(scan, number);
        }
    }
    ibv_close_device(scan->context);
}

/* ---- all ports together ---------------------------------------------------------------------------------------- */

/* The used ports except one, as "a, b". */
static const char *others(const bt_doctor_t *doctor, const json_t *but, char *room, size_t size)
{
    json_t *port;
    size_t i, n = 0;

    room[0] = '\0';
    json_array_foreach(doctor->ports, i, port)
    {
        if (port != but && is_used(port) && n < size) {
            n += (size_t) snprintf(room + n, size - n, "%s%s", 0 == n ? "" : ", ", name_of(port));
        }
    }
    return room;
}

/* Do the used ports all have the same value? */
static bool are_alike(const bt_doctor_t *doctor, const char *key)
{
    const json_t *first = NULL;
    json_t *port;
    size_t i;

    json_array_foreach(doctor->ports, i, port)
    {
        const json_t *value = is_used(port) ? json_object_get(port, key) : NULL;

        if (NULL != value && NULL != first && !json_equal(first, value)) {
            return false;
        }
        first = NULL != value ? value : first;
    }
    return true;
}

static void tell_losses(bt_doctor_t *doctor, long used)
{
    static const char group[] = "loss of a port";
    char room[BT_VALUE];
    json_t *port;
    size_t i;

    if (0 == used) {
        bt_doctor_find(doctor, BT_PROBLEM, group, "see the ports above, and their remedies", "no port can be used: no job gets a rail here");
    }
    json_array_foreach(doctor->ports, i, port)
    {
        if (is_used(port) && 1 == used) {
            bt_doctor_find(doctor, BT_PROBLEM, group, "a second active port, see the ports above",
                           "%s is the only port: if it is lost, no rail is left, and there is no failover", name_of(port));
        } else if (is_used(port)) {
            bt_doctor_find(doctor, BT_OK, group, NULL, "%s: a job goes on over %s", name_of(port), others(doctor, port, room, sizeof(room)));
        }
    }
    if (1 < used && are_alike(doctor, "adapter")) {
        bt_doctor_find(doctor, BT_WARNING, group, "ports of two adapters", "the ports are on one adapter: if it is lost, no rail is left");
    }
    if (!are_alike(doctor, "mtu")) {
        bt_doctor_find(doctor, BT_WARNING, PORTS, "set one MTU on all interfaces and switches", "the ports have different MTUs");
    }
}

static void tell_locked_memory(bt_doctor_t *doctor)
{
    struct rlimit limit = {.rlim_cur = 0};
    const bool is_small = 0 == getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur < (rlim_t) 1 << 30;
    char room[32];

    bt_doctor_find(doctor, is_small ? BT_WARNING : BT_OK, "locked memory", is_small ? raise_the_limit : NULL, "limit of a process: %s%s",
                   limit_text(room), is_small ? "; long messages lock their buffers, and may need more" : "");
}

static void tell_rdmacm(scan_t *scan)
{
    char include[BT_VALUE], exclude[BT_VALUE];
    const bool is_needed = scan->has_iwarp || (NULL != strstr(bt_info_btl(&scan->doctor->info, "cpc_include", include), "rdmacm"))
                           || NULL != strstr(bt_info_btl(&scan->doctor->info, "cpc_exclude", exclude), "udcm");
    struct rdma_event_channel *channel = rdma_create_event_channel();

    if (NULL != channel) {
        rdma_destroy_event_channel(channel);
        bt_doctor_find(scan->doctor, BT_OK, "connections", NULL, "librdmacm can start%s", is_needed ? "" : "; it is not needed");
    } else {
        bt_doctor_find(scan->doctor, is_needed ? BT_PROBLEM : BT_OK, "connections", is_needed ? "modprobe rdma_ucm" : NULL,
                       "librdmacm cannot start (%s)%s", strerror(errno),
                       is_needed ? ", and connections are to be made by it" : "; only btl_openib_cpc_include rdmacm and iWARP need it");
    }
}

void bt_doctor_ports(bt_doctor_t *doctor)
{
    const long most = bt_info_btl_number(&doctor->info, "max_btls", 0);
    scan_t scan = {.doctor = doctor, .most = 0 < most && OFO_MAX_PORTS > most ? most : OFO_MAX_PORTS};
    struct ibv_device **list;
    int count = 0;

    if (0 != getifaddrs(&scan.all)) {
        scan.all = NULL;
    }
    list = ibv_get_device_list(&count);
    for (int i = 0; NULL != list && i < count; ++i) {
        scan.verbs = list[i];
        look_at_device(&scan);
    }
    if (0 >= count || NULL == list) {
        bt_doctor_find(doctor, BT_PROBLEM, PORTS, "an adapter of InfiniBand or RoCE and its driver; ibv_devices lists the devices",
                       "this machine has no RDMA device");
    }
    if (NULL != list) {
        ibv_free_device_list(list);
    }
    freeifaddrs(scan.all);
    tell_losses(doctor, scan.used);
    tell_locked_memory(doctor);
    tell_rdmacm(&scan);
}
