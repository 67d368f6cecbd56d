/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Matching: which receive takes which message. Input: messages in any order with their sequence numbers, and posted
 * receives. Output: pairs, in the order MPI demands. Plain C: no Open MPI type appears here.
 * The cost does not grow with the number of posted receives or unexpected messages, whether their keys are equal or not.
 * DESIGN.txt section 14.2.
 * Locks: the caller holds the communicator's lock around every call.
 */
#ifndef PML_BFO_RECV_MATCH_H
#define PML_BFO_RECV_MATCH_H

#include "bfo_assert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BFO_ANY_SOURCE (-1)
#define BFO_ANY_TAG (-1)

typedef struct bfo_link {
    struct bfo_link *next, *prev; /* a ring; an unlinked element points to itself or is not read */
} bfo_link_t;

/* An element of a bin. In the bin's ring the elements with the same key are adjacent, the oldest first. */
typedef struct bfo_keyed {
    bfo_link_t link;        /* must be first: the ring links these */
    struct bfo_keyed *last; /* in the first element of a key: the last one of that key; NULL in the others */
    int32_t src;            /* the key: rank or BFO_ANY_SOURCE, */
    int32_t tag;            /* and tag */
} bfo_keyed_t;

/* A posted receive. Negative tags are Open MPI's own; BFO_ANY_TAG does not match them. */
typedef struct {
    bfo_keyed_t key; /* in a bin; with BFO_ANY_TAG only its link is used, in a ring of the source or the communicator */
    uint64_t order;  /* order of posting, within the communicator */
} bfo_posted_t;

/* Bit of n_open: the peer was declared unreachable. */
#define BFO_LANE_ENDED 0x80000000u
/* Bit of n_open: the communicator was freed. A message that comes has to find the next communicator of its context id. */
#define BFO_LANE_GONE 0x40000000u
/* Bit of n_open: the communicator is revoked, for some tags at least. This bit holds no message back. */
#define BFO_LANE_REVOKED 0x20000000u

/* An unexpected message, or one that came out of order. */
typedef struct {
    bfo_keyed_t by_key; /* bin of (source, tag) */
    bfo_keyed_t by_tag; /* bin of (any source, tag), if by_tag is set */
    bfo_link_t by_lane; /* arrival order from its source (not linked if the tag is one of Open MPI's own); or the early list, by seq */
    bfo_link_t by_comm; /* arrival order in the communicator */
    uint32_t seq;
} bfo_unexpected_t;

/* A hash table of bins; their number is a power of two. */
typedef struct {
    bfo_link_t *heads;
    uint32_t n;
    uint32_t n_keys; /* different keys among the elements in them */
    uint32_t mask;   /* of a head's offset in bytes */
} bfo_bins_t;

/* The matching state of one source rank. */
typedef struct {
    uint32_t next_recv; /* number of the next message to be matched */
    uint32_t n_early;
    uint32_t n_open;           /* matched receives that hold back later messages (DESIGN.txt section 14.2); with
                               * BFO_LANE_ENDED or _GONE the lane takes no more messages */
    bfo_link_t any_tag_posted; /* receives from this rank with BFO_ANY_TAG */
    bfo_link_t unexpected;     /* its unexpected messages, except those with Open MPI's own tags */
    bfo_link_t early;          /* its out-of-order messages, ahead of next_recv, by seq */
} bfo_lane_match_t;

/* The matching state of one communicator. */
typedef struct {
    bfo_bins_t posted;         /* receives with a tag, under (src or any, tag) */
    bfo_bins_t unexpected_key; /* messages under (src, tag) */
    bfo_bins_t unexpected_tag; /* messages under (any, tag), if by_tag */
    bool by_tag;               /* a receive or probe from any source has looked for a tag, and unexpected_tag is in use since */
    bfo_link_t any_posted;     /* receives with any source and any tag */
    bfo_link_t unexpected;     /* unexpected messages in arrival order */
    bfo_link_t own_unexpected; /* the same with Open MPI's own tags: a receive with BFO_ANY_TAG skips them */
    uint64_t next_order;
    uint32_t n_wild; /* posted receives with a wildcard */
    uint32_t n_unexpected;
} bfo_match_t;

/* Returns 0, or -1 without memory. */
int bfo_match_init(bfo_match_t *m);
void bfo_match_free(bfo_match_t *m);
void bfo_lane_match_init(bfo_lane_match_t *lane, uint32_t next_recv);

/* NEXT_REVOKED: as NEXT, on a lane with BFO_LANE_REVOKED, where some tags are dropped. Only bfo_lane_admit_among() returns it. */
typedef enum { BFO_SEQ_NEXT, BFO_SEQ_EARLY, BFO_SEQ_DUPLICATE, BFO_SEQ_NEXT_REVOKED } bfo_seq_verdict_t;

/* Is message number `seq` the next one? If NEXT, it counts as delivered. */
static inline bfo_seq_verdict_t bfo_lane_admit(bfo_lane_match_t *lane, uint32_t seq)
{
    const int32_t ahead = (int32_t) (seq - lane->next_recv);

    BFO_ASSERT(0 == (lane->n_open & ~BFO_LANE_REVOKED));
    if (__builtin_expect(0 == ahead, 1)) {
        ++lane->next_recv;
        return BFO_SEQ_NEXT;
    }
    return ahead < 0 ? BFO_SEQ_DUPLICATE : BFO_SEQ_EARLY;
}

/* The verdict while receives hold back later messages, or out-of-order messages are held. In the first case nothing is delivered. In the
 * second no second copy is delivered: a held message whose turn it is belongs to the thread that is about to deliver it. */
bfo_seq_verdict_t bfo_lane_admit_among(bfo_lane_match_t *lane, uint32_t seq);
/* True if the out-of-order message `seq` is held already. */
bool bfo_lane_is_held(const bfo_lane_match_t *lane, uint32_t seq);
/* Holds an out-of-order message, which is not held yet, until its turn comes. */
void bfo_lane_hold(bfo_lane_match_t *lane, bfo_unexpected_t *unexpected);
/* Takes the held message whose turn it is now and counts it as delivered; NULL if there is none, or while n_open holds messages back. */
bfo_unexpected_t *bfo_lane_next_held(bfo_lane_match_t *lane);

/* Takes the posted receive that matches the message (src, tag) out of the bins; or NULL. */
bfo_posted_t *bfo_match_arrive(bfo_match_t *m, bfo_lane_match_t *lane, int32_t src, int32_t tag);
/* Stores an unexpected message. */
void bfo_match_store(bfo_match_t *m, bfo_lane_match_t *lane, bfo_unexpected_t *unexpected);
/* Finds the unexpected message for (src, tag), which stays stored; or NULL. `lane` is that of src, NULL for any source. */
bfo_unexpected_t *bfo_match_peek(bfo_match_t *m, bfo_lane_match_t *lane, int32_t src, int32_t tag);
/* Any unexpected message, or NULL. */
bfo_unexpected_t *bfo_match_some(const bfo_match_t *m);
/* Adds to count[rank], for each of `n` ranks, the number of its unexpected messages. */
void bfo_match_count_unexpected(const bfo_match_t *m, unsigned *count, uint32_t n);
/* For a walk over all unexpected messages: the one after `unexpected` (NULL: the first), those with Open MPI's own tags last; or NULL. */
bfo_unexpected_t *bfo_match_after(const bfo_match_t *m, const bfo_unexpected_t *unexpected);
/* Takes out a message that bfo_match_peek() found. */
void bfo_match_take(bfo_match_t *m, bfo_unexpected_t *unexpected);
/* Posts a receive for which bfo_match_peek() found nothing. */
void bfo_match_post(bfo_match_t *m, bfo_lane_match_t *lane, bfo_posted_t *posted);
/* A posted receive that names `src`, the source of `lane`; or one from any source (BFO_ANY_SOURCE, lane NULL); or NULL. For a walk that
 * withdraws each one: *bin is 0 at first. */
bfo_posted_t *bfo_match_posted_of(bfo_match_t *m, bfo_lane_match_t *lane, int32_t src, uint32_t *bin);
/* Takes back a posted receive. */
void bfo_match_withdraw(bfo_match_t *m, bfo_posted_t *posted);

static inline void bfo_link_init(bfo_link_t *l)
{
    l->next = l->prev = l;
}
static inline bool bfo_link_is_empty(const bfo_link_t *l)
{
    return l->next == l;
}
static inline void bfo_link_between(bfo_link_t *prev, bfo_link_t *next, bfo_link_t *l)
{
    BFO_ASSERT(prev->next == next && next->prev == prev);
    BFO_ASSERT(l != prev && l != next);
    l->next = next;
    l->prev = prev;
    prev->next = l;
    next->prev = l;
}
static inline void bfo_link_append(bfo_link_t *head, bfo_link_t *l)
{
    bfo_link_between(head->prev, head, l);
}
/* Leaves the links of the element as they are: for an element whose links are not read before it is appended again. */
static inline void bfo_link_cut(bfo_link_t *l)
{
    bfo_link_t *next = l->next, *prev = l->prev;

    BFO_ASSERT(next->prev == l && prev->next == l);
    prev->next = next;
    next->prev = prev;
}
static inline void bfo_link_remove(bfo_link_t *l)
{
    bfo_link_cut(l);
    bfo_link_init(l);
    BFO_ASSERT(bfo_link_is_empty(l));
}
#define bfo_container(ptr, type, member) ((type *) (void *) ((char *) (ptr) -offsetof(type, member)))

#endif /* PML_BFO_RECV_MATCH_H */
