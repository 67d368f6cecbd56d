/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Identifiers of librdmacm: made, bound, resolved, given queue pairs, destroyed. DESIGN.txt 16.
 */
#include "sr_cm.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SR_PUBLIC __attribute__((visibility("default")))

static int result(int rc)
{
    errno = 0 == rc ? errno : rc;
    return 0 == rc ? 0 : -1;
}

/* ---- identifiers -------------------------------------------------------------------------------- */

SR_PUBLIC int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **result_id, void *context,
                             enum rdma_port_space ps)
{
    struct sr_cm_id *id;

    if (NULL == channel) {
        return result(EOPNOTSUPP); /* calls that wait by themselves are not offered */
    }
    id = sr_cm_id_new(channel, context, ps);
    if (NULL == id) {
        return result(ENOMEM);
    }
    *result_id = &id->rdma;
    return 0;
}

SR_PUBLIC int rdma_destroy_id(struct rdma_cm_id *rdma)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);

    pthread_mutex_lock(&channel->mutex);
    sr_cm_unwatch(id);
    sr_cm_purge(id);
    pthread_mutex_unlock(&channel->mutex);
    sr_acks_wait(&id->acks);
    sr_cm_id_free(id);
    return 0;
}

SR_PUBLIC int rdma_migrate_id(struct rdma_cm_id *rdma, struct rdma_event_channel *to)
{
    if (NULL == to) {
        return result(EOPNOTSUPP);
    }
    if (to != rdma->channel) {
        sr_cm_migrate(sr_cm_id(rdma), sr_cm_channel(to));
    }
    sr_acks_wait(&sr_cm_id(rdma)->acks);
    return 0;
}

/* ---- addresses ---------------------------------------------------------------------------------- */

SR_PUBLIC int rdma_bind_addr(struct rdma_cm_id *rdma, struct sockaddr *address)
{
    struct sr_cm_id *id = sr_cm_id(rdma);
    int rail = -1, rc = SR_CM_IDLE != id->state ? EINVAL : sr_cm_rail_of(address, &rail);

    if (0 == rc && 0 <= rail) {
        rc = sr_cm_take_rail(id, rail);
    } else if (0 == rc && 0 != sr_join()) {
        rc = ENODEV;
    }
    if (0 == rc) {
        memcpy(&rdma->route.addr.src_storage, address, sr_cm_address_length(address));
        id->state = SR_CM_BOUND;
    }
    return result(rc);
}

/* The source is on the destination's rail; where the caller named another, the destination is not there. */
static int find_rail(struct sr_cm_id *id, struct sockaddr *from, struct sockaddr *to)
{
    int rail = -1, own = id->rail, rc = sr_cm_rail_of(to, &rail);

    if (0 == rc && NULL != from) {
        rc = sr_cm_rail_of(from, &own);
    }
    if (0 != rc || 0 > rail || (0 <= own && own != rail)) {
        return EHOSTUNREACH;
    }
    return sr_cm_take_rail(id, rail);
}

SR_PUBLIC int rdma_resolve_addr(struct rdma_cm_id *rdma, struct sockaddr *from, struct sockaddr *to, int timeout)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);
    int rc;

    (void) timeout;
    if (NULL == to || (SR_CM_IDLE != id->state && SR_CM_BOUND != id->state)) {
        return result(EINVAL);
    }
    pthread_mutex_lock(&channel->mutex);
    rc = find_rail(id, from, to);
    if (0 == rc && !sr_cm_rail_is_up((unsigned) id->rail, sr.slot)) {
        rc = ENETUNREACH;
    }
    memcpy(&rdma->route.addr.dst_storage, to, sr_cm_address_length(to));
    if (NULL != from) {
        memcpy(&rdma->route.addr.src_storage, from, sr_cm_address_length(from));
    } else if (AF_UNSPEC == rdma->route.addr.src_addr.sa_family) {
        memcpy(&rdma->route.addr.src_storage, to, sr_cm_address_length(to));
        *sr_cm_port(&rdma->route.addr.src_addr) = 0;
    }
    id->state = 0 == rc ? SR_CM_BOUND : id->state;
    sr_cm_event_add(id, 0 == rc ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR, -rc, NULL);
    pthread_mutex_unlock(&channel->mutex);
    return 0;
}

SR_PUBLIC int rdma_resolve_route(struct rdma_cm_id *rdma, int timeout)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);
    bool up;

    (void) timeout;
    if (SR_CM_BOUND != id->state || 0 > id->rail) {
        return result(EINVAL);
    }
    up = sr_cm_rail_is_up((unsigned) id->rail, sr.slot);
    pthread_mutex_lock(&channel->mutex);
    sr_cm_event_add(id, up ? RDMA_CM_EVENT_ROUTE_RESOLVED : RDMA_CM_EVENT_ROUTE_ERROR, up ? 0 : -ETIMEDOUT, NULL);
    pthread_mutex_unlock(&channel->mutex);
    return 0;
}

SR_PUBLIC int rdma_listen(struct rdma_cm_id *rdma, int backlog)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);
    int rc = EINVAL;

    pthread_mutex_lock(&channel->mutex);
    if (SR_CM_BOUND == id->state) {
        rc = sr_cm_listen(id, backlog);
        if (0 == rc) {
            id->state = SR_CM_LISTENING;
            sr_cm_watch(id);
        }
    }
    pthread_mutex_unlock(&channel->mutex);
    return result(rc);
}

SR_PUBLIC __be16 rdma_get_src_port(struct rdma_cm_id *rdma)
{
    return *sr_cm_port(&rdma->route.addr.src_addr);
}

SR_PUBLIC __be16 rdma_get_dst_port(struct rdma_cm_id *rdma)
{
    return *sr_cm_port(&rdma->route.addr.dst_addr);
}

SR_PUBLIC int rdma_set_option(struct rdma_cm_id *rdma, int level, int name, void *value, size_t length)
{
    (void) rdma, (void) value, (void) length;
    return RDMA_OPTION_ID == level && 0 <= name && RDMA_OPTION_ID_ACK_TIMEOUT >= name ? 0 : result(ENOSYS);
}

/* ---- queue pairs -------------------------------------------------------------------------------- */

SR_PUBLIC int rdma_create_qp(struct rdma_cm_id *rdma, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    int rc;

    if (NULL == rdma->verbs || NULL == pd || pd->context->device != rdma->verbs->device || NULL == init->send_cq
        || NULL == init->recv_cq) {
        return result(EINVAL);
    }
    rdma->qp = sr_qp_create(pd, init);
    if (NULL == rdma->qp) {
        return -1;
    }
    rc = IBV_QPT_RC == init->qp_type ? sr_cm_qp_to(sr_cm_id(rdma), IBV_QPS_INIT) : EOPNOTSUPP;
    if (0 != rc) {
        sr_qp_destroy(rdma->qp);
        rdma->qp = NULL;
        return result(rc);
    }
    rdma->pd = pd;
    return 0;
}

SR_PUBLIC int rdma_create_qp_ex(struct rdma_cm_id *rdma, struct ibv_qp_init_attr_ex *ex)
{
    struct ibv_qp_init_attr init = { .qp_context = ex->qp_context, .send_cq = ex->send_cq, .recv_cq = ex->recv_cq,
                                     .srq = ex->srq, .cap = ex->cap, .qp_type = ex->qp_type,
                                     .sq_sig_all = ex->sq_sig_all };
    int rc;

    if (0 != (ex->comp_mask & ~(uint32_t) IBV_QP_INIT_ATTR_PD)) {
        return result(EOPNOTSUPP);
    }
    rc = rdma_create_qp(rdma, 0 != (ex->comp_mask & IBV_QP_INIT_ATTR_PD) ? ex->pd : rdma->pd, &init);
    ex->cap = init.cap;
    return rc;
}

SR_PUBLIC void rdma_destroy_qp(struct rdma_cm_id *rdma)
{
    sr_qp_destroy(rdma->qp);
    rdma->qp = NULL;
}

/* ---- names -------------------------------------------------------------------------------------- */

SR_PUBLIC void rdma_freeaddrinfo(struct rdma_addrinfo *info)
{
    if (NULL != info) {
        free(info->ai_src_addr);
        free(info->ai_dst_addr);
        free(info);
    }
}

SR_PUBLIC int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                               struct rdma_addrinfo **answer)
{
    bool passive = NULL != hints && 0 != (hints->ai_flags & RAI_PASSIVE);
    struct addrinfo want = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    struct rdma_addrinfo *info;
    struct sockaddr *copy;
    int rc;

    if (NULL != hints) {
        want.ai_family = 0 != (hints->ai_flags & RAI_FAMILY) ? hints->ai_family : AF_UNSPEC;
        want.ai_flags = (passive ? AI_PASSIVE : 0) | (0 != (hints->ai_flags & RAI_NUMERICHOST) ? AI_NUMERICHOST : 0);
    }
    rc = getaddrinfo(node, service, &want, &found);
    if (0 != rc) {
        return rc;
    }
    info = calloc(1, sizeof(*info));
    copy = calloc(1, sizeof(struct sockaddr_storage));
    if (NULL == info || NULL == copy) {
        free(info);
        free(copy);
        freeaddrinfo(found);
        return result(ENOMEM);
    }
    memcpy(copy, found->ai_addr, found->ai_addrlen);
    info->ai_family = found->ai_family;
    info->ai_flags = NULL == hints ? 0 : hints->ai_flags;
    info->ai_qp_type = NULL == hints || 0 == hints->ai_qp_type ? IBV_QPT_RC : hints->ai_qp_type;
    info->ai_port_space = NULL == hints || 0 == hints->ai_port_space ? RDMA_PS_TCP : hints->ai_port_space;
    *(passive ? &info->ai_src_addr : &info->ai_dst_addr) = copy;
    *(passive ? &info->ai_src_len : &info->ai_dst_len) = found->ai_addrlen;
    if (!passive && NULL != hints && NULL != hints->ai_src_addr) {
        info->ai_src_addr = calloc(1, sizeof(struct sockaddr_storage));
        if (NULL != info->ai_src_addr) {
            memcpy(info->ai_src_addr, hints->ai_src_addr, hints->ai_src_len);
            info->ai_src_len = hints->ai_src_len;
        }
    }
    freeaddrinfo(found);
    *answer = info;
    return 0;
}
