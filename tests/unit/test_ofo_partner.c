/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The other end of a rail where the records leave a choice: which ports are asked, which port takes a rail's name, and that neither a copy
 * nor a stranger changes the name. This program stands in for the peer. DESIGN.txt section 10.1.
 */
#include "bfo_config.h"

#include "types/btl_openib_ctl.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_partner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

ofo_component_t mca_btl_openib_component;

enum { PORTS = 3 }; /* the records do not tell the first two apart */

static ofo_module_t module[PORTS];
static ofo_endpoint_t ep[PORTS];
static ofo_port_t theirs[OFO_MAX_PORTS];
static ofo_peer_t peer;

static struct {
    uint8_t type, rail, to;
    uint32_t contact;
} sent[16];
static unsigned sent_count, letters[PORTS][OFO_MAIL_PORT_UP + 1];
static ofo_ctl_t letter;

void ofo_ctl_send(ofo_endpoint_t *to, ofo_ctl_t *ctl)
{
    assert_true(sent_count < 16);
    sent[sent_count].type = ctl->type;
    sent[sent_count].rail = ctl->rail;
    sent[sent_count].to = ctl->to;
    sent[sent_count++].contact = to->remote_contact;
}
void ofo_ud_forget(ofo_endpoint_t *forgetful) {}
void ofo_tell_service(ofo_endpoint_t *to, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    ++letters[to - ep][kind];
    if (NULL != ctl) {
        letter = *ctl;
    }
}
void ofo_log(unsigned level, const char *format, ...) {}

/* Our ports 0, 1, 2 and the peer's 0, 1, 2 are paired in this order. */
static void begin(bool own_is_higher)
{
    memset(&peer, 0, sizeof(peer));
    memset(ep, 0, sizeof(ep));
    memset(letters, 0, sizeof(letters));
    peer.own_is_higher = own_is_higher;
    peer.port = theirs;
    for (uint8_t i = 0; i < PORTS; ++i) {
        theirs[i].contact[0] = 100u + i;
        module[i].port_index = i;
        peer.pair[i] = (ofo_pair_t){.local = i, .remote = i};
        peer.rail[i] = &ep[i];
        ep[i].module = &module[i];
        ep[i].peer = &peer;
        ep[i].choices = 2 > i ? 3 : 0;
        ep[i].rail = 2 > i && own_is_higher ? OFO_RAIL_NONE : i;
        ep[i].partner = i;
        ep[i].remote_contact = 100u + i;
        ep[i].fsm.gen = 0;
        ep[i].fsm.state = OFO_ST_CLOSED;
    }
    peer.rail_count = PORTS;
    sent_count = 0;
}

static ofo_ctl_t message(uint8_t type, uint8_t rail, uint8_t from, uint8_t to)
{
    return (ofo_ctl_t){.type = type, .rail = rail, .from = from, .to = to};
}

static ofo_endpoint_t *arrives(unsigned at, uint8_t type, uint8_t rail, uint8_t from, uint8_t to)
{
    ofo_ctl_t ctl = message(type, rail, from, to);
    ofo_endpoint_t *found = ofo_partner_endpoint(&peer, &module[at], &ctl);

    return NULL != found && ofo_partner_fits(found, &ctl) ? found : NULL;
}

/* Sends one request; the messages are in `sent`. */
static void send_once(ofo_endpoint_t *from)
{
    ofo_ctl_t ctl = message(OFO_CTL_REQ, from->rail, 0, 0);

    sent_count = 0;
    ofo_partner_send(from, &ctl);
}

static void request_goes_to_the_list_first_then_to_all(void **state)
{
    begin(false);
    for (unsigned i = 0; i < 3; ++i) {
        send_once(&ep[1]);
        assert_int_equal(sent_count, 1);
        assert_int_equal(sent[0].to, 1);
        assert_int_equal(sent[0].contact, 101);
    }
    send_once(&ep[1]);
    assert_int_equal(sent_count, 2);
    assert_int_equal(sent[0].to, 0);
    assert_int_equal(sent[0].contact, 100);
    assert_int_equal(sent[1].to, 1);
    assert_int_equal(sent[1].contact, 101);
    for (unsigned i = 0; i < 5; ++i) { /* the records name the other end of this port */
        send_once(&ep[2]);
        assert_int_equal(sent_count, 1);
        assert_int_equal(sent[0].contact, 102);
    }
}

static void higher_process_asks_in_the_place_of_a_request(void **state)
{
    begin(true);
    send_once(&ep[0]);
    assert_int_equal(sent[0].type, OFO_CTL_ASK);
    assert_int_equal(sent[0].rail, OFO_RAIL_NONE);
    assert_int_equal(sent[0].to, 0);
    send_once(&ep[2]);
    assert_int_equal(sent[0].type, OFO_CTL_REQ);
}

static void port_takes_the_name_of_the_request_that_arrives(void **state)
{
    begin(true);
    assert_ptr_equal(arrives(1, OFO_CTL_REQ, 0, 0, 1), &ep[1]);
    assert_int_equal(ep[1].rail, 0);
    assert_int_equal(ep[1].remote_contact, 100);
    assert_ptr_equal(arrives(1, OFO_CTL_REQ, 0, 0, 1), &ep[1]); /* a copy of the request */
    assert_null(arrives(0, OFO_CTL_REQ, 0, 0, 0));              /* no other port takes this rail */
    assert_int_equal(ep[0].rail, OFO_RAIL_NONE);
    assert_null(arrives(1, OFO_CTL_REQ, 1, 1, 1)); /* this port takes no other rail */
    assert_int_equal(ep[1].rail, 0);
    assert_ptr_equal(arrives(0, OFO_CTL_REQ, 1, 1, 0), &ep[0]);
    assert_int_equal(ep[0].rail, 1);
    assert_ptr_equal(arrives(0, OFO_CTL_DOWN, 1, 0, 0), &ep[0]);
    assert_ptr_equal(arrives(2, OFO_CTL_DOWN, 0, 0, 0), &ep[1]); /* arrives over another port */
    send_once(&ep[1]);
    assert_int_equal(sent_count, 1);
    assert_int_equal(sent[0].type, OFO_CTL_REQ);
    assert_int_equal(sent[0].contact, 100);
}

static void stranger_gives_no_name(void **state)
{
    begin(true);
    assert_null(arrives(1, OFO_CTL_REQ, 0, 0, 0)); /* meant for the port of that address on another fabric */
    assert_null(arrives(1, OFO_CTL_REQ, 0, 1, 1)); /* from no port of that rail */
    assert_null(arrives(1, OFO_CTL_REQ, 7, 0, 1)); /* there is no rail 7 */
    assert_null(arrives(1, OFO_CTL_REP, 0, 0, 1));
    assert_null(arrives(1, OFO_CTL_ASK, OFO_RAIL_NONE, 0, 1)); /* the lower process does not ask */
    assert_null(arrives(1, OFO_CTL_RTU, 0, 0, 0));
    assert_null(arrives(2, OFO_CTL_ASK, OFO_RAIL_NONE, 2, 2)); /* port 2 has no choice */
    assert_int_equal(ep[0].rail, OFO_RAIL_NONE);
    assert_int_equal(ep[1].rail, OFO_RAIL_NONE);
    assert_ptr_equal(arrives(2, OFO_CTL_REQ, 2, 9, 9), &ep[2]); /* a port without a choice accepts any sender */
}

static void reply_settles_the_other_end(void **state)
{
    ofo_ctl_t rep = message(OFO_CTL_REP, 1, 0, 1);

    begin(false);
    assert_null(arrives(1, OFO_CTL_REQ, 1, 0, 1)); /* the higher process sends none */
    assert_null(arrives(1, OFO_CTL_REP, 1, 2, 1)); /* the port of another fabric */
    assert_null(arrives(1, OFO_CTL_REP, 1, 0, 0));
    assert_ptr_equal(arrives(1, OFO_CTL_REP, 1, 0, 1), &ep[1]);
    assert_false(ep[1].is_settled); /* the machine may still refuse the REP */
    ofo_partner_learn(&ep[1], &rep);
    assert_true(ep[1].is_settled);
    assert_int_equal(ep[1].remote_contact, 100);
    assert_null(arrives(1, OFO_CTL_REP, 1, 1, 1));
    assert_ptr_equal(arrives(1, OFO_CTL_REP, 1, 0, 1), &ep[1]);
    assert_ptr_equal(arrives(1, OFO_CTL_REQ, 1, 0, 1), &ep[1]); /* of a later generation */
    rep.from = 1;
    ofo_partner_learn(&ep[1], &rep); /* the other end is settled */
    assert_int_equal(ep[1].partner, 0);
}

static void request_goes_to_the_port_that_asks(void **state)
{
    begin(false);
    assert_ptr_equal(arrives(1, OFO_CTL_ASK, OFO_RAIL_NONE, 0, 1), &ep[1]);
    send_once(&ep[1]);
    assert_int_equal(sent[sent_count - 1].to, 0);
    ep[0].fsm.state = OFO_ST_REQUESTED;
    assert_ptr_equal(arrives(0, OFO_CTL_ASK, OFO_RAIL_NONE, 1, 0), &ep[0]);
    assert_int_equal(ep[0].partner, 0); /* a request is out already, therefore ASK changes nothing */
}

static void rail_that_no_port_was_is_ended_for_good(void **state)
{
    begin(true);
    assert_null(arrives(0, OFO_CTL_DOWN, 0, 0, 0));
    assert_int_equal(letters[0][OFO_MAIL_SEND], 1);
    assert_int_equal(letters[1][OFO_MAIL_SEND], 1);
    assert_int_equal(letter.type, OFO_CTL_DACK);
    assert_int_equal(letter.rail, 0);
    assert_int_equal(letter.flags, OFO_DACK_VALID);
    assert_null(arrives(1, OFO_CTL_REQ, 0, 0, 1)); /* a late copy of the request */
    assert_int_equal(letters[0][OFO_MAIL_ERROR] + letters[1][OFO_MAIL_ERROR], 0);
    assert_ptr_equal(arrives(1, OFO_CTL_REQ, 1, 1, 1), &ep[1]);
    assert_null(arrives(0, OFO_CTL_DOWN, 0, 0, 0)); /* DOWN again: now the other port has no rail left */
    assert_int_equal(letters[0][OFO_MAIL_ERROR], 1);
    assert_int_equal(letters[1][OFO_MAIL_ERROR], 0);
}

static void busy_peer_is_heard_before_there_is_a_name(void **state)
{
    ofo_ctl_t busy = {.type = OFO_CTL_REJ, .rail = 1, .reason = OFO_REJ_BUSY};

    begin(true);
    assert_ptr_equal(ofo_partner_endpoint(&peer, &module[0], &busy), &ep[0]);
    busy.reason = OFO_REJ_PORT_DOWN;
    assert_null(ofo_partner_endpoint(&peer, &module[0], &busy));
    ep[0].rail = 0; /* now the port has another name */
    busy.reason = OFO_REJ_BUSY;
    assert_null(ofo_partner_endpoint(&peer, &module[0], &busy));
}

static void message_that_fits_no_port_is_dropped(void **state)
{
    static ofo_module_t stranger = {.port_index = PORTS}; /* the peer has no rail over this port */
    ofo_ctl_t ask = message(OFO_CTL_ASK, OFO_RAIL_NONE, 0, PORTS), later = message(OFO_CTL_REQ, 0, 0, 1);

    begin(true);
    assert_null(ofo_partner_endpoint(&peer, &stranger, &ask));
    ask.type = OFO_CTL_REQ;
    ask.rail = 0;
    assert_null(ofo_partner_endpoint(&peer, &stranger, &ask));
    later.gen = 1; /* no request of the first generation has arrived */
    assert_null(ofo_partner_endpoint(&peer, &module[1], &later));
    assert_int_equal(ep[1].rail, OFO_RAIL_NONE);
    peer.pair[0].lane = 1; /* a rail of the other lane */
    assert_null(arrives(1, OFO_CTL_REQ, 0, 0, 1));
    assert_int_equal(ep[1].rail, OFO_RAIL_NONE);
    begin(false);
    assert_null(arrives(1, OFO_CTL_DOWN, 7, 0, 0)); /* the lower process has named all its rails */
    assert_int_equal(letters[1][OFO_MAIL_SEND], 0);
}

/* Runs last, because from then on this process tries all ports at once. */
static void who_has_met_crossed_wires_loses_no_time(void **state)
{
    begin(true);
    assert_ptr_equal(arrives(1, OFO_CTL_REQ, 0, 0, 1), &ep[1]);
    send_once(&ep[0]);
    assert_int_equal(sent_count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_goes_to_the_list_first_then_to_all),
        cmocka_unit_test(higher_process_asks_in_the_place_of_a_request),
        cmocka_unit_test(stranger_gives_no_name),
        cmocka_unit_test(busy_peer_is_heard_before_there_is_a_name),
        cmocka_unit_test(port_takes_the_name_of_the_request_that_arrives),
        cmocka_unit_test(reply_settles_the_other_end),
        cmocka_unit_test(request_goes_to_the_port_that_asks),
        cmocka_unit_test(rail_that_no_port_was_is_ended_for_good),
        cmocka_unit_test(message_that_fits_no_port_is_dropped),
        cmocka_unit_test(who_has_met_crossed_wires_loses_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
