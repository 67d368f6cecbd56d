/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The wire: sizes, checks and names of headers. The receive dispatch trusts only what was
 * tested here or is looked up in a table. DESIGN.txt section 6.
 */
#include "bfo_config.h"

#include "formats/pml_bfo_hdr.h"

#include <string.h>

size_t bfo_hdr_size(uint8_t type, uint8_t flags, size_t handles)
{
    const bool restart = 0 != (flags & BFO_FLAG_RESTART);

    switch (type) {
    case BFO_MSG_MATCH:
        return sizeof(bfo_match_hdr_t);
    case BFO_MSG_RNDV:
        return sizeof(bfo_rndv_hdr_t) + (restart ? sizeof(bfo_restart_hdr_t) : 0);
    case BFO_MSG_RGET:
        return bfo_rget_hdr_size(handles, restart);
    case BFO_MSG_ACK:
        return sizeof(bfo_ack_hdr_t);
    case BFO_MSG_FRAG:
        return sizeof(bfo_frag_hdr_t);
    case BFO_MSG_PUT:
        return sizeof(bfo_put_hdr_t) + handles;
    case BFO_MSG_FIN:
        return sizeof(bfo_fin_hdr_t);
    case BFO_MSG_NOTIFY:
    case BFO_MSG_RACK:
    case BFO_MSG_NACK:
    case BFO_MSG_RERR:
        return sizeof(bfo_handshake_hdr_t);
    case BFO_MSG_RAILS:
        return sizeof(bfo_rails_hdr_t);
    case BFO_MSG_LIFE:
        return sizeof(bfo_life_hdr_t);
    case BFO_MSG_FOREIGN:
        return sizeof(bfo_foreign_hdr_t);
    default:
        return 0;
    }
}

bool bfo_hdr_is_valid(uint8_t type, const void *data, size_t length, size_t total, size_t handle_size)
{
    const bfo_hdr_t *h = data;

    if (total < length) {
        return false;
    }
    switch (type) {
    case BFO_MSG_MATCH:
        return bfo_hdr_match_is_valid(&h->match, length);
    case BFO_MSG_RNDV:
        return bfo_hdr_rndv_is_valid(&h->rndv, length, total);
    case BFO_MSG_RGET:
        return bfo_hdr_rget_is_valid(&h->rget, length, total, handle_size);
    case BFO_MSG_ACK:
        return bfo_hdr_ack_is_valid(&h->ack, length, total);
    case BFO_MSG_FRAG:
        return bfo_hdr_frag_is_valid(&h->frag, length, total);
    case BFO_MSG_PUT:
        return bfo_hdr_put_is_valid(&h->put, length, total, handle_size);
    case BFO_MSG_FIN:
        return bfo_hdr_fin_is_valid(&h->fin, length, total);
    case BFO_MSG_NOTIFY:
    case BFO_MSG_RACK:
    case BFO_MSG_NACK:
    case BFO_MSG_RERR:
        return bfo_hdr_common_is_valid(type, h, length, sizeof(h->handshake)) && h->handshake.nrails <= BFO_MAX_RAILS;
    case BFO_MSG_RAILS:
        return bfo_hdr_common_is_valid(type, h, length, sizeof(h->rails)) && total == sizeof(h->rails) && 0 != h->rails.number;
    case BFO_MSG_LIFE:
        return bfo_hdr_common_is_valid(type, h, length, sizeof(h->life)) && total == sizeof(h->life) && 0 != h->life.number
               && h->life.answer < BFO_PROCESS_ANSWERS;
    case BFO_MSG_FOREIGN:
        return bfo_hdr_common_is_valid(type, h, length, sizeof(h->foreign));
    default:
        return false;
    }
}

const char *bfo_hdr_name(uint8_t type)
{
    static const char *const names[BFO_MSG_MAX] = {
        [BFO_MSG_MATCH] = "match", [BFO_MSG_RNDV] = "rndv",   [BFO_MSG_RGET] = "rget",     [BFO_MSG_ACK] = "ack",         [BFO_MSG_FRAG] = "frag",
        [BFO_MSG_PUT] = "put",     [BFO_MSG_FIN] = "fin",     [BFO_MSG_NOTIFY] = "notify", [BFO_MSG_RACK] = "rack",       [BFO_MSG_NACK] = "nack",
        [BFO_MSG_RERR] = "rerr",   [BFO_MSG_RAILS] = "rails", [BFO_MSG_LIFE] = "life",     [BFO_MSG_FOREIGN] = "foreign",
    };

    return type < BFO_MSG_MAX && NULL != names[type] ? names[type] : "unknown";
}
