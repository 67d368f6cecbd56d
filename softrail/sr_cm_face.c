/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Identifiers of librdmacm are bound, resolved and made to listen here; names are looked up. Functions of librdmacm that
 * softrail does not have are refused here with EOPNOTSUPP and one message. DESIGN.txt 16.
 */
#include "sr_cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SR_PUBLIC __attribute__((visibility("default")))

/* Refuses a function that softrail does not have. */
static int refuse(const char *what)
{
    static _Atomic bool said;

    sr_say_once(&said, "%s is not offered (softrail(1), CONNECTIONS BY LIBRDMACM)", what);
    return sr_cm_result(EOPNOTSUPP);
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
    return sr_cm_result(rc);
}

static bool is_multicast(const struct sockaddr *address)
{
    return AF_INET6 == address->sa_family
               ? IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *) address)->sin6_addr)
               : AF_INET == address->sa_family && IN_MULTICAST(ntohl(((const struct sockaddr_in *) address)->sin_addr.s_addr));
}

/* Finds the rail of the destination, which the source must be on too. If the caller named a source on another rail, the destination is
 * unreachable. Loopback is on any rail. */
static int find_rail(struct sr_cm_id *id, struct sockaddr *from, struct sockaddr *to)
{
    int rail = -1, own = id->rail, rc = sr_cm_rail_of(to, &rail);

    if (is_multicast(to)) {
        refuse("multicast");
        return EOPNOTSUPP;
    }
    if (0 == rc && NULL != from) {
        rc = sr_cm_rail_of(from, &own);
    }
    if (0 == rc && 0 > rail) {
        rail = 0 > own ? 0 : own;
    }
    if (0 != rc || (0 <= own && own != rail)) {
        return EHOSTUNREACH;
    }
    return sr_cm_take_rail(id, rail);
}

/* Makes a port number for a caller, so that the listener can tell callers of one address apart. */
static in_port_t own_port(void)
{
    static _Atomic unsigned used;

    return htons((uint16_t) (32768 + (sr.slot * 131 + atomic_fetch_add(&used, 1)) % 28000));
}

static void set_addresses(struct rdma_cm_id *rdma, struct sockaddr *from, struct sockaddr *to)
{
    memcpy(&rdma->route.addr.dst_storage, to, sr_cm_address_length(to));
    if (NULL != from) {
        memcpy(&rdma->route.addr.src_storage, from, sr_cm_address_length(from));
    } else if (AF_UNSPEC == rdma->route.addr.src_addr.sa_family) {
        memcpy(&rdma->route.addr.src_storage, to, sr_cm_address_length(to));
        *sr_cm_port(&rdma->route.addr.src_addr) = 0;
    }
    if (0 == *sr_cm_port(&rdma->route.addr.src_addr)) {
        *sr_cm_port(&rdma->route.addr.src_addr) = own_port();
    }
}

/* A port that is down has no route; a silent network does not answer in time. */
SR_PUBLIC int rdma_resolve_addr(struct rdma_cm_id *rdma, struct sockaddr *from, struct sockaddr *to, int timeout)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);
    int rc;

    if (NULL == to || (SR_CM_IDLE != id->state && SR_CM_BOUND != id->state)) {
        return sr_cm_result(EINVAL);
    }
    pthread_mutex_lock(&channel->mutex);
    rc = find_rail(id, from, to);
    if (0 == rc && !sr_cm_rail_is_up((unsigned) id->rail, sr.slot)) {
        rc = ENETUNREACH;
    }
    if (0 == rc) {
        set_addresses(rdma, from, to);
        sr_cm_resolve(id, RDMA_CM_EVENT_ADDR_RESOLVED, timeout);
    } else {
        sr_cm_event_add(id, RDMA_CM_EVENT_ADDR_ERROR, -rc, NULL);
    }
    pthread_mutex_unlock(&channel->mutex);
    return sr_cm_finish(id, 0);
}

SR_PUBLIC int rdma_resolve_route(struct rdma_cm_id *rdma, int timeout)
{
    struct sr_cm_channel *channel = sr_cm_channel(rdma->channel);
    struct sr_cm_id *id = sr_cm_id(rdma);
    int rc = 0;

    pthread_mutex_lock(&channel->mutex);
    if (SR_CM_BOUND != id->state || 0 > id->rail) {
        rc = EINVAL;
    } else {
        sr_cm_resolve(id, RDMA_CM_EVENT_ROUTE_RESOLVED, timeout);
    }
    pthread_mutex_unlock(&channel->mutex);
    return sr_cm_finish(id, rc);
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
    return sr_cm_result(rc);
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
    return RDMA_OPTION_ID == level && 0 <= name && RDMA_OPTION_ID_ACK_TIMEOUT >= name ? 0 : sr_cm_result(ENOSYS);
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

static int set_address(struct sockaddr **address, socklen_t *length, const struct sockaddr *from, socklen_t bytes)
{
    if (NULL == from || 0 == bytes) {
        return 0;
    }
    *address = calloc(1, sizeof(struct sockaddr_storage));
    if (NULL == *address || sizeof(struct sockaddr_storage) < bytes) {
        return ENOMEM;
    }
    memcpy(*address, from, bytes);
    *length = bytes;
    return 0;
}

/* Fills in the address of the names: the source if the caller listens, otherwise the destination. */
static int look_up(const char *node, const char *service, struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
    bool passive = 0 != (info->ai_flags & RAI_PASSIVE);
    struct addrinfo want = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int rc;

    if (NULL != hints) {
        want.ai_family = 0 != (hints->ai_flags & RAI_FAMILY) ? hints->ai_family : AF_UNSPEC;
        want.ai_flags = (passive ? AI_PASSIVE : 0) | (0 != (hints->ai_flags & RAI_NUMERICHOST) ? AI_NUMERICHOST : 0);
    }
    rc = getaddrinfo(node, service, &want, &found);
    if (0 != rc) {
        return rc;
    }
    info->ai_family = found->ai_family;
    rc = passive ? set_address(&info->ai_src_addr, &info->ai_src_len, found->ai_addr, found->ai_addrlen)
                 : set_address(&info->ai_dst_addr, &info->ai_dst_len, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return sr_cm_result(rc);
}

static int default_space(int qp_type)
{
    return IBV_QPT_UD == qp_type ? RDMA_PS_UDP : RDMA_PS_TCP;
}

/* The hints give the addresses that the names do not give. */
SR_PUBLIC int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **answer)
{
    static const struct rdma_addrinfo none;
    const struct rdma_addrinfo *h = NULL == hints ? &none : hints;
    struct rdma_addrinfo *info = calloc(1, sizeof(*info));
    int rc = 0;

    if (NULL == info || (NULL == node && NULL == service && NULL == hints)) {
        free(info);
        return sr_cm_result(NULL == info ? ENOMEM : EINVAL);
    }
    info->ai_flags = h->ai_flags;
    info->ai_family = h->ai_family;
    info->ai_qp_type = 0 != h->ai_qp_type ? h->ai_qp_type : RDMA_PS_UDP == h->ai_port_space ? IBV_QPT_UD : IBV_QPT_RC;
    info->ai_port_space = 0 == h->ai_port_space ? default_space(info->ai_qp_type) : h->ai_port_space;
    if (NULL != node || NULL != service) {
        rc = look_up(node, service, info, hints);
    }
    if (0 == rc && NULL == info->ai_src_addr) {
        rc = sr_cm_result(set_address(&info->ai_src_addr, &info->ai_src_len, h->ai_src_addr, h->ai_src_len));
    }
    if (0 == rc && NULL == info->ai_dst_addr && 0 == (info->ai_flags & RAI_PASSIVE)) {
        rc = sr_cm_result(set_address(&info->ai_dst_addr, &info->ai_dst_len, h->ai_dst_addr, h->ai_dst_len));
    }
    if (0 != rc) {
        rdma_freeaddrinfo(info);
        return rc;
    }
    *answer = info;
    return 0;
}

/* ---- refused ------------------------------------------------------------------------------------ */

SR_PUBLIC int rdma_join_multicast(struct rdma_cm_id *rdma, struct sockaddr *address, void *context)
{
    (void) rdma, (void) address, (void) context;
    return refuse("multicast");
}

SR_PUBLIC int rdma_join_multicast_ex(struct rdma_cm_id *rdma, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
    (void) rdma, (void) attr, (void) context;
    return refuse("multicast");
}

SR_PUBLIC int rdma_leave_multicast(struct rdma_cm_id *rdma, struct sockaddr *address)
{
    (void) rdma, (void) address;
    return sr_cm_result(EADDRNOTAVAIL);
}

/* Refusing this call is enough, because every rsocket begins with it. */
SR_PUBLIC int rsocket(int domain, int type, int protocol);
SR_PUBLIC int rsocket(int domain, int type, int protocol)
{
    (void) domain, (void) type, (void) protocol;
    return refuse("rsocket");
}

/* Its only use is to report the event COMM_EST, which no queue pair raises here. */
SR_PUBLIC int rdma_notify(struct rdma_cm_id *rdma, enum ibv_event_type event)
{
    (void) rdma, (void) event;
    return sr_cm_result(EINVAL);
}

SR_PUBLIC int rdma_set_local_ece(struct rdma_cm_id *rdma, struct ibv_ece *ece)
{
    (void) rdma, (void) ece;
    return sr_cm_result(EOPNOTSUPP);
}

SR_PUBLIC int rdma_get_remote_ece(struct rdma_cm_id *rdma, struct ibv_ece *ece)
{
    (void) rdma;
    memset(ece, 0, sizeof(*ece));
    return sr_cm_result(EOPNOTSUPP);
}

SR_PUBLIC int rdma_reject_ece(struct rdma_cm_id *rdma, const void *data, uint8_t length)
{
    return rdma_reject(rdma, data, length);
}
