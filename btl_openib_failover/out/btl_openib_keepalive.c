/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A process that only waits for another one posts nothing to it, and no port event says that the other was killed. Therefore
 * each connected rail that carried nothing since the last round gets a WRITE of one byte. The port of a living process
 * answers it, even if the process is stopped. The queue pair of a dead process is gone, and the WRITE fails like any other
 * work of a lost rail. If no connected rail is left, a rail that was never used is connected: a dead process does not answer the
 * request. Only peers of our own job are asked, because others may end properly before we do. Context: progress. See DESIGN.txt 15.5.
 */
#include "out/btl_openib_keepalive.h"

#include "bfo_assert.h"
#include "types/btl_openib_atomic.h"
#include "qp/btl_openib_drain.h"
#include "types/btl_openib_endpoints.h"
#include "qp/btl_openib_gate.h"
#include "types/btl_openib_mail.h"
#include "qp/btl_openib_qpset.h"

/* The WRITE uses the send queue slot of the proof, which is over when a rail is up. Locks: ep->lock held. */
void ofo_keepalive_post(ofo_endpoint_t *ep, ofo_qpset_t *qps)
{
    struct ibv_send_wr wr = {.wr_id = (uintptr_t) &qps->alive}, *wrong;
    struct ibv_sge sge;

    BFO_ASSERT(!qps->is_asking && ofo_drain_is_live(&qps->drain));
    ofo_qpset_ask(qps, &wr, &sge, 1);
    if (0 == ibv_post_send(qps->qp[0].qp, &wr, &wrong)) {
        qps->is_asking = true;
        qps->alive_place = qps->qp[0].place + 1;
    } else {
        (void) ofo_drain_raise(qps, OFO_DEV_POST_REFUSED, NULL);
    }
}

/* Spreads the turns, so that processes that start at the same time do not all ask the same peer at once. */
static bool is_its_turn(const ofo_endpoint_t *ep)
{
    return (ep->peer->name.vpid + OFO.self.vpid) % OFO_KEEPALIVE_TURNS == ep->module->keepalive_turn;
}

bool ofo_keepalive_may_ask(const ofo_peer_t *peer)
{
    return !OFO_LOAD(OFO.closing) && !OFO_LOAD(peer->closing) && !OFO_LOAD(peer->declared) && peer->name.jobid == OFO.self.jobid;
}

/* Are all rails lost that the two processes have used? The rails that are left are connected by the first post, and a process that only
 * waits posts nothing. */
static bool is_left_alone(const ofo_peer_t *peer)
{
    bool has_lost = false;

    for (unsigned i = 0; i < peer->rail_count; ++i) {
        const ofo_gate_t gate = OFO_LOAD(peer->rail[i]->gate);

        if (OFO_GATE_UP == gate || OFO_GATE_WAITING == gate) {
            return false;
        }
        has_lost = has_lost || (OFO_GATE_REFUSING == gate && OFO_GEN_NONE != OFO_LOAD(peer->rail[i]->refused_gen));
    }
    return has_lost;
}

/* Locks: ep->lock held. */
static void connect_unused(ofo_endpoint_t *ep)
{
    bool begins = false;
    int rc = OPAL_SUCCESS;

    ofo_gate_ask(ep, &begins, &rc);
    if (begins) {
        ofo_tell_service(ep, OFO_MAIL_POST, 0, NULL, NULL);
        ++ep->module->count.keepalives;
    }
}

static void visit(ofo_endpoint_t *ep)
{
    ofo_qpset_t *qps = ep->qps;
    const ofo_peer_t *peer = ep->peer;
    uint64_t seen;

    if (!is_its_turn(ep)) {
        return;
    }
    if (NULL != qps && OFO_DRAIN_CLOSED == ofo_drain_state(&qps->drain) && !OFO_LOAD(OFO.closing) && !OFO_LOAD(peer->closing)) {
        (void) ofo_drain_raise(qps, OFO_DEV_TURN, NULL);
        return;
    }
    if (OFO_GATE_CLOSED == ep->gate && ofo_keepalive_may_ask(peer) && is_left_alone(peer)) {
        connect_unused(ep);
        return;
    }
    if (OFO_GATE_UP != ep->gate || NULL == qps || !ofo_drain_is_live(&qps->drain) || !ofo_keepalive_may_ask(peer)) {
        return;
    }
    seen = qps->n_ok + qps->n_received;
    if (seen == qps->seen && !qps->is_asking) {
        ofo_keepalive_post(ep, qps);
        ++ep->module->count.keepalives;
    }
    qps->seen = seen;
}

void ofo_keepalive(ofo_module_t *module)
{
    module->keepalive_turn = (module->keepalive_turn + 1) % OFO_KEEPALIVE_TURNS;
    ofo_for_each_endpoint(module, visit);
}
