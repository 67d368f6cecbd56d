/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Addresses and attributes of devices: one single-port HCA for each rail. Every process is a host of its own on each rail,
 * with its own LID or GID. The other files keep what the attributes promise. DESIGN.txt 16.
 */
#include "sr_device.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_ethernet(void)
{
    return IBV_LINK_LAYER_ETHERNET == sr.fabric.shm->link_layer;
}

/* ---- addresses ---------------------------------------------------------------------------------- */

/* All LIDs of a rail change together. An address from before the change belongs to no process. */
uint16_t sr_lid_shift(unsigned rail)
{
    return (uint16_t) (atomic_load(&sr.fabric.shm->rail[rail].lid_serial) % 32 * SR_MAX_PROCS);
}

uint16_t sr_lid(unsigned slot)
{
    return (uint16_t) (slot + 1);
}

bool sr_habit(unsigned flag)
{
    return 0 != (sr.fabric.shm->flags & flag);
}

/* The GUID of a port. With SR_FABRIC_CROSSED every second host has its adapters in the opposite order. */
static uint64_t port_guid(unsigned rail, unsigned slot)
{
    bool crossed = sr_habit(SR_FABRIC_CROSSED) != sr_habit(SR_FABRIC_CROSSED_WIRES) && 1 == slot % 2;

    return sr.fabric.shm->rail[crossed ? sr.fabric.shm->rails - 1 - rail : rail].guid;
}

unsigned sr_gid_count(void)
{
    return is_ethernet() && sr_habit(SR_FABRIC_FOREIGN_GID) ? 2 : 1;
}

uint32_t sr_host_address(unsigned rail, unsigned slot)
{
    uint32_t serial = atomic_load(&sr.fabric.shm->rail[rail].gid_serial) % 128;

    return (UINT32_C(0x7f2a0000) + (serial << 16)) | rail << 8 | (slot + 1);
}

void sr_gid(unsigned rail, unsigned slot, union ibv_gid *gid)
{
    const struct sr_rail *r = &sr.fabric.shm->rail[rail];

    if (is_ethernet() && sr_habit(SR_FABRIC_IPV4_GIDS)) {
        gid->global.subnet_prefix = 0;
        gid->global.interface_id = htobe64(UINT64_C(0xffff) << 32 | sr_host_address(rail, slot));
        return;
    }
    gid->global.subnet_prefix = htobe64(r->gid_prefix);
    gid->global.interface_id = htobe64(port_guid(rail, slot) | (uint64_t) (atomic_load(&r->gid_serial) & 0xff) << 32 | (slot + 1));
}

int sr_address_resolve(unsigned rail, const struct ibv_ah_attr *attr, struct sr_address *address)
{
    union ibv_gid gid;

    *address = (struct sr_address){.dlid = attr->dlid, .sl = attr->sl, .src_path_bits = attr->src_path_bits, .is_global = attr->is_global};
    if (is_ethernet()) {
        unsigned slot = (unsigned) (be64toh(attr->grh.dgid.global.interface_id) & 0xff) - 1;
        if (!attr->is_global || sr_gid_count() - 1 != attr->grh.sgid_index) {
            return EINVAL;
        }
        address->slot = slot < SR_MAX_PROCS ? slot : 0;
        sr_gid(rail, address->slot, &gid);
        address->valid = slot < SR_MAX_PROCS && 0 == memcmp(&gid, &attr->grh.dgid, sizeof(gid));
    } else {
        uint16_t shift = sr_lid_shift(rail);
        if (sr_habit(SR_FABRIC_GRH) && !attr->is_global) {
            return EINVAL;
        }
        address->valid = shift < attr->dlid && attr->dlid <= shift + SR_MAX_PROCS;
        address->slot = address->valid ? attr->dlid - shift - 1u : 0;
    }
    return 0;
}

/* ---- attributes --------------------------------------------------------------------------------- */

int sr_device_check(const struct ibv_context *context)
{
    if (!sr.joined) {
        return EINVAL; /* a forked child must open the device itself */
    }
    return atomic_load(&sr.fabric.shm->rail[sr_context(context)->rail].gone) ? EIO : 0;
}

int sr_device_query(struct ibv_context *context, struct ibv_device_attr *attr)
{
    const struct sr_rail *rail = &sr.fabric.shm->rail[sr_context(context)->rail];

    if (atomic_load(&rail->gone)) {
        return EIO;
    }
    memset(attr, 0, sizeof(*attr));
    snprintf(attr->fw_ver, sizeof(attr->fw_ver), "softrail");
    attr->node_guid = attr->sys_image_guid = htobe64(port_guid(sr_context(context)->rail, sr.slot));
    attr->max_mr_size = UINT64_C(1) << 46;
    attr->page_size_cap = 0xfffff000;
    attr->vendor_id = 0x5352;
    attr->vendor_part_id = 1;
    attr->hw_ver = 1;
    attr->max_qp = 16384;
    attr->max_qp_wr = SR_MAX_WR;
    attr->device_cap_flags = IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN;
    attr->max_sge = SR_MAX_SGE;
    attr->max_sge_rd = SR_MAX_SGE;
    attr->max_cq = 65536;
    attr->max_cqe = SR_MAX_CQE;
    attr->max_mr = SR_MR_CHUNK * SR_MR_CHUNKS;
    attr->max_pd = 65536;
    attr->max_qp_rd_atom = 128;
    attr->max_res_rd_atom = 128 * 16384;
    attr->max_qp_init_rd_atom = 128;
    attr->atomic_cap = IBV_ATOMIC_HCA;
    attr->max_ah = 1 << 20;
    attr->max_srq = NULL == getenv(SR_ENV_NO_SRQ) ? 16384 : 0;
    attr->max_srq_wr = SR_MAX_WR;
    attr->max_srq_sge = SR_MAX_SGE;
    attr->max_pkeys = (uint16_t) sr.fabric.shm->habits.pkey_count;
    attr->local_ca_ack_delay = 15;
    attr->phys_port_cnt = 1;
    return 0;
}

/* Sets the slowest link that carries the rate of the rail. */
static void set_speed(uint64_t rate, struct ibv_port_attr *attr)
{
    static const struct {
        uint8_t width, speed;
        uint64_t bits;
    } links[] = {{1, 1, UINT64_C(2500000000)},    {1, 2, UINT64_C(5000000000)},    {2, 1, UINT64_C(10000000000)},
                 {2, 2, UINT64_C(20000000000)},   {2, 4, UINT64_C(40000000000)},   {2, 16, UINT64_C(56000000000)},
                 {2, 32, UINT64_C(100000000000)}, {2, 64, UINT64_C(200000000000)}, {2, 128, UINT64_C(400000000000)}};
    unsigned i = 0, last = sizeof(links) / sizeof(links[0]) - 1;

    if (0 == rate) {
        rate = UINT64_C(100000000000);
    }
    while (i < last && links[i].bits < rate) {
        ++i;
    }
    attr->active_width = links[i].width;
    attr->active_speed = links[i].speed;
}

int sr_port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
    unsigned rail = sr_context(context)->rail;
    bool up = sr_rail_is_up(sr.fabric.shm, rail, sr.slot);

    if (1 != port) {
        return EINVAL;
    }
    if (atomic_load(&sr.fabric.shm->rail[rail].gone)) {
        return EIO;
    }
    memset(attr, 0, sizeof(*attr));
    attr->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attr->phys_state = up ? 5 : 3; /* LinkUp, Disabled */
    attr->max_mtu = attr->active_mtu = IBV_MTU_4096;
    attr->gid_tbl_len = (int) sr_gid_count();
    attr->port_cap_flags = is_ethernet() ? IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS : IBV_PORT_CM_SUP;
    attr->max_msg_sz = SR_MAX_MSG;
    attr->pkey_tbl_len = (uint16_t) sr.fabric.shm->habits.pkey_count;
    attr->flags = !is_ethernet() && sr_habit(SR_FABRIC_GRH) ? IBV_QPF_GRH_REQUIRED : 0;
    attr->lid = is_ethernet() ? 0 : (uint16_t) (sr_lid(sr.slot) + sr_lid_shift(rail));
    attr->sm_lid = is_ethernet() ? 0 : (uint16_t) (0xbffe - (sr_habit(SR_FABRIC_ONE_SM_LID) ? 0 : rail));
    attr->max_vl_num = 1;
    attr->subnet_timeout = 18;
    set_speed(atomic_load(&sr.fabric.shm->rail[rail].rate), attr);
    attr->link_layer = (uint8_t) sr.fabric.shm->link_layer;
    return 0;
}
