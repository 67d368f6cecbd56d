/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The service thread of a module. It sleeps until a letter, a control message or a device event comes or a timer is due.
 * All verbs that can block run here, so a port that does not answer delays only its own rails. See DESIGN.txt 15.
 */
#include "threads/btl_openib_service.h"

#include "bfo_assert.h"
#include "connect/btl_openib_async.h"
#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "connect/btl_openib_connect.h"
#include "types/btl_openib_ctl.h"
#include "fault/btl_openib_failover.h"
#include "types/btl_openib_lock.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "rail/btl_openib_open.h"
#include "rail/btl_openib_peer.h"
#include "rail/btl_openib_probe.h"
#include "qp/btl_openib_qpset.h"
#include "rail/btl_openib_rail.h"
#include "device/btl_openib_ring_memory.h"
#include "qp/btl_openib_stash.h"
#include "types/btl_openib_timers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    UNKNOWN_GRACE_MS = 200,
    UP_GRACE_MS = 3,
    MAIL_POLL_MS = 5,
    MAIL_POLLS = 40,
    PROOF_POLL_MS = 2,
    DESTROY_AGAIN_MS = 1000,
    READ_AGAIN_MS = 10,
    LATE_MS = 100
};

void ofo_mailbox_free(ofo_mailbox_t *box)
{
    ofo_mail_t *mail = ofo_mailbox_take(box);

    while (NULL != mail) {
        ofo_mail_t *next = mail->next;
        if (NULL != mail->qps && (OFO_MAIL_DRAIN == mail->kind || OFO_MAIL_FENCE_DONE == mail->kind)) {
            (void) ofo_qpset_destroy(mail->qps); /* only this letter points to it */
        }
        free(mail);
        mail = next;
    }
    ofo_mailbox_forget_spares(box);
    pthread_mutex_destroy(&box->lock);
}

static void handle_silence(const ofo_mail_t *mail)
{
    switch (mail->kind) {
    case OFO_MAIL_STALLED:
        ofo_probe_begin(mail->ep, mail->gen);
        break;
    case OFO_MAIL_SOFTENED:
        ofo_probe_tell(mail->ep, mail->gen);
        break;
    case OFO_MAIL_TOLD:
        ofo_probe_told(mail->ep, mail->gen);
        break;
    default:
        break;
    }
}

static void handle_mail(ofo_mail_t *mail)
{
    ofo_endpoint_t *ep = mail->ep;
    bool current = mail->gen == ep->fsm.gen;

    switch (mail->kind) {
    case OFO_MAIL_POST:
        ofo_open_want(ep);
        break;
    case OFO_MAIL_ERROR:
        if (current) {
            ofo_rail_event(ep, OFO_EV_LOCAL_ERROR, &mail->ctl);
        }
        break;
    case OFO_MAIL_FENCE:
        ofo_rail_fence(ep, mail);
        break;
    case OFO_MAIL_PROVED:
        if (current) {
            ofo_rail_event(ep, OFO_EV_PROVED, NULL);
        }
        break;
    case OFO_MAIL_FIRST_RECV:
        if (current) {
            ofo_rail_event(ep, OFO_EV_PEER_PROVED, NULL);
        }
        break;
    case OFO_MAIL_FENCE_DONE:
        ofo_rail_fence_done(ep, mail->gen, mail->qps);
        break;
    case OFO_MAIL_STUCK:
        ofo_tell_progress(ep->module, ofo_qpset_stop_busy(mail->qps) ? OFO_MAIL_ABANDON : OFO_MAIL_OBSTINATE, ep, mail->gen, NULL, mail->qps);
        break;
    case OFO_MAIL_DECLARE:
        ofo_rail_declared(ep);
        break;
    case OFO_MAIL_CTL:
        ofo_rail_message(ep, &mail->ctl);
        break;
    case OFO_MAIL_AGAIN:
        ofo_ctl_dispatch(ep->module, &mail->ctl);
        break;
    case OFO_MAIL_RING:
        if (current && OFO_ST_UP == ep->fsm.state && NULL != ep->building) {
            (void) ofo_ring_create(ep->building);
        }
        ofo_tell_progress(ep->module, OFO_MAIL_RING, ep, mail->gen, NULL, NULL);
        break;
    case OFO_MAIL_SEND:
        ofo_ctl_send(ep, &mail->ctl);
        break;
    default:
        handle_silence(mail);
        break;
    }
}

static void handle_inbox(ofo_module_t *module)
{
    ofo_mail_t *mail = ofo_mailbox_take(&module->service_inbox);
    uint64_t read_at = ofo_now_ms() + READ_AGAIN_MS;

    while (NULL != mail) {
        ofo_mail_t *next = mail->next;
        handle_mail(mail);
        free(mail);
        mail = next;
        if (NULL != mail && ofo_now_ms() >= read_at) { /* datagrams must not wait for many letters */
            OFO.cpc->receive(module);
            read_at = ofo_now_ms() + READ_AGAIN_MS;
        }
    }
}

/* Takes the letters to progress of one kind and of generation 0 that are unread since `before` or longer. */
static ofo_mail_t *take_unread(ofo_mailbox_t *box, ofo_mail_kind_t kind, uint64_t before)
{
    ofo_mail_t **at, *found = NULL, **tail = &found;

    pthread_mutex_lock(&box->lock);
    for (at = &box->first; NULL != *at;) {
        ofo_mail_t *mail = *at;
        if (kind == mail->kind && 0 == mail->gen && before >= mail->posted_at) {
            *at = mail->next;
            mail->next = NULL;
            *tail = mail;
            tail = &mail->next;
            OFO_STORE(box->count, box->count - 1);
        } else {
            at = &mail->next;
        }
    }
    box->last = at;
    pthread_mutex_unlock(&box->lock);
    return found;
}

/* Counts the unread letters of that kind that service could read in the place of progress. */
static unsigned unread(ofo_mailbox_t *box, ofo_mail_kind_t kind)
{
    unsigned count = 0;

    pthread_mutex_lock(&box->lock);
    for (const ofo_mail_t *mail = box->first; NULL != mail; mail = mail->next) {
        count += kind == mail->kind && 0 == mail->gen;
    }
    pthread_mutex_unlock(&box->lock);
    return count;
}

/* While the process computes, progress does not read its letters. Then service itself makes the unknown process a peer, from its record
 * only. OFO_MAIL_MET goes to all modules: whichever one progress polls first, it reads that letter before the peer's messages. */
static void adopt_unknown(ofo_module_t *module, uint64_t now)
{
    ofo_mail_t *mail = take_unread(&module->inbox, OFO_MAIL_UNKNOWN, now - UNKNOWN_GRACE_MS);

    while (NULL != mail) {
        ofo_mail_t *next = mail->next;
        opal_process_name_t name = {.jobid = mail->ctl.jobid, .vpid = mail->ctl.vpid};
        for (unsigned i = 0; i < OFO.module_count; ++i) {
            ofo_tell_progress(OFO.module[i], OFO_MAIL_MET, NULL, 0, &mail->ctl, NULL);
        }
        if (NULL != ofo_peer_get(&name, NULL)) {
            ofo_ctl_dispatch(module, &mail->ctl);
        }
        free(mail);
        mail = next;
    }
}

/* Progress does not read letters either while the process waits for its runtime. A peer may need messages of this process before that
 * wait can end. Therefore service opens the gate, and messages sent while the first connection was made go out. */
static void adopt_up(ofo_module_t *module, uint64_t now)
{
    ofo_mail_t *mail;

    if (!ofo_poll_try_lock(module)) {
        return; /* progress runs */
    }
    mail = take_unread(&module->inbox, OFO_MAIL_UP, now - UP_GRACE_MS);
    while (NULL != mail) {
        ofo_mail_t *next = mail->next;
        ofo_rail_up(mail->ep, mail->qps);
        free(mail);
        mail = next;
    }
    ofo_poll_unlock(module);
}

static void adopt(ofo_module_t *module, uint64_t now)
{
    if (0 != OFO_LOAD(module->inbox.count)) {
        adopt_up(module, now);
        adopt_unknown(module, now);
    }
}

static void earlier(uint64_t *due, uint64_t at)
{
    if (0 != at && at < *due) {
        *due = at;
    }
}

/* Does a timer of the endpoint run? If one is due before *due, *due becomes that time; a timer may wait for its port
 * (OFO_REJOIN_WITH_PORT) and then has no time. */
static bool next_timer(const ofo_endpoint_t *ep, uint64_t *due)
{
    const uint64_t at[] = {ep->retransmit_at, ep->give_up_at, ep->last_wqe_at, ep->unknown_until, ep->rejoin.at, ep->inquiry.until, ep->probation.at};
    bool runs = false;

    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); ++i) {
        runs |= 0 != at[i];
        earlier(due, at[i]);
    }
    return runs;
}

/* Runs the timers that are due. Time in which service was busy or did not run does not count as silence of a peer. `slept`: milliseconds since the
 * last call in which service had nothing to do. */
static void run_timers(ofo_module_t *module, uint64_t now, uint64_t slept)
{
    const uint64_t late = now - module->timers_at - slept;
    const bool is_late = LATE_MS <= late, port_up = OFO_LOAD(module->port_up);
    ofo_endpoint_t *list = ofo_timers_take(module, now, is_late || port_up != module->port_was_up), *next;

    module->timers_at = now;
    module->port_was_up = port_up;
    for (; NULL != list; list = next) {
        uint64_t due = UINT64_MAX;

        next = list->next_active;
        BFO_ASSERT(list->is_active && module == list->module);
        list->is_active = false; /* an event may put it on the list again */
        if (is_late && 0 != list->give_up_at) {
            list->give_up_at += late;
        }
        ofo_rail_timers(list, now);
        if (!list->is_active && next_timer(list, &due)) {
            ofo_timers_sleep(list, due);
        }
    }
}

/* At most one letter waits while the process does not call MPI, and it does not keep service awake. */
static void run_keepalive(ofo_module_t *module, uint64_t now)
{
    if (0 == module->keepalive_at || now < module->keepalive_at) {
        return;
    }
    module->keepalive_at = now + UINT64_C(1000) * OFO.params.keepalive / OFO_KEEPALIVE_TURNS;
    if (0 == unread(&module->inbox, OFO_MAIL_KEEPALIVE)) {
        ofo_tell_progress(module, OFO_MAIL_KEEPALIVE, NULL, 0, NULL, NULL);
    }
}

static void empty_graveyard(ofo_module_t *module, uint64_t now)
{
    ofo_qpset_t **at = &module->graveyard;

    while (NULL != *at) {
        ofo_qpset_t *qps = *at;
        ofo_qpset_t *next = qps->next;
        const uint16_t gen = qps->gen;
        if (now < qps->destroy_at) {
            at = &qps->next;
        } else if (ofo_qpset_destroy(qps)) {
            ofo_log(2, "%s: queue pairs of gen %u destroyed after %u s", module->name, gen, OFO.params.time_wait);
            *at = next;
        } else {
            ofo_log(2, "%s: a queue pair of gen %u cannot be destroyed", module->name, gen);
            qps->destroy_at = now + DESTROY_AGAIN_MS;
            at = &qps->next;
        }
    }
}

/* The most milliseconds to sleep; -1: until an event comes. */
static int time_to_sleep(ofo_module_t *module, uint64_t now, bool *proving)
{
    uint64_t due = ofo_timers_due(module);

    *proving = 0 != module->proving;
    for (ofo_endpoint_t *ep = module->active; NULL != ep; ep = ep->next_active) {
        BFO_ASSERT(ep->is_active);
        (void) next_timer(ep, &due);
    }
    for (ofo_qpset_t *qps = module->graveyard; NULL != qps; qps = qps->next) {
        earlier(&due, qps->destroy_at);
    }
    if (*proving) {
        earlier(&due, now + PROOF_POLL_MS);
    }
    earlier(&due, module->keepalive_at);
    earlier(&due, module->owns_async ? module->device->look_at : 0);
    earlier(&due, module->expire_at);
    if (0 != OFO_LOAD(module->inbox.count) && (0 < unread(&module->inbox, OFO_MAIL_UP) || 0 < unread(&module->inbox, OFO_MAIL_UNKNOWN))) {
        earlier(&due, now + (module->mail_polls++ < MAIL_POLLS ? MAIL_POLL_MS : UNKNOWN_GRACE_MS));
    } else {
        module->mail_polls = 0;
    }
    if (ofo_open_due(module)) {
        due = now;
    }
    if (UINT64_MAX == due) {
        return -1;
    }
    return due <= now ? 0 : (int) (due - now > 60000 ? 60000 : due - now);
}

static void *service_main(void *argument)
{
    ofo_module_t *module = argument;
    struct pollfd fds[3] = {
        {.fd = module->wake_fd, .events = POLLIN},
        {.fd = OFO.cpc->fd(module), .events = POLLIN},
        {.fd = module->owns_async ? module->device->context->async_fd : -1, .events = POLLIN},
    };
    bool proving = false;

    module->keepalive_at = 0 < OFO.params.keepalive ? ofo_now_ms() + UINT64_C(1000) * OFO.params.keepalive / OFO_KEEPALIVE_TURNS : 0;
    module->timers_at = ofo_now_ms();
    while (!OFO_LOAD(module->stop)) {
        uint64_t now = ofo_now_ms(), counter, slept;
        int sleep = time_to_sleep(module, now, &proving);
        if (0 > poll(fds, 3, sleep) && EINTR != errno) {
            break;
        }
        slept = ofo_now_ms() - now;
        slept = 0 <= sleep && (uint64_t) sleep < slept ? (uint64_t) sleep : slept;
        if (fds[0].revents & POLLIN) {
            ssize_t rc = read(module->wake_fd, &counter, sizeof(counter));
            (void) rc;
        }
        if (fds[2].revents & POLLIN) {
            ofo_async_read(module);
        }
        ofo_async_answer(module);
        OFO.cpc->receive(module);
        if (proving) {
            (void) ofo_poll_and_keep(module);
        }
        handle_inbox(module); /* all letters, also PROVED, before a timer can decide that it is too late */
        now = ofo_now_ms();
        if (module->owns_async) {
            ofo_async_look_again(module->device, now);
        }
        run_timers(module, now, slept);
        module->expire_at = NULL != OFO.cpc->expire ? OFO.cpc->expire(module, now) : 0;
        adopt(module, now);
        empty_graveyard(module, now);
        run_keepalive(module, now);
        ofo_open_next(module);
    }
    return NULL;
}

int ofo_service_start(ofo_module_t *module)
{
    sigset_t all, old;
    int rc;

    module->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (0 > module->wake_fd) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals go to the application's threads */
    rc = pthread_create(&module->thread, NULL, service_main, module);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    module->has_thread = 0 == rc;
    return 0 == rc ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

void ofo_service_stop(ofo_module_t *module)
{
    if (module->has_thread) {
        OFO_STORE(module->stop, true);
        ofo_service_wake(module);
        pthread_join(module->thread, NULL);
        module->has_thread = false;
    }
}

void ofo_service_free(ofo_module_t *module)
{
    ofo_timers_free(module);
    if (0 <= module->wake_fd) {
        close(module->wake_fd);
        module->wake_fd = -1;
    }
}
