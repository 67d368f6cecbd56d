/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The wire: packing and checking of headers. Everything the receive dispatch believes of a header was
 * tested here or is looked up in a table. DESIGN.txt section 6.
 */
#include "bfo_config.h"

#include "pml_bfo_hdr.h"

#include <string.h>

size_t bfo_hdr_size(uint8_t type, uint8_t flags, size_t handle_size)
{
    const bool restart = 0 != (flags & BFO_FLAG_RESTART);

    switch (type) {
    case BFO_MSG_MATCH:
        return sizeof(bfo_match_hdr_t);
    case BFO_MSG_RNDV:
        return sizeof(bfo_rndv_hdr_t) + (restart ? sizeof(bfo_restart_hdr_t) : 0);
    case BFO_MSG_RGET:
        return bfo_rget_hdr_size(handle_size, restart);
    case BFO_MSG_ACK:
        return sizeof(bfo_ack_hdr_t);
    case BFO_MSG_FRAG:
        return sizeof(bfo_frag_hdr_t);
    case BFO_MSG_PUT:
        return sizeof(bfo_put_hdr_t) + handle_size;
    case BFO_MSG_FIN:
        return sizeof(bfo_fin_hdr_t);
    case BFO_MSG_NOTIFY:
    case BFO_MSG_RACK:
    case BFO_MSG_NACK:
    case BFO_MSG_RERR:
        return sizeof(bfo_dance_hdr_t);
    default:
        return 0;
    }
}

static bool range_is_sound(uint64_t offset, uint64_t size)
{
    return offset <= INT64_MAX && size <= INT64_MAX && offset + size <= INT64_MAX;
}

bool bfo_hdr_is_valid(uint8_t type, const void *data, size_t length, size_t total, size_t handle_size)
{
    const bfo_hdr_t *h = data;
    size_t size;

    if (length < 2 || total < length || h->common.type != type || 0 != (h->common.flags & BFO_FLAG_NBO)) {
        return false;
    }
    size = bfo_hdr_size(type, h->common.flags, handle_size);
    if (0 == size || length < size) {
        return false;
    }
    switch (type) {
    case BFO_MSG_MATCH:
        return h->match.src >= 0;
    case BFO_MSG_RNDV:
        return h->match.src >= 0 && range_is_sound(0, h->rndv.msg_length) && 0 != h->rndv.src_id
               && total - size <= h->rndv.msg_length;
    case BFO_MSG_RGET:
        return h->match.src >= 0 && range_is_sound(0, h->rndv.msg_length) && 0 != h->rndv.src_id
               && 0 != h->rget.frag_id && total == size;
    case BFO_MSG_ACK:
        return 0 != h->ack.src_id && range_is_sound(h->ack.send_offset, h->ack.send_size) && total == size;
    case BFO_MSG_FRAG:
        return 0 != h->frag.dst_id && total > size && range_is_sound(h->frag.frag_offset, total - size);
    case BFO_MSG_PUT:
        return 0 != h->put.src_id && 0 != h->put.frag_id && 0 != h->put.dst_size
               && range_is_sound(h->put.rdma_offset, h->put.dst_size) && total == size;
    case BFO_MSG_FIN:
        return 0 != h->fin.frag_id && range_is_sound(0, h->fin.size) && total == size;
    default: /* the NOTIFY family */
        return h->dance.nrails <= BFO_MAX_RAILS && total >= size;
    }
}

void bfo_hdr_pack_match(bfo_match_hdr_t *h, uint8_t type, uint8_t flags, uint16_t ctx, int32_t src, int32_t tag,
                        uint32_t seq)
{
    *h = (bfo_match_hdr_t){.type = type, .flags = flags, .ctx = ctx, .src = src, .tag = tag, .seq = seq};
}

void bfo_hdr_pack_ack(bfo_ack_hdr_t *h, uint16_t epoch, bfo_id_t src_id, bfo_id_t dst_id, uint64_t offset,
                      uint64_t size)
{
    *h = (bfo_ack_hdr_t){.type = BFO_MSG_ACK, .epoch = epoch, .src_id = src_id, .dst_id = dst_id,
                         .send_offset = offset, .send_size = size};
}

void bfo_hdr_pack_frag(bfo_frag_hdr_t *h, uint16_t epoch, bfo_id_t src_id, bfo_id_t dst_id, uint64_t offset)
{
    *h = (bfo_frag_hdr_t){.type = BFO_MSG_FRAG, .epoch = epoch, .frag_offset = offset, .src_id = src_id,
                          .dst_id = dst_id};
}

void bfo_hdr_pack_fin(bfo_fin_hdr_t *h, uint16_t epoch, uint8_t fflags, bfo_id_t frag_id, uint64_t size,
                      const bfo_match_hdr_t *message)
{
    *h = (bfo_fin_hdr_t){.type = BFO_MSG_FIN, .epoch = epoch, .fflags = fflags, .size = size, .frag_id = frag_id,
                         .match = *message};
    h->match.type = 0;
    h->match.flags = 0;
}

const char *bfo_hdr_name(uint8_t type)
{
    static const char *const names[BFO_MSG_MAX] = {
        [BFO_MSG_MATCH] = "match", [BFO_MSG_RNDV] = "rndv",     [BFO_MSG_RGET] = "rget", [BFO_MSG_ACK] = "ack",
        [BFO_MSG_FRAG] = "frag",   [BFO_MSG_PUT] = "put",       [BFO_MSG_FIN] = "fin",   [BFO_MSG_NOTIFY] = "notify",
        [BFO_MSG_RACK] = "rack",   [BFO_MSG_NACK] = "nack",     [BFO_MSG_RERR] = "rerr",
    };

    return type < BFO_MSG_MAX && NULL != names[type] ? names[type] : "unknown";
}
