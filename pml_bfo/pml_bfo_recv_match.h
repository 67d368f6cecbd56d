/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Matching: which receive takes which message. In come messages in any order with their numbers, and posted
 * receives; out go pairs, in the order MPI demands. Plain C: no Open MPI type appears here.
 * Cost does not grow with the number of posted receives or waiting messages, alike or not. DESIGN.txt section 14.2.
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
    struct bfo_link *next, *prev; /* a ring; an unlinked element points to itself or is not looked at */
} bfo_link_t;

/* An element of a bin. In the bin's ring the elements of one key stand together, the oldest first. */
typedef struct bfo_keyed {
    bfo_link_t link;        /* first: the ring consists of these */
    struct bfo_keyed *last; /* of its key, in the first one of the key; NULL in the others */
    int32_t src;            /* the key: rank or BFO_ANY_SOURCE, */
    int32_t tag;            /* and tag */
} bfo_keyed_t;

/* A posted receive. Negative tags are Open MPI's own; BFO_ANY_TAG does not match them. */
typedef struct {
    bfo_keyed_t key; /* in a bin; with BFO_ANY_TAG only its link is used, in a ring of the source or the communicator */
    uint64_t order;  /* of posting, within the communicator */
} bfo_want_t;

/* Bit of n_open: the peer was declared unreachable. */
#define BFO_LANE_ENDED 0x80000000u
/* Bit of n_open: the communicator was freed. What comes has to find the next one of its context id. */
#define BFO_LANE_GONE 0x40000000u
/* Bit of n_open: the communicator is revoked, for some tags at least. It holds nothing back. */
#define BFO_LANE_REVOKED 0x20000000u

/* A message without a receive, or one that came too early. */
typedef struct {
    bfo_keyed_t by_key; /* bin of (source, tag) */
    bfo_keyed_t by_tag; /* bin of (any source, tag), if there are such */
    bfo_link_t by_lane; /* arrival order from its source (in no ring with an own tag); or the early list, by seq */
    bfo_link_t by_comm; /* arrival order in the communicator */
    uint32_t seq;
} bfo_got_t;

/* Bins, a power of two of them. */
typedef struct {
    bfo_link_t *heads;
    uint32_t n;
    uint32_t n_keys; /* of the elements in them */
    uint32_t mask;   /* of a head's offset in bytes */
} bfo_bins_t;

/* The matching state of one source rank. */
typedef struct {
    uint32_t next_recv; /* number of the next message to be matched */
    uint32_t n_early;
    uint32_t n_open;          /* matched receives that hold back what comes behind them (DESIGN.txt section 14.2); with
                               * BFO_LANE_ENDED or _GONE nothing is taken any more */
    bfo_link_t any_tag_wants; /* receives from this rank with BFO_ANY_TAG */
    bfo_link_t gots;          /* its messages without a receive, but for those of Open MPI's own tags */
    bfo_link_t early;         /* its messages ahead of next_recv, by seq */
} bfo_lane_match_t;

/* The matching state of one communicator. */
typedef struct {
    bfo_bins_t wants;     /* receives with a tag, under (src or any, tag) */
    bfo_bins_t gots_key;  /* messages under (src, tag) */
    bfo_bins_t gots_tag;  /* messages under tag, if by_tag */
    bool by_tag;          /* a receive or probe from any source has looked for a tag among them */
    bfo_link_t any_wants; /* receives with any source and any tag */
    bfo_link_t gots;      /* messages in arrival order */
    bfo_link_t own_gots;  /* the same with Open MPI's own tags: what may take any tag passes them by */
    uint64_t next_order;
    uint32_t n_wild; /* posted receives with a wildcard */
    uint32_t n_gots;
} bfo_match_t;

/* Returns 0, or -1 without memory. */
int bfo_match_init(bfo_match_t *m);
void bfo_match_free(bfo_match_t *m);
void bfo_lane_match_init(bfo_lane_match_t *lane, uint32_t next_recv);

/* NEXT_REVOKED: NEXT, on a lane with BFO_LANE_REVOKED, where some tags are dropped. Only bfo_lane_admit_among() says so. */
typedef enum { BFO_SEQ_NEXT, BFO_SEQ_EARLY, BFO_SEQ_DUPLICATE, BFO_SEQ_NEXT_REVOKED } bfo_seq_verdict_t;

/* Is message number `seq` the next one? NEXT counts it as delivered. */
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

/* The verdict while receives hold back what comes behind them, or early messages are held. Nothing is delivered in the first case, and
 * no second copy in the other: the held message whose turn it is belongs to the thread that is about to deliver it. */
bfo_seq_verdict_t bfo_lane_admit_among(bfo_lane_match_t *lane, uint32_t seq);
/* True if the early message `seq` is held already. */
bool bfo_lane_is_held(const bfo_lane_match_t *lane, uint32_t seq);
/* Holds an early message (not held yet) until its turn comes. */
void bfo_lane_hold(bfo_lane_match_t *lane, bfo_got_t *got);
/* The held message whose turn it is now, counted as delivered and no longer held; or NULL, also while n_open. */
bfo_got_t *bfo_lane_next_held(bfo_lane_match_t *lane);

/* The receive that takes the message (src, tag), no longer posted; or NULL. */
bfo_want_t *bfo_match_arrive(bfo_match_t *m, bfo_lane_match_t *lane, int32_t src, int32_t tag);
/* Keeps a message that no receive wanted. */
void bfo_match_store(bfo_match_t *m, bfo_lane_match_t *lane, bfo_got_t *got);
/* The message for (src, tag), which stays; or NULL. `lane` is that of src, NULL for any source. */
bfo_got_t *bfo_match_peek(bfo_match_t *m, bfo_lane_match_t *lane, int32_t src, int32_t tag);
/* Some message that waits, or NULL. */
bfo_got_t *bfo_match_some(const bfo_match_t *m);
/* Adds to count[rank], for each of `n` ranks, how many of its messages wait. */
void bfo_match_count_gots(const bfo_match_t *m, unsigned *count, uint32_t n);
/* The message that came after `got` (NULL: the first), those with Open MPI's own tags at the end; or NULL. For a walk over all. */
bfo_got_t *bfo_match_after(const bfo_match_t *m, const bfo_got_t *got);
/* Takes out a message found by peek. */
void bfo_match_take(bfo_match_t *m, bfo_got_t *got);
/* Posts a receive for which peek found nothing. */
void bfo_match_post(bfo_match_t *m, bfo_lane_match_t *lane, bfo_want_t *want);
/* A posted receive that names `src`, whose lane that is, or NULL. For a walk that withdraws each: *bin is 0 at first. */
bfo_want_t *bfo_match_want_of(bfo_match_t *m, bfo_lane_match_t *lane, int32_t src, uint32_t *bin);
/* Takes back a posted receive. */
void bfo_match_withdraw(bfo_match_t *m, bfo_want_t *want);

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
/* Leaves the element as it is: for one whose link is not asked again before it is appended somewhere. */
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
