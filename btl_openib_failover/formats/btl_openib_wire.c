/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Packs, unpacks and validates the control messages between two BTLs. The layouts are those of DESIGN.txt 6, in network
 * byte order. No value from the wire is used as a length or an index before its range was checked here.
 */
#include "formats/btl_openib_wire.h"

#include "formats/btl_openib_bytes.h"

#include <string.h>

enum { CH_SIZE = 24, ADDRESS_SIZE = 48, DACK_SIZE = 56, REQ_SIZE = 56, REJ_SIZE = 32, ASK_SIZE = 32, PROBE_SIZE = 32, MTU_MIN = 1, MTU_MAX = 5 };

static const char *const ctl_names[] = {"DOWN", "DACK", "REQ", "REP", "RTU", "REJ", "PEERDEAD", "ASK", "PROBE", "ANSWER"};

static int tells_cause(uint8_t type)
{
    return OFO_CTL_DOWN == type || OFO_CTL_DACK == type;
}

static const char *const causes[OFO_CAUSES] = {
    [OFO_CAUSE_PORT] = "the peer reports: the port is down",
    [OFO_CAUSE_DEVICE] = "the peer reports: the adapter has failed",
    [OFO_CAUSE_ERROR] = "the peer reports: a message came back with an error",
    [OFO_CAUSE_SILENT] = "the peer reports: the path is silent",
    [OFO_CAUSE_CONNECT] = "the peer reports: the rail does not connect",
};

static size_t ctl_size(const ofo_ctl_t *ctl)
{
    switch (ctl->type) {
    case OFO_CTL_DOWN:
        return ctl->flags & OFO_CTL_ADDRESS ? ADDRESS_SIZE : CH_SIZE;
    case OFO_CTL_RTU:
    case OFO_CTL_PEERDEAD:
        return CH_SIZE;
    case OFO_CTL_DACK:
        return DACK_SIZE;
    case OFO_CTL_REQ:
    case OFO_CTL_REP:
        return REQ_SIZE + 8u * ctl->nqp;
    case OFO_CTL_REJ:
        return REJ_SIZE;
    case OFO_CTL_ASK:
        return ASK_SIZE;
    case OFO_CTL_PROBE:
    case OFO_CTL_ANSWER:
        return PROBE_SIZE;
    default:
        return 0;
    }
}

static int ctl_fields_are_valid(const ofo_ctl_t *ctl)
{
    if (OFO_CTL_PEERDEAD == ctl->type || OFO_CTL_ASK == ctl->type) {
        return OFO_RAIL_NONE == ctl->rail && 0 == ctl->gen && OFO_MAX_PORTS > ctl->from && OFO_MAX_PORTS > ctl->to;
    }
    if (OFO_MAX_RAILS <= ctl->rail) {
        return 0;
    }
    if (OFO_CTL_REQ == ctl->type || OFO_CTL_REP == ctl->type) {
        return 1 <= ctl->nqp && OFO_MAX_QPS >= ctl->nqp && ctl->qp_index < ctl->nqp && MTU_MIN <= ctl->mtu && MTU_MAX >= ctl->mtu
               && OFO_MAX_PORTS > ctl->from && OFO_MAX_PORTS > ctl->to;
    }
    if (OFO_CTL_REJ == ctl->type) {
        return OFO_REJ_PORT_DOWN <= ctl->reason && OFO_REJ_DISABLED >= ctl->reason;
    }
    if (OFO_CTL_PROBE == ctl->type || OFO_CTL_ANSWER == ctl->type) {
        return OFO_MAX_RAILS > ctl->about;
    }
    return 1;
}

static void pack_connect(const ofo_ctl_t *ctl, uint8_t *at)
{
    ofo_put16(at + 24, ctl->lid);
    at[26] = ctl->mtu;
    at[27] = ctl->nqp;
    at[28] = ctl->qp_index;
    at[29] = ctl->reads;
    at[30] = ctl->from;
    at[31] = ctl->to;
    ofo_put64(at + 32, ctl->rail_hash);
    memcpy(at + 40, ctl->gid, 16);
    for (unsigned i = 0; i < ctl->nqp; ++i) {
        ofo_put32(at + REQ_SIZE + 8 * i, ctl->qp[i].qpn);
        ofo_put32(at + REQ_SIZE + 8 * i + 4, ctl->qp[i].psn);
    }
}

static void pack_counts(const ofo_counts_t *counts, uint8_t *at)
{
    ofo_put64(at + 24, counts->n_ok);
    for (unsigned i = 0; i < OFO_MAX_QPS; ++i) {
        ofo_put16(at + 32 + 2 * i, counts->n_send[i]);
    }
    ofo_put16(at + 48, counts->n_eager);
}

size_t ofo_ctl_pack(const ofo_ctl_t *ctl, uint8_t *buffer, size_t size)
{
    size_t need = ctl_size(ctl);

    if (0 == need || !ctl_fields_are_valid(ctl) || size < need) {
        return 0;
    }
    memset(buffer, 0, need);
    buffer[0] = ctl->type;
    buffer[1] = ctl->flags;
    buffer[2] = ctl->rail;
    buffer[3] = OFO_CTL_VERSION;
    ofo_put16(buffer + 4, ctl->gen);
    buffer[6] = tells_cause(ctl->type) ? ctl->cause : 0;
    ofo_put32(buffer + 8, ctl->jobid);
    ofo_put32(buffer + 12, ctl->vpid);
    ofo_put32(buffer + 16, ctl->src_inc);
    ofo_put32(buffer + 20, ctl->dst_inc);
    if (OFO_CTL_REQ == ctl->type || OFO_CTL_REP == ctl->type) {
        pack_connect(ctl, buffer);
    } else if (ADDRESS_SIZE == need) {
        ofo_put16(buffer + 24, ctl->lid);
        memcpy(buffer + 32, ctl->gid, 16);
    } else if (OFO_CTL_DACK == ctl->type) {
        pack_counts(&ctl->counts, buffer);
    } else if (OFO_CTL_REJ == ctl->type) {
        buffer[24] = ctl->reason;
    } else if (OFO_CTL_ASK == ctl->type) {
        buffer[24] = ctl->from;
        buffer[25] = ctl->to;
    } else if (OFO_CTL_PROBE == ctl->type || OFO_CTL_ANSWER == ctl->type) {
        buffer[24] = ctl->about;
        ofo_put16(buffer + 26, ctl->number);
    }
    return need;
}

/* Reads the fixed part after CH. The list of queue pairs is read when nqp is known to be in range. */
static void unpack_body(const uint8_t *at, ofo_ctl_t *ctl)
{
    if (OFO_CTL_REQ == ctl->type || OFO_CTL_REP == ctl->type) {
        ctl->lid = ofo_get16(at + 24);
        ctl->mtu = at[26];
        ctl->nqp = at[27];
        ctl->qp_index = at[28];
        ctl->reads = at[29];
        ctl->from = at[30];
        ctl->to = at[31];
        ctl->rail_hash = ofo_get64(at + 32);
        memcpy(ctl->gid, at + 40, 16);
    } else if (OFO_CTL_DOWN == ctl->type && 0 != (ctl->flags & OFO_CTL_ADDRESS)) {
        ctl->lid = ofo_get16(at + 24);
        memcpy(ctl->gid, at + 32, 16);
    } else if (OFO_CTL_DACK == ctl->type) {
        ctl->counts.n_ok = ofo_get64(at + 24);
        for (unsigned i = 0; i < OFO_MAX_QPS; ++i) {
            ctl->counts.n_send[i] = ofo_get16(at + 32 + 2 * i);
        }
        ctl->counts.n_eager = ofo_get16(at + 48);
    } else if (OFO_CTL_REJ == ctl->type) {
        ctl->reason = at[24];
    } else if (OFO_CTL_ASK == ctl->type) {
        ctl->from = at[24];
        ctl->to = at[25];
    } else if (OFO_CTL_PROBE == ctl->type || OFO_CTL_ANSWER == ctl->type) {
        ctl->about = at[24];
        ctl->number = ofo_get16(at + 26);
    }
}

static ofo_wire_result_t unpack_queue_pairs(const uint8_t *at, ofo_ctl_t *ctl)
{
    for (unsigned i = 0; i < ctl->nqp; ++i) {
        ctl->qp[i].qpn = ofo_get32(at + REQ_SIZE + 8 * i);
        ctl->qp[i].psn = ofo_get32(at + REQ_SIZE + 8 * i + 4);
        if (0xffffff < ctl->qp[i].qpn || 0xffffff < ctl->qp[i].psn) {
            return OFO_WIRE_FIELD;
        }
    }
    return OFO_WIRE_OK;
}

ofo_wire_result_t ofo_ctl_unpack(const uint8_t *buffer, size_t length, ofo_ctl_t *ctl)
{
    size_t need;

    if (CH_SIZE > length) {
        return OFO_WIRE_SHORT;
    }
    if (OFO_CTL_VERSION != buffer[3]) {
        return OFO_WIRE_VERSION;
    }
    memset(ctl, 0, sizeof(*ctl));
    ctl->type = buffer[0];
    ctl->flags = buffer[1];
    ctl->rail = buffer[2];
    ctl->gen = ofo_get16(buffer + 4);
    ctl->cause = tells_cause(ctl->type) && OFO_CAUSES > buffer[6] ? buffer[6] : OFO_CAUSE_UNKNOWN;
    ctl->jobid = ofo_get32(buffer + 8);
    ctl->vpid = ofo_get32(buffer + 12);
    ctl->src_inc = ofo_get32(buffer + 16);
    ctl->dst_inc = ofo_get32(buffer + 20);
    need = ctl_size(ctl); /* nqp is still 0: the size of the fixed part */
    if (0 == need) {
        return OFO_WIRE_TYPE;
    }
    if (length < need) {
        return OFO_WIRE_SHORT;
    }
    unpack_body(buffer, ctl);
    if (!ctl_fields_are_valid(ctl)) {
        return OFO_WIRE_FIELD;
    }
    if (length < ctl_size(ctl)) {
        return OFO_WIRE_SHORT;
    }
    return unpack_queue_pairs(buffer, ctl);
}

const char *ofo_cause_reported(uint8_t cause)
{
    return OFO_CAUSES > cause ? causes[cause] : NULL;
}

const char *ofo_ctl_name(uint8_t type)
{
    return OFO_CTL_DOWN <= type && OFO_CTL_ANSWER >= type ? ctl_names[type - OFO_CTL_DOWN] : "unknown";
}
