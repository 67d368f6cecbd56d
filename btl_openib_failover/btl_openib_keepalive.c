/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Who only waits for a process posts nothing to it, and no port tells that it was killed. So each connected rail on
 * which nothing came or went since the last round gets a WRITE of one byte: a living process's port answers it, even if
 * the process is stopped; the queue pair of a dead one is gone, and the write ends as any other work of a lost rail.
 * Only towards processes of our own job: others may end properly before we do. Context: progress. See DESIGN.txt 15.5.
 */
#include "btl_openib_keepalive.h"

#include "bfo_assert.h"
#include "btl_openib_atomic.h"
#include "btl_openib_drain.h"
#include "btl_openib_endpoints.h"
#include "btl_openib_qpset.h"

/* It takes the slot of the proof, which is over once a rail is up. Locks: ep->lock held. */
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

/* Processes that start together do not ask the same peer together. */
static bool is_its_turn(const ofo_endpoint_t *ep)
{
    return (ep->peer->name.vpid + OFO.self.vpid) % OFO_KEEPALIVE_TURNS == ep->module->keepalive_turn;
}

bool ofo_keepalive_may_ask(const ofo_peer_t *peer)
{
    return !OFO.closing && !OFO_LOAD(peer->closing) && !OFO_LOAD(peer->declared) && peer->name.jobid == OFO.self.jobid;
}

static void visit(ofo_endpoint_t *ep)
{
    ofo_qpset_t *qps = ep->qps;
    const ofo_peer_t *peer = ep->peer;
    uint64_t seen;

    if (!is_its_turn(ep)) {
        return;
    }
    if (NULL != qps && OFO_DRAIN_CLOSED == ofo_drain_state(&qps->drain) && !OFO.closing && !OFO_LOAD(peer->closing)) {
        (void) ofo_drain_raise(qps, OFO_DEV_TURN, NULL);
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
