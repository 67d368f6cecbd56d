/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The choice of a port's GID by type and kind of address, in every order of its table; the port's partition key, rate and lists; nearness
 * by two sets of cores. This program stands in for the port. DESIGN.txt section 15.2.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/btl_openib_choice.h"

/* ---- the port ----------------------------------------------------------------------------------- */

enum { V1 = IBV_GID_TYPE_ROCE_V1, V2 = IBV_GID_TYPE_ROCE_V2, PORT = 2 };
/* clang-format off */
#define V4_MAPPED {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 8, 7}}
#define IPV6 {{0x20, 1, 0xd, 0xb8, [15] = 1}}
#define LINK_LOCAL {{0xfe, 0x80, [15] = 1}}
/* clang-format on */

typedef struct {
    uint32_t type;
    union ibv_gid gid;
    bool unreadable; /* the kernel refuses to read it, as it does an empty row */
    uint32_t ifindex;
} row_t;

static const struct ifaddrs *host;
static const row_t *table;
static int table_len;

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index, struct ibv_gid_entry *entry, uint32_t flags,
                      size_t entry_size)
{
    assert_int_equal(port_num, PORT);
    assert_true(gid_index < (uint32_t) table_len);
    if (table[gid_index].unreadable) {
        return ENODATA;
    }
    *entry = (struct ibv_gid_entry){.gid = table[gid_index].gid,
                                    .gid_index = gid_index,
                                    .port_num = port_num,
                                    .gid_type = table[gid_index].type,
                                    .ndev_ifindex = table[gid_index].ifindex};
    return 0;
}

static const uint16_t *pkeys; /* 0xdead: unreadable */

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
    assert_int_equal(port_num, PORT);
    *pkey = htons(pkeys[index]);
    return 0xdead == pkeys[index] ? -1 : 0;
}

/* Index of the GID that is chosen; -1: none. */
static int chosen(const row_t *rows, int length)
{
    struct ibv_gid_entry best;

    table = rows;
    table_len = length;
    return ofo_gid_choose(NULL, PORT, length, host, &best) ? (int) best.gid_index : -1;
}
#define CHOSEN(...) chosen((const row_t[]){__VA_ARGS__}, (int) (sizeof((row_t[]){__VA_ARGS__}) / sizeof(row_t)))

/* ---- tests -------------------------------------------------------------------------------------- */

/* Puts the first `length` rows into every order (Heap's algorithm): the best row is chosen wherever it stands. */
static void walk_orders(row_t *rows, int length, int free, const row_t *best)
{
    if (1 >= free) {
        int index = chosen(rows, length);
        if (NULL == best) {
            assert_int_equal(index, -1);
        } else {
            assert_in_range(index, 0, length - 1);
            assert_memory_equal(&rows[index], best, sizeof(*best));
        }
        return;
    }
    for (int i = 0; i < free; ++i) {
        int other = 0 == free % 2 ? i : 0;
        row_t row;

        walk_orders(rows, length, free - 1, best);
        row = rows[other];
        rows[other] = rows[free - 1];
        rows[free - 1] = row;
    }
}

static void gid_is_chosen_by_type_and_kind_in_every_order(void **state)
{
    static const row_t by_rank[] = {{V1, V4_MAPPED},  {V1, IPV6}, {V2, .gid = {{0}}}, {V2, V4_MAPPED, .unreadable = true},
                                    {V2, LINK_LOCAL}, {V2, IPV6}, {V2, V4_MAPPED}};
    enum { USELESS = 4, ROWS = sizeof(by_rank) / sizeof(by_rank[0]) };

    for (int length = 1; length <= ROWS; ++length) {
        row_t rows[ROWS];
        memcpy(rows, by_rank, sizeof(rows));
        walk_orders(rows, length, length, length <= USELESS ? NULL : &by_rank[length - 1]);
    }
    assert_int_equal(chosen(NULL, 0), -1);
}

static void gid_of_equals_is_the_first(void **state)
{
    assert_int_equal(CHOSEN({V1, V4_MAPPED}, {V2, V4_MAPPED}, {V2, V4_MAPPED}), 1);
    assert_int_equal(CHOSEN({V2, LINK_LOCAL}, {V2, LINK_LOCAL}), 0);
}

/* In a container the table holds addresses of other network namespaces too. An address of this namespace comes first, whatever its kind;
 * an address of an interface that this namespace lacks comes last. An interface index of another namespace means nothing here. */
static void gid_of_this_namespace_is_chosen(void **state)
{
    enum { FOREIGN = 0x7ffffff0 };
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = {IPV6}};
    struct ifaddrs own = {.ifa_name = (char *) "eth0", .ifa_addr = (struct sockaddr *) &six};

    assert_int_equal(CHOSEN({V2, V4_MAPPED, .ifindex = FOREIGN}, {V2, LINK_LOCAL}), 1);
    assert_int_equal(CHOSEN({V2, V4_MAPPED, .ifindex = FOREIGN}, {V2, LINK_LOCAL, .ifindex = FOREIGN}), 0);
    host = &own;
    assert_int_equal(CHOSEN({V2, V4_MAPPED}, {V2, IPV6}), 1);
    assert_int_equal(CHOSEN({V2, V4_MAPPED}, {V2, IPV6, .ifindex = FOREIGN}), 1);
    assert_int_equal(CHOSEN({V1, IPV6}, {V2, V4_MAPPED}), 1);
    host = NULL;
    assert_int_equal(CHOSEN({V2, V4_MAPPED}, {V2, IPV6}), 0);
}

/* Only a port with the address of a fabric can have had a cable. A RoCE port has link-local addresses without any configuration, and an
 * InfiniBand port has the LIDs 0 or 0xffff until a subnet manager sets it up. */
static void port_that_is_down_belongs_to_a_fabric_by_its_address(void **state)
{
    static const union ibv_gid v4 = V4_MAPPED, v6 = IPV6, local = LINK_LOCAL, none = {{0}};
    static const struct {
        uint16_t lid, sm_lid;
        bool has;
    } row[] = {{868, 334, true}, {1, 1, true},    {0xbfff, 0xbfff, true}, {0, 0, false},      {0xffff, 0, false},
               {868, 0, false},  {0, 334, false}, {0xc000, 1, false},     {1, 0xc000, false}, {0xffff, 0xffff, false}};
    struct ibv_port_attr attr = {.state = IBV_PORT_DOWN, .link_layer = IBV_LINK_LAYER_ETHERNET};

    assert_true(ofo_port_has_address(&attr, v4.raw));
    assert_true(ofo_port_has_address(&attr, v6.raw));
    attr.lid = attr.sm_lid = 1;
    assert_false(ofo_port_has_address(&attr, local.raw));
    assert_false(ofo_port_has_address(&attr, none.raw));
    attr.link_layer = IBV_LINK_LAYER_INFINIBAND;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); ++i) {
        attr.lid = row[i].lid;
        attr.sm_lid = row[i].sm_lid;
        assert_int_equal(ofo_port_has_address(&attr, local.raw), row[i].has);
    }
}

/* The kernel's files: missing, without a value, and with each kind of value. */
static void files_of_the_kernel_tell_rate_and_class(void **state)
{
    char root[] = "/tmp/ofo-choice-XXXXXX", device[64], command[1024];

    assert_non_null(mkdtemp(root));
    snprintf(device, sizeof(device), "%s/class/infiniband/mlx5_0", root);
    assert_int_equal(ofo_sysfs_rate(device, 1), 0);
    assert_int_equal(ofo_sysfs_traffic_class(device, 1), 0);
    snprintf(command, sizeof(command),
             "mkdir -p %s/ports/1 %s/ports/2 %s/tc/1 %s/kernel/config/rdma_cm/mlx5_0/ports/1 && cd %s && "
             "echo '800 Gb/sec (4X XDR)' >ports/1/rate && echo '2.5 Gb/sec (1X SDR)' >ports/2/rate && : >tc/1/traffic_class && "
             "echo 96 >%s/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos",
             device, device, device, root, device, root);
    assert_int_equal(system(command), 0);
    assert_int_equal(ofo_sysfs_rate(device, 1), 800000);
    assert_int_equal(ofo_sysfs_rate(device, 2), 2500);
    assert_int_equal(ofo_sysfs_traffic_class(device, 1), 96);
    assert_int_equal(ofo_sysfs_traffic_class(device, 2), 0);
    snprintf(command, sizeof(command), "cd %s && echo 'Global tclass=106' >tc/1/traffic_class && echo x >ports/1/rate", device);
    assert_int_equal(system(command), 0);
    assert_int_equal(ofo_sysfs_traffic_class(device, 1), 106);
    assert_int_equal(ofo_sysfs_rate(device, 1), 0);
    snprintf(command, sizeof(command), "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* The table of a RoCE port has an address once for each type; InfiniBand has one type. */
static void gid_is_found_again_by_value_and_type(void **state)
{
    static const row_t rows[] = {{V1, IPV6}, {V2, V4_MAPPED, .unreadable = true}, {V1, V4_MAPPED}, {V2, IPV6}, {V2, V4_MAPPED}};
    static const union ibv_gid v4 = V4_MAPPED, v6 = IPV6, other = LINK_LOCAL;
    uint8_t index = 99;

    table = rows;
    table_len = 5;
    assert_true(ofo_gid_find(NULL, PORT, 5, v4.raw, true, &index));
    assert_int_equal(index, 4);
    assert_true(ofo_gid_find(NULL, PORT, 5, v4.raw, false, &index));
    assert_int_equal(index, 2);
    assert_true(ofo_gid_find(NULL, PORT, 5, v6.raw, true, &index));
    assert_int_equal(index, 3);
    assert_false(ofo_gid_find(NULL, PORT, 5, other.raw, false, &index));
    assert_false(ofo_gid_find(NULL, PORT, 4, v4.raw, true, &index)); /* the v2 row of the address is gone */
    assert_int_equal(index, 3);
}

/* A key with full membership is taken before a key with limited membership; an empty or unreadable entry is never taken. */
static void pkey_of_a_full_member_is_found_first(void **state)
{
    static const uint16_t keys[] = {0, 0xdead, 0x7fff, 0x0005, 0xffff, 0x8005};
    enum { NONE = 99 };
    static const struct {
        int length;
        unsigned wanted;
        uint16_t index;
    } row[] = {{6, 0, 4}, {4, 0, 2}, {2, 0, NONE}, {0, 0, NONE}, {6, 0x8005, 5}, {6, 5, 5}, {5, 5, 3}, {6, 0xffff, 4}, {4, 0xffff, 2}, {6, 6, NONE}};

    pkeys = keys;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); ++i) {
        uint16_t index = NONE;
        assert_int_equal(ofo_pkey_find(NULL, PORT, row[i].length, row[i].wanted, &index), NONE != row[i].index);
        assert_int_equal(index, row[i].index);
    }
}

static void list_names_devices_and_ports(void **state)
{
    assert_true(ofo_list_names("mlx5_0", "mlx5_0", 1));
    assert_true(ofo_list_names("mlx5_1,mlx5_0:2", "mlx5_0", 2));
    assert_false(ofo_list_names("mlx5_1,mlx5_0:2", "mlx5_0", 1));
    assert_false(ofo_list_names("mlx5_01,mlx5,,", "mlx5_0", 1));
    assert_false(ofo_list_names("", "mlx5_0", 1));
    assert_true(ofo_list_names_port("mlx5_1,mlx5_0:2", "mlx5_0", 2, 2));
    assert_true(ofo_list_names_port("mlx5_1,mlx5_0:2", "mlx5_1", 1, 1));
    assert_false(ofo_list_names_port("mlx5_1,mlx5_0:2", "mlx5_1", 1, 2));
    assert_false(ofo_list_names_port("mlx5_1,mlx5_0:2", "mlx5_0", 1, 2));
}

/* Width 4X at each speed, and speeds that need more than 8 bits. */
static void rate_is_that_of_the_attributes_or_of_sysfs(void **state)
{
    struct ibv_port_attr attr = {.active_speed = 32, .active_width = 2};

    assert_int_equal(ofo_port_rate("/nowhere", 1, &attr), 100000);
    attr.active_speed = 1;
    attr.active_width = 1;
    assert_int_equal(ofo_port_rate("/nowhere", 1, &attr), 2500);
    attr = (struct ibv_port_attr){.active_speed = 255, .active_width = 255};
    assert_in_range(ofo_port_rate("/nowhere", 1, &attr), 1, 12 * 100000);
}

/* Verbs have 8 bits for the index of a connection's GID. */
static void gid_beyond_what_verbs_can_name_is_not_taken(void **state)
{
    static const union ibv_gid v4 = V4_MAPPED;
    static row_t rows[300];
    uint8_t index = 99;

    for (int i = 0; i < 300; ++i) {
        rows[i].unreadable = true;
    }
    rows[256] = (row_t){V2, V4_MAPPED};
    assert_int_equal(chosen(rows, 300), -1);
    assert_false(ofo_gid_find(NULL, PORT, 300, v4.raw, true, &index));
    assert_int_equal(index, 99);
    rows[255] = rows[256];
    assert_int_equal(chosen(rows, 300), 255);
    assert_true(ofo_gid_find(NULL, PORT, 300, v4.raw, true, &index));
    assert_int_equal(index, 255);
}

/* An iWARP port gets the address of the interface with its hardware address, whatever the order in which the host lists them. */
static void iwarp_port_has_its_interfaces_address(void **state)
{
    static const uint8_t mac[OFO_MAC_LEN] = {2, 0, 0, 0, 0, 1}, mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1};
    struct sockaddr_ll own = {.sll_family = AF_PACKET, .sll_halen = OFO_MAC_LEN, .sll_addr = {2, 0, 0, 0, 0, 1}};
    struct sockaddr_ll other = {.sll_family = AF_PACKET, .sll_halen = OFO_MAC_LEN, .sll_addr = {2, 0, 0, 0, 0, 2}};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a4d0001)};
    struct sockaddr_in foreign = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a4d0002)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = {{{0x20, 1, 0xd, 0xb8, [15] = 1}}}};
    struct sockaddr_in6 local = {.sin6_family = AF_INET6, .sin6_addr = {{{0xfe, 0x80, [15] = 1}}}};
    enum { ALL = 7 };
    char tunnel[] = "tunnel", eth0[] = "eth0", eth1[] = "eth1";
    struct ifaddrs all[ALL] = {{.ifa_name = tunnel}, /* has no address at all */
                               {.ifa_name = eth1, .ifa_addr = (struct sockaddr *) &foreign},
                               {.ifa_name = eth0, .ifa_addr = (struct sockaddr *) &local},
                               {.ifa_name = eth0, .ifa_addr = (struct sockaddr *) &v6},
                               {.ifa_name = eth0, .ifa_addr = (struct sockaddr *) &v4},
                               {.ifa_name = eth1, .ifa_addr = (struct sockaddr *) &other},
                               {.ifa_name = eth0, .ifa_addr = (struct sockaddr *) &own}};
    uint8_t gid[16];

    for (int turn = 0; turn < ALL; ++turn) {
        for (int i = 0; i < ALL; ++i) {
            all[i].ifa_next = i == turn ? NULL : &all[(i + 1) % ALL];
        }
        all[4].ifa_addr = (struct sockaddr *) &v4;
        assert_true(ofo_iwarp_address(&all[(turn + 1) % ALL], mac, gid));
        assert_memory_equal(gid, mapped, sizeof(gid));
        all[4].ifa_addr = NULL;
        assert_true(ofo_iwarp_address(&all[(turn + 1) % ALL], mac, gid));
        assert_memory_equal(gid, &v6.sin6_addr, sizeof(gid));
        all[3].ifa_addr = NULL;
        assert_false(ofo_iwarp_address(&all[(turn + 1) % ALL], mac, gid));
        all[3].ifa_addr = (struct sockaddr *) &v6;
    }
    assert_false(ofo_iwarp_address(NULL, mac, gid));
}

/* Finds the interface that has the address, among interfaces of which some have no address. */
static void interface_has_the_address(void **state)
{
    static const uint8_t v4_gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1};
    static const uint8_t v6_gid[16] = {0x20, 1, 0xd, 0xb8, [15] = 1}, foreign[16] = {0x20, 1, 0xd, 0xb8, [15] = 2};
    struct sockaddr_in near_v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a4d0002)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a4d0001)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = {{{0x20, 1, 0xd, 0xb8, [15] = 1}}}};
    struct ifaddrs all[] = {{.ifa_next = &all[1]},
                            {.ifa_next = &all[2], .ifa_addr = (struct sockaddr *) &near_v4},
                            {.ifa_next = &all[3], .ifa_addr = (struct sockaddr *) &v6},
                            {.ifa_next = NULL, .ifa_addr = (struct sockaddr *) &v4}};

    assert_ptr_equal(ofo_interface_of(all, v4_gid), &all[3]);
    assert_ptr_equal(ofo_interface_of(all, v6_gid), &all[2]);
    assert_null(ofo_interface_of(all, foreign));
    assert_null(ofo_interface_of(NULL, v4_gid));
}

static bool are_near(const char *own, const char *its)
{
    hwloc_bitmap_t a = hwloc_bitmap_alloc(), b = hwloc_bitmap_alloc();
    bool near;

    assert_int_equal(hwloc_bitmap_list_sscanf(a, own), 0);
    assert_int_equal(hwloc_bitmap_list_sscanf(b, its), 0);
    near = ofo_cores_are_near(a, b);
    hwloc_bitmap_free(a);
    hwloc_bitmap_free(b);
    return near;
}

static void device_is_near_if_a_core_is_shared(void **state)
{
    static const struct {
        const char *own, *its;
        bool near;
    } row[] = {
        {"0-7", "0-7", true},      {"4-11", "8-15", true}, {"7", "0-7", true},
        {"0,64", "64-127", true},  {"0-7", "8-15", false}, {"8", "0-7,9-15", false},
        {"0-63", "64-127", false}, {"0-", "8-15", true},   {"0-", "0-", true}, /* "0-": all cores; process not bound, device without own cores */
        {"", "0-7", true},         {"", "", true},                             /* not known */
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); ++i) {
        assert_int_equal(are_near(row[i].own, row[i].its), row[i].near);
        assert_int_equal(are_near(row[i].its, row[i].own), row[i].near);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gid_is_chosen_by_type_and_kind_in_every_order),
        cmocka_unit_test(gid_of_equals_is_the_first),
        cmocka_unit_test(gid_of_this_namespace_is_chosen),
        cmocka_unit_test(port_that_is_down_belongs_to_a_fabric_by_its_address),
        cmocka_unit_test(files_of_the_kernel_tell_rate_and_class),
        cmocka_unit_test(gid_is_found_again_by_value_and_type),
        cmocka_unit_test(pkey_of_a_full_member_is_found_first),
        cmocka_unit_test(list_names_devices_and_ports),
        cmocka_unit_test(rate_is_that_of_the_attributes_or_of_sysfs),
        cmocka_unit_test(gid_beyond_what_verbs_can_name_is_not_taken),
        cmocka_unit_test(iwarp_port_has_its_interfaces_address),
        cmocka_unit_test(interface_has_the_address),
        cmocka_unit_test(device_is_near_if_a_core_is_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
