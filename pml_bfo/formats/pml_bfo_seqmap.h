/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Kept counters: the sequence numbers of one peer process for every context id ever used with it, kept while no
 * communicator of that context id is active here. They are never reset. DESIGN.txt section 8.
 */
#ifndef PML_BFO_SEQMAP_H
#define PML_BFO_SEQMAP_H

#include <stdint.h>

typedef struct {
    uint32_t key;       /* context id + 1; 0 = free */
    uint32_t next_send; /* number of the next message to the peer */
    uint32_t next_recv; /* number expected next from the peer */
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

void bfo_seqmap_free(bfo_seqmap_t *m);

#endif /* PML_BFO_SEQMAP_H */
