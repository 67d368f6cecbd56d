/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Asynchronous device events, each scoped to what it names: a port's event never touches another port's rails.
 * Events become mail and decide nothing here. Context: service. See DESIGN.txt 15.
 */
#include "btl_openib.h"

static void set_port(ofo_module_t *module, bool up)
{
    if (OFO_LOAD(module->port_up) == up) {
        return;
    }
    if (up) {
        (void) ibv_query_port(module->device->context, module->port_num, &module->port_attr);
        (void) ofo_port_find_gid(module, OFO.record.port[module->port_index].gid);
    }
    OFO_STORE(module->port_up, up);
    ofo_tell_progress(module, up ? OFO_MAIL_PORT_UP : OFO_MAIL_PORT_DOWN, NULL, 0, NULL, NULL);
}

static void set_ports(const ofo_device_t *device, int port, bool up)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_module_t *module = OFO.module[i];
        if (module->device == device && (0 == port || module->port_num == port)) {
            set_port(module, up);
        }
    }
}

static void find_gids(const ofo_device_t *device, int port)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        ofo_module_t *module = OFO.module[i];
        if (module->device == device && module->port_num == port && module->use_grh) {
            (void) ofo_port_find_gid(module, OFO.record.port[module->port_index].gid);
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

static void handle(ofo_device_t *device, const struct ibv_async_event *event)
{
    ofo_log(1, "%s: %s", device->name, ibv_event_type_str(event->event_type));
    switch (event->event_type) {
    case IBV_EVENT_PORT_ERR:
        set_ports(device, event->element.port_num, false);
        break;
    case IBV_EVENT_PORT_ACTIVE:
        set_ports(device, event->element.port_num, true);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        OFO_STORE(device->fatal, true);
        set_ports(device, 0, false);
        break;
    case IBV_EVENT_GID_CHANGE:
        find_gids(device, event->element.port_num);
        break;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        last_wqe(event->element.qp->qp_context);
        break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        ofo_srq_limit_reached(event->element.srq->srq_context);
        break;
    default: /* queue pair events have their error completions */
        break;
    }
}

void ofo_async_read(ofo_module_t *module)
{
    struct ibv_async_event event;

    while (0 == ibv_get_async_event(module->device->context, &event)) {
        handle(module->device, &event);
        ibv_ack_async_event(&event);
    }
}
