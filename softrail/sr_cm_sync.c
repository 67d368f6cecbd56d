/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Identifiers for which the caller gave no event channel. Each has a channel of its own, and its calls wait there for the
 * event that they lead to. Endpoints (rdma_create_ep) are built from the other calls. DESIGN.txt 16.
 */
#include "sr_cm.h"
#include "sr_event.h"

#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

#define SR_PUBLIC __attribute__((visibility("default")))

enum { SR_CM_ENDPOINT_MS = 2000 }; /* how long rdma_create_ep resolves, as in librdmacm */

int sr_cm_result(int rc)
{
    errno = 0 == rc ? errno : rc;
    return 0 == rc ? 0 : -1;
}

static void ack_kept(struct sr_cm_id *id)
{
    if (NULL != id->rdma.event) {
        rdma_ack_cm_event(id->rdma.event);
        id->rdma.event = NULL;
    }
}

static bool nothing_comes(struct sr_cm_id *id)
{
    struct sr_cm_channel *channel = sr_cm_channel(id->rdma.channel);
    bool nothing;

    pthread_mutex_lock(&channel->mutex);
    nothing = SR_CM_ENDED == id->state && NULL == channel->first;
    pthread_mutex_unlock(&channel->mutex);
    return nothing;
}

int sr_cm_finish(struct sr_cm_id *id, int rc)
{
    const struct rdma_cm_event *event;

    if (0 != rc || !id->sync) {
        return sr_cm_result(rc);
    }
    ack_kept(id);
    if (nothing_comes(id)) {
        return 0;
    }
    if (0 != rdma_get_cm_event(id->rdma.channel, &id->rdma.event)) {
        return -1;
    }
    event = id->rdma.event;
    if (RDMA_CM_EVENT_DEVICE_REMOVAL == event->event) {
        return sr_cm_result(ENODEV);
    }
    return sr_cm_result(RDMA_CM_EVENT_REJECTED == event->event ? ECONNREFUSED : abs(event->status));
}

bool sr_cm_make_sync(struct sr_cm_id *id)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();

    if (NULL != channel) {
        sr_cm_migrate(id, sr_cm_channel(channel));
        id->sync = true;
    }
    return NULL != channel;
}

/* ---- identifiers -------------------------------------------------------------------------------- */

SR_PUBLIC int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **result, void *context, enum rdma_port_space ps)
{
    bool sync = NULL == channel;
    struct sr_cm_id *id;

    if (sync && NULL == (channel = rdma_create_event_channel())) {
        return -1;
    }
    id = sr_cm_id_new(channel, context, ps);
    if (NULL == id) {
        if (sync) {
            rdma_destroy_event_channel(channel);
        }
        return sr_cm_result(ENOMEM);
    }
    id->sync = sync;
    pthread_mutex_lock(&sr_cm_channel(channel)->mutex);
    sr_cm_list_add(id);
    pthread_mutex_unlock(&sr_cm_channel(channel)->mutex);
    *result = &id->rdma;
    return 0;
}

SR_PUBLIC int rdma_destroy_id(struct rdma_cm_id *rdma)
{
    struct rdma_event_channel *own = sr_cm_id(rdma)->sync ? rdma->channel : NULL;
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);

    pthread_mutex_lock(&channel->mutex);
    sr_cm_unwatch(id);
    sr_cm_purge(id);
    sr_cm_list_remove(id);
    pthread_mutex_unlock(&channel->mutex);
    ack_kept(id);
    sr_acks_wait(&id->acks);
    sr_cm_id_free(id);
    if (NULL != own) {
        rdma_destroy_event_channel(own);
    }
    return 0;
}

SR_PUBLIC int rdma_migrate_id(struct rdma_cm_id *rdma, struct rdma_event_channel *to)
{
    struct rdma_event_channel *own = sr_cm_id(rdma)->sync ? rdma->channel : NULL;
    struct sr_cm_id *id = sr_cm_id(rdma);

    if (NULL == to) {
        return NULL != own ? sr_cm_result(EINVAL) : sr_cm_make_sync(id) ? 0 : -1;
    }
    if (to != rdma->channel) {
        ack_kept(id);
        sr_cm_migrate(id, sr_cm_channel(to));
        id->sync = false;
    }
    sr_acks_wait(&id->acks);
    if (NULL != own) {
        rdma_destroy_event_channel(own);
    }
    return 0;
}

/* ---- endpoints ---------------------------------------------------------------------------------- */

static int listen_at(struct sr_cm_id *id, const struct rdma_addrinfo *info, struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
    if (0 != rdma_bind_addr(&id->rdma, info->ai_src_addr)) {
        return -1;
    }
    id->rdma.pd = NULL != pd ? pd : id->rdma.pd;
    if (NULL != init) {
        id->accept_with = malloc(sizeof(*init));
        if (NULL == id->accept_with) {
            return sr_cm_result(ENOMEM);
        }
        *id->accept_with = *init;
        id->accept_with->qp_type = (enum ibv_qp_type) info->ai_qp_type;
    }
    return 0;
}

static int call_to(struct sr_cm_id *id, const struct rdma_addrinfo *info, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    if (0 != rdma_resolve_addr(&id->rdma, info->ai_src_addr, info->ai_dst_addr, SR_CM_ENDPOINT_MS)
        || 0 != rdma_resolve_route(&id->rdma, SR_CM_ENDPOINT_MS)) {
        return -1;
    }
    if (NULL == init) {
        return 0;
    }
    init->qp_type = (enum ibv_qp_type) info->ai_qp_type;
    return rdma_create_qp(&id->rdma, pd, init);
}

SR_PUBLIC int rdma_create_ep(struct rdma_cm_id **result, struct rdma_addrinfo *info, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct rdma_cm_id *rdma;
    int rc, error;

    if (0 != rdma_create_id(NULL, &rdma, NULL, (enum rdma_port_space) info->ai_port_space)) {
        return -1;
    }
    rdma->qp_type = (enum ibv_qp_type) info->ai_qp_type;
    rc = 0 != (info->ai_flags & RAI_PASSIVE) ? listen_at(sr_cm_id(rdma), info, pd, init) : call_to(sr_cm_id(rdma), info, pd, init);
    if (0 != rc) {
        error = errno;
        rdma_destroy_ep(rdma);
        return sr_cm_result(error);
    }
    *result = rdma;
    return 0;
}

SR_PUBLIC void rdma_destroy_ep(struct rdma_cm_id *rdma)
{
    if (NULL != rdma->qp) {
        rdma_destroy_qp(rdma);
    }
    if (NULL != rdma->srq) {
        rdma_destroy_srq(rdma);
    }
    rdma_destroy_id(rdma);
}

SR_PUBLIC int rdma_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **result)
{
    const struct ibv_qp_init_attr *with = sr_cm_id(listener)->accept_with;
    struct ibv_qp_init_attr init;
    struct rdma_cm_event *event;
    int rc = 0;

    if (!sr_cm_id(listener)->sync) {
        return sr_cm_result(EINVAL);
    }
    ack_kept(sr_cm_id(listener));
    if (0 != rdma_get_cm_event(listener->channel, &event)) {
        return -1;
    }
    if (RDMA_CM_EVENT_CONNECT_REQUEST != event->event) {
        rc = RDMA_CM_EVENT_DEVICE_REMOVAL == event->event ? ENODEV : EINVAL;
    } else if (NULL != with) {
        init = *with;
        rc = 0 == rdma_create_qp(event->id, listener->pd, &init) ? 0 : errno;
        if (0 != rc) {
            struct rdma_cm_id *refused = event->id;
            rdma_ack_cm_event(event);
            rdma_destroy_id(refused);
            return sr_cm_result(rc);
        }
    }
    if (0 != rc) {
        listener->event = event;
        return sr_cm_result(rc);
    }
    *result = event->id;
    event->id->event = event;
    return 0;
}
