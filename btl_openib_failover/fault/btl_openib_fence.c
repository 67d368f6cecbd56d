/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The time limit of a fence. If a set's work does not come back although its completion queues were just polled empty,
 * the set is given up after btl_openib_fence_timeout, or at once if its device is gone. Service destroys the queue
 * pairs, which ends all transfers, and all work that is still out returns with an error. Context: progress, inside the
 * poll lock. See DESIGN.txt 10.3.
 */
#include "fault/btl_openib_fence.h"

#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "qp/btl_openib_drain.h"
#include "fault/btl_openib_failed_work.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "qp/btl_openib_marker.h"

#include "bfo_assert.h"

enum { LOOK_MS = 100 }; /* the time limit counts so much of the time between two looks, at most */

static uint64_t deadline(void)
{
    return ofo_now_ms() + 1000u * OFO.params.fence_timeout;
}

static bool is_fenced_here(const ofo_module_t *module, const ofo_qpset_t *qps)
{
    const ofo_qpset_t *each = module->fencing;

    while (NULL != each && each != qps) {
        each = each->fence_next;
    }
    return NULL != each;
}

void ofo_fence_begin(ofo_qpset_t *qps)
{
    ofo_module_t *module = qps->ep->module;

    BFO_ASSERT(ofo_drain_is_running(&qps->drain));
    BFO_ASSERT(!is_fenced_here(module, qps)); /* a set is fenced once */
    qps->fence_until = deadline();
    if (NULL == module->fencing) {
        module->fence_seen = ofo_now_ms();
    }
    qps->fence_next = module->fencing;
    module->fencing = qps;
}

void ofo_fence_extend(ofo_qpset_t *qps)
{
    qps->fence_until = deadline();
}

void ofo_fence_end(ofo_qpset_t *qps)
{
    ofo_qpset_t **at = &qps->ep->module->fencing;

    while (NULL != *at && *at != qps) {
        at = &(*at)->fence_next;
    }
    BFO_ASSERT(NULL != *at); /* a fence ends only if it was begun */
    if (NULL != *at) {
        *at = qps->fence_next;
    }
}

/* The fence is young, so the adapter may still flush work. */
static bool may_flush(const ofo_qpset_t *qps, uint64_t now)
{
    return now + 1000u * OFO.params.fence_timeout < qps->fence_until + OFO_LAST_WQE_UNSEEN_MS;
}

/* Takes the place of markers that the adapter refused. The queue pair has been in error for a while, LAST_WQE_REACHED has come if it
 * uses a shared queue, and the completion queues are empty. Together this proves what the flush of the marker would have proved,
 * also for messages that asked for no completion. The fence still waits for other work that is out. */
static void take_refused(ofo_qpset_t *qps, uint64_t now)
{
    bool any = false;

    for (unsigned i = 0; i < qps->nqp && !may_flush(qps, now); ++i) {
        ofo_qp_t *qp = &qps->qp[i];
        if (ofo_marker_take_refused(qp)) {
            any = true;
            ofo_silent_lost(qps, i, qp->place + 1);
        }
    }
    if (any) {
        ofo_drain_check(qps);
    }
}

void ofo_drain_act_ask_service(ofo_qpset_t *qps, const char *why)
{
    BFO_ASSERT(OFO_DRAIN_STUCK == ofo_drain_state(&qps->drain));
    ofo_tell_service(qps->ep, OFO_MAIL_STUCK, qps->gen, NULL, qps);
}

/* A fence does not wait for its marker if the adapter may swallow the marker, because then no other rail takes over. */
static void watch_bound(const ofo_module_t *module, ofo_qpset_t *qps, uint64_t now)
{
    if (now >= qps->fence_until) {
        (void) ofo_drain_raise(qps, OFO_DEV_OVERDUE, NULL);
    } else if (OFO_LOAD(module->device->fatal) || !module->transport->returns_markers) {
        (void) ofo_drain_raise(qps, OFO_DEV_HOPELESS, NULL);
    }
}

bool ofo_fence_look(ofo_module_t *module)
{
    const uint64_t now = ofo_now_ms();
    const uint64_t unseen = now > module->fence_seen + LOOK_MS ? now - module->fence_seen - LOOK_MS : 0;
    bool due = false;

    module->fence_seen = now;
    for (ofo_qpset_t *qps = module->fencing; NULL != qps; qps = qps->fence_next) {
        qps->fence_until += unseen;
        due |= OFO_DRAIN_STUCK != ofo_drain_state(&qps->drain) && now >= qps->fence_until;
    }
    return due;
}

/* The completion queues were just emptied, so work that is missing now will not come. A process that does not poll does not get here,
 * therefore completions that it has not read yet are not thrown away. */
void ofo_fence_watch(ofo_module_t *module)
{
    uint64_t now = ofo_now_ms();

    for (ofo_qpset_t *qps = module->fencing, *next; NULL != qps; qps = next) {
        next = qps->fence_next;
        take_refused(qps, now); /* may end the fence; then service owns `qps` */
    }
    for (ofo_qpset_t *qps = module->fencing; NULL != qps; qps = qps->fence_next) {
        BFO_ASSERT(ofo_drain_is_running(&qps->drain) && module == qps->module); /* a set whose fence is done has left the list */
        watch_bound(module, qps, now);
    }
}

/* Returns every message and operation of this set that has not completed. A callback may make new ones. These go to the front of the
 * list and belong to another set. */
static void return_posted(ofo_module_t *module, ofo_qpset_t *qps)
{
    for (ofo_frag_t *frag = OFO_LOAD(module->all_frags); NULL != frag; frag = frag->next_of_all) {
        if (qps == frag->work.qps) {
            ofo_work_failed(qps, &frag->work, OPAL_ERROR);
        }
    }
    for (ofo_rdma_t *rdma = OFO_LOAD(module->all_rdmas); NULL != rdma; rdma = rdma->next_of_all) {
        while (qps == rdma->work.qps && 0 < rdma->inflight) {
            ofo_work_failed(qps, &rdma->work, OPAL_ERROR);
        }
    }
    for (unsigned i = 0; i < qps->nqp; ++i) {
        ofo_qp_t *qp = &qps->qp[i];
        BFO_ASSERT(NULL == qp->silent); /* every message of the set was returned */
        ofo_marker_give_up(qp);
        qp->is_returning = false;
        qp->recv_posted = 0;
        qp->sq_free = qp->sq_slots;
    }
    qps->is_asking = false;
}

void ofo_drain_act_give_up(ofo_qpset_t *qps, const char *why)
{
    ofo_module_t *module = qps->ep->module;

    BFO_ASSERT(OFO_DRAIN_LOSSY == ofo_drain_state(&qps->drain) && qps == qps->ep->draining);
    ofo_log(1, "%s: rail %u to %u gen %u: the fence did not end, its queue pairs were destroyed", module->name, qps->ep->rail,
            qps->ep->peer->name.vpid, qps->gen);
    ++module->count.lossy_fences;
    return_posted(module, qps);
    ofo_drain_act_end_fence(qps, NULL);
}

/* If the last completions came in time after all, `qps` may be freed by now. Therefore the list is searched first. */
void ofo_fence_answered(ofo_module_t *module, ofo_qpset_t *qps, bool is_destroyed)
{
    if (is_fenced_here(module, qps)) {
        (void) ofo_drain_raise(qps, is_destroyed ? OFO_DEV_DESTROYED : OFO_DEV_NOT_DESTROYED, NULL);
    }
}
