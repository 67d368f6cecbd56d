/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Asynchronous device events, each scoped to what it names: a port's event never touches another port's rails.
 * Events become mail and decide nothing here. Context: service of the device's first module. See DESIGN.txt 15.5.
 */
#include "btl_openib.h"

#include <poll.h>

/* What is wrong with a port; `why` is NULL if nothing is. The rails of a port that is down end, all of them. */
static void set_port(ofo_module_t *module, const char *why)
{
    bool up = NULL == why;

    if (OFO_LOAD(module->port_up) == up) {
        return;
    }
    module->down_why = up ? module->down_why : why;
    OFO_STORE(module->port_up, up);
    ofo_tell_progress(module, up ? OFO_MAIL_PORT_UP : OFO_MAIL_PORT_DOWN, NULL, 0, NULL, NULL);
}

/* The port has another address than its connections were made with: they end, new ones begin with the new address. */
static void restart_port(ofo_module_t *module, const char *why)
{
    set_port(module, why);
    set_port(module, NULL);
}

/* Looks the port up anew. True if it can carry rails; *moved if its connections cannot go on. */
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
        *why = "the port has lost its address";
        if (!ofo_port_find_gid(module, OFO.record.port[module->port_index].gid)) {
            return false;
        }
        *moved |= index != module->gid_index;
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
        set_port(module, NULL);
    }
}

static void address_changed(ofo_module_t *module)
{
    const char *why;
    bool moved;

    if (!look_up(module, &moved, &why)) {
        set_port(module, why);
    } else if (moved) {
        restart_port(module, "the port has another address");
    } else {
        set_port(module, NULL); /* an address that was lost is back */
    }
}

static void device_gone(ofo_module_t *module)
{
    OFO_STORE(module->device->fatal, true);
    set_port(module, "the device failed");
}

/* The ports an event names; all of the device if it names none. */
static void on_ports(const ofo_device_t *device, int port, void (*what)(ofo_module_t *))
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_module_t *module = OFO.module[i];
        if (module->device == device && (0 == port || module->port_num == port)) {
            what(module);
        }
    }
}

/* A completion queue that overran lost completions: nothing of its module can be trusted any more. */
static void cq_failed(const ofo_device_t *device, const struct ibv_cq *cq)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_module_t *module = OFO.module[i];
        for (int c = 0; module->device == device && c < OFO_LOAD(module->cq_count); ++c) {
            if (cq == module->cq[c]) {
                set_port(module, "a completion queue failed");
            }
        }
    }
}

/* Latched from the queue pair's creation on: it may come before its fence begins. */
static void last_wqe(ofo_qp_t *qp)
{
    ofo_qpset_t *qps = qp->returns.qps;

    OFO_STORE(qp->last_wqe_seen, true);
    ofo_tell_progress(qps->ep->module, OFO_MAIL_LAST_WQE, qps->ep, qps->gen, NULL, NULL);
}

/* The queue pair is in the error state, and there may be nothing in flight whose completion would tell. */
static void qp_failed(ofo_qp_t *qp, bool fatal)
{
    ofo_qpset_t *qps = NULL != qp ? qp->returns.qps : NULL; /* else that of control messages */

    if (NULL != qps) {
        OFO_STORE(qp->is_fatal, qp->is_fatal || fatal);
        ofo_tell_service(qps->ep, OFO_MAIL_ERROR, qps->gen, NULL, NULL);
    }
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
        on_ports(device, 0, device_gone);
        break;
    case IBV_EVENT_CQ_ERR:
        cq_failed(device, event->element.cq);
        break;
    case IBV_EVENT_QP_FATAL:
        qp_failed(event->element.qp->qp_context, true);
        break;
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        qp_failed(event->element.qp->qp_context, false);
        break;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        last_wqe(event->element.qp->qp_context);
        break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        ofo_srq_limit_reached(event->element.srq->srq_context);
        break;
    default: /* path migration, subnet manager, partitions: connections go on, or their completions tell */
        break;
    }
}

/* In this order: what is no longer in the device is being read, and what is no longer being read was noted. */
bool ofo_async_explains(const ofo_device_t *device, const ofo_qp_t *qp)
{
    struct pollfd fd = {.fd = device->context->async_fd, .events = POLLIN};

    return 0 < poll(&fd, 1, 0) || OFO_LOAD(device->reading) || OFO_LOAD(qp->is_fatal);
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
