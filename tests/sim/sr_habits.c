/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Habits of adapters that switches of softrail run give to the rails: one case for each switch; the argument names the case.
 * habits.sh runs every case with its switch, and again without it; then the case must fail.
 */
#include "sr_pair.h"

#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct pair_options rc = {.type = IBV_QPT_RC, .rnr_retry = -1, .min_rnr_timer = 12};

static void no_address_without_grh(void **state)
{
    struct pair p = {.type = IBV_QPT_RC};
    struct ibv_ah_attr where;
    struct ibv_port_attr port;
    struct ibv_ah *ah;
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 1};
    uint32_t qpn = half_open(&p, &where);

    assert_int_equal(0, ibv_query_port(p.context, 1, &port));
    assert_true(0 != (port.flags & IBV_QPF_GRH_REQUIRED));
    errno = 0;
    assert_null(ibv_create_ah(p.pd, &where));
    assert_int_equal(EINVAL, errno);
    rtr.ah_attr = where;
    rtr.dest_qp_num = qpn;
    assert_int_equal(EINVAL, ibv_modify_qp(p.a.qp, &rtr,
                                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC
                                               | IBV_QP_MIN_RNR_TIMER));
    where.is_global = 1;
    assert_int_equal(0, ibv_query_gid(p.context, 1, 0, &where.grh.dgid));
    ah = ibv_create_ah(p.pd, &where);
    assert_non_null(ah);
    assert_int_equal(0, ibv_destroy_ah(ah));
    side_connect(&p, &p.a, &where, qpn, rc);
}

static void no_post_in_the_error_state(void **state)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct pair p;

    pair_open(&p, rc);
    assert_int_equal(0, ibv_modify_qp(p.a.qp, &error, IBV_QP_STATE));
    assert_int_equal(EINVAL, post_send(&p.a, IBV_WR_SEND, 1, 0, 10, 0, NULL, 0));
    expect_nothing(p.a.send_cq);
    pair_close(&p);
}

/* Creates and destroys a queue pair; returns 0 or errno. */
static int create(struct pair *p, enum ibv_qp_type type, uint32_t max_inline)
{
    struct ibv_qp_init_attr init = {.send_cq = p->a.send_cq,
                                    .recv_cq = p->a.recv_cq,
                                    .qp_type = type,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = max_inline}};
    struct ibv_qp *qp = ibv_create_qp(p->pd, &init);

    return NULL == qp ? errno : ibv_destroy_qp(qp);
}

static void only_so_much_inline(void **state)
{
    struct ibv_ah_attr own;
    struct pair p = {.type = IBV_QPT_RC};

    half_open(&p, &own);
    assert_int_equal(0, create(&p, IBV_QPT_RC, 128));
    assert_int_equal(EINVAL, create(&p, IBV_QPT_RC, 129));
    assert_int_equal(EINVAL, create(&p, IBV_QPT_UD, 129));
}

static void no_reliable_connections(void **state)
{
    struct ibv_ah_attr own;
    struct pair p = {.type = IBV_QPT_UD};

    half_open(&p, &own);
    assert_int_equal(EOPNOTSUPP, create(&p, IBV_QPT_RC, 0));
    assert_int_equal(0, create(&p, IBV_QPT_UD, 0));
}

static void large_packets_are_swallowed(void **state)
{
    struct pair p;

    pair_open(&p, rc);
    assert_int_equal(0, post_recv(&p.b, 1, 0, PAIR_BYTES));
    assert_int_equal(0, post_send(&p.a, IBV_WR_SEND, 1, 0, 1024, 0, NULL, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.b.recv_cq, 1, IBV_WC_SUCCESS);
    assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_WRITE, 2, 0, 100000, 0, &p.b, 0));
    expect_wc(p.a.send_cq, 2, IBV_WC_RETRY_EXC_ERR);
    pair_close(&p);
}

static void flush_tells_the_head_only(void **state)
{
    struct ibv_sge sge;
    struct pair p;

    pair_open(&p, rc);
    softrail("fault lose op=send nth=1");
    sge = (struct ibv_sge){.addr = (uintptr_t) p.a.memory, .length = 10, .lkey = p.a.mr->lkey};
    for (uint64_t id = 1; id <= 4; ++id) {
        struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = 4 == id ? IBV_SEND_SIGNALED : 0};
        assert_int_equal(0, post_wr(&p.a, &wr));
    }
    expect_wc(p.a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
    expect_wc(p.a.send_cq, 4, IBV_WC_WR_FLUSH_ERR);
    expect_nothing(p.a.send_cq);
    pair_close(&p);
}

static void write_of_nothing_wants_a_key(void **state)
{
    struct ibv_send_wr wr = {.wr_id = 2, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct pair p;

    pair_open(&p, rc);
    assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 0, 0, &p.b, 0));
    expect_wc(p.a.send_cq, 1, IBV_WC_SUCCESS);
    assert_int_equal(0, post_wr(&p.a, &wr));
    expect_wc(p.a.send_cq, 2, IBV_WC_LOC_QP_OP_ERR);
    pair_close(&p);
}

/* Sends a message between two queue pairs that both use the P_Key of that index. */
static void send_with_pkey(uint16_t index, enum ibv_wc_status status)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = index, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    struct pair p = {.type = IBV_QPT_RC};
    struct ibv_ah_attr own;

    half_open(&p, &own);
    side_open(&p, &p.b, false);
    assert_int_equal(0, ibv_modify_qp(p.a.qp, &attr, mask));
    assert_int_equal(0, ibv_modify_qp(p.b.qp, &attr, mask));
    side_connect(&p, &p.a, &own, p.b.qp->qp_num, rc);
    side_connect(&p, &p.b, &own, p.a.qp->qp_num, rc);
    assert_int_equal(0, post_send(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 10, 0, &p.b, 0));
    expect_wc(p.a.send_cq, 1, status);
}

static void limited_members_do_not_talk(void **state)
{
    __be16 pkey = 0;
    struct ibv_context *context = open_rail(0);

    assert_int_equal(0, ibv_query_pkey(context, 1, 0, &pkey));
    assert_int_equal(0x7fff, be16toh(pkey));
    assert_int_equal(0, ibv_query_pkey(context, 1, 1, &pkey));
    assert_int_equal(0xffff, be16toh(pkey));
    send_with_pkey(0, IBV_WC_RETRY_EXC_ERR);
    send_with_pkey(1, IBV_WC_SUCCESS);
}

static uint64_t gid_half(unsigned rail, unsigned half)
{
    struct ibv_context *context = open_rail(rail);
    union ibv_gid gid;

    assert_int_equal(0, ibv_query_gid(context, 1, 0, &gid));
    return be64toh(0 == half ? gid.global.subnet_prefix : gid.global.interface_id);
}

static void all_rails_have_the_default_prefix(void **state)
{
    assert_true(UINT64_C(0xfe80000000000000) == gid_half(0, 0));
    assert_true(UINT64_C(0xfe80000000000000) == gid_half(1, 0));
}

static void guids_of_two_processes_are_crossed(void **state)
{
    int begin[2], status;
    pid_t child;
    char byte = 1;

    assert_int_equal(0, pipe(begin));
    child = fork();
    assert_true(0 <= child);
    if (0 == child) {
        _exit(1 == read(begin[0], &byte, 1) && gid_half(0, 1) > gid_half(1, 1) ? 0 : 1);
    }
    assert_true(gid_half(0, 1) < gid_half(1, 1));
    assert_int_equal(1, write(begin[1], &byte, 1));
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFEXITED(status) && 0 == WEXITSTATUS(status));
}

/* The switch changes the order in which the two devices of a process are on the two rails. The second process has the GUIDs as without
 * the switch, but its first device has the addresses of the second rail. */
static void wires_of_two_processes_are_crossed(void **state)
{
    int begin[2], status;
    pid_t child;
    char byte = 1;

    assert_int_equal(0, pipe(begin));
    child = fork();
    assert_true(0 <= child);
    if (0 == child) {
        _exit(1 == read(begin[0], &byte, 1) && gid_half(0, 1) < gid_half(1, 1) && gid_half(0, 0) > gid_half(1, 0) ? 0 : 1);
    }
    assert_true(gid_half(0, 1) < gid_half(1, 1));
    assert_true(gid_half(0, 0) < gid_half(1, 0));
    assert_int_equal(1, write(begin[1], &byte, 1));
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFEXITED(status) && 0 == WEXITSTATUS(status));
}

static void managers_of_all_rails_have_one_lid(void **state)
{
    struct ibv_port_attr port[2];

    for (unsigned rail = 0; rail < 2; ++rail) {
        assert_int_equal(0, ibv_query_port(open_rail(rail), 1, &port[rail]));
    }
    assert_int_equal(port[0].sm_lid, port[1].sm_lid);
}

static void traffic_class_is_shown(void **state)
{
    struct pair p = {.type = IBV_QPT_UD};
    char path[300], line[40] = "";
    struct ibv_ah_attr where;
    FILE *file;

    half_open(&p, &where);
    snprintf(path, sizeof(path), "%.250s/tc/1/traffic_class", p.context->device->ibdev_path);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    assert_string_equal(line, "Global tclass=106\n");
}

static void first_gid_is_of_another_namespace(void **state)
{
    struct pair p = {.type = IBV_QPT_UD};
    struct ibv_ah_attr where;
    struct ibv_port_attr port;
    struct ibv_gid_entry table[4];

    half_open(&p, &where);
    assert_int_equal(0, ibv_query_port(p.context, 1, &port));
    assert_int_equal(2, port.gid_tbl_len);
    assert_int_equal(2, ibv_query_gid_table(p.context, table, 4, 0));
    assert_true(table[0].ndev_ifindex != table[1].ndev_ifindex);
    assert_non_null(ibv_create_ah(p.pd, &where));
    where.grh.sgid_index = 0;
    assert_null(ibv_create_ah(p.pd, &where));
}

/* The network interface sr0 has the same address. */
static void gids_are_ip_addresses(void **state)
{
    struct pair p = {.type = IBV_QPT_UD};
    struct ibv_ah_attr where;
    const struct ifaddrs *i;
    struct ifaddrs *all;

    half_open(&p, &where);
    assert_memory_equal("\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\x2a\0", where.grh.dgid.raw, 15);
    assert_non_null(ibv_create_ah(p.pd, &where));
    assert_int_equal(0, getifaddrs(&all));
    for (i = all; NULL != i && 0 != strcmp("sr0", i->ifa_name); i = i->ifa_next) {
    }
    assert_non_null(i);
    assert_memory_equal(where.grh.dgid.raw + 12, &((const struct sockaddr_in *) i->ifa_addr)->sin_addr, 4);
    freeifaddrs(all);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_address_without_grh),
        cmocka_unit_test(no_post_in_the_error_state),
        cmocka_unit_test(only_so_much_inline),
        cmocka_unit_test(no_reliable_connections),
        cmocka_unit_test(large_packets_are_swallowed),
        cmocka_unit_test(flush_tells_the_head_only),
        cmocka_unit_test(write_of_nothing_wants_a_key),
        cmocka_unit_test(limited_members_do_not_talk),
        cmocka_unit_test(all_rails_have_the_default_prefix),
        cmocka_unit_test(guids_of_two_processes_are_crossed),
        cmocka_unit_test(wires_of_two_processes_are_crossed),
        cmocka_unit_test(traffic_class_is_shown),
        cmocka_unit_test(managers_of_all_rails_have_one_lid),
        cmocka_unit_test(first_gid_is_of_another_namespace),
        cmocka_unit_test(gids_are_ip_addresses),
    };

    if (2 == argc) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
