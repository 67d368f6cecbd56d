/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The interface of the library: the public functions of libibverbs, under their own names. Each calls the file that does
 * the work. Functions that softrail does not have are refused here with EOPNOTSUPP. Unversioned symbols of a preloaded
 * library satisfy versioned references. DESIGN.txt 16, table of verbs.
 */
#include "sr_ah.h"
#include "sr_context.h"
#include "sr_cq.h"
#include "sr_device.h"
#include "sr_event.h"
#include "sr_mr.h"
#include "sr_pd.h"
#include "sr_qp.h"
#include "sr_srq.h"

#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port

#define SR_PUBLIC __attribute__((visibility("default")))
#define SR_FOREIGN_IFINDEX 0x7ffffff0u
#define SR_COMPAT_PORT_BYTES 48 /* older programs pass a shorter structure, which ends with flags */

/* ---- devices ------------------------------------------------------------------------------------ */

SR_PUBLIC struct ibv_device **ibv_get_device_list(int *count)
{
    return sr_device_list(count);
}

SR_PUBLIC void ibv_free_device_list(struct ibv_device **list)
{
    sr_device_list_free(list);
}

SR_PUBLIC const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

SR_PUBLIC int ibv_get_device_index(struct ibv_device *device)
{
    return atoi(device->name + 2);
}

SR_PUBLIC __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return htobe64(sr.fabric.shm->rail[atoi(device->name + 2)].guid);
}

SR_PUBLIC struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    return sr_device_open(device);
}

SR_PUBLIC int ibv_close_device(struct ibv_context *context)
{
    return sr_device_close(context);
}

SR_PUBLIC int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    return sr_device_query(context, attr);
}

SR_PUBLIC int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    struct ibv_port_attr full;
    int rc = sr_port_query(context, port, &full);

    if (0 == rc) {
        memcpy(attr, &full, SR_COMPAT_PORT_BYTES);
    }
    return rc;
}

SR_PUBLIC const char *ibv_get_sysfs_path(void); /* declared only in driver.h, which is not always installed */
SR_PUBLIC const char *ibv_get_sysfs_path(void)
{
    static char path[SR_PATH_MAX + 8];

    if (0 != sr_attach()) {
        return "/sys";
    }
    snprintf(path, sizeof(path), "%s/sysfs", sr.fabric.path);
    return path;
}

static int fork_is_prepared; /* atomic */

/* A fork does no harm, because no memory is pinned. The call is only remembered. */
SR_PUBLIC int ibv_fork_init(void)
{
    __atomic_store_n(&fork_is_prepared, 1, __ATOMIC_RELAXED);
    return 0;
}

SR_PUBLIC enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return __atomic_load_n(&fork_is_prepared, __ATOMIC_RELAXED) ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

/* libefa reads its own context in front of ours before it checks whose device it is. Therefore libfabric must not reach libefa's function. */
SR_PUBLIC int efadv_query_device(struct ibv_context *context, void *attr, uint32_t size);
SR_PUBLIC int efadv_query_device(struct ibv_context *context, void *attr, uint32_t size)
{
    (void) context, (void) attr, (void) size;
    return EOPNOTSUPP;
}

/* ---- GIDs and P_Keys ---------------------------------------------------------------------------- */

static int query_gid_entry(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry)
{
    if (1 != port || sr_gid_count() <= index) {
        return 1 != port ? EINVAL : ENODATA;
    }
    memset(entry, 0, sizeof(*entry));
    sr_gid(sr_context(context)->rail, sr.slot, &entry->gid);
    entry->gid_index = index;
    entry->port_num = 1;
    if (sr_gid_count() - 1 > index) { /* a GID of an interface that this network namespace does not have */
        memset(entry->gid.raw, 0, 10);
        memcpy(entry->gid.raw + 10, "\xff\xff\xc6\x33\x64", 5);
        entry->gid.raw[15] = (uint8_t) (sr.slot + 1);
        entry->ndev_ifindex = SR_FOREIGN_IFINDEX;
    } else if (1 < sr_gid_count()) {
        entry->ndev_ifindex = if_nametoindex("lo");
    }
    entry->gid_type = IBV_LINK_LAYER_ETHERNET == sr.fabric.shm->link_layer ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
    return 0;
}

SR_PUBLIC int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    struct ibv_gid_entry entry;
    int rc = 0 > index ? EINVAL : query_gid_entry(context, port, (uint32_t) index, &entry);

    if (0 != rc) {
        errno = rc;
        return -1;
    }
    *gid = entry.gid;
    return 0;
}

SR_PUBLIC int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *result, uint32_t flags, size_t size)
{
    struct ibv_gid_entry entry;
    int rc = 0 != flags ? EOPNOTSUPP : query_gid_entry(context, port, index, &entry);

    if (0 == rc) {
        memcpy(result, &entry, size < sizeof(entry) ? size : sizeof(entry));
    }
    return rc;
}

SR_PUBLIC ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags, size_t size)
{
    if (0 != flags || size < sizeof(*entries)) {
        return -EOPNOTSUPP;
    }
    if (sr_gid_count() > max) {
        return -EINVAL;
    }
    for (unsigned i = 0; i < sr_gid_count(); ++i) {
        query_gid_entry(context, 1, i, (struct ibv_gid_entry *) ((char *) entries + i * size));
    }
    return sr_gid_count();
}

/* It is not in the public headers, but tools use it: 0 = InfiniBand or RoCE v1, 1 = RoCE v2. */
SR_PUBLIC int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type);
SR_PUBLIC int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type)
{
    struct ibv_gid_entry entry;
    int rc = query_gid_entry(context, port, index, &entry);

    if (0 != rc) {
        errno = rc;
        return -1;
    }
    *type = IBV_GID_TYPE_ROCE_V2 == entry.gid_type;
    return 0;
}

SR_PUBLIC int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    (void) context;
    if (1 != port || 0 > index || sr.fabric.shm->habits.pkey_count <= (unsigned) index) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htobe16(sr.fabric.shm->habits.pkeys[index]);
    return 0;
}

SR_PUBLIC int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    (void) context;
    for (int i = 0; 1 == port && i < (int) sr.fabric.shm->habits.pkey_count; ++i) {
        if (htobe16(sr.fabric.shm->habits.pkeys[i]) == pkey) {
            return i;
        }
    }
    return -1;
}

/* ---- protection domains, memory, address handles ------------------------------------------------ */

SR_PUBLIC struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    return sr_pd_alloc(context);
}

SR_PUBLIC int ibv_dealloc_pd(struct ibv_pd *pd)
{
    return sr_pd_free(pd);
}

SR_PUBLIC struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return sr_mr_reg(pd, addr, length, (uintptr_t) addr, (unsigned) access);
}

SR_PUBLIC struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    return sr_mr_reg(pd, addr, length, iova, (unsigned) access);
}

SR_PUBLIC struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
    return sr_mr_reg(pd, addr, length, iova, access);
}

SR_PUBLIC int ibv_dereg_mr(struct ibv_mr *mr)
{
    return sr_mr_dereg(mr);
}

SR_PUBLIC int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
    (void) mr, (void) flags, (void) pd, (void) addr, (void) length, (void) access;
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
}

SR_PUBLIC struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
    (void) pd, (void) offset, (void) length, (void) iova, (void) fd, (void) access;
    errno = EOPNOTSUPP;
    return NULL;
}

SR_PUBLIC struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    return sr_ah_create(pd, attr);
}

SR_PUBLIC int ibv_destroy_ah(struct ibv_ah *ah)
{
    return sr_ah_destroy(ah);
}

SR_PUBLIC int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    return sr_ah_attr_from_wc(context, port, wc, grh, attr);
}

SR_PUBLIC struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
    struct ibv_ah_attr attr;

    sr_ah_attr_from_wc(pd->context, port, wc, grh, &attr);
    return sr_ah_create(pd, &attr);
}

/* ---- completion queues, channels, events -------------------------------------------------------- */

SR_PUBLIC struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    return sr_channel_create(context);
}

SR_PUBLIC int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    return sr_channel_destroy(channel);
}

SR_PUBLIC struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
    return sr_cq_create(context, cqe, cq_context, channel, vector);
}

SR_PUBLIC int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    return sr_cq_resize(cq, cqe);
}

SR_PUBLIC int ibv_destroy_cq(struct ibv_cq *cq)
{
    return sr_cq_destroy(cq);
}

SR_PUBLIC int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    return sr_channel_get(channel, cq, cq_context);
}

SR_PUBLIC void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
    sr_channel_ack(cq, count);
}

SR_PUBLIC int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    return sr_event_get(context, event);
}

SR_PUBLIC void ibv_ack_async_event(struct ibv_async_event *event)
{
    sr_event_ack(event);
}

/* ---- queue pairs and shared receive queues ------------------------------------------------------ */

SR_PUBLIC struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    return sr_srq_create(pd, init);
}

SR_PUBLIC int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    return sr_srq_modify(srq, attr, mask);
}

SR_PUBLIC int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    return sr_srq_query(srq, attr);
}

SR_PUBLIC int ibv_destroy_srq(struct ibv_srq *srq)
{
    return sr_srq_destroy(srq);
}

SR_PUBLIC struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    return sr_qp_create(pd, init);
}

SR_PUBLIC int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    return sr_qp_modify(qp, attr, mask);
}

SR_PUBLIC int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    return sr_qp_query(qp, attr, mask, init);
}

SR_PUBLIC int ibv_destroy_qp(struct ibv_qp *qp)
{
    return sr_qp_destroy(qp);
}

/* The extended posting functions are not offered; programs fall back to ibv_post_send. */
SR_PUBLIC struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    (void) qp;
    return NULL;
}

SR_PUBLIC int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    (void) qp, (void) op, (void) flags;
    return 0;
}

/* ---- refused ------------------------------------------------------------------------------------ */

SR_PUBLIC int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void) qp, (void) gid, (void) lid;
    return EOPNOTSUPP;
}

SR_PUBLIC int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void) qp, (void) gid, (void) lid;
    return EOPNOTSUPP;
}

SR_PUBLIC int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void) qp, (void) ece;
    return EOPNOTSUPP;
}

SR_PUBLIC int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void) qp;
    memset(ece, 0, sizeof(*ece));
    return EOPNOTSUPP;
}

SR_PUBLIC struct ibv_context *ibv_import_device(int fd)
{
    (void) fd;
    errno = EOPNOTSUPP;
    return NULL;
}

SR_PUBLIC struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
    (void) context, (void) handle;
    errno = EOPNOTSUPP;
    return NULL;
}

SR_PUBLIC struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    (void) pd, (void) handle;
    errno = EOPNOTSUPP;
    return NULL;
}

SR_PUBLIC struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
    (void) context, (void) handle;
    errno = EOPNOTSUPP;
    return NULL;
}
