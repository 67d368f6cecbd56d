/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Verbs and the rest of the BTL, for the program that tests events of a device. Included once.
 */
#ifndef ASYNC_PLAYED_H
#define ASYNC_PLAYED_H

#include "bfo_config.h"

#include "device/btl_openib_address.h"
#include "connect/btl_openib_async.h"
#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "connect/btl_openib_connect_ud.h"
#include "rail/btl_openib_last_wqe.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"
#include "qp/btl_openib_qpset.h"
#include "device/btl_openib_srq.h"
#include "types/btl_openib_timers.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

ofo_component_t mca_btl_openib_component;

/* ---- verbs -------------------------------------------------------------------------------------- */

enum { PORTS = 2 };
static enum ibv_event_type waiting = IBV_EVENT_COMM_EST; /* COMM_EST: no event waits */
static int waiting_port;
static struct ibv_qp verbs_qp;
static struct ibv_srq failed_srq;
static struct ibv_cq failed_cq;
static uint16_t lid[1 + PORTS]; /* as a query of the port finds it */
static bool has_gid[1 + PORTS], has_other_gid[1 + PORTS];
static enum ibv_port_state state;

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    if (IBV_EVENT_COMM_EST == waiting) {
        return -1;
    }
    *event = (struct ibv_async_event){.event_type = waiting};
    if (IBV_EVENT_QP_LAST_WQE_REACHED == waiting) {
        event->element.qp = &verbs_qp;
    } else if (IBV_EVENT_CQ_ERR == waiting) {
        event->element.cq = &failed_cq;
    } else if (IBV_EVENT_SRQ_ERR == waiting) {
        event->element.srq = &failed_srq;
    } else if (IBV_EVENT_QP_FATAL == waiting || IBV_EVENT_QP_REQ_ERR == waiting || IBV_EVENT_QP_ACCESS_ERR == waiting) {
        event->element.qp = &verbs_qp;
    } else {
        event->element.port_num = waiting_port;
    }
    waiting = IBV_EVENT_COMM_EST;
    return 0;
}
void ibv_ack_async_event(struct ibv_async_event *event) {}
const char *ibv_event_type_str(enum ibv_event_type type)
{
    return "";
}
#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    ((struct ibv_port_attr *) attr)->state = state;
    ((struct ibv_port_attr *) attr)->lid = lid[port];
    return 0;
}

/* ---- functions that the room calls -------------------------------------------------------------- */

static unsigned looks; /* how often progress looked while it waited */
static bool is_deaf;   /* service reads no events */
static bool falls;     /* the port goes down while progress waits */

int usleep(useconds_t us)
{
    ++looks;
    return 0;
}
void ofo_service_wake(ofo_module_t *module)
{
    if (falls) {
        OFO_STORE(module->port_up, false);
    }
    if (!is_deaf) {
        ofo_async_answer(module);
    }
}

static ofo_device_t device;
static unsigned downs[1 + PORTS], ups[1 + PORTS], last_wqes; /* letters; those of ports by the port's number; atomic */
static unsigned failures;                                    /* letters that a queue pair failed */
static uint64_t now;
static bool is_second_due, overtook;
static int32_t second_is_through; /* atomic */
static pthread_t second;

static void *tell_of_the_end(void *unused)
{
    ofo_async_device_gone(&device);
    OFO_STORE(second_is_through, 1);
    return NULL;
}

/* Starts another thread at the worst moment, and gives it 50 ms to overtake. */
static void let_second_in(void)
{
    is_second_due = false;
    assert_int_equal(pthread_create(&second, NULL, tell_of_the_end, NULL), 0);
    for (int ms = 0; ms < 50 && !OFO_LOAD(second_is_through); ++ms) {
        (void) poll(NULL, 0, 1);
    }
    overtook = OFO_LOAD(second_is_through);
}

void ofo_tell_progress(ofo_module_t *module, ofo_mail_kind_t kind, ofo_endpoint_t *ep, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    const unsigned port = module->port_num;
    unsigned *count = OFO_MAIL_PORT_DOWN == kind ? &downs[port] : OFO_MAIL_PORT_UP == kind ? &ups[port] : &last_wqes;

    (void) __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
    if (is_second_due) {
        let_second_in();
    }
}
void ofo_tell_service(ofo_endpoint_t *ep, ofo_mail_kind_t kind, uint16_t gen, const ofo_ctl_t *ctl, ofo_qpset_t *qps)
{
    failures += OFO_MAIL_ERROR == kind;
}
bool ofo_port_find_gid(ofo_module_t *module, const uint8_t *gid)
{
    return has_gid[module->port_num];
}
bool ofo_port_take_gid(ofo_module_t *of)
{
    return has_other_gid[of->port_num];
}
void ofo_ud_doubt(const ofo_device_t *device, const struct ibv_qp *qp) {}
void ofo_srq_limit_reached(ofo_srq_t *srq) {}
void ofo_log(unsigned level, const char *format, ...) {}
uint64_t ofo_now_ms(void)
{
    return now;
}
void ofo_timers_add(ofo_endpoint_t *ep) {}
bool ofo_qpset_assume_last_wqe(ofo_qpset_t *qps)
{
    return true;
}

#endif /* ASYNC_PLAYED_H */
