/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Asynchronous device events. Each one affects only what it names: a port's event never touches another port's rails.
 * Events become letters; nothing is decided here. Context: service of the device's first module. See DESIGN.txt 15.5.
 */
#include "connect/btl_openib_async.h"

#include "device/btl_openib_address.h"
#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "connect/btl_openib_connect_ud.h"
#include "rail/btl_openib_last_wqe.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "device/btl_openib_srq.h"

#include "bfo_assert.h"

#include <unistd.h>

/* Needed because not only the service that reads events comes here: rdmacm notifies the service of each module of a removed device. */
static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;

/* Locks: ports_lock held, so that the letters have the order of the events. If a port that was down already is lost for good, progress
 * gets one more letter, because this ends the rails that were spared or in doubt. */
static void set_port_locked(ofo_module_t *module, bool up, const char *why)
{
    const bool gone = OFO_LOAD(module->device->fatal) || OFO_LOAD(module->cq_failed);

    BFO_ASSERT(gone || !module->gone_told); /* a port that is down for good stays so */
    if (up ? gone || OFO_LOAD(module->port_up) : !OFO_LOAD(module->port_up) && gone == module->gone_told) {
        return;
    }
    module->gone_told = gone;
    if (up) {
        OFO_STORE(module->up_since, ofo_now_ms());
    } else {
        module->down_why = why;
        OFO_STORE(module->downs, module->downs + (OFO_LOAD(module->port_up) ? 1 : 0));
    }
    OFO_STORE(module->port_up, up);
    ofo_tell_progress(module, up ? OFO_MAIL_PORT_UP : OFO_MAIL_PORT_DOWN, NULL, 0, NULL, NULL);
    if (up) {
        ofo_service_wake(module); /* rails wait for it */
    }
}

/* Notes what is wrong with a port; `why` is NULL if nothing is. Locks: takes ports_lock. */
static void set_port(ofo_module_t *module, const char *why)
{
    pthread_mutex_lock(&ports_lock);
    set_port_locked(module, NULL == why, why);
    pthread_mutex_unlock(&ports_lock);
}

uint32_t ofo_async_downs(const ofo_module_t *module, bool *is_up)
{
    uint32_t downs;

    pthread_mutex_lock(&ports_lock);
    downs = module->downs;
    *is_up = module->port_up;
    pthread_mutex_unlock(&ports_lock);
    return downs;
}

static const char *const address_lost = "the port has lost its address";
static const char *const address_moved = "the port has another address";

/* If the port's address has changed, its connections end, and new ones are made with the new address. */
static void port_is_well(ofo_module_t *module, bool moved)
{
    set_port(module, NULL);
    if (moved) {
        set_port(module, address_moved);
        set_port(module, NULL);
    }
}

bool ofo_port_has_moved(const ofo_module_t *module)
{
    return address_moved == module->down_why;
}

bool ofo_port_came_back(const ofo_module_t *module)
{
    return OFO_LOAD(module->port_up) && !ofo_port_has_moved(module);
}

/* Queries the port. True if it can carry rails; *moved says that its connections cannot go on. */
static bool look_up(ofo_module_t *module, bool *moved, const char **why)
{
    struct ibv_port_attr attr;
    uint8_t index = module->gid_index;

    *moved = false;
    *why = "the port is down";
    if (0 != ibv_query_port(module->device->context, module->port_num, &attr) || IBV_PORT_ACTIVE != attr.state) {
        return false;
    }
    *moved = attr.lid != module->port_attr.lid;
    module->port_attr = attr;
    if (module->use_grh) {
        *why = address_lost;
        if (!ofo_port_find_gid(module, OFO.record.port[module->port_index].gid)) {
            return false;
        }
        *moved |= index != module->gid_index;
    }
    return true;
}

/* Connections of all modules of the port end, because they have the old address. */
static bool takes_another_address(ofo_module_t *module)
{
    if (!ofo_port_take_gid(module)) {
        return false;
    }
    ofo_log(1, "%s: the port has another address now", module->name);
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        if (OFO.module[i] != module && OFO.module[i]->port_index == module->port_index) {
            set_port(OFO.module[i], address_moved);
        }
    }
    return true;
}

static void port_down(ofo_module_t *module)
{
    set_port(module, "the port is down");
}

static void port_up(ofo_module_t *module)
{
    const char *why;
    bool moved;

    if (look_up(module, &moved, &why)) {
        port_is_well(module, moved);
    } else if (address_lost == why && !OFO_LOAD(module->port_up) && takes_another_address(module)) {
        port_is_well(module, true);
    }
}

enum { GID_PATIENCE_MS = 500, GID_LOOK_MS = 20 };

/* While an interface is configured again it loses its addresses for a moment, but its queue pairs go on. */
static bool is_worth_waiting(ofo_module_t *module)
{
    const uint64_t now = ofo_now_ms();

    if (0 == module->lost_since) {
        module->lost_since = now;
    }
    if (!OFO_LOAD(module->port_up) || now - module->lost_since >= GID_PATIENCE_MS) {
        return false;
    }
    module->device->look_at = now + GID_LOOK_MS;
    return true;
}

static void address_changed(ofo_module_t *module)
{
    const char *why;
    bool moved, found = look_up(module, &moved, &why);

    if (!found && address_lost == why && is_worth_waiting(module)) {
        return;
    }
    module->lost_since = 0;
    if (found) {
        port_is_well(module, moved);
    } else if (address_lost == why && takes_another_address(module)) {
        port_is_well(module, true);
    } else {
        set_port(module, why);
    }
}

static void device_gone(ofo_module_t *module)
{
    OFO_STORE(module->device->fatal, true);
    set_port(module, "the device failed");
}

/* Calls `what` for the port that an event names, or for all ports of the device if `port` is 0. */
static void on_ports(const ofo_device_t *device, int port, void (*what)(ofo_module_t *))
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_module_t *module = OFO.module[i];
        if (module->device == device && (0 == port || module->port_num == port)) {
            what(module);
        }
    }
}

void ofo_async_device_gone(const ofo_device_t *device)
{
    on_ports(device, 0, device_gone);
}

static void look_again(ofo_module_t *module)
{
    if (0 != module->lost_since) {
        address_changed(module);
    }
}

void ofo_async_look_again(ofo_device_t *device, uint64_t now)
{
    if (0 != device->look_at && now >= device->look_at) {
        device->look_at = 0;
        on_ports(device, 0, look_again);
    }
}

static bool has_cq(const ofo_module_t *module, const struct ibv_cq *cq)
{
    bool has = cq == module->ud.recv_cq || cq == module->ud.send_cq; /* those of control messages */

    for (int c = 0; !has && c < OFO_LOAD(module->cq_count); ++c) {
        has = cq == module->cq[c];
    }
    return has;
}

/* A completion queue that overran has lost completions, so nothing of its module can be trusted any more. */
static void cq_failed(const ofo_device_t *device, const struct ibv_cq *cq)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_module_t *module = OFO.module[i];
        if (module->device == device && has_cq(module, cq)) {
            OFO_STORE(module->cq_failed, true);
            set_port(module, "a completion queue failed");
        }
    }
}

/* A shared receive queue that failed takes no more buffers, so its senders would wait forever. */
static void srq_failed(const ofo_device_t *device, const struct ibv_srq *srq)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_module_t *module = OFO.module[i];
        for (unsigned q = 0; module->device == device && q < OFO_MAX_QPS; ++q) {
            if (NULL != module->srq[q] && srq == module->srq[q]->srq) {
                OFO_STORE(module->cq_failed, true);
                set_port(module, "a shared receive queue failed");
            }
        }
    }
}

/* The event may come before the fence begins. Therefore it is noted from the queue pair's creation on. */
static void last_wqe(ofo_qp_t *qp)
{
    ofo_qpset_t *qps = qp->returns.qps;

    BFO_ASSERT(qp == &qps->qp[qp->returns.qp]); /* the event names a queue pair of a set that lives */
    OFO_STORE(qps->module->device->raises_last_wqe, true);
    OFO_STORE(qp->last_wqe_seen, true);
    ofo_tell_progress(qps->ep->module, OFO_MAIL_LAST_WQE, qps->ep, qps->gen, NULL, NULL);
}

/* The queue pair is in the error state. Perhaps no work is in flight whose completion would show it. */
static void qp_failed(const ofo_device_t *device, const struct ibv_qp *verbs, bool fatal)
{
    ofo_qp_t *qp = verbs->qp_context;
    ofo_qpset_t *qps;

    if (NULL == qp) {
        ofo_ud_doubt(device, verbs); /* that of control messages */
        return;
    }
    qps = qp->returns.qps;
    BFO_ASSERT(qp == &qps->qp[qp->returns.qp]); /* the event names a queue pair of a set that lives */
    OFO_STORE(qp->is_fatal, qp->is_fatal || fatal);
    ofo_tell_service(qps->ep, OFO_MAIL_ERROR, qps->gen, &(ofo_ctl_t){.cause = OFO_CAUSE_ERROR}, NULL);
}

static void handle(const ofo_device_t *device, const struct ibv_async_event *event)
{
    ofo_log(1, "%s: %s", device->name, ibv_event_type_str(event->event_type));
    switch (event->event_type) {
    case IBV_EVENT_PORT_ERR:
        on_ports(device, event->element.port_num, port_down);
        break;
    case IBV_EVENT_PORT_ACTIVE:
        on_ports(device, event->element.port_num, port_up);
        break;
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
        on_ports(device, event->element.port_num, address_changed);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        ofo_async_device_gone(device);
        break;
    case IBV_EVENT_CQ_ERR:
        cq_failed(device, event->element.cq);
        break;
    case IBV_EVENT_SRQ_ERR:
        srq_failed(device, event->element.srq);
        break;
    case IBV_EVENT_QP_FATAL:
        qp_failed(device, event->element.qp, true);
        break;
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        qp_failed(device, event->element.qp, false);
        break;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        last_wqe(event->element.qp->qp_context);
        break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        ofo_srq_limit_reached(event->element.srq->srq_context);
        break;
    default: /* path migration, subnet manager, partitions: connections go on, or their completions show the error */
        break;
    }
}

/* Progress waits for service. If service did not answer in time, progress does not wait for it again soon, because many queue pairs may
 * fail together. */
static bool await_service(ofo_device_t *device, bool (*is_waiting)(const void *), const void *what)
{
    enum { PATIENCE_US = 100000, LOOK_US = 100, DEAF_MS = 1000 };
    const unsigned patience = ofo_now_ms() < OFO_LOAD(device->deaf_until) ? 0 : PATIENCE_US;

    for (unsigned waited = 0; is_waiting(what); waited += LOOK_US) {
        if (waited >= patience) {
            OFO_STORE(device->deaf_until, 0 < patience ? ofo_now_ms() + DEAF_MS : OFO_LOAD(device->deaf_until));
            return false;
        }
        usleep(LOOK_US);
    }
    return true;
}

static bool waits_for_events(const void *device)
{
    return ofo_device_has_unread(device);
}

/* Some unread events do not matter here: a queue pair with a shared queue raises LAST_WQE_REACHED whenever the queue pair fails. Therefore
 * this function waits until the service thread has read all events. */
bool ofo_async_settled(ofo_device_t *device)
{
    return await_service(device, waits_for_events, device);
}

static bool waits_for_answer(const void *module)
{
    const ofo_module_t *of = module;

    return OFO_LOAD(of->port_told) != OFO_LOAD(of->port_asked);
}

/* Service asks, because a query may take a minute if the adapter hangs. */
bool ofo_async_port_is_up(ofo_module_t *module, bool unanswered)
{
    if (!OFO_LOAD(module->port_up) || OFO_LOAD(OFO.closing)) {
        return OFO_LOAD(module->port_up);
    }
    (void) __atomic_add_fetch(&module->port_asked, 1, __ATOMIC_ACQ_REL);
    ofo_service_wake(module);
    return await_service(module->device, waits_for_answer, module) ? OFO_LOAD(module->port_answer) && OFO_LOAD(module->port_up)
                                                                   : unanswered && OFO_LOAD(module->port_up);
}

void ofo_async_answer(ofo_module_t *module)
{
    const uint32_t asked = OFO_LOAD(module->port_asked);
    struct ibv_port_attr attr;

    BFO_ASSERT((int32_t) (asked - OFO_LOAD(module->port_told)) >= 0); /* no answer before its question */
    if (asked != OFO_LOAD(module->port_told)) {
        OFO_STORE(module->port_answer, 0 == ibv_query_port(module->device->context, module->port_num, &attr) && IBV_PORT_ACTIVE == attr.state);
        OFO_STORE(module->port_told, asked);
    }
}

void ofo_async_read(ofo_module_t *module)
{
    struct ibv_async_event event;

    OFO_STORE(module->device->reading, true);
    while (0 == ibv_get_async_event(module->device->context, &event)) {
        handle(module->device, &event);
        ibv_ack_async_event(&event);
    }
    OFO_STORE(module->device->reading, false);
}
