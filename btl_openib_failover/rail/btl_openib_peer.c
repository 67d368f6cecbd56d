/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Peers are made on first contact from the modex record, with one endpoint for each rail. A process without a rail to us
 * is remembered too, so that the user gets the message once. See DESIGN.txt 10 and 15.
 */
#include "rail/btl_openib_peer.h"

#include "types/btl_openib_atomic.h"
#include "qp/btl_openib_gate.h"
#include "types/btl_openib_log.h"
#include "qp/btl_openib_qpset.h"
#include "formats/btl_openib_queues.h"
#include "rail/btl_openib_rail.h"
#include "formats/btl_openib_rails.h"
#include "rail/btl_openib_spared.h"
#include "formats/btl_openib_wire.h"

#include "bfo_assert.h"
#include "bfo_help.h"


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEX_KEY "bfo.btl.openib"

static uint64_t key_of(uint32_t jobid, uint32_t vpid)
{
    return (uint64_t) jobid << 32 | vpid;
}

static bool own_name_is_higher(const opal_process_name_t *other)
{
    return key_of(OFO.self.jobid, OFO.self.vpid) > key_of(other->jobid, other->vpid);
}

static ofo_module_t *module_of(const ofo_pair_t *pair)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        if (OFO.module[i]->port_index == pair->local && OFO.module[i]->lane == pair->lane) {
            return OFO.module[i];
        }
    }
    return NULL;
}

static ofo_endpoint_t *endpoint_new(ofo_peer_t *peer, unsigned rail, const ofo_pair_t *pair, const ofo_port_t *remote)
{
    ofo_endpoint_t *ep = calloc(1, sizeof(*ep));

    if (NULL == ep) {
        return NULL;
    }
    ep->module = module_of(pair);
    BFO_ASSERT(NULL != ep->module && rail < OFO_MAX_RAILS); /* the lists were made of our ports */
    ep->peer = peer;
    ep->rail = (uint8_t) rail;
    ep->remote = *remote;
    ep->remote_contact = remote->contact[pair->lane];
    ep->partner = pair->remote;
    pthread_mutex_init(&ep->gate_lock, NULL);
    OBJ_CONSTRUCT(&ep->lock, opal_mutex_t);
    for (unsigned i = 0; i < OFO_MAX_QPS; ++i) {
        OBJ_CONSTRUCT(&ep->pending[i], opal_list_t);
    }
    OBJ_CONSTRUCT(&ep->pending_rdma, opal_list_t);
    ofo_rail_init(ep);
    return ep;
}

static void endpoint_free(ofo_endpoint_t *ep)
{
    if (NULL != ep->building) {
        ofo_qpset_destroy(ep->building);
    }
    if (NULL != ep->draining) {
        ofo_qpset_destroy(ep->draining); /* the process ended before the fence did */
    }
    if (NULL != ep->ah) {
        ibv_destroy_ah(ep->ah);
    }
    for (unsigned i = 0; i < OFO_MAX_QPS; ++i) {
        while (NULL != opal_list_remove_first(&ep->pending[i])) {
        }
        OBJ_DESTRUCT(&ep->pending[i]);
    }
    while (NULL != opal_list_remove_first(&ep->pending_rdma)) {
    }
    OBJ_DESTRUCT(&ep->pending_rdma);
    OBJ_DESTRUCT(&ep->lock);
    pthread_mutex_destroy(&ep->gate_lock);
    free(ep);
}

static void peer_free(ofo_peer_t *peer)
{
    for (unsigned i = 0; i < peer->rail_count; ++i) {
        endpoint_free(peer->rail[i]);
    }
    free(peer->port);
    free(peer);
}

/* Gets the peer's record from the modex; false if there is none that we understand. */
static bool fetch_record(const opal_process_name_t *name, ofo_record_t *record)
{
    opal_process_name_t wanted = *name;
    void *bytes = NULL;
    size_t length = 0;
    ofo_wire_result_t result;
    int rc;

    OPAL_MODEX_RECV_STRING(rc, MODEX_KEY, &wanted, &bytes, &length);
    if (OPAL_SUCCESS != rc || NULL == bytes) {
        ofo_log(1, "process %u has no openib BTL of bfo", name->vpid);
        return false;
    }
    result = ofo_record_unpack(bytes, length, record);
    if (OFO_WIRE_VERSION == result) {
        bfo_help_say(OFO_HELP_FILE, "other version", OFO.self.vpid, name->vpid, BFO_VERSION, (unsigned) OFO_RECORD_VERSION,
                     (unsigned) record->version);
    } else if (OFO_WIRE_OK != result) {
        bfo_help_say(OFO_HELP_FILE, "bad record", OFO.self.vpid, name->vpid);
    }
    free(bytes);
    return OFO_WIRE_OK == result;
}

/* Prints one notice per process about ports that have no partner. */
static void say_fewer_rails(const ofo_peer_t *peer, const ofo_record_t *record, const ofo_rails_t *rails)
{
    static bool said;

    if (said || 0 == OFO.record.nports || (0 == rails->unused_local && 0 == rails->unused_remote)) {
        return;
    }
    said = true;
    bfo_help_say(OFO_HELP_FILE, 0 < record->nports ? "fewer rails" : "peer without ports", OFO.self.vpid, OFO.record.nports, peer->name.vpid,
                 record->nports, rails->count);
}

static unsigned count_ports(const ofo_record_t *record, const ofo_subnet_t *subnet)
{
    unsigned count = 0;

    for (unsigned i = 0; i < record->nports; ++i) {
        count += 0 == memcmp(&record->port[i].subnet, subnet, sizeof(*subnet));
    }
    return count;
}

static uint8_t most_alike(const ofo_record_t *record, const ofo_subnet_t *subnet)
{
    const unsigned own = count_ports(&OFO.record, subnet), theirs = count_ports(record, subnet);

    return (uint8_t) (own > theirs ? own : theirs);
}

/* If the records leave a choice, the higher process gets the rail's name from the request that arrives. The hash includes these
 * rails, because both sides must agree on them. */
static bool leave_choice(ofo_peer_t *peer, ofo_endpoint_t *ep, const ofo_record_t *record, uint16_t choices)
{
    if (0 == choices) {
        return true;
    }
    BFO_ASSERT(choices >> ep->partner & 1); /* the port of the list is a choice: the first requests go there */
    if (NULL == peer->port) {
        peer->port = malloc(sizeof(record->port));
        if (NULL == peer->port) {
            return false;
        }
        memcpy(peer->port, record->port, sizeof(record->port));
    }
    peer->rail_hash = ofo_fnv1a(peer->rail_hash, &ep->rail, 1);
    ep->choices = choices;
    if (peer->own_is_higher) {
        ep->rail = OFO_RAIL_NONE;
    }
    return true;
}

static uint16_t choices_of(const ofo_record_t *record, const ofo_rails_t *rails, unsigned rail)
{
    const bool has_map = NULL != OFO.params.rail_map && '\0' != *OFO.params.rail_map;

    return has_map || OFO_CPC_UD != OFO.cpc->type ? 0 : ofo_rails_choices(&OFO.record, record, rails, rail);
}

static void make_rails(ofo_peer_t *peer, const ofo_record_t *record)
{
    ofo_rails_t rails;

    if (!ofo_queues_match(&OFO.queues, record)) {
        bfo_help_say(OFO_HELP_FILE, "queues differ", OFO.self.vpid, peer->name.vpid, OFO.params.receive_queues);
        return;
    }
    if (0 != ofo_rails_pair(&OFO.record, record, !peer->own_is_higher, OFO.params.rail_map, &rails)) {
        bfo_help_say(OFO_HELP_FILE, "bad parameter", "rail_map", OFO.params.rail_map,
                     "it must be a list of device:port-device:port, separated by commas");
        return;
    }
    BFO_ASSERT(rails.count <= OFO_MAX_RAILS);
    for (unsigned i = 0; i < rails.count; ++i) {
        if (OFO.cpc->type != record->port[rails.pair[i].remote].cpc) {
            bfo_help_say(OFO_HELP_FILE, "cpc differs", OFO.self.vpid, peer->name.vpid, OFO.cpc->name);
            return;
        }
    }
    if (0 < rails.unroutable) {
        bfo_help_say_once(OFO.params.rail_map, OFO_HELP_FILE, "map crosses subnets", OFO.self.vpid, peer->name.vpid, OFO.params.rail_map,
                          rails.unroutable);
    }
    say_fewer_rails(peer, record, &rails);
    peer->queues = OFO.no_srq || !ofo_queues_are_shared(record) ? &OFO.plain : &OFO.queues;
    peer->incarnation = record->incarnation;
    peer->rail_hash = rails.hash;
    memcpy(peer->pair, rails.pair, sizeof(peer->pair));
    for (unsigned i = 0; i < rails.count; ++i) {
        peer->rail[i] = endpoint_new(peer, i, &rails.pair[i], &record->port[rails.pair[i].remote]);
        if (NULL == peer->rail[i]) {
            return;
        }
        if (!leave_choice(peer, peer->rail[i], record, choices_of(record, &rails, i))) {
            endpoint_free(peer->rail[i]);
            return;
        }
        peer->rail[i]->alike = most_alike(record, &OFO.record.port[rails.pair[i].local].subnet);
        peer->rail_count = i + 1;
        ofo_log(1, "bfo: %u->%u rail %u: %s - %s", OFO.self.vpid, peer->name.vpid, i, peer->rail[i]->module->name, peer->rail[i]->remote.name);
    }
}

/* A rail of a port that is down is not used until the port returns, unless the peer has no other rail. The same is done for a port that was
 * down when the peer started: otherwise messages to a peer that sends nothing would wait for a connection. The peer brings the rail back.
 * Locks: peers_lock held until the peer can be found, so that the port's next letter finds it too. */
static void leave_out_dead(ofo_peer_t *peer)
{
    for (unsigned i = 0; i < peer->rail_count; ++i) {
        ofo_endpoint_t *ep = peer->rail[i];
        BFO_ASSERT(peer == ep->peer && OFO_GATE_CLOSED == ep->gate); /* nobody knows the peer yet */
        if ((!OFO_LOAD(ep->module->port_up) || ep->remote.is_late) && !ofo_rail_is_spared(ep)) {
            ofo_gate_refuse_for_port(ep);
        }
    }
}

static ofo_peer_t *peer_new(const opal_process_name_t *name, opal_proc_t *proc)
{
    ofo_peer_t *peer = calloc(1, sizeof(*peer));
    ofo_record_t *record = malloc(sizeof(*record));

    if (NULL == peer || NULL == record) {
        free(peer);
        free(record);
        return NULL;
    }
    peer->name = *name;
    peer->proc = proc;
    peer->own_is_higher = own_name_is_higher(name);
    if (fetch_record(name, record)) {
        make_rails(peer, record);
    }
    free(record);
    return peer;
}

static ofo_peer_t *lookup(uint32_t jobid, uint32_t vpid)
{
    void *peer = NULL;

    return OPAL_SUCCESS == opal_hash_table_get_value_uint64(&OFO.peers, key_of(jobid, vpid), &peer) ? peer : NULL;
}

ofo_peer_t *ofo_peer_find(uint32_t jobid, uint32_t vpid)
{
    ofo_peer_t *peer;

    pthread_mutex_lock(&OFO.peers_lock);
    peer = lookup(jobid, vpid);
    pthread_mutex_unlock(&OFO.peers_lock);
    return peer;
}

ofo_peer_t *ofo_peer_get(const opal_process_name_t *name, opal_proc_t *proc)
{
    ofo_peer_t *peer, *made = NULL;

    if (key_of(name->jobid, name->vpid) == key_of(OFO.self.jobid, OFO.self.vpid)) {
        return NULL; /* BTL self */
    }
    peer = ofo_peer_find(name->jobid, name->vpid);
    if (NULL == peer) { /* without the lock, because the modex may have to ask another node */
        made = peer_new(name, proc);
    }
    pthread_mutex_lock(&OFO.peers_lock);
    peer = lookup(name->jobid, name->vpid);
    BFO_ASSERT(NULL == peer || (name->jobid == peer->name.jobid && name->vpid == peer->name.vpid));
    BFO_ASSERT(NULL == peer || peer->rail_count <= OFO_MAX_RAILS);
    if (NULL != peer && NULL != proc) {
        peer->proc = proc; /* service made the peer without */
    }
    if (NULL == peer && NULL != made) {
        peer = made;
        made = NULL;
        leave_out_dead(peer);
        opal_hash_table_set_value_uint64(&OFO.peers, key_of(name->jobid, name->vpid), peer);
    }
    pthread_mutex_unlock(&OFO.peers_lock);
    if (NULL != made) {
        peer_free(made); /* another thread was faster */
    }
    return NULL != peer && 0 < peer->rail_count ? peer : NULL;
}

/* The service threads are stopped, and no work is in flight. */
void ofo_peers_free(void)
{
    void *entry;
    uint64_t key;

    OPAL_HASH_TABLE_FOREACH(key, uint64, entry, &OFO.peers)
    {
        peer_free(entry);
    }
    opal_hash_table_remove_all(&OFO.peers);
}
