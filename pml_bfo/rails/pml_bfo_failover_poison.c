/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Poison: a message that fails on every rail. An adapter reports that a work request itself was at fault, but a broken adapter reports
 * that of any request. Therefore the first report counts against the rail, and the message is sent again. If another rail, or another
 * generation of the same rail, reports the same, the message is poison. DESIGN.txt section 7.5.
 */
#include "types/pml_bfo.h"

#include "rails/pml_bfo_failover_poison.h"
#include "types/pml_bfo_local.h"

#if PML_BFO
/* A rail reports at most three suspects, the first of each queue pair, and is down after that. A new suspect replaces the oldest. */
enum { SUSPECTS = 64 };
static struct {
    const bfo_peer_t *peer;
    uint64_t message;
    uint32_t rail; /* index and generation */
    bfo_suspect_t kind;
} suspects[SUSPECTS]; /* Lock: bfo.lock */
static unsigned next_suspect;

/* Locks: bfo.lock held. */
static bool is_confirmed(const bfo_peer_t *peer, uint32_t rail, bfo_suspect_t kind, uint64_t message)
{
    for (unsigned i = 0; i < SUSPECTS; ++i) {
        if (peer == suspects[i].peer && kind == suspects[i].kind && message == suspects[i].message) {
            return rail != suspects[i].rail;
        }
    }
    BFO_ASSERT(next_suspect < SUSPECTS);
    suspects[next_suspect].peer = peer;
    suspects[next_suspect].kind = kind;
    suspects[next_suspect].message = message;
    suspects[next_suspect].rail = rail;
    next_suspect = (next_suspect + 1) % SUSPECTS;
    return false;
}

static bool is_poison(const bfo_peer_t *peer, uint8_t rail, bfo_suspect_t kind, uint64_t message, int status)
{
    bool confirmed;

    if (OPAL_ERR_FATAL != status) {
        return false;
    }
    BFO_LOCK(&bfo.lock);
    confirmed = is_confirmed(peer, (uint32_t) rail << 16 | (rail < peer->n_rails ? peer->rails[rail].gen : 0), kind, message);
    BFO_UNLOCK(&bfo.lock);
    return confirmed;
}

void bfo_failover_forget_suspects(const bfo_peer_t *peer)
{
    BFO_LOCK(&bfo.lock);
    for (unsigned i = 0; i < SUSPECTS; ++i) {
        suspects[i].peer = peer == suspects[i].peer ? NULL : suspects[i].peer;
    }
    BFO_UNLOCK(&bfo.lock);
}

/* Identifies a message among all messages of one direction between two processes. */
static uint64_t message_of(uint16_t ctx, uint32_t seq)
{
    return (uint64_t) ctx << 32 | seq;
}

bool bfo_failover_send_is_poison(const bfo_send_t *req, uint8_t rail, int status)
{
    return is_poison(req->lane->peer, rail, BFO_SUSPECT_SENT, message_of((uint16_t) BFO_OMPI_CTX_OF(req->req_send.req_base.req_comm), req->match_seq),
                     status);
}

bool bfo_failover_recv_is_poison(const bfo_recv_t *req, uint8_t rail, int status)
{
    return is_poison(req->lane->peer, rail, BFO_SUSPECT_RECEIVED,
                     message_of((uint16_t) BFO_OMPI_CTX_OF(req->req_recv.req_base.req_comm), req->match_seq), status);
}

bool bfo_failover_ctl_is_poison(const bfo_peer_t *peer, uint8_t rail, const bfo_hdr_t *h, int status)
{
    if (BFO_MSG_FIN == h->common.type) {
        return is_poison(peer, rail, BFO_SUSPECT_FIN, h->fin.frag_id, status);
    }
    if (BFO_MSG_ACK == h->common.type) { /* a refusal, which has no receive */
        return is_poison(peer, rail, BFO_SUSPECT_REFUSAL, h->ack.src_id, status);
    }
    if (BFO_MSG_FOREIGN == h->common.type) {
        return is_poison(peer, rail, BFO_SUSPECT_FOREIGN, h->foreign.number, status);
    }
    return is_poison(peer, rail, BFO_MSG_MATCH == h->common.type ? BFO_SUSPECT_SENT : BFO_SUSPECT_RECEIVED, message_of(h->match.ctx, h->match.seq),
                     status);
}
#endif /* PML_BFO */
