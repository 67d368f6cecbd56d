/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Subnets of ports with IP addresses, and the order in which both sides pair subnets; and numbers that no machine of the BTL knows.
 * DESIGN.txt 10.1 and 10.3.
 */
#include "tables/btl_openib_drain_fsm.h"
#include "tables/btl_openib_rail_fsm.h"
#include "formats/btl_openib_rails.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* RoCE: the subnet of an address; a length that cannot be is replaced by the usual one. */
static void ip_addresses_have_subnets(void **state)
{
    static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [14] = 2, [15] = 255}, v6[16] = {0x20, 1, [7] = 7, [15] = 9};
    static const struct {
        const uint8_t *gid;
        unsigned length, got;
    } table[] = {{v4, 24, 24}, {v4, 0, 24}, {v4, 33, 24}, {v4, 32, 32}, {v6, 64, 64}, {v6, 0, 64}, {v6, 129, 64}, {v6, 128, 128}};
    ofo_subnet_t subnet;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
        subnet = (ofo_subnet_t){0};
        ofo_subnet_set_ip(&subnet, table[i].gid, table[i].length);
        assert_int_equal(subnet.type, v4 == table[i].gid ? OFO_NET_IPV4 : OFO_NET_IPV6);
        assert_int_equal(subnet.prefix_len, table[i].got);
        assert_int_equal(subnet.key[v4 == table[i].gid ? 3 : 15], table[i].got < 64 && 32 != table[i].got ? 0
                                                                  : 64 == table[i].got                    ? 0
                                                                                                          : table[i].gid[15]);
    }
    ofo_subnet_set_ip(&subnet, v4, 12);
    assert_int_equal(subnet.key[0], 10);
    assert_int_equal(subnet.key[1], 0); /* 1 is below the twelfth bit */
}

/* Both sides pair the subnets in the same order: by type, by length, by address. */
static void subnets_of_all_kinds_are_ordered(void **state)
{
    ofo_record_t a = {.nports = 4}, b = {.nports = 4};
    ofo_rails_t rails;

    for (unsigned i = 0; i < 4; ++i) {
        ofo_port_t *port = &a.port[i];

        port->guid[15] = (uint8_t) (i + 1);
        port->lanes = 1;
        port->subnet = (ofo_subnet_t){i < 2 ? OFO_NET_IPV6 : OFO_NET_IPV4, (uint8_t) (i % 2 ? 24 : 28), {(uint8_t) i}};
        b.port[3 - i] = *port;
        b.port[3 - i].guid[15] = (uint8_t) (i + 10);
    }
    assert_int_equal(ofo_rails_pair(&a, &b, true, NULL, &rails), 0);
    assert_int_equal(rails.count, 4);
    for (unsigned i = 0; i < 4; ++i) {
        assert_int_equal(rails.pair[i].local + rails.pair[i].remote, 3);
        assert_int_equal(a.port[rails.pair[i].local].subnet.type, i < 2 ? OFO_NET_IPV4 : OFO_NET_IPV6);
        assert_int_equal(a.port[rails.pair[i].local].subnet.prefix_len, i % 2 ? 28 : 24);
    }
}

/* Numbers that come from memory which was overwritten, or from a damaged message, change no state and have a name. */
static void numbers_beyond_a_table_do_nothing(void **state)
{
    ofo_drain_t drain = {.own = OFO_DRAIN_STATES};
    ofo_fsm_t fsm;

    assert_string_equal(ofo_drain_state_name(OFO_DRAIN_STATES), "?");
    assert_string_equal(ofo_drain_event_name(OFO_DRAIN_EVENTS), "?");
    assert_string_equal(ofo_drain_action_name(OFO_DRAIN_ACTIONS), "?");
    assert_string_not_equal(ofo_drain_action_name(0), "?");
    assert_string_equal(ofo_fsm_state_name(OFO_ST_COUNT), "?");
    assert_string_equal(ofo_fsm_event_name(OFO_EV_COUNT), "?");
    assert_false(ofo_drain_step(&drain, 0).listed);
    drain.own = 0;
    assert_false(ofo_drain_step(&drain, OFO_DRAIN_EVENTS).listed);
    assert_int_equal(drain.own, 0);
    ofo_fsm_init(&fsm, NULL, NULL, NULL);
    assert_false(ofo_fsm_step(&fsm, OFO_EV_COUNT, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ip_addresses_have_subnets),
        cmocka_unit_test(subnets_of_all_kinds_are_ordered),
        cmocka_unit_test(numbers_beyond_a_table_do_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
