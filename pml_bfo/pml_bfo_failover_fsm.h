/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The machines of send and receive requests: states, the state word `se`, tables, and the engine that walks them.
 * In: events. Out: calls of the owner's actions. No Open MPI header; it knows no message, rail or request.
 * DESIGN.txt section 7; the tables are pml_bfo_failover_send.def and pml_bfo_failover_recv.def. */
#ifndef PML_BFO_FAILOVER_FSM_H
#define PML_BFO_FAILOVER_FSM_H

#include <stdbool.h>
#include <stdint.h>

/* ---- names, generated from the tables ------------------------------------------------------------- */
/* An event's kind: CALL, MESSAGE and COMPLETION look themselves up anew when another thread changed the state first;
 * a GUARD that lost does nothing. COMPLETION releases one of `events` behind its action. */
enum { BFO_KIND_CALL, BFO_KIND_MESSAGE, BFO_KIND_COMPLETION, BFO_KIND_GUARD };

#define STATE(name, text, is_err) BFO_SEND_##name,
enum bfo_send_state {
#include "pml_bfo_failover_send.def"
    BFO_SEND_STATES
};
#define EVENT(name, kind, text) BFO_SEV_##name,
enum bfo_send_event {
    BFO_SEV_NOTHING,
#include "pml_bfo_failover_send.def"
    BFO_SEND_EVENTS
};
#define ACTION(name) BFO_SACT_##name,
enum bfo_send_action {
#include "pml_bfo_failover_send.def"
    BFO_SEND_ACTIONS
};
#define STATE(name, text, is_err) BFO_RECV_##name,
enum bfo_recv_state {
#include "pml_bfo_failover_recv.def"
    BFO_RECV_STATES
};
#define EVENT(name, kind, text) BFO_REV_##name,
enum bfo_recv_event {
    BFO_REV_NOTHING,
#include "pml_bfo_failover_recv.def"
    BFO_RECV_EVENTS
};
#define ACTION(name) BFO_RACT_##name,
enum bfo_recv_action {
#include "pml_bfo_failover_recv.def"
    BFO_RECV_ACTIONS
};

/* ---- the state word: state << 16 | epoch ------------------------------------------------------------ */
#define BFO_SE(state, epoch) ((uint32_t) (state) << 16 | (uint16_t) (epoch))
#define BFO_EPOCH_LAST 65535u   /* a restart beyond it declares the peer */

/* Part of every request. A request object is zero when first made; `events` is never stored again, it balances. */
typedef struct {
    uint32_t se;      /* state and epoch; written by bfo_se_move() only. Threads: compare-and-swap */
    int32_t events;   /* descriptors posted and items listed whose callback or discard has not run. Threads: atomic */
} bfo_machine_t;

static inline unsigned bfo_se_state(uint32_t se) { return se >> 16; }
static inline uint16_t bfo_se_epoch(uint32_t se) { return (uint16_t) se; }
/* Epochs are compared by equality only, and 65535 has no successor. */
static inline bool bfo_se_is_epoch(uint32_t se, uint16_t epoch) { return epoch == (uint16_t) se; }
static inline bool bfo_se_is_next_epoch(uint32_t se, uint16_t epoch) { return epoch == (se & 0xffffu) + 1u; }

/* ERR-class: completions drain, nothing of the attempt is posted any more. */
#define STATE(name, text, is_err) | (uint32_t) (is_err) << BFO_SEND_##name
enum { BFO_SEND_ERR_MASK = 0
#include "pml_bfo_failover_send.def"
};
#define STATE(name, text, is_err) | (uint32_t) (is_err) << BFO_RECV_##name
enum { BFO_RECV_ERR_MASK = 0
#include "pml_bfo_failover_recv.def"
};
static inline bool bfo_send_state_is_err(unsigned state) { return 0 != (BFO_SEND_ERR_MASK >> state & 1); }
static inline bool bfo_recv_state_is_err(unsigned state) { return 0 != (BFO_RECV_ERR_MASK >> state & 1); }
static inline bool bfo_send_state_is_open(unsigned state) { return BFO_SEND_IDLE != state && BFO_SEND_DONE != state; }
static inline bool bfo_recv_state_is_open(unsigned state) { return BFO_RECV_NONE != state && BFO_RECV_DONE != state; }
/* May a listed FRAG or WRITE, an ACK, PUT or READ be posted? Only in the epoch of the item (DESIGN.txt 9 rule 2). */
static inline bool bfo_send_may_stream(uint32_t se, uint16_t epoch) { return BFO_SE(BFO_SEND_STREAM, epoch) == se; }
static inline bool bfo_recv_may_respond(uint32_t se, uint16_t epoch) { return BFO_SE(BFO_RECV_ACTIVE, epoch) == se; }

#endif /* PML_BFO_FAILOVER_FSM_H */
