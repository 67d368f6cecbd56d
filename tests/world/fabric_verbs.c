/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The face of libibverbs: devices, contexts, queries, protection domains, registrations, address handles, texts. The other verbs are in
 * fabric_cq.c and fabric_qp.c. Each process that calls gets the adapters of its node. DESIGN.txt section 18.
 */
#include "fabric_internal.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_reg_mr
#undef ibv_query_port

enum { SHORT_PORT_BYTES = 48 /* programs pass a shorter structure, which ends with flags */ };

/* ---- devices ------------------------------------------------------------------------------------------ */

static struct {
    struct ibv_device ibv;
    char room[1024]; /* functions of providers read beyond the structure */
} devices[WORLD_MAX_RAILS];

struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list = world_call_fails(CALL_get_device_list, 0) ? NULL : calloc(fabric.habits.rails + 1, sizeof(struct ibv_device *));

    for (unsigned rail = 0; NULL != list && rail < fabric.habits.rails; ++rail) {
        struct ibv_device *device = &devices[rail].ibv;
        device->node_type = IBV_NODE_CA;
        device->transport_type = IBV_TRANSPORT_IB;
        snprintf(device->name, sizeof(device->name), "w%u", rail);
        snprintf(device->dev_name, sizeof(device->dev_name), "uverbs%u", rail);
        list[rail] = device;
    }
    if (NULL != count) {
        *count = NULL == list ? 0 : (int) fabric.habits.rails;
    }
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    fabric_context_t *context;
    unsigned rail = 0;

    while (device != &devices[rail].ibv) {
        ++rail;
    }
    if (NULL == world_me) {
        world_broken("a device is opened outside of a process");
    }
    if (fabric.port[world_me->node][rail].is_dead) {
        errno = EIO;
        return NULL;
    }
    if (world_call_fails(CALL_open_device, rail)) {
        errno = ENOMEM;
        return NULL;
    }
    context = fabric_object_new(FABRIC_CONTEXT, NULL, sizeof(*context), CALL_none);
    if (NULL == context) {
        return NULL;
    }
    context->object.context = context;
    context->rank = world_me->rank;
    context->node = world_me->node;
    context->rail = rail;
    context->ibv.device = device;
    context->ibv.async_fd = context->ibv.cmd_fd = world_fd_make();
    context->ibv.num_comp_vectors = 1;
    context->ibv.ops.poll_cq = fabric_poll_cq;
    context->ibv.ops.req_notify_cq = fabric_req_notify_cq;
    context->ibv.ops.post_send = fabric_post_send;
    context->ibv.ops.post_recv = fabric_post_recv;
    context->ibv.ops.post_srq_recv = fabric_post_srq_recv;
    return &context->ibv;
}

static void drop(fabric_object_t *object)
{
    switch (object->kind) {
    case FABRIC_QP:
        fabric_qp_end((fabric_qp_t *) object);
        return;
    case FABRIC_SRQ:
        free(((fabric_srq_t *) object)->rq.ring);
        break;
    case FABRIC_CQ:
        free(((fabric_cq_t *) object)->ring);
        break;
    case FABRIC_CHANNEL:
        world_fd_free(((fabric_channel_t *) object)->ibv.fd);
        free(((fabric_channel_t *) object)->events);
        break;
    case FABRIC_CONTEXT:
        world_fd_free(((fabric_context_t *) object)->ibv.async_fd);
        free(((fabric_context_t *) object)->events);
        break;
    default:
        break;
    }
    fabric_object_end(object);
}

void fabric_context_end(fabric_context_t *context)
{
    static const fabric_kind_t order[] = {FABRIC_QP, FABRIC_SRQ, FABRIC_CQ, FABRIC_CHANNEL, FABRIC_MR, FABRIC_AH, FABRIC_PD};

    for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); ++i) {
        for (fabric_object_t *object = context->objects, *next; NULL != object; object = next) {
            next = object->next;
            if (order[i] == object->kind) {
                drop(object);
            }
        }
    }
    drop(&context->object);
}

int ibv_close_device(struct ibv_context *ibv)
{
    fabric_context_t *context = FABRIC_OF(fabric_context_t, ibv);

    fabric_object_check(&context->object, "ibv_close_device");
    if (NULL != context->objects) {
        world_broken("a device is closed, and object %u of kind %d is left", context->objects->number, (int) context->objects->kind);
    }
    fabric_context_end(context);
    return 0;
}

/* ---- queries ------------------------------------------------------------------------------------------ */

/* 0, or the error of this query of the port. */
static int check_port(struct ibv_context *ibv, unsigned port, world_call_t call)
{
    const fabric_context_t *context = FABRIC_OF(fabric_context_t, ibv);

    fabric_object_check(&context->object, "a query");
    return fabric_port_of(context)->is_dead ? EIO : 1 != port ? EINVAL : fabric_fails(call, context) ? ENOMEM : 0;
}

int ibv_query_device(struct ibv_context *ibv, struct ibv_device_attr *attr)
{
    const fabric_context_t *context = FABRIC_OF(fabric_context_t, ibv);
    union ibv_gid gid;
    int rc = check_port(ibv, 1, CALL_query_device);

    if (0 != rc) {
        return rc;
    }
    memset(attr, 0, sizeof(*attr));
    fabric_gid(context->node, context->rail, &gid);
    snprintf(attr->fw_ver, sizeof(attr->fw_ver), "world");
    attr->node_guid = attr->sys_image_guid = gid.global.interface_id;
    attr->max_mr_size = UINT64_C(1) << 46;
    attr->page_size_cap = 0xfffff000;
    attr->max_qp = 16384;
    attr->max_qp_wr = FABRIC_MAX_WR;
    attr->device_cap_flags = IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN;
    attr->max_sge = attr->max_sge_rd = attr->max_srq_sge = FABRIC_MAX_SGE;
    attr->max_cq = 65536;
    attr->max_cqe = FABRIC_MAX_CQE;
    attr->max_mr = 1 << 20;
    attr->max_pd = 65536;
    attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = FABRIC_MAX_READS;
    attr->max_res_rd_atom = FABRIC_MAX_READS * 16384;
    attr->max_ah = 1 << 20;
    attr->max_srq = fabric.habits.has_srq ? 16384 : 0;
    attr->max_srq_wr = FABRIC_MAX_WR;
    attr->max_pkeys = 1;
    attr->local_ca_ack_delay = 15;
    attr->phys_port_cnt = 1;
    return 0;
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (128u << mtu < bytes) {
        ++mtu;
    }
    return mtu;
}

/* Contexts have no extended operations, therefore the query of verbs.h comes here. */
int ibv_query_port(struct ibv_context *ibv, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    const fabric_context_t *context = FABRIC_OF(fabric_context_t, ibv);
    const bool is_up = fabric_port_of(context)->is_up, has_lid = is_up || fabric.habits.keeps_lids;
    int rc = check_port(ibv, port, CALL_query_port);
    struct ibv_port_attr full = {.state = is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
                                 .phys_state = is_up ? 5 : 2,
                                 .max_mtu = mtu_code(fabric.habits.mtu),
                                 .active_mtu = mtu_code(fabric.habits.mtu),
                                 .gid_tbl_len = 1,
                                 .port_cap_flags = IBV_PORT_CM_SUP,
                                 .max_msg_sz = UINT32_C(1) << 30,
                                 .pkey_tbl_len = 1,
                                 .lid = has_lid ? fabric_lid(context->node) : 0,
                                 .sm_lid = has_lid ? (uint16_t) (0xbf00 + context->rail) : 0,
                                 .max_vl_num = 1,
                                 .subnet_timeout = 18,
                                 .active_width = 2,
                                 .active_speed = 32,
                                 .link_layer = IBV_LINK_LAYER_INFINIBAND};

    if (0 == rc) {
        memcpy(attr, &full, SHORT_PORT_BYTES);
    }
    return rc;
}

int ibv_query_gid(struct ibv_context *ibv, uint8_t port, int index, union ibv_gid *gid)
{
    const fabric_context_t *context = FABRIC_OF(fabric_context_t, ibv);
    int rc = check_port(ibv, port, CALL_query_gid);

    if (0 != rc || 0 != index) {
        errno = 0 != rc ? rc : EINVAL;
        return -1;
    }
    fabric_gid(context->node, context->rail, gid);
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *ibv, uint32_t port, uint32_t index, struct ibv_gid_entry *result, uint32_t flags, size_t size)
{
    const fabric_context_t *context = FABRIC_OF(fabric_context_t, ibv);
    struct ibv_gid_entry entry = {.gid_index = index, .port_num = port, .gid_type = IBV_GID_TYPE_IB};
    int rc = check_port(ibv, port, CALL_query_gid);

    if (0 != rc || 0 != flags || 0 != index) {
        return 0 != rc ? rc : 0 != flags ? EOPNOTSUPP : ENODATA;
    }
    fabric_gid(context->node, context->rail, &entry.gid);
    memcpy(result, &entry, size < sizeof(entry) ? size : sizeof(entry));
    return 0;
}

int ibv_query_pkey(struct ibv_context *ibv, uint8_t port, int index, __be16 *pkey)
{
    int rc = check_port(ibv, port, CALL_query_pkey);

    if (0 != rc || 0 != index) {
        errno = 0 != rc ? rc : EINVAL;
        return -1;
    }
    *pkey = htobe16(0xffff);
    return 0;
}

/* ---- protection domains, memory, addresses ------------------------------------------------------------ */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    fabric_pd_t *pd = fabric_object_new(FABRIC_PD, FABRIC_OF(fabric_context_t, context), sizeof(*pd), CALL_alloc_pd);

    if (NULL == pd) {
        return NULL;
    }
    pd->ibv.context = context;
    pd->ibv.handle = pd->object.number;
    return &pd->ibv;
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    fabric_pd_t *pd = FABRIC_OF(fabric_pd_t, ibv);

    fabric_object_check(&pd->object, "ibv_dealloc_pd");
    if (0 < pd->object.users) {
        return EBUSY;
    }
    fabric_object_end(&pd->object);
    return 0;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *ibv, void *address, size_t length, uint64_t iova, unsigned int access)
{
    fabric_pd_t *pd = FABRIC_OF(fabric_pd_t, ibv);
    fabric_mr_t *mr;

    fabric_object_check(&pd->object, "ibv_reg_mr");
    if ((uintptr_t) address != iova || (0 != (access & IBV_ACCESS_REMOTE_WRITE) && 0 == (access & IBV_ACCESS_LOCAL_WRITE))) {
        errno = EINVAL;
        return NULL;
    }
    mr = fabric_object_new(FABRIC_MR, FABRIC_OF(fabric_context_t, ibv->context), sizeof(*mr), CALL_reg_mr);
    if (NULL == mr) {
        return NULL;
    }
    mr->ibv.context = ibv->context;
    mr->ibv.pd = ibv;
    mr->ibv.addr = address;
    mr->ibv.length = length;
    mr->ibv.handle = mr->ibv.lkey = mr->ibv.rkey = mr->object.number;
    mr->access = access;
    ++pd->object.users;
    return &mr->ibv;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, address, length, (uintptr_t) address, (unsigned) access);
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
    fabric_mr_t *mr = FABRIC_OF(fabric_mr_t, ibv);

    fabric_object_check(&mr->object, "ibv_dereg_mr");
    --FABRIC_OF(fabric_pd_t, ibv->pd)->object.users;
    fabric_object_end(&mr->object);
    return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *ibv, struct ibv_ah_attr *attr)
{
    fabric_pd_t *pd = FABRIC_OF(fabric_pd_t, ibv);
    fabric_context_t *context = FABRIC_OF(fabric_context_t, ibv->context);
    fabric_ah_t *ah;

    fabric_object_check(&pd->object, "ibv_create_ah");
    if (1 != attr->port_num) {
        errno = EINVAL;
        return NULL;
    }
    ah = fabric_object_new(FABRIC_AH, context, sizeof(*ah), CALL_create_ah);
    if (NULL == ah) {
        return NULL;
    }
    ah->ibv.context = ibv->context;
    ah->ibv.pd = ibv;
    ah->ibv.handle = ah->object.number;
    ah->node = fabric_node_of(context->rail, attr);
    ah->is_global = 0 != attr->is_global;
    ++pd->object.users;
    return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
    fabric_ah_t *ah = FABRIC_OF(fabric_ah_t, ibv);

    fabric_object_check(&ah->object, "ibv_destroy_ah");
    --FABRIC_OF(fabric_pd_t, ibv->pd)->object.users;
    fabric_object_end(&ah->object);
    return 0;
}

/* ---- the rest ----------------------------------------------------------------------------------------- */

static bool fork_is_prepared;

int ibv_fork_init(void)
{
    fork_is_prepared = true;
    return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return fork_is_prepared ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
    switch (event) {
    case IBV_EVENT_CQ_ERR:
        return "CQ error";
    case IBV_EVENT_QP_FATAL:
        return "local work queue catastrophic error";
    case IBV_EVENT_QP_ACCESS_ERR:
        return "local access violation work queue error";
    case IBV_EVENT_DEVICE_FATAL:
        return "local catastrophic error";
    case IBV_EVENT_PORT_ACTIVE:
        return "port active";
    case IBV_EVENT_PORT_ERR:
        return "port error";
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return "SRQ limit reached";
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return "last WQE reached";
    default:
        return "another event";
    }
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    static const char *const texts[] = {[IBV_WC_SUCCESS] = "success",
                                        [IBV_WC_LOC_LEN_ERR] = "local length error",
                                        [IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
                                        [IBV_WC_LOC_PROT_ERR] = "local protection error",
                                        [IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
                                        [IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
                                        [IBV_WC_REM_ACCESS_ERR] = "remote access error",
                                        [IBV_WC_REM_OP_ERR] = "remote operation error",
                                        [IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
                                        [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded"};

    return (unsigned) status < sizeof(texts) / sizeof(texts[0]) && NULL != texts[status] ? texts[status] : "another error";
}
