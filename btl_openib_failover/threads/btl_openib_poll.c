/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Polls completions and letters and calls the functions that handle them. One thread at a time polls a module and
 * runs its callbacks; callbacks never nest. Good completions are handled here, bad ones in _wc_error.c.
 * See DESIGN.txt 15.
 */
#include "threads/btl_openib_poll.h"

#include "bfo_assert.h"
#include "types/btl_openib_atomic.h"
#include "out/btl_openib_complete.h"
#include "formats/btl_openib_credits.h"
#include "fault/btl_openib_deadline.h"
#include "fault/btl_openib_doubt.h"
#include "types/btl_openib_endpoints.h"
#include "fault/btl_openib_failover.h"
#include "fault/btl_openib_fence.h"
#include "out/btl_openib_keepalive.h"
#include "types/btl_openib_lock.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_peer.h"
#include "out/btl_openib_rdma.h"
#include "in/btl_openib_recv.h"
#include "out/btl_openib_ring.h"
#include "in/btl_openib_ring_in.h"
#include "out/btl_openib_send.h"
#include "out/btl_openib_silent.h"
#include "device/btl_openib_srq.h"
#include "threads/btl_openib_sleep.h"
#include "fault/btl_openib_soft.h"
#include "qp/btl_openib_stash.h"
#include "fault/btl_openib_wc_error.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, IDLE_AFTER = 4096, IDLE_SKIP = 7 };

static void send_completed(ofo_work_t *work)
{
    ofo_frag_t *frag = (ofo_frag_t *) ((uint8_t *) work - offsetof(ofo_frag_t, work));
    ofo_endpoint_t *ep = frag->ep;
    ofo_qpset_t *qps = work->qps;

    if (NULL != OFO_LOAD(qps->qp[work->qp].silent)) {
        ofo_silent_arrived(qps, work->qp, frag->place);
    }
    OPAL_THREAD_LOCK(&ep->lock);
    BFO_ASSERT(qps->qp[work->qp].sq_free < qps->qp[work->qp].sq_slots);
    ++qps->qp[work->qp].sq_free;
    if (OPAL_UNLIKELY(work == qps->ring_out.proof)) { /* the data of the puts before it is in the peer's memory */
        qps->ring_out.behind_put = false;
        qps->ring_out.proof = NULL;
    }
    OPAL_THREAD_UNLOCK(&ep->lock);
    ofo_send_count(qps, frag);
    ofo_send_complete(frag, OPAL_SUCCESS);
    ofo_pending_flush(ep);
}

static void rdma_completed(ofo_work_t *work)
{
    ofo_rdma_t *rdma = (ofo_rdma_t *) ((uint8_t *) work - offsetof(ofo_rdma_t, work));
    ofo_endpoint_t *ep = rdma->ep;

    OPAL_THREAD_LOCK(&ep->lock);
    BFO_ASSERT(work->qps->qp[work->qp].sq_free < work->qps->qp[work->qp].sq_slots);
    ++work->qps->qp[work->qp].sq_free;
    ++work->qps->n_rdma;
    OPAL_THREAD_UNLOCK(&ep->lock);
    ofo_rdma_part_done(rdma, OPAL_SUCCESS);
    ofo_pending_flush(ep);
}

static void return_completed(ofo_work_t *work)
{
    ofo_qpset_t *qps = work->qps;

    BFO_ASSERT(qps->qp[work->qp].is_returning || ofo_drain_is_over(&qps->drain));
    qps->qp[work->qp].is_returning = false;
    ++qps->qp[work->qp].n_send;
    ++qps->n_ok;
    if (ofo_credits_must_return(&qps->qp[work->qp].credits) || ofo_ring_must_return(qps)) {
        ofo_credits_return(qps->ep, qps, work->qp);
    }
}

/* When is_asking is false another thread may post the next WRITE. Therefore alive_place and the answer are taken under the same lock. */
static void alive_completed(ofo_qpset_t *qps)
{
    ofo_endpoint_t *ep = qps->ep;
    uint32_t place;

    OPAL_THREAD_LOCK(&ep->lock);
    BFO_ASSERT(qps->is_asking || ofo_drain_is_over(&qps->drain));
    qps->is_asking = false;
    place = qps->alive_place;
    if (OFO_ANSWER_NONE != ep->answer) {
        ofo_doubt_answered(ep);
    }
    OPAL_THREAD_UNLOCK(&ep->lock);
    ofo_silent_arrived(qps, 0, place);
    ofo_pending_flush(ep);
}

static void handle_good(ofo_module_t *module, const struct ibv_wc *wc)
{
    ofo_work_t *work = (ofo_work_t *) (uintptr_t) wc->wr_id;

    switch (work->kind) {
    case OFO_WORK_RECV:
        ofo_recv_handle(module, (ofo_recv_t *) ((uint8_t *) work - offsetof(ofo_recv_t, work)), wc->byte_len, wc->qp_num);
        break;
    case OFO_WORK_SEND:
        send_completed(work);
        break;
    case OFO_WORK_RDMA:
        rdma_completed(work);
        break;
    case OFO_WORK_RETURN:
        return_completed(work);
        break;
    case OFO_WORK_PROVE:
        ofo_proof_completed(work->qps);
        break;
    case OFO_WORK_ALIVE:
        alive_completed(work->qps);
        break;
    case OFO_WORK_MARKER: /* impossible in the error state: the queue pair still works, and is destroyed at the fence's time limit */
        ofo_silent_all_arrived(work->qps, work->qp);
        break;
    default:
        break;
    }
}

static void handle(ofo_module_t *module, const struct ibv_wc *wc)
{
    if (OPAL_LIKELY(IBV_WC_SUCCESS == wc->status)) {
        handle_good(module, wc);
    } else {
        ofo_wc_error(module, wc);
    }
}

/* Completions that service took from the CQs come first, because they are older. */
static int handle_stash(ofo_module_t *module)
{
    int count = (int) module->stash_count;

    module->stash_count = 0;
    for (int i = 0; i < count; ++i) {
        handle(module, &module->stash[i]);
    }
    return count;
}

static inline int poll_cq(ofo_module_t *module, struct ibv_cq *cq)
{
    struct ibv_wc wc[BATCH];
    int n = ibv_poll_cq(cq, BATCH, wc);

    for (int i = 0; i < n; ++i) {
        handle(module, &wc[i]);
    }
    return n > 0 ? n : 0;
}

static int poll_cqs(ofo_module_t *module)
{
    int cqs = OFO_LOAD(module->cq_count), total = 0;

    for (int c = 0; c < cqs; ++c) {
        total += poll_cq(module, module->cq[c]);
    }
    return total;
}

/* Empties the CQs. A CQ held no more completions than it has room for; completions that callbacks cause meanwhile are left for the next
 * call. */
static void poll_out(ofo_module_t *module)
{
    int cqs = OFO_LOAD(module->cq_count);

    (void) handle_stash(module);
    for (int c = 0; c < cqs; ++c) {
        int n, left = module->cq[c]->cqe;
        do {
            n = poll_cq(module, module->cq[c]);
            left -= n;
        } while (0 < n && 0 < left);
    }
}

static ofo_peer_t *meet(const ofo_ctl_t *ctl)
{
    opal_process_name_t name = {.jobid = ctl->jobid, .vpid = ctl->vpid};
    opal_proc_t *proc = opal_proc_for_name(name);

    return NULL != proc ? ofo_peer_get(&name, proc) : NULL;
}

static void handle_unknown(ofo_module_t *module, const ofo_ctl_t *ctl)
{
    ofo_peer_t *peer = meet(ctl);
    ofo_endpoint_t *ep = NULL != peer ? ofo_peer_endpoint(peer, module) : NULL;

    if (NULL != ep) {
        ofo_tell_service(ep, OFO_MAIL_AGAIN, ctl->gen, ctl, NULL);
    }
}

/* Empties the completion queues first, because the last completions may have come after all. */
static void answered(ofo_module_t *module, ofo_qpset_t *qps, bool is_destroyed)
{
    poll_out(module);
    ofo_fence_answered(module, qps, is_destroyed);
}

/* Polls first, because a rail whose last completions wait in the queue is not silent. */
static void found_silent(ofo_module_t *module, ofo_endpoint_t *ep, uint16_t gen)
{
    poll_out(module);
    ofo_deadline_over(ep, gen);
    ofo_soft_end(ep, gen);
}

static void found_soft(ofo_module_t *module, ofo_endpoint_t *ep, uint16_t gen)
{
    poll_out(module);
    ofo_soft_begin(ep, gen);
}

static void peer_found_soft(ofo_module_t *module, ofo_endpoint_t *ep, uint16_t gen)
{
    poll_out(module);
    ofo_soft_adopt(ep, gen);
}

static void was_judged(ofo_module_t *module, const ofo_mail_t *mail)
{
    switch (mail->kind) {
    case OFO_MAIL_SILENT:
        found_silent(module, mail->ep, mail->gen);
        break;
    case OFO_MAIL_SOFT:
        found_soft(module, mail->ep, mail->gen);
        break;
    case OFO_MAIL_SOFT_TOO:
        peer_found_soft(module, mail->ep, mail->gen);
        break;
    case OFO_MAIL_CALM:
        ofo_soft_end(mail->ep, mail->gen);
        break;
    case OFO_MAIL_OVERDUE:
        ofo_soft_overdue(mail->ep, mail->gen);
        break;
    case OFO_MAIL_TRUSTED:
        ofo_rail_trusted(mail->ep, mail->gen);
        break;
    default:
        break;
    }
}

static void handle_mail(ofo_module_t *module)
{
    ofo_mail_t *mail = ofo_mailbox_take(&module->inbox);

    while (NULL != mail) {
        ofo_mail_t *next = mail->next;
        switch (mail->kind) {
        case OFO_MAIL_UP:
            ofo_rail_up(mail->ep, mail->qps);
            break;
        case OFO_MAIL_DRAIN:
            ofo_drain_start(mail->ep, mail->qps, mail->gen, ofo_cause_reported(mail->ctl.cause));
            break;
        case OFO_MAIL_LAST_WQE:
            ofo_drain_last_wqe(mail->ep, mail->gen);
            break;
        case OFO_MAIL_RING:
            ofo_ring_open(module, mail->ep, mail->gen);
            break;
        case OFO_MAIL_ABANDON:
            answered(module, mail->qps, true);
            break;
        case OFO_MAIL_OBSTINATE:
            answered(module, mail->qps, false);
            break;
        case OFO_MAIL_PEER_LOST:
            ofo_peer_lost(mail->ep->peer);
            break;
        case OFO_MAIL_KEEPALIVE:
            ofo_keepalive(module);
            break;
        case OFO_MAIL_FENCED:
            ofo_fence_done_again(mail->ep, mail->gen);
            break;
        case OFO_MAIL_UNKNOWN:
            handle_unknown(module, &mail->ctl);
            break;
        case OFO_MAIL_MET:
            (void) meet(&mail->ctl);
            break;
        case OFO_MAIL_ANSWERED:
            ofo_port_ends(mail->ep, mail->gen);
            break;
        case OFO_MAIL_PORT_DOWN:
            ofo_port_down(module);
            break;
        case OFO_MAIL_PORT_UP:
            ofo_port_returned(module);
            break;
        default:
            was_judged(module, mail);
            break;
        }
        free(mail);
        mail = next;
    }
    ofo_port_tell(module);
}

/* If each poll finds completions, the CQs are emptied when the time of a fence is over. Otherwise the fence would never end. */
static void watch_fences(ofo_module_t *module, bool found)
{
    const bool due = ofo_fence_look(module);

    if (found && !due) {
        return;
    }
    if (found) {
        poll_out(module);
    }
    ofo_fence_watch(module);
}

static void do_wanted(ofo_module_t *module)
{
    const uint32_t wants = __atomic_exchange_n(&module->wants, 0, __ATOMIC_RELAXED);

    if (0 != (wants & OFO_WANTS_REPORTS)) {
        ofo_silent_ask_all(module);
    }
    if (0 != (wants & OFO_WANTS_LOOK)) {
        ofo_deadline_look(module);
    }
    if (0 != (wants & OFO_WANTS_BUFFERS)) {
        ofo_srqs_post_refused(module);
    }
}

/* Locks: the poll lock held. */
static int progress_locked(ofo_module_t *module)
{
    int count = 0;

    if (OPAL_UNLIKELY(0 != __atomic_load_n(&module->inbox.count, __ATOMIC_RELAXED))) {
        handle_mail(module);
    }
    if (OPAL_UNLIKELY(0 != module->stash_count)) {
        count = handle_stash(module);
    }
    if (0 != module->ring_count) {
        count += ofo_rings_poll(module);
    }
    count += poll_cqs(module);
    if (OPAL_UNLIKELY(0 != __atomic_load_n(&module->wants, __ATOMIC_RELAXED))) {
        do_wanted(module);
    }
    if (OPAL_UNLIKELY(NULL != module->fencing)) {
        watch_fences(module, 0 < count);
    }
    return count;
}

inline int ofo_module_progress(ofo_module_t *module) /* inline in the pass over all modules */
{
    int count;

    if (!ofo_poll_try_lock(module)) {
        return 0;
    }
    count = progress_locked(module);
    ofo_poll_unlock(module);
    return count;
}

/* Asks all CQs for an event and then polls once more. False if it found something, or if another thread polls at the moment. */
static bool arm(ofo_module_t *module)
{
    bool armed = true, silent;

    if (!ofo_poll_try_lock(module)) {
        return false;
    }
    for (int c = 0; c < OFO_LOAD(module->cq_count); ++c) {
        armed = armed && 0 == ibv_req_notify_cq(module->cq[c], 0);
    }
    silent = 0 == progress_locked(module);
    ofo_poll_unlock(module);
    return armed && silent;
}

int ofo_component_progress(void)
{
    int count = 0;

    if (OPAL_UNLIKELY(0 == (++OFO.passes & OFO.look_mask))) {
        ofo_deadline_tick();
    }
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_module_t *module = OFO.module[i];
        /* A module that has been idle for long is polled every eighth time. */
        unsigned idle = __atomic_load_n(&module->idle_polls, __ATOMIC_RELAXED); /* a count of another thread may get lost */
        if (IDLE_AFTER < idle && 0 != (++idle & IDLE_SKIP)) {
            __atomic_store_n(&module->idle_polls, idle, __ATOMIC_RELAXED);
            ofo_count(&module->count.polls_skipped);
            continue;
        }
        int n = ofo_module_progress(module);
        __atomic_store_n(&module->idle_polls, 0 < n ? 0 : idle + 1, __ATOMIC_RELAXED);
        count += n;
    }
    if (OPAL_UNLIKELY(0 < OFO.params.blocking_progress)) {
        ofo_sleep_if_idle(0 < count, arm);
    }
    return count;
}
