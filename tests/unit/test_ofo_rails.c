/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Pairing of ports into rails (DESIGN.txt 10): both sides compute the same list, whatever the order of ports, and whatever ports are
 * missing, with all kinds of subnets and maps. Also the texts of receive queues, and credits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include <cmocka.h>

#include "formats/btl_openib_credits.h"
#include "formats/btl_openib_queues.h"
#include "formats/btl_openib_rails.h"

static void add(ofo_record_t *record, unsigned net, unsigned guid, unsigned lanes)
{
    ofo_port_t *port = &record->port[record->nports++];

    snprintf(port->name, sizeof(port->name), "hca%u:%u", net, guid);
    port->subnet = (ofo_subnet_t){OFO_NET_IB, 64, {0xfe, 0x80, 0, 0, 0, 0, 0, (uint8_t) net}};
    port->guid[7] = (uint8_t) guid;
    memcpy(port->gid, port->subnet.key, 8);
    port->wants_grh = 1;
    port->lanes = (uint8_t) lanes;
}

/* Pairs from both sides and checks that they see the same rails, mirrored. */
static ofo_rails_t pair(const ofo_record_t *low, const ofo_record_t *high, const char *map)
{
    ofo_rails_t a, b;

    assert_int_equal(ofo_rails_pair(low, high, true, map, &a), 0);
    assert_int_equal(ofo_rails_pair(high, low, false, map, &b), 0);
    assert_int_equal(a.count, b.count);
    assert_int_equal(a.hash, b.hash);
    for (unsigned i = 0; i < a.count; ++i) {
        assert_int_equal(a.pair[i].local, b.pair[i].remote);
        assert_int_equal(a.pair[i].remote, b.pair[i].local);
        assert_int_equal(a.pair[i].lane, b.pair[i].lane);
    }
    assert_int_equal(a.unused_local, b.unused_remote);
    assert_int_equal(a.unused_remote, b.unused_local);
    return a;
}

static void rails_same_subnets_pair_by_guid(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};
    ofo_rails_t rails;

    add(&a, 1, 9, 1);
    add(&a, 1, 3, 1);
    add(&b, 1, 5, 1);
    add(&b, 1, 8, 1);
    rails = pair(&a, &b, NULL);
    assert_int_equal(rails.count, 2);
    assert_int_equal(rails.pair[0].local, 1);  /* guid 3 */
    assert_int_equal(rails.pair[0].remote, 0); /* guid 5 */
    assert_int_equal(rails.pair[1].local, 0);
    assert_int_equal(rails.pair[1].remote, 1);
}

static void rails_subnets_do_not_mix(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};
    ofo_rails_t rails;

    add(&a, 2, 1, 1);
    add(&a, 1, 2, 1);
    add(&a, 4, 3, 1);
    add(&b, 1, 7, 1);
    add(&b, 2, 8, 1);
    add(&b, 3, 9, 1);
    rails = pair(&a, &b, "");
    assert_int_equal(rails.count, 2);
    assert_int_equal(rails.pair[0].local, 1); /* subnet 1 first */
    assert_int_equal(rails.pair[0].remote, 0);
    assert_int_equal(rails.unused_local, 1);
    assert_int_equal(rails.unused_remote, 1);
    assert_int_equal(pair(&a, &(ofo_record_t){.nports = 0}, NULL).count, 0);
}

static void rails_lanes_multiply_to_the_smaller(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};

    add(&a, 1, 1, 3);
    add(&b, 1, 1, 2);
    assert_int_equal(pair(&a, &b, NULL).count, 2);
    assert_int_equal(pair(&a, &b, NULL).pair[1].lane, 1);
}

static void rails_are_at_most_eight(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};

    for (unsigned i = 0; i < OFO_MAX_PORTS; ++i) {
        add(&a, i, i, OFO_MAX_LANES);
        add(&b, i, i, OFO_MAX_LANES);
    }
    assert_int_equal(pair(&a, &b, NULL).count, OFO_MAX_RAILS);
}

static void rails_map_overrides_and_mirrors(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};
    ofo_rails_t rails;

    add(&a, 1, 1, 1);
    add(&a, 2, 2, 1);
    add(&b, 1, 1, 1);
    add(&b, 2, 2, 1);
    rails = pair(&a, &b, "hca1:1-hca2:2");
    assert_int_equal(rails.count, 2);
    assert_int_equal(rails.pair[0].local, 0);
    assert_int_equal(rails.pair[0].remote, 1);
    assert_int_not_equal(rails.hash, pair(&a, &b, NULL).hash);
    assert_int_equal(pair(&a, &b, "hca1:1-hca1:1,hca2:2-hca1:1").count, 1); /* a port has one partner */
    assert_int_equal(pair(&a, &b, "none:1-hca1:1").count, 0);
    snprintf(a.port[0].name, sizeof(a.port[0].name), "a-b:1");
    snprintf(b.port[1].name, sizeof(b.port[1].name), "b-c-d:2");
    rails = pair(&a, &b, "a-b:1-b-c-d:2");
    assert_int_equal(rails.count, 1);
    assert_int_equal(rails.pair[0].remote, 1);
    assert_int_equal(pair(&a, &b, "b-c-d:2-a-b:1").count, 1);
    assert_int_equal(ofo_rails_pair(&a, &b, true, "hca1:1", &rails), -1);
    assert_int_equal(ofo_rails_pair(&a, &b, true, "-hca1:1", &rails), -1);
    assert_int_equal(ofo_rails_pair(&a, &b, true, "x,hca1:1-hca1:1", &rails), -1);
    assert_int_equal(ofo_rails_pair(&a, &b, true, "hca1:1-,x", &rails), -1);
}

/* Only packets with a global route header leave an InfiniBand subnet; IP networks are routed. */
static void rails_map_across_subnets_needs_a_router(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};
    ofo_rails_t rails;

    add(&a, 1, 1, 1);
    add(&b, 1, 1, 1);
    add(&b, 2, 2, 1);
    a.port[0].wants_grh = 0;
    assert_int_equal(pair(&a, &b, "hca1:1-hca2:2").count, 1); /* the other side asks for the header */
    b.port[1].wants_grh = 0;
    rails = pair(&a, &b, "hca1:1-hca2:2,hca1:1-hca1:1");
    assert_int_equal(rails.count, 1);
    assert_int_equal(rails.pair[0].remote, 0);
    assert_int_equal(rails.unroutable, 1);
    a.port[0].subnet.type = OFO_NET_IPV4;
    assert_int_equal(pair(&a, &b, "hca1:1-hca2:2").unroutable, 1);
    b.port[1].subnet.type = OFO_NET_IPV4;
    assert_int_equal(pair(&a, &b, "hca1:1-hca2:2").count, 1);
}

static void rails_names_are_in_natural_order(void **state)
{
    static const unsigned own[] = {10, 2, 1}, theirs[] = {10, 2}; /* the hosts have different drivers */
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};
    ofo_rails_t rails;

    for (unsigned i = 0; i < 3; ++i) {
        add(&a, 1, i, 1);
        snprintf(a.port[i].name, sizeof(a.port[i].name), "mlx5_%u:1", own[i]);
    }
    for (unsigned i = 0; i < 2; ++i) {
        add(&b, 1, 9 - i, 1);
        snprintf(b.port[i].name, sizeof(b.port[i].name), "mlx4_%u:1", theirs[i]);
    }
    rails = pair(&a, &b, NULL); /* 1 with 2, 2 with 10 */
    assert_int_equal(rails.count, 2);
    assert_string_equal(a.port[rails.pair[0].local].name, "mlx5_1:1");
    assert_string_equal(b.port[rails.pair[0].remote].name, "mlx4_2:1");
    assert_string_equal(a.port[rails.pair[1].local].name, "mlx5_2:1");
    assert_string_equal(b.port[rails.pair[1].remote].name, "mlx4_10:1");
}

/* The hosts are wired differently. Ports whose subnet managers have the same LID are paired first, and no port stays alone because of it. */
static void rails_of_one_subnet_manager_are_paired_first(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};
    ofo_rails_t rails;

    for (unsigned i = 1; i <= 3; ++i) {
        add(&a, 1, i, 1);
        add(&b, 1, i, 1);
        a.port[i - 1].sm_lid = (uint16_t) i;
        b.port[i - 1].sm_lid = (uint16_t) (3 - i); /* 2, 1, 0 */
    }
    rails = pair(&a, &b, NULL);
    assert_int_equal(rails.count, 3);
    assert_int_equal(rails.pair[0].remote, 1);
    assert_int_equal(rails.pair[1].remote, 0);
    assert_int_equal(rails.pair[2].remote, 2);
}

/* Two fabrics have one prefix, and their managers had LID 1. The first manager moves to LID 7; one process has the old record. */
static void rails_are_not_crossed_by_a_manager_that_moves(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};

    for (unsigned i = 1; i <= 2; ++i) {
        add(&a, 1, i, 1);
        add(&b, 1, i, 1);
        a.port[i - 1].sm_lid = b.port[i - 1].sm_lid = 1;
    }
    b.port[0].sm_lid = 7;
    for (unsigned turn = 0; turn < 2; ++turn) { /* the lower process has the old record, then the higher process */
        ofo_rails_t rails = 0 == turn ? pair(&a, &b, NULL) : pair(&b, &a, NULL);
        assert_int_equal(rails.count, 2);
        assert_int_equal(rails.pair[0].local, rails.pair[0].remote);
        assert_int_equal(rails.pair[1].local, rails.pair[1].remote);
    }
}

/* The other ends that the records allow for a rail, as the lower process sees them. The higher process sees the same rails in doubt. */
static uint16_t choices(const ofo_record_t *low, const ofo_record_t *high, unsigned rail)
{
    const ofo_rails_t a = pair(low, high, NULL);
    ofo_rails_t b;
    uint16_t own;

    assert_int_equal(ofo_rails_pair(high, low, false, NULL, &b), 0);
    assert_true(rail < a.count);
    own = ofo_rails_choices(low, high, &a, rail);
    assert_int_equal(0 != own, 0 != ofo_rails_choices(high, low, &b, rail));
    assert_true(0 == own || (own >> a.pair[rail].remote & 1));
    return own;
}

static void rails_of_one_evidence_leave_a_choice(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};

    add(&a, 1, 1, 1);
    add(&b, 1, 1, 1);
    assert_int_equal(choices(&a, &b, 0), 0); /* one port each */
    add(&a, 1, 2, 1);
    assert_int_equal(choices(&a, &b, 0), 0); /* one pair */
    add(&b, 2, 2, 1);
    assert_int_equal(choices(&a, &b, 0), 0); /* another prefix */
    add(&b, 1, 3, 1);
    assert_int_equal(choices(&a, &b, 0), 5);
    assert_int_equal(choices(&a, &b, 1), 5);
    a.port[1].sm_lid = b.port[2].sm_lid = 9; /* two managers tell the fabrics apart */
    assert_int_equal(choices(&a, &b, 0), 0);
    assert_int_equal(choices(&a, &b, 1), 0);
    b.port[2].sm_lid = 0; /* one side has not seen a new manager, and its evidence differs */
    assert_int_equal(choices(&a, &b, 1), 0);
}

static void rails_of_ethernet_leave_no_choice(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};

    for (unsigned i = 0; i < 2; ++i) {
        add(&a, 1, i, 1);
        add(&b, 1, i, 1);
        a.port[i].subnet.type = b.port[i].subnet.type = OFO_NET_IPV4;
    }
    assert_int_equal(choices(&a, &b, 0), 0);
}

/* Each lane has its own queue pairs for datagrams, therefore only ends of the same lane can meet. */
static void choices_stay_within_lane_and_fabric(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};
    ofo_rails_t rails;

    for (unsigned i = 0; i < 3; ++i) {
        add(&a, i / 2, i, 2);
        add(&b, i / 2, i, 2);
    }
    rails = pair(&a, &b, NULL);
    assert_int_equal(rails.count, 6);
    for (unsigned rail = 0; rail < rails.count; ++rail) {
        assert_int_equal(choices(&a, &b, rail), 2 > rails.pair[rail].local ? 3 : 0);
    }
}

/* Two hosts on one fabric have lost different ports before they start. The ports that are up are a rail, as if there were no others. */
static void rails_of_late_ports_come_last(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};
    ofo_rails_t rails;

    for (unsigned i = 1; i <= 2; ++i) {
        add(&a, 1, i, 1);
        add(&b, 1, i, 1);
    }
    a.port[0].is_late = b.port[1].is_late = 1;
    rails = pair(&a, &b, NULL);
    assert_int_equal(rails.count, 2);
    assert_int_equal(rails.pair[0].local, 1);
    assert_int_equal(rails.pair[0].remote, 0);
    assert_int_equal(choices(&a, &b, 0), 0); /* a late rail leaves no choice, also not to others */
    assert_int_equal(choices(&a, &b, 1), 0);
    b.nports = 1;
    rails = pair(&a, &b, NULL);
    assert_int_equal(rails.pair[0].local, 1);
    assert_int_equal(rails.unused_local, 0); /* nobody misses a late port */
    a.port[0].is_late = 0;
    assert_int_equal(pair(&a, &b, NULL).unused_local, 1);
}

/* The rails of the other ports are those of records without the late ports, under the same names. */
static void rails_of_late_ports_change_no_others(void **state)
{
    srand(7);
    for (int round = 0; round < 5000; ++round) {
        ofo_record_t record[2] = {{.nports = 0}, {.nports = 0}}, up[2] = {{.nports = 0}, {.nports = 0}};
        ofo_rails_t all, rest;
        for (unsigned i = 0; i < 18; ++i) {
            ofo_port_t *port = &record[i % 2].port[record[i % 2].nports];
            add(&record[i % 2], (unsigned) rand() % 3, i, 1);
            port->sm_lid = (uint16_t) (rand() % 2);
            port->is_late = 0 == rand() % 4;
            if (!port->is_late) {
                up[i % 2].port[up[i % 2].nports++] = *port;
            }
        }
        all = pair(&record[0], &record[1], NULL);
        rest = pair(&up[0], &up[1], NULL);
        assert_true(rest.count <= all.count && all.unused_local <= rest.unused_local);
        for (unsigned i = 0; i < rest.count; ++i) {
            assert_memory_equal(&record[0].port[all.pair[i].local], &up[0].port[rest.pair[i].local], sizeof(ofo_port_t));
            assert_memory_equal(&record[1].port[all.pair[i].remote], &up[1].port[rest.pair[i].remote], sizeof(ofo_port_t));
            assert_int_equal(__builtin_popcount(choices(&record[0], &record[1], i)), __builtin_popcount(choices(&up[0], &up[1], i)));
        }
    }
}

static void rails_of_named_fabrics_do_not_mix(void **state)
{
    ofo_record_t a = {.nports = 0}, b = {.nports = 0};
    ofo_rails_t rails;

    for (unsigned i = 1; i <= 2; ++i) {
        add(&a, 1, i, 1);
        add(&b, 1, i, 1);
        ofo_subnet_add_fabric(&a.port[i - 1].subnet, "hca1:1=east,hca1:2=west", a.port[i - 1].name);
        ofo_subnet_add_fabric(&b.port[i - 1].subnet, "hca1:1=west,hca1:2=east", b.port[i - 1].name);
    }
    rails = pair(&a, &b, NULL);
    assert_int_equal(rails.count, 2);
    for (unsigned i = 0; i < 2; ++i) {
        assert_int_not_equal(rails.pair[i].local, rails.pair[i].remote);
    }
    assert_int_equal(pair(&a, &b, "hca1:1-hca1:1").count, 1); /* a map goes before the names */
    add(&a, 1, 3, 1);
    add(&b, 1, 3, 1);
    ofo_subnet_add_fabric(&a.port[2].subnet, "hca1:33=east,hca1:=x,,=,hca1:3", a.port[2].name);
    ofo_subnet_add_fabric(&b.port[2].subnet, NULL, b.port[2].name);
    assert_int_equal(pair(&a, &b, NULL).count, 3);
}

static void lists_of_fabrics_are_read(void **state)
{
    static const char *const good[] = {NULL, "", "hca1:1=east", "hca1:1=east,hca1:2=west", "x=y", "hca1:1=a=b,"};
    static const char *const wrong[] = {
        "hca1:1", "hca1:1=", "=east", "=", ",", "hca1:1=east,,hca1:2=west", "hca1:1=,hca1:2=west", "hca1:1=east,hca1:2"};
    const char *list = "hca1:1=east,hca1:2=west,hca1:1=x,hca1:20=y,hca3:1=z";
    ofo_record_t record = {.nports = 0};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); ++i) {
        assert_true(ofo_fabrics_are_well(good[i]));
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        assert_false(ofo_fabrics_are_well(wrong[i]));
    }
    assert_null(ofo_fabrics_stray(NULL, &record));
    assert_ptr_equal(ofo_fabrics_stray(list, &record), list);
    add(&record, 1, 1, 1);
    add(&record, 1, 2, 1);
    assert_ptr_equal(ofo_fabrics_stray(list, &record), strstr(list, "hca1:20"));
    add(&record, 1, 20, 1);
    add(&record, 3, 1, 1);
    assert_null(ofo_fabrics_stray(list, &record));
}

static void rails_hash_is_fnv1a(void **state)
{
    assert_true(UINT64_C(0xaf63dc4c8601ec8c) == ofo_fnv1a(OFO_FNV_START, "a", 1));
    assert_true(UINT64_C(0x85944171f73967e8) == ofo_fnv1a(OFO_FNV_START, "foobar", 6));
}

/* Random records: symmetry, every port used at most once per lane, order of ports without influence. */
static void rails_random_records_agree(void **state)
{
    unsigned seed = NULL != getenv("OFO_TEST_SEED") ? (unsigned) atoi(getenv("OFO_TEST_SEED")) : 1;

    print_message("OFO_TEST_SEED=%u\n", seed);
    srand(seed);
    for (int round = 0; round < 5000; ++round) {
        ofo_record_t a = {.nports = 0}, b = {.nports = 0}, mixed;
        unsigned na = (unsigned) rand() % 9, nb = (unsigned) rand() % 9, used = 0;
        for (unsigned i = 0; i < na; ++i) {
            add(&a, (unsigned) rand() % 3, i, 1);
        }
        for (unsigned i = 0; i < nb; ++i) {
            add(&b, (unsigned) rand() % 3, 100 + i, 1);
        }
        ofo_rails_t rails = pair(&a, &b, NULL);
        for (unsigned i = 0; i < rails.count; ++i) {
            assert_false(used & 1u << rails.pair[i].local);
            used |= 1u << rails.pair[i].local;
            assert_memory_equal(&a.port[rails.pair[i].local].subnet, &b.port[rails.pair[i].remote].subnet, sizeof(ofo_subnet_t));
        }
        mixed = a;
        for (unsigned i = 0; i < na; ++i) {
            mixed.port[i] = a.port[na - 1 - i];
        }
        assert_int_equal(pair(&mixed, &b, NULL).hash, rails.hash);
    }
}

static void queues_are_read(void **state)
{
    ofo_queues_t q;
    ofo_record_t peer = {.nports = 0};

    assert_null(ofo_queues_parse("P,2048,64,32,16:S,65792,8", &q));
    assert_int_equal(q.count, 2);
    assert_int_equal(q.queue[0].window, 16);
    assert_int_equal(q.queue[1].type, 'S');
    assert_int_equal(q.queue[1].low, 4);
    assert_int_equal(q.queue[1].window, 4); /* low / 4, at least 4 */
    assert_int_equal(q.queue[1].start, 4);
    assert_int_equal(q.queue[1].limit, 1);
    assert_null(ofo_queues_parse("P,256,256,192,128,8:S,65536,1024,1008,64,32,16", &q));
    assert_int_equal(q.queue[0].window, 128);
    assert_int_equal(q.queue[1].start, 32);
    assert_int_equal(q.queue[1].limit, 16);
    assert_null(ofo_queues_parse("P,2048,64,32,16:S,65792,8", &q));
    ofo_queues_publish(&q, true, &peer);
    assert_true(ofo_queues_match(&q, &peer));
    peer.queue[1].count = 9;
    assert_false(ofo_queues_match(&q, &peer));
    ofo_queues_publish(&q, true, &peer);
    peer.queue[1].sends = 5; /* without shared queues this would be the number of buffers */
    assert_false(ofo_queues_match(&q, &peer));
}

/* If either side has no shared queues, both sides know it, and use the same queues for each peer. */
static void queues_of_a_device_without_shared_ones_are_agreed_on(void **state)
{
    ofo_record_t with = {.nports = 0}, without = {.nports = 0};
    ofo_queues_t q, plain;

    assert_null(ofo_queues_parse("P,512,64,32,16:S,12544,256,240,12,32:S,65792,64,60,2", &q));
    ofo_queues_unshare(&q, &plain);
    assert_int_equal(plain.count, q.count);
    assert_memory_equal(&plain.queue[0], &q.queue[0], sizeof(q.queue[0]));
    assert_int_equal(plain.queue[1].type, 'P');
    assert_int_equal(plain.queue[1].size, 12544);
    assert_int_equal(plain.queue[1].count, 12);
    assert_int_equal(plain.queue[1].window, 3);
    assert_int_equal(plain.queue[2].count, 4); /* no queue per peer is smaller */
    ofo_queues_publish(&q, true, &with);
    ofo_queues_publish(&q, false, &without);
    assert_true(ofo_queues_match(&q, &with));
    assert_true(ofo_queues_match(&q, &without));
    assert_true(ofo_queues_are_shared(&with));
    assert_false(ofo_queues_are_shared(&without));
    assert_false(ofo_queues_match(&plain, &with));
    assert_false(ofo_queues_match(&plain, &without));
    without.queue[0].type = 's';
    assert_false(ofo_queues_match(&q, &without));
}

static void queues_bad_texts_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "P",
                                      "P,2048",
                                      "Q,2048,64",
                                      "X,2048,64",
                                      "P,10,64",
                                      "P,2048,3",
                                      "P,2048,64:",
                                      "P,2048,64:P,2048,64",
                                      "P,2048,64x",
                                      "P,2048,-1",
                                      "P,,64",
                                      "P,2048,64,1,1,1,1",
                                      "P,99999999999,8",
                                      "P,256,4:P,257,4:P,258,4:P,259,4:P,260,4:P,261,4:P,262,4:P,263,4:P,264,4"};
    ofo_queues_t q;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        if (NULL == ofo_queues_parse(bad[i], &q)) {
            fail_msg("accepted: %s", bad[i]);
        }
    }
}

typedef struct {
    ofo_credits_t credits[2];
    unsigned flying[2]; /* messages in flight towards side i */
    unsigned carried[2][512], first[2];
} link_t;

static void transmit(link_t *l, int from)
{
    int to = 1 - from;

    ofo_credits_use(&l->credits[from]);
    assert_true(0 <= l->credits[from].have);
    l->carried[to][(l->first[to] + l->flying[to]++) % 512] = ofo_credits_take_owed(&l->credits[from]);
}

static void deliver(link_t *l, int at)
{
    unsigned carried = l->carried[at][l->first[at]++ % 512];

    --l->flying[at];
    assert_true(ofo_credits_gain(&l->credits[at], (uint16_t) carried));
    if (ofo_credits_collect(&l->credits[at])) {
        ofo_credits_owe(&l->credits[at]);
    }
    if (ofo_credits_must_return(&l->credits[at])) {
        transmit(l, at);
    }
}

/* Both sides send as fast as credits allow, in random interleaving. Neither side starves, no receive buffer is overrun, and
 * the credit messages end when the data ends. */
static void credits_never_starve_and_never_chatter(void **state)
{
    srand(7);
    for (int count = OFO_CREDITS_MIN; count <= 64; count *= 2) {
        for (int window = 1; window <= count; window += 1 + window / 4) {
            link_t l = {.flying = {0}};
            unsigned left[2] = {2000, (unsigned) rand() % 2000}, idle = 0, steps = 0;
            ofo_credits_init(&l.credits[0], count, window);
            ofo_credits_init(&l.credits[1], count, window);
            while (0 < left[0] + left[1] + l.flying[0] + l.flying[1]) {
                int side = rand() & 1;
                assert_true((unsigned) count >= l.flying[0] && (unsigned) count >= l.flying[1]);
                if (rand() & 1 && 0 < l.flying[side]) {
                    deliver(&l, side);
                    idle = 0;
                } else if (0 < left[side] && ofo_credits_may_send(&l.credits[side])) {
                    transmit(&l, side);
                    --left[side];
                    idle = 0;
                }
                assert_true(++idle < 200);
                assert_true(++steps < 200000);
            }
        }
    }
}

static void credits_beyond_the_queue_are_refused(void **state)
{
    ofo_credits_t c;

    ofo_credits_init(&c, 8, 4);
    assert_false(ofo_credits_gain(&c, 1));
    ofo_credits_use(&c);
    assert_false(ofo_credits_gain(&c, 2));
    assert_int_equal(c.have, 7);
    assert_true(ofo_credits_gain(&c, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rails_same_subnets_pair_by_guid),
        cmocka_unit_test(rails_subnets_do_not_mix),
        cmocka_unit_test(rails_lanes_multiply_to_the_smaller),
        cmocka_unit_test(rails_are_at_most_eight),
        cmocka_unit_test(rails_map_overrides_and_mirrors),
        cmocka_unit_test(rails_map_across_subnets_needs_a_router),
        cmocka_unit_test(rails_names_are_in_natural_order),
        cmocka_unit_test(rails_of_one_subnet_manager_are_paired_first),
        cmocka_unit_test(rails_are_not_crossed_by_a_manager_that_moves),
        cmocka_unit_test(rails_of_one_evidence_leave_a_choice),
        cmocka_unit_test(rails_of_ethernet_leave_no_choice),
        cmocka_unit_test(choices_stay_within_lane_and_fabric),
        cmocka_unit_test(rails_of_late_ports_come_last),
        cmocka_unit_test(rails_of_late_ports_change_no_others),
        cmocka_unit_test(rails_of_named_fabrics_do_not_mix),
        cmocka_unit_test(lists_of_fabrics_are_read),
        cmocka_unit_test(rails_hash_is_fnv1a),
        cmocka_unit_test(rails_random_records_agree),
        cmocka_unit_test(queues_are_read),
        cmocka_unit_test(queues_of_a_device_without_shared_ones_are_agreed_on),
        cmocka_unit_test(queues_bad_texts_are_refused),
        cmocka_unit_test(credits_never_starve_and_never_chatter),
        cmocka_unit_test(credits_beyond_the_queue_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
