/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Applies the fault plan: describes a send request to the rules and writes into the request what must happen to it. The
 * requester carries that out. DESIGN.txt 16.
 */
#include "sr_event.h"
#include "sr_injector.h"
#include "sr_opcode.h"
#include "sr_pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SR_HEAD_BYTES 4104 /* patterns look no further */

static uint32_t rules_count(const struct sr_plan *plan)
{
    uint32_t count = atomic_load_explicit(&plan->count, memory_order_acquire);

    return SR_MAX_RULES < count ? SR_MAX_RULES : count;
}

static uint32_t head_of(const struct sr_wqe *wqe, uint8_t head[SR_HEAD_BYTES])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < wqe->num_sge && n < SR_HEAD_BYTES; ++i) {
        size_t room = SR_HEAD_BYTES - n, part = wqe->iov[i].iov_len < room ? wqe->iov[i].iov_len : room;
        memcpy(head + n, wqe->iov[i].iov_base, part);
        n += (uint32_t) part;
    }
    return n;
}

/* Makes the request send from a copy, because bytes will be changed or the copy must outlive the request. */
static bool take_copy(struct sr_wqe *wqe)
{
    char *to = malloc(0 == wqe->length ? 1 : wqe->length);

    if (NULL == to) {
        return false;
    }
    wqe->inline_copy = to;
    for (uint32_t i = 0; i < wqe->num_sge; to += wqe->iov[i++].iov_len) {
        memcpy(to, wqe->iov[i].iov_base, wqe->iov[i].iov_len);
    }
    wqe->num_sge = 1;
    wqe->iov[0] = (struct iovec){.iov_base = wqe->inline_copy, .iov_len = wqe->length};
    return true;
}

static bool carries_payload(const struct sr_wqe *wqe)
{
    return 0 != (sr_opcode(wqe->opcode)->traits & (SR_OP_SEND | SR_OP_WRITE));
}

static void make_ghost(struct sr_qp *qp, const struct sr_wqe *wqe, uint64_t when)
{
    struct sr_wqe *ghost = malloc(sizeof(*ghost));

    if (NULL == ghost) {
        return;
    }
    *ghost = *wqe;
    ghost->inline_copy = NULL;
    ghost->sge = NULL;
    if (!take_copy(ghost)) {
        free(ghost);
        return;
    }
    ghost->fate = SR_FATE_NONE;
    ghost->ready = when;
    ghost->next = qp->ghosts;
    qp->ghosts = ghost;
    sr_pending_add(qp);
}

/* Returns 0, or ENOMEM. */
static int corrupt(const struct sr_rule *rule, struct sr_wqe *wqe)
{
    wqe->corrupt_at = 0 == wqe->length ? 0 : rule->at % wqe->length;
    if (carries_payload(wqe) && 0 < wqe->length) {
        if (NULL == wqe->inline_copy && !take_copy(wqe)) {
            return ENOMEM;
        }
        ((uint8_t *) wqe->inline_copy)[wqe->corrupt_at] ^= 0xff;
    }
    return 0;
}

static int apply(const struct sr_rule *rule, struct sr_qp *qp, struct sr_wqe *wqe)
{
    uint64_t now = sr_now();

    wqe->fate = (uint8_t) rule->fate;
    wqe->breaks = (uint8_t) rule->breaks;
    wqe->fate_time = 0 == rule->time ? 0 : now + rule->time;
    switch (rule->fate) {
    case SR_FATE_ENOMEM:
        return ENOMEM;
    case SR_FATE_DELAY:
        wqe->ready = (0 == wqe->ready ? now : wqe->ready) + rule->time;
        break;
    case SR_FATE_CORRUPT:
        return corrupt(rule, wqe);
    case SR_FATE_ERROR:
        wqe->forced_status = (uint8_t) rule->status;
        break;
    case SR_FATE_FATAL:
        wqe->fate = SR_FATE_ERROR;
        wqe->forced_status = IBV_WC_LOC_QP_OP_ERR;
        sr_event_send(sr.self, qp->shm->event_fifo, IBV_EVENT_QP_FATAL, qp->id);
        break;
    case SR_FATE_MIGRATED:
        wqe->fate = SR_FATE_NONE;
        sr_event_send(sr.self, qp->shm->event_fifo, IBV_EVENT_PATH_MIG, qp->id);
        break;
    case SR_FATE_CQ_ERROR:
        wqe->fate = SR_FATE_NONE;
        __atomic_store_n(&qp->send_cq->is_dead, true, __ATOMIC_RELAXED);
        sr_event_send(sr.self, qp->shm->event_fifo, IBV_EVENT_CQ_ERR, qp->send_cq->id);
        break;
    case SR_FATE_SRQ_ERROR:
        wqe->fate = SR_FATE_NONE;
        if (NULL != qp->srq) {
            atomic_store(&qp->srq->rq.shm->is_dead, 1);
            sr_event_send(sr.self, qp->shm->event_fifo, IBV_EVENT_SRQ_ERR, qp->srq->id);
        }
        break;
    case SR_FATE_LATE:
        if (carries_payload(wqe)) {
            make_ghost(qp, wqe, wqe->fate_time);
        }
        wqe->fate = SR_FATE_LOSE;
        break;
    case SR_FATE_DOWN:
        if (!rule->local && 0 != rule->time) {
            atomic_store(&sr.fabric.shm->rail[qp->rail].up_at, wqe->fate_time);
        }
        sr_fabric_set_rail(&sr.fabric, qp->rail, rule->local ? (int) sr.slot : -1, true, rule->quiet);
        break;
    default:
        break;
    }
    return 0;
}

static void wait_for(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t) (ns / 1000000000), .tv_nsec = (long) (ns % 1000000000)};

    while (0 != nanosleep(&left, &left) && EINTR == errno) {
    }
}

int sr_faults_decide(struct sr_qp *qp, struct sr_wqe *wqe)
{
    struct sr_plan *plan = &sr.fabric.shm->plan;
    uint8_t head[SR_HEAD_BYTES];
    struct sr_message message = {.rail = qp->rail, .process = sr.slot, .qpn = qp->ibv.qp_num, .opcode = wqe->opcode, .head = head};
    uint32_t count = rules_count(plan);

    if (carries_payload(wqe)) {
        message.head_length = head_of(wqe, head);
    }
    for (uint32_t i = 0; i < count; ++i) {
        struct sr_rule *rule = &plan->rule[i];
        if (sr_rule_is_due(plan, rule, qp->rail) && sr_rule_matches(rule, &message) && sr_rule_fires(rule, atomic_load(&plan->seed), i, qp->rail)
            && SR_FATE_MARK != rule->fate) {
            atomic_fetch_add(&sr.proc->done[qp->rail].faults, 1);
            return apply(rule, qp, wqe); /* the first rule that fires decides */
        }
    }
    return 0;
}

/* The caller must not hold a lock, because a slow call sleeps here. */
bool sr_faults_refuse(unsigned rail, uint32_t call)
{
    struct sr_plan *plan = &sr.fabric.shm->plan;
    struct sr_message message = {.rail = rail, .process = sr.slot, .qpn = SR_ANY - 1, .opcode = call};
    uint32_t count = rules_count(plan);

    for (uint32_t i = 0; i < count; ++i) {
        struct sr_rule *rule = &plan->rule[i];
        if ((SR_FATE_ENOMEM == rule->fate || SR_FATE_SLOW == rule->fate) && sr_rule_is_due(plan, rule, rail) && sr_rule_matches(rule, &message)
            && sr_rule_fires(rule, atomic_load(&plan->seed), i, rail)) {
            atomic_fetch_add(&sr.proc->done[rail].faults, 1);
            if (SR_FATE_ENOMEM == rule->fate) {
                return true;
            }
            wait_for(rule->time);
        }
    }
    return false;
}
