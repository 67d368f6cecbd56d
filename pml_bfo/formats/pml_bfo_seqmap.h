/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Kept counters: the sequence numbers of one peer process for every context id ever used with it, kept while no
 * communicator of that context id is active here. They are never reset. DESIGN.txt section 8.
 * A communicator may end before its last messages have come. Their numbers count as used, but nobody has taken them: [taken, next_recv).
 */
#ifndef PML_BFO_SEQMAP_H
#define PML_BFO_SEQMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t key;       /* context id + 1; 0 = free */
    uint32_t next_send; /* number of the next message to the peer */
    uint32_t next_recv; /* number expected next from the peer */
    uint32_t taken;     /* the messages before this number have come; next_recv, or a number before it */
} bfo_seqs_t;

/* Open addressing, at most half full, grows by doubling. All zero is an empty map. Locks: those of the owner. */
typedef struct {
    bfo_seqs_t *slots;
    uint32_t size; /* power of two, or 0 */
    uint32_t used;
} bfo_seqmap_t;

/* The entry of `ctx`, or NULL. */
const bfo_seqs_t *bfo_seqmap_find(const bfo_seqmap_t *m, uint32_t ctx);

/* Stores both counters of `ctx`. Returns 0, or -1 without memory, which cannot happen if `ctx` has an entry. */
int bfo_seqmap_store(bfo_seqmap_t *m, uint32_t ctx, uint32_t next_send, uint32_t next_recv);
/* The numbers before `next_recv` count as used from now on, although their messages were not taken. Returns as bfo_seqmap_store(). */
int bfo_seqmap_skip(bfo_seqmap_t *m, uint32_t ctx, uint32_t next_recv);
/* Does the number count as used? `kept` is NULL if there is no entry. */
static inline bool bfo_seqs_is_used(const bfo_seqs_t *kept, uint32_t seq)
{
    return NULL != kept && (int32_t) (seq - kept->next_recv) < 0;
}
/* Has the message of this number come, as far as the numbers say? */
static inline bool bfo_seqs_is_taken(const bfo_seqs_t *kept, uint32_t seq)
{
    return NULL != kept && (int32_t) (seq - kept->taken) < 0;
}

void bfo_seqmap_free(bfo_seqmap_t *m);

#endif /* PML_BFO_SEQMAP_H */
