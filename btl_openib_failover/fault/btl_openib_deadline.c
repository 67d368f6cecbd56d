/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Looks now and then whether work of a rail is out and none of it has ended since. If so, service is asked for an inquiry (_probe.c).
 * A rail that the inquiry finds silent ends here like one with a bad completion, long before the adapter gives up. Only a process that
 * waits in MPI looks, so a process that computes costs the network nothing. See DESIGN.txt 10.2, "Silence".
 */
#include "fault/btl_openib_deadline.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "qp/btl_openib_drain.h"
#include "types/btl_openib_endpoints.h"
#include "types/btl_openib_mail.h"
#include "out/btl_openib_silent.h"

enum {
    MOST_WAIT_MS = 1000, /* between two inquiries into one rail */
    PEERS_PER_MS = 64    /* for so many peers the pause between two looks is a millisecond longer */
};

/* Completions of the sends and of RDMA. Receives do not count: a path may be silent in one direction only. */
static uint64_t ended(const ofo_qpset_t *qps)
{
    return qps->n_ok + qps->n_rdma;
}

static bool waits(const ofo_endpoint_t *ep)
{
    return OFO_GATE_UP == ep->gate && NULL != ep->qps && ofo_drain_is_live(&ep->qps->drain)
           && (0 != ep->sends_out || 0 != ep->rdma_out || ep->qps->is_asking) && !ep->doubted && !OFO_LOAD(OFO.closing)
           && !OFO_LOAD(ep->peer->closing) && !OFO_LOAD(ep->peer->declared);
}

/* Service begins to ask after a quarter of this time, so that its questions can end before it is over. */
static unsigned first_verdict(void)
{
    return 0 != OFO.params.soft_deadline ? OFO.params.soft_deadline : OFO.params.deadline;
}

/* Locks: ep->lock held. */
static void look(ofo_endpoint_t *ep)
{
    ofo_stall_t *stall = &ep->stall;
    uint64_t now;

    if (!waits(ep)) {
        stall->since = 0;
        return;
    }
    now = ofo_now_ms();
    if (0 != ep->copies_due && now >= ep->copies_due) {
        ep->copies_due = now + MOST_WAIT_MS; /* not again while the letter is unread */
        ofo_tell_progress(ep->module, OFO_MAIL_OVERDUE, ep, ep->qps->gen, NULL, NULL);
    }
    if (0 == stall->since || stall->seen != ended(ep->qps) || stall->gen != ep->qps->gen) {
        *stall = (ofo_stall_t){.since = now, .seen = ended(ep->qps), .gen = ep->qps->gen, .wait = OFO.params.deadline};
        stall->ask_at = now + first_verdict() / 4;
        return;
    }
    if (now >= stall->since + first_verdict() / 8) {
        ofo_silent_ask_locked(ep); /* messages that asked for no completion may have arrived long ago */
    }
    if (now >= stall->ask_at) {
        ofo_tell_service(ep, OFO_MAIL_STALLED, stall->gen, NULL, NULL);
        stall->ask_at = now + stall->wait;
        stall->wait = 2 * stall->wait < MOST_WAIT_MS ? 2 * stall->wait : MOST_WAIT_MS;
    }
}

void ofo_deadline_look(ofo_module_t *module)
{
    if (NULL != module->ext.failed_frag && OFO_LOAD(module->port_up)) {
        ofo_for_each_endpoint(module, look);
    }
}

/* A process that sleeps in progress calls it seldom. */
void ofo_deadline_init(void)
{
    OFO.look_mask = 0 < OFO.params.blocking_progress ? 0 : 31;
}

/* How long until the next look. Looks at very many peers would cost more than they tell. */
static unsigned pause_ms(void)
{
    unsigned peers = 0;

    if (0 != OFO.params.soft_deadline) {
        pthread_mutex_lock(&OFO.peers_lock);
        peers = (unsigned) opal_hash_table_get_size(&OFO.peers);
        pthread_mutex_unlock(&OFO.peers_lock);
    }
    return first_verdict() / 8 + peers / PEERS_PER_MS;
}

/* Whichever thread polls a module next looks at its rails: when it has taken the completions, because they may be the ones that are missed. */
void ofo_deadline_tick(void)
{
    const uint64_t now = ofo_now_ms();

    if (0 == OFO.params.deadline || now < __atomic_load_n(&OFO.look_at, __ATOMIC_RELAXED)) {
        return;
    }
    __atomic_store_n(&OFO.look_at, now + pause_ms(), __ATOMIC_RELAXED);
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        (void) __atomic_fetch_or(&OFO.module[i]->wants, OFO_WANTS_LOOK, __ATOMIC_RELAXED);
    }
}

bool ofo_deadline_still_waits(const ofo_endpoint_t *ep, uint16_t gen)
{
    const ofo_qpset_t *qps = ep->qps;

    return NULL != qps && gen == qps->gen && 0 != ep->stall.since && gen == ep->stall.gen && ep->stall.seen == ended(qps);
}

/* An inquiry that the peer's verdict began, or whose work has ended, speaks of the path, but not of work that was posted a moment ago. */
void ofo_deadline_over(ofo_endpoint_t *ep, uint16_t gen)
{
    if (ofo_deadline_still_waits(ep, gen) && ofo_now_ms() >= ep->stall.since + OFO.params.deadline / 2) {
        ++ep->module->count.silent_rails;
        ep->qps->is_silent = true;
        ofo_rail_failed(ep->qps, "the path is silent, while another rail to the peer answers");
    }
}
