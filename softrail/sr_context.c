/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The list of devices, and contexts, that is open devices. Opening a device also starts what a process needs once: the copy service
 * for its peers, and the handler by which a forked child forgets its parent's objects. DESIGN.txt 16.
 */
#include "sr_context.h"
#include "sr_cq.h"
#include "sr_device.h"
#include "sr_event.h"
#include "sr_mr.h"
#include "sr_pending.h"
#include "sr_poll.h"
#include "sr_qp.h"
#include "sr_qp_table.h"
#include "sr_requester.h"
#include "sr_service.h"
#include "sr_srq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sr_device {
    struct ibv_device ibv;
    char room[1024]; /* direct-verbs functions of providers read beyond struct ibv_device */
    unsigned rail;
};

static pthread_once_t devices_once = PTHREAD_ONCE_INIT;
static struct sr_device devices[SR_MAX_RAILS];

/* The rail that the device is on. It depends on our slot, so it is valid only after the process has joined. */
static unsigned rail_of(const struct sr_device *device)
{
    bool crossed = sr_habit(SR_FABRIC_CROSSED_WIRES) && 1 == sr.slot % 2;

    return crossed ? sr.fabric.shm->rails - 1 - device->rail : device->rail;
}

/* ---- list --------------------------------------------------------------------------------------- */

static void devices_init(void)
{
    for (unsigned rail = 0; rail < sr.fabric.shm->rails; ++rail) {
        struct ibv_device *dev = &devices[rail].ibv;
        dev->node_type = IBV_NODE_CA;
        dev->transport_type = IBV_TRANSPORT_IB;
        snprintf(dev->name, sizeof(dev->name), "sr%u", rail);
        snprintf(dev->dev_name, sizeof(dev->dev_name), "uverbs%u", rail);
        snprintf(dev->dev_path, sizeof(dev->dev_path), "%.180s/sysfs/class/infiniband_verbs/uverbs%u", sr.fabric.path, rail);
        snprintf(dev->ibdev_path, sizeof(dev->ibdev_path), "%.180s/sysfs/class/infiniband/sr%u", sr.fabric.path, rail);
        devices[rail].rail = rail;
    }
}

struct ibv_device **sr_device_list(int *count)
{
    struct ibv_device **list;
    unsigned n = 0;

    if (0 == sr_attach()) {
        pthread_once(&devices_once, devices_init);
        n = sr.fabric.shm->rails;
    }
    list = calloc(n + 1, sizeof(*list));
    for (unsigned i = 0; NULL != list && i < n; ++i) {
        list[i] = &devices[i].ibv;
    }
    if (NULL != count) {
        *count = NULL == list ? 0 : (int) n;
    }
    return list;
}

void sr_device_list_free(struct ibv_device **list)
{
    free(list);
}

/* ---- open and close ----------------------------------------------------------------------------- */

static int claim_entry(struct sr_context *context)
{
    for (unsigned i = 0; i < SR_MAX_CONTEXTS; ++i) {
        uint32_t expected = 0;
        struct sr_context_entry *entry = &sr.proc->contexts[i];
        if (atomic_compare_exchange_strong(&entry->fifo, &expected, UINT32_MAX)) {
            entry->rail = context->rail;
            context->entry = i;
            atomic_store(&entry->fifo, context->fifo);
            return 0;
        }
    }
    return EMFILE;
}

static void forked_child(void)
{
    sr_event_reset();
    sr_mr_reset();
    sr_qp_table_reset();
    sr_pending_reset();
}

/* Starts the copy service once per process, if process_vm_* is refused. */
static int start_service(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pid_t started;
    int rc = 0;

    if (0 == (sr.fabric.shm->flags & SR_FABRIC_NO_CMA)) {
        return 0;
    }
    pthread_mutex_lock(&mutex);
    if (sr.pid != started) {
        rc = sr_service_start();
        started = 0 == rc ? sr.pid : started;
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked_child);
}

struct ibv_context *sr_device_open(struct ibv_device *device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct sr_context *context;
    int rc = sr_join();

    pthread_once(&once, watch_forks);
    if (0 == rc && atomic_load(&sr.fabric.shm->rail[rail_of((struct sr_device *) device)].gone)) {
        rc = EIO;
    }
    if (0 == rc) {
        rc = start_service();
    }
    if (0 != rc || NULL == (context = calloc(1, sizeof(*context)))) {
        errno = 0 != rc ? rc : ENOMEM;
        return NULL;
    }
    context->rail = rail_of((struct sr_device *) device);
    context->fifo = sr_fifo_open(&context->ibv.async_fd);
    rc = 0 == context->fifo ? errno : claim_entry(context);
    if (0 != rc) {
        if (0 != context->fifo) {
            sr_fifo_close(context->fifo, context->ibv.async_fd);
        }
        free(context);
        errno = rc;
        return NULL;
    }
    context->ibv.device = device;
    context->ibv.cmd_fd = context->ibv.async_fd;
    context->ibv.num_comp_vectors = 4;
    pthread_mutex_init(&context->ibv.mutex, NULL);
    context->ibv.ops.poll_cq = sr_poll_cq;
    context->ibv.ops.req_notify_cq = sr_cq_arm;
    context->ibv.ops.post_send = sr_post_send;
    context->ibv.ops.post_recv = sr_qp_post_recv;
    context->ibv.ops.post_srq_recv = sr_srq_post;
    return &context->ibv;
}

int sr_device_close(struct ibv_context *ibv)
{
    struct sr_context *context = sr_context(ibv);

    if (sr.joined) {
        atomic_store(&sr.proc->contexts[context->entry].fifo, 0);
        sr_fifo_close(context->fifo, ibv->async_fd);
    }
    free(context);
    return 0;
}
