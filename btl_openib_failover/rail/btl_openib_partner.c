/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Finds the port of the peer at the other end of a rail. The records may leave a choice, because ports of one prefix may be on different
 * fabrics. A rail is named after the port of the lower process. Only the lower process sends requests, first to the port that the list
 * gives, then to all choices. The port of the higher process that receives one takes the rail's name, once and for all, and answers. The
 * higher process can only ask for requests. Nothing else is sent over a rail before it has its name. See DESIGN.txt 10.1.
 */
#include "rail/btl_openib_partner.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_ctl.h"
#include "types/btl_openib_endpoints.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"

#include "bfo_assert.h"

enum { FIRST_TRIES = 3 }; /* some 0.7 s */

static bool is_crossed; /* a rail of this process has a partner that is not the one of the list; atomic */

static bool is_choice(const ofo_endpoint_t *ep, unsigned port)
{
    return OFO_MAX_PORTS > port && (ep->choices >> port & 1);
}

static void turn_to(ofo_endpoint_t *ep, unsigned port)
{
    BFO_ASSERT(is_choice(ep, port) && NULL != ep->peer->port);
    if (port != ep->partner) {
        ep->partner = (uint8_t) port;
        ep->remote = ep->peer->port[port];
        ep->remote_contact = ep->remote.contact[ep->module->lane];
        ofo_ud_forget(ep);
    }
}

static void settle(ofo_endpoint_t *ep, unsigned port)
{
    const ofo_pair_t *pair = &ep->peer->pair[ep->rail];

    BFO_ASSERT(ep->rail < ep->peer->rail_count); /* a rail has its name before its partner is proved */
    BFO_ASSERT(!ep->is_settled);
    turn_to(ep, port);
    ep->is_settled = true;
    if (pair->remote != port || pair->local != ep->module->port_index) {
        OFO_STORE(is_crossed, true);
    }
    ofo_log(1, "bfo: %u->%u rail %u: %s - %s, proved", OFO.self.vpid, ep->peer->name.vpid, ep->rail, ep->module->name, ep->remote.name);
}

/* ---- out ---------------------------------------------------------------------------------------- */

void ofo_partner_send(ofo_endpoint_t *ep, ofo_ctl_t *ctl)
{
    const unsigned first = ep->partner;

    if (OFO_RAIL_NONE == ep->rail) {
        ctl->type = OFO_CTL_ASK;
        ctl->gen = 0;
    }
    if (0 != ep->choices && !ep->is_settled && (FIRST_TRIES <= ep->tries++ || OFO_LOAD(is_crossed))) {
        for (unsigned port = 0; port < OFO_MAX_PORTS; ++port) {
            if (port != first && is_choice(ep, port)) {
                turn_to(ep, port);
                ctl->to = (uint8_t) port;
                ofo_ctl_send(ep, ctl);
            }
        }
        turn_to(ep, first);
    }
    ctl->to = (uint8_t) first;
    ofo_ctl_send(ep, ctl);
}

/* ---- in ----------------------------------------------------------------------------------------- */

static bool tells_ports(const ofo_ctl_t *ctl)
{
    return OFO_CTL_REQ == ctl->type || OFO_CTL_REP == ctl->type || OFO_CTL_ASK == ctl->type;
}

bool ofo_partner_fits(const ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    if (!tells_ports(ctl)) {
        return true;
    }
    if (0 == ep->choices) {
        return OFO_CTL_ASK != ctl->type;
    }
    if (ctl->to != ep->module->port_index || !is_choice(ep, ctl->from)) {
        return false;
    }
    if (ep->is_settled) {
        return ctl->from == ep->partner;
    }
    return !ep->peer->own_is_higher && OFO_CTL_REQ != ctl->type;
}

void ofo_partner_learn(ofo_endpoint_t *ep, const ofo_ctl_t *ctl)
{
    if (OFO_CTL_REP == ctl->type && 0 != ep->choices && !ep->is_settled) {
        settle(ep, ctl->from);
    }
}

/* May `ep` be the rail of that name? Locks: peers_lock held. */
static bool is_free(const ofo_endpoint_t *ep, uint8_t name)
{
    const ofo_peer_t *peer = ep->peer;

    return name < peer->rail_count && peer->pair[name].lane == ep->module->lane && is_choice(ep, peer->pair[name].remote)
           && !(peer->ended >> name & 1) && NULL == ofo_peer_rail(peer, name);
}

/* The port takes the name of the rail whose request has arrived, if no other port has taken it. */
static bool take_name(ofo_endpoint_t *ep, const ofo_ctl_t *req)
{
    bool taken;

    pthread_mutex_lock(&OFO.peers_lock);
    taken = is_free(ep, req->rail) && ep->peer->pair[req->rail].remote == req->from;
    if (taken) {
        BFO_ASSERT(OFO_RAIL_NONE == ep->rail && !ep->is_settled); /* a port takes a name once */
        OFO_STORE(ep->rail, req->rail);
    }
    pthread_mutex_unlock(&OFO.peers_lock);
    if (taken) {
        settle(ep, req->from);
    }
    return taken;
}

static bool has_hope(const ofo_endpoint_t *ep)
{
    for (unsigned name = 0; name < OFO_MAX_RAILS; ++name) {
        if (is_free(ep, (uint8_t) name)) {
            return true;
        }
    }
    return false;
}

/* The peer gives up a rail whose name none of our ports has taken. It carried nothing, and no port may take its name any more. Ports
 * without a name may have lost their last choice by this. */
static void end_name(ofo_peer_t *peer, const ofo_ctl_t *down)
{
    const ofo_ctl_t dack = {.type = OFO_CTL_DACK, .rail = down->rail, .gen = down->gen, .flags = OFO_DACK_VALID};

    BFO_ASSERT(down->rail < OFO_MAX_RAILS); /* ofo_ctl_unpack() refuses others */
    pthread_mutex_lock(&OFO.peers_lock);
    if (NULL != ofo_peer_rail(peer, down->rail)) { /* another thread has just taken the name: the rail answers when DOWN is repeated */
        pthread_mutex_unlock(&OFO.peers_lock);
        return;
    }
    peer->ended |= (uint8_t) (1u << down->rail);
    for (unsigned i = 0; i < peer->rail_count; ++i) {
        ofo_endpoint_t *ep = peer->rail[i];
        ofo_tell_service(ep, OFO_MAIL_SEND, down->gen, &dack, NULL);
        if (OFO_RAIL_NONE == OFO_LOAD(ep->rail) && !has_hope(ep)) {
            ofo_tell_service(ep, OFO_MAIL_ERROR, 0, NULL, NULL);
        }
    }
    pthread_mutex_unlock(&OFO.peers_lock);
}

ofo_endpoint_t *ofo_partner_endpoint(ofo_peer_t *peer, ofo_module_t *module, const ofo_ctl_t *ctl)
{
    ofo_endpoint_t *named = OFO_RAIL_NONE != ctl->rail ? ofo_peer_rail(peer, ctl->rail) : NULL, *here;

    if (NULL == peer->port) {
        return named;
    }
    here = ofo_peer_endpoint(peer, module);
    if (tells_ports(ctl) && NULL != here && 0 != here->choices && ctl->to != module->port_index) {
        return NULL; /* a port of another fabric has the same address */
    }
    if (OFO_CTL_ASK == ctl->type) {
        if (NULL != here && ofo_partner_fits(here, ctl) && OFO_ST_CLOSED == here->fsm.state) {
            turn_to(here, ctl->from);
        }
        return here;
    }
    if (NULL != named || NULL == here || !peer->own_is_higher) {
        return named;
    }
    if (OFO_CTL_REQ == ctl->type && 0 == ctl->gen && OFO_RAIL_NONE == here->rail) {
        return take_name(here, ctl) ? here : NULL;
    }
    if (OFO_CTL_DOWN == ctl->type) {
        end_name(peer, ctl);
    }
    return OFO_CTL_REJ == ctl->type && OFO_REJ_BUSY == ctl->reason && OFO_RAIL_NONE == here->rail ? here : NULL;
}
