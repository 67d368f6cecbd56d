/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The record that a process publishes once in the modex: its ports and the shape of its receive queues. It has nothing
 * that depends on the reader. Network byte order; the first byte is the version. See DESIGN.txt 15.
 */
#include "formats/btl_openib_bytes.h"
#include "formats/btl_openib_wire.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* version0:1 nqp1:1 nports2:1 pad3:1 incarnation4:4, then nqp x {type0:1 pad1:1 sends2:2 size4:4 count8:4}, then ports:
 * name0:24 net24:1 prefix25:1 key26:16 guid42:16 gid58:16 lid74:2 mtu76:1 lanes77:1 cpc78:1 flags79:1 (1: wants_grh, 2: is_late) contact80:4x4
 * qkey96:4 rate100:4 proof_at104:8 proof_key112:4 sm_lid116:2 pad118:2 */
enum { HEAD_SIZE = 8, QUEUE_SIZE = 12, PORT_SIZE = 120 };

static void pack_port(const ofo_port_t *port, uint8_t *at)
{
    memset(at, 0, PORT_SIZE);
    memcpy(at, port->name, OFO_PORT_NAME_LEN - 1);
    at[24] = port->subnet.type;
    at[25] = port->subnet.prefix_len;
    memcpy(at + 26, port->subnet.key, 16);
    memcpy(at + 42, port->guid, 16);
    memcpy(at + 58, port->gid, 16);
    ofo_put16(at + 74, port->lid);
    at[76] = port->mtu;
    at[77] = port->lanes;
    at[78] = port->cpc;
    at[79] = (uint8_t) ((port->wants_grh ? 1 : 0) | (port->is_late ? 2 : 0));
    for (unsigned i = 0; i < OFO_MAX_LANES; ++i) {
        ofo_put32(at + 80 + 4 * i, port->contact[i]);
    }
    ofo_put32(at + 96, port->qkey);
    ofo_put32(at + 100, port->rate);
    ofo_put64(at + 104, port->proof_at);
    ofo_put32(at + 112, port->proof_key);
    ofo_put16(at + 116, port->sm_lid);
}

static ofo_wire_result_t unpack_port(const uint8_t *at, ofo_port_t *port)
{
    memcpy(port->name, at, OFO_PORT_NAME_LEN - 1);
    port->subnet.type = at[24];
    port->subnet.prefix_len = at[25];
    memcpy(port->subnet.key, at + 26, 16);
    memcpy(port->guid, at + 42, 16);
    memcpy(port->gid, at + 58, 16);
    port->lid = ofo_get16(at + 74);
    port->mtu = at[76];
    port->lanes = at[77];
    port->cpc = at[78];
    port->wants_grh = 0 != (at[79] & 1);
    port->is_late = 0 != (at[79] & 2);
    for (unsigned i = 0; i < OFO_MAX_LANES; ++i) {
        port->contact[i] = ofo_get32(at + 80 + 4 * i);
    }
    port->qkey = ofo_get32(at + 96);
    port->rate = ofo_get32(at + 100);
    port->proof_at = ofo_get64(at + 104);
    port->proof_key = ofo_get32(at + 112);
    port->sm_lid = ofo_get16(at + 116);
    if (1 > port->mtu || 5 < port->mtu || 1 > port->lanes || OFO_MAX_LANES < port->lanes || 0 == port->rate) {
        return OFO_WIRE_FIELD;
    }
    return OFO_WIRE_OK;
}

void ofo_port_name(const char *device, unsigned number, char *name)
{
    char digits[16];

    snprintf(digits, sizeof(digits), ":%u", number);
    snprintf(name, OFO_PORT_NAME_LEN, "%.*s%s", (int) (OFO_PORT_NAME_LEN - 1 - strlen(digits)), device, digits);
}

/* The name comes from the peer, so characters that cannot be printed become '?'. */
void ofo_port_text(const ofo_port_t *port, char *text, size_t size)
{
    char name[OFO_PORT_NAME_LEN], address[INET6_ADDRSTRLEN] = "?";
    size_t i = 0;

    for (; i < sizeof(name) - 1 && '\0' != port->name[i]; ++i) {
        name[i] = isgraph((unsigned char) port->name[i]) ? port->name[i] : '?';
    }
    name[i] = '\0';
    if (OFO_NET_IB == port->subnet.type) {
        snprintf(text, size, "%s (GUID 0x%016" PRIx64 ")", name, ofo_get64(port->guid));
    } else {
        (void) inet_ntop(AF_INET6, port->gid, address, sizeof(address));
        snprintf(text, size, "%s (GID %s)", name, address);
    }
}

static int head_is_valid(const ofo_record_t *record)
{
    return 1 <= record->nqp && OFO_MAX_QPS >= record->nqp && OFO_MAX_PORTS >= record->nports && 0 != record->incarnation;
}

static size_t record_size(const ofo_record_t *record)
{
    return HEAD_SIZE + (size_t) QUEUE_SIZE * record->nqp + (size_t) PORT_SIZE * record->nports;
}

size_t ofo_record_pack(const ofo_record_t *record, uint8_t *buffer, size_t size)
{
    uint8_t *at = buffer + HEAD_SIZE;

    if (!head_is_valid(record) || size < record_size(record)) {
        return 0;
    }
    memset(buffer, 0, record_size(record));
    buffer[0] = record->version;
    buffer[1] = record->nqp;
    buffer[2] = record->nports;
    ofo_put32(buffer + 4, record->incarnation);
    for (unsigned i = 0; i < record->nqp; ++i, at += QUEUE_SIZE) {
        at[0] = (uint8_t) record->queue[i].type;
        ofo_put16(at + 2, record->queue[i].sends);
        ofo_put32(at + 4, record->queue[i].size);
        ofo_put32(at + 8, record->queue[i].count);
    }
    for (unsigned i = 0; i < record->nports; ++i, at += PORT_SIZE) {
        pack_port(&record->port[i], at);
    }
    return record_size(record);
}

ofo_wire_result_t ofo_record_unpack(const uint8_t *buffer, size_t length, ofo_record_t *record)
{
    const uint8_t *at = buffer + HEAD_SIZE;

    memset(record, 0, sizeof(*record));
    if (HEAD_SIZE > length) {
        return OFO_WIRE_SHORT;
    }
    record->version = buffer[0];
    if (OFO_RECORD_VERSION != record->version) {
        return OFO_WIRE_VERSION;
    }
    record->nqp = buffer[1];
    record->nports = buffer[2];
    record->incarnation = ofo_get32(buffer + 4);
    if (!head_is_valid(record)) {
        return OFO_WIRE_FIELD;
    }
    if (length < record_size(record)) {
        return OFO_WIRE_SHORT;
    }
    for (unsigned i = 0; i < record->nqp; ++i, at += QUEUE_SIZE) {
        record->queue[i].type = (char) at[0];
        record->queue[i].sends = ofo_get16(at + 2);
        record->queue[i].size = ofo_get32(at + 4);
        record->queue[i].count = ofo_get32(at + 8);
    }
    for (unsigned i = 0; i < record->nports; ++i, at += PORT_SIZE) {
        if (OFO_WIRE_OK != unpack_port(at, &record->port[i])) {
            return OFO_WIRE_FIELD;
        }
    }
    return OFO_WIRE_OK;
}
