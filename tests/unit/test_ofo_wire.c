/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Control messages and the modex record: the layout of DESIGN.txt 6, round trips, and the refusal of every malformed byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/btl_openib_wire.h"

static ofo_ctl_t example(uint8_t type)
{
    const bool is_of_no_rail = OFO_CTL_PEERDEAD == type || OFO_CTL_ASK == type;
    ofo_ctl_t ctl = {.type = type,
                     .rail = is_of_no_rail ? OFO_RAIL_NONE : 3,
                     .gen = is_of_no_rail ? 0 : 0x1234,
                     .jobid = 0xa1b2c3d4,
                     .vpid = 7,
                     .src_inc = 0x01020304,
                     .dst_inc = 0x05060708};

    if (OFO_CTL_REQ == type || OFO_CTL_REP == type) {
        ctl.lid = 0xbeef;
        ctl.mtu = 5;
        ctl.reads = 16;
        ctl.nqp = 2;
        ctl.rail_hash = UINT64_C(0x1122334455667788);
        for (int i = 0; i < 16; ++i) {
            ctl.gid[i] = (uint8_t) i;
        }
        ctl.qp[0] = (ofo_qp_addr_t){0x123456, 0x654321};
        ctl.qp[1] = (ofo_qp_addr_t){0xabcdef, 0xfedcba};
    } else if (OFO_CTL_DACK == type) {
        ctl.cause = OFO_CAUSE_PORT;
        ctl.flags = OFO_DACK_VALID;
        ctl.counts = (ofo_counts_t){.n_ok = UINT64_C(0x0123456789abcdef), .n_send = {1, 2, 3, 4, 5, 6, 7, 0xffff}, .n_eager = 9};
    } else if (OFO_CTL_DOWN == type) {
        ctl.cause = OFO_CAUSE_SILENT;
    } else if (OFO_CTL_REJ == type) {
        ctl.reason = OFO_REJ_RAIL_HASH;
    } else if (OFO_CTL_PROBE == type || OFO_CTL_ANSWER == type) {
        ctl.flags = OFO_CTL_SOFT;
        ctl.about = 7;
        ctl.number = 0xfedc;
    }
    if (OFO_CTL_REQ == type || OFO_CTL_REP == type || OFO_CTL_ASK == type) {
        ctl.from = 1;
        ctl.to = 15;
    }
    return ctl;
}

static const size_t sizes[] = {24, 56, 72, 72, 24, 32, 24, 32, 32, 32};

static void ctl_every_type_round_trips(void **state)
{
    uint8_t buffer[OFO_CTL_MAX_SIZE];

    for (uint8_t type = OFO_CTL_DOWN; type <= OFO_CTL_ANSWER; ++type) {
        ofo_ctl_t in = example(type), out;
        assert_int_equal(ofo_ctl_pack(&in, buffer, sizeof(buffer)), sizes[type - OFO_CTL_DOWN]);
        assert_int_equal(ofo_ctl_unpack(buffer, sizes[type - OFO_CTL_DOWN], &out), OFO_WIRE_OK);
        assert_memory_equal(&in, &out, sizeof(in));
    }
}

/* An older build reads the first 24 bytes only. */
static void bring_down_may_have_an_address(void **state)
{
    uint8_t buffer[OFO_CTL_MAX_SIZE];
    ofo_ctl_t in = example(OFO_CTL_DOWN), out;

    in.flags = OFO_CTL_ADDRESS;
    in.lid = 0xbeef;
    in.gid[0] = 0xfe;
    in.gid[15] = 9;
    assert_int_equal(ofo_ctl_pack(&in, buffer, sizeof(buffer)), 48);
    assert_int_equal(buffer[24], 0xbe);
    assert_int_equal(buffer[32], 0xfe);
    assert_int_equal(buffer[47], 9);
    assert_int_equal(ofo_ctl_unpack(buffer, 47, &out), OFO_WIRE_SHORT);
    assert_int_equal(ofo_ctl_unpack(buffer, 48, &out), OFO_WIRE_OK);
    assert_memory_equal(&in, &out, sizeof(in));
    buffer[1] = 0;
    assert_int_equal(ofo_ctl_unpack(buffer, 24, &out), OFO_WIRE_OK);
    assert_int_equal(out.lid, 0);
}

static void ctl_layout_is_network_byte_order(void **state)
{
    static const uint8_t head[24] = {0x32, 0, 3, 2, 0x12, 0x34, 0, 0, 0xa1, 0xb2, 0xc3, 0xd4, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8};
    static const uint8_t body[16] = {0xbe, 0xef, 5, 2, 0, 16, 1, 15, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
    uint8_t buffer[OFO_CTL_MAX_SIZE];
    ofo_ctl_t req = example(OFO_CTL_REQ);

    ofo_ctl_pack(&req, buffer, sizeof(buffer));
    assert_memory_equal(buffer, head, sizeof(head));
    assert_memory_equal(buffer + 24, body, sizeof(body));
    assert_int_equal(buffer[57], 0x12);
    assert_int_equal(buffer[60 + 1], 0x65);
}

static void cause_of_a_bring_down_is_never_trusted(void **state)
{
    uint8_t buffer[OFO_CTL_MAX_SIZE];
    ofo_ctl_t in = example(OFO_CTL_DOWN), out;

    ofo_ctl_pack(&in, buffer, sizeof(buffer));
    assert_int_equal(buffer[6], OFO_CAUSE_SILENT);
    for (unsigned cause = 0; cause <= 255; ++cause) {
        buffer[6] = (uint8_t) cause;
        assert_int_equal(ofo_ctl_unpack(buffer, sizeof(buffer), &out), OFO_WIRE_OK);
        assert_int_equal(out.cause, cause < OFO_CAUSES ? cause : OFO_CAUSE_UNKNOWN);
        assert_true((NULL == ofo_cause_reported((uint8_t) cause)) == (0 == cause || OFO_CAUSES <= cause));
    }
    in = example(OFO_CTL_RTU);
    in.cause = OFO_CAUSE_PORT;
    ofo_ctl_pack(&in, buffer, sizeof(buffer));
    assert_int_equal(buffer[6], 0);
    buffer[6] = OFO_CAUSE_PORT;
    assert_int_equal(ofo_ctl_unpack(buffer, sizeof(buffer), &out), OFO_WIRE_OK);
    assert_int_equal(out.cause, OFO_CAUSE_UNKNOWN);
}

static void ctl_short_message_is_refused(void **state)
{
    uint8_t buffer[OFO_CTL_MAX_SIZE];
    ofo_ctl_t out;

    for (uint8_t type = OFO_CTL_DOWN; type <= OFO_CTL_ANSWER; ++type) {
        ofo_ctl_t in = example(type);
        size_t length = ofo_ctl_pack(&in, buffer, sizeof(buffer));
        for (size_t shorter = 0; shorter < length; ++shorter) {
            assert_int_equal(ofo_ctl_unpack(buffer, shorter, &out), OFO_WIRE_SHORT);
        }
    }
}

static void refuse_byte(uint8_t type, unsigned at, uint8_t value, ofo_wire_result_t why)
{
    uint8_t buffer[OFO_CTL_MAX_SIZE] = {0};
    ofo_ctl_t in = example(type), out;

    ofo_ctl_pack(&in, buffer, sizeof(buffer));
    buffer[at] = value;
    assert_int_equal(ofo_ctl_unpack(buffer, sizeof(buffer), &out), why);
}

static void ctl_bad_fields_are_refused(void **state)
{
    refuse_byte(OFO_CTL_DOWN, 0, 0x2f, OFO_WIRE_TYPE);
    refuse_byte(OFO_CTL_DOWN, 0, 0x3a, OFO_WIRE_TYPE);
    refuse_byte(OFO_CTL_DOWN, 3, 1, OFO_WIRE_VERSION);
    refuse_byte(OFO_CTL_DOWN, 3, 3, OFO_WIRE_VERSION);
    refuse_byte(OFO_CTL_DOWN, 2, 8, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_PEERDEAD, 2, 0, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_REQ, 26, 0, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_REQ, 26, 6, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_REQ, 27, 0, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_REQ, 27, 9, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_REQ, 27, 255, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_REQ, 28, 2, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_REQ, 56, 1, OFO_WIRE_FIELD); /* queue pair number of 25 bits */
    refuse_byte(OFO_CTL_REP, 60, 1, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_REJ, 24, 0, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_REJ, 24, 5, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_REQ, 30, 16, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_REP, 31, 16, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_ASK, 24, 16, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_ASK, 25, 255, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_ASK, 2, 0, OFO_WIRE_FIELD); /* ASK names no rail */
    refuse_byte(OFO_CTL_ASK, 5, 1, OFO_WIRE_FIELD); /* ASK has no generation */
    refuse_byte(OFO_CTL_PROBE, 2, OFO_MAX_RAILS, OFO_WIRE_FIELD);
    refuse_byte(OFO_CTL_ANSWER, 24, OFO_MAX_RAILS, OFO_WIRE_FIELD);
}

/* Whatever the bytes, the result is an answer and no access outside the buffer (run it with sanitizers). */
static void ctl_random_bytes_never_hurt(void **state)
{
    unsigned seed = NULL != getenv("OFO_TEST_SEED") ? (unsigned) atoi(getenv("OFO_TEST_SEED")) : 1;
    unsigned accepted = 0;

    print_message("OFO_TEST_SEED=%u\n", seed);
    srand(seed);
    for (int round = 0; round < 200000; ++round) {
        size_t length = (size_t) rand() % (OFO_CTL_MAX_SIZE + 1);
        uint8_t *bytes = malloc(length + 1);
        ofo_ctl_t ctl;
        for (size_t i = 0; i < length; ++i) {
            bytes[i] = (uint8_t) rand();
        }
        if (3 < length) {
            bytes[0] = (uint8_t) (0x30 + rand() % 8);
            bytes[2] = (uint8_t) (rand() % 9);
            bytes[3] = 2;
        }
        if (OFO_WIRE_OK == ofo_ctl_unpack(bytes, length, &ctl)) {
            ++accepted;
            assert_true(ctl.nqp <= OFO_MAX_QPS);
            assert_true(ctl.rail < OFO_MAX_RAILS || OFO_RAIL_NONE == ctl.rail);
            assert_true(ctl.from < OFO_MAX_PORTS && ctl.to < OFO_MAX_PORTS);
        }
        free(bytes);
    }
    assert_true(0 < accepted);
}

static ofo_record_t record_example(void)
{
    ofo_record_t record = {.version = OFO_RECORD_VERSION, .incarnation = 99, .nqp = 2, .nports = 2};

    record.queue[0] = (ofo_queue_shape_t){.type = 'P', .size = 2048, .count = 64};
    record.queue[1] = (ofo_queue_shape_t){.type = 'S', .sends = 4, .size = 65792, .count = 8};
    for (unsigned i = 0; i < 2; ++i) {
        ofo_port_t *port = &record.port[i];
        strcpy(port->name, "dev:1");
        port->subnet = (ofo_subnet_t){OFO_NET_IPV4, 24, {10, 0, (uint8_t) i}};
        port->guid[15] = port->gid[15] = (uint8_t) (7 + i);
        port->lid = 12;
        port->mtu = 5;
        port->lanes = 1;
        port->contact[0] = 77;
        port->qkey = 0x7fffffff;
        port->rate = 100000;
        port->wants_grh = (uint8_t) i;
        port->is_late = (uint8_t) !i;
        port->proof_at = UINT64_C(0x123456789abcd000);
        port->proof_key = 0x87654321;
        port->sm_lid = (uint16_t) (0xbffe - i);
    }
    return record;
}

static void record_round_trips(void **state)
{
    ofo_record_t in = record_example(), out;
    uint8_t buffer[OFO_RECORD_MAX_SIZE];
    size_t length = ofo_record_pack(&in, buffer, sizeof(buffer));

    assert_true(0 < length);
    assert_int_equal(ofo_record_unpack(buffer, length, &out), OFO_WIRE_OK);
    assert_memory_equal(&in, &out, sizeof(in));
    for (size_t shorter = 1; shorter < length; ++shorter) {
        assert_int_equal(ofo_record_unpack(buffer, shorter, &out), OFO_WIRE_SHORT);
    }
    assert_int_equal(ofo_record_pack(&in, buffer, length - 1), 0);
}

static void record_of_other_version_is_told(void **state)
{
    ofo_record_t in = record_example(), out;
    uint8_t buffer[OFO_RECORD_MAX_SIZE];
    size_t length = ofo_record_pack(&in, buffer, sizeof(buffer));

    buffer[0] = OFO_RECORD_VERSION + 1;
    assert_int_equal(ofo_record_unpack(buffer, length, &out), OFO_WIRE_VERSION);
    assert_int_equal(out.version, OFO_RECORD_VERSION + 1);
}

static void record_bad_fields_are_refused(void **state)
{
    static const struct {
        unsigned at;
        uint8_t value;
    } bad[] = {{1, 0}, {1, 9}, {2, OFO_MAX_PORTS + 1}, {8 + 24 + 76, 0}, {8 + 24 + 76, 6}, {8 + 24 + 77, 0}, {8 + 24 + 77, OFO_MAX_LANES + 1}};
    ofo_record_t in = record_example(), out;
    uint8_t buffer[OFO_RECORD_MAX_SIZE];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        ofo_record_pack(&in, buffer, sizeof(buffer));
        buffer[bad[i].at] = bad[i].value;
        assert_int_equal(ofo_record_unpack(buffer, sizeof(buffer), &out), OFO_WIRE_FIELD);
    }
    in.incarnation = 0;
    assert_int_equal(ofo_record_pack(&in, buffer, sizeof(buffer)), 0);
}

/* The longest names that rdma-core gives are rocex and 16 digits. A longer name is cut, but its number stays. */
static void ports_of_long_names_have_them_whole(void **state)
{
    char name[OFO_PORT_NAME_LEN];

    ofo_port_name("mlx5_0", 1, name);
    assert_string_equal(name, "mlx5_0:1");
    ofo_port_name("rocex0c42a1030079b1c2", 2, name);
    assert_string_equal(name, "rocex0c42a1030079b1c2:2");
    ofo_port_name("rocex0c42a1030079b1c2", 254, name);
    assert_string_equal(name, "rocex0c42a1030079b1:254");
    ofo_port_name("a-name-that-no-port-can-have", 1, name);
    assert_string_equal(name, "a-name-that-no-port-c:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_of_long_names_have_them_whole),
        cmocka_unit_test(ctl_every_type_round_trips),
        cmocka_unit_test(bring_down_may_have_an_address),
        cmocka_unit_test(ctl_layout_is_network_byte_order),
        cmocka_unit_test(cause_of_a_bring_down_is_never_trusted),
        cmocka_unit_test(ctl_short_message_is_refused),
        cmocka_unit_test(ctl_bad_fields_are_refused),
        cmocka_unit_test(ctl_random_bytes_never_hurt),
        cmocka_unit_test(record_round_trips),
        cmocka_unit_test(record_of_other_version_is_told),
        cmocka_unit_test(record_bad_fields_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
