/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The wire: every header the PML sends, with fixed offsets. Input: received bytes that may be anything. Output:
 * a checked header. Nothing here looks at requests. DESIGN.txt section 6.
 * Byte order: the sender's, because the PML refuses a peer of another architecture. A message with NBO set is dropped.
 */
#ifndef PML_BFO_HDR_H
#define PML_BFO_HDR_H

#include "formats/pml_bfo_life.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Identifier of an object in the receiver of a message; opaque to the sender. 0 = none. */
typedef uint64_t bfo_id_t;

/* Message types; the BTL tag is BFO_TAG_BASE + type. */
enum {
    BFO_MSG_MATCH = 1,
    BFO_MSG_RNDV = 2,
    BFO_MSG_RGET = 3,
    BFO_MSG_ACK = 4,
    BFO_MSG_RAILS = 5,
    BFO_MSG_FRAG = 6,
    BFO_MSG_LIFE = 7,
    BFO_MSG_PUT = 8,
    BFO_MSG_FIN = 9,
    BFO_MSG_FOREIGN = 10,
    BFO_MSG_NOTIFY = 11,
    BFO_MSG_RACK = 12,
    BFO_MSG_NACK = 13,
    BFO_MSG_RERR = 14,
    BFO_MSG_MAX = 15
};
#define BFO_TAG_BASE 0x40
#define BFO_TAG(type) ((uint8_t) (BFO_TAG_BASE + (type)))

/* flags1 of every message */
#define BFO_FLAG_ACK 1u    /* the sender wants an ACK even if the message is short */
#define BFO_FLAG_NBO 2u    /* network byte order: never sent, never accepted */
#define BFO_FLAG_PIN 4u    /* the sender's buffer is registered with every RDMA rail */
#define BFO_FLAG_CONTIG 8u /* the sender's buffer is contiguous */
#define BFO_FLAG_RESTART 64u
#define BFO_FLAG_FAILED 1u /* in the NOTIFY family */

typedef struct {
    uint8_t type;
    uint8_t flags;
    uint16_t ctx; /* context id */
    int32_t src;  /* rank of the sender in the communicator */
    int32_t tag;
    uint32_t seq; /* sequence number, per (ctx, pair of processes) */
} bfo_match_hdr_t;

typedef struct {
    bfo_match_hdr_t match;
    uint64_t msg_length; /* bytes of the whole packed message */
    bfo_id_t src_id;     /* send request */
} bfo_rndv_hdr_t;

typedef struct {
    bfo_rndv_hdr_t rndv;
    bfo_id_t frag_id; /* RDMA fragment of the sender, named by FIN */
    uint64_t src_ptr; /* sender's address, used by btl_get only */
    uint8_t rails;    /* names of the rails over which the buffer may be read; 0: the rail over which this header comes */
    uint8_t pad[7];
    /* then their registration handles, the lowest name first, h bytes each */
} bfo_rget_hdr_t;

typedef struct {
    bfo_id_t dst_id;
    uint16_t epoch;
    uint8_t pad[6];
} bfo_restart_hdr_t;

typedef struct {
    uint8_t type;
    uint8_t flags;
    uint16_t epoch;
    uint8_t pad[4];
    bfo_id_t src_id;
    bfo_id_t dst_id;
    uint64_t send_offset; /* first byte the sender is to send by FRAG */
    uint64_t send_size;   /* and how many */
} bfo_ack_hdr_t;

typedef struct {
    uint8_t type;
    uint8_t flags;
    uint16_t epoch;
    uint8_t pad[4];
    uint64_t frag_offset; /* of the payload in the packed message */
    bfo_id_t src_id;
    bfo_id_t dst_id;
} bfo_frag_hdr_t;

typedef struct {
    uint8_t type;
    uint8_t flags;
    uint16_t epoch;
    uint8_t pad[4];
    bfo_id_t src_id;
    bfo_id_t frag_id; /* RDMA fragment of the receiver, named by FIN */
    bfo_id_t dst_id;
    uint64_t rdma_offset; /* in the packed message */
    uint64_t dst_ptr;     /* receiver's address, used by btl_put only */
    uint64_t dst_size;
    /* then the registration handle, h bytes */
} bfo_put_hdr_t;

#define BFO_FIN_RESENT 1u
#define BFO_FIN_WRITE 2u   /* ends a WRITE of the PUT protocol; else a READ of RGET */
#define BFO_FIN_REFUSED 4u /* with WRITE: nothing was written, the receiver asks for the bytes by ACK */
typedef struct {
    uint8_t type;
    uint8_t flags;
    uint16_t epoch;
    uint8_t wrail;  /* rail that carried the WRITE */
    uint8_t fflags; /* BFO_FIN_* */
    uint16_t wgen;  /* and its generation */
    uint64_t size;
    bfo_id_t frag_id;
    bfo_match_hdr_t match; /* type and flags zero */
    uint8_t share[8];      /* READ: the part of the bytes that each rail has carried, by name, in 1/255; for the counters alone */
} bfo_fin_hdr_t;

#define BFO_MAX_RAILS 8
typedef struct {
    bfo_match_hdr_t match;
    bfo_id_t src_id;
    bfo_id_t dst_id;
    uint16_t epoch;
    uint8_t nrails;
    uint8_t dead_mask;
    uint8_t pad[4];
    uint16_t rail_gen[BFO_MAX_RAILS];
    uint32_t jobid; /* of the sender, a cross-check */
    uint32_t vpid;
} bfo_handshake_hdr_t; /* NOTIFY, RACK, NACK, RERR */

typedef struct {
    uint8_t type;
    uint8_t flags;
    uint8_t out;     /* rails whose port on the sender's side stands out, by name */
    uint8_t quiet;   /* of the rails that stand out at either end, those on which the sender has nothing in flight */
    uint32_t number; /* counts from 1; the message with the higher number is the later one */
    uint32_t jobid;  /* of the sender, a cross-check */
    uint32_t vpid;
    uint8_t forced; /* of `out`, those that stand out even if no other rail is left */
    uint8_t pad[3];
} bfo_rails_hdr_t;

typedef struct {
    uint8_t type;
    uint8_t flags;
    uint8_t answer; /* bfo_life_answer_t: 0 asks, any other value answers */
    uint8_t pad;
    uint32_t number; /* of the wait in which the sender asks; the answer carries the same number */
    uint32_t jobid;  /* of the sender, a cross-check */
    uint32_t vpid;
    bfo_life_t about;
} bfo_life_hdr_t;

/* A message that bypasses the PML and that the PML has taken over (pml_bfo_ulfm_tags.c); its bytes follow. */
typedef struct {
    uint8_t type;
    uint8_t flags;
    uint8_t tag; /* BTL tag of the original message */
    uint8_t pad;
    uint32_t number; /* counts from 1, for the pair of processes */
    uint32_t jobid;  /* of the sender, a cross-check */
    uint32_t vpid;
} bfo_foreign_hdr_t;

typedef union {
    struct {
        uint8_t type;
        uint8_t flags;
    } common;
    bfo_match_hdr_t match;
    bfo_rndv_hdr_t rndv;
    bfo_rget_hdr_t rget;
    bfo_ack_hdr_t ack;
    bfo_frag_hdr_t frag;
    bfo_put_hdr_t put;
    bfo_fin_hdr_t fin;
    bfo_handshake_hdr_t handshake;
    bfo_rails_hdr_t rails;
    bfo_life_hdr_t life;
    bfo_foreign_hdr_t foreign;
} bfo_hdr_t;

#define BFO_AT(type, field, at) _Static_assert((at) == offsetof(type, field), #type "." #field)
#define BFO_SIZE(type, size) _Static_assert((size) == sizeof(type), #type)
BFO_SIZE(bfo_match_hdr_t, 16);
BFO_AT(bfo_match_hdr_t, ctx, 2);
BFO_AT(bfo_match_hdr_t, src, 4);
BFO_AT(bfo_match_hdr_t, tag, 8);
BFO_AT(bfo_match_hdr_t, seq, 12);
BFO_SIZE(bfo_rndv_hdr_t, 32);
BFO_AT(bfo_rndv_hdr_t, msg_length, 16);
BFO_AT(bfo_rndv_hdr_t, src_id, 24);
BFO_SIZE(bfo_rget_hdr_t, 56);
BFO_AT(bfo_rget_hdr_t, frag_id, 32);
BFO_AT(bfo_rget_hdr_t, src_ptr, 40);
BFO_AT(bfo_rget_hdr_t, rails, 48);
BFO_SIZE(bfo_restart_hdr_t, 16);
BFO_AT(bfo_restart_hdr_t, epoch, 8);
BFO_SIZE(bfo_ack_hdr_t, 40);
BFO_AT(bfo_ack_hdr_t, epoch, 2);
BFO_AT(bfo_ack_hdr_t, src_id, 8);
BFO_AT(bfo_ack_hdr_t, dst_id, 16);
BFO_AT(bfo_ack_hdr_t, send_offset, 24);
BFO_AT(bfo_ack_hdr_t, send_size, 32);
BFO_SIZE(bfo_frag_hdr_t, 32);
BFO_AT(bfo_frag_hdr_t, epoch, 2);
BFO_AT(bfo_frag_hdr_t, frag_offset, 8);
BFO_AT(bfo_frag_hdr_t, src_id, 16);
BFO_AT(bfo_frag_hdr_t, dst_id, 24);
BFO_SIZE(bfo_put_hdr_t, 56);
BFO_AT(bfo_put_hdr_t, epoch, 2);
BFO_AT(bfo_put_hdr_t, src_id, 8);
BFO_AT(bfo_put_hdr_t, frag_id, 16);
BFO_AT(bfo_put_hdr_t, dst_id, 24);
BFO_AT(bfo_put_hdr_t, rdma_offset, 32);
BFO_AT(bfo_put_hdr_t, dst_ptr, 40);
BFO_AT(bfo_put_hdr_t, dst_size, 48);
BFO_SIZE(bfo_fin_hdr_t, 48);
BFO_AT(bfo_fin_hdr_t, epoch, 2);
BFO_AT(bfo_fin_hdr_t, wrail, 4);
BFO_AT(bfo_fin_hdr_t, fflags, 5);
BFO_AT(bfo_fin_hdr_t, wgen, 6);
BFO_AT(bfo_fin_hdr_t, size, 8);
BFO_AT(bfo_fin_hdr_t, frag_id, 16);
BFO_AT(bfo_fin_hdr_t, match, 24);
BFO_AT(bfo_fin_hdr_t, share, 40);
BFO_SIZE(bfo_handshake_hdr_t, 64);
BFO_AT(bfo_handshake_hdr_t, src_id, 16);
BFO_AT(bfo_handshake_hdr_t, dst_id, 24);
BFO_AT(bfo_handshake_hdr_t, epoch, 32);
BFO_AT(bfo_handshake_hdr_t, nrails, 34);
BFO_AT(bfo_handshake_hdr_t, dead_mask, 35);
BFO_AT(bfo_handshake_hdr_t, rail_gen, 40);
BFO_AT(bfo_handshake_hdr_t, jobid, 56);
BFO_AT(bfo_handshake_hdr_t, vpid, 60);
BFO_SIZE(bfo_rails_hdr_t, 20);
BFO_AT(bfo_rails_hdr_t, out, 2);
BFO_AT(bfo_rails_hdr_t, quiet, 3);
BFO_AT(bfo_rails_hdr_t, number, 4);
BFO_AT(bfo_rails_hdr_t, jobid, 8);
BFO_AT(bfo_rails_hdr_t, vpid, 12);
BFO_AT(bfo_rails_hdr_t, forced, 16);
BFO_SIZE(bfo_life_t, 24);
BFO_AT(bfo_life_t, started, 8);
BFO_AT(bfo_life_t, pid, 16);
BFO_SIZE(bfo_life_hdr_t, 40);
BFO_AT(bfo_life_hdr_t, answer, 2);
BFO_AT(bfo_life_hdr_t, number, 4);
BFO_AT(bfo_life_hdr_t, jobid, 8);
BFO_AT(bfo_life_hdr_t, vpid, 12);
BFO_AT(bfo_life_hdr_t, about, 16);
BFO_SIZE(bfo_foreign_hdr_t, 16);
BFO_AT(bfo_foreign_hdr_t, tag, 2);
BFO_AT(bfo_foreign_hdr_t, number, 4);
BFO_AT(bfo_foreign_hdr_t, jobid, 8);
BFO_AT(bfo_foreign_hdr_t, vpid, 12);

/* The largest header: PUT with a handle, or RGET with handles of at most BFO_HANDLE_MAX bytes in all and the restart part. */
#define BFO_HANDLE_MAX 256
#define BFO_HDR_MAX (56 + BFO_HANDLE_MAX + 16)

/* Number of rails in a mask. Without the instruction for it, the compiler's own way would be a call. */
static inline size_t bfo_rails_in(uint8_t rails)
{
    const unsigned pairs = rails - (rails >> 1 & 0x55u), fours = (pairs & 0x33u) + (pairs >> 2 & 0x33u);

    return (fours + (fours >> 4)) & 0x0fu;
}

/* Bytes of the handles in an RGET whose header names `rails`. */
static inline size_t bfo_rget_handles_size(uint8_t rails, size_t handle_size)
{
    return 0 == rails ? handle_size : handle_size * bfo_rails_in(rails);
}

/* Size of an RGET header with `handles` bytes of handles, and with the restart part, which is aligned to 8 bytes, if `restart`. */
static inline size_t bfo_rget_hdr_size(size_t handles, bool restart)
{
    return restart ? ((sizeof(bfo_rget_hdr_t) + handles + 7) & ~(size_t) 7) + sizeof(bfo_restart_hdr_t) : sizeof(bfo_rget_hdr_t) + handles;
}

/* Bytes of header before the payload of a valid message of `type` with `handles` bytes of handles. */
size_t bfo_hdr_size(uint8_t type, uint8_t flags, size_t handles);

/* True if `length` bytes in the first segment of a message that arrived under the tag of `type` begin with
 * a header of that type whose fields do not contradict each other; `total` is the length of all
 * segments. Does not check identifiers: the caller looks them up. */
bool bfo_hdr_is_valid(uint8_t type, const void *data, size_t length, size_t total, size_t handle_size);

/* As bfo_hdr_is_valid(), for a single type on the hot path; `length` <= `total`. */
static inline bool bfo_hdr_common_is_valid(uint8_t type, const void *data, size_t length, size_t least)
{
    const uint8_t *h = data; /* type, flags */

    return length >= least && type == h[0] && 0 == (h[1] & BFO_FLAG_NBO);
}
static inline bool bfo_range_is_sound(uint64_t offset, uint64_t size)
{
    return offset <= INT64_MAX && size <= INT64_MAX - offset;
}
static inline bool bfo_hdr_match_is_valid(const bfo_match_hdr_t *h, size_t length)
{
    return bfo_hdr_common_is_valid(BFO_MSG_MATCH, h, length, sizeof(*h)) && h->src >= 0;
}
static inline bool bfo_hdr_rndv_is_valid(const bfo_rndv_hdr_t *h, size_t length, size_t total)
{
    size_t size = sizeof(*h);

    if (!bfo_hdr_common_is_valid(BFO_MSG_RNDV, h, length, size)) {
        return false;
    }
    size += h->match.flags & BFO_FLAG_RESTART ? sizeof(bfo_restart_hdr_t) : 0;
    return length >= size && h->match.src >= 0 && bfo_range_is_sound(0, h->msg_length) && 0 != h->src_id && total - size <= h->msg_length;
}
static inline bool bfo_hdr_rget_is_valid(const bfo_rget_hdr_t *h, size_t length, size_t total, size_t handle_size)
{
    size_t handles;

    if (!bfo_hdr_common_is_valid(BFO_MSG_RGET, h, length, sizeof(*h))) {
        return false;
    }
    handles = bfo_rget_handles_size(h->rails, handle_size);
    return h->rndv.match.src >= 0 && bfo_range_is_sound(0, h->rndv.msg_length) && 0 != h->rndv.src_id && 0 != h->frag_id && total == length
           && length == bfo_rget_hdr_size(handles, 0 != (h->rndv.match.flags & BFO_FLAG_RESTART));
}
static inline bool bfo_hdr_ack_is_valid(const bfo_ack_hdr_t *h, size_t length, size_t total)
{
    return bfo_hdr_common_is_valid(BFO_MSG_ACK, h, length, sizeof(*h)) && total == sizeof(*h) && 0 != h->src_id
           && bfo_range_is_sound(h->send_offset, h->send_size);
}
static inline bool bfo_hdr_frag_is_valid(const bfo_frag_hdr_t *h, size_t length, size_t total)
{
    return bfo_hdr_common_is_valid(BFO_MSG_FRAG, h, length, sizeof(*h)) && total > sizeof(*h) && 0 != h->dst_id
           && bfo_range_is_sound(h->frag_offset, total - sizeof(*h));
}
static inline bool bfo_hdr_put_is_valid(const bfo_put_hdr_t *h, size_t length, size_t total, size_t handle_size)
{
    return bfo_hdr_common_is_valid(BFO_MSG_PUT, h, length, sizeof(*h) + handle_size) && total == sizeof(*h) + handle_size && 0 != h->src_id
           && 0 != h->frag_id && 0 != h->dst_size && bfo_range_is_sound(h->rdma_offset, h->dst_size);
}
static inline bool bfo_hdr_fin_is_valid(const bfo_fin_hdr_t *h, size_t length, size_t total)
{
    return total == sizeof(*h) && bfo_hdr_common_is_valid(BFO_MSG_FIN, h, length, sizeof(*h)) && 0 != h->frag_id && bfo_range_is_sound(0, h->size);
}

/* Fill a header; reserved bytes become zero. */
static inline void bfo_hdr_pack_match(bfo_match_hdr_t *h, uint8_t type, uint8_t flags, uint16_t ctx, int32_t src, int32_t tag, uint32_t seq)
{
    *h = (bfo_match_hdr_t){.type = type, .flags = flags, .ctx = ctx, .src = src, .tag = tag, .seq = seq};
}
static inline void bfo_hdr_pack_ack(bfo_ack_hdr_t *h, uint16_t epoch, bfo_id_t src_id, bfo_id_t dst_id, uint64_t offset, uint64_t size)
{
    *h = (bfo_ack_hdr_t){.type = BFO_MSG_ACK, .epoch = epoch, .src_id = src_id, .dst_id = dst_id, .send_offset = offset, .send_size = size};
}
static inline void bfo_hdr_pack_frag(bfo_frag_hdr_t *h, uint16_t epoch, bfo_id_t src_id, bfo_id_t dst_id, uint64_t offset)
{
    *h = (bfo_frag_hdr_t){.type = BFO_MSG_FRAG, .epoch = epoch, .frag_offset = offset, .src_id = src_id, .dst_id = dst_id};
}
static inline void bfo_hdr_pack_put(bfo_put_hdr_t *h, uint16_t epoch, bfo_id_t src_id, bfo_id_t frag_id, bfo_id_t dst_id, uint64_t offset,
                                    const void *to, uint64_t size)
{
    *h = (bfo_put_hdr_t){.type = BFO_MSG_PUT,
                         .epoch = epoch,
                         .src_id = src_id,
                         .frag_id = frag_id,
                         .dst_id = dst_id,
                         .rdma_offset = offset,
                         .dst_ptr = (uintptr_t) to,
                         .dst_size = size};
}
static inline void bfo_hdr_pack_fin(bfo_fin_hdr_t *h, uint16_t epoch, uint8_t fflags, bfo_id_t frag_id, uint64_t size, const bfo_match_hdr_t *message)
{
    *h = (bfo_fin_hdr_t){.type = BFO_MSG_FIN, .epoch = epoch, .fflags = fflags, .size = size, .frag_id = frag_id, .match = *message};
    h->match.type = 0;
    h->match.flags = 0;
}

const char *bfo_hdr_name(uint8_t type);

#endif /* PML_BFO_HDR_H */
